//! What always holds between two hooks: counts and references agree with what is there.
//!
//! Queues that check themselves run this after each step, as in the tests of the contract.

use super::Bfq;
use super::queue::{Queue, QueueId};
use alloc::vec;
use block::Cx;

impl Bfq {
    /// Panics unless counts agree with what the queues hold.
    pub(super) fn check_all(&self, cx: &Cx<'_>) {
        let sum = |of: fn(&Queue) -> u32| self.queues.iter().map(|(_, queue)| of(queue)).sum();
        assert_eq!(self.queued, sum(|queue| queue.fifo.len()), "requests in queues");
        assert_eq!(self.busy_queues(), sum(|queue| u32::from(queue.is_busy)), "busy queues");
        let raised = self.queues.iter().filter(|(id, it)| it.is_busy && self.is_raised(*id));
        assert_eq!(self.wr_busy, raised.count() as u32, "raised queues");
        for (id, queue) in self.queues.iter() {
            self.check_requests(cx, id, queue);
            self.check_wakers(id, queue);
            assert_eq!(self.is_listed(id), queue.in_burst_list, "whether a burst has {id:?}");
        }
        self.check_references();
        self.check_groups();
        self.engine.check();
    }

    fn check_requests(&self, cx: &Cx<'_>, id: QueueId, queue: &Queue) {
        assert_eq!(queue.sorted.len(), queue.fifo.len() as usize, "both orders of {id:?}");
        assert_eq!(queue.queued[0] + queue.queued[1], queue.fifo.len(), "kinds of {id:?}");
        assert_eq!(queue.next.is_some(), !queue.is_empty(), "{id:?} has a next request");
        assert!(queue.is_empty() || queue.is_busy, "{id:?} has requests and is not busy");
        if let Some(next) = queue.next.filter(|_| queue.has_place && !self.nonrot_with_queueing) {
            let known = self.group(self.engine[queue.entity].group).places.value(id);
            assert_eq!(known, cx.request(next).sector, "where {id:?} goes on");
        }
        for rq in queue.sorted.iter() {
            assert_eq!(queue.sorted.sector_of(rq), cx.request(rq).sector, "place of {rq:?}");
            assert_eq!(self.queue_of_request(rq), id, "queue of {rq:?}");
        }
    }

    /// Whoever refers to a queue is there. A queue that merges into another one holds a reference
    /// to it for each of its own processes.
    fn check_references(&self) {
        let most = self.queues.iter().map(|(id, _)| id.index() + 1).max().unwrap_or(0);
        let (mut processes, mut waiting) = (vec![0; most], vec![0; most]);
        let count = |of: &mut [u32], id: Option<QueueId>, number: u32| {
            if let Some(id) = id {
                of[id.index()] += number;
            }
        };
        for bic in self.contexts.iter() {
            count(&mut processes, bic.sync, 1);
            count(&mut processes, bic.asyncs, 1);
            count(&mut waiting, bic.stable, 1);
        }
        for group in self.groups.iter().flatten() {
            group.shared().for_each(|id| count(&mut processes, Some(id), 1));
        }
        for (id, queue) in self.queues.iter() {
            // Where nobody is left that will use it, it may be gone.
            let number = self.process_refs(id);
            count(&mut processes, queue.merges_into.filter(|_| number > 0), number);
        }
        for (id, queue) in self.queues.iter() {
            let (uses, waits) = (processes[id.index()], waiting[id.index()]);
            assert_eq!(uses, self.process_refs(id), "who uses {id:?}");
            assert_eq!(waits, queue.stable_refs, "who may merge into {id:?}");
        }
    }

    /// A queue knows its waker, and the waker those it wakes.
    fn check_wakers(&self, id: QueueId, queue: &Queue) {
        for woken in &queue.wakers.woken {
            assert_eq!(self.queues[*woken].wakers.waker, Some(id), "the waker of {woken:?}");
        }
        if let Some(waker) = queue.wakers.waker {
            let woken = self.queues[waker].wakers.woken.iter();
            assert_eq!(woken.filter(|woken| **woken == id).count(), 1, "{waker:?} wakes {id:?}");
        }
    }

    fn check_groups(&self) {
        let mut inside = vec![0; self.groups.len()];
        for (_, queue) in self.queues.iter().filter(|(_, queue)| queue.is_pending) {
            inside[self.engine[queue.entity].group as usize] += 1;
        }
        let known = |n: usize| self.groups[n].as_ref().map_or(0, |group| group.with_pending);
        assert!((0..inside.len()).all(|n| inside[n] == known(n)), "queues with requests, by group");
        let pending = inside.iter().filter(|inside| **inside > 0).count();
        assert_eq!(self.groups_with_pending, pending as u32, "groups with requests");
    }
}
