//! What differs between the kernels of deadline, each difference a named field.

use block::{Kernel, Version};

/// The differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// A queued request leaves at once when another one with the same start sector arrives (rule
    /// deadline-1).
    pub alias_leaves: bool,
}

/// 2.6.32 to 3.0. assumed: 2.6.28 too, whose deadline is said to be that of 2.6.32.
const WITH_ALIASES: Rules = Rules { alias_leaves: true };

/// Later kernels keep both requests.
const WITHOUT_ALIASES: Rules = Rules { alias_leaves: false };

impl Rules {
    /// The rules of a kernel that has deadline.
    pub fn of(kernel: &Kernel) -> Rules {
        if kernel.version <= Version::V2_6_32 { WITH_ALIASES } else { WITHOUT_ALIASES }
    }
}
