//! anticipatory: a one-way elevator in batches that waits for the next request of a reader.
//!
//! Synchronous and asynchronous requests are served in batches by time. When a synchronous request
//! is done, the disk may be left alone for a few milliseconds, because the process that waited for
//! it is likely to ask for something close by; moving away and back would cost more.
//!
//! Its rules are named where they are followed (rules as-process, as-order, as-wait, as-break and
//! as-batch); 2.6.28 and 2.6.32 decide alike. One idea a file: processes and what is known of them
//! (`process`), waiting (`wait`), batches (`batch`), which request is nearest (`choose`).
//! `est_time`, which shows statistics as text, is left out; `describe` says the same.

mod batch;
mod choose;
mod process;
mod settings;
mod wait;

use crate::sorted_fifo::SortedFifo;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use base::{Instant, Jiffies, Sector, Side};
use batch::Batch;
use block::scheduler::{Dispatched, HctxId, InsertAt, MayQueue, Merge, Placement};
use block::{
    About, Bio, ContextId, Cx, DispatchReason, IoContextId, Kernel, MergeLookup, Request,
    RequestId, Scheduler, Shape, SharedLock,
};
use choose::choose;
use process::{Newcomers, Process};
use settings::{Settings, TUNABLES};
use wait::{Status, Wait};

/// What is fixed about anticipatory.
pub const ABOUT: About = About {
    name: "anticipatory",
    shape: Shape::Single,
    lock: SharedLock::All,
    lookup: MergeLookup::Index,
    summary: "sweeps the disk in batches, and waits a little for a reader's next request",
    tunables: &TUNABLES,
};

/// Whether somebody waits for a request; as an index, as the kernel numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Async = 0,
    Sync = 1,
}

impl Kind {
    fn of(request: &Request) -> Kind {
        if request.is_sync() { Kind::Sync } else { Kind::Async }
    }
}

/// What leaves next, and why.
struct Choice {
    rq: RequestId,
    reason: DispatchReason,
}

/// The anticipatory elevator. Times are in jiffies.
pub struct Anticipatory {
    settings: Settings,
    /// By kind.
    directions: [SortedFifo; 2],
    /// By kind: the nearest request.
    next: [Option<RequestId>; 2],
    /// By kind: where the last one that left ends.
    last_sector: [Sector; 2],
    /// By kind: when ages were last looked at.
    last_check: [i64; 2],
    batch: Batch,
    wait: Wait,
    processes: BTreeMap<IoContextId, Process>,
    newcomers: Newcomers,
    /// Whose request it is.
    owners: Side<Request, IoContextId>,
    /// Requests that left and are not done.
    dispatched: u32,
}

impl Anticipatory {
    /// The elevator of `kernel` with default settings.
    pub fn new(kernel: &Kernel) -> Anticipatory {
        let settings = Settings::new(kernel.hz);
        Anticipatory {
            batch: Batch::new(settings.batch_expire[Kind::Async as usize]),
            settings,
            directions: [SortedFifo::default(), SortedFifo::default()],
            next: [None; 2],
            last_sector: [Sector(0); 2],
            // Long ago: ages are looked at with the first request.
            last_check: [i64::from(i32::MIN); 2],
            wait: Wait::default(),
            processes: BTreeMap::new(),
            newcomers: Newcomers::default(),
            owners: Side::new(),
            dispatched: 0,
        }
    }

    /// Rule as-wait-1: into both orders of its kind.
    fn add_sorted(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let (kind, sector) = (Kind::of(request), request.sector);
        if let Some(alias) = self.directions[kind as usize].starting_at(sector) {
            self.let_go(cx, Choice { rq: alias, reason: DispatchReason::SameSector });
        }
        let deadline = now(cx) + self.settings.fifo_expire[kind as usize];
        self.directions[kind as usize].insert(rq, sector, Jiffies(deadline as u64));
    }

    /// What is nearest when `rq` is no longer there (rule as-order-1).
    fn successor(&self, cx: &Cx<'_>, kind: Kind, rq: RequestId) -> Option<RequestId> {
        let requests = &self.directions[kind as usize];
        let first = || requests.at_or_after(Sector(0)).filter(|it| *it != rq);
        let (next, previous) = (requests.after(rq).or_else(first), requests.before(rq));
        choose(cx, next, previous, self.last_sector[kind as usize])
    }

    /// A request leaves its lane, served or absorbed.
    fn note_removed(&mut self, rq: RequestId) {
        if let Some(process) = self.processes.get_mut(&self.owners[rq]) {
            process.queued -= 1;
        }
    }

