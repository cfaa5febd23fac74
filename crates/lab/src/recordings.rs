//! Recordings of a real 4.19: what a directory of theirs says was run, on what, and what came of
//! it.
//!
//! A directory holds a trace, a `manifest.txt` (disk, queue, scheduler, control groups, command
//! line) and a `result.txt` (what the programs said). Read here, so that the same can be run on a
//! simulated machine and held against it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What was run and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Its name, that of the directory.
    pub name: String,
    /// Where it lies.
    pub directory: PathBuf,
    /// The built-in model of its disk; none of ours if not given.
    pub model: Option<&'static str>,
    /// `queue/rotational` when the elevator was created.
    pub rotational: bool,
    /// The scheduler.
    pub scheduler: String,
    /// The scheduler's tunables, `nr_requests` and `wbt_lat_usec`.
    pub settings: Vec<(String, i64)>,
    /// Paths below the controller's mount point, with weights.
    pub cgroups: Vec<(String, u32)>,
    /// The command line.
    pub command: String,
    /// What was noted about it.
    pub note: String,
    /// Sectors that had been written to the disk before.
    pub written: u64,
    /// What its processes saw.
    pub figures: Vec<Figure>,
}

/// What a process saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Its name; copies of a job have a number behind a dot.
    pub name: String,
    /// Its number in the trace, if that is known.
    pub process: Option<u32>,
    /// Reads or writes per second.
    pub rate: f64,
    /// How many there were.
    pub calls: u64,
    /// Their mean latency in microseconds.
    pub latency: f64,
    /// The longest one.
    pub longest: f64,
    /// Mean latency of its fsyncs in microseconds, if it did any.
    pub sync: Option<f64>,
}

impl Recording {
    /// All recordings below a directory, in order of their names.
    pub fn below(directory: &Path) -> io::Result<Vec<Recording>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.join("manifest.txt").exists() {
                found.push(Recording::read(&path)?);
            } else if path.is_dir() {
                found.extend(Recording::below(&path)?);
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The recording in a directory.
    pub fn read(directory: &Path) -> io::Result<Recording> {
        let manifest = fs::read_to_string(directory.join("manifest.txt"))?;
        let result = fs::read_to_string(directory.join("result.txt"))?;
        let of = |key: &str| {
            let found = manifest.lines().find_map(|line| line.strip_prefix(key));
            found.unwrap_or_default().trim().to_string()
        };
        let scheduler = of("queue/scheduler:");
        let scheduler = scheduler.split(['[', ']']).nth(1).unwrap_or_default().to_string();
        let weight = if scheduler == "bfq" { "bfq.weight=" } else { "weight=" };
        let name = directory.file_name().unwrap_or_default().to_string_lossy().to_string();
        Ok(Recording {
            model: model(&of("device:"), &of("queue_depth:")),
            rotational: of("queue/rotational:") == "1",
            scheduler,
            settings: settings(&manifest),
            cgroups: manifest.lines().filter_map(|line| cgroup(line, weight)).collect(),
            command: of("command:"),
            note: of("note:"),
            written: written(&manifest),
            figures: figures(&result),
            directory: directory.to_path_buf(),
            name,
        })
    }

    /// In which order its processes first asked for anything, by their place among the figures.
    pub fn order(&self) -> Result<Vec<usize>, trace::Error> {
        let mut order = Vec::new();
        for record in trace::read_records(&self.trace())? {
            let record = record?;
            let queued = record.action == trace::blktrace::Action::Queue;
            let place = self.figures.iter().position(|it| it.process == Some(record.pid));
            if let Some(place) = place.filter(|place| queued && !order.contains(place)) {
                order.push(place);
            }
        }
        Ok(order)
    }

    /// The trace.
    pub fn trace(&self) -> PathBuf {
        self.directory.join("tr.blktrace.0.gz")
    }
}

/// The model of a disk, by how its driver was loaded and how deep its queue is.
fn model(device: &str, depth: &str) -> Option<&'static str> {
    Some(match device.split(':').next()? {
        "fast" if depth.starts_with("1 ") => "recorded-fast-qd1",
        "fast" => "recorded-fast",
        "hddra" => "recorded-hddra",
        "hdd" if device.contains("om_ncq=0") => "recorded-hdd-fifo",
        "hdd" if depth.starts_with("1 ") => "recorded-hdd-qd1",
        "hdd" => "recorded-hdd",
        _ => return None,
    })
}

