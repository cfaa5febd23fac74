//! fio's I/O logs, versions 2 and 3.
//!
//! Both name a file, an action and its extent in bytes; a file is added and opened before it is
//! used. Version 3 puts a time in microseconds before each line. Version 2 has none, only `wait N`,
//! and whatever the manual says, fio waits until N *milliseconds* after its start (formats trap 8).

use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Op, Span, Trace};
use crate::error::Error;
use crate::text::{LATEST, Lines, shown};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// The first lines that begin a log.
const HEADINGS: [&str; 2] = ["fio version 2 iolog", "fio version 3 iolog"];

/// What a log may ask of a file.
const ACTIONS: &str = "add, open, close, read, write, trim, sync, datasync, wait (version 2)";

/// A log while it is read.
struct Log {
    version: u8,
    files: BTreeMap<String, LogFile>,
    now: u64,
}

struct LogFile {
    device: u32,
    open: bool,
}

/// Reads all lines.
pub(crate) fn read<R: Read>(lines: &mut Lines<R>, draft: &mut Draft) -> Result<(), Error> {
    let heading = lines.next_line()?.unwrap_or_default();
    let version = match HEADINGS.iter().position(|known| *known == heading) {
        Some(which) => 2 + which as u8,
        None => {
            let accepted = HEADINGS.map(|line| format!("`{line}`")).join(" or ");
            return Err(lines.error(format!("first line `{}`", shown(&heading)), accepted));
        }
    };
    let mut log = Log { version, files: BTreeMap::new(), now: 0 };
    while let Some(line) = lines.next_filled_line()? {
        log.line(lines, draft, &line)?;
    }
    Ok(())
}

impl Trace {
    /// Writes it as a fio I/O log of version 3, whose files are the devices.
    ///
    /// Times are rounded down to microseconds. fio before 3.34 refuses a log with discards in it.
    /// Of the names of devices, what is no ASCII letter, digit or one of `/._:-` becomes `_`.
    pub fn write_fio_iolog(&self, out: &mut impl Write) -> io::Result<()> {
        let name = |device: u32| -> String {
            let plain = |c: char| c.is_ascii_alphanumeric() || "/._:-".contains(c);
            self.devices[&device].chars().map(|c| if plain(c) { c } else { '_' }).collect()
        };
        writeln!(out, "{}", HEADINGS[1])?;
        for action in ["add", "open"] {
            for device in self.devices.keys() {
                writeln!(out, "0 {} {action}", name(*device))?;
            }
        }
        let mut last = 0;
        for arrival in &self.arrivals {
            last = arrival.at.as_nanos() / 1_000;
            let action = match arrival.op {
                Op::Read => "read",
                Op::Write => "write",
                Op::Discard => "trim",
                Op::Flush => "sync",
            };
            let (name, offset) = (name(arrival.device), arrival.sector.bytes().0);
            writeln!(out, "{last} {name} {action} {offset} {}", arrival.bytes.0)?;
        }
        for device in self.devices.keys() {
            writeln!(out, "{last} {} close", name(*device))?;
        }
        Ok(())
    }
}

impl Log {
    fn line<R: Read>(
        &mut self,
        lines: &Lines<R>,
        draft: &mut Draft,
        line: &str,
    ) -> Result<(), Error> {
        let mut fields: Vec<&str> = line.split_whitespace().collect();
        if self.version == 3 {
            self.now = lines.nanos("timestamp in microseconds", fields.remove(0), 1_000)?;
        }
        match fields[..] {
            [name, "add"] => self.add(draft, name),
            [name, "open"] => self.find(lines, name)?.open = true,
            [name, "close"] => self.find(lines, name)?.open = false,
            [_, "wait", millis] | [_, "wait", millis, _] if self.version == 2 => {
                let until = lines.integer("wait", millis)?.checked_mul(1_000_000);
                let until = until.filter(|until| *until <= LATEST);
                let until = until.ok_or_else(|| {
                    lines.error(format!("wait `{millis}`"), "milliseconds since the start")
                })?;
                self.now = self.now.max(until);
            }
            [name, action, offset, length] => {
                self.transfer(lines, draft, name, action, offset, length)?;
            }
            _ => {
                let accepted = format!("FILE ACTION [OFFSET LENGTH], where ACTION is {ACTIONS}");
                return Err(lines.error(format!("`{}`", shown(line)), accepted));
            }
        }
        Ok(())
    }

    fn add(&mut self, draft: &mut Draft, name: &str) {
        let device = self.files.len() as u32;
        if !self.files.contains_key(name) {
            self.files.insert(name.to_owned(), LogFile { device, open: false });
            draft.devices.insert(device, name.to_owned());
        }
    }

    fn find<R: Read>(&mut self, lines: &Lines<R>, name: &str) -> Result<&mut LogFile, Error> {
        self.files.get_mut(name).ok_or_else(|| {
            let cause = format!("file `{}` was not added", shown(name));
            lines.error(cause, "a file after its line `add`")
        })
    }

    fn transfer<R: Read>(
        &mut self,
        lines: &Lines<R>,
        draft: &mut Draft,
        name: &str,
        action: &str,
        offset: &str,
        length: &str,
    ) -> Result<(), Error> {
        let op = match action {
            "read" => Op::Read,
            "write" => Op::Write,
            "trim" => Op::Discard,
            "sync" | "datasync" => Op::Flush,
            _ => return Err(lines.error(format!("action `{}`", shown(action)), ACTIONS)),
        };
        let file = self.find(lines, name)?;
        let device = file.device;
        if !file.open {
            let cause = format!("file `{}` is not open", shown(name));
            return Err(lines.error(cause, "a file after its line `open`"));
        }
        let offset = lines.integer("offset", offset)?;
        let length = lines.integer("length", length)?;
        let span = if op == Op::Flush { Some(Span::FLUSH) } else { Span::bytes(offset, length) };
        let span = span.ok_or_else(|| {
            lines.error(format!("extent of {offset} + {length} bytes"), ACCEPTED_SPAN)
        })?;
        draft.push(Arrival::new(self.now, op, device, span), span);
        Ok(())
    }
}
