//! Into which request a bio was merged, and which requests were joined.
//!
//! A record of a merge names what was merged and not what into. Often only one queued request
//! touches it. Where several do, it is the one that the kernel looks at first: the one merged into
//! last, then, for its end, the newest, and for its start, the highest in a tree (rule deadline-2),
//! which is taken to be the oldest; of those that look the same, ours says which. Where lists are
//! scanned it is the newest. If a request is
//! issued later that nobody has, one of these was another: the history is read again with the next
//! of those that touched it.

use super::{Historian, Life, Merged, State, Traced, What, is_queued, op_of, sectors_of};
use base::Sectors;
use block::scheduler::Merge;
use block::{Bio, Flags, Op};
use trace::blktrace::Record;

/// A merge into one of several requests that the bio touched.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    /// Number of the record.
    record: u64,
    candidates: Vec<Traced>,
    /// Which of them was chosen.
    tried: usize,
}

impl Historian<'_> {
    /// A record of a merge: of a bio, or of a request that was appended to another.
    pub(super) fn merged(&mut self, record: &Record, merge: Merge) {
        let (op, sectors) = (op_of(record), sectors_of(record));
        let task = self.task(record);
        let is_bio = task.bio.take_if(|bio| *bio == (op, record.sector, sectors)).is_some();
        if is_bio {
            self.takes_up_rest(record);
        }
        if !is_bio && self.era.joins_are_traced && merge == Merge::Back && self.joined(record) {
            return;
        }
        let bio = self.bio(record);
        self.forget_place(record);
        let Some(rq) = self.target(record, merge, &bio) else {
            self.unmatched(record);
            return;
        };
        let life = &mut self.history.requests[rq];
        life.sectors += sectors;
        if merge == Merge::Front {
            life.sector = record.sector;
        }
        if is_queued(life) {
            self.just_merged = Some(match merge {
                Merge::Back => Merged::Behind(rq),
                Merge::Front => Merged::Before(rq),
            });
            self.last_merge = Some(rq);
            if merge == Merge::Back && !self.era.scans_lists {
                self.history.requests[rq].ended = self.records;
            }
        }
        self.step(record, rq, What::Merge(bio, merge));
    }

    /// The request that a bio was merged into: one that its task holds, or a queued one.
    fn target(&mut self, record: &Record, merge: Merge, bio: &Bio) -> Option<Traced> {
        let (op, sectors) = (bio.op, bio.sectors);
        let touches = |life: &Life| match merge {
            Merge::Back => life.sector + life.sectors == record.sector,
            Merge::Front => life.sector == record.sector + sectors,
        };
        let context = bio.origin.context;
        let is_held =
            |life: &Life| life.state == State::Allocated && life.bio.origin.context == context;
        // What was split off a bio is as large as it may be.
        let largest = if op == Op::Discard { Sectors(u32::MAX) } else { self.era.largest };
        let may_grow = |life: &Life| {
            !life.bio.flags.intersects(Flags::NOMERGE) && life.sectors + sectors <= largest
        };
        let fits = |life: &Life| life.bio.op == op && touches(life) && may_grow(life);
        let held = if self.era.merges_into_newest {
            self.find(is_held).filter(|rq| fits(&self.history.requests[*rq]))
        } else {
            self.find(|life| is_held(life) && fits(life))
        };
        let same = |life: &Life| fits(life) && life.bio.ioprio == bio.ioprio;
        // Unless memory is contiguous, each page is a segment.
        let is_small = |rq: Traced| self.history.requests[rq].sectors + sectors <= self.era.usual;
        let found = match held {
            Some(held) if is_small(held) => Some(held),
            held => {
                let mut several = self.all_queued(merge, same);
                several.sort_by_key(|rq| !is_small(*rq));
                let place = several.iter().position(|rq| !is_small(*rq));
                held.into_iter().for_each(|it| several.insert(place.unwrap_or(several.len()), it));
                match several {
                    none if none.is_empty() => self.find_queued(merge, fits),
                    several => Some(self.doubt(several)),
                }
            }
        };
        if found.is_none() {
            self.think_of_full(op, touches);
        }
        found
    }

    /// The queued request that the kernel finds first.
    fn find_queued(&self, merge: Merge, is: impl Fn(&Life) -> bool) -> Option<Traced> {
        self.all_queued(merge, is).first().copied()
    }

    /// Queued requests in the order in which the kernel finds them.
    fn all_queued(&self, merge: Merge, is: impl Fn(&Life) -> bool) -> Vec<Traced> {
        let life = |rq: &Traced| &self.history.requests[*rq];
        let queued = self.live.iter().copied().filter(|rq| is_queued(life(rq)) && is(life(rq)));
        let mut queued: Vec<Traced> = queued.collect();
        queued.sort_by_key(|rq| {
            let ended = life(rq).ended;
            if self.era.scans_lists {
                return (false, u64::MAX - ended);
            }
            let order = if merge == Merge::Back { u64::MAX - ended } else { ended };
            (self.last_merge != Some(*rq), order)
        });
        queued
    }

    /// A queued request that something may have been merged into, perhaps of several.
    fn one_of(&mut self, merge: Merge, is: impl Fn(&Life) -> bool) -> Option<Traced> {
        let candidates = self.all_queued(merge, is);
        (!candidates.is_empty()).then(|| self.doubt(candidates))
    }

    /// One of several that a bio may have been merged into.
    fn doubt(&mut self, candidates: Vec<Traced>) -> Traced {
        let tried = self.second_thoughts.get(&self.records).copied().unwrap_or(0);
        let tried = tried.min(candidates.len() - 1);
        let chosen = candidates[tried];
        if candidates.len() > 1 {
            self.doubts.push(Doubt { record: self.records, candidates, tried });
        }
        chosen
    }

    /// A request was issued that nobody has: what was merged elsewhere than was thought?
    pub(super) fn think_again(&mut self, record: &Record) {
        let found = self.exchanged(record).or_else(|| self.doubtful_near(record));
        self.wrong = self.wrong.or(found);
    }

    /// A merge fits into nothing, because a request that it touches is full. So the last doubt that
    /// chose that request chose wrongly.
    fn think_of_full(&mut self, op: Op, touches: impl Fn(&Life) -> bool) {
        let is_full = |rq: Traced| {
            let life = &self.history.requests[rq];
            is_queued(life) && life.bio.op == op && touches(life)
        };
        let is_left = |doubt: &&Doubt| doubt.tried + 1 < doubt.candidates.len();
        let mut doubts = self.doubts.iter().rev().filter(is_left);
        let wrong = doubts.find(|doubt| is_full(doubt.candidates[doubt.tried]));
        self.wrong = self.wrong.or(wrong.map(|doubt| (doubt.record, doubt.tried + 1)));
    }

    /// The last doubt that explains a request by itself: with one of its candidates exchanged for
    /// the chosen one, either is what was issued. All that was merged behind the bio goes with it.
    fn exchanged(&self, record: &Record) -> Option<(u64, usize)> {
        let (first, end) = (record.sector, record.sector + sectors_of(record));
        let extent = |rq: Traced| {
            let life = &self.history.requests[rq];
            (life.sector, life.sector + life.sectors)
        };
        let is_out = |rq: Traced| !is_queued(&self.history.requests[rq]);
        self.doubts.iter().rev().find_map(|doubt| {
            let chosen = doubt.candidates[doubt.tried];
            let (start, stop) = extent(chosen);
            let is_it = |place: &usize| {
                let other = doubt.candidates[*place];
                let (other_start, other_stop) = extent(other);
                let explains =
                    (first, end) == (other_start, stop) || (first, end) == (start, other_stop);
                explains && *place != doubt.tried && !(is_out(chosen) || is_out(other))
            };
            let of_kind = self.history.requests[chosen].bio.op == op_of(record);
            let place = (0..doubt.candidates.len()).find(is_it).filter(|_| of_kind)?;
            Some((doubt.record, place))
        })
    }

    /// Else the last doubt about a request at the same place, of which not all was tried.
    fn doubtful_near(&self, record: &Record) -> Option<(u64, usize)> {
        let (first, end) = (record.sector, record.sector + sectors_of(record));
        let is_near = |rq: &Traced| {
            let life = &self.history.requests[*rq];
            is_queued(life)
                && life.bio.op == op_of(record)
                && life.sector <= end
                && life.sector + life.sectors >= first
        };
        let is_left = |doubt: &&Doubt| doubt.tried + 1 < doubt.candidates.len();
        let mut doubts = self.doubts.iter().rev().filter(is_left);
        let wrong = doubts.find(|doubt| doubt.candidates.iter().any(is_near))?;
        Some((wrong.record, wrong.tried + 1))
    }

    /// A record of a request that was appended to another; false if there are no two such.
    fn joined(&mut self, record: &Record) -> bool {
        let Some((into, victim)) = self.find_joined(record) else { return false };
        let arrives = self.history.requests[victim].state == State::Allocated;
        let runs = arrives.then(|| self.task(record).runs);
        self.step(record, victim, What::Join { into, runs });
        self.join(into, victim);
        self.history.requests[into].ended = self.records;
        self.last_merge = Some(into);
        self.just_merged = Some(Merged::Absorbed(into)).filter(|_| arrives);
        true
    }

    fn find_joined(&mut self, record: &Record) -> Option<(Traced, Traced)> {
        let (op, sectors) = (op_of(record), sectors_of(record));
        let is_named = |life: &Life| {
            life.bio.op == op && (life.sector, life.sectors) == (record.sector, sectors)
        };
        let ends = |life: &Life| {
            is_queued(life) && life.bio.op == op && life.sector + life.sectors == record.sector
        };
        let life = |rq: Traced| &self.history.requests[rq];
        match self.just_merged {
            Some(Merged::Behind(rq)) if ends(life(rq)) => {
                let next = |life: &Life| is_queued(life) && is_named(life);
                let ioprio = life(rq).bio.ioprio;
                let alike = |life: &Life| next(life) && life.bio.ioprio == ioprio;
                let found = self.find_queued(Merge::Front, alike);
                Some((rq, found.or_else(|| self.find_queued(Merge::Front, next))?))
            }
            Some(Merged::Before(rq)) if is_named(life(rq)) => {
                // The former one in the order of sectors, not of ends; those of another priority
                // are in another order.
                let former = self.live.iter().copied().filter(|rq| ends(life(*rq)));
                let ioprio = life(rq).bio.ioprio;
                let order = |rq: &Traced| (life(*rq).bio.ioprio == ioprio, life(*rq).sector, *rq);
                Some((former.max_by_key(order)?, rq))
            }
            Some(Merged::Absorbed(rq)) if is_named(life(rq)) => {
                Some((self.absorber_of(rq, ends)?, rq))
            }
            _ => {
                let arrives = |life: &Life| life.state == State::Allocated && is_named(life);
                let queued = || self.find_queued(Merge::Front, is_named);
                let joins = self.find_oldest(arrives).or_else(queued)?;
                Some((self.absorber_of(joins, ends)?, joins))
            }
        }
    }

    /// The request that a request is appended to: of those that end where it begins, one of its
    /// priority.
    fn absorber_of(&mut self, rq: Traced, ends: impl Fn(&Life) -> bool) -> Option<Traced> {
        let ioprio = self.history.requests[rq].bio.ioprio;
        let alike = self.one_of(Merge::Back, |life| ends(life) && life.bio.ioprio == ioprio);
        alike.or_else(|| self.one_of(Merge::Back, ends))
    }

    /// Makes the second request part of the first.
    pub(super) fn join(&mut self, into: Traced, victim: Traced) {
        let sectors = self.history.requests[victim].sectors;
        self.history.requests[into].sectors += sectors;
        let life = &mut self.history.requests[victim];
        life.joined = Some(into);
        life.state = State::Gone;
        self.live.remove(&victim);
        self.last_merge = self.last_merge.filter(|last| *last != victim);
    }
}

