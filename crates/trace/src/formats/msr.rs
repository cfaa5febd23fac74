//! The traces of MSR Cambridge: `timestamp,hostname,disk,type,offset,size,response`.
//!
//! Times are Windows FILETIME ticks of 100 ns since 1601 (formats trap 20), offset and size bytes.
//! The files are not promised to be in order of time.

use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Op, Span};
use crate::error::Error;
use crate::text::{Lines, shown};
use base::Duration;
use std::collections::BTreeMap;
use std::io::Read;

/// Nanoseconds in a tick.
const TICK: u64 = 100;

/// Reads all lines.
pub(crate) fn read<R: Read>(lines: &mut Lines<R>, draft: &mut Draft) -> Result<(), Error> {
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    while let Some(line) = lines.next_filled_line()? {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let &[timestamp, host, disk, kind, offset, size, response] = &fields[..] else {
            let cause = format!("{} fields in `{}`", fields.len(), shown(&line));
            return Err(lines.error(cause, "the 7 fields of an MSR Cambridge trace"));
        };
        let ticks = lines.integer("timestamp", timestamp)?;
        let at = ticks.checked_mul(TICK).ok_or_else(|| {
            lines.error(format!("timestamp `{timestamp}`"), "FILETIME ticks before the year 2185")
        })?;
        let disk = lines.identifier("disk number", disk)?;
        let op = match kind {
            "Read" => Op::Read,
            "Write" => Op::Write,
            _ => return Err(lines.error(format!("type `{}`", shown(kind)), "Read or Write")),
        };
        let offset = lines.integer("offset", offset)?;
        let span = Span::bytes(offset, lines.integer("size", size)?)
            .ok_or_else(|| lines.error(format!("extent of `{}`", shown(&line)), ACCEPTED_SPAN))?;
        let response = lines.nanos("response time", response, TICK)?;

        let name = format!("{}.{disk}", shown(host));
        let next = numbers.len() as u32;
        let device = *numbers.entry(name.clone()).or_insert(next);
        draft.devices.entry(device).or_insert(name);
        let service = Some(Duration::from_nanos(response));
        draft.push(Arrival { service, ..Arrival::new(at, op, device, span) }, span);
    }
    Ok(())
}
