//! An observer that keeps what a timeline is made of, in the simplest way.
//!
//! A request waits for one thing at a time here: while the scheduler withholds requests it is
//! held; else, while the device has a command, others go before it; else nobody got round to it.
//! An arrow leads from the task whose request was the last under way to the one that asks next.
//! So arrows are the critical path only of loads in which tasks take turns.

use super::{Arrow, Held, Recorded};
use crate::layer::Layer;
use crate::life::Life;
use base::{Duration, Instant};
use block::bio::BioId;
use block::{Action, ContextId, DispatchReason, Event, HoldReason, RequestId};
use machine::{Observer, TaskInfo};
use std::collections::{BTreeMap, BTreeSet};

/// Why somebody waits, in the order of the scheduler's list.
const REASONS: [HoldReason; 12] = [
    HoldReason::HigherClassInFlight,
    HoldReason::ProcessIdles,
    HoldReason::GroupIdles,
    HoldReason::TurnNotDone,
    HoldReason::GroupNotDone,
    HoldReason::AsyncInFlight,
    HoldReason::SyncInFlight,
    HoldReason::Quantum,
    HoldReason::AsyncDepth,
    HoldReason::NobodyChosen,
    HoldReason::BatchDrains,
    HoldReason::NoToken,
];
/// The clock that runs while the device has a command.
const BUSY: usize = REASONS.len();
/// The clock that runs otherwise.
const IDLE: usize = BUSY + 1;

/// How long everything has been what it is.
type Clocks = [u64; IDLE + 1];

/// A request on its way.
struct Open {
    life: Life,
    /// What the clocks said when it was given to the scheduler, or else allocated.
    since: Clocks,
    /// What they said when it went to the device.
    until: Option<Clocks>,
}

/// Keeps what happens.
#[derive(Default)]
pub struct Watch {
    recorded: Recorded,
    tasks: BTreeSet<ContextId>,
    clocks: Clocks,
    at: Instant,
    /// Bios that have no request yet: when they came.
    bios: BTreeMap<BioId, Instant>,
    open: BTreeMap<RequestId, Open>,
    /// Requests that the scheduler has.
    queued: usize,
    in_device: usize,
    hold: Option<Held>,
    /// Whose request was the last under way.
    done: Option<ContextId>,
}

impl Watch {
    /// What was seen, at the end of the run.
    pub fn finish(mut self, end: Instant) -> Recorded {
        self.let_go(end);
        Recorded { end, ..self.recorded }
    }

    /// Whether it is a task, and not the block layer on its own account.
    fn is_task(&self, who: ContextId) -> bool {
        self.tasks.contains(&who)
    }

    /// The clock that runs now.
    fn running(&self) -> usize {
        match &self.hold {
            Some(hold) => hold.reason as usize,
            None if self.in_device > 0 => BUSY,
            None => IDLE,
        }
    }

    fn pass(&mut self, at: Instant) {
        let passed = at.saturating_since(self.at).as_nanos();
        let running = self.running();
        self.clocks[running] += passed;
        self.at = self.at.max(at);
    }

    /// The scheduler withholds nothing any more.
    fn let_go(&mut self, at: Instant) {
        if let Some(hold) = self.hold.take().filter(|it| it.from < at) {
            self.recorded.held.push(Held { to: at, ..hold });
        }
    }

    fn hold(&mut self, at: Instant, reason: HoldReason, waits_for: Option<ContextId>) {
        if self.hold.is_some_and(|it| it.reason == reason && it.waits_for == waits_for) {
            return;
        }
        self.let_go(at);
        self.hold = Some(Held { from: at, to: at, reason, waits_for });
    }

    fn allocate(&mut self, event: &Event, id: RequestId) {
        let came = event.bio.and_then(|it| self.bios.remove(&it)).unwrap_or(event.at);
        if self.open.is_empty() && self.is_task(event.context) {
            let before = self.done.take().filter(|it| *it != event.context);
            let arrow = before.map(|from| Arrow { at: came, from, to: event.context });
            self.recorded.arrows.extend(arrow);
        }
        let life = Life {
            context: event.context,
            op: event.op,
            flags: event.flags,
            sector: event.sector,
            sectors: event.sectors,
            queued: came,
            allocated: event.at,
            inserted: None,
            issued: event.at,
            completed: event.at,
            merged: 0,
            reason: None,
            layers: Vec::new(),
        };
        self.open.insert(id, Open { life, since: self.clocks, until: None });
    }

