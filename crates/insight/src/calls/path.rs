//! The critical path of an interval of a task: who was waited for in the end, and where.
//!
//! While a task computes or waits for a core it is its own. Where it sleeps, whoever ended the
//! sleep is followed: a task by what it did meanwhile, a bio by its way through the block layer and
//! the device, and whoever submitted the bio before that. So the pieces cover the interval without
//! a gap, and one instant belongs to one piece.

use super::bios::{Bios, DoneBio, Way};
use super::queue::Owner;
use super::syncs::Syncs;
use super::tasks::{Doing, History, While, Woken};
use crate::layer::Layer;
use base::{Duration, Instant};
use block::{CommitPhase, ContextId, Op, SleepsFor, Stage};

/// So many tasks are followed from one to the next.
const DEEPEST: usize = 16;

/// A piece of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// Whose time it is: a task that computes or waits, or who submitted what waits.
    pub who: ContextId,
    /// Where.
    pub layer: Layer,
    /// Who was before it, where somebody was.
    pub behind: Option<ContextId>,
    /// It is the time of a request that reads.
    pub is_read: bool,
    /// Whoever calls waits for a lock that somebody else holds meanwhile.
    pub is_locked: bool,
    /// Somebody else's sync is under way meanwhile.
    pub is_beside_sync: bool,
    /// The phase of the commit that is waited for, if one is.
    pub commit: Option<CommitPhase>,
    /// What the device did for the request that it had, if its model says so.
    pub stage: Option<Stage>,
}

impl Segment {
    /// Time of somebody in a layer, of which nothing more is known.
    pub fn of(who: ContextId, layer: Layer, [from, to]: [Instant; 2]) -> Segment {
        Segment {
            from,
            to,
            who,
            layer,
            behind: None,
            is_read: false,
            is_locked: false,
            is_beside_sync: false,
            commit: None,
            stage: None,
        }
    }

    /// How long it is.
    pub fn length(&self) -> Duration {
        self.to.saturating_since(self.from)
    }
}

/// What the walk looks at.
pub struct Walk<'a> {
    /// What tasks did, by number.
    pub tasks: &'a [History],
    /// What bios did.
    pub bios: &'a Bios,
    /// When others than whoever calls had syncs under way.
    syncs: &'a Syncs,
    /// Who calls.
    own: Owner,
    /// The tasks that are followed at the moment.
    followed: Vec<ContextId>,
    /// What is added now is the time of a request that reads.
    reads: bool,
    /// What is added now is done by somebody who holds a lock that is waited for.
    locked: bool,
    /// What is added now is of this phase of a commit.
    commit: Option<CommitPhase>,
    /// The device did this for the request.
    stage: Option<Stage>,
    /// Transactions whose commits were met, each once.
    commits: Vec<u64>,
    path: Vec<Segment>,
}

