//! What writeback throttling tells of itself, the simulator against the kernel: its tracepoints in
//! recordings of both worlds.
//!
//! `throttling [--kernel NAME] [FILE …]`: each experiment is recorded in both worlds; with none a
//! reader beside dd, which writes twice the memory, on four disks under four schedulers. Of the
//! events wbt_timer, wbt_lat, wbt_stat and wbt_step count kind, status and step, in order.

use crate::Outcome;
use block::Version;
use lab::fidelity::told::common;
use lab::plan::Plan;
use lab::{Experiment, matrix};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use trace::blktrace::Payload;

/// A reader beside a buffered writer of more than the memory.
const LOAD: &str = r#"
title = "a reader beside a buffered writer"
kernel = "6.12"
fs = "ext4"
schedulers = ["none", "mq-deadline", "kyber", "bfq"]
seeds = 1
setup = ["dd if=/dev/zero of=table bs=1M count=MEMORY oflag=direct", "sync", "drop_caches"]
memory = "MEMORY MiB"

[settings]
wbt_lat_usec = -1

[axes]
model = ["hdd-7200-sata", "ssd-sata-m4", "ssd-sata-px256m5s", "vm-disk"]

[[job]]
name = "read"
run = "fio --name=r --filename=table --rw=randread --bs=4k --size=MEMORYm --time_based --runtime=5"

[[job]]
name = "write"
run = "dd if=/dev/zero of=copy bs=1M count=TWICE"
background = true
"#;

/// Of how much memory the load is, in MiB, where no files are given.
const MEMORIES: [u32; 2] = [256, 512];

/// Runs the command.
pub fn main(mut arguments: Vec<String>) -> Outcome {
    let judge = crate::judge(&mut arguments)?;
    let mut texts = Vec::new();
    for file in &arguments {
        texts.push((file.clone(), std::fs::read_to_string(file)?));
    }
    if texts.is_empty() {
        texts.extend(MEMORIES.map(|memory| {
            let text = LOAD.replace("MEMORY", &memory.to_string());
            (format!("{memory} MiB"), text.replace("TWICE", &(2 * memory).to_string()))
        }));
    }
    println!("| run | events here | on {judge} | the same in order |\n|---|---|---|---|");
    let mut total = (0, 0);
    for (name, text) in texts {
        for (row, here, there, same) in compare(&name, &text, judge)? {
            println!("| {row} | {here} | {there} | {:.1} % |", percent(same, here.max(there)));
            total = (total.0 + same, total.1 + here.max(there));
        }
    }
    println!("\n{} of {} events: {:.2} %", total.0, total.1, percent(total.0, total.1));
    Ok(ExitCode::SUCCESS)
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// A run: its name, how many events each world has, and how many are the same.
type Row = (String, usize, usize, usize);

fn compare(name: &str, text: &str, judge: Version) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut experiment = Experiment::parse(name, text)?;
    crate::in_both(&mut experiment, judge);
    let process = std::process::id();
    let directory = std::env::temp_dir().join(format!("paternoster-throttling-{process}"));
    let recorded = matrix::run(Plan::new(experiment)?, Some(&directory), 2, &|_| ());
    let rows = recorded.map_err(Into::into).and_then(|_| rows_in(&directory, name));
    std::fs::remove_dir_all(&directory).ok();
    rows
}

fn rows_in(directory: &Path, name: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let sim = entry?.path();
        let run = sim.file_name().unwrap_or_default().to_string_lossy();
        let twin = sim.with_file_name(format!("{run}-linux"));
        if twin.exists() {
            let (here, there) = (told(&sim.join("sda"))?, told(&twin.join("vda"))?);
            let same = common(&here, &there);
            rows.push((format!("{name}: {run}"), here.len(), there.len(), same));
        }
    }
    rows.sort();
    Ok(rows)
}

/// The events of a recording: kind, status and step.
fn told(recording: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut events = Vec::new();
    for record in trace::read_records(recording)? {
        let Payload::Message(text) = record?.payload else { continue };
        let text = String::from_utf8_lossy(&text);
        if text.starts_with("wbt_") {
            events.push(without_numbers(&text));
        }
    }
    Ok(events)
}

/// An event without its numbers, but for status and step.
fn without_numbers(message: &str) -> String {
    let words = message.split([' ', ',']).filter(|word| !word.is_empty());
    let kept = words.enumerate().filter(|(place, word)| {
        *place == 0 || word.starts_with("status=") || word.starts_with("step=")
    });
    kept.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}
