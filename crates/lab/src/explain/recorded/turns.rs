//! Whether tasks take turns: who is held back while the disk waits for another, and who of the two
//! comes next.
//!
//! A request of A was withheld behind one of B. If B asks for nothing until A's request is done
//! (it is *quiet*), and comes again before A does (they are *in turn*), then B seems to have waited
//! for A. Two who do not know each other do so by chance now and then, and not nearly always: in
//! recordings of a real 4.19, never who thinks for longer than the disk is kept for it.

use super::arrives;
use super::calls::withheld;
use base::{Duration, Instant, Sector};
use block::{Action, ContextId, Event};
use insight::Life;
use std::collections::BTreeMap;

/// So many moments of a pair are kept.
const EXAMPLES: usize = 3;
/// What lies no farther apart is near: a megabyte.
const NEAR: u64 = 2048;

/// Requests of one task that were withheld behind another.
#[derive(Clone, Debug, Default)]
pub struct Pair {
    /// How many.
    pub count: u64,
    /// Of these, while how many the other asked for nothing.
    pub quiet: u64,
    /// Of these, behind how many the other came next.
    pub in_turn: u64,
    /// Of the quiet ones, how many began where the other's had ended, or near.
    pub near: u64,
    /// For how long all were withheld.
    pub held: Duration,
    /// The same of those in turn.
    pub held_in_turn: Duration,
    /// And of those that are near.
    pub held_near: Duration,
    /// When the first ones came.
    pub first: Vec<Instant>,
}

/// What was issued before a request.
#[derive(Clone, Copy, Debug)]
struct Before {
    who: ContextId,
    at: Instant,
    end: Sector,
}

/// A request that came behind one of another task.
#[derive(Clone, Copy, Debug)]
struct Episode {
    who: ContextId,
    before: Before,
    sector: Sector,
    /// The other asked for nothing until this was done.
    is_quiet: bool,
    /// Who of the two came next.
    next: Option<ContextId>,
    /// For how long it was withheld, and when it came.
    held: Option<(Duration, Instant)>,
}

/// Requests are told apart by when they were issued, and where.
type Key = (Instant, Sector);

#[derive(Default)]
pub(super) struct Watch {
    owners: BTreeMap<u64, (ContextId, Option<(Key, Before)>)>,
    last_arrival: BTreeMap<ContextId, Instant>,
    last: Option<Before>,
    episodes: BTreeMap<Key, Episode>,
    /// Those of which it is open who comes next, by who may.
    open: BTreeMap<ContextId, Vec<Key>>,
    pairs: BTreeMap<(ContextId, ContextId), Pair>,
}

impl Watch {
    pub fn see(&mut self, event: &Event) {
        if arrives(event) {
            self.arrives(event);
        }
        let Some(id) = event.request.map(block::RequestId::to_bits) else { return };
        match event.action {
            Action::GetRequest => drop(self.owners.insert(id, (event.context, None))),
            Action::Insert => drop(self.owners.entry(id).or_insert((event.context, None))),
            Action::Join { .. } => drop(self.owners.remove(&id)),
            Action::Issue if !event.sectors.is_zero() => self.issued(id, event),
            Action::Complete { .. } => self.completed(id),
            _ => {}
        }
    }

    fn arrives(&mut self, event: &Event) {
        self.last_arrival.insert(event.context, event.at);
        for key in self.open.remove(&event.context).unwrap_or_default() {
            if let Some(episode) = self.episodes.get_mut(&key) {
                episode.next.get_or_insert(event.context);
                self.close(key);
            }
        }
    }

    fn issued(&mut self, id: u64, event: &Event) {
        let owner = self.owners.entry(id).or_insert((event.context, None));
        let end = Sector(event.sector.0 + u64::from(event.sectors.0));
        let before = self.last.replace(Before { who: owner.0, at: event.at, end });
        owner.1 = before.map(|before| ((event.at, event.sector), before));
    }

    fn completed(&mut self, id: u64) {
        let Some((who, Some((key, before)))) = self.owners.remove(&id) else { return };
        let last = self.last_arrival.get(&before.who);
        let is_quiet = last.is_none_or(|it| *it <= before.at);
        let (next, held) = (None, None);
        self.episodes.insert(key, Episode { who, before, sector: key.1, is_quiet, next, held });
        if who != before.who {
            self.open.entry(who).or_default().push(key);
            self.open.entry(before.who).or_default().push(key);
        }
    }

    /// A request is over; behind whose it was.
    pub fn end(&mut self, life: &Life) -> Option<ContextId> {
        let key = (life.issued, life.sector);
        let episode = self.episodes.get_mut(&key)?;
        let (who, before, held) = (episode.who, episode.before.who, withheld(life));
        episode.held = Some((held, life.queued));
        if held.is_zero() || who == before {
            self.episodes.remove(&key);
        } else {
            self.close(key);
        }
        Some(before)
    }

    /// Counts an episode of which everything is known.
    fn close(&mut self, key: Key) {
        let Some(episode) = self.episodes.get(&key) else { return };
        let (Some(next), Some((held, at))) = (episode.next, episode.held) else { return };
        let pair = self.pairs.entry((episode.who, episode.before.who)).or_default();
        let in_turn = episode.is_quiet && next == episode.before.who;
        pair.count += 1;
        let is_near = episode.sector.0.abs_diff(episode.before.end.0) <= NEAR;
        pair.held += held;
        pair.quiet += u64::from(episode.is_quiet);
        if episode.is_quiet && is_near {
            pair.near += 1;
            pair.held_near += held;
        }
        if in_turn {
            pair.in_turn += 1;
            pair.held_in_turn += held;
        }
        if pair.first.len() < EXAMPLES {
            pair.first.push(at);
        }
        self.episodes.remove(&key);
    }

    /// All pairs.
    pub fn finish(self) -> BTreeMap<(ContextId, ContextId), Pair> {
        self.pairs
    }
}
