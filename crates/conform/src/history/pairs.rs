//! Which issues and completions of a recording belong to each other, before anything else is known.
//!
//! A completion belongs to the issue of the same place that was last: a place is seldom used again
//! before it was done with. Where several are under way, it belongs to one of its own length.

use super::op_of;
use base::{Sector, Sectors};
use block::Op;
use std::collections::{BTreeMap, BTreeSet};
use trace::blktrace::{Action, Payload, Record};

/// Issues without a completion, and completions without an issue.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// Places of issues among the records.
    pub endless: BTreeSet<usize>,
    /// Places of completions, and whose requests they were, where the scheduler says so.
    pub beginless: BTreeMap<usize, Option<u32>>,
    issues: Vec<usize>,
    completions: Vec<usize>,
    /// Issues, and their completions.
    both: Vec<(usize, usize)>,
    /// What was last completed on a CPU without an issue.
    unnamed: BTreeMap<u32, usize>,
}

/// So many issues or completions from the beginning or the end, a request may have been under way
/// then (assumed: several times what a device takes).
const UNDER_WAY: usize = 128;
/// So many of a hundred requests take as long as requests take (assumed).
const MOST: usize = 95;
/// So many times as long none of them does (assumed: more than a drive lets any wait).
const MUCH_LONGER: u64 = 20;
/// So few that do not fit spoil nothing (assumed: a recording of a real kernel has one).
const FEW: usize = 3;

impl Pairs {
    pub fn of(records: &[Record]) -> Pairs {
        let mut pairs = Pairs::default();
        let mut open: BTreeMap<(Op, Sector), Vec<usize>> = BTreeMap::new();
        for (place, record) in records.iter().enumerate() {
            let key = (op_of(record), record.sector);
            match record.action {
                Action::NoteMessage => pairs.take_message(record),
                _ if record.bytes == 0 => {}
                Action::Issue => {
                    pairs.issues.push(place);
                    open.entry(key).or_default().push(place);
                }
                Action::Requeue => {
                    last_of(&mut open, key, |issue| records[issue].bytes == record.bytes);
                }
                Action::Complete => {
                    match last_of(&mut open, key, |issue| end_of(&records[issue]) == end_of(record))
                    {
                        Some(issue) => {
                            pairs.completions.push(place);
                            pairs.both.push((issue, place));
                            // A large request may be completed in parts.
                            let end = end_of(record);
                            if end < end_of(&records[issue]) {
                                open.entry((key.0, end)).or_default().push(issue);
                            }
                        }
                        None => {
                            pairs.beginless.insert(place, None);
                            pairs.unnamed.insert(record.cpu, place);
                        }
                    }
                }
                _ => {}
            }
        }
        pairs.endless = open.into_values().flatten().collect();
        pairs
    }

    /// In a recording that lacks events a completion may be that of a later use of the place. So it
    /// is if the request would have taken much longer than others.
    pub fn part(&mut self, records: &[Record]) {
        let took = |both: &(usize, usize)| {
            let (issue, completion) = (&records[both.0], &records[both.1]);
            completion.time.saturating_since(issue.time).as_nanos()
        };
        let mut all: Vec<u64> = self.both.iter().map(took).collect();
        let most = all.len() * MOST / 100;
        if most < all.len() {
            let usual = (*all.select_nth_unstable(most).1).max(1);
            let is_later = |both: &mut (usize, usize)| took(both) / MUCH_LONGER > usual;
            for (issue, completion) in self.both.extract_if(.., is_later) {
                self.endless.insert(issue);
                self.beginless.insert(completion, named_after(records, completion));
            }
        }
        self.both.sort_unstable();
    }

    /// In whose queue the scheduler says the request was that was issued there, when it ended.
    pub fn named(&self, records: &[Record], issue: usize) -> Option<u32> {
        named_after(records, self.completion(issue)?)
    }

    /// The completion of what was issued there.
    pub fn completion(&self, issue: usize) -> Option<usize> {
        let index = self.both.binary_search_by_key(&issue, |both| both.0).ok()?;
        Some(self.both[index].1)
    }

    /// The scheduler says whose request was completed just before, on the same CPU.
    fn take_message(&mut self, record: &Record) {
        let Some(place) = self.unnamed.remove(&record.cpu) else { return };
        if let Payload::Message(text) = &record.payload {
            self.beginless.insert(place, owner(text, "complete rqnoidle"));
        }
    }

