//! Experiments: what to run, running it, measuring it, and what the measurements say.
//!
//! * [`experiment`]: the description of an experiment, from TOML or put together by a caller.
//! * [`matrix`]: schedulers x axes x seeds, run in parallel, one thread per run.
//! * [`metrics`]: observers that turn the stream of events into figures.
//! * [`statistics`], [`summary`]: mean and spread over seeds; what differs, in words.
//! * [`linux_world`]: the same experiment on a real kernel in virtual time.
//! * [`fidelity`]: how far the simulator is from that kernel.
//! * [`recording`]: a recording in a directory, with everything that stands beside it.
//! * [`recordings`]: recordings of a real 4.19, to be held against runs.
//! * [`record`]: an observer that writes the stream as blktrace files.
//!
//! This crate knows nothing of tables, JSON or terminals; everything that is printed is computed
//! here and formatted elsewhere.

pub mod catalogue;
pub mod cgroup;
mod document;
pub mod error;
pub mod expectation;
pub mod experiment;
pub mod fidelity;
pub mod filesystem;
pub mod input;
pub mod job;
pub mod linux_world;
pub mod matrix;
pub mod metrics;
pub mod plan;
pub mod quantity;
pub mod record;
pub mod recording;
pub mod recordings;
pub mod scheduler_spec;
pub mod statistics;
pub mod summary;

pub use error::Error;
pub use experiment::{Axis, Experiment};
pub use job::{JobSpec, Pace, Work};
pub use linux_world::World;
pub use matrix::{Report, RunResult};
pub use scheduler_spec::SchedulerSpec;
