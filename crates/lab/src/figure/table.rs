//! What there is to measure: one row for each metric.

use super::{Layer, Moved, POINTS, Point, What};
use crate::metrics::CallKind;
use crate::quantity::{Kind, digits, human};

/// Something that is measured of a run or of a job.
pub struct Metric {
    /// Its name; that of a distribution is followed by `_` and a point.
    pub name: &'static str,
    /// Which figures it stands for.
    pub of: Of,
    /// What its values measure.
    pub kind: Kind,
    /// Whether less of it is better.
    pub less_is_better: bool,
    /// What stands over it in tables.
    pub heading: &'static str,
    /// Where it comes from in a result as JSON; empty if it is not there.
    pub json: &'static str,
    /// What it means.
    pub about: &'static str,
}

/// The figures of a metric.
#[derive(Clone, Copy)]
pub enum Of {
    /// One.
    Value(What),
    /// One for each point of a distribution.
    Distribution(fn(Point) -> What),
}

/// All of them.
pub static METRICS: [Metric; 29] = [
    Metric {
        name: "read",
        of: Of::Distribution(|point| What::Call(CallKind::Read, point)),
        kind: Kind::Time,
        less_is_better: true,
        heading: "read",
        json: "jobs[].read.lat_ns",
        about: "What callers waited in reads.",
    },
    Metric {
        name: "write",
        of: Of::Distribution(|point| What::Call(CallKind::Write, point)),
        kind: Kind::Time,
        less_is_better: true,
        heading: "write",
        json: "jobs[].write.lat_ns",
        about: "What callers waited in writes.",
    },
    Metric {
        name: "trim",
        of: Of::Distribution(|point| What::Call(CallKind::Trim, point)),
        kind: Kind::Time,
        less_is_better: true,
        heading: "trim",
        json: "jobs[].trim.lat_ns",
        about: "What callers waited in discards.",
    },
    Metric {
        name: "sync",
        of: Of::Distribution(|point| What::Call(CallKind::Sync, point)),
        kind: Kind::Time,
        less_is_better: true,
        heading: "sync",
        json: "jobs[].sync.lat_ns",
        about: "What callers waited in syncs.",
    },
    Metric {
        name: "syscall",
        of: Of::Distribution(|point| What::Layer(Layer::Syscall, point)),
        kind: Kind::Time,
        less_is_better: true,
        heading: "system call",
        json: "layers.syscall",
        about: "What callers waited, in calls of all kinds.",
    },
    Metric {
        name: "queue",
        of: Of::Distribution(|point| What::Layer(Layer::Queue, point)),
        kind: Kind::Time,
        less_is_better: true,
        heading: "queue (Q2D)",
        json: "layers.queue",
        about: "A bio, from entering the block layer to the device.",
    },
    Metric {
        name: "device",
        of: Of::Distribution(|point| What::Layer(Layer::Device, point)),
        kind: Kind::Time,
        less_is_better: true,
        heading: "device (D2C)",
        json: "layers.device",
        about: "A bio, from there to its completion.",
    },
    Metric {
        name: "bw",
        of: Of::Value(What::Bandwidth(None)),
        kind: Kind::Rate,
        less_is_better: false,
        heading: "MB/s",
        json: "jobs[].*.bw_bytes",
        about: "Bytes per second of the runtime of a job.",
    },
    Metric {
        name: "read_bw",
        of: Of::Value(What::Bandwidth(Some(CallKind::Read))),
        kind: Kind::Rate,
        less_is_better: false,
        heading: "MB/s",
        json: "jobs[].read.bw_bytes",
        about: "The same of reads alone.",
    },
    Metric {
        name: "write_bw",
        of: Of::Value(What::Bandwidth(Some(CallKind::Write))),
        kind: Kind::Rate,
        less_is_better: false,
        heading: "MB/s",
        json: "jobs[].write.bw_bytes",
        about: "The same of writes alone.",
    },
    Metric {
        name: "trim_bw",
        of: Of::Value(What::Bandwidth(Some(CallKind::Trim))),
        kind: Kind::Rate,
        less_is_better: false,
        heading: "MB/s",
        json: "jobs[].trim.bw_bytes",
        about: "The same of discards alone.",
    },
    Metric {
        name: "sync_bw",
        of: Of::Value(What::Bandwidth(Some(CallKind::Sync))),
        kind: Kind::Rate,
        less_is_better: false,
        heading: "MB/s",
        json: "",
        about: "Bytes of syncs, which are none.",
    },
    Metric {
        name: "iops",
        of: Of::Value(What::Iops(None)),
        kind: Kind::Operations,
        less_is_better: false,
        heading: "IOPS",
        json: "jobs[].*.iops",
        about: "Finished calls per second of the runtime of a job.",
    },
    Metric {
        name: "read_iops",
        of: Of::Value(What::Iops(Some(CallKind::Read))),
        kind: Kind::Operations,
        less_is_better: false,
        heading: "IOPS",
        json: "jobs[].read.iops",
        about: "The same of reads alone.",
    },
    Metric {
        name: "write_iops",
        of: Of::Value(What::Iops(Some(CallKind::Write))),
        kind: Kind::Operations,
        less_is_better: false,
        heading: "IOPS",
        json: "jobs[].write.iops",
        about: "The same of writes alone.",
    },
    Metric {
        name: "trim_iops",
        of: Of::Value(What::Iops(Some(CallKind::Trim))),
        kind: Kind::Operations,
        less_is_better: false,
        heading: "IOPS",
        json: "jobs[].trim.iops",
        about: "The same of discards alone.",
    },
    Metric {
        name: "sync_iops",
        of: Of::Value(What::Iops(Some(CallKind::Sync))),
        kind: Kind::Operations,
        less_is_better: false,
        heading: "IOPS",
        json: "",
        about: "The same of syncs alone.",
    },
    Metric {
        name: "throughput",
        of: Of::Value(What::Throughput),
        kind: Kind::Rate,
        less_is_better: false,
        heading: "throughput",
        json: "jobs[].told.throughput_bytes",
        about: "Bytes per second that dbench itself states, of all that was asked for.",
    },
    Metric {
        name: "pass",
        of: Of::Distribution(What::Pass),
        kind: Kind::Time,
        less_is_better: true,
        heading: "pass",
        json: "jobs[].told.pass_ns",
        about: "Whole passes over dbench's load file, of all clients; mean and max only.",
    },
    Metric {
        name: "commit",
        of: Of::Distribution(What::Commit),
        kind: Kind::Time,
        less_is_better: true,
        heading: "commit",
        json: "jobs[].told.commit_ns",
        about: "A write of pgioperf's log and the sync behind it, together.",
    },
    Metric {
        name: "elapsed",
        of: Of::Value(What::Elapsed),
        kind: Kind::Time,
        less_is_better: true,
        heading: "elapsed",
        json: "elapsed_ns, jobs[].runtime_ns",
        about: "How long the run took, or a job from its first call to the end of its last.",
    },
    Metric {
        name: "held",
        of: Of::Value(What::Held),
        kind: Kind::Percent,
        less_is_better: true,
        heading: "disk held idle",
        json: "disk.held_ns",
        about: "Part of the time in which the disk was idle with work queued; of the run only.",
    },
    Metric {
        name: "busy",
        of: Of::Value(What::Busy),
        kind: Kind::Percent,
        less_is_better: false,
        heading: "disk busy",
        json: "disk.busy_ns",
        about: "Part of the time in which the disk was busy; of the run only.",
    },
    Metric {
        name: "sequential",
        of: Of::Value(What::Sequential),
        kind: Kind::Percent,
        less_is_better: false,
        heading: "sequential",
        json: "disk.sequential, disk.commands",
        about: "Part of the commands that begin where the one before ended; of the run only.",
    },
    Metric {
        name: "disk_bw",
        of: Of::Value(What::Moved(Moved::Both)),
        kind: Kind::Rate,
        less_is_better: false,
        heading: "disk",
        json: "disk.*_bytes, elapsed_ns",
        about: "Bytes per second of the run that the disk read and wrote, as iostat has them.",
    },
    Metric {
        name: "disk_read_bw",
        of: Of::Value(What::Moved(Moved::Read)),
        kind: Kind::Rate,
        less_is_better: false,
        heading: "disk",
        json: "disk.read_bytes, elapsed_ns",
        about: "The same of what it read.",
    },
    Metric {
        name: "disk_write_bw",
        of: Of::Value(What::Moved(Moved::Written)),
        kind: Kind::Rate,
        less_is_better: false,
        heading: "disk",
        json: "disk.write_bytes, elapsed_ns",
        about: "The same of what it wrote.",
    },
    Metric {
        name: "disk_write_share",
        of: Of::Value(What::Written),
        kind: Kind::Percent,
        less_is_better: false,
        heading: "disk: written",
        json: "disk.*_bytes",
        about: "Part of the bytes that the disk read and wrote that it wrote.",
    },
    Metric {
        name: "disk_async_write_iops",
        of: Of::Value(What::AsyncWrites),
        kind: Kind::Operations,
        less_is_better: false,
        heading: "async writes/s",
        json: "disk.async_writes, elapsed_ns",
        about: "Write commands per second of the run that nobody waits for (no S in their flags).",
    },
];