impl<'a> Walk<'a> {
    /// A walk through these, for a call of this one.
    pub fn new(
        tasks: &'a [History],
        bios: &'a Bios,
        syncs: &'a Syncs,
        caller: ContextId,
    ) -> Walk<'a> {
        Walk {
            tasks,
            bios,
            syncs,
            own: bios.queue.owner(caller),
            followed: Vec::new(),
            reads: false,
            locked: false,
            commit: None,
            stage: None,
            commits: Vec::new(),
            path: Vec::new(),
        }
    }

    /// The pieces that were found, the earliest first, and transactions that were waited for.
    pub fn finish(self) -> (Vec<Segment>, Vec<u64>) {
        (self.path, self.commits)
    }

    /// Follows a task.
    pub fn task(&mut self, who: ContextId, from: Instant, to: Instant) {
        let Some(history) = self.tasks.get(who.0 as usize) else {
            return self.add(from, to, who, Layer::Task, None);
        };
        self.followed.push(who);
        let mut at = from;
        for it in history.of(from, to) {
            // What is forgotten, or was before anybody watched.
            self.add(at, it.from, who, Layer::Task, None);
            self.one_while(who, it);
            at = it.to;
        }
        self.add(at, to, who, Layer::Task, None);
        self.followed.pop();
    }

    /// Follows a bio from a time on at which it had been submitted or not.
    pub fn bio(&mut self, bio: &DoneBio, waiter: ContextId, from: Instant, to: Instant) {
        let submitted =
            bio.way.as_ref().map_or(bio.queued, |it| it.since(bio.queued)).clamp(from, to);
        let limited = bio.limited.map_or(submitted, |since| since.clamp(from, submitted));
        self.before_bio(bio, waiter, from, limited);
        self.add(limited, submitted, bio.submitter, Layer::Limits, None);
        let done = to.min(bio.done);
        let mut end = submitted;
        if let Some(way) = &bio.way {
            self.reads = way.op == Op::Read;
            end = self.way(way, bio.submitter, submitted, done);
            self.reads = false;
            // Its data are there, and the cache is flushed behind them.
            if self.bios.queue.flushed(end, done) {
                self.chosen(true, bio.submitter, end, done);
                end = end.max(done);
            }
        }
        self.add(end, to, bio.submitter, Layer::Interrupt, None);
    }

    fn one_while(&mut self, who: ContextId, it: While) {
        let While { from, to, doing, commit } = it;
        let outer = self.commit;
        if let Some((transaction, phase)) = commit {
            self.commit = Some(phase);
            if !self.commits.contains(&transaction) {
                self.commits.push(transaction);
            }
        }
        match doing {
            Doing::Computes => self.add(from, to, who, Layer::Computing, None),
            Doing::Waits => self.add(from, to, who, Layer::Core, None),
            Doing::Nothing => self.add(from, to, who, Layer::Task, None),
            Doing::Sleeps { what, is_throttled, holder, woken } => {
                let layer = layer_of(what, is_throttled);
                match woken.filter(|_| follows(what)) {
                    Some(Woken::Bio(number)) => match self.bios.get(number) {
                        Some(bio) if bio.done > from => self.bio(bio, who, from, to),
                        _ => self.add(from, to, who, layer, None),
                    },
                    Some(Woken::By(other)) if self.may_follow(other) => {
                        let outer = self.locked;
                        self.locked |= what == SleepsFor::Lock;
                        self.task(other, from, to);
                        self.locked = outer;
                    }
                    _ => self.add(from, to, who, layer, holder),
                }
            }
        }
        self.commit = outer;
    }

    /// What happened before a bio that is waited for was submitted: what its submitter did.
    fn before_bio(&mut self, bio: &DoneBio, waiter: ContextId, from: Instant, to: Instant) {
        if from >= to {
            return;
        }
        match bio.submitter != waiter && self.may_follow(bio.submitter) {
            true => self.task(bio.submitter, from, to),
            false => self.add(from, to, bio.submitter, Layer::Tag, None),
        }
    }

    /// A request's way, from a time on; the end of what it covers.
    fn way(&mut self, way: &Way, who: ContextId, from: Instant, to: Instant) -> Instant {
        let within = |at: Instant| at.clamp(from, to);
        let issued = within(way.issued.unwrap_or(way.completed));
        let completed = within(way.completed);
        let inserted = way.inserted.map_or(issued, within).min(issued);
        // The machinery keeps a request until the cache has been flushed for it.
        let plugged = match way.asks_flush() || self.bios.queue.flushed(from, inserted) {
            true => from,
            false => inserted,
        };
        self.add(from, plugged, who, Layer::Plug, None);
        self.chosen(plugged < inserted, who, plugged, issued);
        let mut at = self.awaits_room(way, who, issued, completed);
        for (given_back, again) in &way.requeued {
            self.served(way, who, at, within(*given_back).max(at));
            at = at.max(within(*given_back));
            self.add(at, within(*again).max(at), who, Layer::Requeued, None);
            at = at.max(within(*again));
        }
        match way.sectors.is_zero() {
            true => self.add(at, completed.max(at), who, Layer::Flush, None),
            false => self.served(way, who, at, completed.max(at)),
        }
        completed.max(at)
    }

    /// The single queue shows the driver one request more than the device takes, and tells of its
    /// issue then (rule dispatch-list-3). When the device has it.
    fn awaits_room(&mut self, way: &Way, who: ContextId, from: Instant, to: Instant) -> Instant {
        let taken = way.stages.first().filter(|_| way.requeued.is_empty());
        let taken = taken.map_or(from, |it| it.0.clamp(from, to));
        for it in self.bios.queue.served(from, taken, who) {
            self.add(it.from, it.to, who, Layer::Full, it.whose);
        }
        taken
    }

    /// A request waits to be chosen, or for a flush before that.
    fn chosen(&mut self, for_flush: bool, who: ContextId, from: Instant, to: Instant) {
        for it in self.bios.queue.pieces(from, to, for_flush) {
            self.add(it.from, it.to, who, it.layer, it.whose);
        }
    }

    /// A request is with the device.
    fn served(&mut self, way: &Way, who: ContextId, from: Instant, to: Instant) {
        for it in self.bios.queue.served(from, to, who) {
            let mut at = it.from;
            for (until, stage) in way.stages_between(it.from, it.to) {
                self.stage = stage;
                self.add(at, until, who, it.layer, it.whose);
                at = until;
            }
        }
        self.stage = None;
    }

    fn may_follow(&self, other: ContextId) -> bool {
        self.followed.len() < DEEPEST && !self.followed.contains(&other)
    }

    fn add(
        &mut self,
        from: Instant,
        to: Instant,
        who: ContextId,
        layer: Layer,
        behind: Option<ContextId>,
    ) {
        if from >= to {
            return;
        }
        let Walk { reads: is_read, locked: is_locked, commit, stage, .. } = *self;
        let mut at = from;
        for (to, is_beside_sync) in self.syncs.of_others(self.own, from, to) {
            let known = Segment::of(who, layer, [std::mem::replace(&mut at, to), to]);
            let piece = Segment { behind, is_read, is_locked, is_beside_sync, ..known };
            self.push(Segment { commit, stage, ..piece });
        }
    }

    fn push(&mut self, piece: Segment) {
        match self.path.last_mut() {
            Some(last) if *last == (Segment { to: last.to, from: last.from, ..piece }) => {
                last.to = piece.to;
            }
            _ => self.path.push(piece),
        }
    }
}

