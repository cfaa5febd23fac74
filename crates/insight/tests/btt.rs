//! The table of phases beside that of Debian's `btt`, on the same recordings.

use base::{Instant, Rng, Sector};
use insight::phases::Phases;
use insight::recorded;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use testing::needs::{BLKTRACE, TRACES, traces};
use testing::tests;
use trace::blktrace::{Action, Categories, DevT, Record, Recorder, Wallclock};

fn main() -> ExitCode {
    testing::run(tests![
        [BLKTRACE] => a_recording_with_merges_has_the_phases_of_btt;
        [BLKTRACE, TRACES] => a_recording_of_a_kernel_has_the_phases_of_btt;
    ])
}

/// A directory of its own, gone when the test ends.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("insight-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory for what is temporary");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // There is nobody left to tell that cleaning up failed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A phase: least, mean and greatest in nanoseconds, and how many.
type Row = (String, [f64; 3], u64);

/// What `btt` prints of all devices.
fn btts(recording: &Path, directory: &Path) -> Vec<Row> {
    let merged = directory.join("merged");
    let mut blkparse = Command::new("blkparse");
    blkparse.arg("-O").arg("-q").arg("-D").arg(recording.parent().expect("it is in a directory"));
    blkparse.arg("-i").arg(recording.file_name().expect("it has a name")).arg("-d").arg(&merged);
    blkparse.stdout(Stdio::null()).stderr(Stdio::null());
    assert!(blkparse.status().expect("it is here").success());
    let mut btt = Command::new("btt");
    let output = btt.arg("-i").arg(&merged).current_dir(directory).output().expect("it is here");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, min, mean, max, count] = words[..] else { return None };
        let is_phase = name.len() == 3 && name.as_bytes()[1] == b'2';
        let nanos = |word: &str| word.parse::<f64>().ok().map(|it| (it * 1e9).round());
        let times = [nanos(min)?, nanos(mean)?, nanos(max)?];
        is_phase.then_some((name.to_owned(), times, count.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

fn ours(recording: &Path) -> Vec<Row> {
    let mut phases = Phases::default();
    let mut recording = recorded::open(recording, None).expect("it is a recording");
    while recording.read_some(|told| phases.hear(told)).expect("it is whole") {
        recording.lives();
    }
    let rows = phases.rows().into_iter().filter(|(_, phase)| phase.count > 0);
    let row = |(name, phase): (&str, &insight::spread::Spread)| {
        let times = [phase.min.as_nanos() as f64, phase.mean(), phase.max.as_nanos() as f64];
        (name.to_owned(), times, phase.count)
    };
    rows.map(row).collect()
}

/// A nanosecond is what `btt` prints of nothing, and what rounding makes of a mean.
fn compare(recording: &Path, directory: &Path, most_missing: u64) {
    let (theirs, ours) = (btts(recording, directory), ours(recording));
    assert!(theirs.len() >= 4, "{theirs:?}");
    for (name, times, count) in &theirs {
        let row = ours.iter().find(|row| row.0 == *name);
        let (_, our_times, our_count) = row.unwrap_or_else(|| panic!("no {name}"));
        assert!(count.abs_diff(*our_count) <= most_missing, "{name}: {count}, not {our_count}");
        for (their, our) in times.iter().zip(our_times) {
            let close = (their - our).abs() <= if count == our_count { 1.01 } else { their * 0.02 };
            assert!(close, "{name}: {times:?}, not {our_times:?}");
        }
    }
}

/// Reads of three tasks on two CPUs; some bios are merged, some requests overtake others.
fn load() -> Vec<Record> {
    let mut rng = Rng::stream(1, "insight/btt");
    let mut records = vec![];
    for request in 0..2000u64 {
        let start = 1_000_000 + request * 50_000;
        let task = (request % 3) as u32;
        let sector = (request * 7919 % 100_000) * 64;
        let mut at = start;
        let mut log = |action, sector, bytes, at: u64| {
            let record = Record {
                sector: Sector(sector),
                bytes,
                pid: 100 + task,
                cpu: task % 2,
                device: DevT::new(8, 0),
                ..Record::event(action, Instant::from_nanos(at))
            };
            records.push(record.with(Categories::READ));
        };
        let mut step = |most: u64| {
            at += 100 + rng.below(most);
            at
        };
        log(Action::Queue, sector, 4096, step(10));
        log(Action::GetRequest, sector, 4096, step(500));
        let merges = request % 4;
        for merge in 1..=merges {
            log(Action::Queue, sector + 8 * merge, 4096, step(500));
            log(Action::BackMerge, sector + 8 * merge, 4096, step(500));
        }
        let bytes = 4096 * (1 + merges as u32);
        log(Action::Insert, sector, bytes, step(1000));
        log(Action::Issue, sector, bytes, step(90_000));
        log(Action::Complete, sector, bytes, step(900_000));
    }
    records.sort_by_key(|record| record.time);
    records
}

fn a_recording_with_merges_has_the_phases_of_btt() {
    let directory = Directory::new("btt-merges");
    let base = directory.0.join("sda");
    let device = DevT::new(8, 0);
    let mut recorder = Recorder::create(&base, device, 2, Wallclock::default()).unwrap();
    load().iter().for_each(|record| recorder.record(record).unwrap());
    recorder.finish().unwrap();
    // The first bio is at time zero to btt, and does not count.
    compare(&base, &directory.0, 1);
}

fn a_recording_of_a_kernel_has_the_phases_of_btt() {
    let directory = Directory::new("btt-kernel");
    let files = traces().join("mynotes_sda_vm");
    for cpu in 0..2 {
        let name = format!("sda.blktrace.{cpu}");
        std::fs::copy(files.join(&name), directory.0.join(&name)).unwrap();
    }
    compare(&directory.0.join("sda"), &directory.0, 1);
}
