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

/// Turns, by a clock of the caller.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Who, by number, and since when.
    turns: VecDeque<(u32, u64)>,
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
        if let Some(last) = self.turns.back_mut() {
            if last.0 == number {
                return;
            }
            if last.1 == clock {
                last.0 = number;
                return;
            }
        }
        if self.turns.len() == REMEMBERED {
            self.turns.pop_front();
            self.forgotten += 1;
        }
        self.turns.push_back((number, clock));
    }

    /// The turn that is on.
    pub fn current(&self) -> u64 {
        (self.forgotten + self.turns.len() as u64).saturating_sub(1)
    }

    /// Nobody waits: what was before this turn matters no more.
    pub fn forget(&mut self) {
        while self.turns.len() > 1 {
            self.turns.pop_front();
            self.forgotten += 1;
        }
    }

    /// Adds to `others` who had how much of the time from `since`, which is in turn `first`, until
    /// `now`.
    pub fn between(&mut self, first: u64, since: u64, now: u64, others: &mut Others) {
        let begin = first.saturating_sub(self.forgotten) as usize;
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
        others.sort_unstable_by_key(|(who, time)| (std::cmp::Reverse(*time), *who));
        others.truncate(NAMED);
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
}
