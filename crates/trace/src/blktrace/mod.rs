//! The kernel's own trace format: what `blktrace` records and `blkparse` prints.
//!
//! A file is a plain sequence of records, each a header and a payload; one file per CPU, named
//! `NAME.blktrace.CPU`. Version 7 (all kernels up to 6.18) has a header of 48 bytes, version 8
//! (6.19 and later) one of 64 with the fields elsewhere. Both occur in either byte order, except
//! that the integers inside remap, unplug and split payloads are big-endian on every host. What
//! tracefs of the latter kernels writes with `options/bin` is neither: see [`Layout::CUT_LITTLE`].
//!
//! * [`Record`]: one event or note, free of version and byte order.
//! * [`Reader`]: records of one file, streaming. [`Merge`]: of all files of a recording, in order.
//! * [`Recorder`]: writes a recording that `blkparse -i NAME` reads.
//! * [`Conversion`]: writes records in another version or byte order.
//! * [`records_of_pages`]: a file from the pages of tracefs, in which nothing is cut.
//! * [`runs`]: messages that tell when the queue was run. [`kyber`],
//!   [`wbt`]: what they tell.
//! * [`Layout`]: the codec of a single record under all of them.
//!
//! Nothing is interpreted: codes and categories that are not known are kept as they are.

mod ahead;
mod convert;
pub mod kyber;
mod layout;
mod merge;
mod pages;
mod reader;
mod record;
mod recorder;
pub mod runs;
pub mod wbt;

pub use convert::{Conversion, Converted};
pub use layout::Layout;
pub use merge::{Merge, cpus_without_file, recording_files};
pub use pages::{Events, records_of_pages};
pub use reader::{Reader, Torn};
pub use record::{Action, Categories, DevT, Payload, Record};
pub use recorder::{Recorder, Wallclock};

pub(crate) use layout::looks_like_blktrace;
