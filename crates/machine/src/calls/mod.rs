//! System calls: what a task may ask of the machine.
//!
//! * `disk`: open, read, write, fsync, discard. `cached`: advice, closing, sync(2). `mapped`: files
//!   in the memory of programs.
//! * `files` and `directories`: calls by name. `ranges`: calls on parts of files.
//! * `async_queue`: many requests of one task in flight.

mod async_queue;
mod cached;
mod directories;
mod disk;
mod files;
mod mapped;
mod ranges;

pub use async_queue::{AsyncOp, AsyncQueue, Interface, Reaped};
pub use directories::Status;
pub use files::Creation;
pub use mapped::Mapping;
pub use ranges::RangeSync;
