//! Which issues and completions of a recording belong to each other, before anything else is known.
//!
//! A completion belongs to the issue of the same place that was last: a place is seldom used again
//! before it was done with. Where several are under way, only their number counts.

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
    /// What was last completed on a CPU without an issue.
    unnamed: BTreeMap<u32, usize>,
}

/// So many issues or completions from the beginning or the end, a request may have been under way
/// then (assumed: several times what a device takes).
const UNDER_WAY: usize = 128;
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
                    last_of(&mut open, key);
                }
                Action::Complete => match last_of(&mut open, key) {
                    Some(issue) => {
                        pairs.completions.push(place);
                        let issued = &records[issue];
                        // A large request may be completed in parts.
                        let end = record.sector + Sectors(record.bytes / Sector::SIZE as u32);
                        let all = issued.sector + Sectors(issued.bytes / Sector::SIZE as u32);
                        if end < all {
                            open.entry((key.0, end)).or_default().push(issue);
                        }
                    }
                    None => {
                        pairs.beginless.insert(place, None);
                        pairs.unnamed.insert(record.cpu, place);
                    }
                },
                _ => {}
            }
        }
        pairs.endless = open.into_values().flatten().collect();
        pairs
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

/// Takes the last issue of a place.
fn last_of(open: &mut BTreeMap<(Op, Sector), Vec<usize>>, key: (Op, Sector)) -> Option<usize> {
    let places = open.get_mut(&key)?;
    let last = places.pop();
    if places.is_empty() {
        open.remove(&key);
    }
    last
}

/// The number in the name of the queue that a message of CFQ says this of.
pub(super) fn owner(text: &[u8], what: &str) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    let named = text.strip_prefix("cfq").filter(|it| it.contains(what))?;
    named.split(['S', 'A']).next()?.parse().ok()
}