    /// Whether more is missing than what was under way at the beginning and the end.
    pub fn are_torn(&self) -> bool {
        let behind = self.completions.len().checked_sub(UNDER_WAY);
        let until = behind.map_or(0, |place| self.completions[place]);
        let since = self.issues.get(UNDER_WAY).copied().unwrap_or(usize::MAX);
        self.endless.len() > UNDER_WAY
            || self.endless.range(..until).count() > FEW
            || self.beginless.range(since..).count() > FEW
    }
}

/// Whose request the scheduler says was completed there, on the same CPU.
fn named_after(records: &[Record], completion: usize) -> Option<u32> {
    let cpu = records[completion].cpu;
    let mut after = records[completion + 1..].iter().take(UNDER_WAY).filter(|it| it.cpu == cpu);
    match &after.next()?.payload {
        Payload::Message(text) => owner(text, "complete rqnoidle"),
        _ => None,
    }
}

/// Where a request ends.
fn end_of(record: &Record) -> Sector {
    record.sector + Sectors(record.bytes / Sector::SIZE as u32)
}

/// Takes the last issue of a place that fits, or the last one.
fn last_of(
    open: &mut BTreeMap<(Op, Sector), Vec<usize>>,
    key: (Op, Sector),
    fits: impl Fn(usize) -> bool,
) -> Option<usize> {
    let places = open.get_mut(&key)?;
    let last = places.len().checked_sub(1)?;
    let issue = places.remove(places.iter().rposition(|issue| fits(*issue)).unwrap_or(last));
    if places.is_empty() {
        open.remove(&key);
    }
    Some(issue)
}

/// The number in the name of the queue that a message of CFQ says this of: whole words.
pub(super) fn owner(text: &[u8], what: &str) -> Option<u32> {
    let named = text.strip_prefix(b"cfq")?;
    let (name, said) = named.split_at(named.iter().position(|it| *it == b' ')?);
    // Some kernels name the group as well.
    let mut words = said.split(|it| *it == b' ').filter(|it| !it.is_empty() && it[0] != b'/');
    if !what.split(' ').all(|word| words.next() == Some(word.as_bytes())) {
        return None;
    }
    let digits = name.iter().take_while(|it| it.is_ascii_digit()).count();
    std::str::from_utf8(&name[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Duration, Instant};
    use trace::blktrace::{Categories, DevT};

    fn record(micros: u64, action: Action, sector: u64) -> Record {
        Record {
            time: Instant::ZERO + Duration::from_micros(micros),
            sequence: 0,
            sector: Sector(sector),
            bytes: 4096,
            action,
            categories: Categories::READ,
            pid: 7,
            device: DevT::default(),
            cpu: 0,
            error: 0,
            cgroup: None,
            payload: Payload::None,
        }
    }

    #[test]
    fn of_several_at_one_place_that_one_ends_which_is_as_long() {
        let long = |record: Record| Record { bytes: 8192, ..record };
        let records = [
            record(0, Action::Issue, 8),
            long(record(1, Action::Issue, 8)),
            record(2, Action::Complete, 8),
            long(record(3, Action::Complete, 8)),
        ];
        let pairs = Pairs::of(&records);
        assert_eq!((pairs.completion(0), pairs.completion(1)), (Some(2), Some(3)));
        assert!(pairs.endless.is_empty() && pairs.beginless.is_empty());
    }

    #[test]
    fn a_place_that_is_used_again_has_another_completion() {
        let mut records = Vec::new();
        for number in 0..40 {
            records.push(record(100 * number, Action::Issue, 8 * number));
            // The third has no completion, and later the same place has no issue.
            if number != 2 {
                records.push(record(100 * number + 50, Action::Complete, 8 * number));
            }
        }
        records.push(record(9_000, Action::Complete, 16));
        let mut pairs = Pairs::of(&records);
        assert!(pairs.endless.is_empty() && pairs.beginless.is_empty());
        pairs.part(&records);
        assert_eq!(pairs.endless.iter().copied().collect::<Vec<_>>(), [4]);
        assert_eq!(pairs.beginless.keys().copied().collect::<Vec<_>>(), [records.len() - 1]);
        assert_eq!((pairs.completion(0), pairs.completion(4)), (Some(1), None));
    }
}
