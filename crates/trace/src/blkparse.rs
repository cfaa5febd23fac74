//! The text that `blkparse` prints by default, read and written.
//!
//! A line is `8,0 3 11 0.009009692 697 Q W 223490 + 8 [kjournald]`: device, CPU, sequence, seconds
//! from the first event, pid, action, direction and flags, and a tail that depends on the action.
//! The text says less than the records: categories beyond the letters, the payloads of passthrough
//! commands and the device on which a remap was seen are gone. The summary behind the events is
//! not read.

use crate::blktrace::{Action, Categories, DevT, Payload, Record};
use crate::error::{Error, Place};
use crate::text::{Lines, decimal, shown};
use base::{Instant, Sector};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;

/// What an error says it wants.
const ACCEPTED: &str = "a line of blkparse's default format";

/// Records from text, streaming; the notes that name tasks are made from the names in the lines.
pub struct Reader<R> {
    lines: Lines<R>,
    names: BTreeMap<u32, String>,
    pending: Option<Record>,
    lent: Option<Record>,
    finished: bool,
}

/// A line taken apart as far as all actions agree.
struct Fields<'a> {
    device: DevT,
    cpu: u32,
    sequence: u32,
    time: u64,
    pid: u32,
    cgroup: Option<u64>,
    action: Action,
    rwbs: &'a str,
    tail: &'a str,
}

impl<R: Read> Reader<R> {
    /// Records of `source`, which errors call `name`.
    pub fn new(source: R, name: &str) -> Self {
        let lines = Lines::new(source, name);
        Reader { lines, names: BTreeMap::new(), pending: None, lent: None, finished: false }
    }

    /// An error at the line that was read last.
    pub(crate) fn error(&self, cause: &str, accepted: &str) -> Error {
        self.lines.error(cause, accepted)
    }

    fn read_record(&mut self) -> Result<Option<Record>, Error> {
        if let Some(record) = self.pending.take() {
            return Ok(Some(record));
        }
        let line = loop {
            match self.lines.next_filled_line()? {
                None => return Ok(None),
                Some(line) if is_summary(&line) => return Ok(None),
                Some(line) if is_remark(&line) => {}
                Some(line) => break line,
            }
        };
        let refuse = || self.lines.error(format!("`{}`", shown(&line)), ACCEPTED);
        let (record, name) = fields(&line).and_then(|fields| fields.record()).ok_or_else(refuse)?;
        let known = self.names.get(&record.pid).map(String::as_str);
        let Some(name) = name.filter(|name| *name != "(null)" && known != Some(name)) else {
            return Ok(Some(record));
        };
        self.names.insert(record.pid, name.to_owned());
        let Record { time, pid, device, cpu, .. } = record;
        self.pending = Some(record);
        Ok(Some(Record { device, cpu, ..Record::process(time, pid, name) }))
    }
}

impl<R: Read> Reader<R> {
    /// The next record, lent until the one after it is asked for.
    pub fn lend(&mut self) -> Result<Option<&Record>, Error> {
        self.lent = self.next().transpose()?;
        Ok(self.lent.as_ref())
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        if self.finished {
            return None;
        }
        let result = self.read_record();
        self.finished = !matches!(result, Ok(Some(_)));
        result.transpose()
    }
}

/// Whether `line` begins what `blkparse` prints at the end.
fn is_summary(line: &str) -> bool {
    ["CPU", "Total (", "Throughput (", "Events (", "Skips: "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Whether `line` is a comment or a message of the program.
fn is_remark(line: &str) -> bool {
    line.starts_with('#') || line.starts_with("Input file ")
}

/// Whether `line` is that of an event, for telling formats apart.
pub(crate) fn is_event(line: &str) -> bool {
    fields(line).is_some_and(|fields| fields.record().is_some())
}

/// Whether `line` may stand before the first event.
pub(crate) fn may_precede(line: &str) -> bool {
    is_remark(line)
}

fn fields(line: &str) -> Option<Fields<'_>> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        (!word.is_empty()).then_some(word)
    };
    // A minor number is padded behind, so the device is always one word; a major number before.
    let device = device(word()?)?;
    let cpu = word()?.parse().ok()?;
    let sequence = word()?.parse().ok()?;
    let time = decimal(word()?, 1_000_000_000)?;
    let pid = word()?.parse().ok()?;
    let mut letter = word()?;
    let cgroup = cgroup(letter);
    if cgroup.is_some() {
        letter = word()?;
    }
    let action = action(letter)?;
    let rwbs = word()?;
    // One blank, and then the text of a message, blanks and all.
    let tail = rest.strip_prefix(' ').unwrap_or(rest);
    Some(Fields { device, cpu, sequence, time, pid, cgroup, action, rwbs, tail })
}

