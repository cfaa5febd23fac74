//! What can go wrong: while a kernel is built, and while one runs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use thiserror::Error;

/// Why there is no kernel.
#[derive(Debug, Error)]
pub enum BuildError {
    /// User-Mode Linux with 64 bits is x86-64 only in the versions we know.
    #[error("a kernel in virtual time needs an x86_64 host; this one is {found}")]
    Architecture {
        /// The architecture of this host.
        found: &'static str,
    },
    /// There is nowhere to keep a kernel.
    #[error("no folder for the kernel: set PATERNOSTER_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,
    /// Debian's source is not installed.
    #[error(
        "{} is not there: install it (apt-get install linux-source-{series}) or name a source tree",
        tarball.display()
    )]
    NoSource {
        /// The series that was asked for.
        series: String,
        /// Where the package would have put it.
        tarball: PathBuf,
    },
    /// The folder is not a kernel's source.
    #[error("{} is not the source tree of a kernel: {cause}", tree.display())]
    NoTree {
        /// The folder.
        tree: PathBuf,
        /// What was wrong.
        cause: io::Error,
    },
    /// The file does not look like a kernel's.
    #[error("{}: not the makefile or Kconfig of a kernel that is known", file.display())]
    NoVersion {
        /// The file.
        file: PathBuf,
    },
    /// Tools are missing.
    #[error("building a kernel needs {tools}; on Debian: apt-get install {packages}")]
    MissingTools {
        /// The tools that are missing.
        tools: String,
        /// The packages that have them.
        packages: String,
    },
    /// The kernel does not take our configuration.
    #[error("this source cannot be configured as needed; missing: {missing}")]
    Configuration {
        /// The lines that did not get into the configuration.
        missing: String,
    },
    /// A step failed.
    #[error("{step} failed ({status}):\n{tail}\nthe command was: {command}")]
    Step {
        /// What was being done.
        step: &'static str,
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of what it said.
        tail: String,
    },
    /// A program could not be started.
    #[error("{program} cannot be started: {cause}")]
    Start {
        /// The program.
        program: String,
        /// What the operating system said.
        cause: io::Error,
    },
    /// Something is wrong with a file.
    #[error("{doing} {}: {cause}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
}

impl BuildError {
    pub(crate) fn file(doing: &'static str, path: &Path, cause: io::Error) -> Self {
        BuildError::File { doing, path: path.to_path_buf(), cause }
    }

    pub(crate) fn start(program: &str, cause: io::Error) -> Self {
        BuildError::Start { program: program.to_string(), cause }
    }

    pub(crate) fn step(
        step: &'static str,
        command: &Command,
        status: ExitStatus,
        text: &str,
    ) -> Self {
        BuildError::Step { step, command: format!("{command:?}"), status, tail: tail(text, 15) }
    }
}

/// The last `lines` lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