    /// Rule as-batch-7.
    fn let_go(&mut self, cx: &mut Cx<'_>, choice: Choice) {
        let rq = choice.rq;
        let kind = Kind::of(cx.request(rq));
        let owner = self.owners[rq];
        self.stop_waiting(cx);
        self.wait.status = Status::Off;
        self.last_sector[kind as usize] = cx.request(rq).end();
        let awaited = (kind == Kind::Sync).then_some(owner);
        let before = core::mem::replace(&mut self.wait.awaited, awaited);
        if let Some(before) = before {
            self.forget_if_gone(before);
        }
        self.wait.task = Some(cx.request(rq).origin.context);
        if kind == Kind::Async {
            self.batch.count_write();
        }
        self.wait.finished = false;
        self.next[kind as usize] = self.successor(cx, kind, rq);
        self.directions[kind as usize].remove(rq);
        self.note_removed(rq);
        if let Some(process) = self.processes.get_mut(&owner) {
            process.dispatched += 1;
        }
        self.dispatched += 1;
        cx.issue(rq, Placement::Sorted, choice.reason);
    }

    /// Rule as-batch-9: synchronous requests first, in the order of the sweep.
    fn drain(&mut self, cx: &mut Cx<'_>) -> Dispatched {
        self.batch.reset();
        let mut left = 0;
        for kind in [Kind::Sync, Kind::Async] {
            while let Some(rq) = self.next[kind as usize] {
                self.let_go(cx, Choice { rq, reason: DispatchReason::Drained });
                left += 1;
            }
        }
        if left == 0 { Dispatched::Empty } else { Dispatched::Some(left) }
    }

    fn has(&self, kind: Kind) -> bool {
        !self.directions[kind as usize].is_empty()
    }

    /// Rule as-batch-6: whether the oldest has waited too long; looked at once per such time.
    fn is_fifo_expired(&mut self, now: i64, kind: Kind) -> bool {
        let expire = self.settings.fifo_expire[kind as usize];
        if now - self.last_check[kind as usize] < expire {
            return false;
        }
        self.last_check[kind as usize] = now;
        let requests = &self.directions[kind as usize];
        requests.oldest().is_some_and(|oldest| now > requests.deadline(oldest).0 as i64)
    }
}

impl Scheduler for Anticipatory {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn get(&self, cx: &Cx<'_>, tunable: &str) -> i64 {
        match self.settings.get(cx.kernel().hz, tunable) {
            Some(value) => value,
            None => panic!("anticipatory has no tunable {tunable}"),
        }
    }

    fn set(&mut self, cx: &mut Cx<'_>, tunable: &str, value: i64) {
        let known = self.settings.set(cx.kernel().hz, tunable, value);
        assert!(known, "anticipatory has no tunable {tunable}");
    }

    /// Rule as-wait-5: who is waited for may have one beyond the limit.
    fn may_queue(&mut self, _cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        let is_awaited = self.wait.awaited == Some(bio.origin.io_context);
        if self.wait.is_on() && is_awaited { MayQueue::Must } else { MayQueue::May }
    }

