//! Disks that turn: what their model files hold, and the drive built from it.
//!
//! The parts, from the platters outward: [`geometry`] says where a sector lies, [`seek`] and
//! [`mechanics`] when the head can be there, [`queue`] which command goes next, [`cache`] what
//! needs no platters, [`drive`] lives a command's life, with [`reading`] and [`writing`].

mod cache;
mod drive;
mod geometry;
mod mechanics;
mod queue;
mod reading;
mod seek;
#[cfg(test)]
mod tests;
mod writing;

use base::{Bytes, Duration, Sector};
use block::command::Facts;

pub(crate) use drive::Drive;

use crate::table::{FindTable, NumberTable};
use cache::{Layout, WriteLayout};
use geometry::{Geometry, Tables};
use mechanics::Mechanics;
use params::Accept::{Choice, File, Flag, Rate, Real, Rows, Size, Time, Whole};
use params::Error;
use params::{Section, Table, spec};
use queue::Order;
use seek::SeekCurve;

const MILLIS: f64 = 1e6;

const GEOMETRY: Section = Section {
    name: "geometry",
    required: true,
    specs: &[spec("surfaces", Whole(1, 64, "")), spec("zones", File)],
};
const SERPENTINE: Section = Section {
    name: "serpentine",
    required: false,
    specs: &[spec("tracks_per_head", Whole(1, 1_000_000, ""))],
};
const SLIPS: Section = Section { name: "slips", required: false, specs: &[spec("table", File)] };
const ZONE_FRONTS: Section =
    Section { name: "zone_fronts", required: false, specs: &[spec("table", File)] };
const MECHANICS: Section = Section {
    name: "mechanics",
    required: true,
    specs: &[
        spec("rpm", Real(1000.0, 30_000.0, "rpm")),
        spec("head_switch", Time(0.0, 10.0 * MILLIS)),
        spec("write_settle", Time(0.0, 10.0 * MILLIS)),
        spec("write_settle_track", Time(0.0, 10.0 * MILLIS)),
        spec("zero_latency_read", Flag),
        spec("zero_latency_write", Flag),
    ],
};
const SEEK_TABLE: Section =
    Section { name: "seek_table", required: false, specs: &[spec("table", File)] };
const SEEK_FORMULA: Section = Section {
    name: "seek_formula",
    required: false,
    specs: &[spec("pieces", Rows(4, "cylinders, ms, ms, ms"))],
};
const OVERHEAD: Section = Section {
    name: "overhead",
    required: true,
    specs: &[
        spec("read_hit_in_sequence", Time(0.0, 10.0 * MILLIS)),
        spec("read_hit_after_read", Time(0.0, 10.0 * MILLIS)),
        spec("read_hit_after_write", Time(0.0, 10.0 * MILLIS)),
        spec("read_miss_after_read", Time(0.0, 10.0 * MILLIS)),
        spec("read_miss_after_write", Time(0.0, 10.0 * MILLIS)),
        spec("write_hit_after_read", Time(0.0, 10.0 * MILLIS)),
        spec("write_hit_after_write", Time(0.0, 10.0 * MILLIS)),
        spec("write_miss_after_read", Time(0.0, 10.0 * MILLIS)),
        spec("write_miss_after_write", Time(0.0, 10.0 * MILLIS)),
        spec("flush", Time(0.0, 1000.0 * MILLIS)),
    ],
};
const WRITE_HITS: Section = Section {
    name: "write_hits",
    required: false,
    specs: &[spec("are", Choice(&["joining-writes", "cached-writes"]))],
};
const LINK: Section = Section {
    name: "link",
    required: true,
    specs: &[spec("read_rate", Rate(1e5, 1e11)), spec("write_rate", Rate(1e5, 1e11))],
};
const READ_WATERMARK: Section = Section {
    name: "read_watermark",
    required: false,
    specs: &[spec("share", Real(0.0, 1.0, "share"))],
};
const READ_CACHE: Section = Section {
    name: "read_cache",
    required: true,
    specs: &[
        spec("segments", Whole(1, 65_536, "")),
        spec("segment_size", Size(4096.0, 1e9)),
        spec("keeps_delivered", Flag),
    ],
};
const LOOK_AHEAD: Section = Section {
    name: "look_ahead",
    required: true,
    specs: &[
        spec("until", Choice(&["nothing", "track", "next-track", "cylinder", "segment"])),
        spec("after", Choice(&["any-read", "sequential-read"])),
        spec("maximum", Size(0.0, 1e9)),
        spec("minimum", Size(0.0, 1e9)),
        spec("skipped", Real(0.0, 1.0, "share")),
        spec("resumes_on_hit", Flag),
        spec("stopped_by_write", Flag),
    ],
};
const WRITE_CACHE: Section = Section {
    name: "write_cache",
    required: false,
    specs: &[
        spec("shared", Flag),
        spec("segments", Whole(1, 65_536, "")),
        spec("size", Size(4096.0, 1e10)),
        spec("idle_delay", Time(0.0, 60_000.0 * MILLIS)),
        spec("high_water", Real(0.0, 1.0, "share")),
        spec("window", Whole(1, 65_536, "")),
    ],
};
const QUEUE: Section = Section {
    name: "queue",
    required: true,
    specs: &[spec("window", Whole(1, 65_536, "")), spec("ageing", Time(0.0, 1e12))],
};

