//! Runs experiments made up at random in both worlds and keeps the worst.
//!
//! `random [COUNT [SEED [FIRST]]]`: so many groups of jobs on the raw disk, past the page
//! cache. `random --files [COUNT [SEED [FIRST]]]`: so many experiments with files and the
//! page cache. `--kernel NAME` names the judge, `--scheduler NAME` the scheduler of all, which is
//! drawn otherwise, and `--set NAME=VALUE,…` what is set besides, as `compare` has it. What came of
//! them is printed, and the ten worst are written to `fidelity/worst/`.

use crate::Outcome;
use block::Version;
use lab::experiment::Setting;
use lab::fidelity::random::{self, GROUPS};
use lab::fidelity::{Agreed, Figure, JobError, Overview, agreed, errors};
use lab::plan::Plan;
use lab::{Experiment, matrix, world};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many of the worst are kept.
const KEPT: usize = 10;
const DIRECTORY: &str = "fidelity/worst";

/// What is made up.
#[derive(Clone, Copy)]
enum Kind {
    /// Jobs past the page cache.
    Raw,
    /// Files, and the disk through the page cache.
    Files,
}

/// Where an experiment comes from.
#[derive(Clone)]
struct Source {
    kind: Kind,
    judge: Version,
    seed: u64,
    scheduler: Option<String>,
    settings: Option<String>,
}

/// An experiment that ran.
struct Ran {
    number: u64,
    errors: Vec<JobError>,
    agreed: Vec<Agreed>,
}

/// Runs the command.
pub fn main(mut arguments: Vec<String>) -> Outcome {
    let (judge, mut kind) = (crate::judge(&mut arguments)?, Kind::Raw);
    let scheduler = crate::value_of(&mut arguments, "--scheduler");
    let settings = crate::value_of(&mut arguments, "--set");
    if arguments.first().is_some_and(|it| it == "--files") {
        kind = Kind::Files;
        arguments.remove(0);
    }
    let arguments: Vec<u64> = arguments.iter().map(|it| it.parse()).collect::<Result<_, _>>()?;
    let of = |place: usize, otherwise| arguments.get(place).copied().unwrap_or(otherwise);
    let (count, seed, first) = (of(0, 1000), of(1, 1), of(2, 0));
    let source = Source { kind, judge, seed, scheduler, settings };
    let end = first + count.div_ceil(source.parts());
    let (next, ran) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                return;
            }
            // One that panics has found a mistake; the others have something to say all the same.
            match std::panic::catch_unwind(|| source.run(number).map_err(|it| it.to_string())) {
                Ok(Ok(one)) => ran.lock().expect("nobody panicked with it").push(one),
                Ok(Err(error)) => eprintln!("\nexperiment {number}: {error}"),
                Err(_) => eprintln!("\nexperiment {number} panicked"),
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
    keep_worst(&source, ran)?;
    Ok(ExitCode::SUCCESS)
}

impl Source {
    /// Of so many things made up one experiment consists.
    fn parts(&self) -> u64 {
        match self.kind {
            Kind::Raw => GROUPS as u64,
            Kind::Files => 1,
        }
    }

    fn experiment(&self, number: u64) -> Result<String, Box<dyn Error>> {
        let text = match self.kind {
            Kind::Raw => random::experiment(self.seed, number, self.scheduler.as_deref()),
            Kind::Files => random::files::experiment(self.seed, number, self.scheduler.as_deref()),
        };
        let settings = match &self.settings {
            Some(settings) => Setting::parse_list(settings, "--set")?,
            None => Vec::new(),
        };
        let lines = settings.iter().map(|it| format!("{} = {:?}\n", it.name, it.value)).collect();
        Ok(with_settings(&text, lines))
    }