impl<'a> Fields<'a> {
    /// The record, and the name of the task where the line has one.
    fn record(&self) -> Option<(Record, Option<&'a str>)> {
        let mut record = Record {
            sequence: self.sequence,
            device: self.device,
            cpu: self.cpu,
            pid: self.pid,
            cgroup: self.cgroup,
            ..Record::event(self.action, Instant::from_nanos(self.time))
        };
        if self.action == Action::NoteMessage {
            record.payload = Payload::Message(self.tail.as_bytes().to_vec());
            return Some((record, None));
        }
        record = record.with(categories(self.rwbs)?);
        let name = match self.action {
            Action::Remap => self.remap(&mut record)?,
            Action::Plug | Action::Unplug | Action::UnplugTimer => self.plug(&mut record)?,
            _ => self.transfer(&mut record)?,
        };
        Some((record, name))
    }

    /// `SECTOR + SECTORS <- (MAJOR,MINOR) SECTOR`
    fn remap(&self, record: &mut Record) -> Option<Option<&'a str>> {
        let (target, source) = self.tail.split_once("<-")?;
        extent(record, target)?;
        let (from, sector) = source.trim().strip_prefix('(')?.split_once(')')?;
        let sector = Sector(sector.trim().parse().ok()?);
        record.payload = Payload::Remap { from: device(from)?, to: self.device, sector };
        Some(None)
    }

    /// `[NAME]`, behind which an unplug has the number of requests
    fn plug(&self, record: &mut Record) -> Option<Option<&'a str>> {
        let (before, name, behind) = bracketed(self.tail)?;
        if !behind.is_empty() {
            record.payload = Payload::Unplug(behind.parse().ok()?);
        }
        before.is_empty().then_some(Some(name))
    }

    /// `[SECTOR [+ SECTORS]] [(NANOSECONDS)] [NAME]`; of a split `SECTOR / SECTOR [NAME]`; of a
    /// passthrough command `[BYTES] [(HEX)] [NAME]`. Completions and requeues have an errno in the
    /// place of the name.
    fn transfer(&self, record: &mut Record) -> Option<Option<&'a str>> {
        let (before, name, behind) = bracketed(self.tail)?;
        if !behind.is_empty() {
            return None;
        }
        let returns = matches!(self.action, Action::Complete | Action::Requeue);
        if returns {
            // formats trap 4: a negative errno as a number of 16 bits without a sign.
            let error: i32 = name.parse().ok()?;
            record.error = u16::try_from(error).map_or(error as i16, u16::cast_signed);
        }
        let name = (!returns).then_some(name);
        let (numbers, parenthesis) = match before.split_once('(') {
            Some((numbers, rest)) => (numbers.trim(), Some(rest.strip_suffix(')')?)),
            None => (before, None),
        };
        let lone_number = numbers.parse::<u64>().is_ok();
        // A lone number is the sector of a completion without data, but the length of a command.
        let command =
            if returns { numbers.is_empty() && parenthesis.is_some() } else { lone_number };
        if command {
            // The categories are those of a passthrough command, not of a file system's.
            let bits = record.categories.bits() & !Categories::FS.bits();
            record.categories = Categories::from_bits(bits) | Categories::PC;
            record.bytes = if numbers.is_empty() { 0 } else { numbers.parse().ok()? };
        } else if let Some((sector, second)) = numbers.split_once('/') {
            record.sector = Sector(sector.trim().parse().ok()?);
            record.payload = Payload::Split(Sector(second.trim().parse().ok()?));
        } else if !numbers.is_empty() {
            extent(record, numbers)?;
        }
        Some(name)
    }
}

