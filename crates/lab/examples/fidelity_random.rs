//! Runs experiments made up at random in both worlds and keeps the worst.
//!
//! `fidelity_random [COUNT [SEED [FIRST]]]`: so many groups of jobs. What came of them is printed,
//! and the ten worst are written to `fidelity/worst/`.

use lab::fidelity::random::{GROUPS, experiment};
use lab::fidelity::{Agreed, Figure, JobError, Overview, agreed, errors};
use lab::plan::Plan;
use lab::{Experiment, World, matrix};
use std::error::Error;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many of the worst are kept.
const KEPT: usize = 10;
const FOLDER: &str = "fidelity/worst";

/// An experiment that ran.
struct Ran {
    number: u64,
    errors: Vec<JobError>,
    agreed: Vec<Agreed>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Result<Vec<u64>, _> = std::env::args().skip(1).map(|it| it.parse()).collect();
    let arguments = arguments?;
    let of = |place: usize, otherwise| arguments.get(place).copied().unwrap_or(otherwise);
    let (count, seed, first) = (of(0, 1000), of(1, 1), of(2, 0));
    let end = first + count.div_ceil(GROUPS as u64);
    let (next, ran) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                return;
            }
            match run(seed, number) {
                Ok(one) => ran.lock().expect("nobody panicked with it").push(one),
                Err(error) => eprintln!("\nexperiment {number}: {error}"),
            }
            eprint!("\r{number} of {end} ");
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    eprintln!();
    let mut ran = ran.into_inner().expect("nobody panicked with it");
    ran.sort_by_key(|one| one.number);
    show(&ran);
    keep_worst(seed, ran)
}

fn run(seed: u64, number: u64) -> Result<Ran, Box<dyn Error>> {
    let mut parsed = Experiment::parse("random", &experiment(seed, number))?;
    parsed.worlds = vec![World::Sim, World::Linux];
    let report = matrix::run(Plan::new(parsed)?, None, 1, &|_| ())?;
    Ok(Ran { number, errors: errors(&report), agreed: agreed(&report) })
}

fn show(ran: &[Ran]) {
    let errors: Vec<JobError> = ran.iter().flat_map(|one| one.errors.clone()).collect();
    let agreed: Vec<Agreed> = ran.iter().flat_map(|one| one.agreed.clone()).collect();
    let all = Overview::of(&errors, &agreed);
    println!("| figure | median | nine of ten | worst | of |\n|---|---|---|---|---|");
    for (figure, spread) in Figure::ALL.iter().zip(all.figures) {
        let (name, count) = (figure.name(), spread.count);
        let (median, p90, worst) = (spread.median, spread.p90, spread.worst);
        println!("| {name} | {median:.2} % | {p90:.2} % | {worst:.2} % | {count} jobs |");
    }
    println!(
        "\n{} runs: sizes equal in {}, every command equal in {}; {} of {} commands before the \
         first difference",
        all.runs, all.same_requests, all.same_commands, all.commands_before, all.commands
    );
}

/// Writes the experiments with the largest errors of throughput, and says what they are.
fn keep_worst(seed: u64, mut ran: Vec<Ran>) -> Result<(), Box<dyn Error>> {
    let worst_job = |one: &Ran| {
        let percent = |it: &JobError| Some((it.bandwidth?.percent(), it.job.clone()));
        let jobs = one.errors.iter().filter_map(percent);
        jobs.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())).unwrap_or_default()
    };
    ran.sort_by(|one, other| worst_job(other).0.abs().total_cmp(&worst_job(one).0.abs()));
    std::fs::create_dir_all(FOLDER)?;
    forget_others(seed)?;
    for one in ran.iter().take(KEPT) {
        let path = Path::new(FOLDER).join(format!("seed-{seed}-{}.toml", one.number));
        std::fs::write(&path, experiment(seed, one.number))?;
        let (percent, job) = worst_job(one);
        println!("{}: {job} {percent:+.2} %", path.display());
    }
    Ok(())
}

/// Removes what was kept of earlier runs with this seed.
fn forget_others(seed: u64) -> std::io::Result<()> {
    for entry in std::fs::read_dir(FOLDER)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        if name.starts_with(&format!("seed-{seed}-")) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}