impl Of {
    /// Whether a figure is of this metric.
    pub(super) fn makes(self, what: What) -> bool {
        match (self, what.point()) {
            (Of::Value(one), _) => one == what,
            (Of::Distribution(make), Some(point)) => make(point) == what,
            (Of::Distribution(_), None) => false,
        }
    }
}

impl Metric {
    /// The figure of this name, if it is of this metric.
    pub(super) fn parse(&self, name: &str) -> Option<What> {
        match self.of {
            Of::Value(what) => (name == self.name).then_some(what),
            Of::Distribution(make) => {
                Point::parse(name.strip_prefix(self.name)?.strip_prefix('_')?).map(make)
            }
        }
    }

    /// One of its figures: of a distribution the p99.
    pub(super) fn example(&self) -> What {
        match self.of {
            Of::Value(what) => what,
            Of::Distribution(make) => make(Point::Percentile(9900)),
        }
    }

    /// A value under its heading: a rate without its unit, which the heading has.
    pub fn cell(&self, value: f64) -> String {
        match self.kind {
            Kind::Rate => digits(value / 1e6),
            kind => human(value, kind),
        }
    }
}

/// The generated block of docs/experiments.md.
pub fn markdown() -> (&'static str, String) {
    let mut text = String::from(
        "| figure | unit | better | in a result as JSON | what it is |\n|---|---|---|---|---|\n",
    );
    for row in &METRICS {
        let name = match row.of {
            Of::Value(_) => format!("`{}`", row.name),
            Of::Distribution(_) => format!("`{}_`*point*", row.name),
        };
        let unit = match row.kind {
            Kind::Time => "time",
            Kind::Rate => "bytes/s",
            Kind::Operations => "calls/s",
            Kind::Percent => "%",
            _ => "",
        };
        let better = if row.less_is_better { "less" } else { "more" };
        let json = if row.json.is_empty() { "–".to_string() } else { format!("`{}`", row.json) };
        text.push_str(&format!("| {name} | {unit} | {better} | {json} | {} |\n", row.about));
    }
    let points: Vec<String> = POINTS.iter().map(|(name, _)| format!("`{name}`")).collect();
    text.push_str(&format!(
        "\nPoints are {},\nand `over_`*time*, such as `over_40ms`: how many per cent took longer. \
         In JSON that is in the summary only.\n",
        points.join(", ")
    ));
    ("metrics", text)
}
