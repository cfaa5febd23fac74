//! The load and replay files of blkreplay.
//!
//! Free text, then a heading `start ; sector; length ; op ; …`, then lines of that shape: seconds
//! from the start, sector, sectors, operation, and in files that were replayed the delay and the
//! duration in seconds. Zero there means that it was not measured.

use super::rwbs;
use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Op, Span};
use crate::error::Error;
use crate::text::{Lines, shown};
use base::Duration;
use std::io::Read;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Whether `line` is the heading that ends the free text.
pub(crate) fn is_heading(line: &str) -> bool {
    let mut columns = line.split(';').map(str::trim);
    columns.next() == Some("start") && columns.next() == Some("sector")
}

/// Reads all lines.
pub(crate) fn read<R: Read>(lines: &mut Lines<R>, draft: &mut Draft) -> Result<(), Error> {
    loop {
        match lines.next_line()? {
            None => return Err(lines.error("end of file", "a heading `start ; sector; …`")),
            Some(line) if is_heading(&line) => break,
            Some(_) => {}
        }
    }
    while let Some(line) = lines.next_filled_line()? {
        let fields: Vec<&str> = line.split(';').map(str::trim).collect();
        let (&[start, sector, length, op], measured) = match fields.split_first_chunk() {
            Some((four, rest)) if rest.len() <= 2 => (four, rest),
            _ => {
                let cause = format!("{} fields in `{}`", fields.len(), shown(&line));
                let accepted = "start ; sector ; length ; op [; delay [; duration]]";
                return Err(lines.error(cause, accepted));
            }
        };
        let at = lines.nanos("start", start, SECOND)?;
        let sector = lines.integer("sector", sector)?;
        let span = Span::sectors(sector, lines.integer("length", length)?)
            .ok_or_else(|| lines.error(format!("extent of `{}`", shown(&line)), ACCEPTED_SPAN))?;
        let Some((Some(op), flags)) = rwbs::parse(op) else {
            return Err(lines.error(format!("operation `{}`", shown(op)), rwbs::ACCEPTED));
        };
        let op = if op == Op::Write && flags.preflush && span.is_empty() { Op::Flush } else { op };
        let mut times = [0; 2];
        for (time, field) in times.iter_mut().zip(measured) {
            *time = lines.nanos("measured time", field, SECOND)?;
        }
        let service = Some(times[1]).filter(|nanos| *nanos > 0).map(Duration::from_nanos);
        draft.push(Arrival { flags, service, ..Arrival::new(at, op, 0, span) }, span);
    }
    Ok(())
}
