//! What the tests of formats share: reading from memory, and the columns to compare.

use std::io::Cursor;
use trace::{Arrival, Error, Op, Options, Trace, read_stream};

pub fn read_with(bytes: &[u8], options: &Options) -> Result<Trace, Error> {
    read_stream(Box::new(Cursor::new(bytes.to_vec())), "x", options)
}

pub fn read(bytes: impl AsRef<[u8]>) -> Trace {
    read_with(bytes.as_ref(), &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

pub fn refusal(bytes: impl AsRef<[u8]>) -> String {
    read_with(bytes.as_ref(), &Options::default()).unwrap_err().to_string()
}

/// Nanoseconds, operation, sector, bytes, device: the columns that all formats have.
pub fn columns(trace: &Trace) -> Vec<(u64, Op, u64, u64, u32)> {
    let row = |a: &Arrival| (a.at.as_nanos(), a.op, a.sector.0, a.bytes.0, a.device);
    trace.arrivals.iter().map(row).collect()
}
