//! A task's plug: requests held back so that more can be merged and sorted before they are
//! inserted (rules plug).

use crate::kernel::{PlugEnd, PlugMerge, TaskPlug};
use crate::request::{Request, RequestId};
use alloc::vec::Vec;
use base::{Arena, Instant};

/// Why a plug is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlugFlush {
    /// The task ends its plug.
    Explicit,
    /// The task is about to sleep; the plug stays in force. On kernels that plug devices this
    /// unplugs the device.
    Blocks,
}

/// The plug of one context; nested starts are ignored.
#[derive(Default)]
pub(crate) struct Plug {
    depth: u32,
    /// The requests held back, oldest first.
    pub requests: Vec<RequestId>,
    /// It has ended, and what it held back is on its way.
    is_ending: bool,
    /// The clock has been read since it began, which is enough for all its requests.
    knows_time: bool,
    /// The time when the first of the requests was made that it holds, or has just given away.
    pub time: Option<Instant>,
}

impl Plug {
    /// A bio arrives. What the plug has given away is forgotten.
    pub fn begin_bio(&mut self) {
        if self.requests.is_empty() {
            self.time = None;
        }
    }

    /// A request is made, and will be held back. Its task looked at the clock at `time`, if that is
    /// known.
    pub fn hold(&mut self, time: Option<Instant>, rq: RequestId) {
        self.requests.push(rq);
        self.time = self.time.or(time);
    }

    /// The task starts to plug.
    pub fn start(&mut self) {
        if self.depth == 0 {
            self.forget_time();
        }
        self.depth += 1;
    }

    /// The task ends its plug; true when this was the outermost one.
    pub fn finish(&mut self) -> bool {
        assert!(self.depth > 0, "a plug is finished that was not started");
        self.depth -= 1;
        self.is_ending = self.depth == 0;
        self.is_ending
    }

    /// The time goes on: its task sleeps, or submits something else.
    pub fn forget_time(&mut self) {
        self.read_clock_again();
        self.time = None;
    }

    /// Whoever needs the time next has to read the clock.
    pub fn read_clock_again(&mut self) {
        (self.is_ending, self.knows_time) = (false, false);
    }

    /// Whether whoever needs the time has to read the clock. Observed on 6.12: four reads that are
    /// submitted together cost one look, one that is submitted alone costs one besides that of its
    /// bio.
    pub fn looks_at_clock(&mut self) -> bool {
        if self.depth == 0 && !self.is_ending {
            return true;
        }
        !core::mem::replace(&mut self.knows_time, true)
    }

    /// Whether the task holds requests back.
    pub fn is_active(&self) -> bool {
        self.depth > 0
    }

    /// Whether the list must be flushed before one more request is added (rule plug-3).
    pub fn is_full(&self, rules: &TaskPlug, requests: &Arena<Request>, queues: usize) -> bool {
        let tested = match rules.flush_tests {
            PlugEnd::Oldest => self.requests.first(),
            PlugEnd::Newest => self.requests.last(),
        };
        let Some(tested) = tested else { return false };
        let most =
            if rules.holds_one_with_several_queues && queues > 1 { 1 } else { rules.max_requests };
        self.requests.len() >= most as usize
            || requests[*tested].sectors.bytes().0 >= rules.flush_bytes
    }

    /// The requests a bio may be merged into, in the order in which they are tried.
    pub fn candidates(&self, rules: &TaskPlug) -> impl Iterator<Item = RequestId> + '_ {
        let most = match rules.merges_into {
            PlugMerge::All => usize::MAX,
            PlugMerge::Newest => 1,
        };
        self.requests.iter().rev().take(most).copied()
    }
}

/// Sorts a list that is flushed by sector; equal sectors come out in reversed order of submission
/// (rule plug-4).
pub(crate) fn sort_for_flush(list: &mut [RequestId], requests: &Arena<Request>) {
    list.reverse();
    list.sort_by_key(|rq| (requests[*rq].hctx, requests[*rq].sector));
}
