//! Loads on XFS in both worlds: the disk gets the same commands in the same order. Needs a kernel
//! in the cache and mkfs.xfs.

mod common;

use common::assert_same;

#[test]
fn dd_makes_appended_data_durable_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-ssd-m4"
        fs = "xfs"
        schedulers = ["none", "mq-deadline"]
        [[job]]
        name = "dd"
        run = "dd if=/dev/zero of=/mnt/f bs={bs} count=40 {how}"
        [axes]
        bs = ["512", "4k", "6k", "100k"]
        how = ["oflag=dsync", "oflag=sync", "conv=fsync", "conv=fdatasync"]
        "#,
    );
}

#[test]
fn overwriting_truncating_and_direct_io_agree_with_the_kernel() {
    assert_same(
        r#"
        model = "vm-ssd-m4"
        fs = "xfs"
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

#[test]
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

#[test]
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

#[test]
fn sync_after_a_copy_writes_data_and_log_as_on_the_kernel() {
    assert_same(
        r#"
        fs = "xfs"
        schedulers = ["none", "mq-deadline"]
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

#[test]
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

#[test]
fn direct_io_beside_buffered_and_a_reader_agree_with_the_kernel() {
    assert_same(
        r#"
        fs = "xfs"
        schedulers = ["none", "mq-deadline"]
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
        run = "dd if=/dev/zero of=/mnt/b bs=64k count=600 conv=fsync"
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

#[test]
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

#[test]
fn fio_overwrites_and_reads_at_random_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-ssd-m4"
        fs = "xfs"
        schedulers = ["none"]
        [[job]]
        name = "fio"
        run = "fio --name=a --filename=/mnt/x --rw={rw} --bs=4k --size=4M --number_ios=60 --{how}"
        [axes]
        rw = ["randwrite", "randread"]
        how = ["fdatasync=1 --overwrite=1", "direct=1", "direct=1 --ioengine=libaio --iodepth=8"]
        "#,
    );
}
