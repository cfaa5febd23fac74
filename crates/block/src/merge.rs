//! Finding a request that a bio or another request could be merged into (rules merge).
//!
//! The index holds exactly the mergeable requests inside the scheduler: a one-hit cache of the last
//! request merged into, and a hash by end sector in which the newest entry of a bucket is met
//! first.

use crate::kernel::{Kernel, PriorityMerge};
use crate::limits::Limits;
use crate::request::{Request, RequestId};
use crate::{Bio, Op};
use base::{Arena, Sector, Side};

/// Buckets of the hash. The kernel has 64 (rule merge-2); more make a look-up shorter and change
/// nothing, because what ends at the same sector shares a bucket. A power of two.
const BUCKETS: usize = 1024;

/// The one-hit cache and the hash of mergeable requests.
pub(crate) struct MergeIndex {
    last_merge: Option<RequestId>,
    /// The newest entry of each bucket.
    buckets: [Option<RequestId>; BUCKETS],
    /// A bit for each bucket in which there is one: most look-ups find none, and these bits stay in
    /// the processor's first cache.
    filled: [u64; BUCKETS / 64],
    entries: Side<Request, Entry>,
}

/// A hashed request.
#[derive(Clone, Copy)]
struct Entry {
    /// Where it ended when it was hashed.
    end: Sector,
    /// Its neighbours in its bucket.
    newer: Option<RequestId>,
    older: Option<RequestId>,
}

impl Default for MergeIndex {
    fn default() -> Self {
        MergeIndex {
            last_merge: None,
            buckets: [None; BUCKETS],
            filled: [0; BUCKETS / 64],
            entries: Side::new(),
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
        self.hash(rq, end);
        self.last_merge.get_or_insert(rq);
    }

    /// The request's end moved.
    pub fn reposition(&mut self, rq: RequestId, end: Sector) {
        if self.unhash(rq) {
            self.hash(rq, end);
        }
    }

    /// The request left the scheduler or may not be merged any more.
    pub fn remove(&mut self, rq: RequestId) {
        self.unhash(rq);
        if self.last_merge == Some(rq) {
            self.last_merge = None;
        }
    }

    /// The newest request that ends at `end`. Entries that became unmergeable are dropped when met.
    pub fn ending_at(&mut self, requests: &Arena<Request>, end: Sector) -> Option<RequestId> {
        let mut next = self.newest(bucket(end));
        while let Some(rq) = next {
            let entry = &self.entries[rq];
            next = entry.older;
            if entry.end != end {
                continue;
            }
            if requests[rq].is_mergeable() {
                return Some(rq);
            }
            self.unhash(rq);
        }
        None
    }

    /// The newest entry of a bucket, without a look at it where there is none.
    fn newest(&self, bucket: usize) -> Option<RequestId> {
        let is_filled = self.filled[bucket / 64] & 1 << (bucket % 64) != 0;
        if is_filled { self.buckets[bucket] } else { None }
    }

    fn hash(&mut self, rq: RequestId, end: Sector) {
        let bucket = bucket(end);
        let older = self.newest(bucket);
        self.buckets[bucket] = Some(rq);
        self.filled[bucket / 64] |= 1 << (bucket % 64);
        if let Some(older) = older {
            self.entries[older].newer = Some(rq);
        }
        self.entries.set(rq, Entry { end, newer: None, older });
    }

    /// Takes a request out of the hash; whether it was there.
    fn unhash(&mut self, rq: RequestId) -> bool {
        let Some(Entry { end, newer, older }) = self.entries.take(rq) else { return false };
        match newer {
            Some(newer) => self.entries[newer].older = older,
            None => {
                let bucket = bucket(end);
                self.buckets[bucket] = older;
                self.filled[bucket / 64] &= !(u64::from(older.is_none()) << (bucket % 64));
            }
        }
        if let Some(older) = older {
            self.entries[older].newer = newer;
        }
        true
    }
}

fn bucket(end: Sector) -> usize {
    // Ends are multiples of a few sectors; the multiplication spreads them over the buckets.
    (end.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BUCKETS.trailing_zeros())) as usize
}

/// Whether request and bio are of the same kind, apart from adjacency and size
/// (rule merge-7).
pub(crate) fn may_merge_bio(kernel: &Kernel, rq: &Request, bio: &Bio) -> bool {
    rq.is_mergeable()
        && bio.is_mergeable()
        && rq.op == bio.op
        && (kernel.priority_merge == PriorityMerge::TakeBetter || rq.ioprio == bio.ioprio)
        && (!kernel.cgroup_must_match || rq.origin.cgroup == bio.origin.cgroup)
}

/// Whether `next` may be appended to `rq` (rule merge-8).
pub(crate) fn may_join(kernel: &Kernel, limits: &Limits, rq: &Request, next: &Request) -> bool {
    rq.is_mergeable()
        && next.is_mergeable()
        && rq.op == next.op
        && rq.op != Op::Discard
        && rq.end() == next.sector
        && (kernel.priority_merge == PriorityMerge::TakeBetter || rq.ioprio == next.ioprio)
        && limits.allows(rq.sector, rq.sectors + next.sectors, rq.segments + next.segments)
}
