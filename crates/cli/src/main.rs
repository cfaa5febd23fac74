//! The binary `paternoster`: reads the command line, lets [`lab`] do the work and [`report`] say
//! what came of it.
//!
//! Exit status: 0 done, 1 the run failed, 2 bad usage or bad input; `linux run` has that of its
//! command. With `--check` 1 is the answer that something is worse, and 3 that a run failed, so
//! nobody knows. Results go to the standard output, everything else to the standard error. A
//! reader who stops reading is no failure.

mod arguments;
mod closed;
mod compare;
mod completion;
mod conform;
mod events;
mod explain;
mod linux_verb;
mod list;
mod load;
mod output;
mod progress;
mod terminal;

use arguments::{Arguments, Verb};
use clap::{CommandFactory, Parser};
use compare::Outcome;
use lab::Error;
use std::path::Path;
use std::process::ExitCode;

/// The run failed.
const FAILED: u8 = 1;
/// Bad usage or bad input.
const BAD_INPUT: u8 = 2;
/// What was to be checked is unknown, for a run failed.
const UNKNOWN: u8 = 3;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help that nobody reads to its end has been given all the same.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let failed = match &arguments.verb {
        Verb::Compare(options) if options.check.is_some() => UNKNOWN,
        _ => FAILED,
    };
    match run(arguments.verb) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            // What was typed may hold what a terminal obeys.
            eprintln!("paternoster: {}", report::style::printable(&error.to_string()));
            ExitCode::from(if error.is_bad_input() { BAD_INPUT } else { failed })
        }
    }
}

/// Does what was asked; the exit status.
fn run(verb: Verb) -> Result<u8, Error> {
    if closed::stdout_was_closed() {
        let cause = std::io::Error::other("it is closed, so results would be lost");
        return Err(Error::unwritable(Path::new("standard output"), cause));
    }
    let done = match verb {
        Verb::Linux { what } => return linux_verb::linux(*what),
        Verb::Compare(options) => {
            return compare::compare(*options).map(|outcome| match outcome {
                Outcome::Well => 0,
                Outcome::Failed => FAILED,
                Outcome::Unknown => UNKNOWN,
            });
        }
        Verb::Conform(options) => conform::conform(&options),
        Verb::Explain(options) => explain::explain(&options),
        Verb::List { subject, name } => list::list(subject.as_deref(), name.as_deref()),
        Verb::Completions { shell } => {
            completion::script(shell).and_then(|it| output::print(&it)).map(|()| true)
        }
        Verb::Man { verb } => man_page(verb.as_deref()),
        later => {
            Err(Error::not_yet(later.name(), "this verb", "compare, conform, explain, linux, list"))
        }
    };
    // Something may have been done and have failed in parts.
    done.map(|well| if well { 0 } else { FAILED })
}

/// Prints the man page of the program or of a verb.
fn man_page(verb: Option<&str>) -> Result<bool, Error> {
    let mut command = Arguments::command();
    command.build();
    if let Some(verb) = verb {
        let Some(found) = command.find_subcommand(verb) else {
            let known: Vec<&str> = command.get_subcommands().map(|it| it.get_name()).collect();
            let problem = format!("no verb \"{verb}\"{}", base::nearest(verb, known.clone()));
            return Err(Error::bad("man", problem, known.join(", ")));
        };
        command = found.clone().display_name(format!("paternoster-{verb}"));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).expect("writing to memory does not fail");
    output::print(&page).map(|()| true)
}
