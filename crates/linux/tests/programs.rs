//! Real programs and file systems run in a guest as they do anywhere.

mod common;

use std::time::Duration as WallTime;
use testing::needs::{BUSYBOX, FIO, MKFS_EXT4};

use common::{KERNEL, constant, finish, guest, machine};
use linux::rootfs::find_program;
use linux::{Cgroup, Guest, Job, Root, Script, Setting, Watchdog};

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

/// The guest's copy of fio spares itself looks at the clock when it starts. One that is copied as
/// it is does the same to the nanosecond. Where two calibrate at once they take turns, and each
/// turn may end a look or two later, no more.
fn a_fio_that_is_as_it_was_does_the_same() {
    let (kernel, root) = machine();
    let plain = Root::make(&common::directory("plain"), &["dd", "fio"]).unwrap();
    let fio = find_program("fio").unwrap();
    let inside = |root: &Root| root.directory().join(fio.strip_prefix("/").unwrap());
    std::fs::copy(&fio, inside(&plain)).unwrap();
    let bytes = |root: &Root| std::fs::read(inside(root)).unwrap();
    assert!(bytes(root) != bytes(&plain), "the copy is changed");
    let fio = |more: &str| {
        let command = "fio --name=a --filename=/dev/vda --rw=randrw --bs=4k --size=64m --direct=1 \
             --ioengine=libaio --clocksource=clock_gettime --number_ios=200";
        job("fio", &format!("{command} {more}"))
    };
    let run = |root: &Root, jobs: &[Job]| {
        let script = Script { jobs: jobs.to_vec(), ..Script::default() };
        let machine = (kernel.clone(), root.clone());
        let finished = finish(guest(&machine, vec![constant(100, 64)], 32, script));
        assert!(finished.jobs.iter().all(|job| job.exit == 0), "{:?}", finished.jobs);
        assert!(finished.log.served.len() > 200, "{:?}", finished.log);
        finished
    };
    let alone = [fio("--iodepth=32")];
    let (one, other) = (run(root, &alone), run(&plain, &alone));
    assert!(one.log == other.log, "the disk's logs differ");
    assert_eq!((one.ended, one.jobs), (other.ended, other.jobs));
    let both = [fio("--iodepth=4"), fio("--iodepth=2 --numjobs=2")];
    let (one, other) = (run(root, &both), run(&plain, &both));
    assert_eq!(one.log.served.len(), other.log.served.len());
    for (one, other) in one.log.served.iter().zip(&other.log.served) {
        assert_eq!((one.op, one.sector, one.sectors), (other.op, other.sector, other.sectors));
        let apart = one.accepted.as_nanos().abs_diff(other.accepted.as_nanos());
        assert!(apart <= 4 * 256, "{one} and {other}");
    }
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
        [KERNEL, BUSYBOX, FIO] => fio_finds_the_service_time_of_the_disk,
            a_fio_that_is_as_it_was_does_the_same;
        [KERNEL, BUSYBOX, FIO, MKFS_EXT4] => a_file_system_on_a_disk_is_written_through_its_journal,
    ])
}
