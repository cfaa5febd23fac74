//! Batches: synchronous and asynchronous requests take turns by time, and what leaves next (rules
//! as-wait-6 and as-batch).

use super::{Anticipatory, Choice, Kind, now};
use block::scheduler::RunQueue;
use block::{Cx, DispatchReason, HoldReason, RequestId};

/// The current batch.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub kind: Kind,
    /// When it is over.
    expires: i64,
    /// The kind has changed, and requests of the old one are with the device.
    drains: bool,
    /// A synchronous batch whose time begins with its first completion.
    is_new: bool,
    /// Requests of an asynchronous batch, by experience; and what is left of this one.
    write_count: i64,
    writes_left: i64,
    /// The asynchronous batch ran out of requests or of its number.
    write_idled: bool,
}

impl Batch {
    pub fn new(write_batch_expire: i64) -> Batch {
        Batch {
            kind: Kind::Async,
            expires: 0,
            drains: false,
            is_new: false,
            // Rule as-process-1.
            write_count: (write_batch_expire / 10).max(2),
            writes_left: 0,
            write_idled: false,
        }
    }

    /// For a drain.
    pub fn reset(&mut self) {
        self.kind = Kind::Sync;
        self.drains = false;
        self.is_new = false;
    }

    pub fn count_write(&mut self) {
        self.writes_left = (self.writes_left - 1).max(0);
    }

    /// Rule as-batch-1.
    fn is_over(&self, now: i64) -> bool {
        if self.drains || self.is_new {
            return false;
        }
        now > self.expires || self.kind == Kind::Async && self.writes_left == 0
    }

    /// Rule as-batch-10: the first synchronous request after an asynchronous batch is done; did
    /// that take as long as such a batch should?
    fn tune(&mut self, now: i64, batch: i64) {
        let took = (now - self.expires + batch).max(0);
        if took > batch && !self.write_idled {
            if took > 3 * batch {
                self.write_count /= 2;
            } else {
                self.write_count -= 1;
            }
        } else if took < batch && self.writes_left == 0 {
            if 3 * took < batch {
                self.write_count *= 2;
            } else {
                self.write_count += 1;
            }
        }
        self.write_count = self.write_count.max(1);
    }
}

impl Anticipatory {
    /// Rules as-batch: what leaves next, nothing, or why nothing does.
    pub(super) fn decide(&mut self, cx: &mut Cx<'_>) -> Result<Option<Choice>, HoldReason> {
        let (syncs, asyncs) = (self.has(Kind::Sync), self.has(Kind::Async));
        // a.
        if self.batch.kind == Kind::Async && !syncs && (self.batch.writes_left == 0 || !asyncs) {
            self.batch.write_idled = true;
        }
        // b.
        if !syncs && !asyncs {
            return Ok(None);
        }
        if let Some(reason) = self.wait.hold() {
            return Err(reason);
        }
        if self.batch.drains {
            return Err(HoldReason::BatchDrains);
        }
        let now = now(cx);
        let goes_on = !(syncs && asyncs && self.batch.is_over(now));
        let continued = if goes_on { self.continued(cx)? } else { None };
        let mut choice = match continued {
            Some(choice) => {
                if syncs && !asyncs {
                    self.batch.expires = now + self.settings.batch_expire[Kind::Sync as usize];
                }
                choice
            }
            None => self.start_batch(now, syncs, asyncs),
        };
        // f.
        let kind = self.batch.kind;
        if self.is_fifo_expired(now, kind) {
            let rq = self.oldest(kind);
            choice = Choice { rq, reason: DispatchReason::Expired };
        }
        self.settle_change(now)?;
        Ok(Some(choice))
    }

    /// 8c: the nearest request of the batch's kind, unless a process is waited for instead.
    fn continued(&mut self, cx: &mut Cx<'_>) -> Result<Option<Choice>, HoldReason> {
        let kind = self.batch.kind;
        let next = self.next[kind as usize];
        if kind == Kind::Sync && self.settings.antic_expire != 0 {
            if self.is_fifo_expired(now(cx), kind) {
                let rq = self.oldest(kind);
                return Ok(Some(Choice { rq, reason: DispatchReason::Expired }));
            }
            if self.can_anticipate(cx, next) {
                return Err(self.start_waiting(cx));
            }
        }
        Ok(next.map(|rq| Choice { rq, reason: DispatchReason::BatchContinues }))
    }

