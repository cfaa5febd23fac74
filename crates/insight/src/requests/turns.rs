//! Whose turn it was: who was chosen last, for how long, as far back as somebody waits.

use super::request::Others;
use super::tables::Numbers;
use base::Duration;
use block::ContextId;
use std::collections::VecDeque;

/// So many turns are remembered: of a request that more of them went before, the last ones count.
const REMEMBERED: usize = 4096;
/// So many of the others are named.
const NAMED: usize = 4;
/// Of so many tasks it is remembered what each had had when a turn began: two lines of a cache.
const FEW: usize = 16;

/// Turns, by a clock of the caller.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Who, by number, and since when.
    turns: VecDeque<(u32, u64)>,
    /// What each task had had when these began, while there are few.
    had: VecDeque<[u64; FEW]>,
    /// How many turns came before the first of these.
    forgotten: u64,
    numbers: Numbers,
    tasks: Vec<ContextId>,
    /// Times by number, and which of them are not zero; empty between calls.
    sums: Vec<u64>,
    touched: Vec<u32>,
}

impl Turns {
    /// Somebody is chosen.
    pub fn begins(&mut self, who: ContextId, clock: u64) {
        let next = self.tasks.len() as u32;
        let number = self.numbers.get_or(who.0, next);
        if number == next {
            self.tasks.push(who);
            self.sums.push(0);
        }
        let mut had = self.had.back().copied().unwrap_or_default();
        if let Some(last) = self.turns.back_mut() {
            if last.0 == number {
                return;
            }
            if last.1 == clock {
                last.0 = number;
                return;
            }
            if let Some(had) = had.get_mut(last.0 as usize) {
                *had += clock - last.1;
            }
        }
        if self.turns.len() == REMEMBERED {
            self.turns.pop_front();
            self.had.pop_front();
            self.forgotten += 1;
        }
        self.turns.push_back((number, clock));
        if self.tasks.len() <= FEW {
            self.had.push_back(had);
        }
    }

    /// The turn that is on.
    pub fn current(&self) -> u64 {
        (self.forgotten + self.turns.len() as u64).saturating_sub(1)
    }

    /// Nobody waits: what was before this turn matters no more.
    pub fn forget(&mut self) {
        let gone = self.turns.len().saturating_sub(1);
        self.turns.drain(..gone);
        self.had.drain(..gone.min(self.had.len()));
        self.forgotten += gone as u64;
    }

    /// Adds to `others` who had how much of the time from `since`, which is in turn `first`, until
    /// `now`.
    pub fn between(&mut self, first: u64, since: u64, now: u64, others: &mut Others) {
        let begin = first.saturating_sub(self.forgotten) as usize;
        match self.tasks.len() {
            0..=FEW => self.subtract(begin, since, now, others),
            _ => self.walk(begin, since, now, others),
        }
        others.sort_unstable_by_key(|(who, time)| (std::cmp::Reverse(*time), *who));
        others.truncate(NAMED);
    }

    /// What each had had until now, less what it had had before.
    fn subtract(&self, begin: usize, since: u64, now: u64, others: &mut Others) {
        let turn = |place: usize| Some((self.turns.get(place)?, self.had.get(place)?));
        let Some((first, before)) = turn(begin) else { return };
        let Some((last, until)) = turn(self.turns.len() - 1) else { return };
        let mut times = *until;
        times[last.0 as usize] += now - last.1;
        times[first.0 as usize] -= since.saturating_sub(first.1);
        for (who, (time, before)) in self.tasks.iter().zip(times.iter().zip(before)) {
            if time > before {
                others.push((*who, Duration::from_nanos(time - before)));
            }
        }
    }

    /// The same, turn by turn.
    fn walk(&mut self, begin: usize, since: u64, now: u64, others: &mut Others) {
        let mut until = now;
        for (number, start) in self.turns.range(begin.min(self.turns.len())..).rev() {
            let from = (*start).max(since);
            let time = until.saturating_sub(from);
            until = until.min(from);
            if time > 0 {
                let sum = &mut self.sums[*number as usize];
                if *sum == 0 {
                    self.touched.push(*number);
                }
                *sum += time;
            }
        }
        for number in self.touched.drain(..) {
            let time = std::mem::take(&mut self.sums[number as usize]);
            others.push((self.tasks[number as usize], Duration::from_nanos(time)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_to_whoever_was_chosen_last() {
        let mut turns = Turns::default();
        turns.begins(ContextId(1), 0);
        turns.begins(ContextId(2), 10);
        let (first, nanos) = (turns.current(), Duration::from_nanos);
        turns.begins(ContextId(3), 14);
        turns.begins(ContextId(3), 15);
        turns.begins(ContextId(2), 20);
        let between = |turns: &mut Turns, first, since, now| {
            let mut others = Others::new();
            turns.between(first, since, now, &mut others);
            others
        };
        let seen = between(&mut turns, first, 12, 21);
        assert_eq!(seen, [(ContextId(3), nanos(6)), (ContextId(2), nanos(3))]);
        turns.forget();
        let last = turns.current();
        assert_eq!(between(&mut turns, last, 20, 22), [(ContextId(2), nanos(2))]);
        assert_eq!(between(&mut turns, first, 12, 22), [(ContextId(2), nanos(2))]);
    }

    #[test]
    fn what_is_subtracted_is_what_a_walk_finds() {
        let mut turns = Turns::default();
        let mut clock = 0;
        for number in 0_u64..REMEMBERED as u64 + 500 {
            clock += number % 7;
            turns.begins(ContextId((number * number % 11) as u32), clock);
            let first = number.saturating_sub(number % 97).min(turns.current());
            let place = first.saturating_sub(turns.forgotten) as usize;
            let since = turns.turns[place].1;
            let (mut walked, mut subtracted) = (Others::new(), Others::new());
            turns.walk(place, since, clock + 3, &mut walked);
            turns.subtract(place, since, clock + 3, &mut subtracted);
            walked.sort_unstable();
            subtracted.sort_unstable();
            assert_eq!(subtracted, walked, "{number}");
            if number % 1000 == 999 {
                turns.forget();
            }
        }
    }
}
