//! The programs a simulated machine can run.
//!
//! A program is chosen by the command a person types ([`parse`]); each is a file or directory here,
//! named as the command. A new one is that and a row of the table in `table.rs`; the machine and
//! the laboratory know none of them but those whose results they read.

#![forbid(unsafe_code)]

mod command;
pub mod cp;
pub mod dbench;
pub mod dd;
pub mod dump;
pub mod fio;
pub mod lg;
pub mod pgioperf;
pub mod replay;
mod shell;
mod size;
mod sleep;
pub mod startup;
mod surroundings;
mod sync;
pub mod sysbench;
mod table;
pub mod tools;

pub use command::{
    Behind, Command, CommandError, behind_prefixes, parse, parse_in, program_name, split_sequence,
    without_shell,
};
pub use shell::{Line, Script, Sequence, Step};
pub use sleep::Sleep;
pub use surroundings::Surroundings;
pub use sync::Sync;
pub use table::{Entry, LIST};

use guest::OwnFiles;
use std::any::Any;

/// A program that a command names: what the machine runs, and what a plan asks of it.
pub trait Program: machine::Program + Any {
    /// The files and disks that it names.
    fn files(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The names of files as they were typed, to be put where programs begin.
    fn typed_files(&mut self) -> Vec<&mut String> {
        Vec::new()
    }

    /// Whether it copies files that may then share their blocks.
    fn copies_files(&self) -> bool {
        false
    }

    /// Files of the system that it looks for beside those of every program.
    fn own_files(&self, _known: &OwnFiles) -> u32 {
        0
    }
}

impl dyn Program {
    /// This program, if it is that one.
    pub fn downcast<P: Program>(&self) -> Option<&P> {
        (self as &dyn Any).downcast_ref()
    }

    /// Whether it is that one.
    pub fn is<P: Program>(&self) -> bool {
        self.downcast::<P>().is_some()
    }

    /// The programs that run, one after the other: those of a sequence, or itself.
    pub fn parts(&self) -> Vec<&dyn Program> {
        match self.downcast::<Sequence>() {
            Some(Sequence { steps, .. }) => {
                steps.iter().flat_map(|it| it.program.parts()).collect()
            }
            None => vec![self],
        }
    }
}

impl Program for machine::Native {}
