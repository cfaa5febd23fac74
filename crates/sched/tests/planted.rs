//! Bugs planted on purpose: a small scheduler that breaks the contract in one way at a time. The
//! queue's guard, or the checks at the end of a run, must catch each of them.

mod harness;

use base::Instant;
use block::scheduler::{Dispatched, HctxId, InsertAt, Placement};
use block::{
    About, Cx, DispatchReason, HoldReason, Kernel, MergeLookup, RequestId, Scheduler, Shape,
    SharedLock,
};
use harness::{Harness, Table, read};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// A request never comes out again.
    LosesRequests,
    /// A request comes out a second time.
    IssuesTwice,
    /// A request that was merged away comes out.
    IgnoresJoins,
    /// It says that nothing is queued although something is.
    SaysEmpty,
    /// It withholds for ever.
    WithholdsForEver,
    /// It withholds although nothing is queued.
    WithholdsNothing,
    /// It does not say how many left.
    MiscountsDispatches,
    /// It joins requests that do not touch.
    OffersStrangersAsNeighbours,
}

const BUGS: [Bug; 9] = [
    Bug::None,
    Bug::LosesRequests,
    Bug::IssuesTwice,
    Bug::IgnoresJoins,
    Bug::SaysEmpty,
    Bug::WithholdsForEver,
    Bug::WithholdsNothing,
    Bug::MiscountsDispatches,
    Bug::OffersStrangersAsNeighbours,
];

static SINGLE: About = About {
    name: "planted",
    shape: Shape::Single,
    lock: SharedLock::All,
    lookup: MergeLookup::Index,
    summary: "has a bug",
    tunables: &[],
};
static MULTI: About = About { shape: Shape::Multi, ..SINGLE };

/// A FIFO with a bug.
struct Planted {
    shape: Shape,
    bug: Bug,
    fifo: VecDeque<RequestId>,
    arrivals: u32,
    last_issued: Option<RequestId>,
}

impl Scheduler for Planted {
    fn about(&self) -> &'static About {
        match self.shape {
            Shape::Single => &SINGLE,
            Shape::Multi => &MULTI,
        }
    }

    fn insert(&mut self, _cx: &mut Cx<'_>, rq: RequestId, _at: InsertAt) {
        self.arrivals += 1;
        if self.bug != Bug::LosesRequests || self.arrivals != 4 {
            self.fifo.push_back(rq);
        }
    }

    fn latter(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        let end = cx.request(rq).end();
        let stranger = self.bug == Bug::OffersStrangersAsNeighbours;
        let wanted = |other: &RequestId| (cx.request(*other).sector == end) != stranger;
        self.fifo.iter().copied().find(|other| *other != rq && wanted(other))
    }

    fn requests_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, next: RequestId) {
        if self.bug != Bug::IgnoresJoins {
            self.fifo.retain(|other| *other != next);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, _force: bool) -> Dispatched {
        match self.bug {
            Bug::SaysEmpty if self.fifo.len() == 2 => return Dispatched::Empty,
            Bug::WithholdsForEver if self.fifo.len() == 2 => {
                return Dispatched::Hold(HoldReason::HigherClassInFlight);
            }
            Bug::WithholdsNothing if self.fifo.is_empty() => {
                return Dispatched::Hold(HoldReason::HigherClassInFlight);
            }
            _ => {}
        }
        let again = self.last_issued.filter(|_| self.bug == Bug::IssuesTwice);
        let Some(rq) = again.or_else(|| self.fifo.pop_front()) else { return Dispatched::Empty };
        self.last_issued = Some(rq);
        cx.issue(rq, Placement::Tail, DispatchReason::ArrivalOrder);
        Dispatched::Some(if self.bug == Bug::MiscountsDispatches { 2 } else { 1 })
    }

    fn has_work(&self, _hctx: HctxId) -> bool {
        !self.fifo.is_empty() || self.bug == Bug::WithholdsNothing
    }

    fn queued(&self) -> u32 {
        self.fifo.len() as u32
    }

    fn describe(&self, _cx: &Cx<'_>) -> String {
        format!("{:?}", self.fifo)
    }
}

/// A backlog with something to join, then everything is completed.
fn run(bug: Bug, shape: Shape, kernel: &'static Kernel) {
    let planted = Planted { shape, bug, fifo: VecDeque::new(), arrivals: 0, last_issued: None };
    let mut harness = Harness::new(kernel, Table::default(), Some(Box::new(planted)));
    harness.set("nr_requests", 64).expect("within its range");
    let sectors = [9000, 8000, 100, 7000, 116, 108, 300, 500, 700];
    for (token, sector) in sectors.into_iter().enumerate() {
        harness.submit(read(0, sector, token as u64));
    }
    harness.drain();
    harness.queue.assert_drained();
    assert_eq!(harness.done.len(), sectors.len());
    assert!(harness.done.values().all(|(times, _)| *times == 1));
    let sectors_read: u32 = harness.completed.iter().map(|(_, command)| command.sectors.0).sum();
    assert_eq!(sectors_read, 8 * sectors.len() as u32);
    assert_eq!(harness.completed.len(), sectors.len() - 2, "100, 108 and 116 are one request");
    assert!(harness.now > Instant::ZERO);
}

#[test]
fn every_planted_bug_is_caught_on_both_shapes() {
    // What is caught panics, as a bug should; the reports would only hide the result.
    std::panic::set_hook(Box::new(|_| {}));
    let shapes = [(Shape::Single, "4.19"), (Shape::Multi, "6.18"), (Shape::Multi, "4.19")];
    let mut wrong = Vec::new();
    for (shape, kernel) in shapes {
        let kernel = Kernel::named(kernel).expect("in the table");
        for bug in BUGS {
            let caught = catch_unwind(AssertUnwindSafe(|| run(bug, shape, kernel))).is_err();
            if caught != (bug != Bug::None) {
                wrong.push((bug, shape, kernel.version, caught));
            }
        }
    }
    drop(std::panic::take_hook());
    assert!(wrong.is_empty(), "caught, or not, against expectation: {wrong:?}");
}