#[cfg(test)]
mod tests {
    use super::super::History;
    use super::super::made_up::{ERA, event, history as read, history_of};
    use super::*;
    use trace::blktrace::Action::{self, BackMerge, Complete, GetRequest, Insert, Issue, Queue};
    use trace::blktrace::Categories;

    fn history(events: &[(Action, u64, u32)]) -> History {
        let written =
            |&(action, sector, sectors): &_| event(action, sector, sectors).with(Categories::WRITE);
        read(events.iter().map(written))
    }

    fn queued(sector: u64, sectors: u32) -> [(Action, u64, u32); 3] {
        [Queue, GetRequest, Insert].map(|action| (action, sector, sectors))
    }

    /// Of two that end at 64 the newer is large, and the kernel takes the older.
    fn two() -> Vec<(Action, u64, u32)> {
        [queued(56, 8), queued(0, 64)].concat()
    }

    #[test]
    fn a_request_that_is_issued_as_it_was_has_absorbed_nothing() {
        let join = [(Queue, 64, 8), (GetRequest, 64, 8), (BackMerge, 64, 8)];
        let issues = [(Issue, 0, 64), (Issue, 56, 16)];
        let history = history(&[&two()[..], &join, &issues].concat());
        assert_eq!(history.unmatched, 0);
        let into = |step: &super::super::Step| match step.what {
            What::Join { into, .. } => Some(into),
            _ => None,
        };
        assert_eq!(history.steps.iter().find_map(into), Some(0));
    }

