//! Requests of a recording that are under way, found by where they begin and where they end.

use base::{Arena, Id, Instant, Sector, Sectors};
use block::{Op, RequestId};

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Allocated,
    Inserted,
    Issued,
}

/// A request that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub sector: Sector,
    pub sectors: Sectors,
    pub op: Op,
    pub pid: u32,
    pub stage: Stage,
    /// When it came to this stage.
    pub since: Instant,
    /// The next that begins there, and the next that ends there.
    next: [Option<Name>; 2],
}

/// Its name here; [`request`] is that for others.
pub(super) type Name = Id<Known>;

/// The name that events give it.
pub(super) fn request(name: Name) -> RequestId {
    RequestId::from_bits(name.to_bits())
}

impl Known {
    /// One that has got this far.
    pub fn new(place: (Sector, Sectors), op: Op, pid: u32, stage: Stage, since: Instant) -> Known {
        Known { sector: place.0, sectors: place.1, op, pid, stage, since, next: [None; 2] }
    }

    fn end(&self) -> u64 {
        self.sector.0.saturating_add(u64::from(self.sectors.0))
    }

    fn key(&self, by: usize) -> u64 {
        if by == BEGINS { self.sector.0 } else { self.end() }
    }
}

const BEGINS: usize = 0;
const ENDS: usize = 1;

/// All of them.
#[derive(Default)]
pub(super) struct AllKnown {
    requests: Arena<Known>,
    /// By where they begin, and those that were not issued by where they end.
    chains: [Chains; 2],
    /// Where requests end is kept once there were many and somebody asked.
    keeps_ends: bool,
}

/// The newest of the requests whose sectors have the same hash; each knows the next, so that
/// nothing is moved or allocated for a request.
struct Chains {
    newest: Vec<Option<Name>>,
    /// All but as many bits of a hash as number the chains.
    shift: u32,
}

impl Default for Chains {
    fn default() -> Chains {
        Chains::with(64)
    }
}

impl Chains {
    /// So many chains, or a few more.
    fn with(number: usize) -> Chains {
        let number = number.next_power_of_two();
        Chains { newest: vec![None; number], shift: u64::BITS - number.trailing_zeros() }
    }

    /// The place of a sector. Files may have chosen any, so the high bits of a product count.
    #[inline]
    fn place(&self, sector: u64) -> usize {
        let mixed = (sector ^ sector >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> self.shift) as usize
    }
}

/// Among so many it is looked for an end one by one.
const FEW: usize = 128;

impl AllKnown {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn get(&self, name: Name) -> &Known {
        &self.requests[name]
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (Name, &Known)> {
        self.requests.iter()
    }

    /// A request appears.
    pub fn add(&mut self, known: Known) -> Name {
        let name = self.requests.insert(known);
        self.link(name, BEGINS);
        if known.stage != Stage::Issued {
            self.link(name, ENDS);
        }
        name
    }

    /// A request is gone.
    pub fn remove(&mut self, name: Name) -> Known {
        self.unlink(name, BEGINS);
        if self.requests[name].stage != Stage::Issued {
            self.unlink(name, ENDS);
        }
        *self.requests.remove(name)
    }

    /// It lies elsewhere, or has another length.
    pub fn place(&mut self, name: Name, sector: Sector, sectors: Sectors) {
        let known = &self.requests[name];
        let (moves, was_issued) = (known.sector != sector, known.stage == Stage::Issued);
        let ends_elsewhere = known.end() != sector.0.saturating_add(u64::from(sectors.0));
        if moves {
            self.unlink(name, BEGINS);
        }
        if ends_elsewhere && !was_issued {
            self.unlink(name, ENDS);
        }
        let known = &mut self.requests[name];
        (known.sector, known.sectors) = (sector, sectors);
        if moves {
            self.link(name, BEGINS);
        }
        if ends_elsewhere && !was_issued {
            self.link(name, ENDS);
        }
    }

    /// It has got to another stage.
    pub fn advance(&mut self, name: Name, stage: Stage, at: Instant) {
        let was_issued = self.requests[name].stage == Stage::Issued;
        if !was_issued && stage == Stage::Issued {
            self.unlink(name, ENDS);
        }
        let known = &mut self.requests[name];
        (known.stage, known.since) = (stage, at);
        if was_issued && stage != Stage::Issued {
            self.link(name, ENDS);
        }
    }

    /// Of those that begin at a sector, the one with the highest rank; of equals the oldest.
    pub fn beginning<R: Ord>(
        &self,
        sector: Sector,
        rank: impl Fn(&Known) -> Option<R>,
    ) -> Option<Name> {
        self.best(BEGINS, sector.0, rank)
    }

