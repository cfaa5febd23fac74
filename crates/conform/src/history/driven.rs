//! How many requests the driver had, as CFQ says whenever it gives it one: so many of those that
//! have no completion had ended by then, and so many had not.

use super::mend::End;
use base::{Duration, Instant};
use std::collections::BTreeSet;

/// What ended was told of so long before the next request goes to the driver (measured in the
/// recordings of 4.19.79: from a completion to the next activation).
const TELLING: Duration = Duration::from_micros(5);
/// So many ends are looked back at (assumed: more than a driver has).
const LOOK_BACK: usize = 64;

/// Requests in the driver, of some of which the end is not certain.
pub(super) struct InDriver<'a> {
    ends: &'a mut [End],
    issues: Vec<Instant>,
    done: Vec<Instant>,
    /// Places of uncertain ends: of what was issued and has not ended, by issue; and by end.
    open: BTreeSet<(Instant, usize)>,
    ending: BTreeSet<(Instant, usize)>,
    /// Of those that have ended, the last ones.
    ended: Vec<usize>,
    /// How many have.
    count: usize,
    moved: BTreeSet<usize>,
}

impl<'a> InDriver<'a> {
    /// Of requests that were issued then, were done then, or ended some time.
    pub fn new(ends: &'a mut [End], issues: Vec<Instant>, done: Vec<Instant>) -> InDriver<'a> {
        ends.sort_by_key(|end| (end.issued, end.rq));
        InDriver {
            ends,
            issues,
            done,
            open: BTreeSet::new(),
            ending: BTreeSet::new(),
            ended: Vec::new(),
            count: 0,
            moved: BTreeSet::new(),
        }
    }

    /// Moves ends so that the driver has as many requests as was said; how many.
    pub fn follow(mut self, said: &[(Instant, usize)]) -> u64 {
        let (mut issued, mut done, mut next) = (0, 0, 0);
        for (at, count) in said {
            issued += self.issues[issued..].partition_point(|it| it < at);
            done += self.done[done..].partition_point(|it| it <= at);
            while let Some(end) = self.ends.get(next).filter(|end| end.issued < *at) {
                self.open.insert((end.issued, next));
                self.ending.insert((end.at, next));
                next += 1;
            }
            while let Some((_, place)) = self.ending.first().copied().filter(|it| it.0 <= *at) {
                self.end(place);
            }
            let has = issued.saturating_sub(done + self.count);
            for _ in count.saturating_sub(1)..has {
                self.end_oldest(*at);
            }
            for _ in has..count.saturating_sub(1) {
                self.revive(*at);
            }
        }
        self.moved.len() as u64
    }

    fn end(&mut self, place: usize) {
        let end = self.ends[place];
        self.ending.remove(&(end.at, place));
        self.open.remove(&(end.issued, place));
        self.ended.push(place);
        self.count += 1;
        if self.ended.len() > 2 * LOOK_BACK {
            self.ended.drain(..LOOK_BACK);
        }
    }

    /// One more has ended: the oldest, most likely.
    fn end_oldest(&mut self, now: Instant) {
        let Some((issued, place)) = self.open.first().copied() else { return };
        let former = self.ends[place].at;
        self.ending.remove(&(former, place));
        let at = Instant::from_nanos(now.as_nanos().saturating_sub(TELLING.as_nanos()));
        self.ends[place].at = at.max(issued);
        self.moved.insert(place);
        self.end(place);
    }

    /// One has not ended yet: the last of those that may still go on.
    fn revive(&mut self, now: Instant) {
        let may_go_on = |place: &usize| self.ends[*place].latest.is_none_or(|latest| latest > now);
        let Some(index) = self.ended.iter().rposition(may_go_on) else { return };
        let place = self.ended.remove(index);
        let end = &mut self.ends[place];
        let usual = end.at.saturating_since(end.issued);
        end.at = end.latest.map_or(now + usual, |latest| latest.min(now + usual));
        let end = *end;
        self.moved.insert(place);
        self.count -= 1;
        self.open.insert((end.issued, place));
        self.ending.insert((end.at, place));
    }
}