    #[test]
    fn what_was_merged_behind_a_bio_goes_with_it() {
        let merges = [(Queue, 64, 8), (BackMerge, 64, 8), (Queue, 72, 8), (BackMerge, 72, 8)];
        let issues = [(Issue, 56, 24), (Issue, 0, 64)];
        let history = history(&[&two()[..], &merges, &issues].concat());
        assert_eq!(history.unmatched, 0);
        assert_eq!(history.requests[0].sectors, base::Sectors(24));
    }

    #[test]
    fn a_task_that_is_interrupted_has_not_slept() {
        let waits = |history: &History| {
            let mut steps = history.steps.iter();
            steps.any(|step| matches!(step.what, What::Starve))
        };
        // What is completed is completed while task 7 runs, as all here.
        let other = [queued(0, 8).to_vec(), vec![(Issue, 0, 8)]].concat();
        let interrupted = [(Queue, 64, 8), (Complete, 0, 8), (GetRequest, 64, 8)];
        assert!(!waits(&history(&[&other[..], &interrupted].concat())));
        let slept = [(Queue, 64, 8), (Issue, 0, 8), (GetRequest, 64, 8)];
        assert!(waits(&history(&[&queued(0, 8)[..], &slept].concat())));
    }

    #[test]
    fn of_several_doubts_the_one_is_thought_over_that_explains_what_was_issued() {
        // A later doubt nearby, which was right.
        let later = [queued(72, 8), queued(76, 4)].concat();
        let merges = [(Queue, 64, 8), (BackMerge, 64, 8)];
        let other = [(Queue, 80, 8), (BackMerge, 80, 8)];
        let issues = [(Issue, 0, 64), (Issue, 56, 16), (Issue, 76, 12), (Issue, 72, 8)];
        let history = history(&[&two()[..], &merges, &later, &other, &issues].concat());
        assert_eq!(history.unmatched, 0);
    }

