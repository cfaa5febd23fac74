//! For whom the disk was held idle, and who waited meanwhile.
//!
//! A *pause* is the time from a command's end to the next command's start in which the scheduler
//! withholds requests for one reason. Whoever has requests that the disk was not given waits for
//! all of it, so the times of several who wait in the same pause add up to more than the pause.

use base::{Duration, Side};
use block::request::Request;
use block::{ContextId, HoldReason, RequestId};
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

/// What is added up.
type Key = (&'static str, Option<ContextId>, ContextId);

/// Adds up pauses as they pass.
#[derive(Default)]
pub struct Pauses {
    /// Who allocated a request that the disk does not have.
    owners: Side<Request, ContextId>,
    /// How many such requests each of them has.
    waiting: BTreeMap<ContextId, u32>,
    totals: BTreeMap<Key, (Duration, u64, u64)>,
    /// The number of this pause.
    pause: u64,
}

impl Pauses {
    /// A request was allocated.
    pub fn begins(&mut self, rq: RequestId, owner: ContextId) {
        self.ends(rq);
        self.owners.set(rq, owner);
        *self.waiting.entry(owner).or_default() += 1;
    }

    /// A request went to the disk, into another one, or away.
    pub fn ends(&mut self, rq: RequestId) {
        let Some(owner) = self.owners.take(rq) else { return };
        let count = self.waiting.get_mut(&owner).expect("who owns one has some");
        *count -= 1;
        if *count == 0 {
            self.waiting.remove(&owner);
        }
    }

    /// A command went to the disk: what comes is another pause.
    pub fn next(&mut self) {
        self.pause += 1;
    }

    /// Time has passed in which the disk was held.
    pub fn pass(&mut self, hold: Hold, passed: Duration) {
        for waiting in self.waiting.keys() {
            let key = (hold.reason.name(), hold.waits_for, *waiting);
            let (time, times, last) =
                self.totals.entry(key).or_insert((Duration::ZERO, 0, u64::MAX));
            *time += passed;
            if *last != self.pause {
                *last = self.pause;
                *times += 1;
            }
        }
    }

    /// The totals by name, the longest first.
    pub fn finish(self, name: impl Fn(ContextId) -> String) -> Vec<HeldFor> {
        let mut named: BTreeMap<(&'static str, Option<String>, String), (Duration, u64)> =
            BTreeMap::new();
        for ((reason, waited_for, waiting), (time, times, _)) in self.totals {
            let key = (reason, waited_for.map(&name), name(waiting));
            let total = named.entry(key).or_default();
            total.0 += time;
            total.1 += times;
        }
        let total = |((reason, waited_for, waiting), (time, times))| HeldFor {
            reason,
            waited_for,
            waiting,
            time,
            times,
        };
        let mut all: Vec<HeldFor> = named.into_iter().map(total).collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.time));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_who_has_a_request_waits_for_the_whole_pause() {
        let rq = |number: u64| RequestId::from_bits(1 << 32 | number);
        let task = ContextId;
        let hold = Hold { reason: HoldReason::ProcessIdles, waits_for: Some(task(7)) };
        let micros = Duration::from_micros;
        let mut pauses = Pauses::default();
        pauses.begins(rq(1), task(1));
        pauses.begins(rq(2), task(1));
        pauses.pass(hold, micros(3));
        pauses.begins(rq(3), task(2));
        pauses.pass(hold, micros(5));
        pauses.ends(rq(1));
        pauses.ends(rq(2));
        pauses.next();
        pauses.pass(hold, micros(1));
        let totals = pauses.finish(|it| it.0.to_string());
        let seen: Vec<_> =
            totals.iter().map(|it| (it.waiting.as_str(), it.time, it.times)).collect();
        assert_eq!(seen, [("1", micros(8), 1), ("2", micros(6), 2)]);
        assert!(totals.iter().all(|it| it.waited_for.as_deref() == Some("7")));
        assert!(totals.iter().all(|it| it.reason == "process_idles"));
    }
}