    /// Of those that end before a sector and were not issued, the same.
    pub fn ending<R: Ord>(
        &mut self,
        sector: Sector,
        rank: impl Fn(&Known) -> Option<R>,
    ) -> Option<Name> {
        if !self.keeps_ends && self.requests.len() <= FEW {
            let waits = |known: &Known| known.stage != Stage::Issued && known.end() == sector.0;
            let those = self.requests.iter().filter(|(_, known)| waits(known));
            let ranked = those.filter_map(|(name, known)| Some((rank(known)?, name)));
            return ranked.max().map(|(_, name)| name);
        }
        if !self.keeps_ends {
            self.keeps_ends = true;
            let all: Vec<Name> = self.requests.iter().map(|(name, _)| name).collect();
            let waiting = all.into_iter().filter(|it| self.requests[*it].stage != Stage::Issued);
            waiting.collect::<Vec<_>>().into_iter().for_each(|name| self.link(name, ENDS));
        }
        self.best(ENDS, sector.0, rank)
    }

    /// Whether a request of which somebody remembers the name is there and ends before a sector.
    pub fn still_ends(&self, name: Name, sector: Sector, op: Op) -> bool {
        let known = self.requests.get(name).filter(|known| known.stage != Stage::Issued);
        known.is_some_and(|it| it.end() == sector.0 && it.op == op && it.sectors.0 > 0)
    }

    fn best<R: Ord>(
        &self,
        by: usize,
        key: u64,
        rank: impl Fn(&Known) -> Option<R>,
    ) -> Option<Name> {
        let chains = &self.chains[by];
        let mut next = chains.newest[chains.place(key)];
        let mut best: Option<(R, Name)> = None;
        while let Some(name) = next {
            let known = &self.requests[name];
            if known.key(by) == key
                && let Some(rank) = rank(known)
                && best.as_ref().is_none_or(|(most, _)| rank >= *most)
            {
                best = Some((rank, name));
            }
            next = known.next[by];
        }
        best.map(|(_, name)| name)
    }

    fn link(&mut self, name: Name, by: usize) {
        if by == ENDS && !self.keeps_ends {
            return;
        }
        if self.requests.len() > self.chains[by].newest.len() {
            self.widen(by);
        }
        self.put_first(name, by);
    }

    fn put_first(&mut self, name: Name, by: usize) {
        let chains = &mut self.chains[by];
        let place = chains.place(self.requests[name].key(by));
        self.requests[name].next[by] = chains.newest[place].replace(name);
    }

    /// There are as many chains as requests at least; who is newer stays so.
    #[inline(never)]
    fn widen(&mut self, by: usize) {
        let wide = Chains::with(2 * self.requests.len());
        let narrow = std::mem::replace(&mut self.chains[by], wide);
        let mut chain = Vec::new();
        for first in narrow.newest {
            let mut next = first;
            while let Some(name) = next {
                chain.push(name);
                next = self.requests[name].next[by];
            }
            while let Some(oldest) = chain.pop() {
                self.put_first(oldest, by);
            }
        }
    }

    fn unlink(&mut self, name: Name, by: usize) {
        if by == ENDS && !self.keeps_ends {
            return;
        }
        let (key, after) = (self.requests[name].key(by), self.requests[name].next[by]);
        let place = self.chains[by].place(key);
        let first = &mut self.chains[by].newest[place];
        let Some(mut other) = *first else { return };
        if other == name {
            *first = after;
            return;
        }
        while let Some(next) = self.requests[other].next[by] {
            if next == name {
                self.requests[other].next[by] = after;
                return;
            }
            other = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equals_the_oldest_is_found_however_many_there_are() {
        let mut all = AllKnown::default();
        let at = Instant::from_nanos;
        let known = |number: u64| {
            let place = (Sector(8 * (number % 50)), Sectors(8));
            Known::new(place, Op::Read, 1, Stage::Allocated, at(number))
        };
        let names: Vec<Name> = (0..1000).map(|number| all.add(known(number))).collect();
        for (number, name) in names.iter().enumerate() {
            let sector = Sector(8 * (number as u64 % 50));
            assert_eq!(all.beginning(sector, |_| Some(())), Some(*name));
            let since = all.beginning(sector, |known| Some(known.since));
            assert_eq!(since, Some(names[950 + number % 50]));
            let end = Sector(sector.0 + 8);
            assert_eq!(all.ending(end, |_| Some(())), Some(*name));
            all.remove(*name);
        }
        assert_eq!((all.len(), all.beginning(Sector(0), |_| Some(()))), (0, None));
    }
}
