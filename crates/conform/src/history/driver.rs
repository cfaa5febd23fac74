//! What became of requests at the driver: issued, given back, completed.
//!
//! A request that is larger when it is issued than when it was inserted was joined with others in
//! between, on kernels that trace no joins.

use super::{Historian, Life, State, Step, Traced, What, is_same, op_of, sectors_of};
use base::Sectors;
use trace::blktrace::Record;

impl Historian<'_> {
    pub(super) fn issued(&mut self, record: &Record) {
        if record.bytes == 0 {
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
        life.done = 0;
        self.last_merge = self.last_merge.filter(|last| *last != rq);
        self.step(record, rq, What::Issue);
        self.note_end(rq);
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
            return;
        }
        let op = op_of(record);
        let found = self.find_oldest(|life| {
            life.state == State::Issued
                && life.bio.op == op
                && life.sector + Sectors(life.done) == record.sector
        });
        let Some(rq) = found else {
            match self.mends() {
                true => self.complete_unseen(record),
                false => self.unmatched(record),
            }
            return;
        };
        let life = &mut self.history.requests[rq];
        life.done += sectors_of(record).0;
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
