//! The first founding report as a table: dd appends 512 bytes with dsync, ten thousand times, under
//! each condition that the report names, on its virtual disk and on the drive passed through.
//!
//! `report_1 [WRITES [SEEDS [lines]]]` prints the tables of docs/trust.md, with `lines` only that
//! of the time CFQ waits. Every line is an experiment that could as well be typed: the same job
//! with one thing changed.

use base::Duration;
use lab::metrics::CallKind;
use lab::plan::Plan;
use lab::{Experiment, matrix};
use std::error::Error;

/// Values of slice_idle and group_idle, in milliseconds.
const IDLES: [u32; 6] = [0, 1, 2, 4, 8, 16];
const MODELS: [&str; 2] = ["vm-disk", "hdd-7200-sata"];
const CACHES: [&str; 2] = ["write back", "write through"];

/// One thing that is changed; the rest is as in the report.
struct Condition {
    name: &'static str,
    scheduler: &'static str,
    fs: &'static str,
    group: &'static str,
    blkio: bool,
}

const fn under(name: &'static str, scheduler: &'static str) -> Condition {
    Condition { name, scheduler, fs: "ext4", group: "user.slice", blkio: true }
}

const CONDITIONS: [Condition; 12] = [
    under("noop", "noop@4.19"),
    under("deadline", "deadline@4.19"),
    under("cfq", "cfq@4.19"),
    Condition { group: "/", ..under("cfq, dd in the root group", "cfq@4.19") },
    under("cfq, slice_idle=0, group_idle=0", "cfq@4.19:slice_idle=0,group_idle=0"),
    under("cfq, slice_idle=0", "cfq@4.19:slice_idle=0"),
    under("cfq, group_idle=0", "cfq@4.19:group_idle=0"),
    Condition { blkio: false, ..under("cfq, no blkio controller", "cfq@4.19") },
    Condition { fs: "xfs", ..under("deadline on XFS", "deadline@4.19") },
    Condition { fs: "xfs", ..under("cfq on XFS", "cfq@4.19") },
    Condition { fs: "raw", ..under("deadline on the raw device", "deadline@4.19") },
    Condition { fs: "raw", ..under("cfq on the raw device", "cfq@4.19") },
];

/// What came out, the mean over seeds.
struct Seen {
    /// A write, in milliseconds.
    write: f64,
    /// In kB/s.
    rate: f64,
    /// The part of writes that waited in a pause of CFQ, in percent.
    waited: f64,
    /// The mean length of such a pause, in milliseconds.
    pause: f64,
    /// Who was waited for, longest first.
    waited_for: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let writes: u64 = arguments.next().map_or(Ok(10_000), |it| it.parse())?;
    let seeds: u64 = arguments.next().map_or(Ok(3), |it| it.parse())?;
    let places =
        MODELS.iter().flat_map(|model| CACHES.map(|cache| Place { model, cache, writes, seeds }));
    let places: Vec<Place> = places.collect();
    match arguments.next().as_deref() {
        None => print_conditions(&places)?,
        Some("lines") => {}
        Some(other) => return Err(format!("`{other}`: only `lines` may follow").into()),
    }
    print_lines(&places)
}

fn print_conditions(places: &[Place]) -> Result<(), Box<dyn Error>> {
    println!(
        "| disk, cache | condition | ms a write | kB/s | of deadline | writes in a pause | pause | \
         for |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for place in places {
        place.print_conditions()?;
    }
    println!();
    Ok(())
}

fn print_lines(places: &[Place]) -> Result<(), Box<dyn Error>> {
    println!("| disk, cache | 0, 1, 2, 4, 8, 16 ms: ms a write | slope | intercept | r² |");
    println!("|---|---|---|---|---|");
    for place in places {
        let (points, fit) = place.line()?;
        let points: Vec<String> = points.iter().map(|it| format!("{it:.3}")).collect();
        let points = points.join(", ");
        let Fit { slope, intercept, r2 } = fit;
        let Place { model, cache, .. } = place;
        println!("| {model}, {cache} | {points} | {slope:.3} | {intercept:.3} ms | {r2:.5} |");
    }
    Ok(())
}

/// A disk as the kernel sees it, and how much is done.
#[derive(Clone, Copy)]
struct Place {
    model: &'static str,
    cache: &'static str,
    writes: u64,
    seeds: u64,
}

