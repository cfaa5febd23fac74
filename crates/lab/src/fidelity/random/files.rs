//! Experiments made up at random of what goes through the page cache: raw disk, ext4 and XFS, fio
//! and dd, and what they do to be safe.
//!
//! As with the experiments past it, seed and number make the experiment; unlike there, groups of
//! fio's jobs are few, because each meets what those before have left in memory and on the disk.
//!
//! Leaves out what is known not to agree and says nothing new: writes at random places of XFS
//! without fallocate, files that are read and do not fit into memory, and `lseek`
//! (`ioengine=sync`).

use super::pick;
use base::Rng;
use std::fmt::Write;

/// Requests of all jobs of a group.
const REQUESTS: u64 = 800;

const MODELS: [&str; 6] =
    ["hdd-7200-sata", "vm-ssd-m4", "vm-ssd-m4", "ssd-sata-m4", "vm-disk", "nvme-plp"];
const SYSTEMS: [&str; 5] = ["raw", "ext4", "ext4", "xfs", "xfs"];
const MEMORY: [u32; 4] = [256, 512, 512, 1024];
const EXT4_OPTIONS: [&str; 3] = ["nobarrier", "data=writeback", "commit=1"];
const XFS_OPTIONS: [&str; 3] = ["logbsize=64k", "logbsize=128k", "logbsize=256k"];
const MODES: [&str; 6] = ["read", "write", "randread", "randwrite", "rw", "randrw"];
const BLOCKS: [&str; 5] = ["4k", "8k", "16k", "64k", "256k"];
/// What a job does to be safe; most do nothing.
const HABITS: [&str; 10] = [
    "",
    "",
    "",
    "--fsync=1",
    "--fsync=16",
    "--fdatasync=1",
    "--fdatasync=8",
    "--sync=dsync",
    "--sync=sync",
    "--end_fsync=1",
];
const DD_HABITS: [&str; 8] = [
    "",
    "",
    " conv=fsync",
    " conv=fdatasync",
    " conv=notrunc,fsync",
    " oflag=dsync",
    " oflag=sync",
    " oflag=direct",
];
const DD_BLOCKS: [(&str, u64); 6] =
    [("512", 512), ("3k", 3072), ("4k", 4096), ("16k", 16_384), ("64k", 65_536), ("1M", 1 << 20)];

/// The experiment of a number, as TOML; with a scheduler, the same for that one.
pub fn experiment(seed: u64, number: u64, scheduler: Option<&str>) -> String {
    let mut rng = Rng::stream(seed, &format!("fidelity/random/files/{number}"));
    let system = *pick(&mut rng, &SYSTEMS);
    let usual = *pick(&mut rng, &["none", "mq-deadline"]);
    let scheduler = scheduler.unwrap_or(usual);
    let mut text = format!(
        "title = \"Random experiment {number} of files, seed {seed}\"\nmodel = \"{}\"\n\
         fs = \"{system}\"\nmemory = \"{} MiB\"\nschedulers = [\"{scheduler}\"]\nseeds = [{}]\n",
        pick(&mut rng, &MODELS),
        pick(&mut rng, &MEMORY),
        number + 1,
    );
    environment(&mut text, &mut rng, system);
    match rng.chance(1, 3) {
        true => copies(&mut text, &mut rng, system),
        false => fio(&mut text, &mut rng, system),
    }
    text
}

fn environment(text: &mut String, rng: &mut Rng, system: &str) {
    let options = match system {
        "ext4" => Some(EXT4_OPTIONS),
        "xfs" => Some(XFS_OPTIONS),
        _ => None,
    };
    if let Some(options) = options.filter(|_| rng.chance(1, 3)) {
        add(text, format_args!("mount_options = \"{}\"\n", pick(rng, &options)));
    }
    if rng.chance(1, 4) {
        text.push_str("write_cache = \"write through\"\n");
    }
    if rng.chance(1, 4) {
        add(text, format_args!("queue_depth = {}\n", pick(rng, &[1, 4, 32])));
    }
    let mut settings = String::new();
    if rng.chance(1, 6) {
        add(&mut settings, format_args!("read_ahead_kb = {}\n", pick(rng, &[0, 16, 512, 4096])));
    }
    if rng.chance(1, 8) {
        add(&mut settings, format_args!("max_sectors_kb = {}\n", pick(rng, &[64, 512, 1280])));
    }
    if !settings.is_empty() {
        add(text, format_args!("\n[settings]\n{settings}"));
    }
}

