//! The names of the formats.

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
}