/// Takes `SECTOR + SECTORS` or `SECTOR` into a record.
fn extent(record: &mut Record, text: &str) -> Option<()> {
    let (sector, sectors) = text.split_once('+').unwrap_or((text, "0"));
    record.sector = Sector(sector.trim().parse().ok()?);
    let sectors: u32 = sectors.trim().parse().ok()?;
    record.bytes = sectors.checked_mul(Sector::SIZE as u32)?;
    Some(())
}

/// What stands before, inside and behind the brackets of a tail.
fn bracketed(tail: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = tail.split_once('[')?;
    let (inside, behind) = rest.rsplit_once(']')?;
    Some((before.trim(), inside, behind.trim()))
}

fn device(text: &str) -> Option<DevT> {
    let (major, minor) = text.split_once(',')?;
    let (major, minor): (u32, u32) = (major.trim().parse().ok()?, minor.trim().parse().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then(|| DevT::new(major, minor))
}

/// The column that newer versions put before the letter of a message: inode and generation.
fn cgroup(text: &str) -> Option<u64> {
    let (inode, generation) = text.split_once(',')?;
    let inode = u32::from_str_radix(inode, 16).ok()?;
    let generation = u32::from_str_radix(generation, 16).ok()?;
    Some(u64::from(generation) << 32 | u64::from(inode))
}

fn action(letter: &str) -> Option<Action> {
    let mut letters = letter.chars();
    let (letter, more) = (letters.next()?, letters.next());
    let found = Action::PRINTED.into_iter().find(|action| action.letter() == letter);
    found.filter(|_| more.is_none())
}

/// The categories that letters of direction and flags stand for.
fn categories(rwbs: &str) -> Option<Categories> {
    // Version 8; the letters of a zone are one operation, not flags.
    if let Some((zone, _)) = Categories::ZONES.into_iter().find(|(_, letters)| *letters == rwbs) {
        return Some(Categories::WRITE | zone);
    }
    let mut letters = rwbs.chars().peekable();
    let mut set = Categories::NONE;
    if letters.next_if_eq(&'F').is_some() {
        set = set | Categories::FLUSH;
    }
    set = set
        | match letters.next()? {
            'D' => Categories::WRITE | Categories::DISCARD,
            'W' => Categories::WRITE,
            // formats trap 3: what has no data carries the bit of reads.
            'R' | 'N' => Categories::READ,
            _ => return None,
        };
    let flags = [
        ('F', Categories::FUA),
        ('A', Categories::AHEAD),
        ('S', Categories::SYNC),
        ('M', Categories::META),
    ];
    for (letter, flag) in flags {
        if letters.next_if_eq(&letter).is_some() {
            set = set | flag;
        }
    }
    letters.next().is_none().then_some(set)
}

/// Writes what `blkparse -q` prints of `records`, which come in order of time; returns how many
/// lines these are. Errors call `out` by `name`.
pub fn write(
    records: impl Iterator<Item = Result<Record, Error>>,
    out: &mut impl std::io::Write,
    name: &str,
) -> Result<u64, Error> {
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let mut start = None;
    let mut lines = 0;
    for record in records {
        let record = record?;
        if let Payload::Process(comm) = &record.payload {
            let comm = comm.split(|byte| *byte == 0).next().unwrap_or_default();
            names.insert(record.pid, String::from_utf8_lossy(comm).into_owned());
        }
        // What is not printed does not start the clock.
        if Action::PRINTED.contains(&record.action) {
            start = start.or(Some(record.time));
        }
        let task = names.get(&record.pid).map_or("(null)", String::as_str);
        let Some(line) = line(&record, start.unwrap_or(record.time), task) else { continue };
        writeln!(out, "{line}").map_err(|error| {
            Error::new(name, Place::Whole, error.to_string(), "a file that can be written")
        })?;
        lines += 1;
    }
    Ok(lines)
}

/// The line that `blkparse` prints for `record` of a recording whose first event was at `start`,
/// where the task of the record is called `name`. `None` for records that it prints nothing for.
pub fn line(record: &Record, start: Instant, name: &str) -> Option<String> {
    if !Action::PRINTED.contains(&record.action) {
        return None;
    }
    let message = record.action == Action::NoteMessage;
    let device = match record.payload {
        Payload::Remap { to, .. } => to,
        _ => record.device,
    };
    let time = record.time.saturating_since(start).as_nanos();
    let cgroup = match record.cgroup.filter(|_| message) {
        Some(id) => format!("{:x},{:x} ", id as u32, id >> 32),
        None => String::new(),
    };
    let (pid, sequence) = if message { (0, 0) } else { (record.pid, record.sequence) };
    let rwbs = if message { "N".to_owned() } else { record.rwbs() };
    let mut out = format!(
        "{:>3},{:<3} {:>2} {sequence:>8} {:>5}.{:09} {pid:>5} {cgroup}{:>2} {rwbs:>3} ",
        device.major(),
        device.minor(),
        record.cpu,
        time / 1_000_000_000,
        time % 1_000_000_000,
        record.action.letter(),
    );
    tail(record, name, &mut out);
    Some(out)
}

fn tail(record: &Record, name: &str, out: &mut String) {
    let (sector, sectors) = (record.sector, record.bytes / Sector::SIZE as u32);
    let returns = matches!(record.action, Action::Complete | Action::Requeue);
    let inside = if returns { record.error.cast_unsigned().to_string() } else { name.to_owned() };
    // Writing to a string cannot fail.
    let _ = match (record.action, &record.payload) {
        (Action::NoteMessage, Payload::Message(text)) => {
            write!(out, "{}", String::from_utf8_lossy(text))
        }
        (_, Payload::Remap { from, sector: source, .. }) => {
            write!(out, "{sector} + {sectors} <- ({from}) {source}")
        }
        (_, Payload::Split(second)) => write!(out, "{sector} / {second} [{inside}]"),
        (_, Payload::Unplug(requests)) => write!(out, "[{inside}] {requests}"),
        (Action::Plug, _) => write!(out, "[{inside}]"),
        (_, payload) if record.categories.contains(Categories::PC) => {
            if !returns {
                let _ = write!(out, "{} ", record.bytes);
            }
            let shown = if record.action == Action::Queue { &Payload::None } else { payload };
            write!(out, "{}[{inside}]", hexadecimal(shown))
        }
        _ if sectors > 0 => write!(out, "{sector} + {sectors} [{inside}]"),
        _ if returns => write!(out, "{sector} [{inside}]"),
        _ => write!(out, "[{inside}]"),
    };
}

/// The bytes of a passthrough command in parentheses; of zeroes at the end the first, and dots.
fn hexadecimal(payload: &Payload) -> String {
    let Payload::Opaque(bytes) = payload else { return String::new() };
    let zeroes = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let shown = if zeroes > 0 { bytes.len() - zeroes + 1 } else { bytes.len() };
    let mut words: Vec<String> = bytes[..shown].iter().map(|byte| format!("{byte:02x}")).collect();
    if zeroes > 0 {
        words.push("..".to_owned());
    }
    format!("({}) ", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `blkparse` 1.2.0 printed of a recording with one event of every kind, and with `-t`.
    const PRINTED: &str = "
  8,0    0        1     0.000000000    77  Q  RS 100 + 8 [fio]
  8,0    0        2     0.000001000    77  G  RS 100 + 8 [fio]
  8,0    0        3     0.000001500    77  P   N [fio]
  8,0    0        4     0.000002000    77  I  RS 100 + 8 [fio]
  8,0    0        0     0.000002500     0  m   N bfq hello  world
  8,0    0        6     0.000003000    77  U   N [fio] 1
  8,0    0        7     0.000004000    77  D  RS 100 + 8 [fio]
  8,0    0        8     0.000104000     0  C  RS 100 + 8 [0]
  8,0    0        9     0.000105000    77  Q FWFM 200 + 16 [fio]
  8,0    0       10     0.000106000    77  Q   D 300 + 128 [fio]
  8,0    0       11     0.000107000    77  X   W 300 / 364 [fio]
  8,1    0       12     0.000108000    77  A   W 300 + 8 <- (253,3) 900
  8,0    0       14     0.000110000    77  R   W 200 + 16 [0]
  8,0    0       15     0.000111000    77  C   W 200 + 16 [65531]
  8,0    0       16     0.000112000    77  M   W 208 + 8 [fio]
  8,0    0       17     0.000113000    77  F   W 196 + 4 [fio]
  8,0    0       18     0.000114000    77  B   W 400 + 8 [fio]
  8,0    0       19     0.000115000    77  Q  FW [a task]
  8,0    0       20     0.000116000    77  C  FW 0 [0]
";

    fn records(text: &str) -> Vec<Record> {
        Reader::new(text.as_bytes(), "x").map(Result::unwrap).collect()
    }

    #[test]
    fn what_blkparse_printed_is_printed_again() {
        let mut name = String::new();
        let mut printed = String::new();
        for record in records(PRINTED) {
            if let Payload::Process(comm) = record.payload {
                name = String::from_utf8_lossy(&comm).trim_end_matches('\0').to_owned();
            } else {
                printed += &(line(&record, Instant::ZERO, &name).unwrap() + "\n");
            }
        }
        assert_eq!(printed, PRINTED.trim_start_matches('\n'));
    }

    #[test]
    fn payloads_errors_and_names_are_found_in_the_tail() {
        let all = records(PRINTED);
        let of = |action| all.iter().find(|record| record.action == action).unwrap();
        assert_eq!(of(Action::Unplug).payload, Payload::Unplug(1));
        assert_eq!(of(Action::Split).payload, Payload::Split(Sector(364)));
        assert_eq!(of(Action::NoteMessage).payload, Payload::Message(b"bfq hello  world".into()));
        let (from, to) = (DevT::new(253, 3), DevT::new(8, 1));
        assert_eq!(of(Action::Remap).payload, Payload::Remap { from, to, sector: Sector(900) });
        let errors: Vec<i16> = all.iter().map(|record| record.error).filter(|e| *e != 0).collect();
        assert_eq!(errors, [-5]);
        let names = all.iter().filter(|record| record.action == Action::NoteProcess).count();
        assert_eq!(names, 2, "fio, and later a task, of the same number");
    }

    #[test]
    fn a_time_in_parentheses_is_no_command() {
        let head = "  8,0    0        4     0.000002000    77 ";
        let timed = records(&format!("{head} I  RS 100 + 8 (    1000) [fio]\n"));
        assert_eq!((timed[1].sector, timed[1].bytes), (Sector(100), 4096));
        let command = records(&format!("{head} D   R 36 (12 00 00 00 24 00 ..) [fio]\n"));
        assert_eq!((command[1].op(), command[1].bytes), (None, 36));
        let done = records(&format!("{head} C   R (12 00 ..) [0]\n"));
        assert_eq!(done[0].op(), None);
    }

    #[test]
    fn a_control_group_may_stand_before_a_message() {
        let text = "8,0 0 0 0.5 0 1092,7 m   N bfq add\n";
        let message = &records(text)[0];
        assert_eq!(message.cgroup, Some(7 << 32 | 0x1092));
        let printed = line(message, Instant::ZERO, "").unwrap();
        assert!(printed.ends_with(" 0 1092,7  m   N bfq add"), "{printed}");
    }

    #[test]
    fn reading_ends_at_the_summary_and_refuses_other_text() {
        let text = format!("# comment\nInput file x added\n{PRINTED}CPU0 (plain):\n anything\n");
        assert_eq!(records(&text), records(PRINTED));
        let text = format!("{PRINTED}  8,0    0       21     0.000116000    77  Q   B 8 + 8 [x]\n");
        let error = Reader::new(text.as_bytes(), "x").find_map(Result::err).unwrap();
        assert_eq!(
            error.to_string(),
            "x:21: `  8,0    0       21     0.000116000    77  Q   B 8 + 8 [x]`; accepted: a line \
             of blkparse's default format"
        );
    }
}
