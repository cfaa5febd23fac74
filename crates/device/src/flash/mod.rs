//! Solid-state drives: what their model files hold, and the drive built from it.
//!
//! [`drive`] lives a command's life: controller, flash or buffer, link. [`media`] is the flash
//! itself, [`buffer`] what happens to written data between the link and the flash.

mod buffer;
mod drive;
mod media;
#[cfg(test)]
mod tests;
mod timed_fifo;

use base::Duration;

pub(crate) use drive::Drive;

use crate::distribution;
use buffer::BufferRules;
use media::MediaRules;
use params::Accept::{Flag, Rate, Real, Rows, Size, Time, Whole};
use params::Error;
use params::{Section, Table, spec};

const FLASH: Section = Section {
    name: "flash",
    required: true,
    specs: &[
        spec("channels", Whole(1, 64, "")),
        spec("units_per_channel", Whole(1, 256, "")),
        spec("page", Size(512.0, 1e6)),
        spec("program_unit", Size(512.0, 1e7)),
        spec("read", Rows(1, "us")),
        spec("program", Time(1e3, 1e9)),
        spec("erase", Time(0.0, 1e9)),
        spec("erase_block", Size(65_536.0, 1e9)),
        spec("moves_whole_page", Flag),
        spec("prefilled", Flag),
    ],
};
const CHANNEL: Section =
    Section { name: "channel", required: false, specs: &[spec("rate", Rate(1e6, 1e11))] };
const SUSPEND: Section =
    Section { name: "suspend", required: false, specs: &[spec("delay", Time(0.0, 1e8))] };
const RETRY: Section = Section {
    name: "retry",
    required: false,
    specs: &[spec("share", Real(0.0, 0.1, "")), spec("time", Time(0.0, 1e9))],
};
const CONTROLLER: Section = Section {
    name: "controller",
    required: true,
    specs: &[
        spec("in_order", Flag),
        spec("read_serial", Time(0.0, 1e9)),
        spec("read_latency", Time(0.0, 1e9)),
        spec("read_large_extra", Time(0.0, 1e9)),
        spec("write_serial", Time(0.0, 1e9)),
        spec("write_latency", Time(0.0, 1e9)),
        spec("discard", Time(0.0, 1e10)),
        spec("discard_rate", Rate(1e6, 1e15)),
    ],
};
const LINK: Section = Section {
    name: "link",
    required: true,
    specs: &[
        spec("read_rate", Rate(1e6, 1e11)),
        spec("scattered_rate", Rate(1e6, 1e11)),
        spec("write_rate", Rate(1e6, 1e11)),
        spec("full_duplex", Flag),
    ],
};
const WRITE_BUFFER: Section = Section {
    name: "write_buffer",
    required: true,
    specs: &[
        spec("size", Size(4096.0, 1e11)),
        spec("drain_rate", Rate(1e6, 1e11)),
        spec("flush", Time(0.0, 1e10)),
        spec("forced", Time(0.0, 1e10)),
        spec("scatter", distribution::sigma()),
        spec("flush_clean", Time(0.0, 1e10)),
    ],
};
const FAST_AREA: Section = Section {
    name: "fast_area",
    required: false,
    specs: &[
        spec("size", Size(1e6, 1e13)),
        spec("size_full", Size(0.0, 1e13)),
        spec("program", Time(1e3, 1e9)),
        spec("drain_rate", Rate(1e6, 1e11)),
        spec("fold_rate", Rate(1e6, 1e11)),
    ],
};
const GARBAGE_COLLECTION: Section = Section {
    name: "garbage_collection",
    required: false,
    specs: &[
        spec("amplification_random", Real(1.0, 100.0, "")),
        spec("amplification_sequential", Real(1.0, 100.0, "")),
        spec("batch", Size(4096.0, 1e12)),
    ],
};

/// The sections of a flash model.
pub(crate) const SCHEMA: [&Section; 9] = [
    &FLASH,
    &CHANNEL,
    &SUSPEND,
    &RETRY,
    &CONTROLLER,
    &LINK,
    &WRITE_BUFFER,
    &FAST_AREA,
    &GARBAGE_COLLECTION,
];

/// Everything a flash drive needs to know, in integers.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    media: MediaRules,
    buffer: BufferRules,
    page: u64,
    moves_whole_page: bool,
    prefilled: bool,
    /// Sensing times of the kinds of pages, each an equal share of all.
    read: Vec<Duration>,
    retry: Option<Retry>,
    /// A write without room holds up what comes after it.
    in_order: bool,
    read_serial: Duration,
    read_latency: Duration,
    read_large_extra: Duration,
    write_serial: Duration,
    write_latency: Duration,
    discard: Duration,
    /// Picoseconds a byte.
    discard_byte: u64,
    read_byte: u64,
    scattered_byte: u64,
    write_byte: u64,
    full_duplex: bool,
}

/// Pages that cannot be read at once.
#[derive(Clone, Debug)]
struct Retry {
    /// One page of so many, on average.
    of: u64,
    /// What such a page takes beyond its sensing.
    time: Duration,
}

impl Retry {
    fn load(table: &Table) -> Option<Retry> {
        let share = table.has("retry").then(|| table.real("retry.share"))?;
        let of = libm::round(1.0 / share.max(1e-12)) as u64;
        (share > 0.0).then(|| Retry { of, time: table.time("retry.time") })
    }
}

impl Parameters {
    pub fn load(table: &Table) -> Result<Parameters, Error> {
        let rows = table.rows("flash.read");
        if rows.is_empty() || rows.iter().any(|row| !(0.0..=1e6).contains(&row[0])) {
            let accepted = "one time per kind of page, from 0 to 1000000 us";
            return Err(table.refuse("flash.read", format!("rows {rows:?}"), accepted));
        }
        let micros = |row: &Vec<f64>| Duration::from_nanos(libm::round(row[0] * 1e3) as u64);
        Ok(Parameters {
            media: MediaRules::load(table),
            buffer: BufferRules::load(table),
            page: table.size("flash.page"),
            moves_whole_page: table.flag("flash.moves_whole_page"),
            prefilled: table.flag("flash.prefilled"),
            read: rows.iter().map(micros).collect(),
            retry: Retry::load(table),
            in_order: table.flag("controller.in_order"),
            read_serial: table.time("controller.read_serial"),
            read_latency: table.time("controller.read_latency"),
            read_large_extra: table.time("controller.read_large_extra"),
            write_serial: table.time("controller.write_serial"),
            write_latency: table.time("controller.write_latency"),
            discard: table.time("controller.discard"),
            discard_byte: byte_time(table, "controller.discard_rate"),
            read_byte: byte_time(table, "link.read_rate"),
            scattered_byte: byte_time(table, "link.scattered_rate"),
            write_byte: byte_time(table, "link.write_rate"),
            full_duplex: table.flag("link.full_duplex"),
        })
    }
}

/// Picoseconds a byte at the rate of this parameter.
fn byte_time(table: &Table, name: &str) -> u64 {
    libm::round(1e12 / table.real(name)) as u64
}

/// The time of `bytes` at so many picoseconds each.
fn time_of(bytes: u64, byte: u64) -> Duration {
    Duration::from_nanos(bytes * byte / 1000)
}
