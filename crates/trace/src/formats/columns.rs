//! Public corpora of cloud and university storage, which differ only in their columns.
//!
//! | corpus | columns |
//! |---|---|
//! | SYSTOR '17 | seconds, response, `R` or `W`, LUN, byte, bytes; a heading |
//! | Alibaba 2020 | device, `R` or `W`, byte, bytes, microseconds |
//! | Tencent CBS 2018 | seconds, sector, sectors, 0 reads and 1 writes, volume |
//! | K5cloud | volume, seconds, `R` or `W`, byte, bytes |
//! | FIU | nanoseconds, pid, process, sector, sectors, `R` or `W`, major, minor, hash of the data |
//!
//! Tencent's times are whole seconds: what arrives in the same one is spread over it evenly. In
//! SYSTOR's files what never got a reply has no operation and is left out.

use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Op, Span};
use crate::error::Error;
use crate::format::Format;
use crate::text::{Lines, shown};
use base::Duration;
use std::collections::BTreeMap;
use std::io::Read;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Where things stand in a line.
struct Columns {
    format: Format,
    /// Columns are separated by commas, else by blanks.
    commas: bool,
    count: usize,
    time: usize,
    /// Nanoseconds in a unit of time.
    unit: u64,
    response: Option<usize>,
    op: usize,
    reads: &'static str,
    writes: &'static str,
    start: usize,
    length: usize,
    /// Extents are in sectors, else in bytes.
    sectors: bool,
    /// What names a device, in one or two columns.
    device: &'static [usize],
    pid: Option<usize>,
}

const SYSTOR: Columns = Columns {
    format: Format::Systor,
    commas: true,
    count: 6,
    time: 0,
    unit: SECOND,
    response: Some(1),
    op: 2,
    reads: "R",
    writes: "W",
    start: 4,
    length: 5,
    sectors: false,
    device: &[3],
    pid: None,
};

const ALIBABA: Columns = Columns {
    format: Format::Alibaba,
    count: 5,
    time: 4,
    unit: 1_000,
    response: None,
    op: 1,
    start: 2,
    length: 3,
    device: &[0],
    ..SYSTOR
};

const TENCENT: Columns = Columns {
    format: Format::Tencent,
    count: 5,
    response: None,
    op: 3,
    reads: "0",
    writes: "1",
    start: 1,
    length: 2,
    sectors: true,
    device: &[4],
    ..SYSTOR
};

const K5_CLOUD: Columns = Columns {
    format: Format::K5Cloud,
    count: 5,
    time: 1,
    response: None,
    op: 2,
    start: 3,
    length: 4,
    device: &[0],
    ..SYSTOR
};

const FIU: Columns = Columns {
    format: Format::Fiu,
    commas: false,
    count: 9,
    unit: 1,
    response: None,
    op: 5,
    start: 3,
    length: 4,
    sectors: true,
    device: &[6, 7],
    pid: Some(1),
    ..SYSTOR
};

/// The first words of SYSTOR's heading.
pub(crate) const SYSTOR_HEADING: &str = "Timestamp,Response,IOType";

/// Reads all lines of a file in a format that is one of these.
pub(crate) fn read<R: Read>(
    format: Format,
    lines: &mut Lines<R>,
    draft: &mut Draft,
) -> Result<(), Error> {
    let known = [SYSTOR, ALIBABA, TENCENT, K5_CLOUD, FIU];
    let columns = known.into_iter().find(|columns| columns.format == format);
    columns.expect("it is one of these").read(lines, draft)?;
    if format == Format::Tencent {
        spread(&mut draft.arrivals);
        let remark = "times are whole seconds; the arrivals of each were spread over it evenly";
        draft.remarks.push(remark.to_owned());
    }
    Ok(())
}

impl Columns {
    fn read<R: Read>(&self, lines: &mut Lines<R>, draft: &mut Draft) -> Result<(), Error> {
        let mut devices: BTreeMap<String, u32> = BTreeMap::new();
        while let Some(line) = lines.next_filled_line()? {
            if line.starts_with(SYSTOR_HEADING) && self.format == Format::Systor {
                continue;
            }
            let fields: Vec<&str> = match self.commas {
                true => line.split(',').map(str::trim).collect(),
                false => line.split_whitespace().collect(),
            };
            if fields.len() != self.count {
                let cause = format!("{} columns in `{}`", fields.len(), shown(&line));
                return Err(lines.error(cause, self.format.columns()));
            }
            let name: Vec<String> = self.device.iter().map(|at| shown(fields[*at])).collect();
            let next = devices.len() as u32;
            let device = *devices.entry(name.join(",")).or_insert(next);
            if let Some((arrival, span)) = self.arrival(lines, draft, &fields, device)? {
                draft.devices.entry(device).or_insert_with(|| name.join(","));
                draft.push(arrival, span);
            }
        }
        Ok(())
    }

    fn arrival<R: Read>(
        &self,
        lines: &Lines<R>,
        draft: &mut Draft,
        fields: &[&str],
        device: u32,
    ) -> Result<Option<(Arrival, Span)>, Error> {
        let op = match fields[self.op] {
            op if op == self.reads => Op::Read,
            op if op == self.writes => Op::Write,
            "" if self.format == Format::Systor => {
                draft.tally("operations without a reply, whose kind is unknown, were skipped");
                return Ok(None);
            }
            op => {
                let accepted = format!("{} or {}", self.reads, self.writes);
                return Err(lines.error(format!("operation `{}`", shown(op)), accepted));
            }
        };
        let at = lines.nanos("timestamp", fields[self.time], self.unit)?;
        let start = lines.integer("start", fields[self.start])?;
        let length = lines.integer("length", fields[self.length])?;
        let span = if self.sectors { Span::sectors } else { Span::bytes }(start, length);
        let span = span
            .ok_or_else(|| lines.error(format!("extent of {start} + {length}"), ACCEPTED_SPAN))?;
        let mut arrival = Arrival::new(at, op, device, span);
        if let Some(column) = self.pid {
            arrival.pid = Some(lines.identifier("pid", fields[column])?);
        }
        if let Some(column) = self.response {
            let response = lines.nanos("response time", fields[column], self.unit)?;
            arrival.service = Some(Duration::from_nanos(response));
        }
        Ok(Some((arrival, span)))
    }
}

/// Spreads what arrives at the same whole second over that second.
fn spread(arrivals: &mut [Arrival]) {
    arrivals.sort_by_key(|arrival| arrival.at);
    for second in arrivals.chunk_by_mut(|one, other| one.at == other.at) {
        let count = second.len() as u64;
        for (number, arrival) in (0..).zip(second) {
            // A file has fewer than 2^34 lines a second, so this does not overflow.
            arrival.at += Duration::from_nanos(number * SECOND / count);
        }
    }
}
