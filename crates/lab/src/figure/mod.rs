//! A figure by name: `read_p99`, `db.write_bw`, `held`.
//!
//! A name is an optional job and a dot, then what is measured. Expectations, summaries and tables
//! all choose figures this way. What there is to measure stands in one table, [`METRICS`].

mod table;

pub use table::{METRICS, Metric, Of, markdown};

use crate::error::Error;
use crate::metrics::{CallKind, Latency, Layers};
use crate::quantity::{Kind, duration};
use crate::result::{JobResult, RunResult};
use crate::world::World;
use base::Duration;
use std::fmt;

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Figure {
    /// Of which job; of the whole run if none is named.
    pub job: Option<String>,
    /// What is measured.
    pub what: What,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// What callers waited in calls of one kind.
    Call(CallKind, Point),
    /// The way of bios through a layer.
    Layer(Layer, Point),
    /// Bytes per second, of one kind of call or of all.
    Bandwidth(Option<CallKind>),
    /// Calls per second, of one kind or of all.
    Iops(Option<CallKind>),
    /// Bytes per second that the program itself states.
    Throughput,
    /// How long whole passes over its load took, as the program states.
    Pass(Point),
    /// A write of a log and the fsync behind it, as the program notes.
    Commit(Point),
    /// How long it took.
    Elapsed,
    /// Part of the time in which the disk was idle with work queued.
    Held,
    /// Part of the time in which the disk was busy.
    Busy,
    /// Part of the commands that begin where the one before ended.
    Sequential,
    /// Bytes per second between the disk and memory, as iostat has them.
    Moved(Moved),
    /// Part of these bytes that it writes.
    Written,
    /// Write commands per second that nobody waits for.
    AsyncWrites,
}

/// What a disk moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moved {
    /// What it reads and writes.
    Both,
    /// What it reads.
    Read,
    /// What it writes.
    Written,
}

/// A layer of latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// What callers waited, all kinds of call together.
    Syscall,
    /// From entering the block layer to the device.
    Queue,
    /// In the device.
    Device,
}

/// Which point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// A percentile, in hundredths of a percent.
    Percentile(u64),
    /// The mean.
    Mean,
    /// The largest.
    Max,
    /// Which part is longer than this, in percent: what comes too late. More than zero.
    Over(Duration),
}

pub(crate) const POINTS: [(&str, Point); 8] = [
    ("p50", Point::Percentile(5000)),
    ("p90", Point::Percentile(9000)),
    ("p95", Point::Percentile(9500)),
    ("p99", Point::Percentile(9900)),
    ("p99.9", Point::Percentile(9990)),
    ("p99.99", Point::Percentile(9999)),
    ("mean", Point::Mean),
    ("max", Point::Max),
];

const ACCEPTED: &str = "[JOB.]{read,write,sync,trim,commit,syscall,queue,device}_{p50,p90,p95,\
                        p99,p99.9,p99.99,mean,max,over_TIME}, [JOB.][read_|write_]{bw,iops}, \
                        [JOB.]throughput, [JOB.]pass_{mean,max}, [JOB.]elapsed, held, busy, \
                        sequential, disk_bw, disk_{read,write}_bw, disk_write_share, \
                        disk_async_write_iops";

impl Figure {
    /// Understands a name; `jobs` are the names of jobs there are. A name that is none, or a bound
    /// that is no time, is refused with what `place` may have instead.
    pub fn parse(text: &str, jobs: &[String], place: &str) -> Result<Figure, Error> {
        let of_job = jobs.iter().find_map(|job| {
            let rest = text.strip_prefix(job.as_str())?.strip_prefix('.')?;
            Some((Some(job.clone()), rest))
        });
        let (job, name) = of_job.unwrap_or((None, text));
        match What::parse(name) {
            Some(what) => Ok(Figure { job, what }),
            None => Err(What::refuse(text, name, place)),
        }
    }

