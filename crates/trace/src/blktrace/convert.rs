//! A recording in another version or byte order: above all version 8 for tools that know only 7.

use super::layout::Layout;
use super::record::Record;
use crate::error::{Error, Place};
use std::io::Write;

/// What is to become of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Version and byte order.
    pub layout: Layout,
    /// Whether records keep their control group. Tools up to blktrace 1.2 do not understand records
    /// that have one.
    pub cgroups: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Records that were written.
    pub written: u64,
    /// Records that the version has no name for, and that were left out.
    pub left_out: u64,
    /// Records that lost categories which the version does not know, as a write of zeroes that
    /// became a write.
    pub simplified: u64,
}

impl Conversion {
    /// Writes `records` one after the other to `out`, which errors call `name`.
    pub fn write(
        self,
        records: impl Iterator<Item = Result<Record, Error>>,
        out: &mut impl Write,
        name: &str,
    ) -> Result<Converted, Error> {
        let mut converted = Converted::default();
        let mut bytes = Vec::new();
        for record in records {
            let record = record?;
            let categories = record.categories;
            let Some(mut record) = self.layout.known_of(record) else {
                converted.left_out += 1;
                continue;
            };
            converted.simplified += u64::from(record.categories != categories);
            record.cgroup = record.cgroup.filter(|_| self.cgroups);
            bytes.clear();
            self.layout.encode(&record, &mut bytes);
            out.write_all(&bytes).map_err(|error| {
                Error::new(name, Place::Whole, error.to_string(), "a file that can be written")
            })?;
            converted.written += 1;
        }
        Ok(converted)
    }
}
