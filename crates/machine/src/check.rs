//! A checker of conservation: an observer that fails when something is lost or done twice.
//!
//! It checks that time does not go back; that every bio that is queued is done once; that every
//! command that is issued completes once (or is given back); that never more commands are in flight
//! than the device takes; and that every system call that is entered ends once.

use crate::observe::{Observer, TaskInfo};
use base::Instant;
use block::bio::BioId;
use block::{Action, ContextId, Event, Facts, Flags, RequestId, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// Checks a stream of events; panics with what it expected and saw.
pub struct Checker {
    now: Instant,
    most_in_flight: usize,
    /// Bios under way, and whether they may be refused (NOWAIT), of which no event tells.
    bios: BTreeMap<BioId, bool>,
    issued: BTreeMap<RequestId, Instant>,
    /// When a flush command last completed.
    flushed: Option<Instant>,
    calls: BTreeSet<(ContextId, u64)>,
    met: BTreeSet<ContextId>,
    counts: Counts,
}

/// How much a checker has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bios queued.
    pub bios: u64,
    /// Commands issued.
    pub commands: u64,
    /// System calls entered.
    pub calls: u64,
    /// Bios merged into a request.
    pub merges: u64,
    /// Most commands in flight at once.
    pub most_in_flight: usize,
}

impl Checker {
    /// A checker for a device, below a block layer of some shape.
    pub fn new(facts: &Facts, shape: Shape) -> Checker {
        let depth = facts.queue_depth as usize * facts.hardware_queues.max(1) as usize;
        // The single queue shows the driver one request more than the device takes (rule
        // dispatch-list-3).
        let peeked = usize::from(shape == Shape::Single);
        Checker {
            now: Instant::ZERO,
            most_in_flight: depth + peeked,
            bios: BTreeMap::new(),
            issued: BTreeMap::new(),
            flushed: None,
            calls: BTreeSet::new(),
            met: BTreeSet::new(),
            counts: Counts::default(),
        }
    }

    /// Checks that nothing is left, and says how much there was.
    #[track_caller]
    pub fn finish(&self) -> Counts {
        let lost = self.bios.iter().filter(|(_, may_be_refused)| !**may_be_refused);
        let lost: Vec<_> = lost.map(|(bio, _)| bio).collect();
        assert!(lost.is_empty(), "bios that were never done: {lost:?}");
        assert!(self.issued.is_empty(), "commands that never completed: {:?}", self.issued);
        assert!(self.calls.is_empty(), "system calls that never ended: {:?}", self.calls);
        self.counts
    }

    fn issue(&mut self, event: &Event) {
        let request = event.request.expect("D names a request");
        assert!(self.issued.insert(request, event.at).is_none(), "issued twice: {event:?}");
        let in_flight = self.issued.len();
        assert!(in_flight <= self.most_in_flight, "{in_flight} commands in flight: {event:?}");
        self.counts.commands += 1;
        self.counts.most_in_flight = self.counts.most_in_flight.max(in_flight);
    }

    /// A request completes that was with the device, or one that waited for a flush command which
    /// has completed just now.
    fn complete(&mut self, event: &Event) {
        let request = event.request.expect("C and R name a request");
        let was_issued = self.issued.remove(&request).is_some();
        assert!(was_issued || self.flushed == Some(event.at), "not with the device: {event:?}");
        if was_issued && event.sectors.is_zero() {
            self.flushed = Some(event.at);
        }
    }

    fn end_call(&mut self, event: &Event) {
        let known = self.calls.remove(&(event.context, event.token));
        assert!(known, "a system call ends that was not entered: {event:?}");
    }
}

impl Observer for Checker {
    fn meet(&mut self, who: &TaskInfo) {
        assert!(self.met.insert(who.context), "task {} is met twice", who.context.0);
    }

    fn see(&mut self, event: &Event) {
        assert!(event.at >= self.now, "time went back from {} to {:?}", self.now, event);
        self.now = event.at;
        match &event.action {
            Action::Queue => {
                let bio = event.bio.expect("Q names a bio");
                let may_be_refused = event.flags.intersects(Flags::NOWAIT);
                assert!(self.bios.insert(bio, may_be_refused).is_none(), "queued twice: {event:?}");
                self.counts.bios += 1;
            }
            Action::BioDone { queued, issued } => {
                let bio = event.bio.expect("a bio is done");
                assert!(self.bios.remove(&bio).is_some(), "done but not queued: {event:?}");
                assert!(queued <= issued && *issued <= event.at, "out of order: {event:?}");
            }
            Action::BackMerge | Action::FrontMerge => self.counts.merges += 1,
            Action::Issue => self.issue(event),
            Action::Complete { .. } | Action::Requeue => self.complete(event),
            Action::SyscallEnter(_) => {
                let new = self.calls.insert((event.context, event.token));
                assert!(new, "a system call is entered twice: {event:?}");
                self.counts.calls += 1;
            }
            Action::SyscallExit { .. } | Action::SyscallUnfinished { .. } => self.end_call(event),
            _ => {}
        }
    }
}