    /// Refuses it where it is asked for if none of these runs has it, and says what they have.
    pub fn check_that_it_occurs(&self, runs: &[&RunResult], place: &str) -> Result<(), Error> {
        // What failed may be why there is none.
        let is_there = |run: &&RunResult| self.value(run).is_some() || !run.succeeded();
        if runs.is_empty() || runs.iter().any(is_there) {
            return Ok(());
        }
        let problem = format!("no run has {self}");
        Err(Error::bad(place, problem, occurring(runs).join(", ")))
    }

    /// Whether its value in a run may be more, because a histogram ends there.
    pub fn is_cut_off(&self, run: &RunResult) -> bool {
        let of_job = |job: &JobResult| match self.what {
            What::Call(kind, point) => point.is_cut_off(&job.call(kind).lat),
            What::Layer(layer, point) => point.is_cut_off(layer.of(&job.layers)),
            What::Commit(point) => point.is_cut_off(&job.told.commits),
            _ => false,
        };
        match &self.job {
            Some(name) => run.job(name).is_some_and(of_job),
            None => run.jobs.iter().any(of_job),
        }
    }

    /// Its value in a run, in base units; `None` when nothing of the kind happened.
    pub fn value(&self, run: &RunResult) -> Option<f64> {
        let Some(name) = &self.job else { return self.what.of_run(run) };
        let job = run.job(name)?;
        match self.what {
            what if what.is_of_disk() => what.of_run(run),
            // What is known of the run only is that of its one job.
            what if run.jobs.len() == 1 => what.of_job(job).or_else(|| what.of_run(run)),
            what => what.of_job(job),
        }
    }
}

/// The figures that runs have, of their jobs first; of a distribution the p99.
fn occurring(runs: &[&RunResult]) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for job in runs.iter().flat_map(|run| run.jobs.iter()) {
        if !names.contains(&job.name.as_str()) {
            names.push(&job.name);
        }
    }
    let is_there = |it: &Figure| runs.iter().filter_map(|run| it.value(run)).any(|it| it != 0.0);
    let of_jobs = names.iter().flat_map(|name| {
        let all = METRICS.iter().map(Metric::example).filter(|what| !what.is_of_disk());
        all.map(|what| Figure { job: Some(name.to_string()), what })
    });
    let of_disk = METRICS.iter().map(Metric::example).filter(|what| what.is_of_disk());
    let all = of_jobs.chain(of_disk.map(|what| Figure { job: None, what }));
    all.filter(is_there).map(|it| it.to_string()).collect()
}

