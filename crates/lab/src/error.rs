//! Everything that can be wrong with what a person asked for, and what can go wrong afterwards.

use std::path::{Path, PathBuf};

/// Why an experiment was not run, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that was written down is not as it must be.
    #[error("{place}: {problem}; accepted: {accepted}")]
    Bad {
        /// File and line, or the option it was given with.
        place: String,
        /// What is wrong.
        problem: String,
        /// What would be accepted.
        accepted: String,
    },
    /// It is planned, and not there yet.
    #[error("{place}: {what} is not available yet; accepted: {accepted}")]
    NotYet {
        /// File and line, or the option it was given with.
        place: String,
        /// What was asked for.
        what: String,
        /// What there is instead.
        accepted: String,
    },
    /// A model or a host cannot be used.
    #[error(transparent)]
    Parameters(#[from] params::Error),
    /// A trace cannot be used.
    #[error(transparent)]
    Trace(#[from] trace::Error),
    /// A command cannot be run.
    #[error("{place}: {cause}")]
    Command {
        /// File and line, or the option it was given with.
        place: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A job file cannot be run; the message names its place.
    #[error("{0}")]
    JobFile(String),
    /// A run did not take place.
    #[error("{run}: {cause}")]
    Setup {
        /// Which run.
        run: String,
        /// Why.
        cause: machine::SetupError,
    },
    /// The simulator broke off, which is a mistake of its own. What it complained of stands before.
    #[error(
        "{run}: the simulator broke off, as the message above says; please report it, with the \
             experiment"
    )]
    Broken {
        /// Which scheduler and seed.
        run: String,
    },
    /// A file could not be read.
    #[error("{}: cannot be read: {cause}; accepted: a readable file", .path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// Results could not be written.
    #[error("{}: cannot be written: {cause}", .path.display())]
    Unwritable {
        /// The path.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// A run in the world `linux` failed.
    #[error("world linux: {0}")]
    Linux(String),
    /// A kernel recorded more events than there was room for.
    #[error("world linux: the recording has no room for {lost} events; a shorter load leaves room")]
    NoRoom {
        /// Events that were lost.
        lost: u64,
    },
    /// The world `linux` is not there, or lacks something; the message says how to get it.
    #[error("world linux: {0}")]
    NoLinux(String),
    /// A recording could not be written.
    #[error("{0}")]
    Recording(trace::Error),
}

impl Error {
    /// Something at `place` is not as it must be.
    pub fn bad(
        place: impl Into<String>,
        problem: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Error {
        Error::Bad { place: place.into(), problem: problem.into(), accepted: accepted.into() }
    }

    /// `what` is planned and not there yet.
    pub fn not_yet(
        place: impl Into<String>,
        what: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Error {
        Error::NotYet { place: place.into(), what: what.into(), accepted: accepted.into() }
    }

    /// A model or a host that was asked for at `place` cannot be used. What is wrong within its
    /// file is told with the line there.
    pub fn parameters(place: &str, cause: params::Error) -> Error {
        match cause {
            params::Error::Unknown { what, name, hint, all } => {
                let problem = format!("unknown {what} \"{name}\"{hint}");
                Error::bad(place, problem, format!("a TOML file, or {all}"))
            }
            params::Error::Unreadable { file, cause } => {
                let problem = format!("{file}: cannot be read: {cause}");
                Error::bad(place, problem, "a readable file, or a built-in name")
            }
            within @ params::Error::Bad { .. } => Error::Parameters(within),
        }
    }

    /// A file could not be read.
    pub fn unreadable(path: &Path, cause: std::io::Error) -> Error {
        Error::Unreadable { path: path.to_path_buf(), cause }
    }

    /// A file could not be written.
    pub fn unwritable(path: &Path, cause: std::io::Error) -> Error {
        Error::Unwritable { path: path.to_path_buf(), cause }
    }

    /// A run in the world `linux` failed.
    pub fn linux(cause: impl std::fmt::Display) -> Error {
        Error::Linux(cause.to_string())
    }

    /// The world `linux` is not here; there is another.
    pub fn no_linux(cause: impl std::fmt::Display) -> Error {
        Error::NoLinux(format!("{cause}, or --world sim"))
    }

    /// Whether the cause lies in what was asked for, rather than in what happened afterwards.
    pub fn is_bad_input(&self) -> bool {
        use Error::{Broken, Linux, NoRoom, Recording, Unwritable};
        let is_later = matches!(self, Unwritable { .. } | Recording(_) | Linux(_) | NoRoom { .. });
        !is_later && !matches!(self, Broken { .. })
    }
}
