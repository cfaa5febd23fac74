//! What writeback throttling tells of itself, the simulator against the kernel: its tracepoints in
//! recordings of both worlds.
//!
//! `wbt [--kernel NAME] [FILE …]`: each experiment is recorded in both worlds; with none a
//! reader beside dd, which writes twice the memory, on four disks under four schedulers. Of the
//! events wbt_timer, wbt_lat, wbt_stat and wbt_step count kind, status and step, in order.

use crate::{Outcome, recorded};
use lab::fidelity::told::common;
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
        recorded::in_both(&name, &text, judge, |pair| {
            let [sim, linux] = pair.traces();
            let (here, there) = (told(&sim)?, told(&linux)?);
            let (same, all) = (common(&here, &there), here.len().max(there.len()));
            let (row, here, there) = (&pair.name, here.len(), there.len());
            println!("| {name}: {row} | {here} | {there} | {:.1} % |", percent(same, all));
            total = (total.0 + same, total.1 + all);
            Ok(())
        })?;
    }
    println!("\n{} of {} events: {:.2} %", total.0, total.1, percent(total.0, total.1));
    Ok(ExitCode::SUCCESS)
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
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
