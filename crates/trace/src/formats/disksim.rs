//! The text formats around DiskSim, in blank-separated columns.
//!
//! * DiskSim's ASCII form: `time device sector sectors flags`, where bit 0 of the flags reads.
//!   DiskSim counts milliseconds, ssdsim counts nanoseconds in the same columns; the files look
//!   alike, so the unit is told and never guessed.
//! * Cuts of MSR Cambridge in circulation: the same columns, but milliseconds and bytes.
//! * The validation form: `R|W Hit|Miss sector sectors service pause`, microseconds. The disk
//!   served one request at a time. The pause lies between the completion of the request before
//!   and this one; in the trace of a Cheetah 9LP it does, since only so the angle of the disk at
//!   completion agrees with the sector read (resultant length 0.87 at 5.970 ms a revolution; below
//!   0.1 when the column is taken as the time between arrivals, in either direction).

use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Op, Span};
use crate::error::Error;
use crate::format::{Format, TimeUnit};
use crate::text::{LATEST, Lines, shown};
use base::Duration;
use std::io::Read;

/// Reads DiskSim's ASCII form with times in `unit`.
pub(crate) fn read_ascii<R: Read>(
    lines: &mut Lines<R>,
    draft: &mut Draft,
    unit: TimeUnit,
) -> Result<(), Error> {
    read_five(lines, draft, unit, Format::DiskSim, Span::sectors)
}

/// Reads a cut of MSR Cambridge.
pub(crate) fn read_msr_cut<R: Read>(lines: &mut Lines<R>, draft: &mut Draft) -> Result<(), Error> {
    read_five(lines, draft, TimeUnit::Milliseconds, Format::MsrCut, Span::bytes)
}

fn read_five<R: Read>(
    lines: &mut Lines<R>,
    draft: &mut Draft,
    unit: TimeUnit,
    format: Format,
    to_span: fn(u64, u64) -> Option<Span>,
) -> Result<(), Error> {
    while let Some(line) = lines.next_filled_line()? {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[time, device, start, length, flags] = &fields[..] else {
            let cause = format!("{} columns in `{}`", fields.len(), shown(&line));
            return Err(lines.error(cause, format.columns()));
        };
        let at = lines.nanos("time", time, unit.nanos())?;
        let device = lines.identifier("device", device)?;
        let start = lines.integer("start", start)?;
        let span = to_span(start, lines.integer("length", length)?)
            .ok_or_else(|| lines.error(format!("extent of `{}`", shown(&line)), ACCEPTED_SPAN))?;
        let flags = u64::from_str_radix(flags, 16).map_err(|_| {
            let cause = format!("flags `{}`", shown(flags));
            lines.error(cause, "a hexadecimal number whose bit 0 reads")
        })?;
        let op = if flags & 1 == 1 { Op::Read } else { Op::Write };
        draft.push(Arrival::new(at, op, device, span), span);
    }
    Ok(())
}

/// Reads DiskSim's validation form.
pub(crate) fn read_validation<R: Read>(
    lines: &mut Lines<R>,
    draft: &mut Draft,
) -> Result<(), Error> {
    let mut completed_before = 0u64;
    while let Some(line) = lines.next_filled_line()? {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[op, cache, sector, sectors, service, pause] = &fields[..] else {
            let cause = format!("{} columns in `{}`", fields.len(), shown(&line));
            return Err(lines.error(cause, Format::DiskSimValidation.columns()));
        };
        let op = match op {
            "R" => Op::Read,
            "W" => Op::Write,
            _ => return Err(lines.error(format!("direction `{}`", shown(op)), "R or W")),
        };
        // The column claims `Hit` for every request of every trace at hand: it says nothing.
        if !matches!(cache, "Hit" | "Miss") {
            return Err(lines.error(format!("`{}`", shown(cache)), "Hit or Miss"));
        }
        let sector = lines.integer("sector", sector)?;
        let span = Span::sectors(sector, lines.integer("count of sectors", sectors)?)
            .ok_or_else(|| lines.error(format!("extent of `{}`", shown(&line)), ACCEPTED_SPAN))?;
        let service = lines.nanos("service time", service, 1_000)?;
        let pause = lines.nanos("pause", pause, 1_000)?;
        let at = completed_before + pause;
        completed_before = at + service;
        if completed_before > LATEST {
            return Err(lines.error("times add up to over 146 years", "a shorter recording"));
        }
        let arrival = Arrival {
            service: Some(Duration::from_nanos(service)),
            think: Some(Duration::from_nanos(pause)),
            ..Arrival::new(at, op, 0, span)
        };
        draft.push(arrival, span);
    }
    Ok(())
}
