//! What tasks asked for: their system calls, and their bios' way through the block layer.
//!
//! Events carry their own start times, so nothing is remembered between the beginning of a call
//! and its end; memory does not grow with the length of a run.

use super::operations::Operations;
use super::samples::Samples;
use base::{Bytes, Duration, Histogram, Instant};
use block::{Action, Event, Syscall};
use std::sync::Arc;

/// The calls of one kind.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// How many ended.
    pub count: u64,
    /// How many had not ended when the run did; they count in the latencies with their age.
    pub unfinished: u64,
    /// What they transferred.
    pub bytes: Bytes,
    /// From preparing an asynchronous one to its submission.
    pub submission: Histogram,
    /// From submission to the end.
    pub completion: Histogram,
    /// Both together: how long the caller waited.
    pub total: Histogram,
    /// Bandwidth and rate over time.
    pub samples: Samples,
}

/// Which kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Syncs of any kind.
    Sync,
    /// Discards.
    Trim,
}

impl CallKind {
    /// All of them.
    pub const ALL: [CallKind; 4] =
        [CallKind::Read, CallKind::Write, CallKind::Sync, CallKind::Trim];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            CallKind::Read => "read",
            CallKind::Write => "write",
            CallKind::Sync => "sync",
            CallKind::Trim => "trim",
        }
    }

    /// The kind of a system call.
    pub const fn of(call: Syscall) -> CallKind {
        match call {
            Syscall::Read | Syscall::AsyncRead => CallKind::Read,
            Syscall::Write | Syscall::AsyncWrite => CallKind::Write,
            Syscall::Sync => CallKind::Sync,
            Syscall::Discard => CallKind::Trim,
        }
    }
}

/// Depths that fio's reports tell apart: 1, 2, 4, 8, 16, 32, 64 and more.
pub const DEPTH_LEVELS: usize = 7;

/// Tasks of one name that belong to one job.
#[derive(Clone, Debug, Default)]
pub struct Actor {
    /// Their job.
    pub job: Option<usize>,
    /// Their name.
    pub name: String,
    /// How many there are.
    pub tasks: u32,
    /// Their calls, by [`CallKind`].
    pub calls: [Calls; 4],
    /// Of their bios: from entering the block layer to the device.
    pub queue: Histogram,
    /// Of their bios: in the device.
    pub device: Histogram,
    /// When they entered their first call.
    pub first: Option<Instant>,
    /// What ends sooner after that is not counted.
    pub ramp: Duration,
    /// When their last call ended.
    pub last: Instant,
    /// How often a call was made with so many others of the actor under way.
    pub depths: [u64; DEPTH_LEVELS],
    /// Single calls, if they were watched.
    pub operations: Arc<Operations>,
    in_flight: u32,
}

impl Actor {
    /// Somebody who has done nothing yet.
    pub fn new(job: Option<usize>, name: &str, ramp: Duration) -> Actor {
        Actor { job, name: name.to_string(), ramp, ..Actor::default() }
    }

    /// Whether an event is one of those that are noted.
    #[inline]
    pub fn is_about(event: &Event) -> bool {
        matches!(
            event.action,
            Action::SyscallEnter(_)
                | Action::SyscallExit { .. }
                | Action::SyscallUnfinished { .. }
                | Action::BioDone { .. }
                | Action::Released { .. }
        )
    }

    /// Takes note of an event in the context of one of its tasks.
    pub fn see(&mut self, event: &Event) {
        match event.action {
            Action::SyscallEnter(call) => return self.enter(event.at, call),
            Action::SyscallExit { .. } => self.in_flight = self.in_flight.saturating_sub(1),
            _ => {}
        }
        if self.counts_at(event.at) {
            self.count(event);
        }
    }

    /// Whether what ends at a time is counted.
    pub fn counts_at(&self, at: Instant) -> bool {
        self.first.is_some_and(|first| at >= first + self.ramp)
    }

    fn count(&mut self, event: &Event) {
        match event.action {
            Action::SyscallExit { call, entered, submitted } => {
                self.last = event.at;
                let calls = &mut self.calls[CallKind::of(call) as usize];
                calls.count += 1;
                let bytes = event.sectors.bytes();
                calls.bytes += bytes;
                calls.samples.add(event.at, bytes);
                calls.record(event.at, entered, submitted, is_asynchronous(call));
            }
            Action::SyscallUnfinished { call, entered, submitted } => {
                self.last = event.at;
                let calls = &mut self.calls[CallKind::of(call) as usize];
                calls.unfinished += 1;
                calls.record(event.at, entered, submitted, is_asynchronous(call));
            }
            Action::BioDone { queued, issued } => {
                self.queue.record(issued.saturating_since(queued));
                self.device.record(event.at.saturating_since(issued));
            }
            _ => {}
        }
    }

