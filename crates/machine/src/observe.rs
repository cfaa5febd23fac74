//! Who watches a run: the one way out for everything that happens.
//!
//! The machine hands every event to one [`Observer`], in the order in which things happened.
//! Metrics, recorders and checkers are observers; [`Several`] lets more than one watch.

use base::{Duration, Fingerprint, Instant};
use block::{
    Action, CgroupId, Command, CommandOp, ContextId, Event, IoContextId, Ioprio, WbtEvent,
};

/// Somebody who watches a run.
pub trait Observer {
    /// A task comes into being; told before the first event that happens in its context.
    fn meet(&mut self, _who: &TaskInfo) {}

    /// Something happened.
    fn see(&mut self, event: &Event);

    /// Several things happened, one after the other.
    fn see_all(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.see(event));
    }
}

/// A task, to those who watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its number.
    pub context: ContextId,
    /// Its name.
    pub name: String,
    /// The job it belongs to, counted from zero in the order of the setup; `None` for the kernel's
    /// own tasks.
    pub job: Option<usize>,
    /// Its io_context.
    pub io_context: IoContextId,
    /// Its control group: to observers that of its spec, in an outcome that of the end.
    pub cgroup: CgroupId,
    /// The explicit priority of its io_context, of the same moment.
    pub ioprio: Ioprio,
}

/// What a core did during a run; the rest of the time it was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreUse {
    /// Time spent computing, for tasks and interrupts.
    pub computing: Duration,
    /// Time spent waiting for the scheduler's lock.
    pub spinning: Duration,
}

/// Nobody watches.
pub struct Nobody;

impl Observer for Nobody {
    fn see(&mut self, _event: &Event) {}
}

/// Several watch, one after the other.
pub struct Several<'a>(pub Vec<&'a mut dyn Observer>);

impl Observer for Several<'_> {
    fn meet(&mut self, who: &TaskInfo) {
        self.0.iter_mut().for_each(|observer| observer.meet(who));
    }

    fn see(&mut self, event: &Event) {
        self.0.iter_mut().for_each(|observer| observer.see(event));
    }

    fn see_all(&mut self, events: &[Event]) {
        self.0.iter_mut().for_each(|observer| observer.see_all(events));
    }
}

/// The fingerprint of a run: of its events, if they are recorded, and of the traffic with the
/// device, which is always seen.
#[derive(Default)]
pub(crate) struct Mark(Fingerprint);

impl Mark {
    pub fn command(&mut self, now: Instant, command: &Command) {
        let op = match command.op {
            CommandOp::Read => 0,
            CommandOp::Write => 1,
            CommandOp::Flush => 2,
            CommandOp::Discard => 3,
        };
        self.0.mix(now.as_nanos());
        self.0.mix(u64::from(command.tag.0) << 4 | op << 1 | u64::from(command.fua));
        self.0.mix(command.sector.0);
        self.0.mix(u64::from(command.sectors.0));
    }

    pub fn completion(&mut self, now: Instant, tag: u32) {
        self.0.mix(now.as_nanos());
        self.0.mix(u64::from(tag));
    }

    pub fn exit(&mut self, now: Instant, job: usize, status: i32) {
        self.0.mix(now.as_nanos());
        self.0.mix(job as u64);
        self.0.mix(status as u64);
    }

    pub fn event(&mut self, event: &Event) {
        // Whether anybody asks is no part of what happened.
        if event.action.is_asked_for() {
            return;
        }
        let (kind, detail) = action_words(&event.action);
        self.0.mix(event.at.as_nanos());
        self.0.mix(kind << 56 | u64::from(event.cpu) << 32 | u64::from(event.context.0));
        self.0.mix(event.sector.0);
        let how = (event.op as u64) << 16 | u64::from(event.flags.to_bits());
        self.0.mix(how << 32 | u64::from(event.sectors.0));
        self.0.mix(event.bio.map_or(u64::MAX, |bio| bio.to_bits()));
        self.0.mix(event.request.map_or(u64::MAX, |request| request.to_bits()));
        self.0.mix(event.token);
        self.0.mix(detail);
        if let Action::Message { text, .. } = &event.action {
            self.0.mix_bytes(text.as_bytes());
        }
    }

    pub fn finish(self) -> Fingerprint {
        self.0
    }
}

fn wbt_words(said: &WbtEvent) -> (u64, u64) {
    match *said {
        WbtEvent::Timer { status, step, in_flight } => {
            (26, u64::from(in_flight) << 40 | (status as u64) << 32 | u64::from(step as u32))
        }
        WbtEvent::Latency { latency } => (27, latency.as_nanos()),
        WbtEvent::Statistics { least_read, reads, writes } => {
            (28, least_read.as_nanos().rotate_left(32) ^ u64::from(reads) << 24 ^ u64::from(writes))
        }
        WbtEvent::Step { step, max, .. } => (29, u64::from(max) << 32 | u64::from(step as u32)),
    }
}

/// A number for the kind of an action and one for what it carries.
fn action_words(action: &Action) -> (u64, u64) {
    match action {
        Action::Queue => (0, 0),
        Action::Split { rest } => (1, rest.0),
        Action::BackMerge => (2, 0),
        Action::FrontMerge => (3, 0),
        Action::GetRequest => (4, 0),
        Action::Sleep => (5, 0),
        Action::Plug => (6, 0),
        Action::Unplug { depth } => (7, u64::from(*depth)),
        Action::TimerUnplug { depth } => (8, u64::from(*depth)),
        Action::Insert => (9, 0),
        Action::Join { into } => (10, into.to_bits()),
        Action::Dispatch(reason) => (11, *reason as u64),
        Action::Hold { reason, .. } => (12, *reason as u64),
        Action::Issue => (13, 0),
        Action::Requeue => (14, 0),
        Action::Complete { issued } => (15, issued.as_nanos()),
        Action::BioDone { queued, issued } => {
            (16, queued.as_nanos().rotate_left(32) ^ issued.as_nanos())
        }
        Action::Message { cgroup, .. } => (17, cgroup.map_or(u64::MAX, |id| u64::from(id.0))),
        Action::SyscallEnter(call) => (18, *call as u64),
        Action::SyscallExit { call, entered, submitted } => {
            (19 + *call as u64, entered.as_nanos().rotate_left(32) ^ submitted.as_nanos())
        }
        Action::Throttled { depth } => (25, u64::from(*depth)),
        Action::Released { since } => (30, since.as_nanos()),
        Action::Wbt(said) => wbt_words(said),
        Action::HoldsBack { .. }
        | Action::Blocks(_)
        | Action::Wakes { .. }
        | Action::Runs
        | Action::Preempted
        | Action::Commits { .. }
        | Action::InCommit(_)
        | Action::Pages { .. }
        | Action::Served(_) => (40, 0),
        Action::SyscallUnfinished { call, entered, submitted } => {
            (32 + *call as u64, entered.as_nanos().rotate_left(32) ^ submitted.as_nanos())
        }
    }
}