/// Several dd, which begin one after the other, and now and then a sync.
fn copies(text: &mut String, rng: &mut Rng, system: &str) {
    let count = rng.between(1, 3);
    for job in 0..count {
        let (name, bytes) = *pick(rng, &DD_BLOCKS);
        let habit = *pick(rng, &DD_HABITS);
        let is_careful = habit.contains("oflag");
        // What waits for the disk each time is short, other things may reach the limits.
        let most = if is_careful { 400 * bytes.min(65_536) } else { 48 << 20 };
        let blocks = rng.between(1, (most / bytes).clamp(1, 4000));
        let (file, seek) = match system {
            "raw" => ("/dev/sda".to_string(), format!(" seek={}", rng.below(4) * 65_536)),
            _ => (format!("/mnt/d{}", rng.below(2)), String::new()),
        };
        // Direct I/O of less than a sector, or an odd number of them, is another experiment.
        let habit = if habit.ends_with("direct") && bytes < 4096 { "" } else { habit };
        let start = rng.below(4) * job;
        add(
            text,
            format_args!(
                "\n[[job]]\nname = \"dd{job}\"\nstart = \"{start}s\"\n\
                 run = \"dd if=/dev/zero of={file} bs={name} count={blocks}{seek}{habit}\"\n"
            ),
        );
    }
    if rng.chance(1, 2) {
        let start = rng.between(4, 12);
        let job =
            format_args!("\n[[job]]\nname = \"sync\"\nstart = \"{start}s\"\nrun = \"sync\"\n");
        add(text, job);
    }
}

fn fio(text: &mut String, rng: &mut Rng, system: &str) {
    let mut line = "fio".to_string();
    for group in 0..rng.between(1, 3) {
        let count = *pick(rng, &[1, 1, 2, 3]);
        for job in 0..count {
            add(&mut line, format_args!(" --name=g{group}j{job}"));
            if job == 0 && group > 0 {
                line.push_str(" --stonewall");
            }
            let clones = if count == 1 && rng.chance(1, 3) { rng.between(2, 4) } else { 1 };
            fio_job(&mut line, rng, system, REQUESTS / count / clones);
            if clones > 1 {
                add(&mut line, format_args!(" --numjobs={clones} --group_reporting"));
            }
        }
    }
    add(text, format_args!("\n[[job]]\nname = \"load\"\nrun = \"{line}\"\n"));
}

fn fio_job(line: &mut String, rng: &mut Rng, system: &str, requests: u64) {
    let mode = *pick(rng, &MODES);
    let size = *pick(rng, &[4, 16, 32]);
    match system {
        "raw" => {
            let offset = rng.below(20);
            add(line, format_args!(" --filename=/dev/sda --offset={offset}G"));
        }
        _ => add(line, format_args!(" --directory=/mnt --nrfiles={}", pick(rng, &[1, 1, 1, 3]))),
    }
    let block = pick(rng, &BLOCKS);
    add(line, format_args!(" --rw={mode} --bs={block} --size={size}M --number_ios={requests}"));
    if mode.ends_with("rw") {
        add(line, format_args!(" --rwmixread={}", rng.between(10, 90)));
    }
    let is_direct = rng.chance(1, 4);
    if is_direct {
        line.push_str(" --direct=1");
    }
    match is_direct && rng.chance(1, 2) {
        true => {
            let depth = *pick(rng, &[2, 4, 16, 32]);
            add(line, format_args!(" --ioengine=libaio --iodepth={depth}"));
        }
        false => line.push_str(" --ioengine=psync"),
    }
    if mode != "read" && mode != "randread" {
        let habit = *pick(rng, &HABITS);
        if !habit.is_empty() {
            add(line, format_args!(" {habit}"));
        }
        if rng.chance(1, 6) {
            line.push_str(" --overwrite=1");
        }
        let may_lack_room = system == "ext4" || !mode.starts_with("rand");
        if system != "raw" && may_lack_room && rng.chance(1, 6) {
            line.push_str(" --fallocate=none");
        }
    }
}

fn add(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a text takes it");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use crate::plan::Plan;

    #[test]
    fn every_random_experiment_of_files_can_be_planned_and_is_always_the_same() {
        for number in 0..300 {
            let text = experiment(7, number, None);
            assert_eq!(text, experiment(7, number, None));
            let parsed = Experiment::parse("random.toml", &text).unwrap();
            Plan::new(parsed).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}