    /// What files of the worst are called.
    fn prefix(&self) -> String {
        let kernel = match self.judge == world::KERNEL {
            true => String::new(),
            false => format!("{}-", self.judge),
        };
        let kernel = match &self.scheduler {
            Some(scheduler) => format!("{kernel}{scheduler}-"),
            None => kernel,
        };
        let kernel = match &self.settings {
            Some(settings) => format!("{kernel}{settings}-"),
            None => kernel,
        };
        match self.kind {
            Kind::Raw => format!("{kernel}seed-{}-", self.seed),
            Kind::Files => format!("{kernel}files-seed-{}-", self.seed),
        }
    }

    fn run(&self, number: u64) -> Result<Ran, Box<dyn Error>> {
        let mut parsed = Experiment::parse("random", &self.experiment(number)?)?;
        crate::in_both(&mut parsed, self.judge);
        parsed.watches_bios = matches!(self.kind, Kind::Files);
        let report = matrix::run(Plan::new(parsed)?, None, 1, &|_| ())?;
        Ok(Ran { number, errors: errors(&report), agreed: agreed(&report) })
    }
}

/// An experiment with so many lines more in its section of settings.
fn with_settings(text: &str, lines: String) -> String {
    const HEAD: &str = "[settings]\n";
    match (lines.is_empty(), text.split_once(HEAD)) {
        (true, _) => text.to_owned(),
        (false, Some((before, after))) => format!("{before}{HEAD}{lines}{after}"),
        (false, None) => {
            let jobs = text.find("[[").unwrap_or(text.len());
            format!("{}{HEAD}{lines}\n{}", &text[..jobs], &text[jobs..])
        }
    }
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
    for ((name, (same, count)), least) in Overview::COUNTED.iter().zip(all.alike).zip(all.least) {
        if count > 0 {
            let (share, least) = (100.0 * same as f64 / count as f64, 100.0 * least);
            println!(
                "the same in the same order: {name} {same} of {count} ({share:.2} %), {least:.1} % \
                 in the worst run"
            );
        }
    }
    println!("pairs whose order no rule decides, and that differ in it: {}", all.ties);
    let (median, p90, worst) = (all.seeks.median, all.seeks.p90, all.seeks.worst);
    println!(
        "distributions of seek distances {median:.2} % apart in the median run, {p90:.2} % in nine \
         of ten, {worst:.1} % in the worst"
    );
}

/// Writes the experiments that differ most, and says what they are: past the page cache those with
/// the largest error of throughput, of files those with the most commands that are not the same.
fn keep_worst(source: &Source, mut ran: Vec<Ran>) -> Result<(), Box<dyn Error>> {
    let worst_job = |one: &Ran| {
        let percent = |it: &JobError| Some((it.bandwidth?.percent(), it.job.clone()));
        let jobs = one.errors.iter().filter_map(percent);
        jobs.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())).unwrap_or_default()
    };
    let common = |one: &Ran| one.agreed.iter().filter_map(|it| it.share(0)).fold(1.0, f64::min);
    let lost = |one: &Ran| one.agreed.iter().map(|it| it.alike[0].1 - it.alike[0].0).sum::<usize>();
    let badness = |one: &Ran| match source.kind {
        Kind::Raw => worst_job(one).0.abs(),
        Kind::Files => lost(one) as f64,
    };
    ran.sort_by(|one, other| badness(other).total_cmp(&badness(one)));
    std::fs::create_dir_all(DIRECTORY)?;
    forget_others(source)?;
    for one in ran.iter().take(KEPT) {
        let path = Path::new(DIRECTORY).join(format!("{}{}.toml", source.prefix(), one.number));
        std::fs::write(&path, source.experiment(one.number)?)?;
        let (percent, job) = worst_job(one);
        let same = 100.0 * common(one);
        let lost = lost(one);
        let path = path.display();
        println!("{path}: {same:.1} % the same, {lost} others, {job} {percent:+.2} %");
    }
    Ok(())
}

/// Removes what was kept of earlier runs like this one.
fn forget_others(source: &Source) -> std::io::Result<()> {
    for entry in std::fs::read_dir(DIRECTORY)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        if name.starts_with(&source.prefix()) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}