impl Way {
    /// What the device did for it in an interval, each until when; the last one until the end.
    fn stages_between(
        &self,
        from: Instant,
        to: Instant,
    ) -> impl Iterator<Item = (Instant, Option<Stage>)> {
        let next = self.stages.partition_point(|(at, _)| *at <= from);
        let current = next.checked_sub(1).map(|it| self.stages[it].1);
        let later = self.stages[next..].iter().take_while(move |(at, _)| *at < to);
        let ends = later.clone().map(|(at, _)| *at).chain([to]);
        ends.zip([current].into_iter().chain(later.map(|(_, stage)| Some(*stage))))
    }

    /// From when on a bio of its waits in it and not for it.
    fn since(&self, queued: Instant) -> Instant {
        queued.max(self.allocated)
    }
}

/// Whether who ended such a sleep says what it was for.
fn follows(what: SleepsFor) -> bool {
    use SleepsFor::{Journal, Lock, Operation, Page, Queue, Task};
    matches!(what, Operation | Queue | Page | Journal | Lock | Task)
}

/// The layer of a sleep of which nothing more is known.
fn layer_of(what: SleepsFor, is_throttled: bool) -> Layer {
    match what {
        SleepsFor::Request if is_throttled => Layer::Throttle,
        SleepsFor::Request => Layer::Tag,
        SleepsFor::Pause => Layer::Pause,
        SleepsFor::DirtyLimit => Layer::DirtyLimit,
        SleepsFor::Page => Layer::Page,
        SleepsFor::Journal => Layer::Journal,
        SleepsFor::Lock => Layer::Lock,
        SleepsFor::Operation | SleepsFor::Queue | SleepsFor::Task => Layer::Task,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Action, Event};

    #[test]
    fn an_interval_with_the_device_is_cut_where_it_does_something_else() {
        let at = Instant::from_nanos;
        let event = Event { at: at(5), ..Event::note(Action::GetRequest) };
        let mut way = Way::of(&event);
        let stages = [(at(10), Stage::Queue), (at(20), Stage::Seek), (at(30), Stage::Media)];
        way.stages = stages.into();
        let pieces = |from, to| way.stages_between(at(from), at(to)).collect::<Vec<_>>();
        assert_eq!(
            pieces(5, 25),
            [(at(10), None), (at(20), Some(Stage::Queue)), (at(25), Some(Stage::Seek))]
        );
        assert_eq!(pieces(30, 40), [(at(40), Some(Stage::Media))]);
        assert_eq!(pieces(12, 20), [(at(20), Some(Stage::Queue))]);
    }
}
