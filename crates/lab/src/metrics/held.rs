//! For whom the disk was held idle, and who waited meanwhile.
//!
//! A *pause* is the time from a command's end to the next command's start in which the scheduler
//! withholds requests for one reason. Whoever has requests that the disk was not given waits for
//! all of it, so the times of several who wait in the same pause add up to more than the pause.
//! Tasks of one name wait as one: nobody waits longer than the pause is.

use base::Duration;
use block::{ContextId, HoldReason};
use serde::Serialize;
use std::collections::BTreeMap;

/// A total: one reason, one who was waited for, one who waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldFor {
    /// Why requests were withheld.
    pub reason: &'static str,
    /// Whose turn it was or who was waited for, if the scheduler had anybody in mind.
    pub waited_for: Option<String>,
    /// Whose requests were withheld.
    pub waiting: String,
    /// All pauses together.
    #[serde(rename = "held_ns")]
    pub time: Duration,
    /// How many there were.
    pub times: u64,
}

/// A scheduler's word for a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Why.
    pub reason: HoldReason,
    /// For whom.
    pub waits_for: Option<ContextId>,
}

/// The tasks of one name: the index of the name.
pub type Actor = usize;

/// What is added up.
type Key = (&'static str, Option<Actor>, Actor);

/// Adds up pauses as they pass.
#[derive(Default)]
pub struct Pauses {
    /// What those who wait or are waited for are called.
    names: Vec<String>,
    /// Their positions.
    numbers: BTreeMap<String, usize>,
    /// Who a context is, by its number.
    actors: Vec<Option<Actor>>,
    /// How many requests that the disk does not have each of them has allocated.
    waiting: Vec<u32>,
    totals: BTreeMap<Key, (Duration, u64, u64)>,
    /// The number of this pause.
    pause: u64,
}

impl Pauses {
    /// A context is called like this from now on.
    pub fn meet(&mut self, who: ContextId, name: &str) {
        let number = who.0 as usize;
        if number >= self.actors.len() {
            self.actors.resize(number + 1, None);
        }
        let next = self.names.len();
        let known = *self.numbers.entry(name.to_string()).or_insert(next);
        if known == next {
            self.names.push(name.to_string());
            self.waiting.push(0);
        }
        self.actors[number] = Some(known);
    }

    /// Who a context is; one that was never met has a name of its own.
    fn actor(&mut self, who: ContextId) -> Actor {
        if self.actors.get(who.0 as usize).copied().flatten().is_none() {
            self.meet(who, &format!("task {}", who.0));
        }
        self.actors[who.0 as usize].expect("it was just met")
    }

    /// A context has allocated a request; the answer is who waits for it.
    pub fn begins(&mut self, owner: ContextId) -> Actor {
        let owner = self.actor(owner);
        self.waiting[owner] += 1;
        owner
    }

    /// A request went to the disk, into another one, or away: who waited for it does not any more.
    pub fn ends(&mut self, owner: Actor) {
        self.waiting[owner] -= 1;
    }

    /// A command went to the disk: what comes is another pause.
    pub fn next(&mut self) {
        self.pause += 1;
    }

    /// Time has passed in which the disk was held.
    pub fn pass(&mut self, hold: Hold, passed: Duration) {
        let waits_for = hold.waits_for.map(|it| self.actor(it));
        let waiting = self.waiting.iter().enumerate().filter(|(_, count)| **count > 0);
        for (waiting, _) in waiting {
            let key = (hold.reason.name(), waits_for, waiting);
            let (time, times, last) =
                self.totals.entry(key).or_insert((Duration::ZERO, 0, u64::MAX));
            *time += passed;
            if *last != self.pause {
                *last = self.pause;
                *times += 1;
            }
        }
    }

    /// The totals, the longest first.
    pub fn finish(self) -> Vec<HeldFor> {
        let names = self.names;
        let total = |((reason, waited_for, waiting), (time, times, _)): (Key, _)| HeldFor {
            reason,
            waited_for: waited_for.map(|it| names[it].clone()),
            waiting: names[waiting].clone(),
            time,
            times,
        };
        let mut all: Vec<HeldFor> = self.totals.into_iter().map(total).collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.time));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_who_has_a_request_waits_for_the_whole_pause() {
        let task = ContextId;
        let hold = Hold { reason: HoldReason::ProcessIdles, waits_for: Some(task(7)) };
        let micros = Duration::from_micros;
        let mut pauses = Pauses::default();
        let first = pauses.begins(task(1));
        assert_eq!(pauses.begins(task(1)), first);
        pauses.pass(hold, micros(3));
        pauses.begins(task(2));
        pauses.pass(hold, micros(5));
        pauses.ends(first);
        pauses.ends(first);
        pauses.next();
        pauses.pass(hold, micros(1));
        let totals = pauses.finish();
        let seen: Vec<_> =
            totals.iter().map(|it| (it.waiting.as_str(), it.time, it.times)).collect();
        assert_eq!(seen, [("task 1", micros(8), 1), ("task 2", micros(6), 2)]);
        assert!(totals.iter().all(|it| it.waited_for.as_deref() == Some("task 7")));
        assert!(totals.iter().all(|it| it.reason == "process_idles"));
    }

    #[test]
    fn tasks_of_one_name_wait_as_one() {
        let hold = Hold { reason: HoldReason::ProcessIdles, waits_for: Some(ContextId(7)) };
        let mut pauses = Pauses::default();
        for number in 1..=4 {
            pauses.meet(ContextId(number), "r");
            pauses.begins(ContextId(number));
        }
        pauses.pass(hold, Duration::from_micros(5));
        let totals = pauses.finish();
        let seen: Vec<_> = totals.iter().map(|it| (it.waiting.as_str(), it.time)).collect();
        assert_eq!(seen, [("r", Duration::from_micros(5))]);
    }
}
