//! The programs a simulated machine can run.
//!
//! A program is chosen by the command a person types ([`parse`]); each is a file or directory here,
//! named as the command. A new one is its file, a line in [`LIST`] and an arm in [`parse`].

mod command;
pub mod cp;
pub mod dd;
pub mod dump;
pub mod fio;
pub mod lg;
pub mod replay;
mod shell;
pub mod sysbench;
pub mod tools;

pub use command::{Command, CommandError, parse, parse_in, split_sequence};
pub(crate) use shell::Shell;

use crate::task::{Running, Task};
use base::Duration;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The programs that commands can name, each with what it does in a few words.
pub const LIST: [(&str, &str); 17] = [
    ("cp", "copies a file of the file system"),
    ("dd", "copies blocks from or to the disk"),
    ("dump", "reads a described file system with several processes"),
    ("fallocate", "sets room aside for a file"),
    ("fio", "the flexible I/O tester: job files and command lines"),
    ("lg", "the load generator of the recordings of a real 4.19"),
    ("ls", "reads directories"),
    ("mkdir", "makes directories"),
    ("mv", "renames files and directories"),
    ("rm", "removes files, and directories with -r"),
    ("rmdir", "removes empty directories"),
    ("sleep", "does nothing for so many seconds"),
    ("stat", "looks at files"),
    ("sync", "writes everything that is dirty to the disk"),
    ("sysbench", "fileio: threads that read and write a set of files"),
    ("touch", "makes empty files, or files younger"),
    ("truncate", "makes files shorter or longer"),
];

/// A program, ready to run.
#[derive(Clone, Debug)]
pub enum Program {
    /// Copies blocks.
    Dd(dd::Dd),
    /// Backs up a file system.
    Dump(dump::Dump),
    /// Runs fio's jobs.
    Fio(fio::Fio),
    /// Runs the processes of lg.
    Lg(lg::Lg),
    /// Writes everything that is dirty.
    Sync,
    /// Copies a file.
    Cp(cp::Cp),
    /// Does nothing for a time.
    Sleep(Duration),
    /// Several programs, one after the other.
    Sequence(Vec<Step>),
    /// Submits what a trace recorded.
    Replay(replay::Replay),
    /// Runs the threads of sysbench fileio.
    Sysbench(sysbench::Sysbench),
    /// Makes, renames or removes names, or looks at them.
    Tool(tools::Tool),
    /// Whatever its author wrote in Rust.
    Native(Native),
}

/// A program of a sequence.
#[derive(Clone, Debug)]
pub struct Step {
    /// It runs only if the one before has succeeded (`&&` rather than `;`).
    pub needs_success: bool,
    /// What runs.
    pub program: Program,
}

/// What a native program starts with: its task.
type Start = dyn Fn(Task) -> Pin<Box<dyn Future<Output = i32>>> + Send + Sync;

/// A program written in Rust against [`Task`].
#[derive(Clone)]
pub struct Native {
    name: String,
    start: Arc<Start>,
}

impl Program {
    /// Whether it copies files that may then share their blocks.
    pub fn copies_files(&self) -> bool {
        match self {
            Program::Cp(cp) => cp.may_share,
            Program::Sequence(steps) => steps.iter().any(|step| step.program.copies_files()),
            _ => false,
        }
    }

    /// A program that is an `async` function.
    pub fn native<F>(name: &str, start: impl Fn(Task) -> F + Send + Sync + 'static) -> Program
    where
        F: Future<Output = i32> + 'static,
    {
        let start: Arc<Start> = Arc::new(move |task| Box::pin(start(task)));
        Program::Native(Native { name: name.to_string(), start })
    }

    /// The programs that run, one after the other: those of a sequence, or itself.
    pub fn parts(&self) -> Vec<&Program> {
        match self {
            Program::Sequence(steps) => {
                steps.iter().flat_map(|step| step.program.parts()).collect()
            }
            program => vec![program],
        }
    }

    /// The files that it names.
    pub fn files(&self) -> Vec<&str> {
        match self {
            Program::Dd(dd) => dd.files().to_vec(),
            Program::Cp(cp) => cp.files(),
            Program::Tool(tool) => tool.files(),
            Program::Sequence(steps) => {
                steps.iter().flat_map(|step| step.program.files()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Begins to run in a task.
    pub(crate) fn run(self, task: Task) -> Running {
        match self {
            Program::Dd(dd) => Box::pin(dd.run(task)),
            Program::Dump(dump) => Box::pin(dump.run(task)),
            Program::Fio(fio) => Box::pin(fio.run(task)),
            Program::Lg(lg) => Box::pin(lg.run(task)),
            Program::Sync => Box::pin(async move {
                task.sync().await;
                0
            }),
            Program::Cp(cp) => Box::pin(cp.run(task)),
            Program::Sleep(time) => Box::pin(async move {
                task.sleep_with_slack(time).await;
                0
            }),
            Program::Sequence(_) => {
                Box::pin(async move { Shell::default().run(self, &task).await })
            }
            Program::Replay(replay) => Box::pin(replay.run(task)),
            Program::Sysbench(sysbench) => Box::pin(sysbench.run(task)),
            Program::Tool(tool) => Box::pin(tool.run(task)),
            Program::Native(native) => (native.start)(task),
        }
    }
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Native").field("name", &self.name).finish_non_exhaustive()
    }
}
