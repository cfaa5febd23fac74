//! Programs that make, rename and remove names: the disk gets the same commands as from the kernel.
//! Needs a kernel in the cache, mkfs.ext4 and mkfs.xfs.

mod common;

use common::{KERNEL, assert_same};
use testing::needs::{BUSYBOX, FIO, MKFS_EXT4, MKFS_XFS};

/// `form` with each of some numbers, and something in between.
fn each(form: &str, count: usize, between: &str) -> String {
    let all: Vec<String> = (0..count).map(|n| form.replace('#', &format!("{n:02}"))).collect();
    all.join(between)
}

fn assert_same_on(systems: &str, run: &str) {
    assert_same(&format!(
        "model = \"vm-ssd-m4\"\nschedulers = [\"none\"]\n[[job]]\nname = \"job\"\nrun = \"{run}\"\n\
         [axes]\nfs = {systems}\n"
    ));
}

const BOTH: &str = r#"["ext4", "xfs"]"#;

fn a_burst_of_new_names_renamings_and_removals_is_logged_as_on_the_kernel() {
    let names = each("/mnt/a#", 20, " ");
    let made = each("dd if=/dev/zero of=/mnt/a# bs=4k count=1", 20, "; ");
    let renamed = each("mv /mnt/a# /mnt/b#", 20, "; ");
    let removed = each("/mnt/b#", 20, " ");
    for between in ["", "sync;", "sleep 1; sync;"] {
        for make in [&format!("touch {names}"), &made] {
            let line =
                format!("{make}; {between} {renamed}; {between} rm {removed}; sleep 1; sync");
            assert_same_on(BOTH, &line);
        }
    }
}

fn names_times_sizes_and_room_change_what_they_change_on_the_kernel() {
    assert_same_on(
        BOTH,
        "touch /mnt/a /mnt/b /mnt/c; sync; touch /mnt/a; sync; mv /mnt/a /mnt/b; sync; truncate -s \
         1M /mnt/b; sync; fallocate -l 2M /mnt/b; sync; truncate -s 4k /mnt/b; sync; ls /mnt; \
         sync; stat /mnt/b; rm /mnt/b; sync; sleep 1; sync; touch /mnt/d /mnt/e; sync; ls -l /mnt; \
         sync",
    );
}

fn a_copy_that_shares_nothing_is_read_and_written_as_on_the_kernel() {
    assert_same_on(
        BOTH,
        "dd if=/dev/zero of=/mnt/a bs=64k count=40 conv=fsync; cp --reflink=never /mnt/a /mnt/b; \
         sync",
    );
}

fn directories_of_xfs_are_where_the_kernel_puts_them() {
    assert_same_on(
        r#"["xfs"]"#,
        "mkdir /mnt/d1; sync; mkdir -p /mnt/d1/e/f; sync; touch /mnt/d1/x /mnt/d1/y; sync; mkdir \
         /mnt/d2; sync; mv /mnt/d1/x /mnt/d2/x; sync; mv /mnt/d2 /mnt/d3; sync; ls /mnt/d1; sync; \
         dd if=/dev/zero of=/mnt/d3/data bs=64k count=4; sync; mv /mnt/d1/e /mnt/d3; sync; rm -r \
         /mnt/d1; sync; sleep 1; sync",
    );
    let many = each("/mnt/a#", 80, " ");
    assert_same_on(r#"["xfs"]"#, &format!("touch {many}; sync; touch /mnt/b; sync"));
}

fn a_file_that_is_open_keeps_its_blocks_without_a_name_as_on_the_kernel() {
    const OPTIONS: &str = "--size=2M --fsync=1 --thinktime=20ms --fallocate=none";
    const DIRECT: &str = "oflag=direct conv=fsync";
    for remove in ["rm /mnt/a", "touch /mnt/c; mv /mnt/c /mnt/a"] {
        assert_same(&format!(
            r#"
            model = "vm-ssd-m4"
            schedulers = ["none"]
            [[job]]
            name = "writer"
            run = "fio --name=w --filename=/mnt/a --rw=write --bs=64k {OPTIONS}"
            [[job]]
            name = "remover"
            run = "sleep 0.13; {remove}; dd if=/dev/zero of=/mnt/b bs=64k count=4 {DIRECT}"
            [[job]]
            name = "next"
            run = "sleep 2; dd if=/dev/zero of=/mnt/d bs=64k count=16 {DIRECT}"
            [axes]
            fs = ["ext4", "xfs"]
            "#
        ));
    }
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, MKFS_EXT4, MKFS_XFS] =>
            a_burst_of_new_names_renamings_and_removals_is_logged_as_on_the_kernel,
            names_times_sizes_and_room_change_what_they_change_on_the_kernel,
            a_copy_that_shares_nothing_is_read_and_written_as_on_the_kernel,
            directories_of_xfs_are_where_the_kernel_puts_them;
        [KERNEL, BUSYBOX, FIO, MKFS_EXT4, MKFS_XFS] =>
            a_file_that_is_open_keeps_its_blocks_without_a_name_as_on_the_kernel,
    ])
}
