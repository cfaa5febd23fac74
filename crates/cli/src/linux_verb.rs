//! `paternoster linux`: building kernels of the world `linux`, listing and removing them, running a
//! command on one, and looking around in it.

use crate::arguments::{LinuxMachine, LinuxVerb};
use crate::load::{line, size_of};
use crate::output::{Destination, check_directory, print};
use base::Hz;
use device::Model;
use lab::Error;
use lab::catalogue::Table;
use lab::worlds::linux::recording::{Machine, ROOM, Recorded, Times};
use linux::build::{Progress, Recipe, Source, build};
use linux::configuration::TICKS;
use linux::{BuildError, Cache, Finished, Kernel, Trace, Visit, VisitError};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// How much a build gives way to others (assumed: it takes minutes, so somebody else works).
const NICENESS: u8 = 10;
/// A build that nobody watches on a terminal says this often how far it is, in percent.
const PERCENT: u32 = 10;

/// Does what was asked; the exit status.
pub fn linux(verb: LinuxVerb) -> Result<u8, Error> {
    match verb {
        LinuxVerb::Build { version, source, suite, label, configuration, jobs } => {
            let kernel = version.kernel.clone();
            let source = source.map_or(Source::Debian { kernel, suite }, Source::Tree);
            let all = || std::thread::available_parallelism().map_or(1, usize::from);
            let jobs = jobs.unwrap_or_else(all);
            let hz = tick(version.hz)?;
            build_kernel(Recipe { source, hz, label, configuration, jobs, niceness: NICENESS })
        }
        LinuxVerb::Kernels => kernels(),
        LinuxVerb::Remove { kernel, hz } => {
            let hz = hz.map(tick).transpose()?;
            let removed = Cache::of_user().and_then(|cache| cache.remove(&kernel, hz));
            let removed = removed.map_err(not_built)?;
            let (version, hz) = (&removed.version, removed.hz.get());
            print(format!("removed: Linux {version}, HZ={hz}\n").as_bytes()).map(|()| 0)
        }
        LinuxVerb::Run { machine, record, unperturbed, log, command } => {
            if let Some(directory) = &record {
                check_directory("--record", directory)?;
            }
            let log = Destination::asked("--log", log.map(Some).as_ref())?;
            let times = if unperturbed { Times::Disk } else { Times::Guest };
            let trace = record.as_ref().map(|_| times.trace(ROOM, false));
            let visit = visit(&machine, trace.unwrap_or_default())?;
            let finished = visit.run(&line(&command)).map_err(failed)?;
            if let Some(directory) = record {
                keep_recording(&visit, times, &finished, &directory)?;
            }
            if let Some(destination) = log {
                let lines = finished.log.served.iter().map(|served| format!("{served}\n"));
                destination.write(&lines.collect::<String>())?;
            }
            let outcome = finished.jobs.first().expect("the command is a job");
            print(&outcome.output)?;
            let mut errors = outcome.errors.clone();
            if finished.lazy.was_seen() {
                errors.extend(format!("note: {}\n", finished.lazy).bytes());
            }
            // Nobody may be looking.
            let _ = std::io::stderr().write_all(&errors);
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
        // It stays where the next step would overwrite it.
        Progress::LeftOut(_) if terminal => eprintln!("\r\x1b[Knote: {progress}"),
        Progress::LeftOut(_) => eprintln!("note: {progress}"),
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
    let mut kernel = built.map_err(not_built)?;
    let schedulers = schedulers(&mut kernel).or_else(|cause| match cause {
        // It has been built, and is of no use.
        Error::Linux(cause) => {
            cache.withdraw(&kernel).map_err(not_built)?;
            Err(Error::NoLinux(format!(
                "Linux {} is built and does not run: {cause}",
                kernel.version
            )))
        }
        other => Err(other),
    })?;
    let (version, hz, path) = (&kernel.version, kernel.hz.get(), kernel.binary.display());
    print(format!("Linux {version}, HZ={hz}: {path}\nschedulers: {schedulers}\n").as_bytes())?;
    Ok(0)
}

/// The names of what a kernel offers.
fn schedulers(kernel: &mut Kernel) -> Result<String, Error> {
    lab::kernels::ask(kernel)?;
    let names: Vec<&str> = kernel.about.schedulers.iter().map(|it| it.name.as_str()).collect();
    Ok(names.join(" "))
}

/// Lists the kernels that are built.
fn kernels() -> Result<u8, Error> {
    let cache = Cache::of_user().map_err(not_built)?;
    let headings = vec!["kernel", "label", "HZ", "size", "schedulers", "last used", "made from"];
    let mut rows = Vec::new();
    for mut kernel in cache.kernels().map_err(not_built)? {
        // One that does not start is listed all the same.
        let schedulers = schedulers(&mut kernel).unwrap_or_default();
        let about = &kernel.about;
        let tree = about.tree.as_ref().map(|tree| tree.display().to_string());
        let mut made_from = tree.unwrap_or_else(|| "Debian's source".to_string());
        if !about.configuration.is_empty() {
            made_from += &format!(", {}", about.configuration.join(", "));
        }
        rows.push(vec![
            kernel.version.clone(),
            about.label.clone().unwrap_or_default(),
            kernel.hz.get().to_string(),
            format!("{:.1} MB", kernel.size().0 as f64 / 1e6),
            schedulers,
            kernel.unused_for().map_or_else(String::new, |it| ago(it.as_secs())),
            made_from,
        ]);
    }
    let table = report::text::table(&Table { headings, rows }, &crate::terminal::style());
    print(table.as_bytes()).map(|()| 0)
}

/// How long ago something was, in the largest unit of which it is more than one.
fn ago(seconds: u64) -> String {
    let units = [(86_400, "days"), (3_600, "hours"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    unit.map_or("just now".to_string(), |(unit, name)| format!("{} {name} ago", seconds / unit))
}

/// The machine that was asked for.
fn visit(machine: &LinuxMachine, trace: Trace) -> Result<Visit, Error> {
    if !linux::fence::is_there() {
        // Nobody may be looking.
        let note = "note: the kernel here has no Landlock: the guest may open what you may";
        let _ = writeln!(std::io::stderr(), "{note}");
    }
    let hz = tick(machine.version.hz)?;
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

fn tick(hz: u16) -> Result<Hz, Error> {
    let refuse = || {
        let accepted = TICKS.map(|it| it.to_string()).join(", ");
        Error::bad("--hz", hz.to_string(), accepted)
    };
    Hz::new(hz).filter(|_| TICKS.contains(&hz)).ok_or_else(refuse)
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

/// There is no kernel: something is missing on this machine, or the source cannot be built.
fn not_built(error: BuildError) -> Error {
    Error::NoLinux(error.to_string())
}

fn failed(error: VisitError) -> Error {
    match error.is_bad_input() {
        true => Error::NoLinux(error.to_string()),
        false => Error::linux(error),
    }
}
