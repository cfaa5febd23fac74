//! Trace replay: pace, tasks, and arrivals that do not fit the disk.

#[path = "../../machine/tests/common/mod.rs"]
mod common;

use base::{Bytes, Duration, Instant, Sector};
use block::{Action, Event, Op};
use common::{Steady, checked, setup};
use machine::{Job, Observer, Outcome};
use programs::replay::{Pace, Replay};
use std::sync::Arc;
use trace::{Arrival, Flags};

fn arrival(micros: u64, op: trace::Op, sector: u64, sectors: u64, pid: Option<u32>) -> Arrival {
    Arrival {
        at: Instant::from_nanos(micros * 1000),
        op,
        flags: Flags::default(),
        sector: Sector(sector),
        bytes: Bytes(sectors * 512),
        device: 0,
        pid,
        service: None,
        think: None,
    }
}

/// Every Q: when, what, where, how much.
#[derive(Default)]
struct Queued(Vec<(u64, Op, u64, u32)>);

impl Observer for Queued {
    fn see(&mut self, event: &Event) {
        if event.action == Action::Queue {
            let at = event.at.as_nanos() / 1000;
            self.0.push((at, event.op, event.sector.0, event.sectors.0));
        }
    }
}

fn replay(arrivals: Vec<Arrival>, pace: Pace) -> (Outcome, Vec<(u64, Op, u64, u32)>) {
    let make = |arrivals: Vec<Arrival>| {
        let mut setup = setup("6.18", "mq-deadline");
        // Logical blocks of 4 KiB, so that some arrivals have to be widened.
        let disk = Steady::new(Duration::from_micros(100), 32);
        setup.device = Box::new(disk.with(|facts| {
            facts.logical_block = 4096;
            facts.discard = false;
        }));
        let program = Arc::new(Replay { arrivals: arrivals.into(), pace });
        setup.jobs.push(Job::new("replay", program));
        setup
    };
    checked(make(arrivals.clone()));
    let mut queued = Queued::default();
    let outcome = machine::run(make(arrivals), &mut queued).unwrap();
    (outcome, queued.0)
}

#[test]
fn timed_replay_keeps_the_recorded_times() {
    let arrivals = vec![
        arrival(0, trace::Op::Read, 0, 8, None),
        arrival(10, trace::Op::Write, 800, 16, None),
        arrival(10, trace::Op::Flush, 0, 0, None),
        arrival(1000, trace::Op::Read, 8000, 8, None),
    ];
    let (outcome, queued) = replay(arrivals, Pace::Timed);
    let expected = [
        (0, Op::Read, 0, 8),
        (10, Op::Write, 800, 16),
        (10, Op::Write, 0, 0),
        (1000, Op::Read, 8000, 8),
    ];
    assert_eq!(queued, expected);
    assert_eq!(outcome.jobs[0].messages, Vec::<String>::new());
    assert_eq!(outcome.elapsed, Duration::from_micros(1100));
}

#[test]
fn back_to_back_replay_keeps_a_number_in_flight() {
    let arrivals: Vec<Arrival> =
        (0..8).map(|n| arrival(n, trace::Op::Read, 8000 * n, 8, None)).collect();
    let (outcome, queued) = replay(arrivals, Pace::BackToBack { depth: 2 });
    let times: Vec<u64> = queued.iter().map(|(at, ..)| *at).collect();
    assert_eq!(times, [0, 0, 100, 100, 200, 200, 300, 300]);
    assert_eq!(outcome.elapsed, Duration::from_micros(400));
}

#[test]
fn thinking_replay_waits_and_pauses() {
    let mut arrivals: Vec<Arrival> =
        (0..3).map(|n| arrival(n, trace::Op::Read, 8000 * n, 8, None)).collect();
    for arrival in &mut arrivals {
        arrival.think = Some(Duration::from_micros(50));
    }
    let (_, queued) = replay(arrivals, Pace::Thinking);
    let times: Vec<u64> = queued.iter().map(|(at, ..)| *at).collect();
    assert_eq!(times, [50, 200, 350]);
}

#[test]
fn each_recorded_task_is_a_task_with_its_own_io_context() {
    let arrivals = vec![
        arrival(0, trace::Op::Read, 0, 8, Some(7)),
        arrival(5, trace::Op::Read, 80, 8, Some(8)),
        arrival(5, trace::Op::Read, 800, 8, Some(7)),
    ];
    let (outcome, queued) = replay(arrivals, Pace::BackToBack { depth: 1 });
    let names: Vec<&str> = outcome.tasks.iter().map(|who| who.name.as_str()).collect();
    assert_eq!(names[1..], ["replay", "replay of pid 7", "replay of pid 8"]);
    let times: Vec<u64> = queued.iter().map(|(at, ..)| *at).collect();
    assert_eq!(times, [0, 0, 100]);
}

#[test]
fn what_does_not_fit_the_disk_is_made_to_fit_and_said() {
    let end = 1 << 21;
    let arrivals = vec![
        arrival(0, trace::Op::Read, 3, 2, None),
        arrival(0, trace::Op::Read, end - 8, 16, None),
        arrival(0, trace::Op::Discard, 0, 8, None),
        arrival(0, trace::Op::Write, end * 5 + 4096, 8, None),
    ];
    let (outcome, queued) = replay(arrivals, Pace::Timed);
    assert_eq!(queued[0], (0, Op::Read, 0, 8));
    assert!(queued.iter().all(|(_, _, sector, sectors)| sector + u64::from(*sectors) <= end));
    assert_eq!(
        outcome.jobs[0].messages,
        [
            "replay: 2 of 4 arrivals lie beyond the end of this disk and were moved onto it",
            "replay: 1 of 4 arrivals were widened to whole logical blocks",
            "replay: 1 of 4 arrivals are discards, which this disk does not do, and were skipped",
        ]
    );
}
