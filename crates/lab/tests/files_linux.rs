//! Loads on every file system in both worlds: the disk gets the same commands in the same order.
//! Needs a kernel in the cache, mkfs.ext4 and mkfs.xfs.

use testing::needs::{BUSYBOX, FIO, MKFS_EXT4, MKFS_XFS};

mod common;

use common::{KERNEL, in_both_worlds};
use lab::fidelity::agreed;

/// Runs an experiment on each file system in both worlds; every row must agree in every command.
fn assert_same_on_each(text: &str) {
    for fs in ["ext4", "xfs"] {
        common::assert_same(&format!("fs = \"{fs}\"\n{text}"));
    }
}

/// The same of commands alone.
fn assert_same_commands(text: &str) {
    let rows = agreed(&in_both_worlds(text));
    assert!(!rows.is_empty() && rows.iter().all(|row| row.agreement.same_commands()), "{rows:?}");
}

fn dd_makes_appended_data_durable_as_on_the_kernel() {
    assert_same_on_each(
        r#"
        model = "vm-ssd-m4"
        schedulers = ["none"]
        [[job]]
        name = "dd"
        run = "dd if=/dev/zero of=/mnt/f bs={bs} count=40 {how}"
        [axes]
        bs = ["512", "4k", "6k", "100k"]
        how = ["oflag=dsync", "oflag=sync", "conv=fsync", "conv=fdatasync"]
        "#,
    );
}

fn a_write_that_leaves_a_hole_changes_the_page_before_it_as_on_the_kernel() {
    assert_same_on_each(
        r#"
        model = "vm-ssd-m4"
        schedulers = ["none"]
        [[job]]
        name = "sh"
        run = """sh -c 'dd if=/dev/zero of=/mnt/a bs={bs} count=1 conv=fsync; \
            dd if=/dev/zero of=/mnt/a bs=4k count=1 seek=5 conv=notrunc,fsync; \
            dd if=/dev/zero of=/mnt/a bs=4k count=2 seek=9 conv=notrunc,fsync'"""
        [axes]
        bs = ["1k", "4k", "6k"]
        "#,
    );
}

fn writers_of_a_mounted_disk_with_few_tags_are_throttled_as_by_the_kernel() {
    assert_same_on_each(
        r#"
        model = "ssd-sata-m4"
        schedulers = ["mq-deadline"]
        queue_depth = 1
        [settings]
        wbt_lat_usec = "-1"
        max_sectors_kb = 64
        [[job]]
        name = "sync"
        run = "dd if=/dev/zero of=/mnt/b bs=64k count=20 oflag=sync"
        [[job]]
        name = "fsync"
        run = "dd if=/dev/zero of=/mnt/a bs=512 count=1359 conv=fsync"
        "#,
    );
}

fn mapped_files_are_read_and_written_as_on_the_kernel() {
    let text = r#"
        model = "vm-ssd-m4"
        schedulers = ["none"]
        [[job]]
        name = "load"
        run = "fio --name=x --filename={file} --ioengine=mmap --bs=8k --size=1M --rw={habit}"
        [axes]
        habit = ["read --fadvise_hint=0", "randwrite --fsync=16"]
        "#;
    assert_same_on_each(&text.replace("{file}", "/mnt/x"));
    common::assert_same(&text.replace("{file}", "/dev/sda"));
}

/// Not on virtual disks, where the simulator writes metadata earlier than 6.12 (docs/trust.md).
fn each_control_group_has_a_flusher_that_knows_its_files_only() {
    assert_same_on_each(
        r#"
        model = "ssd-sata-m4"
        schedulers = ["none"]
        [[job]]
        name = "a"
        run = "dd if=/dev/zero of=/mnt/a bs=64k count=64"
        cgroup = "a"
        [[job]]
        name = "b"
        run = "dd if=/dev/zero of=/mnt/b bs=64k count=100"
        cgroup = "b"
        start = "7s"
        [[job]]
        name = "wait"
        run = "sleep 50"
        [axes]
        cgroup_writeback = ["true", "false"]
        "#,
    );
}

