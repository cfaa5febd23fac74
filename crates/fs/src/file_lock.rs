//! The two locks of a file: one for its contents and size, one for its map, which says which of its
//! blocks are where on the disk.
//!
//! Whoever writes or truncates a file holds the first one meanwhile, but not while the data are
//! made durable. A read of XFS shares it; one of ext4 takes none (observed on 6.12: xfs_ilock).
//! Direct I/O shares it until it is done; a direct write that makes a file of ext4 longer holds it.
//!
//! Whoever changes a map holds it, also while it waits for a part of it that is being logged.
//! Others who want to change it wait for that, and so go on later than who waited for the log
//! (observed on 6.12 where the worker converts blocks of a file that is being written).
//!
//! Who forces the log of XFS for a file keeps its map as it is meanwhile. Others may do so too, but
//! not while somebody waits to change it. Who comes when the map is free, though, need not let
//! anybody go first: so of direct writes into blocks that were set aside, each of which must be
//! durable, every one has a log write of its own. Only to one who has waited for long and was woken
//! in vain the map is handed over, and nobody may be faster (observed on 6.12).
//!
// Divergence: fallocate does not take the lock of the contents.

use block::ContextId;
use std::collections::VecDeque;

/// What a lock is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guarded {
    /// Contents and size.
    Contents,
    /// Which blocks are where.
    Map,
}

/// A lock that somebody holds or shares, or who was woken is about to.
#[derive(Debug, Default)]
pub struct FileLock {
    is_exclusive: bool,
    /// How many keep it as it is.
    readers: usize,
    waiting: VecDeque<(ContextId, Mode)>,
    /// Who waited to keep it and may, and was not told yet.
    admitted: Vec<ContextId>,
    /// Who was woken in vain after a long time: nobody else is given it when it is free.
    promised_to: Option<ContextId>,
}

/// What somebody wants of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To change it.
    Exclusive,
    /// To keep it as it is.
    Shared,
}

impl FileLock {
    /// Gives somebody what they want; whether that was possible.
    pub fn grant(&mut self, who: ContextId, want: Mode) -> bool {
        let is_kept = self.readers > 0 && (want == Mode::Exclusive || !self.waiting.is_empty());
        let is_promised = self.promised_to.is_some_and(|first| first != who);
        if self.is_exclusive || is_kept || is_promised {
            return false;
        }
        self.promised_to = None;
        self.waiting.retain(|(it, _)| *it != who);
        match want {
            Mode::Exclusive => self.is_exclusive = true,
            Mode::Shared => self.readers += 1,
        }
        true
    }

    /// Whether somebody who waited to keep it may.
    pub fn admits(&mut self, who: ContextId) -> bool {
        let place = self.admitted.iter().position(|it| *it == who);
        place.map(|place| self.admitted.swap_remove(place)).is_some()
    }

    /// Somebody falls asleep until they may have it.
    pub fn wait(&mut self, who: ContextId, want: Mode) {
        self.waiting.push_back((who, want));
    }

    /// It is for one who was woken in vain after a long time, and for nobody else.
    pub fn promise(&mut self, who: ContextId) {
        self.promised_to = Some(who);
    }

    /// Who had it gives it back. Answers with who goes on when it is free, nobody if nobody waits;
    /// none if others still keep it.
    pub fn release(&mut self) -> Option<Vec<ContextId>> {
        match self.is_exclusive {
            true => self.is_exclusive = false,
            false => self.readers -= 1,
        }
        (self.readers == 0).then(|| self.next())
    }

    /// It is free: who goes on. One who wants to change it has to see whether it still is, and is
    /// the first to wait until then.
    fn next(&mut self) -> Vec<ContextId> {
        match self.waiting.front() {
            None => Vec::new(),
            Some((first, Mode::Exclusive)) => vec![*first],
            Some((_, Mode::Shared)) => {
                let keeps = |(_, want): &(ContextId, Mode)| *want == Mode::Shared;
                let all: Vec<_> =
                    self.waiting.iter().filter(|it| keeps(it)).map(|it| it.0).collect();
                self.waiting.retain(|it| !keeps(it));
                self.readers += all.len();
                self.admitted.extend(&all);
                all
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: ContextId = ContextId(1);
    const SECOND: ContextId = ContextId(2);
    const OTHER: ContextId = ContextId(3);

    #[test]
    fn who_keeps_a_map_keeps_it_with_others_unless_somebody_waits_to_change_it() {
        let mut map = FileLock::default();
        assert!(map.grant(OTHER, Mode::Shared) && map.grant(OTHER, Mode::Shared));
        assert!(!map.grant(OTHER, Mode::Exclusive));
        map.waiting.push_back((FIRST, Mode::Exclusive));
        assert!(!map.grant(OTHER, Mode::Shared));
        map.waiting.push_back((SECOND, Mode::Shared));
        map.readers = 0;
        // Free, it is for whoever comes: the first of those that wait is only woken.
        assert!(map.grant(OTHER, Mode::Shared));
        map.readers = 0;
        assert_eq!(map.next(), [FIRST]);
        assert!(map.grant(FIRST, Mode::Exclusive));
        map.is_exclusive = false;
        assert_eq!(map.next(), [SECOND]);
        assert!(map.admits(SECOND) && !map.admits(SECOND));
        assert_eq!(map.readers, 1);
    }

    #[test]
    fn a_map_that_is_promised_goes_to_nobody_else() {
        let mut map = FileLock { promised_to: Some(FIRST), ..FileLock::default() };
        assert!(!map.grant(SECOND, Mode::Exclusive) && !map.grant(SECOND, Mode::Shared));
        assert!(map.grant(FIRST, Mode::Exclusive));
        map.is_exclusive = false;
        assert!(map.grant(SECOND, Mode::Exclusive));
    }
}
