//! Disk events of Windows, as text: the traces of Microsoft's production and benchmark servers.
//!
//! Behind a block of definitions that ends with `EndHeader` there is a line for each event:
//! `DiskRead, TimeStamp, Process ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime,
//! DiskNum, …`, offsets and sizes in hexadecimal, times in microseconds. The event is written when
//! the operation is done, so it began the elapsed time before (assumed, as xperf does it).

use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Op, Span};
use crate::error::Error;
use crate::format::Format;
use crate::text::{Lines, shown};
use base::Duration;
use std::io::Read;

/// The first and the last line of the definitions.
pub(crate) const HEADING: [&str; 2] = ["BeginHeader", "EndHeader"];
/// Nanoseconds in the unit of time.
const MICROSECOND: u64 = 1_000;

/// Reads all lines.
pub(crate) fn read<R: Read>(lines: &mut Lines<R>, draft: &mut Draft) -> Result<(), Error> {
    let mut defining = false;
    while let Some(line) = lines.next_filled_line()? {
        match line.trim() {
            word if word == HEADING[0] => defining = true,
            word if word == HEADING[1] => defining = false,
            _ if defining => {}
            line => event(lines, draft, line)?,
        }
    }
    match defining {
        true => Err(lines.error("definitions without an end", HEADING[1])),
        false => Ok(()),
    }
}

fn event<R: Read>(lines: &Lines<R>, draft: &mut Draft, line: &str) -> Result<(), Error> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let op = match fields[0] {
        "DiskRead" => Op::Read,
        "DiskWrite" => Op::Write,
        "DiskFlush" | "DiskFlushBuffers" => {
            draft.tally("flushes, of which no columns are known, were skipped");
            return Ok(());
        }
        // The beginning of an operation, and events of other kinds.
        _ => {
            draft.tally("events other than DiskRead and DiskWrite were skipped");
            return Ok(());
        }
    };
    let &[_, time, process, _, _, offset, size, elapsed, disk, ..] = &fields[..] else {
        let cause = format!("{} columns in `{}`", fields.len(), shown(line));
        return Err(lines.error(cause, Format::Etw.columns()));
    };
    let done = lines.nanos("timestamp", time, MICROSECOND)?;
    let took = lines.nanos("elapsed time", elapsed, MICROSECOND)?;
    let (start, length) = (hexadecimal(lines, offset)?, hexadecimal(lines, size)?);
    let span = Span::bytes(start, length)
        .ok_or_else(|| lines.error(format!("extent of `{}`", shown(line)), ACCEPTED_SPAN))?;
    let device = lines.identifier("disk number", disk)?;
    let arrival = Arrival {
        pid: pid(process),
        service: Some(Duration::from_nanos(took)),
        ..Arrival::new(done.saturating_sub(took), op, device, span)
    };
    draft.push(arrival, span);
    Ok(())
}

fn hexadecimal<R: Read>(lines: &Lines<R>, field: &str) -> Result<u64, Error> {
    let digits = field.strip_prefix("0x").or_else(|| field.strip_prefix("0X"));
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| {
        lines.error(format!("`{}`", shown(field)), "a hexadecimal number, as 0x1000")
    })
}

/// The number in `name.exe (1234)`.
fn pid(process: &str) -> Option<u32> {
    process.rsplit_once('(')?.1.strip_suffix(')')?.trim().parse().ok()
}
