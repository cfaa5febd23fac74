//! An unmodified Linux kernel in deterministic virtual time, on disks that are models.
//!
//! The kernel runs as an ordinary process (User-Mode Linux, no privileges). Its clock and its
//! disks are ours: time passes only when this crate says so, and what a disk does is decided by
//! the same [`device::Device`]s that the simulator uses. A run is a function of the kernel, the
//! root directory, the script, the devices and a seed: twice the same, to the byte.
//!
//! * [`configuration`], [`build`], [`cache`]: the kernel, made once from its source and kept;
//!   `source` and `archive` say where that comes from.
//! * [`rootfs`]: a root directory of programs that the host has.
//! * [`script`]: what the guest does: settings, cgroups, jobs, recording.
//! * [`run`]: puts all of it together; the place to begin.
//! * [`visit`]: a guest for somebody who wants to run a command or to look around.
//! * `clock`, `vhost`, `controller`: the protocols, and the loop that drives them.
//!
//! It has no policy: which scheduler, what load and what the results mean is for callers to say.

pub mod about;
mod archive;
pub mod build;
pub mod cache;
#[allow(unsafe_code)]
mod calibration;
mod clock;
pub mod configuration;
mod controller;
mod directory;
mod drive;
pub mod error;
mod farewell;
pub mod fence;
mod gate;
#[allow(unsafe_code)]
mod launch;
mod lazy;
mod link;
pub mod log;
mod memory;
mod offers;
mod refusal;
mod ring;
pub mod rootfs;
pub mod run;
pub mod script;
mod source;
mod store;
mod tool;
mod vhost;
pub mod visit;
mod watch;

pub use about::{About, Offered};
pub use cache::{Cache, Kernel, has_kernel};
pub use clock::Protocol;
pub use directory::Directory;
pub use error::{BuildError, RootError, RunError, VisitError};
pub use lazy::LazyTables;
pub use log::{DeviceLog, Served};
pub use refusal::Refusal;
pub use rootfs::Root;
pub use run::{Disk, Finished, Guest, KnownCgroup, Outcome};
pub use script::{Bell, Cgroup, Hierarchy, Job, Recording, Script, Setting, Trace};
pub use store::Contents;
pub use visit::Visit;
pub use watch::Watchdog;
