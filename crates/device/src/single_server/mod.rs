//! A disk that does one thing at a time, by a formula of few terms.
//!
//! Such a disk serves recordings of kernels: a driver with memory in the place of a medium
//! completes each command when the formula says, so service times are known exactly and what is
//! left in a recording is the kernel's. Whoever has the formula has the disk. The terms are an
//! overhead and the transfer; with `[arm]`, a seek by the root of the distance and the wait for the
//! sector; with `[buffer]`, a track buffer that the arm fills while nobody asks for anything else.
//!
//! Leaves out: zones, skew, heads, a write cache that does anything (a flush takes a fixed time).

mod arm;
mod buffer;
mod server;

use arm::Arm;
use base::Duration;
use block::command::Facts;
use buffer::Ahead;
use params::Accept::{Choice, Real, Time, Whole};
use params::Error;
use params::{Accept, Section, Table, spec};
pub(crate) use server::Server;

const SERVICE: Section = Section {
    name: "service",
    required: true,
    specs: &[
        spec("overhead", Time(0.0, 1e9)),
        spec("sector", Real(0.0, 1e9, "ns")),
        spec("flush", Time(0.0, 1e10)),
        spec("turnaround", Time(0.0, 1e9)),
        spec("order", Choice(&["fifo", "positioning"])),
        spec("ageing", Time(0.0, 1e11)),
    ],
};
const ARM: Section = Section {
    name: "arm",
    required: false,
    specs: &[
        spec("revolution", Time(1.0, 1e9)),
        spec("sectors_per_track", Whole(1, 1_000_000, "sectors")),
        spec("near", Accept::Size(0.0, 1e9)),
        spec("seek_least", Time(0.0, 1e9)),
        spec("seek_root", Time(0.0, 1e9)),
        spec("streak", Time(0.0, 1e10)),
    ],
};
const BUFFER: Section = Section {
    name: "buffer",
    required: false,
    specs: &[spec("ahead", Accept::Size(512.0, 1e9)), spec("kept", Accept::Size(512.0, 1e10))],
};

/// The sections of a single-server model.
pub(crate) const SCHEMA: [&Section; 3] = [&SERVICE, &ARM, &BUFFER];

/// What the disk needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    overhead: Duration,
    /// Femtoseconds in which a sector is transferred.
    sector: u64,
    flush: Duration,
    /// From the end of a command to the start of the next one that waits.
    turnaround: Duration,
    /// The command goes first that is reached soonest; else the oldest.
    by_positioning: bool,
    /// A command that has waited longer goes first in any case.
    ageing: Duration,
    arm: Option<Arm>,
    ahead: Option<Ahead>,
}

impl Parameters {
    pub fn load(table: &Table, facts: &Facts) -> Result<Parameters, Error> {
        let arm = table.has(ARM.name).then(|| Arm::load(table, facts));
        let by_positioning = table.text("service.order") == "positioning";
        if by_positioning && arm.is_none() {
            let problem = "by positioning, without an arm".to_string();
            return Err(table.refuse("service.order", problem, "\"fifo\", or a section [arm]"));
        }
        let ahead = table.has(BUFFER.name).then(|| Ahead::load(table));
        if ahead.is_some() && arm.is_none() {
            let problem = "a track buffer without an arm".to_string();
            return Err(table.refuse("buffer.ahead", problem, "a section [arm] as well"));
        }
        Ok(Parameters {
            overhead: table.time("service.overhead"),
            sector: libm::round(table.real("service.sector") * 1e6) as u64,
            flush: table.time("service.flush"),
            turnaround: table.time("service.turnaround"),
            by_positioning,
            ageing: table.time("service.ageing"),
            arm,
            ahead,
        })
    }

    /// How long so many sectors take to pass.
    fn transfer(&self, sectors: u64) -> Duration {
        Duration::from_nanos((u128::from(sectors) * u128::from(self.sector) / 1_000_000) as u64)
    }
}
