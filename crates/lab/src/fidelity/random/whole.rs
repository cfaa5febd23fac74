//! Experiments of any kind, for runs that have to end without a panic: any kernel with any of its
//! schedulers, any model, host and file system, and jobs of fio through the page cache or past it.
//!
//! The same seed and number make the same experiment. Jobs share files and parts of the disk, and
//! memory is short as often as not.

use super::pick;
use crate::plan::Plan;
use crate::{Error, Experiment, Report, matrix};
use base::Rng;
use block::kernel::KERNELS;
use device::Model;
use machine::Host;
use std::fmt::Write;

const MODES: [&str; 8] =
    ["read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim"];
const ENGINES: [&str; 6] = ["mmap", "psync", "sync", "pvsync2", "libaio", "io_uring"];
const SIZES: [&str; 8] = ["512", "4k", "4k", "16k", "64k", "1m", "6k", "200k"];
const MEMORY: [&str; 5] = ["16 MiB", "32 MiB", "64 MiB", "256 MiB", "4 GiB"];
/// Options of a job, each of which one job in ten has. The first need a file system.
const OPTIONS: [&str; 24] = [
    "--file_append=1",
    "--sync_file_range=write:4",
    "--fallocate=none",
    "--overwrite=1",
    "--fsync=3",
    "--fdatasync=2",
    "--end_fsync=1",
    "--sync=1",
    "--sync=dsync",
    "--numjobs=4",
    "--numjobs=3 --group_reporting",
    "--thread",
    "--loops=3",
    "--norandommap",
    "--random_distribution=zipf:1.2",
    "--invalidate=0",
    "--thinktime=500",
    "--rate_iops=2000",
    "--verify=crc32c",
    "--bsrange=512-64k",
    "--rwmixread=20",
    "--startdelay=5ms",
    "--iodepth_batch=4",
    "--percentage_random=40",
];

/// Runs the experiment of a number in this thread, with a scheduler that checks itself. What fio
/// refuses is refused.
pub fn run(seed: u64, number: u64) -> Result<Report, Error> {
    let mut experiment = Experiment::parse("random.toml", &experiment(seed, number))?;
    experiment.paranoid = true;
    matrix::run(Plan::new(experiment)?, None, 1, &|_| ())
}

/// The experiment of a number, as TOML.
pub fn experiment(seed: u64, number: u64) -> String {
    let mut rng = Rng::stream(seed, &format!("fidelity/random/whole/{number}"));
    let kernel = pick(&mut rng, &KERNELS);
    let schedulers: Vec<_> =
        sched::names().filter(|name| sched::about_on(name, kernel).is_some()).collect();
    let (models, hosts): (Vec<_>, Vec<_>) = (Model::names().collect(), Host::names().collect());
    let mut text = format!(
        "title = \"Random run {number} of seed {seed}\"\nmodel = \"{}\"\nhost = \"{}\"\n\
         schedulers = [\"{}@{}\"]\nseeds = [{}]\nmemory = \"{}\"\n",
        pick(&mut rng, &models),
        pick(&mut rng, &hosts),
        pick(&mut rng, &schedulers),
        kernel.version,
        number + 1,
        pick(&mut rng, &MEMORY),
    );
    let file_system = pick(&mut rng, &["", "", "ext4", "xfs"]);
    if !file_system.is_empty() {
        writeln!(text, "fs = \"{file_system}\"").expect("a text takes it");
    }
    for job in 0..rng.between(1, 4) {
        let line = command(&mut rng, !file_system.is_empty());
        let run = format!("name = \"j{job}\"\nrun = \"fio --name=j{job} {line}\"");
        let duration = pick(&mut rng, &[5, 20, 50, 200]);
        write!(text, "\n[[job]]\n{run}\nduration = \"{duration}ms\"\n").expect("a text takes it");
    }
    text
}

/// The options of fio of a job.
fn command(rng: &mut Rng, has_files: bool) -> String {
    let is_file = has_files && rng.chance(3, 4);
    let place = match is_file {
        true => format!("/mnt/f{}", rng.below(2)),
        false => "/dev/sda".to_string(),
    };
    let mode = pick(rng, &MODES[..if is_file { 6 } else { 8 }]);
    let engine = pick(rng, &ENGINES[usize::from(mode.contains("trim"))..]);
    let mut line = format!(
        "--filename={place} --rw={mode} --bs={} --size={}m --ioengine={} --direct={}",
        pick(rng, &SIZES),
        pick(rng, &[1, 4, 16, 64]),
        engine,
        if *engine == "mmap" { 0 } else { rng.below(2) },
    );
    write!(line, " --iodepth={}", pick(rng, &[1, 4, 32, 200])).expect("a text takes it");
    if *engine != "mmap" {
        write!(line, " --offset={}m", rng.below(3)).expect("a text takes it");
    }
    for option in &OPTIONS[if is_file { 0 } else { 4 }..] {
        if rng.chance(1, 10) {
            write!(line, " {option}").expect("a text takes it");
        }
    }
    line
}