    /// Whether it made any call at all.
    pub fn did_anything(&self) -> bool {
        self.calls.iter().any(|calls| calls.count + calls.unfinished > 0)
    }

    /// All its calls together.
    pub fn syscalls(&self) -> Histogram {
        let mut all = Histogram::new();
        self.calls.iter().for_each(|calls| all.merge(&calls.total));
        all
    }

    /// Its program counts the time until then, if it did anything.
    pub fn counts_until(&mut self, end: Instant) {
        self.last = self.last.max(end);
    }

    /// From its first call, or the end of the time that is not counted, to the end of its last, or
    /// as far as its program counts.
    pub fn runtime(&self) -> Duration {
        self.first.map_or(Duration::ZERO, |first| self.last.saturating_since(first + self.ramp))
    }

    /// When its first call began and its last one ended, if it made any.
    pub fn called(&self) -> Option<(Instant, Instant)> {
        Some((self.first?, self.last))
    }

    fn enter(&mut self, at: Instant, call: Syscall) {
        if self.first.is_none() {
            self.first = Some(at);
            self.calls.iter_mut().for_each(|calls| calls.samples.start(at + self.ramp));
        }
        if CallKind::of(call) == CallKind::Sync {
            return;
        }
        self.in_flight += 1;
        let level = self.in_flight.ilog2() as usize;
        self.depths[level.min(DEPTH_LEVELS - 1)] += 1;
    }
}

impl Calls {
    fn record(&mut self, at: Instant, entered: Instant, submitted: Instant, asynchronous: bool) {
        if asynchronous {
            self.submission.record(submitted.saturating_since(entered));
        }
        self.completion.record(at.saturating_since(submitted));
        self.total.record(at.saturating_since(entered));
    }
}

/// Whether submission and completion are different moments for the caller.
fn is_asynchronous(call: Syscall) -> bool {
    matches!(call, Syscall::AsyncRead | Syscall::AsyncWrite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Sectors;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    fn event(micros: u64, action: Action) -> Event {
        Event { at: at(micros), sectors: Sectors(8), ..Event::note(action) }
    }

    #[test]
    fn an_asynchronous_call_is_submission_and_completion() {
        let mut actor = Actor::default();
        actor.see(&event(1, Action::SyscallEnter(Syscall::AsyncRead)));
        let exit =
            Action::SyscallExit { call: Syscall::AsyncRead, entered: at(1), submitted: at(3) };
        actor.see(&event(10, exit));
        let reads = &actor.calls[CallKind::Read as usize];
        assert_eq!((reads.count, reads.bytes), (1, Bytes(4096)));
        assert_eq!(reads.submission.mean(), Duration::from_micros(2));
        assert_eq!(reads.completion.mean(), Duration::from_micros(7));
        assert_eq!(reads.total.mean(), Duration::from_micros(9));
        assert_eq!(actor.runtime(), Duration::from_micros(9));
    }

    #[test]
    fn an_unfinished_call_counts_with_its_age_and_moves_nothing() {
        let mut actor = Actor::default();
        actor.see(&event(0, Action::SyscallEnter(Syscall::Sync)));
        let (call, entered) = (Syscall::Sync, at(0));
        actor.see(&event(7, Action::SyscallUnfinished { call, entered, submitted: entered }));
        let syncs = &actor.calls[CallKind::Sync as usize];
        assert_eq!((syncs.count, syncs.unfinished, syncs.bytes), (0, 1, Bytes(0)));
        assert_eq!(syncs.total.max(), Duration::from_micros(7));
        assert_eq!(syncs.submission.count(), 0);
    }

    #[test]
    fn what_ends_within_the_ramp_is_not_counted() {
        let mut actor = Actor { ramp: Duration::from_micros(10), ..Actor::default() };
        let call = Syscall::Write;
        for (entered, left) in [(5, 8), (8, 16), (16, 20)] {
            actor.see(&event(entered, Action::SyscallEnter(call)));
            let entered = at(entered);
            actor.see(&event(left, Action::SyscallExit { call, entered, submitted: entered }));
        }
        assert_eq!(actor.calls[CallKind::Write as usize].count, 2);
        assert_eq!(actor.runtime(), Duration::from_micros(5));
    }

    #[test]
    fn a_bio_is_queue_and_device() {
        let mut actor = Actor { first: Some(at(0)), ..Actor::default() };
        actor.see(&event(9, Action::BioDone { queued: at(2), issued: at(5) }));
        assert_eq!(actor.queue.mean(), Duration::from_micros(3));
        assert_eq!(actor.device.mean(), Duration::from_micros(4));
    }

    #[test]
    fn depths_are_counted_when_calls_are_made() {
        let mut actor = Actor::default();
        for _ in 0..5 {
            actor.see(&event(0, Action::SyscallEnter(Syscall::AsyncWrite)));
        }
        assert_eq!(actor.depths[..4], [1, 2, 2, 0]);
    }
}
