//! An observer that keeps what a timeline is made of: requests and where their time went, when the
//! scheduler withheld requests, and the critical paths of calls from task to task.

use super::keeper::Keeper;
use super::{Arrow, CallBar, Held, Recorded};
use crate::calls::{Call, Calls};
use crate::requests::Requests;
use base::Instant;
use block::{Action, ContextId, Event, HoldReason};
use machine::{Observer, TaskInfo};
use std::cell::RefCell;
use std::rc::Rc;

/// Where calls go.
type Sink = Box<dyn FnMut(Call)>;

/// Keeps what happens.
pub struct Watch {
    tasks: Vec<TaskInfo>,
    requests: Requests,
    calls: Calls<Sink>,
    keeper: Rc<RefCell<Keeper>>,
    /// Requests that the scheduler has.
    queued: usize,
    hold: Option<Held>,
}

impl Watch {
    /// Of a run on a device that takes so many commands, if that is known.
    pub fn new(depth: Option<u32>) -> Watch {
        let keeper = Rc::<RefCell<Keeper>>::default();
        let kept = keeper.clone();
        let sink: Sink = Box::new(move |call| {
            kept.borrow_mut().see_call(CallBar::of(&call), arrows_of(&call));
        });
        Watch {
            tasks: Vec::new(),
            requests: Requests::new(depth).in_order(),
            calls: Calls::new(depth, sink),
            keeper,
            queued: 0,
            hold: None,
        }
    }

    /// What was seen, at the end of the run.
    pub fn finish(mut self, end: Instant) -> Recorded {
        self.let_go(end);
        self.requests.finish();
        self.keep_done();
        let mut recorded = std::mem::take(&mut *self.keeper.borrow_mut()).finish(end);
        recorded.arrows.sort_by_key(|it| (it.at, it.from, it.to));
        // Several may wait for one.
        recorded.arrows.dedup();
        Recorded { tasks: self.tasks, ..recorded }
    }

    fn keep_done(&mut self) {
        let mut keeper = self.keeper.borrow_mut();
        self.requests.done().for_each(|life| keeper.see(&life));
    }

    /// The scheduler withholds nothing any more.
    fn let_go(&mut self, at: Instant) {
        if let Some(hold) = self.hold.take().filter(|it| it.from < at) {
            self.keeper.borrow_mut().see_held(Held { to: at, ..hold });
        }
    }

    fn hold(&mut self, at: Instant, reason: HoldReason, waits_for: Option<ContextId>) {
        if self.hold.is_some_and(|it| it.reason == reason && it.waits_for == waits_for) {
            return;
        }
        self.let_go(at);
        self.hold = Some(Held { from: at, to: at, reason, waits_for });
    }
}

/// The steps of a call's critical path from one task to another.
fn arrows_of(call: &Call) -> Vec<Arrow> {
    let steps = call.path.windows(2).filter(|it| it[0].who != it[1].who);
    steps.map(|it| Arrow { at: it[1].from, from: it[0].who, to: it[1].who }).collect()
}

impl Observer for Watch {
    fn meet(&mut self, who: &TaskInfo) {
        self.calls.meet(who);
        self.tasks.push(who.clone());
    }

    fn see(&mut self, event: &Event) {
        self.requests.see(event);
        self.calls.see(event);
        self.keep_done();
        match &event.action {
            Action::Insert => self.queued += 1,
            Action::Hold { reason, waits_for } | Action::HoldsBack { reason, waits_for }
                if self.queued > 0 =>
            {
                self.hold(event.at, *reason, *waits_for);
            }
            Action::Join { .. } => self.queued = self.queued.saturating_sub(1),
            Action::Dispatch(_) => {
                self.queued = self.queued.saturating_sub(1);
                self.let_go(event.at);
            }
            Action::Issue => self.let_go(event.at),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::RequestId;

    fn event(micros: u64, rq: u64, who: u32, action: Action) -> Event {
        Event {
            at: Instant::from_nanos(micros * 1000),
            context: ContextId(who),
            sector: base::Sector(rq * 8),
            sectors: base::Sectors(8),
            request: Some(RequestId::from_bits(1 << 32 | rq)),
            ..Event::note(action)
        }
    }

    #[test]
    fn a_held_period_lasts_until_something_is_chosen() {
        let mut watch = Watch::new(Some(1));
        let waits_for = Some(ContextId(1));
        let hold = Action::Hold { reason: HoldReason::ProcessIdles, waits_for };
        let chosen = Action::Dispatch(block::DispatchReason::TurnBegins);
        for event in [
            event(2, 2, 2, Action::GetRequest),
            event(3, 2, 2, Action::Insert),
            event(5, 0, 1, hold),
            event(13, 2, 2, chosen),
            event(13, 2, 2, Action::Issue),
            event(14, 2, 2, Action::Complete { issued: Instant::from_nanos(13_000) }),
        ] {
            watch.see(&event);
        }
        let recorded = watch.finish(Instant::from_nanos(20_000));
        let [held] = recorded.held[..] else { panic!("one period") };
        assert_eq!((held.from.as_nanos(), held.to.as_nanos()), (5_000, 13_000));
        assert_eq!((held.waits_for, recorded.lives.len()), (waits_for, 1));
    }
}
