//! Loads on ext4 in both worlds: the disk gets the same commands in the same order. Needs a kernel
//! in the cache and mkfs.ext4.

mod common;

use common::{KERNEL, assert_same};
use testing::needs::{BUSYBOX, FIO, MKFS_EXT4};

fn mount_options_and_the_write_cache_count_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-disk"
        fs = "ext4"
        schedulers = ["mq-deadline"]
        [[job]]
        name = "dd"
        run = "dd if=/dev/zero of=/mnt/f bs=512 count=30 oflag=dsync"
        [axes]
        mount_options = ["barrier", "nobarrier", "data=writeback"]
        write_cache = ["write back", "write through"]
        "#,
    );
}

fn two_appenders_and_an_appender_beside_a_bulk_writer_take_turns_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "ext4"
        schedulers = ["mq-deadline"]
        [[job]]
        name = "one"
        run = "dd if=/dev/zero of=/mnt/one bs=4k count=60 oflag=dsync"
        [[job]]
        name = "two"
        run = "dd if=/dev/zero of=/mnt/two {two}"
        start = "100us"
        [axes]
        model = ["vm-ssd-m4", "hdd-7200-sata"]
        two = ["bs=4k count=60 oflag=dsync", "bs=64k count=200 conv=fsync"]
        "#,
    );
}

fn sync_after_a_copy_writes_data_journal_and_metadata_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "ext4"
        schedulers = ["none"]
        model = "hdd-7200-sata"
        [[job]]
        name = "copy"
        run = "dd if=/dev/zero of=/mnt/f bs=64k count={n}"
        [[job]]
        name = "sync"
        run = "sync"
        start = "1s"
        [axes]
        n = [4, 100, 700]
        "#,
    );
}

fn who_commits_after_drop_caches_reads_where_the_log_lies_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "ext4"
        memory = "512 MiB"
        schedulers = ["none"]
        setup = ["dd if=/dev/zero of=/mnt/a bs=1M count=4", "sync", "drop_caches"]
        [[job]]
        name = "dd"
        run = "dd if=/dev/zero of=/mnt/a bs=64k count=16 conv=fsync,notrunc"
        [axes]
        model = ["hdd-7200-sata", "ssd-sata-m4"]
        "#,
    );
}

fn fio_makes_files_and_uses_them_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-ssd-m4"
        fs = "ext4"
        schedulers = ["none"]
        [[job]]
        name = "load"
        run = "fio --name=load --filename=/mnt/x --bs=4k --size=4M --number_ios=100 --rw={how}"
        [axes]
        how = ["write --fsync=8", "randwrite --fdatasync=1 --overwrite=1", "write --direct=1",
               "randwrite --sync=dsync", "randwrite --end_fsync=1"]
        "#,
    );
}

fn a_copy_that_is_synced_writes_metadata_first_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-ssd-m4"
        fs = "ext4"
        schedulers = ["none"]
        [[job]]
        name = "make"
        run = "dd if=/dev/zero of=/mnt/a bs=64k count=16 conv=fsync"
        [[job]]
        name = "copy"
        run = "dd if=/mnt/a of=/mnt/b bs=64k"
        start = "8s"
        [[job]]
        name = "sync"
        run = "sync"
        start = "9s"
        "#,
    );
}

fn pages_with_and_without_contents_go_in_their_order_as_on_the_kernel() {
    let form = |at: &str| {
        let (count, seek) = at.split_once('@').expect("pages and where");
        format!("dd if=/dev/zero of=/mnt/a bs=4k count={count} seek={seek} conv=notrunc")
    };
    let written = |at: &str| format!("{},fsync", form(at));
    let pieces = [written("2@0"), written("2@4"), written("1@7"), written("10@0")].join("; ");
    let synced = [form("4@30"), "sync".into(), form("10@25"), "sync; sleep 1".into(), form("40@0")];
    assert_same(&format!(
        r#"
        model = "nvme-plp"
        fs = "ext4"
        schedulers = ["none"]
        [[job]]
        name = "writer"
        run = "fallocate -l 1M /mnt/a; sync; {pieces}; {}; sync"
        "#,
        synced.join("; ")
    ));
}

fn direct_writes_into_holes_are_converted_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "ext4"
        schedulers = ["mq-deadline"]
        model = "hdd-7200-sata"
        queue_depth = 32
        write_cache = "write through"
        [[job]]
        name = "fio"
        run = """fio --name=a --directory=/mnt --rw=randwrite --bs=16k --size=1M --number_ios=40 \
                 --direct=1 --ioengine=psync --fallocate=none {how}"""
        [axes]
        how = ["--fdatasync=8", "--sync=dsync"]
        "#,
    );
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO, MKFS_EXT4] =>
            mount_options_and_the_write_cache_count_as_on_the_kernel,
            two_appenders_and_an_appender_beside_a_bulk_writer_take_turns_as_on_the_kernel,
            sync_after_a_copy_writes_data_journal_and_metadata_as_on_the_kernel,
            direct_writes_into_holes_are_converted_as_on_the_kernel,
            who_commits_after_drop_caches_reads_where_the_log_lies_as_on_the_kernel,
            fio_makes_files_and_uses_them_as_on_the_kernel,
            a_copy_that_is_synced_writes_metadata_first_as_on_the_kernel,
            pages_with_and_without_contents_go_in_their_order_as_on_the_kernel,
    ])
}
