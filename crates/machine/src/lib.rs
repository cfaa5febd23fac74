//! A machine in virtual time: tasks on cores, system calls, and below them the block layer and a
//! disk. What the tasks do is up to programs, which come from outside (`program.rs`).
//!
//! Read `run` first (the loop), then `task` and `calls` (what programs can do) and `cpus` (who
//! computes where and for how long).

#![forbid(unsafe_code)]

pub mod calls;
pub mod check;
mod clock;
mod core_set;
mod cpus;
mod disk;
pub mod file;
mod filesystem;
pub mod host;
mod io;
mod jobs;
pub mod observe;
mod outcome;
mod pages;
mod preparation;
pub mod program;
mod rules;
mod run;
mod setup;
mod storage;
pub mod task;
mod tasks;
mod world;

pub use cache::Rules as CacheRules;
pub use cache::limits::{MACHINE_SETTINGS, Settings as MachineSettings};
pub use check::Checker;
pub use core_set::CoreSet;
pub use disk::disk_name;
pub use fs::{COMMIT_SECONDS, Format, LOG_BUFFER, Mount};
pub use host::Host;
pub use jobs::{ControlGroup, Move};
pub use observe::{CoreUse, Nobody, Observer, Several, TaskInfo};
pub use outcome::{Exit, JobOutcome, Outcome};
pub use program::{Native, Program};
pub use rules::changes;
pub use run::run;
pub use setup::{DEFAULT_MEMORY, Job, Setup, SetupError};
pub use task::Task;
