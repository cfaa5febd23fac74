//! Judges our schedulers by the kernel in virtual time, over a seeded family of loads:
//! `cargo xtask conform-linux [OPTIONS] [SCHEDULER…]`,
//! where OPTIONS are `--kernel NAME` (a judge), `--seed N`, `--members N`, `--only NUMBER`,
//! `--requests N` (of a member),
//! `--record DIRECTORY` (keeps what was recorded) and `--json`; schedulers are `mq-deadline`,
//! `kyber`, `bfq` and `none`, all if none is named.

use crate::Outcome;
use conform::family::Member;
use conform::{Conformity, Options, conform_recording};
use lab::worlds::linux::LinuxWorld;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

const SCHEDULERS: [&str; 4] = ["mq-deadline", "kyber", "bfq", "none"];
const USAGE: &str = "[--kernel NAME] [--seed N] [--members N] [--only NUMBER] [--requests N] \
                     [--record DIRECTORY] \
                     [--json] [mq-deadline|kyber|bfq|none …]";

struct Asked {
    schedulers: Vec<&'static str>,
    seed: u64,
    members: u64,
    only: Option<u64>,
    requests: u64,
    record: Option<PathBuf>,
    json: bool,
}

/// Runs the command.
pub fn main(mut arguments: Vec<String>) -> Outcome {
    let kernel = crate::judge(&mut arguments)?;
    let asked = asked(arguments.into_iter())?;
    let world = LinuxWorld::open(kernel, &[])?;
    let load = world.add_load()?;
    let mut results = Vec::new();
    for scheduler in &asked.schedulers {
        let mut members = Member::family(scheduler, asked.seed, asked.requests, asked.members);
        if let Some(only) = asked.only {
            members = members.into_iter().skip(usize::try_from(only)?).take(1).collect();
        }
        for member in members {
            results.push(judge(&world, load, &member, asked.record.as_deref())?);
        }
    }
    if asked.json {
        print!("{}", report::json::to_text(&report::conform::document(&results)));
    } else {
        print!("{}", report::conform::text(&results, &report::Style::UNBROKEN));
    }
    Ok(ExitCode::SUCCESS)
}

fn judge(
    world: &LinuxWorld,
    load: &str,
    member: &Member,
    record: Option<&std::path::Path>,
) -> Result<Conformity, Box<dyn Error>> {
    let started = std::time::Instant::now();
    let (recorded, member) = member.record(world, load)?;
    if let Some(directory) = record {
        recorded.write(&directory.join(&member.name))?;
    }
    let recorded_in = started.elapsed();
    let result = conform_recording(&recorded.recording(&member.name)?, &Options::default())?;
    eprintln!(
        "{}: {}/{} ({} of {}) in {recorded_in:.1?} + {:.1?}",
        member.name,
        result.agreed,
        result.contested,
        result.dispatches,
        member.requests,
        started.elapsed() - recorded_in,
    );
    eprintln!("    {member:?}");
    Ok(result)
}

fn asked(words: impl Iterator<Item = String>) -> Result<Asked, Box<dyn Error>> {
    let mut asked = Asked {
        schedulers: Vec::new(),
        seed: 1,
        members: 60,
        only: None,
        requests: 12_000,
        record: None,
        json: false,
    };
    let mut words = words;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value; usage: {USAGE}"));
        match word.as_str() {
            "--seed" => asked.seed = value()?.parse()?,
            "--members" => asked.members = value()?.parse()?,
            "--only" => asked.only = Some(value()?.parse()?),
            "--requests" => asked.requests = value()?.parse()?,
            "--record" => asked.record = Some(value()?.into()),
            "--json" => asked.json = true,
            name => {
                let known = SCHEDULERS.into_iter().find(|it| *it == name);
                asked.schedulers.push(known.ok_or(format!("{name}? usage: {USAGE}"))?);
            }
        }
    }
    if asked.schedulers.is_empty() {
        asked.schedulers = SCHEDULERS.to_vec();
    }
    Ok(asked)
}
