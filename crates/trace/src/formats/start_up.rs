//! The start-up traces of BFQ's author: requests while gnome-terminal, LibreOffice and xterm start.
//!
//! `thread delta sectors sector Seq|Rand distance run rwbs seconds C|START`, separated by blanks:
//! the thread is `name-pid`, the delta is the time from the request before, in seconds. The last
//! column tells where a thread begins a run of its own; here it is not needed, and the order is
//! that of the seconds.

use super::rwbs;
use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Span};
use crate::error::Error;
use crate::format::Format;
use crate::text::{Lines, shown};
use std::io::Read;

/// Reads all lines.
pub(crate) fn read<R: Read>(lines: &mut Lines<R>, draft: &mut Draft) -> Result<(), Error> {
    while let Some(line) = lines.next_filled_line()? {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[thread, _, sectors, sector, "Seq" | "Rand", _, _, letters, time, "C" | "START"] =
            &fields[..]
        else {
            return Err(lines.error(format!("`{}`", shown(&line)), Format::StartUp.columns()));
        };
        let pid = thread.rsplit_once('-').map_or("", |(_, pid)| pid);
        let pid = lines.identifier("pid of the thread", pid)?;
        let sector = lines.integer("sector", sector)?;
        let span = Span::sectors(sector, lines.integer("count of sectors", sectors)?)
            .ok_or_else(|| lines.error(format!("extent of `{}`", shown(&line)), ACCEPTED_SPAN))?;
        let Some((Some(op), flags)) = rwbs::parse(letters) else {
            return Err(lines.error(format!("operation `{}`", shown(letters)), rwbs::ACCEPTED));
        };
        let at = lines.nanos("time", time, 1_000_000_000)?;
        let arrival = Arrival { flags, pid: Some(pid), ..Arrival::new(at, op, 0, span) };
        draft.push(arrival, span);
    }
    Ok(())
}