/// Sectors that `/proc/diskstats` counted as written.
fn written(manifest: &str) -> u64 {
    let mut lines = manifest.lines().skip_while(|line| !line.starts_with("--- diskstats before"));
    let field = lines.nth(1).and_then(|line| line.split_whitespace().nth(9)?.parse().ok());
    field.unwrap_or(0)
}

/// Files of the queue that differ from what they are here.
const QUEUE: [&str; 2] = ["nr_requests:", "wbt_lat_usec:"];
/// What `wbt_lat_usec` says if nobody wrote it. It has no effect then: a buffered writer that is
/// alone is as fast as without throttling, and with it a third faster
/// (`f-hdd-deadline-async-alone`).
const UNTOUCHED: &str = "wbt_lat_usec: 2000";

/// What was set: tunables in microseconds are there a second time in milliseconds.
fn settings(manifest: &str) -> Vec<(String, i64)> {
    let mut settings = Vec::new();
    for line in manifest.lines() {
        let own = line.strip_prefix("iosched/").filter(|line| !line.contains("_us:"));
        let of_queue =
            |line: &&str| *line != UNTOUCHED && QUEUE.iter().any(|name| line.starts_with(name));
        let queue = line.strip_prefix("queue/").filter(of_queue);
        let Some((name, value)) = own.or(queue).and_then(|line| line.split_once(':')) else {
            continue;
        };
        if let Ok(value) = value.trim().parse() {
            settings.push((name.to_string(), value));
        }
    }
    settings
}

/// `cgroup /cg/blkio/A: weight=200 … bfq.weight=800 …`, of which `name` says which weight holds.
fn cgroup(line: &str, name: &str) -> Option<(String, u32)> {
    let (path, rest) = line.strip_prefix("cgroup /cg/blkio/")?.split_once(':')?;
    let weight = rest.split_whitespace().find_map(|word| word.strip_prefix(name))?;
    Some((path.to_string(), weight.parse().ok()?))
}

/// What the programs said: lg, dd or fio.
fn figures(result: &str) -> Vec<Figure> {
    let mut figures: Vec<Figure> = result.lines().filter_map(Figure::of_lg).collect();
    let mut calls = 0;
    for line in result.lines() {
        if let Some((records, _)) = line.split_once("+0 records out") {
            calls = records.trim().parse().unwrap_or(0);
        }
        if let Some(seconds) = line.split(" copied, ").nth(1) {
            let name = format!("dd.{}", figures.len());
            figures.push(of_dd(name, calls, seconds.split(' ').next().unwrap_or_default()));
        }
        of_fio(line, &mut figures);
    }
    figures
}

fn of_dd(name: String, calls: u64, seconds: &str) -> Figure {
    let seconds: f64 = seconds.parse().unwrap_or(f64::NAN);
    let (rate, latency) = (calls as f64 / seconds, 1e6 * seconds / calls as f64);
    Figure { name, rate, calls, latency, ..Figure::default() }
}

