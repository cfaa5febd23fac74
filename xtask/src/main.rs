//! What keeps the project true, as `cargo xtask COMMAND`. Users need none of it.

mod conform_linux;
mod determinism;
mod examples;
mod fidelity;
mod fingerprints;
mod fixtures;
mod layers;
mod outcomes;
mod random;
mod recorded;
mod sequence;
mod tidy;
mod wbt;
mod whole;

use lab::{Experiment, World, world};
use std::error::Error;
use std::process::ExitCode;

/// Takes an option out, with what follows it.
fn value_of(arguments: &mut Vec<String>, option: &str) -> Option<String> {
    let place = arguments.iter().position(|it| it == option)?;
    arguments.remove(place);
    Some(if place < arguments.len() { arguments.remove(place) } else { String::new() })
}

/// Takes `--kernel NAME` out of the arguments: the kernel that judges.
fn judge(arguments: &mut Vec<String>) -> Result<block::Version, Box<dyn Error>> {
    let Some(name) = value_of(arguments, "--kernel") else { return Ok(world::KERNEL) };
    let found = world::JUDGES.into_iter().find(|it| it.to_string() == name);
    found.ok_or_else(|| format!("--kernel {name}: accepted: {}", world::judges()).into())
}

/// An experiment in both worlds, with the rules of a judge.
fn in_both(experiment: &mut Experiment, judge: block::Version) {
    experiment.worlds = vec![World::Sim, World::Linux];
    experiment.kernel = Some((judge.to_string(), "--kernel".to_string()));
}

/// What a command has come to.
type Outcome = Result<ExitCode, Box<dyn Error>>;

/// A command: its name, what it is for, and what does it.
type Row = (&'static str, &'static str, fn(Vec<String>) -> Outcome);

const COMMANDS: [Row; 14] = [
    ("fidelity", "the simulator against the kernel: the suite in fidelity/", fidelity::main),
    ("random", "the simulator against the kernel: experiments made up at random", random::main),
    ("whole", "random experiments of any kind in the simulator: each ends", whole::main),
    ("sequence", "the simulator against the kernel: one experiment, each command", sequence::main),
    ("layers", "the simulator against the kernel: where requests spend their time", layers::main),
    ("wbt", "the simulator against the kernel: what writeback throttling tells", wbt::main),
    ("outcomes", "the simulator against recordings of a real 4.19", outcomes::main),
    ("conform-linux", "schedulers against the kernel in virtual time", conform_linux::main),
    ("determinism", "the kernel in virtual time against itself, in trouble", determinism::main),
    ("examples", "fio's own examples on kernels in virtual time, twice", examples::main),
    ("fingerprints", "what the simulator does in experiments, a line a run", fingerprints::main),
    ("fixtures", "goldens, scripts and tables are written anew by their tests", fixtures::main),
    ("tidy", "what a reviewer should not have to look for", tidy::main),
    ("circles", "files of a crate that import one another", tidy::circles::main),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some((_, _, command)) = COMMANDS.iter().find(|(known, ..)| *known == name) else {
        eprintln!("usage: cargo xtask COMMAND …");
        COMMANDS.iter().for_each(|(name, what, _)| eprintln!("    {name:<14} {what}"));
        return ExitCode::from(2);
    };
    command(arguments.collect()).unwrap_or_else(|error| {
        eprintln!("{name}: {error}");
        ExitCode::from(2)
    })
}