    fn insert(&mut self, event: &Event, id: RequestId) {
        let clocks = self.clocks;
        let Some(open) = self.open.get_mut(&id) else { return };
        self.queued += usize::from(open.life.inserted.is_none());
        open.life.inserted.get_or_insert(event.at);
        open.since = clocks;
    }

    fn join(&mut self, id: RequestId, into: RequestId) {
        let Some(gone) = self.open.remove(&id) else { return };
        self.leaves_the_scheduler(&gone);
        if let Some(open) = self.open.get_mut(&into) {
            open.life.merged += gone.life.merged + 1;
        }
    }

    fn leaves_the_scheduler(&mut self, open: &Open) {
        if open.life.inserted.is_some() && open.until.is_none() {
            self.queued = self.queued.saturating_sub(1);
        }
    }

    fn dispatch(&mut self, at: Instant, id: RequestId, reason: DispatchReason) {
        self.let_go(at);
        if let Some(open) = self.open.get_mut(&id) {
            open.life.reason = Some(reason);
        }
    }

    fn issue(&mut self, event: &Event, id: RequestId) {
        self.let_go(event.at);
        self.in_device += 1;
        if !self.open.contains_key(&id) {
            self.allocate(event, id);
        }
        let clocks = self.clocks;
        let open = self.open.get_mut(&id).expect("it was just put there");
        let was_queued = open.life.inserted.is_some() && open.until.is_none();
        self.queued = self.queued.saturating_sub(usize::from(was_queued));
        // What was merged meanwhile counts.
        (open.life.sector, open.life.sectors) = (event.sector, event.sectors);
        (open.life.issued, open.until) = (event.at, Some(clocks));
    }

    fn complete(&mut self, event: &Event, id: RequestId, issued: Instant) {
        let clocks = self.clocks;
        let Some(mut open) = self.open.remove(&id) else { return };
        self.leaves_the_scheduler(&open);
        if open.until.is_some() {
            self.in_device = self.in_device.saturating_sub(1);
        } else {
            // A flush that another command served.
            open.life.issued = issued.max(open.life.inserted.unwrap_or(open.life.allocated));
        }
        open.life.completed = event.at;
        if self.open.is_empty() && self.is_task(open.life.context) {
            self.done = Some(open.life.context);
        }
        self.recorded.lives.push(finished(open, clocks));
    }
}

/// A life with its layers.
fn finished(open: Open, now: Clocks) -> Life {
    let mut life = open.life;
    let mut layers = Vec::new();
    let mut add = |layer, time: Duration| {
        if !time.is_zero() {
            layers.push((layer, time));
        }
    };
    let given = life.inserted.unwrap_or(life.allocated);
    add(Layer::Tag, life.allocated.saturating_since(life.queued));
    add(Layer::Plug, given.saturating_since(life.allocated));
    // What has no command of its own waits for another's.
    let mut left = life.issued.saturating_since(given).as_nanos();
    let until = open.until.unwrap_or(now);
    for (clock, (since, until)) in open.since.iter().zip(until).enumerate() {
        let time = (until - since).min(left);
        left -= time;
        let layer = match clock {
            BUSY => Layer::Others,
            IDLE => Layer::Host,
            reason => Layer::Held(REASONS[reason]),
        };
        add(layer, Duration::from_nanos(time));
    }
    add(Layer::Requeued, Duration::from_nanos(left));
    add(Layer::Device, life.service());
    life.layers = layers;
    life
}

impl Observer for Watch {
    fn meet(&mut self, who: &TaskInfo) {
        self.tasks.insert(who.context);
        self.recorded.tasks.push(who.clone());
    }

