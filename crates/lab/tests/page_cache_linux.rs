//! Loads through the page cache in both worlds: the disk gets the same commands in the same order.
//! Needs a kernel in the cache.

mod common;

use common::{KERNEL, assert_same};
use testing::needs::{BUSYBOX, FIO};

fn dd_reads_ahead_as_the_kernel_does() {
    assert_same(
        r#"
        model = "vm-ssd-m4"
        schedulers = ["mq-deadline"]
        [[job]]
        name = "dd"
        run = "dd if=/dev/sda of=/dev/null bs={bs} count=70 skip={skip}"
        [axes]
        bs = ["512", "4k", "20k", "132k", "2M"]
        skip = [0, 100]
        "#,
    );
}

fn one_two_and_four_readers_in_order_and_at_random_read_as_on_the_kernel() {
    assert_same(
        r#"
        model = "hdd-7200-sata"
        schedulers = ["mq-deadline"]
        [[job]]
        name = "load"
        run = """fio --name=load --filename=/dev/sda --bs=16k --size=2M --offset_increment=1G \
                 --ioengine=psync --rw={how}"""
        [axes]
        how = ["read", "randread --numjobs=2", "read --numjobs=4", "randread --numjobs=4"]
        "#,
    );
}

fn interleaved_readers_of_one_range_read_as_on_the_kernel() {
    assert_same(
        r#"
        model = "hdd-7200-sata"
        schedulers = ["none"]
        [[job]]
        name = "load"
        run = """fio --name=load --filename=/dev/sda --rw=read --size=2M --numjobs=3 \
                 --ioengine=libaio --bs={how}"""
        [axes]
        how = ["20k --offset_increment=0", "4k --offset_increment=64k"]
        "#,
    );
}

fn read_ahead_kb_and_advice_count_as_on_the_kernel() {
    assert_same(
        r#"
        model = "ssd-sata-m4"
        schedulers = ["mq-deadline"]
        [[job]]
        name = "load"
        run = """fio --name=load --filename=/dev/sda --rw=read --bs=8k --size=4M \
                 --ioengine=psync --fadvise_hint={hint}"""
        [axes]
        hint = ["0", "random"]
        read_ahead_kb = [16, 4096]
        "#,
    );
}

fn dd_makes_its_writes_durable_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-ssd-m4"
        schedulers = ["mq-deadline"]
        [[job]]
        name = "dd"
        run = "dd if=/dev/zero of=/dev/sda bs={bs} count=50 {how}"
        [axes]
        bs = ["512", "6k", "64k"]
        how = ["conv=fsync", "oflag=dsync", "seek=3"]
        "#,
    );
}

fn the_flusher_writes_beside_fsync_as_on_the_kernel() {
    assert_same(
        r#"
        schedulers = ["none", "mq-deadline"]
        [[job]]
        name = "dd"
        run = "dd if=/dev/zero of=/dev/sda bs=64k count=900 {how}"
        [axes]
        model = ["vm-ssd-m4", "hdd-7200-sata"]
        how = ["conv=fsync", "seek=3"]
        "#,
    );
}

fn sync_writes_the_disk_beside_dd_as_on_the_kernel() {
    assert_same(
        r#"
        model = "nvme-plp"
        schedulers = ["none"]
        memory = "256 MiB"
        [[job]]
        name = "dd"
        run = "dd if=/dev/zero of=/dev/sda bs=16k count={count}"
        [[job]]
        name = "sync"
        run = "sync"
        [axes]
        count = [300, 1110]
        "#,
    );
}

fn four_who_write_the_same_pages_durably_take_turns_as_on_the_kernel() {
    assert_same(
        r#"
        model = "vm-disk"
        schedulers = ["none"]
        [[job]]
        name = "fio"
        run = """fio --name=a --filename=/dev/sda --rw=write --bs={bs} --size=16M \
                 --number_ios=100 --sync=dsync --numjobs=4"""
        [axes]
        bs = ["16k", "64k"]
        "#,
    );
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO] => dd_reads_ahead_as_the_kernel_does,
            one_two_and_four_readers_in_order_and_at_random_read_as_on_the_kernel,
            interleaved_readers_of_one_range_read_as_on_the_kernel,
            read_ahead_kb_and_advice_count_as_on_the_kernel,
            dd_makes_its_writes_durable_as_on_the_kernel,
            the_flusher_writes_beside_fsync_as_on_the_kernel,
            sync_writes_the_disk_beside_dd_as_on_the_kernel,
            four_who_write_the_same_pages_durably_take_turns_as_on_the_kernel,
    ])
}
