//! What a core has submitted of a domain, and no hardware queue has taken yet.

use alloc::collections::VecDeque;
use base::Sector;
use block::scheduler::COMPARED;
use block::{Bio, Cx, Request, RequestId};

/// Requests, oldest first, and where the newest of them lie.
///
/// Mostly a bio touches none of the newest. That is learnt from 64 bytes at hand instead of a look
/// at each request.
#[derive(Clone)]
pub(super) struct Untaken {
    list: VecDeque<RequestId>,
    /// The lower halves of the sectors where the newest begin and end, in any order.
    starts: [u32; COMPARED],
    ends: [u32; COMPARED],
    /// Which of these the next request replaces.
    next: usize,
}

impl Default for Untaken {
    fn default() -> Untaken {
        let nowhere = [u32::MAX; COMPARED];
        Untaken { list: VecDeque::new(), starts: nowhere, ends: nowhere, next: 0 }
    }
}

impl Untaken {
    /// All of them.
    pub fn list(&self) -> &VecDeque<RequestId> {
        &self.list
    }

    /// A request arrives.
    pub fn push_back(&mut self, rq: RequestId, request: &Request) {
        self.list.push_back(rq);
        self.note(request);
    }

    /// A request comes back that is before all others.
    pub fn push_front(&mut self, rq: RequestId, cx: &Cx<'_>) {
        self.list.push_front(rq);
        self.look_again(cx);
    }

    /// They are moved behind others.
    pub fn append_to(&mut self, others: &mut VecDeque<RequestId>) {
        others.append(&mut self.list);
        self.forget();
    }

    /// A request has grown.
    pub fn look_again(&mut self, cx: &Cx<'_>) {
        self.forget();
        for index in self.list.len().saturating_sub(COMPARED)..self.list.len() {
            self.note(cx.request(self.list[index]));
        }
    }

    /// Whether a bio touches one of the newest, or may touch it.
    #[inline]
    pub fn may_touch(&self, bio: &Bio) -> bool {
        let (start, end) = (half(bio.sector), half(bio.end()));
        let is_behind = self.ends.iter().fold(false, |found, it| found | (*it == start));
        let is_before = self.starts.iter().fold(false, |found, it| found | (*it == end));
        is_behind | is_before
    }

    fn note(&mut self, request: &Request) {
        self.starts[self.next] = half(request.sector);
        self.ends[self.next] = half(request.end());
        self.next = (self.next + 1) % COMPARED;
    }

    fn forget(&mut self) {
        (self.starts, self.ends) = ([u32::MAX; COMPARED], [u32::MAX; COMPARED]);
        self.next = 0;
    }
}

fn half(sector: Sector) -> u32 {
    sector.0 as u32
}
