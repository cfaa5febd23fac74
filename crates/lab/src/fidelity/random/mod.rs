//! Experiments made up at random: one disk, one scheduler with its settings, some groups of fio
//! jobs one group after the other.
//!
//! The same seed and number make the same experiment. Groups run one after the other in one
//! process of fio (`stonewall`), because starting one takes a guest as long as thousands of
//! requests.
//!
//! Leaves out what cannot agree by construction: rates and pauses, during which fio spins. What
//! goes through the page cache is in [`files`].

pub mod files;
pub mod whole;

use base::Rng;
use std::fmt::Write;

/// Groups of jobs in an experiment.
pub const GROUPS: usize = 5;
/// Requests of all jobs of a group.
const REQUESTS: u64 = 1200;

const MODELS: [&str; 6] =
    ["hdd-7200-sata", "hdd-sas-2009", "hdd-7200-sata", "ssd-sata-m4", "vm-disk", "nvme-plp"];
const DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 31, 32, 64];
const MODES: [&str; 6] = ["randread", "randwrite", "randrw", "read", "write", "rw"];
const SIZES: [&str; 8] = [
    "--bs=4k",
    "--bs=8k",
    "--bs=16k",
    "--bs=64k",
    "--bs=512",
    "--bs=256k",
    "--bsrange=4k-64k",
    "--bssplit=4k/60:32k/30:128k/10",
];
/// Tunables of a scheduler with values around their defaults.
type Tunables = [(&'static str, [i64; 4])];

const OF_MQ_DEADLINE: &Tunables = &[
    ("read_expire", [5, 50, 500, 5000]),
    ("write_expire", [50, 500, 5000, 50_000]),
    ("writes_starved", [0, 1, 2, 8]),
    ("fifo_batch", [1, 4, 16, 64]),
    ("front_merges", [0, 1, 1, 1]),
    ("prio_aging_expire", [100, 1000, 10_000, 10_000]),
];
const OF_BFQ: &Tunables = &[
    ("low_latency", [0, 0, 1, 1]),
    ("slice_idle", [0, 2, 8, 20]),
    ("strict_guarantees", [0, 0, 0, 1]),
    ("fifo_expire_sync", [5, 50, 125, 1000]),
    ("fifo_expire_async", [50, 250, 2500, 250]),
    ("back_seek_max", [0, 1000, 16_384, 100_000]),
    ("back_seek_penalty", [1, 2, 2, 10]),
    ("max_budget", [0, 0, 512, 4096]),
];

/// The experiment of a number, as TOML; with a scheduler, the same for that one.
pub fn experiment(seed: u64, number: u64, scheduler: Option<&str>) -> String {
    let mut rng = Rng::stream(seed, &format!("fidelity/random/{number}"));
    let model = pick(&mut rng, &MODELS);
    let depth = *pick(&mut rng, &DEPTHS);
    let usual = if rng.chance(2, 3) { "mq-deadline" } else { "none" };
    let scheduler = scheduler.unwrap_or(usual);
    let tunables = match scheduler {
        "none" => None,
        "bfq" => Some(OF_BFQ),
        "mq-deadline" => Some(OF_MQ_DEADLINE),
        _ => Some::<&Tunables>(&[]),
    };
    let mut text = format!(
        "title = \"Random experiment {number} of seed {seed}\"\nmodel = \"{model}\"\n\
         schedulers = [\"{}\"]\nseeds = [{}]\nqueue_depth = {depth}\n",
        scheduler,
        number + 1,
    );
    settings(&mut text, &mut rng, tunables, depth);
    let mut line = "fio --filename=/dev/sda --direct=1 --size=2G".to_string();
    for group in 0..GROUPS {
        jobs(&mut line, &mut rng, group);
    }
    write!(text, "\n[[job]]\nname = \"load\"\nrun = \"{line}\"\n").expect("a text takes it");
    text
}

fn settings(text: &mut String, rng: &mut Rng, tunables: Option<&Tunables>, depth: u32) {
    let mut set: Vec<(&str, i64)> = Vec::new();
    if let Some(tunables) = tunables {
        for (name, values) in tunables {
            if rng.chance(1, 3) {
                set.push((name, *pick(rng, values)));
            }
        }
        if rng.chance(1, 2) {
            let most = u64::from(2 * depth).max(4);
            set.push(("nr_requests", rng.between(4, most) as i64));
        }
    }
    if rng.chance(1, 8) {
        set.push(("nomerges", rng.between(1, 2) as i64));
    }
    if rng.chance(1, 8) {
        set.push(("max_sectors_kb", *pick(rng, &[64, 128, 512, 1280])));
    }
    if set.is_empty() {
        return;
    }
    text.push_str("\n[settings]\n");
    for (name, value) in set {
        writeln!(text, "{name} = {value}").expect("a text takes it");
    }
}

/// Adds a group of jobs that run at the same time, after all before.
fn jobs(line: &mut String, rng: &mut Rng, group: usize) {
    let count = *pick(rng, &[1, 1, 2, 3]);
    for job in 0..count {
        let clones = if count == 1 && rng.chance(1, 4) { rng.between(2, 12) } else { 1 };
        write!(line, " --name=g{group}j{job}").expect("a text takes it");
        if job == 0 && group > 0 {
            line.push_str(" --stonewall");
        }
        let mode = pick(rng, &MODES);
        let requests = REQUESTS / count / clones;
        write!(line, " --rw={mode} {} --number_ios={requests}", pick(rng, &SIZES))
            .expect("a text takes it");
        write!(line, " --offset={}G", rng.below(40)).expect("a text takes it");
        if mode.ends_with("rw") {
            write!(line, " --rwmixread={}", rng.between(10, 90)).expect("a text takes it");
        }
        if clones > 1 {
            write!(line, " --numjobs={clones} --group_reporting").expect("a text takes it");
        }
        engine(line, rng);
        if rng.chance(1, 5) {
            let class = rng.between(1, 3);
            write!(line, " --prioclass={class}").expect("a text takes it");
            if class < 3 {
                write!(line, " --prio={}", rng.below(8)).expect("a text takes it");
            }
        }
        if rng.chance(1, 10) {
            line.push_str(" --norandommap");
        }
    }
}

fn engine(line: &mut String, rng: &mut Rng) {
    if rng.chance(1, 4) {
        line.push_str(" --ioengine=psync");
        if rng.chance(1, 6) {
            write!(line, " --fsync={}", rng.between(1, 32)).expect("a text takes it");
        }
        return;
    }
    let depth = *pick(rng, &[2, 4, 8, 16, 32, 64, 128]);
    write!(line, " --ioengine=libaio --iodepth={depth}").expect("a text takes it");
    if rng.chance(1, 4) {
        write!(line, " --iodepth_batch={}", rng.between(2, depth.min(16)))
            .expect("a text takes it");
    }
    if rng.chance(1, 8) {
        write!(line, " --iodepth_low={}", rng.between(1, depth)).expect("a text takes it");
    }
}

fn pick<'a, T>(rng: &mut Rng, all: &'a [T]) -> &'a T {
    &all[rng.below(all.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use crate::plan::Plan;

    #[test]
    fn every_random_experiment_can_be_planned_and_is_always_the_same() {
        for number in 0..200 {
            let text = experiment(7, number, None);
            assert_eq!(text, experiment(7, number, None));
            let parsed = Experiment::parse("random.toml", &text).unwrap();
            Plan::new(parsed).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}
