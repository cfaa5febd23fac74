//! Experiments: what to run, running it, measuring it, and what the measurements say.
//!
//! * [`experiment`]: the description of an experiment, from TOML or put together by a caller.
//! * [`plan`]: the same, loaded and checked: a row for each scheduler at each point of the axes.
//! * [`worlds`]: a row with a seed is run, in the simulator or on a real kernel in virtual time.
//! * [`matrix`]: schedulers x axes x seeds, run in parallel, one thread per run.
//! * [`metrics`]: observers that turn the stream of events into numbers.
//! * [`result`]: what a run yields; [`figure`]: one number of it, by name.
//! * [`statistics`], [`summary`]: mean and spread over seeds; what differs, in words.
//! * [`fidelity`]: how far the simulator is from that kernel.
//! * [`picture`]: the runs of which timelines are drawn.
//! * [`recording`]: a recording in a directory, with everything that stands beside it.
//! * [`recordings`]: recordings of a real 4.19, to be held against runs.
//! * [`record`]: an observer that writes the stream as blktrace files.
//!
//! Rooms import one way: metrics, result, figure, experiment, plan, worlds, matrix, summary; each
//! only those before it.
//!
//! This crate knows nothing of tables or terminals, and of JSON only what its records are called
//! there; everything that is printed is computed here and formatted elsewhere.

mod backports;
pub mod catalogue;
pub mod error;
pub mod events;
pub mod experiment;
pub mod explain;
pub mod fidelity;
pub mod figure;
pub mod fio_logs;
pub mod kernels;
pub mod matrix;
pub mod metrics;
mod offered;
pub mod parallel;
pub mod picture;
pub mod plan;
pub mod quantity;
pub mod record;
pub mod recording;
pub mod recordings;
pub mod result;
pub mod scheduler_spec;
pub mod statistics;
pub mod summary;
pub mod told;
pub mod virtio;
pub mod world;
pub mod worlds;

pub use error::Error;
pub use experiment::job::{JobSpec, Pace, Work};
pub use experiment::{Axis, Experiment};
pub use matrix::Report;
pub use result::RunResult;
pub use scheduler_spec::SchedulerSpec;
pub use world::World;
