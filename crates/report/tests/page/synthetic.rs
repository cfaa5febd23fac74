//! A run that was made up: eight tasks of two control groups on a fast drive.

use base::{Duration, Instant, Sector, Sectors};
use block::{
    CgroupId, ContextId, DispatchReason, Flags, HoldReason, IoContextId, Ioprio, Op, Syscall,
};
use insight::timeline::{Arrow, CallBar, Held, Recorded};
use insight::{Call, Layer, Life, Segment, Timeline};
use machine::TaskInfo;

/// A stream of numbers that look random.
struct Numbers(u64);

impl Numbers {
    /// The next one below a limit.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// The timeline of a run with so many requests.
pub fn timeline(title: &str, requests: u32, seed: u64) -> Timeline {
    Timeline::of(recorded(title, requests, seed))
}

/// A run with so many requests.
pub fn recorded(title: &str, requests: u32, seed: u64) -> Recorded {
    let mut numbers = Numbers(seed);
    let mut recorded = Recorded { title: title.to_string(), ..Recorded::default() };
    recorded.tasks = (1..=8).map(task).collect();
    recorded.groups = vec![(CgroupId(1), "/db".to_string()), (CgroupId(2), "/bulk".to_string())];
    let mut at = 0;
    for number in 0..requests {
        at += numbers.below(90_000);
        let life = life(number, at, &mut numbers);
        recorded.end = recorded.end.max(life.completed);
        if number % 50 == 0 {
            let (from, who) = (Instant::from_nanos(at), life.context);
            let to = from + Duration::from_nanos(numbers.below(200_000));
            let reason = HoldReason::ProcessIdles;
            recorded.held.push(Held { from, to, reason, waits_for: Some(who) });
            let next = ContextId(who.0 % 8 + 1);
            recorded.arrows.push(Arrow { at: to, from: who, to: next });
        }
        if number % 7 == 0 {
            let (task, from, to) = (life.context, life.queued, life.completed);
            recorded.calls.push(CallBar { task, call: Syscall::Read, from, to });
        }
        if number == 40 {
            recorded.paths.push(call(&life));
        }
        recorded.lives.push(life);
    }
    recorded
}

/// A call that waits for a request, and for somebody who has it.
fn call(life: &Life) -> Call {
    let piece = |from, to, who, layer| Segment::of(who, layer, [from, to]);
    let next = ContextId(life.context.0 % 8 + 1);
    Call {
        task: life.context,
        call: Syscall::Sync,
        token: 1,
        entered: life.queued,
        ended: life.completed,
        is_unfinished: false,
        commits: Vec::new(),
        pages: Vec::new(),
        path: vec![
            piece(life.queued, life.issued, life.context, Layer::Others),
            piece(life.issued, life.completed, next, Layer::Device),
        ],
    }
}

fn task(number: u32) -> TaskInfo {
    TaskInfo {
        context: ContextId(number),
        name: format!("task-{number}"),
        job: Some(0),
        io_context: IoContextId(number),
        cgroup: CgroupId(1 + number / 5),
        ioprio: Ioprio::default(),
    }
}

fn life(number: u32, at: u64, numbers: &mut Numbers) -> Life {
    let mut time = |limit| Duration::from_nanos(numbers.below(limit));
    let mut layers = match number % 10 {
        0 => vec![(Layer::Tag, time(50_000)), (Layer::Others, time(900_000))],
        1 | 2 => vec![(Layer::Held(HoldReason::ProcessIdles), time(400_000))],
        3 => vec![(Layer::Plug, time(9_000)), (Layer::Others, time(200_000))],
        _ => vec![(Layer::Others, time(300_000))],
    };
    layers.push((Layer::Device, time(400_000) + Duration::from_nanos(60_000)));
    let queued = Instant::from_nanos(at);
    let total: Duration = layers.iter().map(|(_, time)| *time).sum();
    let service = layers.last().map_or(Duration::ZERO, |(_, time)| *time);
    let op = if numbers.below(3) == 0 { Op::Write } else { Op::Read };
    Life {
        context: ContextId(1 + numbers.below(8) as u32),
        op,
        flags: if op == Op::Write { Flags::SYNC } else { Flags::NONE },
        sector: Sector(numbers.below(1 << 27) * 8),
        sectors: Sectors(8),
        queued,
        allocated: queued,
        inserted: Some(queued),
        issued: queued + total.saturating_sub(service),
        completed: queued + total,
        merged: 0,
        reason: Some(DispatchReason::BatchContinues),
        layers,
        told: None,
        bios: Vec::new(),
        others: Vec::new(),
        guess: None,
    }
}
