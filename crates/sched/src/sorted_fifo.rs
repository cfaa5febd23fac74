//! Requests of one data direction, in both orders that deadline schedulers need: by sector, and by
//! arrival with a deadline for each.
//!
//! This is a container. It decides nothing: which of the two orders counts is the policy of
//! `deadline/` and `mq_deadline/`.

use base::{Jiffies, Links, List, Sector, SectorSet, Side, TreeShape};
use block::{Request, RequestId};

/// The queued requests of one direction.
#[derive(Clone, Default)]
pub(crate) struct SortedFifo {
    sorted: SectorSet<Request>,
    /// The kernel sorts them in a red-black tree; this is its shape.
    shape: TreeShape<Request>,
    fifo: List<Request>,
    links: Links<Request>,
    deadlines: Side<Request, Jiffies>,
}

impl SortedFifo {
    /// Adds a request: behind those that start at or before `sector`, and as the youngest.
    pub fn insert(&mut self, rq: RequestId, sector: Sector, deadline: Jiffies) {
        self.sort(rq, sector);
        self.fifo.push_back(&mut self.links, rq);
        self.deadlines.set(rq, deadline);
    }

    /// Takes a request out of both orders.
    pub fn remove(&mut self, rq: RequestId) {
        self.sorted.remove(rq);
        self.shape.remove(rq);
        self.fifo.remove(&mut self.links, rq);
        self.deadlines.take(rq);
    }

    /// The request starts elsewhere now; its age stays.
    pub fn reposition(&mut self, rq: RequestId, sector: Sector) {
        self.sorted.remove(rq);
        self.shape.remove(rq);
        self.sort(rq, sector);
    }

    fn sort(&mut self, rq: RequestId, sector: Sector) {
        let (before, behind) = self.sorted.insert_between(sector, rq);
        self.shape.insert(rq, before, behind);
    }

    /// Takes `next` out; if its deadline is earlier, `rq` inherits it and its place in the FIFO
    /// (rule deadline-4).
    pub fn join(&mut self, rq: RequestId, next: RequestId) {
        let deadline = self.deadlines[next];
        if deadline < self.deadlines[rq] {
            self.fifo.remove(&mut self.links, rq);
            self.fifo.insert_before(&mut self.links, next, rq);
            self.deadlines[rq] = deadline;
        }
        self.remove(next);
    }

    /// Whether the request is queued here.
    pub fn contains(&self, rq: RequestId) -> bool {
        self.links.contains(rq)
    }

    /// The request that has waited longest.
    pub fn oldest(&self) -> Option<RequestId> {
        self.fifo.head()
    }

    /// The deadline of a queued request.
    pub fn deadline(&self, rq: RequestId) -> Jiffies {
        self.deadlines[rq]
    }

    /// The request behind `rq` by sector.
    pub fn after(&self, rq: RequestId) -> Option<RequestId> {
        self.sorted.next(rq)
    }

    /// The request before `rq` by sector.
    pub fn before(&self, rq: RequestId) -> Option<RequestId> {
        self.sorted.previous(rq)
    }

    /// A request that starts at exactly `sector`; of several the one that a search from the root of
    /// the tree meets first (rule deadline-2).
    pub fn starting_at(&self, sector: Sector) -> Option<RequestId> {
        self.sorted.find(sector)?;
        self.shape.highest(self.sorted.all_at(sector))
    }

    /// The oldest of those that start at exactly `sector`.
    pub fn oldest_at(&self, sector: Sector) -> Option<RequestId> {
        self.sorted.find(sector)
    }

    /// The first request by sector that starts at `sector` or after it.
    pub fn at_or_after(&self, sector: Sector) -> Option<RequestId> {
        self.sorted.at_or_after(sector)
    }

    /// Number of requests.
    pub fn len(&self) -> u32 {
        self.fifo.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Panics unless both orders hold the same requests, each where it belongs.
    pub fn check(&self, sector_of: impl Fn(RequestId) -> Sector) {
        assert_eq!(self.sorted.len(), self.fifo.len() as usize, "sorted and in the FIFO");
        let mut previous = Sector(0);
        for rq in self.sorted.iter() {
            assert!(self.contains(rq), "{rq:?} is sorted but not in the FIFO");
            assert_eq!(self.sorted.sector_of(rq), sector_of(rq), "place of {rq:?}");
            assert!(previous <= sector_of(rq), "{rq:?} out of order");
            previous = sector_of(rq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Arena;

    /// A request's own fields play no part here: any handles will do.
    fn handles() -> [RequestId; 3] {
        let mut arena: Arena<()> = Arena::new();
        core::array::from_fn(|_| RequestId::from_bits(arena.insert(()).to_bits()))
    }

    #[test]
    fn of_several_at_one_sector_the_one_highest_in_the_tree_is_found() {
        let [old, young, above] = handles();
        let mut requests = SortedFifo::default();
        requests.insert(old, Sector(8), Jiffies(1));
        requests.insert(young, Sector(8), Jiffies(2));
        assert_eq!(requests.starting_at(Sector(8)), Some(old));
        requests.insert(above, Sector(16), Jiffies(3));
        assert_eq!(requests.starting_at(Sector(8)), Some(young), "it is the middle one");
        assert_eq!(requests.oldest_at(Sector(8)), Some(old));
        assert_eq!(requests.starting_at(Sector(9)), None);
        requests.reposition(young, Sector(0));
        assert_eq!(requests.starting_at(Sector(8)), Some(old));
    }

    #[test]
    fn the_earlier_deadline_survives_a_join_with_its_place() {
        let [old, middle, young] = handles();
        let mut requests = SortedFifo::default();
        requests.insert(old, Sector(108), Jiffies(1));
        requests.insert(middle, Sector(500), Jiffies(2));
        requests.insert(young, Sector(100), Jiffies(3));
        requests.join(young, old);
        assert_eq!(requests.oldest(), Some(young));
        assert_eq!(requests.deadline(young), Jiffies(1));
        requests.join(young, middle);
        assert_eq!(requests.deadline(young), Jiffies(1));
        assert_eq!(requests.len(), 1);
    }
}
