//! Real programs and file systems run in a guest as they do anywhere.

mod common;

use std::time::Duration as WallTime;
use testing::needs::{BUSYBOX, FIO, MKFS_EXT4};

use common::{KERNEL, constant, finish, guest, machine};
use linux::{Cgroup, Guest, Job, Script, Setting, Watchdog};

fn job(name: &str, command: &str) -> Job {
    Job { name: name.into(), command: command.into(), ..Job::default() }
}

fn fio_finds_the_service_time_of_the_disk() {
    let machine = machine();
    let command = "fio --name=a --filename=/dev/vda --rw=randread --bs=4k --size=64m --direct=1 \
                   --io_size=1m --ioengine=libaio --clocksource=clock_gettime --output-format=json";
    let script = Script { jobs: vec![job("fio", command)], ..Script::default() };
    let guest = guest(machine, vec![constant(100, 64)], 32, script);
    // It calibrates itself for seconds of real time.
    let silence = WallTime::from_secs(600);
    let finished = finish(Guest { watchdog: Watchdog { silence, ..Watchdog::default() }, ..guest });
    assert_eq!(finished.jobs[0].exit, 0, "{:?}", finished.jobs);
    let json = String::from_utf8_lossy(&finished.jobs[0].output);
    let (_, read) = json.split_once("\"clat_ns\"").expect("fio prints completion latencies");
    let (_, mean) = read.split_once("\"mean\" : ").expect("with a mean");
    let mean: f64 = mean.split(',').next().unwrap().parse().unwrap();
    assert!((99_000.0..102_000.0).contains(&mean), "{mean} ns");
}

fn a_file_system_on_a_disk_is_written_through_its_journal() {
    let machine = machine();
    let write = "cd /mnt/disk; for i in $(seq 20); do echo $i > $i; sync; done; ls | wc -l";
    let script = Script {
        settings: vec![Setting::queue(0, "scheduler", "bfq")],
        cgroups: vec![Cgroup {
            path: "slow".into(),
            settings: vec![Setting::new("io.max", "{vda} wiops=100000")],
        }],
        setup: vec![
            "mkfs.ext4 -q -E nodiscard /dev/vda 1g".into(),
            "mkdir /mnt/disk && mount -t ext4 /dev/vda /mnt/disk".into(),
        ],
        jobs: vec![Job { cgroup: Some("slow".into()), ..job("write", write) }],
        teardown: vec!["umount /mnt/disk".into()],
        ..Script::default()
    };
    let finished = finish(guest(machine, vec![constant(100, 64)], 32, script));
    assert_eq!(String::from_utf8_lossy(&finished.jobs[0].output), "21\n", "with lost+found");
    let log = &finished.log.served;
    let flushes = log
        .iter()
        .filter(|one| one.op == block::CommandOp::Flush && one.accepted >= finished.begun);
    assert!(flushes.count() >= 20, "each sync flushes the disk's cache");
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO] => fio_finds_the_service_time_of_the_disk;
        [KERNEL, BUSYBOX, FIO, MKFS_EXT4] => a_file_system_on_a_disk_is_written_through_its_journal,
    ])
}
