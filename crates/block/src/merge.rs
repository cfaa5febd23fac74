//! Finding a request that a bio or another request could be merged into (spec 9.3).
//!
//! The index holds exactly the mergeable requests inside the scheduler: a one-hit cache of the last
//! request merged into, and a hash by end sector in which the newest entry of a bucket is met first.

use crate::kernel::{Kernel, PriorityMerge};
use crate::limits::Limits;
use crate::request::{Request, RequestId};
use crate::{Bio, Op};
use base::{Arena, Links, List, Sector};

/// Buckets of the hash (spec 9.3 rule 2).
const BUCKETS: usize = 64;

/// The one-hit cache and the hash of mergeable requests.
pub(crate) struct MergeIndex {
    last_merge: Option<RequestId>,
    buckets: [List<Request>; BUCKETS],
    links: Links<Request>,
    keys: base::Side<Request, Sector>,
}

impl Default for MergeIndex {
    fn default() -> Self {
        MergeIndex {
            last_merge: None,
            buckets: core::array::from_fn(|_| List::new()),
            links: Links::new(),
            keys: base::Side::new(),
        }
    }
}

impl MergeIndex {
    /// The request merged into (or inserted) last.
    pub fn last_merge(&self) -> Option<RequestId> {
        self.last_merge
    }

    /// Makes `rq` the one-hit candidate.
    pub fn set_last_merge(&mut self, rq: RequestId) {
        self.last_merge = Some(rq);
    }

    /// A mergeable request entered the scheduler.
    pub fn insert(&mut self, rq: RequestId, end: Sector) {
        self.keys.set(rq, end);
        self.buckets[bucket(end)].push_front(&mut self.links, rq);
        self.last_merge.get_or_insert(rq);
    }

    /// The request's end moved.
    pub fn reposition(&mut self, rq: RequestId, end: Sector) {
        if self.links.contains(rq) {
            self.unhash(rq);
            self.keys.set(rq, end);
            self.buckets[bucket(end)].push_front(&mut self.links, rq);
        }
    }

    /// The request left the scheduler or may not be merged any more.
    pub fn remove(&mut self, rq: RequestId) {
        if self.links.contains(rq) {
            self.unhash(rq);
        }
        if self.last_merge == Some(rq) {
            self.last_merge = None;
        }
    }

    /// The newest request that ends at `end`. Entries that became unmergeable are dropped when met.
    pub fn ending_at(&mut self, requests: &Arena<Request>, end: Sector) -> Option<RequestId> {
        let mut next = self.buckets[bucket(end)].head();
        while let Some(rq) = next {
            next = self.links.next(rq);
            if !requests[rq].is_mergeable() {
                self.unhash(rq);
            } else if self.keys[rq] == end {
                return Some(rq);
            }
        }
        None
    }

    fn unhash(&mut self, rq: RequestId) {
        self.buckets[bucket(self.keys[rq])].remove(&mut self.links, rq);
    }
}

fn bucket(end: Sector) -> usize {
    // Ends are multiples of a few sectors; the multiplication spreads them over the buckets.
    (end.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize
}

/// Whether request and bio are of the same kind, apart from adjacency and size
/// (spec 9.3 rule 7).
pub(crate) fn may_merge_bio(kernel: &Kernel, rq: &Request, bio: &Bio) -> bool {
    rq.is_mergeable()
        && bio.is_mergeable()
        && rq.op == bio.op
        && (kernel.priority_merge == PriorityMerge::TakeBetter || rq.ioprio == bio.ioprio)
        && (!kernel.cgroup_must_match || rq.origin.cgroup == bio.origin.cgroup)
}

/// Whether `next` may be appended to `rq` (spec 9.3 rule 8).
pub(crate) fn may_join(kernel: &Kernel, limits: &Limits, rq: &Request, next: &Request) -> bool {
    rq.is_mergeable()
        && next.is_mergeable()
        && rq.op == next.op
        && rq.op != Op::Discard
        && rq.end() == next.sector
        && (kernel.priority_merge == PriorityMerge::TakeBetter || rq.ioprio == next.ioprio)
        && limits.allows(rq.sector, rq.sectors + next.sectors, rq.segments + next.segments)
}
