//! noop: first come, first served.
//!
//! Requests leave in the order in which they arrived; all that is saved is what merging saves. It
//! is the baseline of every comparison, the right choice where something below orders better than
//! the kernel could, and the shortest complete [`Scheduler`]: start a new one from here.
//!
//! Its rules are named where they are followed (rules noop).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use base::{Links, List};
use block::scheduler::{Dispatched, HctxId, InsertAt, Placement};
use block::{
    About, Cx, DispatchReason, MergeLookup, Request, RequestId, Scheduler, Shape, SharedLock,
};

/// What is fixed about noop.
pub const ABOUT: About = About {
    name: "noop",
    shape: Shape::Single,
    lock: SharedLock::All,
    lookup: MergeLookup::Index,
    summary: "serves requests in the order in which they arrived",
    tunables: &[], // rule noop-6
};

/// The noop elevator: one FIFO.
#[derive(Clone, Default)]
pub struct Noop {
    fifo: List<Request>,
    links: Links<Request>,
}

impl Scheduler for Noop {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// Rule noop-1: at the tail.
    fn insert(&mut self, _cx: &mut Cx<'_>, rq: RequestId, _at: InsertAt) {
        self.fifo.push_back(&mut self.links, rq);
    }

    /// Rule noop-2: the head, one request a call, sorted into the dispatch list. Rule noop-6:
    /// `force` makes no difference.
    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, _force: bool) -> Dispatched {
        let Some(rq) = self.fifo.pop_front(&mut self.links) else { return Dispatched::Empty };
        cx.issue(rq, Placement::Sorted, DispatchReason::ArrivalOrder);
        Dispatched::Some(1)
    }

    fn release(&mut self, cx: &mut Cx<'_>, rq: RequestId) -> bool {
        self.fifo.remove(&mut self.links, rq);
        cx.issue(rq, Placement::Sorted, DispatchReason::ArrivalOrder);
        true
    }

    fn fork(&self) -> Option<Box<dyn Scheduler>> {
        Some(Box::new(self.clone()))
    }

    /// Rule noop-3: neighbours are neighbours in the FIFO, whatever their sectors.
    fn former(&self, _cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.links.previous(rq)
    }

    fn latter(&self, _cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.links.next(rq)
    }

    /// Rule noop-4: the survivor keeps its place. A request that is absorbed on arrival has none.
    fn requests_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, next: RequestId) {
        if self.links.contains(next) {
            self.fifo.remove(&mut self.links, next);
        }
    }

    fn queued(&self) -> u32 {
        self.fifo.len()
    }

    fn check(&self, _cx: &Cx<'_>) {
        let reachable = self.fifo.iter(&self.links).count();
        assert_eq!(reachable as u32, self.fifo.len(), "requests in the FIFO");
    }

    fn describe(&self, _cx: &Cx<'_>) -> String {
        format!("noop: {} queued, head {:?}", self.fifo.len(), self.fifo.head())
    }
}
