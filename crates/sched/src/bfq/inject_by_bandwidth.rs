//! Injection of 4.20 to 5.1: while a queue is waited for, others may be served ten times as much as
//! it was itself.
//!
//! Nothing is measured, and nothing limits how many requests are in flight.

use super::Bfq;
use super::queue::QueueId;
use block::Cx;

/// Others may be served so many times what the queue itself was.
const SHARE: u64 = 10;

impl Bfq {
    /// A queue whose request may go while `id` is waited for.
    pub(super) fn injected_by_bandwidth(&self, cx: &Cx<'_>, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        let is_flash = !self.is_rotational && self.hw_tag != Some(false);
        let may_be = is_flash && queue.sync && queue.is_seeky() && !self.is_raised(id);
        let served = self.engine[queue.entity].service;
        if !may_be || queue.injected >= SHARE * served {
            return None;
        }
        self.engine.active_queues().find(|other| self.fits(cx, *other))
    }

    /// So many sectors of another queue were injected.
    pub(super) fn note_injected(&mut self, charge: u64) {
        if let Some(id) = self.in_service {
            self.queues[id].injected += charge;
        }
    }
}
