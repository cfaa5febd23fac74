//! Codecs of block I/O traces.
//!
//! The crate has two halves. [`blktrace`] reads and writes the kernel's own binary format, record
//! by record, without losing anything that is in it, and [`blkparse`] the text that is commonly
//! printed of it. [`read_trace`] turns a recording in any of the formats of [`Format`] into a list
//! of [`Arrival`]s, the load that a replay submits.
//!
//! It translates and does not interpret: no metric is computed here, and what a recording does not
//! say is absent, never guessed. The files are other people's and therefore suspect: whatever is
//! wrong with one is an [`Error`] that names file, line or byte, cause and what is accepted; no
//! input makes this crate panic.

pub mod arrival;
pub mod blkparse;
pub mod blktrace;
mod detect;
mod error;
mod format;
mod formats;
mod open;
mod text;

pub use arrival::{Arrival, Flags, Op, Trace};
pub use error::{Error, Place};
pub use format::{Format, TimeUnit, UnknownName};
pub use formats::blktrace::Records;
pub use open::{Options, Source, read_events, read_records, read_stream, read_trace};