/// `t0: (groupid=0, …`, `read: IOPS=2487, …`, `lat (usec): min=171, max=57408, avg=400.52, …`.
fn of_fio(line: &str, figures: &mut Vec<Figure>) {
    let line = line.trim();
    if let Some((name, _)) = line.split_once(": (groupid=") {
        figures.push(Figure { name: name.to_string(), ..Figure::default() });
    }
    let Some(last) = figures.last_mut() else { return };
    let number = |key: &str| {
        let value = line.split(key).nth(1)?;
        value.split([',', ' ']).next()?.trim_end_matches('k').parse::<f64>().ok()
    };
    if line.starts_with("read: IOPS=") {
        let thousands = line.split(',').next().is_some_and(|it| it.ends_with('k'));
        last.rate = number("IOPS=").unwrap_or(f64::NAN) * if thousands { 1000.0 } else { 1.0 };
    }
    let unit = [("lat (nsec): min", 1e-3), ("lat (usec): min", 1.0), ("lat (msec): min", 1e3)];
    if let Some((_, unit)) = unit.into_iter().find(|(start, _)| line.starts_with(start)) {
        last.latency = number("avg=").unwrap_or(f64::NAN) * unit;
        last.longest = number("max=").unwrap_or(f64::NAN) * unit;
    }
}

impl Figure {
    /// A line of lg: name, process (in recordings), mode, block, calls, calls and megabytes per
    /// second; latencies; fsyncs.
    pub fn of_lg(line: &str) -> Option<Figure> {
        let mut parts = line.split('|');
        let mut words: Vec<&str> = parts.next()?.split_whitespace().collect();
        let process = words.get(1)?.parse().ok();
        if process.is_some() {
            words.remove(1);
        }
        if !matches!(*words.get(1)?, "read" | "write" | "randread" | "randwrite") {
            return None;
        }
        let numbers = |part: &str| -> Vec<f64> {
            part.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let latencies = numbers(parts.next()?);
        let syncs = parts.next().map(numbers).unwrap_or_default();
        Some(Figure {
            name: words[0].to_string(),
            process,
            calls: words.get(3)?.parse().ok()?,
            rate: words.get(4)?.parse().ok()?,
            latency: *latencies.first()?,
            longest: *latencies.last()?,
            sync: syncs.get(1).copied(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_lg_are_read_with_and_without_process_and_fsyncs() {
        let recorded = "A   840 read  65536  408  81.6  5.346 |  7205  721  806  114383  122713";
        let figure = Figure::of_lg(recorded).expect("a line");
        assert_eq!((figure.name.as_str(), figure.calls, figure.latency), ("A", 408, 7205.0));
        let ours = "rw randwrite 4096 68 4.5 0.018 | 141 19 74 7335 7335 | fsync: 68 221142 1 2 3";
        let figure = Figure::of_lg(ours).expect("a line");
        assert_eq!((figure.rate, figure.longest, figure.sync), (4.5, 7335.0, Some(221142.0)));
        assert_eq!(Figure::of_lg("TOTAL 47.388 MB/s over 5.009 s"), None);
    }

    #[test]
    fn what_dd_and_fio_said_is_read() {
        let dd = figures("1000+0 records out\n512000 bytes (1 kB) copied, 7.5 s, 67.5 kB/s\n");
        assert_eq!((dd[0].calls, dd[0].latency), (1000, 7500.0));
        let fio = "t0: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=2487, BW=38.9MiB/s\n    \
                   clat (usec): min=171, max=57407, avg=400.32\n     lat (usec): min=171, \
                   max=57408, avg=400.52, stdev=7\n";
        let fio = figures(fio);
        assert_eq!((fio[0].rate, fio[0].latency, fio[0].longest), (2487.0, 400.52, 57408.0));
    }

    #[test]
    fn disks_are_told_by_how_their_driver_was_loaded() {
        assert_eq!(model("hdd: scsi_debug om_model=2 om_ncq=0", "32 q"), Some("recorded-hdd-fifo"));
        assert_eq!(model("hdd: scsi_debug om_model=2", "1 queue_type"), Some("recorded-hdd-qd1"));
        assert_eq!(model("QEMU AHCI disk", "32"), None);
    }

    #[test]
    fn what_was_written_before_is_that_of_the_disk_statistics() {
        let line = "   8       0 sda 364149 6 4388754 631366 1789 159 1888840 67791 0 46788 \
                    696784 0 0 0 0";
        assert_eq!(written(&format!("x\n--- diskstats before\n{line}\n--- result\n")), 1_888_840);
        assert_eq!(written("command: lg"), 0);
    }
}
