//! Twice the same? Twenty experiments, three times each, under three kinds of circumstances:
//! `determinism [NUMBER…]`.
//!
//! The first run is an ordinary one. During the second all cores are busy with something else,
//! and both sides of the guest are stopped and continued at random. The third is in a directory
//! with another, longer name and by another user, if root may choose one. Traces, priorities,
//! outputs and logs of the disks must be the same to the byte. `SERIES` and `HZ` in the environment
//! choose another kernel than 6.12 with 250.

mod experiments;
mod trouble;

use crate::Outcome;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant as WallInstant;

use self::experiments::{Experiment, PROGRAMS, Place, experiments};
use self::trouble::wait_with_trouble;
use base::Hz;
use linux::rootfs::find_program;
use linux::{About, Cache, Finished, Kernel, Root};

/// The user of the third run: nobody, and not root.
const USER: u32 = 65_534;
/// What a run leaves, each in a file of this name.
const LEFT: [&str; 5] = ["trace", "priorities", "output", "log", "end"];

type Failure = Box<dyn Error>;

/// Runs the command, or the child's side of it.
pub fn main(arguments: Vec<String>) -> Outcome {
    let same = match arguments.as_slice() {
        [word, number, shared, directory] if word == "--one" => {
            run_one(number, Path::new(shared), Path::new(directory)).map(|()| true)?
        }
        numbers => compare_all(numbers)?,
    };
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the experiments of these numbers, or all, and prints a line for each; whether all runs
/// of each were the same.
fn compare_all(numbers: &[String]) -> Result<bool, Failure> {
    let shared = Shared::make(&kernel()?)?;
    let wanted = |number: usize| {
        numbers.is_empty() || numbers.iter().any(|wanted| *wanted == number.to_string())
    };
    let other = if shared.may_choose_user() { "another user" } else { "the same user" };
    println!("third run: another directory, {other}\n");
    println!(
        "| # | load | scheduler | depth | disk | on | commands | trace, KB | guest, s | wall, s | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut same = true;
    for (number, experiment) in (1..).zip(experiments()).filter(|(number, _)| wanted(*number)) {
        if let Place::FileSystem(name) = experiment.place
            && find_program(&format!("mkfs.{name}")).is_none()
        {
            println!("| {number} | {} | not run: it needs mkfs.{name} |", experiment.title);
            continue;
        }
        same &= shared.compare(number, &experiment)?;
    }
    Ok(same)
}

/// Under which a run must be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circumstances {
    Ordinary,
    Trouble,
    Elsewhere,
}

/// What all runs share, in a directory that every user may read. It is removed in the end.
struct Shared {
    directory: PathBuf,
}

impl Shared {
    fn make(kernel: &Kernel) -> Result<Shared, Failure> {
        let name = format!("paternoster-determinism-{}", std::process::id());
        let shared = Shared { directory: env::temp_dir().join(name) };
        fs::create_dir(&shared.directory)?;
        fs::copy(&kernel.binary, shared.directory.join("kernel"))?;
        fs::copy(env::current_exe()?, shared.program())?;
        let found = PROGRAMS.into_iter().filter(|name| find_program(name).is_some());
        let root = Root::make(&shared.directory.join("root"), &found.collect::<Vec<_>>())?;
        let requests = root.directory().join("usr/bin").join(experiments::REQUESTS);
        compile(include_str!("requests.c"), &requests)?;
        Ok(shared)
    }

    fn program(&self) -> PathBuf {
        self.directory.join("xtask")
    }

    fn may_choose_user(&self) -> bool {
        rustix::process::geteuid().is_root() && find_program("setpriv").is_some()
    }

    /// Does all three runs and prints a line; whether they were the same.
    fn compare(&self, number: usize, experiment: &Experiment) -> Result<bool, Failure> {
        let began = WallInstant::now();
        let plain = self.run(number, Circumstances::Ordinary)?;
        let took = began.elapsed();
        let read = |directory: &Path, name: &str| fs::read(directory.join("left").join(name));
        let mut differences = Vec::new();
        for circumstances in [Circumstances::Trouble, Circumstances::Elsewhere] {
            let directory = self.run(number, circumstances)?;
            for name in LEFT {
                if read(&plain, name)? != read(&directory, name)? {
                    differences.push(format!("{name} in {}", directory.display()));
                }
            }
        }
        let same = differences.is_empty();
        let verdict =
            if same { "same".into() } else { format!("DIFFERENT: {}", differences.join(", ")) };
        let Experiment { title, scheduler, depth, model, place, .. } = experiment;
        let commands = read(&plain, "log")?.iter().filter(|byte| **byte == b'\n').count();
        let (trace, end) = (read(&plain, "trace")?.len() / 1000, read(&plain, "end")?);
        let end: f64 = String::from_utf8_lossy(&end).parse()?;
        let (end, took) = (end / 1e9, took.as_secs_f64());
        println!(
            "| {number} | {title} | {scheduler} | {depth} | {model} | {place} | {commands} \
             | {trace} | {end:.2} | {took:.1} | {verdict} |"
        );
        Ok(same)
    }

    /// One run, by a process of its own; the directory in which it left its results.
    fn run(&self, number: usize, circumstances: Circumstances) -> Result<PathBuf, Failure> {
        let directory = self.directory.join(match circumstances {
            Circumstances::Ordinary => format!("{number}"),
            Circumstances::Trouble => format!("{number} in trouble"),
            Circumstances::Elsewhere => format!("{number}/{}", "another place ".repeat(12)),
        });
        fs::create_dir_all(&directory)?;
        let mut command = Command::new(self.program());
        if circumstances == Circumstances::Elsewhere && self.may_choose_user() {
            std::os::unix::fs::chown(&directory, Some(USER), Some(USER))?;
            command = Command::new("setpriv");
            command.args([format!("--reuid={USER}"), format!("--regid={USER}")]);
            command.arg("--clear-groups").arg(self.program());
        }
        command
            .args(["determinism", "--one"])
            .arg(number.to_string())
            .arg(&self.directory)
            .arg(&directory);
        let mut child = command.current_dir(&directory).stdin(Stdio::null()).spawn()?;
        let status = match circumstances {
            Circumstances::Trouble => wait_with_trouble(&mut child)?,
            Circumstances::Ordinary | Circumstances::Elsewhere => child.wait()?,
        };
        match status.success() {
            true => Ok(directory),
            false => Err(format!("experiment {number} failed ({status})").into()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A directory that cannot be removed is litter, and no difference between runs.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn kernel() -> Result<Kernel, Failure> {
    let series = env::var("SERIES").unwrap_or_else(|_| "6.12".to_string());
    let hz = env::var("HZ").map_or(Ok(250), |hz| hz.parse())?;
    let hz = Hz::new(hz).ok_or_else(|| format!("HZ is one of {:?}, not {hz}", Hz::CHOICES))?;
    Ok(Cache::of_user()?.require(&series, hz)?)
}

/// Compiles a program for the root.
fn compile(source: &str, program: &Path) -> Result<(), Failure> {
    let file = program.with_extension("c");
    fs::write(&file, source)?;
    let status = Command::new("cc").arg("-O2").arg("-o").arg(program).arg(&file).status();
    match status.map_err(|error| format!("cc: {error}; on Debian: apt-get install gcc"))? {
        status if status.success() => Ok(()),
        status => Err(format!("cc failed ({status})").into()),
    }
}

/// The child's side: one run of one experiment, whose results are left in `directory`.
fn run_one(number: &str, shared: &Path, directory: &Path) -> Result<(), Failure> {
    let number: usize = number.parse()?;
    let experiment = *experiments().get(number.wrapping_sub(1)).ok_or("no such experiment")?;
    // The version and the tick do not matter to a kernel that is there already.
    let hz = Hz::new(250).expect("250 is a choice");
    let (binary, version) = (shared.join("kernel"), String::new());
    let kernel = Kernel { binary, version, hz, about: About::default() };
    let root = Root::at(&shared.join("root"));
    let finished = experiment.guest(&kernel, &root)?.run_in(directory)?;
    let left = directory.join("left");
    fs::create_dir(&left)?;
    for (name, bytes) in LEFT.into_iter().zip(results(&finished)?) {
        fs::write(left.join(name), bytes)?;
    }
    Ok(())
}

/// Everything that must be the same, in the order of [`LEFT`].
fn results(finished: &Finished) -> Result<[Vec<u8>; 5], Failure> {
    if finished.lost_events > 0 {
        return Err(format!("the recording lost {} events", finished.lost_events).into());
    }
    let mut log = String::new();
    for served in &finished.log.served {
        writeln!(log, "{served} {}", served.ioprio)?;
    }
    let mut output = Vec::new();
    for job in &finished.jobs {
        if job.exit != 0 {
            let errors = String::from_utf8_lossy(&job.errors);
            return Err(format!("job {} failed with {}: {errors}", job.name, job.exit).into());
        }
        output.extend([job.output.as_slice(), job.errors.as_slice()].concat());
    }
    let end = finished.ended.as_nanos().to_string();
    let priorities = finished.priorities.clone().into_bytes();
    Ok([finished.trace.clone(), priorities, output, log.into_bytes(), end.into_bytes()])
}
