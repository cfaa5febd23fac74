//! What differs between the kernels of BFQ, each difference a named field.

use block::{Kernel, Version};

/// The differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// Of a chain of queues that merge, the last one is the target (6.9 and later).
    pub follows_chains: bool,
    /// A tentative waker is forgotten after a while (6.9 and later).
    pub wakers_time_out: bool,
    /// So many groups with requests make the scenario asymmetric.
    pub groups_that_differ: u32,
    /// The depth of what may be limited is derived from the queue's `async_depth` (7.0 and later).
    pub has_async_depth: bool,
}

const REFERENCE: Rules = Rules {
    follows_chains: true,
    wakers_time_out: true,
    groups_that_differ: 2,
    has_async_depth: false,
};

impl Rules {
    /// The rules of a kernel that has BFQ.
    pub fn of(kernel: &Kernel) -> Rules {
        match kernel.version {
            Version::V6_1 => Rules { follows_chains: false, wakers_time_out: false, ..REFERENCE },
            version if version >= Version::V7_3 => Rules { has_async_depth: true, ..REFERENCE },
            _ => REFERENCE,
        }
    }
}
