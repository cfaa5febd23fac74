//! fio, the flexible I/O tester: job files and command lines, parsed by fio's own rules.
//!
//! [`parse_job_file`] and [`parse_command_line`] turn what a user would give to fio 3.33 into
//! [`Job`]s. An option that matters and is not modelled is refused by name with file and line; one
//! that cannot matter is listed in [`Job::ignored`]; what fio would do silently, or what differs
//! on a simulated raw device, is in [`Job::notes`]. The rules come from fio's manual and from
//! asking the program (`--parse-only`, `--showcmd`, `--cmdhelp`).
//!
//! | file | idea |
//! |---|---|
//! | `source` | lines, comments, includes, variables, keywords |
//! | `value`, `expression` | numbers, times, lists, arithmetic |
//! | `options` | the table of all options and what becomes of each |
//! | `settings` | typed values of one job, later ones over earlier ones |
//! | `mix`, `engine` | block size mixes and distributions; ioengines |
//! | `job`, `build` | the resolved job; defaults and rules between options |
//! | `parse`, `command_line` | sections to processes; a command line to the same |
//! | `layout` | where files lie on the device, which range a job uses |
//! | `random`, `pattern` | shaped random numbers; where the next request goes |
//! | `steady` | whether a rate is steady, and what was seen of it |
//! | `account` | what a process counts, and what its logs are made of |
//! | `run` | the main task, and a task for each process |
//! | `fuzz` | random inputs for the parser |

pub mod account;
mod build;
mod command_line;
mod engine;
mod error;
mod expression;
pub mod fuzz;
mod job;
pub mod layout;
mod mix;
pub mod options;
mod parse;
pub mod pattern;
pub mod random;
mod run;
mod settings;
pub mod source;
pub mod steady;
pub mod value;

pub use command_line::{CommandLine, parse_command_line};
pub use engine::Engine;
pub use error::{ParseError, Place};
pub use job::*;
pub use mix::{BlockSizes, Distribution, PrioritySplit, Skew};
pub use parse::parse_job_file;
pub use run::Fio;

#[cfg(test)]
mod tests;
