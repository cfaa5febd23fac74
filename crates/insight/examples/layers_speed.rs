//! How fast recordings become layers on one core, beside `blkparse | btt` on the same files.
//!
//!     cargo run --release -p paternoster-insight --example layers_speed -- RECORDING...
//!
//! A recording is `DIR/sda` where `DIR/sda.blktrace.0` and so on are. Files are read once before.
//! What counts is time on a core, which does not depend on what else the machine does.

use insight::recorded;
use insight::requests::Summary;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

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

fn measure(path: &Path) -> Result<(), trace::Error> {
    let (mut best, mut records, mut summary) = (f64::MAX, 0, Summary::default());
    for _ in 0..=RUNS {
        let start = on_core();
        let mut recording = recorded::open(path, None)?;
        summary = Summary::default();
        while recording.read_some(|_| {})? {
            recording.show_lives(|life| summary.see(life));
        }
        recording.show_lives(|life| summary.see(life));
        best = best.min(on_core() - start);
        records = recording.stream().records();
    }
    let rate = records as f64 / best / 1e6;
    println!("{}: {records} records, {} requests", path.display(), summary.requests);
    println!("  layers          {:8.1} ms  {rate:6.2} million records a second", best * 1e3);
    match btt(path) {
        Some(other) => {
            println!("  blkparse | btt  {:8.1} ms  {:.0} times", other * 1e3, other / best)
        }
        None => println!("  blkparse | btt  are not here"),
    }
    Ok(())
}

/// Seconds that this process had a core.
fn on_core() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("a kernel that counts");
    let nanos = text.split(' ').next().and_then(|it| it.parse::<u64>().ok());
    nanos.expect("nanoseconds come first") as f64 / 1e9
}

/// Seconds that processes had one which this one started, in hundredths.
fn children() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("a process has it");
    let (_, numbers) = text.rsplit_once(')').expect("a name in brackets");
    let numbers: Vec<u64> = numbers.split(' ').filter_map(|it| it.parse().ok()).collect();
    // Without the three words before: 16 and 17 of the file are these two.
    (numbers[12] + numbers[13]) as f64 / 100.0
}

/// Seconds that Debian's tools take, of which the first writes a stream that the second reads.
fn btt(path: &Path) -> Option<f64> {
    let directory = std::env::temp_dir().join(format!("layers-speed-{}", std::process::id()));
    std::fs::create_dir_all(&directory).ok()?;
    let run = || {
        let start = children();
        let merged = directory.join("merged");
        let mut first = Command::new("blkparse");
        first.arg("-O").arg("-q").arg("-D").arg(path.parent()?);
        first.arg("-i").arg(path.file_name()?).arg("-d").arg(&merged);
        let first = first.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        let mut second = Command::new("btt");
        second.arg("-i").arg(&merged).current_dir(&directory);
        let second = second.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        (first.success() && second.success()).then(|| children() - start)
    };
    let best = (0..2).filter_map(|_| run()).fold(f64::MAX, f64::min);
    // There is nobody to tell that cleaning up failed.
    let _ = std::fs::remove_dir_all(&directory);
    (best < f64::MAX).then_some(best)
}
