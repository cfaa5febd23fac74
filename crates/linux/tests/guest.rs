//! Guests boot, compute in no time, and see their disks as they are.

mod common;

use base::{Duration, Instant};
use common::{KERNEL, constant, finish, guest, machine};
use linux::rootfs::find_program;
use linux::{Job, Root, Script};
use std::path::Path;
use testing::needs::{BUSYBOX, FIO};

fn job(command: &str) -> Job {
    Job { name: "job".into(), command: command.into(), ..Job::default() }
}

fn a_guest_boots_and_runs_a_command() {
    let machine = machine();
    let script = Script { jobs: vec![job("uname -r; echo oops >&2; exit 3")], ..Script::default() };
    let finished = finish(guest(machine, Vec::new(), 1, script));
    let [outcome] = finished.jobs.as_slice() else { panic!("one job") };
    assert_eq!(String::from_utf8_lossy(&outcome.output), format!("{}\n", machine.0.version));
    assert_eq!((outcome.errors.as_slice(), outcome.exit), (b"oops\n".as_slice(), 3));
}

fn sleep_takes_its_time_and_computing_none() {
    let machine = machine();
    let script = Script { jobs: vec![job("sleep 1000")], ..Script::default() };
    let finished = finish(guest(machine, Vec::new(), 1, script));
    let ended = finished.ended.since(Instant::ZERO);
    assert!(ended > Duration::from_secs(1002) && ended < Duration::from_secs(1003), "{ended}");
}

fn direct_reads_one_at_a_time_take_what_the_model_says() {
    let machine = machine();
    let command = "dd if=/dev/vda of=/dev/null bs=4k count=50 iflag=direct";
    let script = Script { jobs: vec![job(command)], ..Script::default() };
    let finished = finish(guest(machine, vec![constant(100, 64)], 32, script));
    assert_eq!(finished.jobs[0].exit, 0, "{finished:?}");
    assert_eq!(finished.log.deepest(0), 1);
    let reads = &finished.log.served[finished.log.served.len() - 50..];
    for (number, served) in reads.iter().enumerate() {
        assert_eq!(served.completed.since(served.accepted), Duration::from_micros(100));
        assert_eq!((served.sector.0, served.sectors.0), (8 * number as u64, 8));
    }
}

fn a_program_comes_with_its_libraries() {
    let directory = common::directory("root-of-sleep");
    let root = Root::make(&directory, &["sleep"]).unwrap();
    let sleep = find_program("sleep").unwrap();
    let inside = |path: &Path| root.directory().join(path.strip_prefix("/").unwrap());
    assert!(inside(&sleep).exists());
    let listed = std::process::Command::new("ldd").arg(&sleep).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    // The linker and the libraries that it loads.
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        assert!(inside(Path::new(library)).exists(), "{library}");
    }
    assert!(directory.join("busybox/mount").symlink_metadata().is_ok());
    Root::make(&directory, &["sleep"]).expect("making it again does no harm");
    std::fs::remove_dir_all(&directory).unwrap();
}

fn a_guest_ends_while_something_still_writes() {
    let machine = machine();
    let command = "dd if=/dev/zero of=/dev/vda bs=4k oflag=direct 2>/dev/null & sleep 0.1";
    let script = Script { jobs: vec![job(command)], ..Script::default() };
    // A minute of its time passes until the guest ends; a slow disk has less to do meanwhile.
    let finished = finish(guest(machine, vec![constant(20_000, 64)], 32, script));
    assert!(finished.log.served.len() > 50);
    let lived = finished.ended.since(Instant::ZERO);
    assert!(lived < Duration::from_secs(100), "the guest lived for {lived}");
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [BUSYBOX] => a_program_comes_with_its_libraries;
        [KERNEL, BUSYBOX, FIO] => a_guest_boots_and_runs_a_command,
            sleep_takes_its_time_and_computing_none,
            direct_reads_one_at_a_time_take_what_the_model_says,
            a_guest_ends_while_something_still_writes,
    ])
}
