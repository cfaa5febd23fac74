//! The Linux block layer as a pure machine.
//!
//! [`RequestQueue`] turns bios and completions into commands for a device. It does no I/O, owns no
//! clock and draws no randomness: `now` is an argument, and what it wants done comes out as
//! [`Output`] values. It is the only caller of a [`Scheduler`] and the guard of its contract. A
//! [`Kernel`] value says whose rules hold.
//!
//! Read `scheduler.rs` first (the seam), then `queue/mod.rs` (the machine).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bio;
pub mod changes;
pub mod command;
#[cfg(feature = "contract")]
pub mod contract;
pub mod event;
pub mod flush;
pub mod input;
pub mod ioprio;
pub mod kernel;
pub mod limits;
mod merge;
mod plug;
mod qos;
pub mod queue;
pub mod reason;
pub mod request;
pub mod scheduler;
pub mod segments;
pub mod tags;
pub mod throttle;

pub use bio::{Bio, CgroupId, ContextId, Direction, Flags, IoContextId, Op, Origin, is_sync};
pub use command::{Command, CommandOp, Facts, Stage, Tag, Transport};
pub use event::{
    Action, CommitPhase, Committed, Event, EventLog, HookClock, PagesWhy, SleepsFor, Syscall,
    WbtEvent, WbtStatus,
};
pub use input::Input;
pub use ioprio::{Ioprio, IoprioClass};
pub use kernel::{KERNELS, Kernel, Shape, Version};
pub use limits::{DEVICE_DEPTH, Limits, QUEUE_SETTINGS, QueueSetting};
pub use plug::PlugFlush;
pub use queue::{Attach, Output, RequestQueue, Step, Work, Works};
pub use reason::{DispatchReason, HoldReason};
pub use request::{Request, RequestId};
pub use scheduler::{About, Cx, MergeLookup, Scheduler, SharedLock, Tunable, TunableError};
pub use segments::Segments;
