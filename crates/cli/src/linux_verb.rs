//! `paternoster linux`: building the kernel of the world `linux`, running a command on it, and
//! looking around in it.

use crate::arguments::{LinuxMachine, LinuxVerb, LinuxVersion};
use crate::compare::{line, size_of};
use crate::output::print;
use base::Hz;
use device::Model;
use lab::Error;
use lab::worlds::linux::recording::{Machine, ROOM, Recorded, Times};
use linux::build::{Progress, Recipe, Source, build};
use linux::configuration::TICKS;
use linux::{BuildError, Cache, Finished, Trace, Visit, VisitError};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// How much a build gives way to others (assumed: it takes minutes, so somebody else works).
const NICENESS: u8 = 10;
/// A build that nobody watches on a terminal says this often how far it is, in percent.
const PERCENT: u32 = 10;

/// Does what was asked; the exit status.
pub fn linux(verb: LinuxVerb) -> Result<u8, Error> {
    match verb {
        LinuxVerb::Build { version, source, jobs } => {
            let source = source.map_or(Source::Debian(version.kernel.clone()), Source::Tree);
            let all = || std::thread::available_parallelism().map_or(1, usize::from);
            let jobs = jobs.unwrap_or_else(all);
            build_kernel(Recipe { source, hz: tick(&version)?, jobs, niceness: NICENESS })
        }
        LinuxVerb::Run { machine, record, unperturbed, log, command } => {
            let times = if unperturbed { Times::Disk } else { Times::Guest };
            let trace = record.as_ref().map(|_| times.trace(ROOM, false));
            let visit = visit(&machine, trace.unwrap_or_default())?;
            let finished = visit.run(&line(&command)).map_err(failed)?;
            if let Some(directory) = record {
                keep_recording(&visit, times, &finished, &directory)?;
            }
            if let Some(file) = log {
                let lines = finished.log.served.iter().map(|served| format!("{served}\n"));
                write(&file, lines.collect::<String>().as_bytes())?;
            }
            let outcome = finished.jobs.first().expect("the command is a job");
            print(&outcome.output)?;
            // Nobody may be looking.
            let _ = std::io::stderr().write_all(&outcome.errors);
            Ok(outcome.exit)
        }
        LinuxVerb::Shell { machine } => {
            visit(&machine, Trace::Off)?.shell().map_err(failed)?;
            Ok(0)
        }
    }
}

fn build_kernel(recipe: Recipe) -> Result<u8, Error> {
    let cache = Cache::of_user().map_err(not_built)?;
    let terminal = std::io::stderr().is_terminal();
    let mut told = 0;
    let mut show = |progress: Progress| match progress {
        _ if terminal => {
            eprint!("\r\x1b[K{progress}");
            // Nobody may be looking.
            let _ = std::io::stderr().flush();
        }
        // Steps follow each other too fast to be read, and are of little use in a file.
        Progress::Compiling { done, expected, .. } => {
            let percent = 100 * done / expected;
            if percent >= told + PERCENT {
                told = percent / PERCENT * PERCENT;
                eprintln!("compiled about {told} %");
            }
        }
        _ => eprintln!("{progress}"),
    };
    let built = build(&cache, &recipe, &mut show);
    if terminal {
        eprintln!();
    }
    let kernel = built.map_err(not_built)?;
    let (version, hz, path) = (&kernel.version, kernel.hz.get(), kernel.binary.display());
    print(format!("Linux {version}, HZ={hz}: {path}\n").as_bytes())?;
    Ok(0)
}

/// The machine that was asked for.
fn visit(machine: &LinuxMachine, trace: Trace) -> Result<Visit, Error> {
    if !linux::fence::is_there() {
        // Nobody may be looking.
        let note = "note: the kernel here has no Landlock: the guest may open what you may";
        let _ = writeln!(std::io::stderr(), "{note}");
    }
    let hz = tick(&machine.version)?;
    let model = Model::find(&machine.model)?;
    let mut settings = Vec::new();
    let (scheduler, tunables) =
        machine.scheduler.split_once(':').unwrap_or((&machine.scheduler, ""));
    settings.push(("scheduler".to_string(), scheduler.to_string()));
    for (name, value) in assignments("--scheduler", tunables)? {
        settings.push((format!("iosched/{name}"), value));
    }
    for text in &machine.set {
        settings.extend(assignments("--set", text)?);
    }
    let size = |option, text: &Option<String>| text.as_deref().map(|it| size_of(option, it));
    let memory = size("--memory", &machine.memory).transpose()?;
    let data = size("--data", &machine.data).transpose()?;
    let cache = Cache::of_user().map_err(not_built)?;
    let kernel = cache.require(&machine.version.kernel, hz).map_err(not_built)?;
    Ok(Visit {
        kernel,
        model,
        queue_depth: machine.depth,
        settings,
        bring: machine.bring.clone(),
        trace,
        memory: memory.unwrap_or(linux::visit::MEMORY),
        data: data.unwrap_or(linux::visit::DATA),
        seed: machine.seed,
    })
}

fn tick(version: &LinuxVersion) -> Result<Hz, Error> {
    let refuse = || {
        let accepted = TICKS.map(|it| it.to_string()).join(", ");
        Error::bad("--hz", version.hz.to_string(), accepted)
    };
    Hz::new(version.hz).filter(|_| TICKS.contains(&version.hz)).ok_or_else(refuse)
}

/// `NAME=VALUE,…`
fn assignments(place: &str, text: &str) -> Result<Vec<(String, String)>, Error> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    let pairs = parts.map(|part| match part.split_once('=') {
        Some((name, value)) => Ok((name.to_string(), value.to_string())),
        None => Err(Error::bad(place, format!("\"{part}\""), "NAME=VALUE")),
    });
    pairs.collect()
}

/// Leaves the recording in a directory that `conform` and blkparse read.
fn keep_recording(
    visit: &Visit,
    times: Times,
    finished: &Finished,
    directory: &Path,
) -> Result<(), Error> {
    let (kernel, model, queue_depth) = (&visit.kernel, visit.model.name(), visit.queue_depth());
    let machine = Machine { kernel, model, queue_depth, times };
    Recorded::of(machine, finished)?.write(directory)
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    std::fs::write(file, bytes).map_err(|cause| Error::unwritable(file, cause))
}

/// There is no kernel; most often because something is missing on this machine.
fn not_built(error: BuildError) -> Error {
    match error {
        BuildError::Step { .. } | BuildError::Start { .. } => Error::linux(error),
        _ => Error::NoLinux(error.to_string()),
    }
}

fn failed(error: VisitError) -> Error {
    match error.is_bad_input() {
        true => Error::NoLinux(error.to_string()),
        false => Error::linux(error),
    }
}
