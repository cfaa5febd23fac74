//! What the disk did, beside a recording: lines of `ACCEPTED COMPLETED DISK OPERATION
//! SECTOR+SECTORS SLOT`, times in seconds by the clock of the records.
//!
//! Records name no requests. Where two that look the same are with the disk, this log tells which
//! of them was completed.

use super::{place, read_if_there};
use crate::error::Error;
use base::{Instant, Sector, Sectors};
use block::Op;
use std::path::Path;

/// A command that read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskCommand {
    /// When the disk got it.
    pub accepted: Instant,
    /// When the disk was done with it.
    pub completed: Instant,
    /// Read or write.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
}

impl DiskCommand {
    /// Understands a line; `None` for the title, and for commands that neither read nor write.
    fn parse(line: &str) -> Result<Option<DiskCommand>, ()> {
        if line.starts_with('#') || line.trim().is_empty() {
            return Ok(None);
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [accepted, completed, _disk, op, place, _slot] = words[..] else { return Err(()) };
        let op = match op {
            "Read" => Op::Read,
            "Write" => Op::Write,
            _ => return Ok(None),
        };
        let (sector, sectors) = place.split_once('+').ok_or(())?;
        Ok(Some(DiskCommand {
            accepted: instant(accepted)?,
            completed: instant(completed)?,
            op,
            sector: Sector(sector.parse().map_err(drop)?),
            sectors: Sectors(sectors.parse().map_err(drop)?),
        }))
    }
}

fn instant(seconds: &str) -> Result<Instant, ()> {
    let (whole, nanos) = seconds.split_once('.').filter(|it| it.1.len() == 9).ok_or(())?;
    let whole: u64 = whole.parse().map_err(drop)?;
    let nanos: u64 = nanos.parse().map_err(drop)?;
    let all = whole.checked_mul(1_000_000_000).and_then(|it| it.checked_add(nanos)).ok_or(())?;
    Ok(Instant::from_nanos(all))
}

/// The commands in a file, in its order; none if it is not there.
pub(super) fn read_disk(path: &Path) -> Result<Vec<DiskCommand>, Error> {
    let text = read_if_there(path)?.unwrap_or_default();
    let lines = text.lines().enumerate();
    let commands = lines.filter_map(|(number, line)| {
        let accepted = "ACCEPTED COMPLETED DISK OPERATION SECTOR+SECTORS SLOT, as in 2.000334533 \
                        2.000503980 0 Read 16+8 0";
        let bad = |()| Error::bad(place(path, number), format!("\"{line}\""), accepted);
        DiskCommand::parse(line).map_err(bad).transpose()
    });
    commands.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command() {
        let of = DiskCommand::parse;
        let command = DiskCommand {
            accepted: Instant::from_nanos(2_000_334_533),
            completed: Instant::from_nanos(2_000_503_980),
            op: Op::Read,
            sector: Sector(16),
            sectors: Sectors(8),
        };
        assert_eq!(of("2.000334533 2.000503980 0 Read 16+8 0"), Ok(Some(command)));
        assert_eq!(of("# accepted completed disk operation sector+sectors slot"), Ok(None));
        assert_eq!(of("2.000334533 2.000503980 0 Flush 0+0 0"), Ok(None));
        for bad in ["2.0 2.000503980 0 Read 16+8 0", "x", "2.000334533 2.000503980 0 Read 16 0"] {
            assert_eq!(of(bad), Err(()), "{bad}");
        }
    }
}