impl Place {
    fn print_conditions(&self) -> Result<(), Box<dyn Error>> {
        let mut deadline = f64::NAN;
        for condition in &CONDITIONS {
            let seen = self.run(condition, condition.scheduler)?;
            if condition.scheduler.starts_with("deadline") {
                deadline = seen.rate;
            }
            let of = match condition.scheduler.starts_with("cfq") {
                true => format!("{:.1} %", 100.0 * seen.rate / deadline),
                false => "–".to_string(),
            };
            let (model, cache, name) = (self.model, self.cache, condition.name);
            let Seen { write, rate, waited, pause, waited_for } = seen;
            let waited_for = waited_for.join(", ");
            let pauses = match waited > 0.0 {
                true => format!("{waited:.1} % | {pause:.2} ms | {waited_for}"),
                false => "– | – | –".to_string(),
            };
            println!("| {model}, {cache} | {name} | {write:.3} | {rate:.1} | {of} | {pauses} |");
        }
        Ok(())
    }

    /// The time of a write against the time that CFQ waits.
    fn line(&self) -> Result<(Vec<f64>, Fit), Box<dyn Error>> {
        let mut points = Vec::new();
        for idle in IDLES {
            let scheduler = format!("cfq@4.19:slice_idle={idle},group_idle={idle}");
            points.push(self.run(&under("", ""), &scheduler)?.write);
        }
        let idles = IDLES.map(f64::from);
        let fit = Fit::of(&idles, &points);
        Ok((points, fit))
    }

    fn run(&self, condition: &Condition, scheduler: &str) -> Result<Seen, Box<dyn Error>> {
        let Place { model, cache, writes, seeds } = self;
        let Condition { fs, group, blkio, .. } = condition;
        let file = if *fs == "raw" { "/dev/sda" } else { "/mnt/test.img" };
        let text = format!(
            "model = \"{model}\"\nhost = \"vm-2019\"\nfs = \"{fs}\"\nwrite_cache = \"{cache}\"\n\
             blkio = {blkio}\nschedulers = [\"{scheduler}\"]\nseeds = {seeds}\n\
             [[job]]\nname = \"dd\"\ncgroup = \"{group}\"\n\
             run = \"dd if=/dev/zero of={file} bs=512 count={writes} oflag=dsync\"\n"
        );
        let report =
            matrix::run(Plan::new(Experiment::parse("report_1", &text)?)?, None, 2, &|_| ())?;
        Ok(Seen::of(&report.results, *writes))
    }
}

impl Seen {
    fn of(results: &[lab::RunResult], writes: u64) -> Seen {
        let runs = results.len() as f64;
        let mean = |of: &dyn Fn(&lab::RunResult) -> f64| results.iter().map(of).sum::<f64>() / runs;
        let millis = |time: Duration| time.as_nanos() as f64 / 1e6;
        let write = mean(&|run| millis(run.jobs[0].call(CallKind::Write).lat.mean));
        let elapsed = mean(&|run| millis(run.jobs[0].runtime));
        let mut by_whom: Vec<(String, f64, f64)> = Vec::new();
        let pauses = results.iter().flat_map(|run| &run.disk.held_for);
        for held in pauses.filter(|held| held.waiting == "dd") {
            let whom = held.waited_for.clone().unwrap_or_else(|| "nobody".to_string());
            let place = by_whom.iter().position(|it| it.0 == whom).unwrap_or_else(|| {
                by_whom.push((whom, 0.0, 0.0));
                by_whom.len() - 1
            });
            by_whom[place].1 += held.times as f64;
            by_whom[place].2 += millis(held.time);
        }
        by_whom.sort_by(|a, b| b.2.total_cmp(&a.2));
        let times: f64 = by_whom.iter().map(|it| it.1).sum();
        let time: f64 = by_whom.iter().map(|it| it.2).sum();
        Seen {
            write,
            rate: writes as f64 * 512.0 / elapsed,
            waited: 100.0 * times / (writes as f64 * runs),
            pause: time / times.max(1.0),
            waited_for: by_whom.into_iter().map(|it| it.0).collect(),
        }
    }
}

/// A straight line by least squares.
struct Fit {
    slope: f64,
    intercept: f64,
    r2: f64,
}

impl Fit {
    fn of(x: &[f64], y: &[f64]) -> Fit {
        let n = x.len() as f64;
        let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
        let pairs = || x.iter().zip(y).map(|(x, y)| (x - mean_x, y - mean_y));
        let xx: f64 = pairs().map(|(x, _)| x * x).sum();
        let xy: f64 = pairs().map(|(x, y)| x * y).sum();
        let yy: f64 = pairs().map(|(_, y)| y * y).sum();
        let slope = xy / xx;
        Fit { slope, intercept: mean_y - slope * mean_x, r2: xy * xy / (xx * yy) }
    }
}
