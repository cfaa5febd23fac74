//! Shows where the simulator parts from the kernel, command by command.
//!
//! `sequence [--kernel NAME] EXPERIMENT.toml [LINES]`: every row in both worlds with
//! the first seed, and so many commands around the first that comes at another time and the first
//! that is another one; then so many bios around the first that is another one.

use crate::Outcome;
use lab::fidelity::ties::ties;
use lab::metrics::bios::Asked;
use lab::metrics::commands::{Agreement, Step};
use lab::plan::Plan;
use lab::{Experiment, World, matrix};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn main(mut arguments: Vec<String>) -> Outcome {
    let judge = crate::judge(&mut arguments)?;
    let mut arguments = arguments.into_iter();
    let file = arguments.next().ok_or("usage: sequence EXPERIMENT.toml [LINES]")?;
    let lines: usize = arguments.next().map_or(Ok(8), |it| it.parse())?;
    let mut experiment = Experiment::load(Path::new(&file))?;
    crate::in_both(&mut experiment, judge);
    experiment.seeds.truncate(1);
    experiment.watches_bios = true;
    let report = matrix::run(Plan::new(experiment)?, None, 2, &|_| ())?;
    let mut told = String::new();
    for (index, row) in report.plan.rows.iter().enumerate() {
        let is_twin = |it: &lab::plan::Row| {
            it.world == World::Linux && it.spec == row.spec && it.axes == row.axes
        };
        let twin = report.plan.rows.iter().position(is_twin);
        let Some(twin) = twin.filter(|_| row.world == World::Sim) else { continue };
        let (sim, linux) = (&report.results_of(index)[0], &report.results_of(twin)[0]);
        let axes: Vec<String> = row.axes.iter().map(|(name, it)| format!("{name}={it}")).collect();
        let agreement = Agreement::of(&sim.commands, &linux.commands);
        let ties = ties(&sim.commands, &linux.commands);
        told += &format!("{} {}: {agreement:?}, {ties} ties\n", row.spec.label(), axes.join(" "));
        let (later, other) = (agreement.first_later, agreement.first_other);
        let mut shown = 0;
        for at in later.into_iter().chain(other) {
            let (from, to) = (at.saturating_sub(lines / 2).max(shown), at + lines);
            for n in from..to.min(sim.commands.len().max(linux.commands.len())) {
                let of = |steps: &[Step]| steps.get(n).map_or("–".to_string(), text);
                told += &format!("{n:>7} {:<52} {}\n", of(&sim.commands), of(&linux.commands));
                shown = n + 1;
            }
        }
        told += &bios(&sim.bios, &linux.bios, lines);
    }
    match std::io::stdout().write_all(told.as_bytes()) {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => Err(cause.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Bios of both worlds around the first that is another one.
fn bios(sim: &[Asked], linux: &[Asked], lines: usize) -> String {
    let same = sim.iter().zip(linux).take_while(|(here, there)| here == there).count();
    let all = sim.len().max(linux.len());
    if same == all {
        return String::new();
    }
    let of = |bios: &[Asked], n: usize| bios.get(n).map_or("–".to_string(), asked);
    (same.saturating_sub(lines / 2)..all.min(same + lines))
        .map(|n| format!("{n:>7} bio {:<48} {}\n", of(sim, n), of(linux, n)))
        .collect()
}

fn asked(bio: &Asked) -> String {
    format!("{:<5} {:>11}+{:<5} {:?}", bio.flags, bio.sector, bio.sectors, bio.task)
}

fn text(step: &Step) -> String {
    let took = step.took.map_or("–".to_string(), |it| it.as_nanos().to_string());
    let (at, op) = (step.at.as_nanos(), format!("{:?}", step.op));
    format!("{at:>12} {op:<5} {:>11}+{:<5} {took:>10}", step.sector.0, step.sectors.0)
}
