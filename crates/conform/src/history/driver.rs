//! What became of requests at the driver: issued, given back, completed.
//!
//! A request that is larger when it is issued than when it was inserted was joined with others in
//! between, on kernels that trace no joins.

use super::{Historian, Life, State, Step, Traced, What, is_same, op_of, sectors_of};
use base::Sectors;
use trace::blktrace::{Categories, Record};

impl Historian<'_> {
    pub(super) fn issued(&mut self, record: &Record) {
        if record.bytes == 0 {
            self.flush_issued(record);
            return;
        }
        let ranked = [State::Requeued, State::Inserted, State::Offered, State::Allocated];
        let exact = ranked.iter().find_map(|state| {
            let is_it = |life: &Life| life.state == *state && is_same(life, record);
            // An older one may be there still because its issue is missing.
            if self.mends() { self.find(is_it) } else { self.find_oldest(is_it) }
        });
        let found = match exact {
            None if !self.era.joins_are_traced => self.issued_after_joins(record),
            exact => exact,
        };
        let rq = match found {
            Some(rq) => rq,
            None if self.mends() => self.issue_unseen(record),
            None => {
                self.think_again(record);
                self.unmatched(record);
                return;
            }
        };
        if self.history.requests[rq].state == State::Allocated {
            self.offer_held(record, rq);
        }
        if self.mends() && !self.history.requests[rq].bio.needs_flush_machinery() {
            self.insert_unseen(record, rq);
        }
        let life = &mut self.history.requests[rq];
        if life.state == State::Allocated {
            life.bypasses = true;
        }
        life.state = State::Issued;
        life.issued = record.time;
        life.done = 0;
        self.last_merge = self.last_merge.filter(|last| *last != rq);
        self.step(record, rq, What::Issue);
        self.note_end(rq);
    }

    /// An empty flush goes around the scheduler, but takes one of the driver's places. It carries
    /// the bit of a read; the bio for which it is done is an empty write, and takes none.
    fn flush_issued(&mut self, record: &Record) {
        if self.mends() || record.categories.contains(Categories::WRITE) {
            return;
        }
        let bio = self.bio(record);
        let rq = self.enter(bio, State::Issued);
        self.history.requests[rq].bypasses = true;
        self.step(record, rq, What::Issue);
    }

    fn flush_completed(&mut self, record: &Record) {
        if record.categories.contains(Categories::WRITE) {
            if let Some(since) = self.flushes.pop_front() {
                let (at, what) = (record.time, What::Flushed(since));
                let task = self.context(record.pid);
                self.history.steps.push(Step { at, task, rq: 0, what });
            }
            return;
        }
        let is_it =
            |life: &Life| life.state == State::Issued && life.bypasses && life.sectors.0 == 0;
        if let Some(rq) = self.find_oldest(is_it) {
            self.history.requests[rq].state = State::Gone;
            self.live.remove(&rq);
            self.step(record, rq, What::Complete);
        }
    }

    /// A task gives the driver what it held, and no record tells. Where the newest goes first, that
    /// is all it held up to this one.
    fn offer_held(&mut self, record: &Record, rq: Traced) {
        if !self.era.issues_newest_first {
            return self.offer(record, rq, 1);
        }
        let context = self.history.requests[rq].bio.origin.context;
        let held = self.live.range(..=rq).copied().filter(|held| {
            let life = &self.history.requests[*held];
            life.state == State::Allocated && life.bio.origin.context == context
        });
        let held: Vec<Traced> = held.collect();
        for one in &held {
            self.offer(record, *one, held.len() as u32);
        }
    }

    /// An issued request that is larger than any that was inserted: several were joined.
    fn issued_after_joins(&mut self, record: &Record) -> Option<Traced> {
        let (op, sectors) = (op_of(record), sectors_of(record));
        let candidate = |life: &Life| {
            matches!(life.state, State::Inserted | State::Allocated) && life.bio.op == op
        };
        let first = self.find_oldest(|life| {
            candidate(life) && life.sector == record.sector && life.sectors < sectors
        })?;
        let mut parts = Vec::new();
        let mut end = self.history.requests[first].sector + self.history.requests[first].sectors;
        let wanted = record.sector + sectors;
        while end < wanted {
            let next = self.find_oldest(|life| {
                candidate(life) && life.sector == end && life.sector + life.sectors <= wanted
            })?;
            end = end + self.history.requests[next].sectors;
            parts.push(next);
        }
        for part in parts {
            let life = &self.history.requests[part];
            if let (State::Allocated, Some((at, before))) = (life.state, life.flushed) {
                let what = What::Insert { joins: true, runs: true };
                let task = life.bio.origin.context;
                self.late.push((before, Step { at, task, rq: part, what }));
            }
            self.join(first, part);
        }
        Some(first)
    }

    pub(super) fn requeued(&mut self, record: &Record) {
        let found = self.find(|life| life.state == State::Issued && is_same(life, record));
        let Some(rq) = found else {
            self.unmatched(record);
            return;
        };
        self.history.requests[rq].state = State::Requeued;
        self.step(record, rq, What::Requeue);
    }

    /// A completion; of a large request it may come in parts, and an empty one ends a flush
    /// sequence.
    pub(super) fn completed(&mut self, record: &Record) {
        if record.bytes == 0 {
            self.flush_completed(record);
            return;
        }
        let (op, sectors) = (op_of(record), sectors_of(record));
        let goes_on = |life: &Life| {
            life.state == State::Issued
                && life.bio.op == op
                && life.sector + Sectors(life.done) == record.sector
        };
        // Of several at one place it is the one that ends with it, and no part of a longer one.
        let ends = |life: &Life| goes_on(life) && life.done + sectors.0 == life.sectors.0;
        let accepted = self.disk.complete(op, record.sector.0, sectors.0);
        // The driver gives it to the disk as soon as it is issued.
        let fits = |life: &Life| ends(life) && accepted.is_some_and(|at| life.issued <= at);
        let known = self.live.iter().copied().filter(|rq| fits(&self.history.requests[*rq]));
        let known = known.max_by_key(|rq| self.history.requests[*rq].issued);
        let found = known.or_else(|| self.find_oldest(ends));
        let Some(rq) = found.or_else(|| self.find_oldest(goes_on)) else {
            match self.mends() {
                true => self.complete_unseen(record),
                false => self.unmatched(record),
            }
            return;
        };
        let life = &mut self.history.requests[rq];
        life.done += sectors.0;
        if life.done >= life.sectors.0 {
            life.state = State::Gone;
            self.completed = Some(rq);
            self.live.remove(&rq);
            self.step(record, rq, What::Complete);
            if self.live.is_empty() {
                self.first_quiet.get_or_insert(record.time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::History;
    use super::super::made_up::{ERA, event, history as read, history_of};
    use super::*;
    use base::{Duration, Instant, Sector};
    use lab::recording::DiskCommand;
    use trace::blktrace::Action::{self, Complete, GetRequest, Insert, Issue, Queue};
    use trace::blktrace::Payload;

    fn history(events: &[(Action, u64, u32, Categories)]) -> History {
        read(
            events
                .iter()
                .map(|&(action, sector, sectors, what)| event(action, sector, sectors).with(what)),
        )
    }

    #[test]
    fn an_empty_flush_takes_a_place_in_the_driver_until_it_is_done() {
        let (flush, bio) = (Categories::FLUSH, Categories::WRITE);
        let ends = [(Complete, 0, 0, flush), (Complete, 0, 0, bio)];
        let history = history(&[&[(Issue, 0, 0, flush)], &ends[..]].concat());
        assert!(history.requests[0].bypasses);
        assert!(matches!(history.steps[0].what, What::Issue));
        assert!(matches!(history.steps[1].what, What::Complete));
        assert_eq!(history.steps.len(), 2, "its bio took none");
    }

    #[test]
    fn a_list_that_was_not_issued_to_its_end_ends_no_plug() {
        let runs = |actions: &[Action]| {
            let record = |&action: &Action| match action {
                Action::Unplug => Record { payload: Payload::Unplug(1), ..event(action, 0, 0) },
                Issue | Action::Plug => event(action, 0, 8),
                _ => event(action, 64, 8),
            };
            let first = [Queue, GetRequest, Insert].map(|it| event(it, 0, 8));
            let history = read(first.into_iter().chain(actions.iter().map(record)));
            let mut steps = history.steps.iter().rev();
            steps.find_map(|step| match step.what {
                What::Insert { runs, .. } => Some(runs),
                _ => None,
            })
        };
        // The task finds no tag and runs the queue.
        let list = [Queue, Issue, Action::Unplug, GetRequest, Insert];
        assert_eq!(runs(&list), Some(false));
        let plug = [Issue, Queue, GetRequest, Action::Plug, Action::Unplug, Insert];
        assert_eq!(runs(&plug), Some(true));
    }

    #[test]
    fn of_two_at_one_place_the_one_is_done_that_is_as_long() {
        let [short, long] = [8, 16].map(|sectors| {
            [Queue, GetRequest, Insert, Issue].map(|action| (action, 64, sectors, Categories::READ))
        });
        let ends = [8, 16].map(|sectors| (Complete, 64, sectors, Categories::READ));
        let done = |order: [&[_]; 3]| {
            let history = history(&order.concat());
            let steps = history.steps.iter();
            let ends = steps.filter(|step| matches!(step.what, What::Complete));
            ends.map(|step| history.requests[step.rq].sectors.0).collect::<Vec<_>>()
        };
        assert_eq!(done([&long, &short, &ends]), [8, 16]);
        let parts = [(Complete, 64, 8, Categories::READ), (Complete, 72, 8, Categories::READ)];
        assert_eq!(done([&long, &[], &parts]), [16], "it may come in parts");
    }

    #[test]
    fn the_log_of_the_disk_tells_which_of_two_that_look_the_same_is_done() {
        let request = [Queue, GetRequest, Insert, Issue].map(|it| event(it, 64, 8));
        let events = request.iter().chain(&request).cloned().chain([event(Complete, 64, 8)]);
        let command = |accepted, completed| DiskCommand {
            accepted: Instant::ZERO + Duration::from_micros(accepted),
            completed: Instant::ZERO + Duration::from_micros(completed),
            op: block::Op::Read,
            sector: Sector(64),
            sectors: Sectors(8),
        };
        let done = |disk| {
            let history = history_of(ERA, disk, events.clone());
            history.steps.last().map(|step| step.rq)
        };
        assert_eq!(done(vec![command(3, 8), command(7, 9)]), Some(0));
        assert_eq!(done(vec![command(3, 9), command(7, 8)]), Some(1), "the later one was faster");
        assert_eq!(done(Vec::new()), Some(0), "nobody knows");
    }
}