impl What {
    /// Its row in the table.
    pub fn metric(self) -> &'static Metric {
        let found = METRICS.iter().find(|row| row.of.makes(self));
        found.expect("everything that is measured is in the table")
    }

    /// What its values measure.
    pub fn kind(self) -> Kind {
        match self.point() {
            Some(Point::Over(_)) => Kind::Percent,
            _ => self.metric().kind,
        }
    }

    /// Whether less of it is better.
    pub fn less_is_better(self) -> bool {
        self.metric().less_is_better
    }

    /// Which point of a distribution it is, if it is one.
    pub fn point(self) -> Option<Point> {
        match self {
            What::Call(_, point) | What::Layer(_, point) => Some(point),
            What::Pass(point) | What::Commit(point) => Some(point),
            _ => None,
        }
    }

    /// Whether it is of the whole disk, whichever job is named.
    fn is_of_disk(self) -> bool {
        let is_moved = matches!(self, What::Moved(_) | What::Written | What::AsyncWrites);
        is_moved || matches!(self, What::Held | What::Busy | What::Sequential)
    }

    /// Another point of the same distribution, if it is one.
    pub fn at(self, point: Point) -> What {
        match self {
            What::Call(kind, _) => What::Call(kind, point),
            What::Layer(layer, _) => What::Layer(layer, point),
            What::Pass(_) => What::Pass(point),
            What::Commit(_) => What::Commit(point),
            other => other,
        }
    }

    fn parse(name: &str) -> Option<What> {
        METRICS.iter().find_map(|row| row.parse(name))
    }

    /// What is wrong with a name that is none, as it was written and without its job.
    fn refuse(text: &str, name: &str, place: &str) -> Error {
        let is_bounded = |row: &Metric| matches!(row.of, Of::Distribution(_));
        let bound = METRICS.iter().filter(|row| is_bounded(row)).find_map(|row| {
            name.strip_prefix(row.name)?.strip_prefix('_')?.strip_prefix(Point::OVER)
        });
        match bound {
            Some(bound) => {
                let problem = format!("figure \"{text}\": \"{bound}\" is no time above zero");
                Error::bad(place, problem, "a number and ns, us, ms or s, such as over_40ms")
            }
            None => Error::bad(place, format!("no figure \"{text}\""), ACCEPTED),
        }
    }

    fn of_run(self, run: &RunResult) -> Option<f64> {
        let share = |part: base::Duration| {
            Some(100.0 * part.as_nanos() as f64 / run.elapsed.as_nanos().max(1) as f64)
        };
        let seconds = run.elapsed.as_nanos() as f64 / 1e9;
        match self {
            What::Elapsed => Some(run.elapsed.as_nanos() as f64),
            What::Held => share(run.disk.held),
            What::Busy => share(run.disk.busy),
            What::Sequential => {
                let (part, all) = (run.disk.sequential as f64, run.disk.commands as f64);
                (all > 0.0).then_some(100.0 * part / all)
            }
            What::Moved(what) => {
                let (read, written) = (run.disk.read_bytes.0, run.disk.write_bytes.0);
                let bytes = match what {
                    Moved::Both => read + written,
                    Moved::Read => read,
                    Moved::Written => written,
                };
                (seconds > 0.0).then_some(bytes as f64 / seconds)
            }
            What::Written => {
                let (read, written) = (run.disk.read_bytes.0 as f64, run.disk.write_bytes.0 as f64);
                (read + written > 0.0).then_some(100.0 * written / (read + written))
            }
            // Commands of the disk of the linux world have no flags.
            What::AsyncWrites if run.world == World::Linux => None,
            What::AsyncWrites => (seconds > 0.0).then_some(run.disk.async_writes as f64 / seconds),
            What::Layer(layer, point) => point.of(layer.of(&run.layers)),
            What::Call(..) | What::Pass(_) | What::Commit(_) => match &run.jobs[..] {
                [only] => self.of_job(only),
                _ => None,
            },
            What::Bandwidth(_) | What::Iops(_) | What::Throughput => {
                let each: Vec<f64> = run.jobs.iter().filter_map(|it| self.of_job(it)).collect();
                (!each.is_empty()).then(|| each.iter().sum())
            }
        }
    }

    fn of_job(self, job: &JobResult) -> Option<f64> {
        let kinds = |only: Option<CallKind>| {
            CallKind::ALL.into_iter().filter(move |kind| only.is_none_or(|it| it == *kind))
        };
        match self {
            What::Elapsed => Some(job.runtime.as_nanos() as f64),
            What::Throughput => job.told.throughput,
            What::Pass(point) => point.of(&job.told.passes),
            What::Commit(point) => point.of(&job.told.commits),
            What::Held | What::Busy | What::Sequential => None,
            What::Moved(_) | What::Written | What::AsyncWrites => None,
            What::Layer(layer, point) => point.of(layer.of(&job.layers)),
            What::Call(kind, point) => point.of(&job.call(kind).lat),
            What::Bandwidth(_) | What::Iops(_) if job.runtime.is_zero() => None,
            What::Bandwidth(only) => Some(kinds(only).map(|it| job.call(it).bw_bytes).sum()),
            What::Iops(only) => Some(kinds(only).map(|it| job.call(it).iops).sum()),
        }
    }
}

impl Layer {
    fn of(self, layers: &Layers) -> &Latency {
        match self {
            Layer::Syscall => &layers.syscall,
            Layer::Queue => &layers.queue,
            Layer::Device => &layers.device,
        }
    }
}

impl Point {
    /// What the name of a bound begins with.
    const OVER: &str = "over_";

