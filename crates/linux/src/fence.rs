//! What of the host a guest's kernel may touch: its own file, its root directory and libraries it
//! may read, the directory of its run and that of its memory it may change, and nothing else.
//!
//! Programs in the guest have all capabilities there, and a mount of `hostfs` shows them whatever
//! the kernel's process may open. That process has the caller's rights, so Landlock takes from it
//! what it does not need. Where the host's kernel has no Landlock, nothing is taken
//! ([`is_there`]).

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, path_beneath_rules,
};

/// The newest rules that are asked for; older kernels take those they know.
const NEWEST: ABI = ABI::V5;
/// A kernel that is not linked statically needs these before it can say what is wrong with it.
const LIBRARIES: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
/// What the processor can do, and how much memory there is.
const ABOUT: [&str; 2] = ["/proc/cpuinfo", "/proc/meminfo"];
/// Devices that hold nothing.
const EMPTY: [&str; 2] = ["/dev/null", "/dev/zero"];

/// A fence that a process can put up around itself; none where the host has no Landlock.
pub(crate) struct Fence(Option<OwnedFd>);

impl Fence {
    /// Around a kernel that reads `root` and changes what lies in these directories.
    pub fn around(kernel: &Path, root: &Path, changes: &[&Path]) -> Result<Fence, RulesetError> {
        let reads = AccessFs::from_read(NEWEST);
        let looks = AccessFs::ReadFile | AccessFs::ReadDir;
        let writes = AccessFs::ReadFile | AccessFs::WriteFile;
        let fence = ruleset()?
            .add_rules(path_beneath_rules([kernel], reads))?
            .add_rules(path_beneath_rules([root], looks))?
            .add_rules(path_beneath_rules(LIBRARIES, reads))?
            .add_rules(path_beneath_rules(ABOUT, AccessFs::ReadFile))?
            .add_rules(path_beneath_rules(EMPTY, writes))?
            .add_rules(path_beneath_rules(changes, AccessFs::from_all(NEWEST)))?;
        Ok(Fence(fence.into()))
    }

    /// What puts it up.
    pub fn descriptor(&self) -> Option<&OwnedFd> {
        self.0.as_ref()
    }
}

/// Whether the host's kernel has Landlock, so that a guest cannot reach the caller's files.
pub fn is_there() -> bool {
    ruleset().is_ok_and(|it| Option::<OwnedFd>::from(it).is_some())
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    ruleset.handle_access(AccessFs::from_all(NEWEST))?.create()
}