    fn see(&mut self, event: &Event) {
        self.pass(event.at);
        match (&event.action, event.request) {
            (Action::Queue, _) => {
                event.bio.map(|bio| self.bios.insert(bio, event.at));
            }
            (Action::BioDone { .. }, _) => {
                event.bio.map(|bio| self.bios.remove(&bio));
            }
            (Action::Hold { reason, waits_for }, _) if self.queued > 0 => {
                self.hold(event.at, *reason, *waits_for);
            }
            (Action::GetRequest, Some(id)) => self.allocate(event, id),
            (Action::Insert, Some(id)) => self.insert(event, id),
            (Action::BackMerge | Action::FrontMerge, Some(id)) => {
                event.bio.map(|bio| self.bios.remove(&bio));
                self.open.entry(id).and_modify(|open| open.life.merged += 1);
            }
            (Action::Join { into }, Some(id)) => self.join(id, *into),
            (Action::Dispatch(reason), Some(id)) => self.dispatch(event.at, id, *reason),
            (Action::Issue, Some(id)) => self.issue(event, id),
            (Action::Requeue, Some(_)) => self.in_device = self.in_device.saturating_sub(1),
            (Action::Complete { issued }, Some(id)) => self.complete(event, id, *issued),
            _ => {}
        }
        if self.queued == 0 {
            self.let_go(event.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Sector, Sectors};
    use block::{CgroupId, IoContextId, Ioprio};

    fn event(micros: u64, rq: u64, who: u32, action: Action) -> Event {
        Event {
            at: Instant::from_nanos(micros * 1000),
            context: ContextId(who),
            sector: Sector(rq * 8),
            sectors: Sectors(8),
            request: Some(RequestId::from_bits(1 << 32 | rq)),
            ..Event::note(action)
        }
    }

    fn watched(events: &[Event], end: u64) -> Recorded {
        let mut watch = Watch::default();
        for number in 1..=2 {
            watch.meet(&TaskInfo {
                context: ContextId(number),
                name: format!("task-{number}"),
                job: None,
                io_context: IoContextId(number),
                cgroup: CgroupId::ROOT,
                ioprio: Ioprio::default(),
            });
        }
        events.iter().for_each(|event| watch.see(event));
        watch.finish(Instant::from_nanos(end * 1000))
    }

    const HOLD: Action =
        Action::Hold { reason: HoldReason::ProcessIdles, waits_for: Some(ContextId(1)) };

    fn done(micros: u64) -> Action {
        Action::Complete { issued: Instant::from_nanos(micros * 1000) }
    }

    #[test]
    fn a_request_waits_for_others_is_withheld_and_is_served() {
        let recorded = watched(
            &[
                event(0, 1, 1, Action::GetRequest),
                event(0, 1, 1, Action::Insert),
                event(1, 1, 1, Action::Issue),
                event(2, 2, 2, Action::GetRequest),
                event(3, 2, 2, Action::Insert),
                event(5, 1, 1, done(1)),
                event(5, 0, 1, HOLD),
                event(13, 2, 2, Action::Issue),
                event(14, 2, 2, done(13)),
            ],
            20,
        );
        let micros = Duration::from_micros;
        let second = &recorded.lives[1];
        let expected = [
            (Layer::Plug, micros(1)),
            (Layer::Held(HoldReason::ProcessIdles), micros(8)),
            (Layer::Others, micros(2)),
            (Layer::Device, micros(1)),
        ];
        assert_eq!((&second.layers[..], second.total()), (&expected[..], micros(12)));
        let [held] = recorded.held[..] else { panic!("one period") };
        assert_eq!((held.from.as_nanos(), held.to.as_nanos()), (5_000, 13_000));
        assert_eq!((held.waits_for, recorded.arrows.len()), (Some(ContextId(1)), 0));
    }

    #[test]
    fn an_arrow_leads_from_the_last_under_way_to_the_next_who_asks() {
        let recorded = watched(
            &[
                event(0, 1, 1, Action::GetRequest),
                event(0, 1, 1, Action::Issue),
                event(4, 1, 1, done(0)),
                event(6, 2, 2, Action::GetRequest),
                event(6, 2, 2, Action::Issue),
                event(9, 2, 2, done(6)),
                event(11, 3, 2, Action::GetRequest),
            ],
            20,
        );
        let at = Instant::from_nanos(6_000);
        assert_eq!(recorded.arrows, [Arrow { at, from: ContextId(1), to: ContextId(2) }]);
    }
}
