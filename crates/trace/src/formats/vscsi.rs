//! VMware's vscsi traces, in which the CloudPhysics corpus is: little-endian binary records.
//!
//! Version 1 has 32 bytes: serial number, length in bytes, scatter-gather entries, command,
//! version, sector, microseconds. Version 2 has 40: command and version stand first (formats trap
//! 20), and the response time in microseconds is added. Commands are SCSI operation codes.

use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Op, Span};
use crate::error::{Error, Place};
use base::Duration;
use std::io::{self, BufReader, Read};

/// The two shapes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl Version {
    const fn length(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// Whether a record may have this shape: its version number says so, and its command has the
    /// 8 bits of an operation code.
    fn fits(self, record: &[u8]) -> bool {
        let (command, version, number) = match self {
            Version::One => (12, 14, 1),
            Version::Two => (0, 2, 2),
        };
        let byte = |at: usize| record.get(at).copied();
        byte(command + 1) == Some(0) && byte(version + 1) == Some(number)
    }
}

/// The version of a file that starts with `head`, if it is a vscsi trace at all: the first two
/// records (or the only one) must agree.
pub(crate) fn version(head: &[u8]) -> Option<Version> {
    [Version::Two, Version::One].into_iter().find(|version| {
        let (first, rest) = head.split_at_checked(version.length()).unwrap_or((&[], &[]));
        version.fits(first) && (rest.len() < version.length() || version.fits(rest))
    })
}

/// Reads all records of `source`, whose beginning is `head`.
pub(crate) fn read<R: Read>(
    source: R,
    name: &str,
    head: &[u8],
    draft: &mut Draft,
) -> Result<(), Error> {
    let Some(version) = version(head) else {
        let cause = "neither of the versions of vscsi fits the first two records";
        return Err(Error::new(name, Place::Byte(0), cause, "vscsi version 1 or 2"));
    };
    let mut source = BufReader::new(source);
    let mut record = vec![0; version.length()];
    for number in 0u64.. {
        let offset = number * version.length() as u64;
        let place = Place::Byte(offset);
        let present =
            fill(&mut source, &mut record).map_err(|error| Error::io(name, place, &error))?;
        if present == 0 {
            break;
        }
        if present < record.len() {
            draft.remarks.push(format!(
                "{name}: the last record, at byte {offset}, is cut off after {present} bytes"
            ));
            break;
        }
        if !version.fits(&record) {
            let cause = "damaged: a record of another version";
            let accepted = "the version of the first records";
            return Err(Error::new(name, place, cause, accepted));
        }
        decode(version, &record, draft)
            .map_err(|(cause, accepted)| Error::new(name, place, cause, accepted))?;
    }
    Ok(())
}

/// Takes one whole record in; an error is a cause and what is accepted.
fn decode(
    version: Version,
    record: &[u8],
    draft: &mut Draft,
) -> Result<(), (&'static str, &'static str)> {
    let u32_at = |at: usize| u32::from_le_bytes(*record[at..].first_chunk().expect("checked"));
    let u64_at = |at: usize| u64::from_le_bytes(*record[at..].first_chunk().expect("checked"));
    let (command, length, sector, time, response) = match version {
        Version::One => (record[12], u32_at(4), u64_at(16), u64_at(24), None),
        Version::Two => (record[0], u32_at(8), u64_at(16), u64_at(24), Some(u64_at(32))),
    };
    // SBC-4, operation codes.
    let op = match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Op::Write,
        0x35 | 0x91 => Op::Flush,
        _ => {
            draft.tally("SCSI commands that neither read, write nor flush were skipped");
            return Ok(());
        }
    };
    let span = match op {
        Op::Flush => Span::FLUSH,
        _ => Span::mixed(sector, u64::from(length)).ok_or(("extent", ACCEPTED_SPAN))?,
    };
    let nanos = |micros: u64| {
        let why = ("time", "microseconds that fit 64 bits as nanoseconds");
        micros.checked_mul(1_000).ok_or(why)
    };
    let service = response.map(nanos).transpose()?.map(Duration::from_nanos);
    draft.push(Arrival { service, ..Arrival::new(nanos(time)?, op, 0, span) }, span);
    Ok(())
}

/// Reads until `buffer` is full or the file ends; returns how much was read.
fn fill<R: Read>(source: &mut R, buffer: &mut [u8]) -> io::Result<usize> {
    let mut present = 0;
    while present < buffer.len() {
        match source.read(&mut buffer[present..]) {
            Ok(0) => break,
            Ok(read) => present += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(present)
}
