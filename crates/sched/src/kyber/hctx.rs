//! What waits for a hardware queue, and which tokens it waits for.

use super::rules::MOST_DOMAINS;
use super::untaken::Untaken;
use alloc::collections::VecDeque;
use block::RequestId;
use block::scheduler::HctxId;
use block::tags::TagMap;

/// What a core has submitted, and no hardware queue has taken yet.
#[derive(Clone, Default)]
pub(super) struct Core {
    pub hctx: HctxId,
    pub domains: [Untaken; MOST_DOMAINS],
}

/// A hardware queue.
#[derive(Clone, Default)]
pub(super) struct Hctx {
    /// What it has taken from its cores, by domain, oldest first.
    pub taken: [VecDeque<RequestId>; MOST_DOMAINS],
    /// How many requests wait for it, with those that its cores still have.
    pub waiting: [u32; MOST_DOMAINS],
    /// The same of all domains.
    pub all_waiting: u32,
    /// Whose turn it is, and how many requests have left in it.
    pub turn: usize,
    pub batching: u32,
    /// For which tokens it waits.
    pub waits: [bool; MOST_DOMAINS],
}

impl Hctx {
    /// Rule kyber-6.
    #[inline]
    pub fn take_token(
        &mut self,
        id: HctxId,
        domain: usize,
        tokens: &mut TagMap<HctxId>,
    ) -> Option<u32> {
        let token = tokens.take(0, None);
        if token.is_some() == self.waits[domain] {
            self.note_waiting(id, domain, tokens);
        }
        token
    }

    /// It waits for a token from now on, or does not any more.
    #[cold]
    fn note_waiting(&mut self, id: HctxId, domain: usize, tokens: &mut TagMap<HctxId>) {
        let waits = &mut self.waits[domain];
        match *waits {
            true => tokens.leave(id),
            false => tokens.sleep(id),
        }
        *waits = !*waits;
    }

    /// The oldest request of a domain, of which some wait.
    #[inline]
    pub fn take_oldest(&mut self, id: HctxId, domain: usize, cores: &mut [Core]) -> RequestId {
        if self.taken[domain].is_empty() {
            self.take_from_cores(id, domain, cores);
        }
        self.taken[domain].pop_front().expect("something waits")
    }

    /// What the cores have of a domain goes to their hardware queue, core by core.
    #[inline(never)]
    fn take_from_cores(&mut self, id: HctxId, domain: usize, cores: &mut [Core]) {
        for core in cores.iter_mut().filter(|core| core.hctx == id) {
            core.domains[domain].append_to(&mut self.taken[domain]);
        }
    }

    /// Takes a request out of wherever it waits.
    pub fn remove(&mut self, id: HctxId, rq: RequestId, domain: usize, cores: &mut [Core]) {
        if !self.taken[domain].contains(&rq) {
            self.take_from_cores(id, domain, cores);
        }
        self.taken[domain].retain(|other| *other != rq);
    }

    /// A request waits.
    #[inline]
    pub fn enters(&mut self, domain: usize) {
        self.waiting[domain] += 1;
        self.all_waiting += 1;
    }

    /// A request leaves in the turn of its domain.
    #[inline]
    pub fn leaves(&mut self, domain: usize) {
        self.waiting[domain] -= 1;
        self.all_waiting -= 1;
        self.batching += 1;
    }
}
