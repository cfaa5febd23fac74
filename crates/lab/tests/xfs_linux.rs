//! Loads on XFS in both worlds: the disk gets the same commands in the same order. Needs a kernel
//! in the cache and mkfs.xfs.

mod common;

use common::{KERNEL, assert_same};
use testing::needs::{BUSYBOX, FIO, MKFS_XFS};

fn log_buffers_and_the_write_cache_count_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-disk"
        fs = "xfs"
        schedulers = ["mq-deadline"]
        [[job]]
        name = "dd"
        run = "dd if=/dev/zero of=/mnt/f bs=512 count=30 oflag=dsync"
        [axes]
        mount_options = ["logbsize=32k", "logbsize=256k"]
        write_cache = ["write back", "write through"]
        "#,
    );
}

fn two_appenders_and_an_appender_beside_a_bulk_writer_take_turns_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "xfs"
        schedulers = ["mq-deadline", "none"]
        model = "vm-ssd-m4"
        [[job]]
        name = "one"
        run = "dd if=/dev/zero of=/mnt/one bs=4k count=60 oflag=dsync"
        [[job]]
        name = "two"
        run = "dd if=/dev/zero of=/mnt/two {two}"
        start = "100us"
        [axes]
        two = ["bs=4k count=60 oflag=dsync", "bs=64k count=200 conv=fsync"]
        "#,
    );
}

// The flusher comes while fsync looks for room for the first page, and takes turns with it.
fn fsync_and_the_flusher_share_a_file_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "xfs"
        schedulers = ["mq-deadline", "none"]
        model = "nvme-plp"
        queue_depth = 4
        memory = "512 MiB"
        [settings]
        wbt_lat_usec = "-1"
        max_sectors_kb = 64
        [[job]]
        name = "old"
        run = "dd if=/dev/zero of=/mnt/one bs=512 count=284"
        [[job]]
        name = "other"
        run = "dd if=/dev/zero of=/mnt/other bs=64k count=517"
        start = "2s"
        [[job]]
        name = "one"
        run = "dd if=/dev/zero of=/mnt/one bs=1M count=28 conv=fsync"
        start = "2s"
        "#,
    );
}

fn what_is_left_over_is_visited_when_the_flusher_wakes_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "xfs"
        schedulers = ["none"]
        model = "nvme-plp"
        memory = "512 MiB"
        [[job]]
        name = "dd"
        run = "dd if=/dev/zero of=/mnt/f bs=1M count=200"
        [[job]]
        name = "later"
        run = "ls /mnt"
        start = "12s"
        "#,
    );
}

fn sync_after_a_copy_writes_data_and_log_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "xfs"
        schedulers = ["mq-deadline"]
        model = "hdd-7200-sata"
        memory = "1 GiB"
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

fn log_worker_and_metadata_come_at_the_times_of_the_kernel() {
    assert_same(
        r#"
        fs = "xfs"
        schedulers = ["none"]
        model = "vm-ssd-m4"
        [[job]]
        name = "copy"
        run = "dd if=/dev/zero of=/mnt/f bs=64k count=300"
        [[job]]
        name = "more"
        run = "dd if=/dev/zero of=/mnt/g bs=64k count=3"
        start = "7s"
        [[job]]
        name = "end"
        run = "dd if=/dev/zero of=/mnt/h bs=4k count=1"
        start = "100s"
        "#,
    );
}

fn direct_io_beside_buffered_and_a_reader_agree_with_the_kernel() {
    assert_same(
        r#"
        fs = "xfs"
        schedulers = ["mq-deadline"]
        model = "hdd-7200-sata"
        [[job]]
        name = "written"
        run = "dd if=/dev/zero of=/mnt/a bs=1M count=16 conv=fsync"
        [[job]]
        name = "direct reader"
        run = "dd if=/mnt/a of=/dev/null bs=64k iflag=direct"
        start = "3s"
        [[job]]
        name = "buffered writer"
        run = "dd if=/dev/zero of=/mnt/b bs=64k count=620 conv=fsync"
        start = "3s"
        [[job]]
        name = "direct writer"
        run = "dd if=/dev/zero of=/mnt/c bs={bs} count=64 oflag=direct"
        start = "3s"
        [[job]]
        name = "reader"
        run = "dd if=/mnt/c of=/dev/null bs=4k"
        start = "10s"
        [axes]
        bs = ["4k", "64k"]
        "#,
    );
}

fn fio_makes_files_and_uses_them_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-ssd-m4"
        fs = "xfs"
        schedulers = ["none"]
        [[job]]
        name = "fio"
        run = "fio --name=a --filename=/mnt/x --rw=write --bs=4k --size=4M --number_ios=60 --{how}"
        [axes]
        how = ["fsync=8", "fdatasync=1 --overwrite=1", "direct=1", "sync=dsync", "end_fsync=1",
               "fallocate=none --fsync=4", "fallocate=keep --fsync=4", "unlink=1 --fsync=8",
               "direct=1 --ioengine=libaio --iodepth=8"]
        "#,
    );
}

fn fio_overwrites_and_reads_at_random_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-ssd-m4"
        fs = "xfs"
        schedulers = ["none"]
        [[job]]
        name = "fio"
        run = "fio --name=a --filename=/mnt/x --bs=4k --size=4M --number_ios=60 --rw={how}"
        [axes]
        how = ["randwrite --fdatasync=1 --overwrite=1", "randread --direct=1",
               "randwrite --direct=1 --ioengine=libaio --iodepth=8"]
        "#,
    );
}

fn a_truncation_waits_for_who_gives_blocks_their_places_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "xfs"
        schedulers = ["mq-deadline"]
        model = "vm-ssd-m4"
        [[job]]
        name = "whole"
        run = "dd if=/dev/zero of=/mnt/f bs=64k count=16 conv=fdatasync"
        [[job]]
        name = "begin"
        run = "dd if=/dev/zero of=/mnt/f bs=4k count=9 conv=notrunc,fsync"
        [[job]]
        name = "short"
        run = "dd if=/dev/zero of=/mnt/f bs=512 count=100"
        [axes]
        model = ["vm-ssd-m4", "hdd-7200-sata"]
        "#,
    );
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO, MKFS_XFS] => log_buffers_and_the_write_cache_count_as_on_the_kernel,
            two_appenders_and_an_appender_beside_a_bulk_writer_take_turns_as_on_the_kernel,
            fsync_and_the_flusher_share_a_file_as_on_the_kernel,
            what_is_left_over_is_visited_when_the_flusher_wakes_as_on_the_kernel,
            sync_after_a_copy_writes_data_and_log_as_on_the_kernel,
            a_truncation_waits_for_who_gives_blocks_their_places_as_on_the_kernel,
            log_worker_and_metadata_come_at_the_times_of_the_kernel,
            direct_io_beside_buffered_and_a_reader_agree_with_the_kernel,
            fio_makes_files_and_uses_them_as_on_the_kernel,
            fio_overwrites_and_reads_at_random_as_on_the_kernel,
    ])
}
