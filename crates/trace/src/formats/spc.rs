//! The Storage Performance Council's format, in which the UMass traces are.
//!
//! `ASU,LBA,size,opcode,timestamp[,…]`: the application storage unit is the device; the address is
//! in blocks, which are 512 bytes in the UMass traces, but the size is in bytes (formats trap 20);
//! the time is in seconds from the start.

use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Op, Span};
use crate::error::Error;
use crate::text::{Lines, shown};
use std::io::Read;

/// Reads lines whose addresses count blocks of `sectors_per_block`.
pub(crate) fn read<R: Read>(
    lines: &mut Lines<R>,
    draft: &mut Draft,
    sectors_per_block: u64,
) -> Result<(), Error> {
    while let Some(line) = lines.next_filled_line()? {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let &[asu, lba, size, opcode, timestamp, ..] = &fields[..] else {
            let cause = format!("{} fields in `{}`", fields.len(), shown(&line));
            return Err(lines.error(cause, "ASU,LBA,bytes,r|w,seconds and any further fields"));
        };
        let device = lines.identifier("ASU", asu)?;
        let first = lines.integer("LBA", lba)?.checked_mul(sectors_per_block);
        let length = lines.integer("size", size)?;
        let op = match opcode {
            "r" | "R" => Op::Read,
            "w" | "W" => Op::Write,
            _ => {
                return Err(lines.error(format!("opcode `{}`", shown(opcode)), "r, R, w or W"));
            }
        };
        let at = lines.nanos("timestamp", timestamp, 1_000_000_000)?;
        let span = first
            .and_then(|first| Span::mixed(first, length))
            .ok_or_else(|| lines.error(format!("extent of `{}`", shown(&line)), ACCEPTED_SPAN))?;
        draft.push(Arrival::new(at, op, device, span), span);
    }
    Ok(())
}