/// The sections of a rotational model.
pub(crate) const SCHEMA: [&Section; 15] = [
    &GEOMETRY,
    &SERPENTINE,
    &SLIPS,
    &ZONE_FRONTS,
    &MECHANICS,
    &SEEK_TABLE,
    &SEEK_FORMULA,
    &OVERHEAD,
    &WRITE_HITS,
    &LINK,
    &READ_WATERMARK,
    &READ_CACHE,
    &LOOK_AHEAD,
    &WRITE_CACHE,
    &QUEUE,
];

/// Everything a drive needs to know, in integers.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    geometry: Geometry,
    mechanics: Mechanics,
    /// Cylinders over which neighbouring sectors may be spread.
    band_cylinders: u32,
    zero_latency_read: bool,
    zero_latency_write: bool,
    overhead: Overhead,
    /// Picoseconds for one sector over the link: to the host, and from it.
    link_sector: [u64; 2],
    /// Sectors pass under the head faster, somewhere, than the link takes them to the host.
    link_is_slow: bool,
    /// The share of a read, in thousandths, that is in the buffer before the link takes any.
    read_watermark: u64,
    layout: Layout,
    look_ahead: LookAhead,
    write_back: WriteBack,
    order: Order,
}

/// What the controller takes for a command before anything else happens, by what the command
/// before was: `[after read, after write]`.
#[derive(Clone, Debug)]
struct Overhead {
    /// A read hit that continues the read before it, in a stream without gaps.
    read_hit_in_sequence: Duration,
    read_hit: [Duration; 2],
    read_miss: [Duration; 2],
    write_hit: [Duration; 2],
    write_miss: [Duration; 2],
    /// Every write that completes in the buffer is a hit, whether or not it joins another.
    hits_are_cached: bool,
    flush: Duration,
}

/// How far the drive reads on after a read.
#[derive(Clone, Debug)]
struct LookAhead {
    until: Until,
    /// Only behind a read that continues what is in the buffer.
    after_sequential: bool,
    maximum: u64,
    /// How much is read ahead of a sequential reader before another command gets the arm.
    minimum: u64,
    /// Reads, in thousandths, after which the drive does not read ahead, for reasons of its own.
    skipped: u32,
    resumes_on_hit: bool,
    stopped_by_write: bool,
}

/// The place where reading ahead ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Nothing,
    Track,
    NextTrack,
    Cylinder,
    Segment,
}

/// When dirty data goes to the platters.
#[derive(Clone, Debug)]
struct WriteBack {
    idle_delay: Duration,
    /// From this fullness on (in thousandths) writing back takes turns with commands.
    high_water: u64,
    /// How many of the oldest dirty ranges are compared.
    window: usize,
}

impl Parameters {
    /// Builds the tables; `file` gives the text of a table beside the model file.
    pub fn load(table: &Table, facts: &Facts, file: &FindTable<'_>) -> Result<Parameters, Error> {
        let revolution = libm::round(60e9 / table.real("mechanics.rpm")) as u64;
        let geometry = load_geometry(table, facts, revolution, file)?;
        let seek = load_seek(table, geometry.cylinders(), file)?;
        let write = table.has("write_cache");
        let link_sector = ["link.read_rate", "link.write_rate"]
            .map(|rate| libm::round(512e12 / table.real(rate)) as u64);
        Ok(Parameters {
            link_is_slow: link_sector[0] > geometry.shortest_sector() * 1000,
            mechanics: Mechanics {
                revolution,
                seek,
                head_switch: table.time("mechanics.head_switch").as_nanos(),
                write_settle: table.time("mechanics.write_settle").as_nanos(),
                write_settle_track: table.time("mechanics.write_settle_track").as_nanos(),
            },
            geometry,
            band_cylinders: match table.has("serpentine") {
                true => table.whole("serpentine.tracks_per_head") as u32,
                false => 0,
            },
            zero_latency_read: table.flag("mechanics.zero_latency_read"),
            zero_latency_write: table.flag("mechanics.zero_latency_write"),
            overhead: Overhead::load(table),
            link_sector,
            read_watermark: match table.has("read_watermark") {
                true => libm::round(table.real("read_watermark.share") * 1000.0) as u64,
                false => 0,
            },
            layout: Layout {
                read_segments: table.whole("read_cache.segments") as usize,
                segment_sectors: table.size("read_cache.segment_size") / Sector::SIZE,
                keeps_delivered: table.flag("read_cache.keeps_delivered"),
                write: write.then(|| WriteLayout {
                    shared: table.flag("write_cache.shared"),
                    segments: table.whole("write_cache.segments") as usize,
                    sectors: table.size("write_cache.size") / Sector::SIZE,
                }),
            },
            look_ahead: LookAhead::load(table),
            write_back: WriteBack::load(table, write),
            order: Order {
                window: table.whole("queue.window") as usize,
                ageing: table.time("queue.ageing"),
            },
        })
    }
}