    /// Understands the name of a point: one of the table, or a bound.
    fn parse(name: &str) -> Option<Point> {
        if let Some(bound) = name.strip_prefix(Point::OVER) {
            return duration(bound).filter(|it| !it.is_zero()).map(Point::Over);
        }
        POINTS.iter().find(|(known, _)| *known == name).map(|(_, point)| *point)
    }

    /// Whether its value in a distribution may be more, because a histogram ends there.
    fn is_cut_off(self, latency: &Latency) -> bool {
        match self {
            Point::Percentile(hundredths) => latency.is_cut_off(hundredths),
            Point::Over(bound) => latency.ceiling <= bound && bound < latency.max,
            Point::Mean | Point::Max => false,
        }
    }

    /// Its value in a distribution, in nanoseconds or percent; none where nothing was measured.
    pub fn of(self, latency: &Latency) -> Option<f64> {
        if latency.count == 0 {
            return None;
        }
        let value = match self {
            Point::Percentile(hundredths) => latency.percentile(hundredths)?,
            Point::Mean => latency.mean,
            Point::Max => latency.max,
            Point::Over(bound) => return latency.percent_over(bound),
        };
        Some(value.as_nanos() as f64)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.job {
            Some(job) => write!(f, "{job}.{}", self.what),
            None => write!(f, "{}", self.what),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.metric().name;
        match self.point() {
            Some(point) => write!(f, "{name}_{point}"),
            None => f.write_str(name),
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Point::Over(bound) = self {
            return write!(f, "{}{}", Point::OVER, exactly(*bound));
        }
        let known = POINTS.iter().find(|(_, point)| point == self);
        f.write_str(known.expect("every point is in the table").0)
    }
}

/// A time as it is typed, in the largest unit that leaves no fraction.
fn exactly(time: Duration) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let nanos = time.as_nanos();
    let fits = UNITS.iter().find(|(unit, _)| nanos.is_multiple_of(*unit));
    let (unit, name) = fits.copied().unwrap_or((1, "ns"));
    format!("{}{name}", nanos / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        let jobs = ["db".to_string()];
        let names = ["read_p99", "db.write_bw", "sync_max", "queue_p99.9", "db.iops", "held"];
        for name in names.into_iter().chain(["db.read_over_40ms", "device_over_1500us"]) {
            let figure = Figure::parse(name, &jobs, "x:1").unwrap();
            assert_eq!(figure.to_string(), name);
        }
        assert_eq!(Figure::parse("bw", &jobs, "x:1").unwrap().what.kind(), Kind::Rate);
    }

    #[test]
    fn a_bound_is_a_time_and_what_is_over_it_a_percentage() {
        let parse = |name: &str| Figure::parse(name, &["db".to_string()], "x:1");
        let figure = parse("db.read_over_0.04s").unwrap();
        assert_eq!(figure, parse("db.read_over_40 ms").unwrap());
        assert_eq!(
            (figure.to_string(), figure.what.kind()),
            ("db.read_over_40ms".into(), Kind::Percent)
        );
        assert!(figure.what.less_is_better());
        for bound in ["", "40", "0ms", "-1ms", "40 MB", "soon", "0.1ns"] {
            let said = parse(&format!("db.sync_over_{bound}")).unwrap_err().to_string();
            assert!(said.contains(&format!("\"{bound}\" is no time above zero")), "{said}");
            assert!(said.contains("such as over_40ms"), "{said}");
        }
    }

    #[test]
    fn a_percentage_is_cut_off_where_the_histogram_ends() {
        let ends = |bound| {
            let (max, ceiling) = (Duration::from_millis(9), Duration::from_millis(5));
            Point::Over(bound).is_cut_off(&Latency { max, ceiling, ..Latency::default() })
        };
        assert_eq!([4, 5, 9].map(|it| ends(Duration::from_millis(it))), [false, true, false]);
    }

    #[test]
    fn what_is_no_figure_is_refused() {
        for name in ["p99", "read_p98", "pg.read_p99", "read", "queue_bw", "bw_over_1ms"] {
            let error = Figure::parse(name, &["db".to_string()], "x:1").unwrap_err();
            assert!(error.to_string().contains("no figure"), "{name}");
        }
    }
}
