//! The names of the formats, and telling them apart by content.

use crate::blkparse;
use crate::formats::{columns, etw};
use std::fmt;
use std::str::FromStr;

/// A format that [`crate::read_trace`] understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// The kernel's binary records, version 7 or 8, in either byte order.
    Blktrace,
    /// The default text of `blkparse`.
    Blkparse,
    /// fio's I/O log, version 2 or 3.
    FioIolog,
    /// Storage Performance Council: `ASU,LBA,size,opcode,seconds`.
    Spc,
    /// MSR Cambridge: seven columns, Windows time.
    Msr,
    /// A cut of MSR Cambridge in DiskSim's columns: milliseconds, bytes.
    MsrCut,
    /// DiskSim's ASCII form and ssdsim's variant of it, which differ in the unit of time.
    DiskSim,
    /// DiskSim's validation form: measured service times of one request at a time.
    DiskSimValidation,
    /// blkreplay's load and replay files.
    Blkreplay,
    /// VMware's vscsi traces, version 1 or 2.
    Vscsi,
    /// Application start-ups, as BFQ's author recorded them.
    StartUp,
    /// SYSTOR '17: storage of virtual desktops.
    Systor,
    /// Alibaba 2020: block storage of a cloud.
    Alibaba,
    /// Tencent CBS 2018: block storage of a cloud.
    Tencent,
    /// K5cloud of Fujitsu, 2017.
    K5Cloud,
    /// Florida International University: `.blkparse` files with hashes of the data.
    Fiu,
    /// Disk events of Windows, as text.
    Etw,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 17] = [
        Format::Blktrace,
        Format::Blkparse,
        Format::FioIolog,
        Format::Spc,
        Format::Msr,
        Format::MsrCut,
        Format::DiskSim,
        Format::DiskSimValidation,
        Format::Blkreplay,
        Format::Vscsi,
        Format::StartUp,
        Format::Systor,
        Format::Alibaba,
        Format::Tencent,
        Format::K5Cloud,
        Format::Fiu,
        Format::Etw,
    ];

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        self.about().0
    }

    /// What it looks like, in a line.
    pub const fn columns(self) -> &'static str {
        self.about().1
    }

    /// Whether the unit of its times must be told, because files in different units look alike.
    pub const fn needs_time_unit(self) -> bool {
        matches!(self, Format::DiskSim)
    }

    /// All names, for messages.
    pub fn names() -> String {
        Format::ALL.map(Format::name).join(", ")
    }

    const fn about(self) -> (&'static str, &'static str) {
        match self {
            Format::Blktrace => ("blktrace", "binary records, magic 0x65617407 or 0x65617408"),
            Format::Blkparse => {
                ("blkparse", "major,minor cpu sequence seconds pid action rwbs sector + sectors …")
            }
            Format::FioIolog => ("fio", "`fio version 2 iolog` or `fio version 3 iolog`"),
            Format::Spc => ("spc", "ASU,LBA,bytes,r|w,seconds"),
            Format::Msr => {
                ("msr", "timestamp,host,disk,Read|Write,offset,bytes,response (100 ns, bytes)")
            }
            Format::MsrCut => ("msr-cut", "milliseconds disk offset bytes 0|1 (1 reads)"),
            Format::DiskSim => ("disksim", "time device sector sectors flags (bit 0 reads)"),
            Format::DiskSimValidation => {
                ("disksim-validation", "R|W Hit|Miss sector sectors service_us pause_us")
            }
            Format::Blkreplay => ("blkreplay", "start ; sector ; length ; op ; delay ; duration"),
            Format::Vscsi => ("vscsi", "binary records of 32 or 40 bytes"),
            Format::StartUp => (
                "start-up",
                "thread delta sectors sector Seq|Rand distance run rwbs seconds C|START",
            ),
            Format::Systor => ("systor", "seconds,response,R|W,LUN,offset,bytes"),
            Format::Alibaba => ("alibaba", "device,R|W,offset,bytes,microseconds"),
            Format::Tencent => ("tencent", "seconds,sector,sectors,0|1 (1 writes),volume"),
            Format::K5Cloud => ("k5cloud", "volume,seconds,R|W,offset,bytes"),
            Format::Fiu => ("fiu", "nanoseconds pid process sector sectors R|W major minor hash"),
            Format::Etw => (
                "etw",
                "DiskRead|DiskWrite, microseconds, process, thread, IRP, offset, bytes, \
                 microseconds, disk, …",
            ),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A unit of time that a user states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeUnit {
    /// `s`.
    Seconds,
    /// `ms`; DiskSim's own.
    Milliseconds,
    /// `us`.
    Microseconds,
    /// `ns`; ssdsim's.
    Nanoseconds,
}

impl TimeUnit {
    /// All of them.
    pub const ALL: [TimeUnit; 4] =
        [TimeUnit::Seconds, TimeUnit::Milliseconds, TimeUnit::Microseconds, TimeUnit::Nanoseconds];

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "s",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Microseconds => "us",
            TimeUnit::Nanoseconds => "ns",
        }
    }

    /// Nanoseconds in one.
    pub const fn nanos(self) -> u64 {
        match self {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Nanoseconds => 1,
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is none of those there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`; accepted: {accepted}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    accepted: String,
}

impl FromStr for Format {
    type Err = UnknownName;
    fn from_str(name: &str) -> Result<Format, UnknownName> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownName {
            what: "trace format",
            name: name.to_owned(),
            accepted: Format::names(),
        })
    }
}

impl FromStr for TimeUnit {
    type Err = UnknownName;
    fn from_str(name: &str) -> Result<TimeUnit, UnknownName> {
        let found = TimeUnit::ALL.into_iter().find(|unit| unit.name() == name);
        found.ok_or_else(|| UnknownName {
            what: "unit of time",
            name: name.to_owned(),
            accepted: TimeUnit::ALL.map(TimeUnit::name).join(", "),
        })
    }
}

/// The format of a file that starts with `head`; else the reason why that cannot be told.
pub(crate) fn detect(head: &[u8]) -> Result<Format, String> {
    if head.is_empty() {
        return Err("the file is empty".to_owned());
    }
    if crate::blktrace::looks_like_blktrace(head) {
        return Ok(Format::Blktrace);
    }
    if crate::formats::vscsi::version(head).is_some() {
        return Ok(Format::Vscsi);
    }
    let text = String::from_utf8_lossy(head);
    if text.starts_with("fio version ") {
        return Ok(Format::FioIolog);
    }
    if text.lines().any(crate::formats::blkreplay::is_heading) {
        return Ok(Format::Blkreplay);
    }
    let mut filled = text.lines().filter(|line| !line.trim().is_empty());
    if filled.clone().find(|line| !blkparse::may_precede(line)).is_some_and(blkparse::is_event) {
        return Ok(Format::Blkparse);
    }
    match filled.next() {
        Some(line) => detect_line(line),
        None => Err("the file is blank".to_owned()),
    }
}

/// The format of a text file whose first line is `line`.
fn detect_line(line: &str) -> Result<Format, String> {
    let number = |field: &str| crate::text::decimal(field, 1).is_some();
    let commas: Vec<&str> = line.split(',').map(str::trim).collect();
    if commas.len() == 7 && matches!(commas[3], "Read" | "Write") {
        return Ok(Format::Msr);
    }
    if let Some(format) = detect_columns(line, &commas) {
        return Ok(format);
    }
    if commas.len() >= 5 && matches!(commas[3], "r" | "R" | "w" | "W") && number(commas[4]) {
        return Ok(Format::Spc);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() == 6 && matches!(words[0], "R" | "W") && matches!(words[1], "Hit" | "Miss") {
        return Ok(Format::DiskSimValidation);
    }
    if words.len() == 10 && matches!(words[4], "Seq" | "Rand") {
        return Ok(Format::StartUp);
    }
    let shown = crate::text::shown(line);
    if words.len() == 5 && words.iter().all(|word| number(word)) {
        let (one, other) = (Format::DiskSim, Format::MsrCut);
        return Err(format!(
            "five columns as in `{shown}` are {one} ({}) or {other} ({}), and nothing in the file \
             tells which",
            one.columns(),
            other.columns()
        ));
    }
    Err(format!("no known format begins with `{shown}`"))
}

/// The corpus whose columns these are.
fn detect_columns(line: &str, commas: &[&str]) -> Option<Format> {
    let is_op = |field: &str| matches!(field, "R" | "W");
    let numbers =
        |fields: &[&str]| fields.iter().all(|field| crate::text::decimal(field, 1).is_some());
    if line.trim() == etw::HEADING[0] {
        return Some(Format::Etw);
    }
    if line.starts_with(columns::SYSTOR_HEADING) {
        return Some(Format::Systor);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_hash = |word: &str| word.len() == 32 && word.bytes().all(|it| it.is_ascii_hexdigit());
    match (commas, words.as_slice()) {
        ([time, response, op, lun, rest @ ..], _)
            if rest.len() == 2 && (is_op(op) || op.is_empty()) =>
        {
            numbers(&[time, response, lun]).then_some(Format::Systor)
        }
        ([_, op, rest @ ..], _) if rest.len() == 3 && is_op(op) => {
            numbers(rest).then_some(Format::Alibaba)
        }
        ([_, time, op, rest @ ..], _) if rest.len() == 2 && is_op(op) => {
            numbers(&[time, rest[0], rest[1]]).then_some(Format::K5Cloud)
        }
        ([_, _, _, "0" | "1", _], _) if numbers(commas) => Some(Format::Tencent),
        (_, [_, _, _, _, _, op, _, _, hash]) if is_op(op) && is_hash(hash) => Some(Format::Fiu),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_format() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        for unit in TimeUnit::ALL {
            assert_eq!(unit.name().parse(), Ok(unit));
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let message = "fnord".parse::<TimeUnit>().unwrap_err().to_string();
        assert_eq!(message, "unknown unit of time `fnord`; accepted: s, ms, us, ns");
        let message = "csv".parse::<Format>().unwrap_err().to_string();
        assert!(
            message.ends_with(
                "accepted: blktrace, blkparse, fio, spc, msr, msr-cut, disksim, \
            disksim-validation, blkreplay, vscsi, start-up, systor, alibaba, tencent, k5cloud, \
            fiu, etw"
            ),
            "{message}"
        );
    }

    #[test]
    fn text_formats_are_told_apart_by_their_first_line() {
        let cases: [(&str, Format); 14] = [
            ("0,303567,3584,w,0.000000\n", Format::Spc),
            ("0, 303567, 3584, R, 0.5, more, fields\n", Format::Spc),
            ("128166372003061629,src1,0,Read,383496192,32768,113736\n", Format::Msr),
            ("R Hit    1975456   4  15362.00000  56074.00000\n", Format::DiskSimValidation),
            ("fio version 3 iolog\n", Format::FioIolog),
            ("fio version 1 iolog\n", Format::FioIolog),
            ("Timestamp,Response,IOType,LUN,Offset,Size\n", Format::Systor),
            ("1456106400.001,0.0005,,4,1,2\n", Format::Systor),
            ("419,W,8792731648,16384,1577808000000018\n", Format::Alibaba),
            ("1538323200,12910952,128,0,1063\n", Format::Tencent),
            ("7,0.000123,R,4096,8192\n", Format::K5Cloud),
            ("89 4892 syslogd 904265560 8 W 6 0 531e779ad4bcd5f5a8c0ee5cd5f5a8c0\n", Format::Fiu),
            ("BeginHeader\n", Format::Etw),
            ("Made by\n\nstart ; sector; length ; op ;  replay_delay=0\n", Format::Blkreplay),
        ];
        for (text, format) in cases {
            assert_eq!(detect(text.as_bytes()), Ok(format), "{text}");
        }
    }

    #[test]
    fn five_columns_are_ambiguous_and_never_guessed() {
        let reason = detect(b"0.000 0 200626176 4096 0\n").unwrap_err();
        assert!(reason.contains("disksim (time") && reason.contains("msr-cut (milli"), "{reason}");
    }

    #[test]
    fn what_is_no_trace_is_said_to_be_none() {
        assert!(detect(b"").unwrap_err().contains("empty"));
        assert!(detect(b"\n \n").unwrap_err().contains("blank"));
        assert!(detect(b"\x7fELF\x02").unwrap_err().contains("no known format"));
    }
}