    /// 8d and 8e: the other kind's turn, or a new one of the same, from its oldest request.
    fn start_batch(&mut self, now: i64, syncs: bool, asyncs: bool) -> Choice {
        let is_sync = self.batch.kind == Kind::Sync;
        let kind = if syncs && !(asyncs && is_sync) { Kind::Sync } else { Kind::Async };
        self.batch.drains |= kind != self.batch.kind;
        if kind == Kind::Async {
            if is_sync {
                self.batch.is_new = false;
            }
            self.batch.writes_left = self.batch.write_count;
            self.batch.write_idled = false;
        }
        self.batch.kind = kind;
        self.last_check[kind as usize] = now;
        Choice { rq: self.oldest(kind), reason: DispatchReason::OldestStarts }
    }

    /// 8g: a batch of another kind begins when the old one is done.
    fn settle_change(&mut self, now: i64) -> Result<(), HoldReason> {
        if !self.batch.drains {
            return Ok(());
        }
        if self.dispatched > 0 {
            return Err(HoldReason::BatchDrains);
        }
        match self.batch.kind {
            Kind::Async => {
                self.batch.expires = now + self.settings.batch_expire[Kind::Async as usize];
            }
            Kind::Sync => self.batch.is_new = true,
        }
        self.batch.drains = false;
        Ok(())
    }

    fn oldest(&self, kind: Kind) -> RequestId {
        self.directions[kind as usize].oldest().expect("a kind is chosen only if it has requests")
    }

    /// Rules as-batch-5 and as-wait-6.
    pub(super) fn complete(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let now = now(cx);
        let (kind, owner) = (Kind::of(cx.request(rq)), self.owners[rq]);
        if self.batch.drains && self.dispatched == 1 {
            self.batch.expires = now + self.settings.batch_expire[self.batch.kind as usize];
            cx.run_queue(RunQueue::Async);
            self.batch.drains = false;
            self.batch.is_new |= self.batch.kind == Kind::Sync;
        }
        self.dispatched -= 1;
        if self.batch.is_new && kind == self.batch.kind {
            self.batch.tune(now, self.settings.batch_expire[Kind::Async as usize]);
            self.batch.expires = now + self.settings.batch_expire[Kind::Sync as usize];
            self.batch.is_new = false;
        }
        if self.wait.awaited == Some(owner) {
            self.wait.start = now;
            self.wait.finished = true;
            if self.wait.status == super::Status::WaitRequest {
                self.await_next(cx);
            }
        }
        if let Some(process) = self.processes.get_mut(&owner).filter(|_| kind == Kind::Sync) {
            process.is_running = true;
            process.last_end_request = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_writes_follows_the_time_they_took() {
        // A batch of 125 ticks that ended at 1000.
        let after = |now: i64, left: i64, idled: bool| {
            let mut batch = Batch { expires: 1_000, writes_left: left, ..Batch::new(125) };
            batch.write_count = 16;
            batch.write_idled = idled;
            batch.tune(now, 125);
            batch.write_count
        };
        assert_eq!(after(1_000, 0, false), 16, "just right");
        assert_eq!(after(1_001, 0, false), 15, "too long");
        assert_eq!(after(1_251, 0, false), 8, "much too long");
        assert_eq!(after(1_251, 0, true), 16, "it idled: no wonder");
        assert_eq!(after(999, 0, false), 17, "short, and all were used");
        assert_eq!(after(940, 0, false), 17, "more than a third");
        assert_eq!(after(910, 0, false), 32, "very short");
        assert_eq!(after(910, 3, false), 16, "they were not used");
    }

    #[test]
    fn a_batch_has_one_write_at_least() {
        let mut batch = Batch { expires: 0, ..Batch::new(10) };
        assert_eq!(batch.write_count, 2);
        (0..3).for_each(|_| batch.tune(1_000, 10));
        assert_eq!(batch.write_count, 1);
    }
}
