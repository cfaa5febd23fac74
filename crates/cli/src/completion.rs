//! Completion scripts that offer values: what can be named is what the catalogue has.

use crate::arguments::Arguments;
use crate::list::SUBJECTS;
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use lab::catalogue::{self, Table};
use lab::{Error, scheduler_spec};

/// The script for a shell.
pub fn script(shell: Shell) -> Result<Vec<u8>, Error> {
    let mut script = Vec::new();
    let mut command = with_values()?;
    clap_complete::generate(shell, &mut command, "paternoster", &mut script);
    Ok(script)
}

/// The command line with the values that arguments may have. It does not parse: other values, such
/// as files, are as good.
fn with_values() -> Result<Command, Error> {
    let (models, hosts) = (names(&catalogue::models()?), names(&catalogue::hosts()?));
    let (guests, kernels) = (names(&catalogue::guests()?), names(&catalogue::kernels()));
    let experiments = names(&catalogue::experiments()?);
    let mut schedulers = names(&catalogue::schedulers());
    let words = |list: &[&str]| list.iter().map(|it| it.to_string()).collect::<Vec<_>>();
    let named = [&schedulers, &models, &hosts, &guests, &experiments].into_iter().flatten();
    let named: Vec<String> = named.cloned().collect();
    schedulers.push(scheduler_spec::ALL.to_string());
    let everywhere = [
        ("model", models),
        ("host", hosts),
        ("kernel", kernels),
        ("scheduler", schedulers),
        ("metric", names(&catalogue::metrics())),
        ("fs", words(&["raw", "ext4", "xfs"])),
        ("world", words(&["sim", "linux", "sim,linux"])),
        ("hz", words(&["100", "250", "300", "1000"])),
        ("replay", words(&["timed", "closed", "thinking"])),
        ("time_unit", words(&["s", "ms", "us", "ns"])),
        ("trace_format", trace::Format::ALL.map(|it| it.name().to_string()).to_vec()),
        ("input", experiments),
        ("subject", words(&SUBJECTS)),
        ("name", named),
    ];
    let mut all = Arguments::command();
    let verbs: Vec<String> = all.get_subcommands().map(|it| it.get_name().to_string()).collect();
    for verb in &verbs {
        all = all.mut_subcommand(verb, |it| offering(it, &everywhere));
    }
    Ok(all.mut_subcommand("man", |it| offering(it, &[("verb", verbs)])))
}

/// A verb whose arguments of these names offer values.
fn offering(mut verb: Command, values: &[(&str, Vec<String>)]) -> Command {
    for (name, values) in values {
        if verb.get_arguments().any(|it| it.get_id() == *name) {
            // clap keeps words for ever, and the program ends when the script is printed.
            let values = values.iter().map(|it| -> &'static str { it.clone().leak() });
            verb = verb.mut_arg(name, |it| it.value_parser(PossibleValuesParser::new(values)));
        }
    }
    verb
}

/// The first words of a table.
fn names(table: &Table) -> Vec<String> {
    table.rows.iter().map(|row| row[0].clone()).collect()
}
