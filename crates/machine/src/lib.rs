//! A machine in virtual time: tasks on cores, system calls, programs, and below them the block
//! layer and a disk.
//!
//! Read `simulation.rs` first (the loop), then `task.rs` (what programs can do) and `cores.rs` (who
//! computes where and for how long).

#![forbid(unsafe_code)]

mod alarms;
mod buffered;
pub mod check;
mod clock;
mod completion;
pub mod cores;
mod eevdf;
pub mod file;
pub mod filesystem;
pub mod host;
mod life;
pub mod observe;
mod operations;
mod preparation;
mod prices;
pub mod program;
pub mod ring;
pub mod simulation;
pub mod task;
mod world;

pub use cache::limits::MACHINE_SETTINGS;
pub use check::Checker;
pub use cores::{CoreSet, CoreUse};
pub use filesystem::Mount;
pub use host::{Host, HostError};
pub use observe::{Nobody, Observer, Several, TaskInfo};
pub use preparation::Line;
pub use program::Program;
pub use simulation::{
    ControlGroup, DEFAULT_MEMORY, Exit, Job, JobOutcome, Move, Outcome, Setup, SetupError, run,
};
pub use task::Task;
