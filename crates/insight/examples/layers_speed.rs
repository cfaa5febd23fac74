//! How fast recordings become layers, beside `blkparse | btt` on the same files.
//!
//!     cargo run --release -p paternoster-insight --example layers_speed -- RECORDING...
//!
//! A recording is `DIR/sda` where `DIR/sda.blktrace.0` and so on are. Files are read once before.
//! Of both it prints the time that passes, and the time on cores, which depends less on what else
//! the machine does. With a second core, one thread reads while another follows; `taskset -c 0` in
//! front has one do both.

use insight::recorded;
use insight::requests::Summary;
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// The best of so many runs counts: what else the machine does disturbs the others.
const RUNS: u32 = 5;

fn main() -> ExitCode {
    for argument in std::env::args().skip(1) {
        if let Err(error) = measure(Path::new(&argument)) {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// What something takes, in seconds.
#[derive(Clone, Copy)]
struct Taken {
    passed: f64,
    on_core: f64,
}

impl Taken {
    /// What `what` takes, by this clock for time on a core, and what it returns.
    fn of<T>(clock: fn() -> f64, what: impl FnOnce() -> T) -> (Taken, T) {
        let (start, before) = (Instant::now(), clock());
        let result = what();
        (Taken { passed: start.elapsed().as_secs_f64(), on_core: clock() - before }, result)
    }

    fn least(self, other: Taken) -> Taken {
        Taken { passed: self.passed.min(other.passed), on_core: self.on_core.min(other.on_core) }
    }
}

fn measure(path: &Path) -> Result<(), trace::Error> {
    let (mut best, (mut records, mut requests)) = (None::<Taken>, (0, 0));
    for _ in 0..=RUNS {
        let (taken, read) = Taken::of(own, || layers(path));
        (records, requests) = read?;
        best = Some(best.map_or(taken, |best| best.least(taken)));
    }
    let best = best.expect("it was run");
    println!("{}: {records} records, {requests} requests", path.display());
    let rate = records as f64 / best.on_core / 1e6;
    show("layers", best, &format!("{rate:.2} million records a second of a core"));
    match btt(path) {
        Some(other) => {
            let passed = other.passed / best.passed;
            let on_core = other.on_core / best.on_core;
            show("blkparse | btt", other, &format!("{passed:.1} and {on_core:.1} times"));
        }
        None => println!("  blkparse | btt  are not here"),
    }
    Ok(())
}

fn show(what: &str, taken: Taken, also: &str) {
    let [passed, on_core] = [taken.passed, taken.on_core].map(|it| it * 1e3);
    println!("  {what:<14} {passed:7.1} ms, on a core {on_core:7.1} ms; {also}");
}

/// Reads a recording; how many records and requests there are in it.
fn layers(path: &Path) -> Result<(u64, u64), trace::Error> {
    let mut recording = recorded::open(path, None)?;
    let mut summary = Summary::default();
    recording.read_all(|_| {}, |life| summary.see(life))?;
    Ok((recording.stream().records(), summary.requests))
}

/// Seconds that the threads of this process had cores.
fn own() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds that processes had one which this one started, in hundredths.
fn children() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("a process has it");
    let (_, fields) = text.rsplit_once(')').expect("a name in brackets");
    // Two fields are before; these are 16 and 17. Some of the others are negative.
    let ticks = fields.split_whitespace().skip(13).take(2).map(|it| it.parse::<u64>());
    ticks.map(|it| it.expect("ticks are numbers") as f64 / 100.0).sum()
}

/// What Debian's tools take, of which the first writes a file that the second maps.
fn btt(path: &Path) -> Option<Taken> {
    let directory = std::env::temp_dir().join(format!("layers-speed-{}", std::process::id()));
    std::fs::create_dir_all(&directory).ok()?;
    let run = || {
        let merged = directory.join("merged");
        let mut first = Command::new("blkparse");
        first.arg("-O").arg("-q").arg("-D").arg(path.parent()?);
        first.arg("-i").arg(path.file_name()?).arg("-d").arg(&merged);
        let first = first.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        let mut second = Command::new("btt");
        second.arg("-i").arg(&merged).current_dir(&directory);
        let second = second.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        (first.success() && second.success()).then_some(())
    };
    let mut best = None::<Taken>;
    for _ in 0..=RUNS {
        let (taken, done) = Taken::of(children, run);
        if done.is_some() {
            best = Some(best.map_or(taken, |best| best.least(taken)));
        }
    }
    // There is nobody to tell that cleaning up failed.
    let _ = std::fs::remove_dir_all(&directory);
    best
}