    fn bind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let owner = cx.request(rq).origin.io_context;
        self.owners.set(rq, owner);
        self.processes.entry(owner).or_insert_with(|| Process::since(now(cx))).requests += 1;
    }

    /// Rules as-wait-7 and as-wait-8. The kernel numbers its trees by kind and looks here by data
    /// direction: a read is looked for among asynchronous requests, so that ordinary front merges
    /// never happen.
    fn front_merge(&mut self, _cx: &mut Cx<'_>, bio: &Bio) -> Option<RequestId> {
        self.directions[bio.direction() as usize].starting_at(bio.end())
    }

    /// Rules as-wait-7 and as-wait-8: an alias at the new place leaves.
    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, _bio: &Bio, merge: Merge) {
        if merge != Merge::Front {
            return;
        }
        let request = cx.request(rq);
        let (kind, sector) = (Kind::of(request), request.sector);
        let alias = self.directions[kind as usize].starting_at(sector).filter(|alias| *alias != rq);
        if let Some(alias) = alias {
            self.let_go(cx, Choice { rq: alias, reason: DispatchReason::SameSector });
        }
        self.directions[kind as usize].reposition(rq, sector);
    }

    /// Rules as-wait-7 and as-wait-8. A request that is absorbed on arrival is in no lane.
    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        let kind = Kind::of(cx.request(next));
        if !self.directions[kind as usize].contains(next) {
            return;
        }
        if self.next[kind as usize] == Some(next) {
            self.next[kind as usize] = self.successor(cx, kind, next);
        }
        if self.directions[kind as usize].contains(rq) {
            self.directions[kind as usize].join(rq, next);
        } else {
            self.directions[kind as usize].remove(next);
        }
        self.note_removed(next);
    }

    fn former(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.directions[Kind::of(cx.request(rq)) as usize].before(rq)
    }

    fn latter(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.directions[Kind::of(cx.request(rq)) as usize].after(rq)
    }

    /// Rule as-wait-1.
    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, _at: InsertAt) {
        let request = cx.request(rq);
        let (kind, sector, end) = (Kind::of(request), request.sector, request.end());
        let owner = self.owners[rq];
        if kind == Kind::Sync {
            self.note_arrival(now(cx), owner, sector, end);
        }
        if let Some(process) = self.processes.get_mut(&owner) {
            process.queued += 1;
        }
        self.add_sorted(cx, rq);
        let last = self.last_sector[kind as usize];
        self.next[kind as usize] = choose(cx, Some(rq), self.next[kind as usize], last);
        if self.wait.is_on() && self.can_break(cx, Some(rq)) {
            self.stop_waiting(cx);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, force: bool) -> Dispatched {
        if force {
            return self.drain(cx);
        }
        match self.decide(cx) {
            Ok(Some(choice)) => {
                self.let_go(cx, choice);
                Dispatched::Some(1)
            }
            Ok(None) => Dispatched::Empty,
            Err(reason) => Dispatched::Hold(reason),
        }
    }

    /// Rule as-wait-4.
    fn activated(&mut self, _cx: &mut Cx<'_>, rq: RequestId) {
        if let Some(process) = self.processes.get_mut(&self.owners[rq]) {
            process.dispatched -= 1;
        }
    }

    /// Rule as-wait-4.
    fn deactivated(&mut self, _cx: &mut Cx<'_>, rq: RequestId) {
        if let Some(process) = self.processes.get_mut(&self.owners[rq]) {
            process.dispatched += 1;
        }
    }

    fn completed(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.complete(cx, rq);
    }

    fn finished(&mut self, _cx: &mut Cx<'_>, rq: RequestId) {
        let owner = self.owners.take(rq).expect("a bound request");
        if let Some(process) = self.processes.get_mut(&owner) {
            process.requests -= 1;
        }
        self.forget_if_gone(owner);
    }

    fn waits_for(&self) -> Option<ContextId> {
        self.wait.task.filter(|_| self.wait.is_on())
    }

    fn next_timer(&self) -> Option<Instant> {
        self.wait.timer
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.timer_fired(cx);
    }

    fn io_context_exited(&mut self, _cx: &mut Cx<'_>, io_context: IoContextId) {
        if let Some(process) = self.processes.get_mut(&io_context) {
            process.has_exited = true;
        }
        self.forget_if_gone(io_context);
    }

    fn detached(&mut self, _cx: &mut Cx<'_>) {
        self.wait = Wait::default();
    }

    fn queued(&self) -> u32 {
        self.directions[0].len() + self.directions[1].len()
    }

    fn check(&self, cx: &Cx<'_>) {
        for kind in [Kind::Async, Kind::Sync] {
            let requests = &self.directions[kind as usize];
            requests.check(|rq| cx.request(rq).sector);
            let next = self.next[kind as usize];
            assert_eq!(next.is_some(), !requests.is_empty(), "{kind:?} has a nearest request");
            assert!(next.is_none_or(|next| requests.contains(next)), "next {next:?} is queued");
        }
        let queued: u32 = self.processes.values().map(|process| process.queued).sum();
        assert_eq!(queued, self.queued(), "requests of processes");
        let is_timed = self.wait.status == Status::WaitNext;
        assert_eq!(self.wait.timer.is_some(), is_timed, "the timer runs while somebody thinks");
    }

    fn describe(&self, _cx: &Cx<'_>) -> String {
        let [writes, reads] = &self.directions;
        format!(
            "anticipatory: {} synchronous, {} asynchronous, {} dispatched, {:?}, {:?}, {:?}",
            reads.len(),
            writes.len(),
            self.dispatched,
            self.batch,
            self.wait,
            self.newcomers,
        )
    }
}

/// The kernel's count of ticks.
fn now(cx: &Cx<'_>) -> i64 {
    cx.now.jiffies(cx.kernel().hz).0 as i64
}