    /// What requests are issued, where none is larger than 64 sectors; of the one that is merged
    /// into, 48 are held by its task, and 40 queued by another.
    fn issued(usual: u32, issues: &[(Action, u64, u32)]) -> u64 {
        let era = super::super::Era { largest: Sectors(64), usual: Sectors(usual), ..ERA };
        let other = [Queue, GetRequest, Insert].map(|it| (it, 24, 40, 8));
        let held = [(Queue, 16, 48, 7), (GetRequest, 16, 48, 7)];
        let merged = [(Queue, 64, 16, 7), (BackMerge, 64, 16, 7)];
        let ends = [(Insert, 16, 48, 7), (Insert, 16, 64, 7)];
        let end = ends[usize::from(issues[0].2 == 64)];
        let rest = issues.iter().map(|&(action, sector, sectors)| (action, sector, sectors, 7));
        let all = [&other[..], &held, &merged, &[end]].concat().into_iter().chain(rest);
        let events = all.map(|(action, sector, sectors, pid)| {
            let event = event(action, sector, sectors).with(Categories::WRITE);
            Record { pid, ..event }
        });
        history_of(era, Vec::new(), events).unmatched
    }

    #[test]
    fn what_does_not_fit_into_what_a_task_holds_goes_to_a_queued_request() {
        assert_eq!(issued(64, &[(Issue, 16, 64), (Issue, 24, 40)]), 0);
        // With a segment for each page the one that is held would have too many.
        assert_eq!(issued(56, &[(Issue, 16, 48), (Issue, 24, 56)]), 0);
    }
}
