//! When calls of sync and fsync were under way, as far back as somebody may ask.

use super::queue::Owner;
use base::Instant;
use std::collections::VecDeque;

/// Whose calls are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Nobody,
    One(Owner),
    Several,
}

/// Calls of sync and fsync.
#[derive(Debug, Default)]
pub struct Syncs {
    /// Each that is not over.
    open: Vec<Owner>,
    /// Since when whose were, until the next entry.
    past: VecDeque<(Instant, Whose)>,
}

impl Syncs {
    /// One of somebody begins.
    pub fn begins(&mut self, at: Instant, owner: Owner) {
        self.open.push(owner);
        self.note(at);
    }

    /// One of somebody is over.
    pub fn ends(&mut self, at: Instant, owner: Owner) {
        if let Some(place) = self.open.iter().position(|it| *it == owner) {
            self.open.swap_remove(place);
            self.note(at);
        }
    }

    /// An interval, cut where others than this one begin or end: each piece until when, and whether
    /// one of theirs is under way in it.
    pub fn of_others(&self, own: Owner, from: Instant, to: Instant) -> Vec<(Instant, bool)> {
        let is_others = |whose: Whose| whose != Whose::Nobody && whose != Whose::One(own);
        let first = self.past.partition_point(|it| it.0 <= from);
        let mut is_beside = first.checked_sub(1).is_some_and(|it| is_others(self.past[it].1));
        let mut pieces = Vec::new();
        for (at, whose) in self.past.range(first..).take_while(|it| it.0 < to) {
            if is_others(*whose) != is_beside {
                pieces.push((*at, is_beside));
                is_beside = !is_beside;
            }
        }
        pieces.push((to, is_beside));
        pieces
    }

    /// What was before a time is not asked for any more.
    pub fn forget(&mut self, before: Instant) {
        while self.past.get(1).is_some_and(|it| it.0 <= before) {
            self.past.pop_front();
        }
    }

    fn note(&mut self, at: Instant) {
        let whose = match self.open.split_first() {
            None => Whose::Nobody,
            Some((first, rest)) if rest.iter().all(|it| it == first) => Whose::One(*first),
            Some(_) => Whose::Several,
        };
        if self.past.back().is_none_or(|it| it.1 != whose) {
            self.past.push_back((at, whose));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn an_interval_is_cut_where_others_sync() {
        let (own, other) = (Owner::Named(0), Owner::Named(1));
        let mut syncs = Syncs::default();
        syncs.begins(at(10), other);
        syncs.begins(at(15), own);
        syncs.begins(at(20), other);
        syncs.ends(at(30), other);
        syncs.ends(at(40), other);
        syncs.ends(at(50), own);
        let pieces = |own| syncs.of_others(own, at(0), at(60));
        assert_eq!(pieces(own), [(at(10), false), (at(40), true), (at(60), false)]);
        assert_eq!(pieces(other), [(at(15), false), (at(50), true), (at(60), false)]);
        assert_eq!(syncs.of_others(own, at(12), at(13)), [(at(13), true)]);
    }

    #[test]
    fn what_is_asked_for_is_not_forgotten() {
        let (own, other) = (Owner::Named(0), Owner::Named(1));
        let mut syncs = Syncs::default();
        syncs.begins(at(10), other);
        syncs.ends(at(20), other);
        syncs.forget(at(15));
        assert_eq!(syncs.of_others(own, at(15), at(30)), [(at(20), true), (at(30), false)]);
    }
}
