//! Limits of control groups in a whole machine (rules throttle): whom they hold back in which
//! hierarchy, and what becomes of a bio that waits.

mod common;

use base::Duration;
use block::throttle::IoMax;
use block::{Action, Event, Op};
use common::{checked, command, native, setup};
use machine::task::OpenFlags;
use machine::{ControlGroup, Job, Mount, Observer, Outcome, Setup, TaskInfo};
use std::collections::BTreeSet;

/// A group that may write 100 times a second, and read 100 times.
fn limited(jobs: Vec<Job>, is_version_2: bool) -> Setup {
    let mut setup = setup("6.12", "mq-deadline");
    setup.jobs = jobs.into_iter().map(|job| Job { cgroup: "/db".to_string(), ..job }).collect();
    setup.cgroups = vec![ControlGroup {
        path: "/db".to_string(),
        limits: IoMax::parse("wiops=100 riops=100").unwrap(),
        ..ControlGroup::default()
    }];
    setup.cgroup_writeback = is_version_2;
    setup
}

fn millis(outcome: &Outcome) -> u64 {
    outcome.elapsed.as_nanos() / 1_000_000
}

/// Who entered bios into the queue, and how many waited before.
#[derive(Default)]
struct Seen {
    names: Vec<String>,
    by: BTreeSet<String>,
    waited: u32,
    bios: u32,
}

impl Observer for Seen {
    fn meet(&mut self, who: &TaskInfo) {
        let number = who.context.0 as usize;
        self.names.resize(self.names.len().max(number + 1), String::new());
        self.names[number] = who.name.clone();
    }

    fn see(&mut self, event: &Event) {
        match event.action {
            Action::Queue if event.op == Op::Write => {
                self.bios += 1;
                self.by.insert(self.names[event.context.0 as usize].clone());
            }
            Action::Released { .. } => self.waited += 1,
            _ => {}
        }
    }
}

#[test]
fn direct_calls_are_held_in_either_hierarchy() {
    let read = "dd if=/dev/sda of=/dev/null bs=4k count=100 iflag=direct";
    let write = "dd if=/dev/zero of=/dev/sda bs=4k count=100 oflag=direct";
    for (line, is_version_2) in [(read, true), (read, false), (write, true), (write, false)] {
        let (outcome, _) = checked(limited(vec![command(line)], is_version_2));
        // A slice of a tenth of a second is free.
        assert!((880..=1010).contains(&millis(&outcome)), "{} ms of {line}", millis(&outcome));
    }
}

#[test]
fn a_worker_submits_what_has_waited() {
    let line = "dd if=/dev/zero of=/dev/sda bs=4k count=50 oflag=direct";
    let mut seen = Seen::default();
    machine::run(limited(vec![command(line)], true), &mut seen).expect("a setup that runs");
    assert!(seen.by.contains("kworker/0:1"), "{:?}", seen.by);
    // Of each slice the first waits, for the one before is used up.
    assert!((3..=5).contains(&seen.waited), "{}", seen.waited);
    assert_eq!(seen.bios, 50);
}

#[test]
fn buffered_writes_are_held_in_version_2_only() {
    let waited = |is_version_2| {
        // Each file is a bio of its own.
        let files = (0..40).map(|n| command(&format!("dd if=/dev/zero of=/mnt/{n} bs=4k count=1")));
        let jobs = files.chain([command("sleep 40")]).collect();
        let mut setup = limited(jobs, is_version_2);
        setup.mount = Some(Mount::default());
        let mut seen = Seen::default();
        machine::run(setup, &mut seen).expect("a setup that runs");
        seen.waited
    };
    // Ten go on in a slice.
    assert!((25..=35).contains(&waited(true)), "{}", waited(true));
    assert_eq!(waited(false), 0);
}

#[test]
fn several_requests_of_one_task_go_on_as_they_came() {
    let line = "fio --name=r --filename=/dev/sda --direct=1 --rw=randrw --bs=4k --size=64M \
                --io_size=1M --ioengine=libaio --iodepth=16";
    for kernel in ["4.19", "6.1", "6.12", "7.3"] {
        let mut setup = limited(vec![command(line)], false);
        let other = common::setup(kernel, "mq-deadline");
        (setup.kernel, setup.attach) = (other.kernel, other.attach);
        let (outcome, _) = checked(setup);
        // About 128 of either kind.
        let slowest = millis(&outcome);
        assert!((1000..=1700).contains(&slowest), "{slowest} ms on {kernel}");
    }
}

#[test]
fn the_last_one_who_closes_the_disk_waits_for_what_is_read_ahead() {
    // Observed: dd alone, and elsewhere on the disk beside a shell that has it open, too.
    for (kernel, alone, beside) in [("6.1", 1376, 1316), ("6.12", 1376, 1316), ("7.3", 3285, 1317)]
    {
        assert_ends(kernel, command("dd if=/dev/sda of=/dev/null bs=64k count=20"), None, alone);
        let holder = native("holder", |task| async move {
            let _disk = task.open("/dev/sda", OpenFlags::default()).expect("the disk");
            task.sleep(Duration::from_secs(4)).await;
            0
        });
        let elsewhere = command("dd if=/dev/sda of=/dev/null bs=64k count=20 skip=1000");
        assert_ends(kernel, elsewhere, Some(holder), beside);
    }
}

/// A job that may read 1 MiB a second ends after so many milliseconds. Timers that are far ahead
/// count in steps of eight ticks, and the guest had begun elsewhere within one.
#[track_caller]
fn assert_ends(kernel: &str, job: Job, beside: Option<Job>, expected: u64) {
    let mut setup = limited([job].into_iter().chain(beside).collect(), true);
    let other = common::setup(kernel, "mq-deadline");
    (setup.kernel, setup.attach) = (other.kernel, other.attach);
    setup.cgroups[0].limits = IoMax::parse("rbps=1048576").unwrap();
    let (outcome, _) = checked(setup);
    let end = outcome.jobs[0].ended.as_nanos() / 1_000_000;
    assert!(end.abs_diff(expected) < 32, "{end} ms, not {expected}, on {kernel}");
}
