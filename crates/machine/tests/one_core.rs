//! One core that is shared fairly: when tasks wake, and who of them goes first.

mod common;

use base::{Duration, Instant};
use common::{Steady, checked, command, native, setup};
use machine::calls::{AsyncOp, Interface};
use machine::task::OpenFlags;
use machine::{Host, Job, Setup};
use std::sync::Arc;

/// A setup on the host of the recordings, which has one core that is shared fairly, and whose timer
/// has a slack of 50 us.
fn on_icount(jobs: Vec<Job>) -> Setup {
    let host = Host::named("icount").expect("a host");
    let device = Box::new(Steady::new(Duration::from_millis(2), 32));
    Setup { jobs, host, device, ..setup("4.19", "noop") }
}

#[test]
fn a_timer_ends_all_sleeps_that_may_end_when_it_fires() {
    let sleeps = |start| Job { start, ..command("sleep 0.1") };
    let ends = |apart: u64| {
        let jobs = [0, apart].map(|us| sleeps(Instant::from_nanos(us * 1000)));
        let (outcome, _) = checked(on_icount(jobs.to_vec()));
        outcome.jobs[1].ended.since(outcome.jobs[0].ended)
    };
    assert!(ends(30) < Duration::from_micros(10), "{}", ends(30));
    assert!(ends(80) > Duration::from_micros(70), "{}", ends(80));
}

#[test]
fn of_two_tasks_that_are_woken_together_the_one_goes_first_that_has_had_less_of_the_core() {
    // Both wait for pages of the same window, the first one for the earlier page.
    let reader = |name: &str, offset: u64, computes: u64| {
        native(name, move |task| async move {
            task.compute(Duration::from_micros(computes)).await;
            let file = task.open("/dev/sda", OpenFlags::default()).expect("it is there");
            task.pread(&file, offset, 4096).await.map_or(1, |_| 0)
        })
    };
    let ends = |first: u64| {
        let jobs = vec![reader("first", 0, first), reader("second", 4096, 100)];
        let (outcome, _) = checked(on_icount(jobs));
        [outcome.jobs[0].ended, outcome.jobs[1].ended]
    };
    let [first, second] = ends(500);
    assert!(second < first, "{second} {first}");
    let [first, second] = ends(10);
    assert!(first < second, "{first} {second}");
}

#[test]
fn the_worker_of_the_queue_wakes_to_look_for_late_requests() {
    // A switch takes a microsecond. A process sleeps for so long, and another one reads meanwhile.
    let computes = |line: &str, reads: bool, looks: bool| {
        let mut host = Host::named("guest").expect("a host");
        host.costs.switch = Duration::from_micros(1);
        if !looks {
            let boot = &mut Arc::make_mut(&mut host.guest).boot;
            (boot.ticks_to_checks, boot.ticks_to_next_check) = ((0, 0), 0);
        }
        Arc::make_mut(&mut host.guest).boot.ticks_to_root_flush = (0, 0);
        let device = Box::new(Steady::new(Duration::from_millis(2), 32));
        let mut jobs = vec![command(line)];
        if reads {
            let start = Instant::from_nanos(2_000_000_000);
            let dd = command("dd if=/dev/sda of=/dev/null count=1 iflag=direct");
            jobs.push(Job { start, ..dd });
        }
        let (outcome, _) = checked(Setup { jobs, host, device, ..setup("6.12", "mq-deadline") });
        outcome.cores[0].computing
    };
    let wakes = |line, reads| {
        let more = computes(line, reads, true) - computes(line, reads, false);
        more.as_nanos() / 1000
    };
    // It has been up for four seconds by then: 272 and 336 ticks later.
    assert_eq!(wakes("sleep 1.087", false), 0);
    assert_eq!(wakes("sleep 1.089", false), 1);
    assert_eq!(wakes("sleep 1.345", false), 2);
    // A request at two seconds sets the timer: 1,506 ticks on, and on to the next slot.
    assert_eq!(wakes("sleep 8.2", true), 2);
    assert_eq!(wakes("sleep 8.3", true), 3);
}

