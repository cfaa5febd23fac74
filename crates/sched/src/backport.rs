//! Backports: changes of a later kernel that an older one can be given alone, each by its name.
//!
//! They change a scheduler's rules, so that what one of them does shows alone and beside others.
//! They are no tunables: no kernel has them in sysfs.

use alloc::boxed::Box;
use block::{Kernel, Scheduler, Version};

/// A change of a later kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct Backport {
    /// Its name.
    pub name: &'static str,
    /// What it changes.
    pub says: &'static str,
    /// The kernel that it came with.
    pub since: &'static str,
    /// The kernels that can be given it.
    pub on: &'static [Version],
    /// Those it cannot be together with, because they change the same rule.
    pub excludes: &'static [&'static str],
}

/// Those of a scheduler.
pub struct Backports {
    /// All of them.
    pub list: &'static [Backport],
    /// Makes a scheduler that some of them were given to.
    pub build: fn(&Kernel, &[&'static Backport]) -> Box<dyn Scheduler>,
}
