//! `paternoster linux`: building the kernel of the world `linux`, running a command on it, and
//! looking around in it.

use crate::arguments::{LinuxMachine, LinuxVerb};
use crate::compare::quoted;
use crate::output::print;
use base::Hz;
use lab::linux_world::LinuxWorld;
use lab::plan::{Plan, Row};
use lab::{Error, Experiment, JobSpec, Work, World};
use linux::Cache;
use linux::build::{Progress, Recipe, Source, build};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// The ticks that a kernel can be built with.
const TICKS: [u16; 3] = [100, 250, 1000];
/// The series that is built when no tree is named.
const SERIES: &str = "6.12";
/// How much a build gives way to others. // assumed: it takes minutes, so somebody else works
const NICENESS: u8 = 10;
/// Programs that are put into the root folder if the host has them.
const PROGRAMS: [&str; 4] = ["dd", "fio", "ionice", "blkdiscard"];

/// Does what was asked; false if a command failed.
pub fn linux(verb: LinuxVerb) -> Result<bool, Error> {
    match verb {
        LinuxVerb::Build { source, hz } => build_kernel(source, hz).map(|()| true),
        LinuxVerb::Run { machine, command } => run(&machine, &command),
        LinuxVerb::Shell { machine } => {
            let row = row(&machine)?;
            let world = LinuxWorld::open(&available(None))?;
            world.guest_of(&row, None, machine.seed).shell().map_err(Error::linux)?;
            Ok(true)
        }
    }
}

fn build_kernel(source: Option<PathBuf>, hz: u16) -> Result<(), Error> {
    let refuse = || Error::bad("--hz", hz.to_string(), TICKS.map(|it| it.to_string()).join(", "));
    let tick = Hz::new(hz).filter(|_| TICKS.contains(&hz)).ok_or_else(refuse)?;
    let source = source.map_or(Source::Debian(SERIES.to_string()), Source::Tree);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let recipe = Recipe { source, hz: tick, jobs, niceness: NICENESS };
    let cache = Cache::of_user().map_err(Error::linux)?;
    let terminal = std::io::stderr().is_terminal();
    let mut progress = |progress: Progress| {
        // Steps follow each other too fast to be read, and are of no use in a file.
        match progress {
            Progress::Compiling { .. } if !terminal => {}
            _ if terminal => eprint!("\r\x1b[K{progress}"),
            _ => eprintln!("{progress}"),
        }
        // Nobody may be looking.
        let _ = std::io::stderr().flush();
    };
    let kernel = build(&cache, &recipe, &mut progress).map_err(Error::linux)?;
    if terminal {
        eprintln!();
    }
    let (version, path) = (&kernel.version, kernel.binary.display());
    print(format!("Linux {version}, HZ={hz}: {path}\n").as_bytes())
}

fn run(machine: &LinuxMachine, command: &[String]) -> Result<bool, Error> {
    let row = row(machine)?;
    let world = LinuxWorld::open(&available(command.first().map(String::as_str)))?;
    let line: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let guest = world.guest_of(&row, Some(&line.join(" ")), machine.seed);
    let finished = guest.run().map_err(Error::linux)?;
    for job in &finished.jobs {
        print(&job.output)?;
        // Nobody may be looking.
        let _ = std::io::stderr().write_all(&job.errors);
    }
    Ok(finished.jobs.iter().all(|job| job.exit == 0))
}

/// The usual programs as far as the host has them, and the one that is asked for.
fn available(asked: Option<&str>) -> Vec<&str> {
    let usual = PROGRAMS.into_iter().filter(|it| linux::rootfs::find_program(it).is_some());
    let asked = asked.filter(|it| linux::rootfs::find_program(it).is_some());
    usual.chain(asked).collect()
}

/// A row with this disk and scheduler.
fn row(machine: &LinuxMachine) -> Result<Row, Error> {
    // A plan has jobs; this one is not run.
    let command = Work::Command("dd if=/dev/sda of=/dev/null count=1".to_string());
    let job = JobSpec::new("dd", command, "linux");
    let mut experiment = Experiment::of_jobs("", vec![job]);
    experiment.model = machine.model.clone();
    experiment.worlds = vec![World::Linux];
    experiment.schedulers = vec![(machine.scheduler.clone(), "--scheduler".to_string())];
    let plan = Plan::new(experiment)?;
    Ok(plan.rows.into_iter().next().expect("one scheduler makes one row"))
}