#[test]
fn a_worker_gathers_statistics_at_a_tick_that_somebody_works_at() {
    // A switch takes a microsecond. The disk takes no time, so whoever reads works all the time.
    let computes = |line: &str, from: u64, depth: u32| {
        let mut host = Host::named("guest").expect("a host");
        host.costs.switch = Duration::from_micros(1);
        // Where in a read the tick comes, so that it takes both switches.
        host.costs.exec = Duration::from_nanos(48_792);
        let boot = &mut Arc::make_mut(&mut host.guest).boot;
        (boot.ticks_to_statistics, boot.ticks_to_statistics_shallow) = (from, 3000);
        let device = Box::new(Steady::new(Duration::ZERO, depth));
        let jobs = vec![command(line)];
        let (outcome, _) = checked(Setup { jobs, host, device, ..setup("6.12", "none") });
        outcome.cores[0].computing
    };
    let more =
        |line, from, depth| (computes(line, from, depth) - computes(line, 0, depth)).as_nanos();
    let reads = "dd if=/dev/sda of=/dev/null bs=4k count=4000 iflag=direct";
    // It has been up for a thousand ticks by then. To the worker, a nanosecond, and back.
    assert_eq!(more(reads, 1001, 64), 2001);
    assert_eq!(more(reads, 3000, 64), 0, "that is not due yet");
    assert_eq!(more(reads, 1001, 32), 0, "the boot has gathered them once more");
    assert_eq!(more("sleep 0.5", 1001, 64), 0, "who rests does not see it");
}

#[test]
fn the_flusher_of_the_root_wakes_every_five_seconds() {
    let computes = |line: &str, root: u64| {
        let mut host = Host::named("guest").expect("a host");
        host.costs.switch = Duration::from_micros(1);
        Arc::make_mut(&mut host.guest).boot.ticks_to_root_flush = (root, 0);
        let device = Box::new(Steady::new(Duration::from_millis(2), 32));
        let jobs = vec![command(line)];
        let (outcome, _) = checked(Setup { jobs, host, device, ..setup("6.12", "mq-deadline") });
        outcome.cores[0].computing
    };
    let wakes = |line| (computes(line, 1336) - computes(line, 0)).as_nanos() / 1000;
    // It has been up for a thousand ticks: 336 ticks later, then 1,250 on and on to the next slot.
    assert_eq!(wakes("sleep 1.343"), 0);
    assert_eq!(wakes("sleep 1.345"), 1);
    assert_eq!(wakes("sleep 6.463"), 1);
    assert_eq!(wakes("sleep 6.465"), 2);
}

#[test]
fn a_worker_that_is_owed_time_goes_between_two_requests_that_are_submitted_together() {
    let commands = |computes: u64| {
        let host = Host::named("guest").expect("a host");
        let device = Box::new(Steady::new(Duration::from_millis(2), 32));
        let job = native("submits", move |task| async move {
            let disk = task.open("/dev/sda", OpenFlags::direct()).expect("it is there");
            let mut queue = task.async_queue(Interface::Libaio);
            let mut reaped = Vec::new();
            // The worker is to issue the first one. While it waits, a tick is charged to the task.
            queue.prepare(&disk, AsyncOp::Read, 1 << 20, 4096, 0, None);
            queue.submit().await;
            task.compute(Duration::from_millis(computes)).await;
            queue.reap(1, 1, None, &mut reaped).await;
            for page in [0, 1] {
                queue.prepare(&disk, AsyncOp::Read, 4096 * page, 4096, page, None);
            }
            queue.submit().await;
            queue.reap(2, 2, None, &mut reaped).await;
            0
        });
        let setup = Setup { jobs: vec![job], host, device, ..setup("7.3", "mq-deadline") };
        checked(setup).1.commands
    };
    assert_eq!(commands(0), 2, "the two are merged before the worker comes");
    assert_eq!(commands(5), 3, "it has been waiting for a tick once");
}