fn overwriting_truncating_and_direct_io_agree_with_the_kernel() {
    assert_same_on_each(
        r#"
        model = "vm-ssd-m4"
        schedulers = ["none"]
        [[job]]
        name = "fresh"
        run = "dd if=/dev/zero of=/mnt/f bs=1M count=1 conv=fsync"
        [[job]]
        name = "overwritten and fdatasynced"
        run = "dd if=/dev/zero of=/mnt/f bs=4k count=4 conv=notrunc oflag=dsync"
        start = "1s"
        [[job]]
        name = "overwritten and fsynced"
        run = "dd if=/dev/zero of=/mnt/f bs=4k count=4 conv=notrunc oflag=sync"
        start = "2s"
        [[job]]
        name = "appended directly"
        run = "dd if=/dev/zero of=/mnt/g bs=4k count=3 oflag=direct"
        start = "3s"
        [[job]]
        name = "overwritten directly"
        run = "dd if=/dev/zero of=/mnt/g bs=4k count=3 oflag=direct conv=notrunc"
        start = "4s"
        [[job]]
        name = "overwritten directly and durably"
        run = "dd if=/dev/zero of=/mnt/g bs=4k count=3 oflag=direct,dsync conv=notrunc"
        start = "4.5s"
        [[job]]
        name = "appended directly and durably"
        run = "dd if=/dev/zero of=/mnt/g bs=4k count=2 seek=3 oflag=direct,dsync conv=notrunc"
        start = "5s"
        [[job]]
        name = "read directly"
        run = "dd if=/mnt/g of=/dev/null bs=8k iflag=direct"
        start = "5.3s"
        [[job]]
        name = "read"
        run = "dd if=/mnt/g of=/dev/null bs=4k"
        start = "5.4s"
        [[job]]
        name = "truncated and written"
        run = "dd if=/dev/zero of=/mnt/g bs=6k count=4 oflag=dsync"
        start = "5.7s"
        "#,
    );
}

fn blocks_of_two_files_change_places_as_on_the_kernel() {
    common::assert_same(
        r#"
        fs = "ext4"
        model = "vm-ssd-m4"
        schedulers = ["none"]
        setup = ["dd if=/dev/zero of=/mnt/written bs=64k count=16 conv=fsync", "sync"]
        [[job]]
        name = "load"
        run = """fio --directory=/mnt --ioengine=e4defrag --donorname=donor --filesize=1M \
                 --size=1M --name=x --filename={file} --rw={rw}; sync"""
        [axes]
        file = ["written", "fresh"]
        rw = ["write --bs=32k --inplace=0", "randwrite --bs=4k --inplace=1"]
        "#,
    );
}

fn the_page_in_which_a_file_ends_is_zeroed_as_on_the_kernel() {
    // Divergence: a later sync finds its shell's file system dirty on the kernel, so its data carry
    // no SYNC there.
    let text = r#"
        model = "vm-ssd-m4"
        schedulers = ["none"]
        setup = ["dd if=/dev/zero of=/mnt/a bs=4k count=4 conv=fsync",
                 "dd if=/dev/zero of=/mnt/b bs=4k count=4 conv=fsync"]
        [[job]]
        name = "shorter"
        run = "truncate -s 5000 /mnt/a && sync && truncate -s 5000 /mnt/b"
        [[job]]
        name = "longer"
        start = "3s"
        run = "truncate -s 15000 /mnt/b && truncate -s 15000 /mnt/b && sync"
        [[job]]
        name = "again"
        start = "6s"
        run = "truncate -s 5001 /mnt/b && sync"
        "#;
    for fs in ["ext4", "xfs"] {
        assert_same_commands(&format!("fs = \"{fs}\"\n{text}"));
    }
}

fn a_file_that_dd_replaces_lies_where_it_does_on_the_kernel() {
    for order in ["ordered", "writeback"] {
        common::assert_same(&format!(
            r#"
            model = "hdd-7200-sata"
            schedulers = ["none"]
            fs = "ext4"
            mount_options = "data={order}"
            [[job]]
            name = "dd"
            run = "dd if=/dev/zero of=/mnt/d bs=64k count=4 conv=fsync"
            [[job]]
            name = "again"
            start = "1s"
            run = "dd if=/dev/zero of=/mnt/d bs=64k count=4 conv=fsync"
            "#
        ));
    }
}

fn a_file_behind_another_lies_in_memory_as_on_the_kernel() {
    for (fs, memory, first) in [("ext4", 512, 20), ("xfs", 512, 32), ("ext4", 1024, 28)] {
        assert_same_commands(&format!(
            r#"
            model = "vm-ssd-m4"
            schedulers = ["none"]
            fs = "{fs}"
            memory = "{memory} MiB"
            [settings]
            wbt_lat_usec = "-1"
            [[job]]
            name = "load"
            run = """fio --directory=/mnt --rw=read --bs=8k --number_ios=1 --ioengine=psync \
                     --name=first --size={first}M --name=second --size=32M"""
            "#
        ));
    }
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO, MKFS_EXT4, MKFS_XFS] =>
            dd_makes_appended_data_durable_as_on_the_kernel,
            a_write_that_leaves_a_hole_changes_the_page_before_it_as_on_the_kernel,
            writers_of_a_mounted_disk_with_few_tags_are_throttled_as_by_the_kernel,
            mapped_files_are_read_and_written_as_on_the_kernel,
            each_control_group_has_a_flusher_that_knows_its_files_only,
            overwriting_truncating_and_direct_io_agree_with_the_kernel,
            blocks_of_two_files_change_places_as_on_the_kernel,
            the_page_in_which_a_file_ends_is_zeroed_as_on_the_kernel,
            a_file_that_dd_replaces_lies_where_it_does_on_the_kernel,
            a_file_behind_another_lies_in_memory_as_on_the_kernel,
    ])
}