impl Parameters {
    /// How much of a read of so many sectors is in the buffer before the link takes any.
    fn sectors_to_watermark(&self, sectors: u32) -> u64 {
        (u64::from(sectors) * self.read_watermark).div_ceil(1000).max(1)
    }
}

impl Overhead {
    fn load(table: &Table) -> Overhead {
        let pair = |name: &str| {
            ["read", "write"].map(|after| table.time(&format!("overhead.{name}_after_{after}")))
        };
        Overhead {
            read_hit_in_sequence: table.time("overhead.read_hit_in_sequence"),
            read_hit: pair("read_hit"),
            read_miss: pair("read_miss"),
            write_hit: pair("write_hit"),
            write_miss: pair("write_miss"),
            hits_are_cached: table.has("write_hits")
                && table.text("write_hits.are") == "cached-writes",
            flush: table.time("overhead.flush"),
        }
    }
}

impl LookAhead {
    fn load(table: &Table) -> LookAhead {
        LookAhead {
            until: match table.text("look_ahead.until") {
                "nothing" => Until::Nothing,
                "track" => Until::Track,
                "next-track" => Until::NextTrack,
                "cylinder" => Until::Cylinder,
                _ => Until::Segment,
            },
            after_sequential: table.text("look_ahead.after") == "sequential-read",
            maximum: table.size("look_ahead.maximum") / Sector::SIZE,
            minimum: table.size("look_ahead.minimum") / Sector::SIZE,
            skipped: libm::round(table.real("look_ahead.skipped") * 1000.0) as u32,
            resumes_on_hit: table.flag("look_ahead.resumes_on_hit"),
            stopped_by_write: table.flag("look_ahead.stopped_by_write"),
        }
    }
}

impl WriteBack {
    fn load(table: &Table, present: bool) -> WriteBack {
        if !present {
            return WriteBack { idle_delay: Duration::ZERO, high_water: 0, window: 0 };
        }
        WriteBack {
            idle_delay: table.time("write_cache.idle_delay"),
            high_water: libm::round(table.real("write_cache.high_water") * 1000.0) as u64,
            window: table.whole("write_cache.window") as usize,
        }
    }
}

fn load_geometry(
    table: &Table,
    facts: &Facts,
    revolution: u64,
    file: &FindTable<'_>,
) -> Result<Geometry, Error> {
    let read = |parameter: &str, columns: &[&str]| -> Result<NumberTable, Error> {
        let found = table.named(parameter, file(table.text(parameter)))?;
        NumberTable::parse(&found.file, &found.text, columns)
    };
    let zones = read("geometry.zones", &geometry::ZONE_COLUMNS)?;
    let beside = |section: &str, columns: &[&str]| match table.has(section) {
        true => read(&format!("{section}.table"), columns).map(Some),
        false => Ok(None),
    };
    let tables = Tables {
        zones,
        slips: beside("slips", &geometry::SLIP_COLUMNS)?,
        fronts: beside("zone_fronts", &geometry::FRONT_COLUMNS)?,
    };
    let band = table.has("serpentine").then(|| table.whole("serpentine.tracks_per_head"));
    let surfaces = table.whole("geometry.surfaces");
    let geometry = Geometry::load(&tables, surfaces, band, revolution)?;
    let Bytes(capacity) = facts.capacity;
    if geometry.sectors() < capacity / Sector::SIZE {
        let problem = format!("{} sectors do not fit into the zones", capacity / Sector::SIZE);
        let accepted = format!("at most {} sectors", geometry.sectors());
        return Err(table.refuse("disk.capacity", problem, &accepted));
    }
    Ok(geometry)
}

fn load_seek(table: &Table, cylinders: u32, file: &FindTable<'_>) -> Result<SeekCurve, Error> {
    match (table.has("seek_table"), table.has("seek_formula")) {
        (true, false) => {
            let parameter = "seek_table.table";
            let found = table.named(parameter, file(table.text(parameter)))?;
            let points = NumberTable::parse(&found.file, &found.text, &seek::SEEK_COLUMNS)?;
            SeekCurve::from_points(&points, cylinders)
        }
        (false, true) => SeekCurve::from_formula(table, "seek_formula.pieces", cylinders),
        (both, _) => {
            let problem = match both {
                true => "two seek curves",
                false => "no seek curve",
            };
            let accepted = "either [seek_table] or [seek_formula]";
            Err(table.refuse("mechanics.rpm", problem.to_string(), accepted))
        }
    }
}
