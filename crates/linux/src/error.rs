//! What can go wrong: while a kernel is built, and while one runs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use base::{Bytes, Duration, Hz, Instant};
use thiserror::Error;

/// Why there is no kernel.
#[derive(Debug, Error)]
pub enum BuildError {
    /// User-Mode Linux with 64 bits is x86-64 only in the versions we know.
    #[error("a kernel in virtual time and this host of {found}; accepted: a host of x86_64")]
    Architecture {
        /// The architecture of this host.
        found: &'static str,
    },
    /// There is nowhere to keep a kernel.
    #[error("no directory for the kernel: set PATERNOSTER_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,
    /// The directory for kernels cannot be used.
    #[error(
        "{}, where kernels are kept, cannot be used: {cause}; accepted: a directory that can be \
         written to, named by PATERNOSTER_CACHE", directory.display()
    )]
    NoDirectory {
        /// The directory.
        directory: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The directory for kernels is on a disk that is too full.
    #[error(
        "{} has room for {} MB and a build needs {} MB for a while: make room, or set \
         PATERNOSTER_CACHE to a directory that has it",
        directory.display(), free.0 / 1_000_000, needed.0 / 1_000_000
    )]
    NoRoom {
        /// The directory.
        directory: PathBuf,
        /// What is free.
        free: Bytes,
        /// What is needed.
        needed: Bytes,
    },
    /// The kernel that is wanted has not been built.
    #[error(
        "there is no kernel {name} with HZ={} in {}{there}; accepted: one that \
         `paternoster linux build{options}` has built, once, in some minutes",
        hz.get(), directory.display()
    )]
    NoKernel {
        /// The series, version or label that was asked for.
        name: String,
        /// The tick that was asked for.
        hz: Hz,
        /// Where kernels are kept.
        directory: PathBuf,
        /// What there is, as the end of the sentence.
        there: String,
        /// How to ask for it.
        options: String,
    },
    /// There is no such kernel to be removed.
    #[error(
        "there is no kernel {name}; accepted: {}",
        if kernels.is_empty() { "none: nothing has been built" } else { kernels }
    )]
    Unknown {
        /// The name that was given.
        name: String,
        /// What there is.
        kernels: String,
    },
    /// A name means several kernels.
    #[error(
        "kernel {name} may be any of these: {kernels}; accepted: a label or more of the version"
    )]
    Ambiguous {
        /// The name that was given.
        name: String,
        /// What it may mean.
        kernels: String,
    },
    /// A label that is no name.
    #[error(
        "--as {label}: accepted: a word that begins with a letter and has letters, digits, '-', \
         '_' and '.'"
    )]
    BadLabel {
        /// The label.
        label: String,
    },
    /// A label that something else has.
    #[error(
        "--as {label}: kernel {version} is called so, and was made from something else; accepted: \
         another label, or `paternoster linux remove {label}` before"
    )]
    LabelTaken {
        /// The label.
        label: String,
        /// The version of the kernel that has it.
        version: String,
    },
    /// Something that is no symbol with a value.
    #[error("--config {text}: accepted: SYMBOL=VALUE as in a kernel's .config, such as BTRFS_FS=y")]
    NoSymbol {
        /// What was given.
        text: String,
    },
    /// A symbol that did not get its value.
    #[error(
        "--config {setting}: this tree's configuration does not take it; accepted: a symbol that \
         the tree knows, with a value that what it depends on allows"
    )]
    Refused {
        /// The symbol and its value.
        setting: String,
    },
    /// Debian's archive does not have the source.
    #[error(
        "linux-source-{wanted} is neither installed nor in {suite}{others}; accepted: a series \
         that is there, another suite (--suite trixie-backports), or a source tree (--source TREE)"
    )]
    NoSource {
        /// The series or version that was asked for.
        wanted: String,
        /// Where it was looked for.
        suite: String,
        /// What there is, as the end of the clause.
        others: String,
    },
    /// The directory is not a kernel's source.
    #[error(
        "{} is not the source tree of a kernel: {cause}; accepted: the top directory of one, with a \
         block layer and User-Mode Linux (arch/um)", tree.display()
    )]
    NoTree {
        /// The directory.
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

    /// Whether something could not be written for want of room.
    pub(crate) fn is_full_disk(&self) -> bool {
        match self {
            BuildError::Step { tail, .. } => tail.contains("No space left on device"),
            BuildError::File { cause, .. } => cause.kind() == io::ErrorKind::StorageFull,
            _ => false,
        }
    }

    pub(crate) fn step(
        step: &'static str,
        command: &Command,
        status: ExitStatus,
        text: &str,
    ) -> Self {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let command: Vec<String> = words.map(|it| it.to_string_lossy().into_owned()).collect();
        BuildError::Step { step, command: command.join(" "), status, tail: tail(text, 15) }
    }
}

/// The last `lines` lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Why a root directory could not be made.
#[derive(Debug, Error)]
pub enum RootError {
    /// A program is not on this host.
    #[error("{program} is not in PATH or the sbin directories of this host{hint}")]
    NoProgram {
        /// What was asked for.
        program: String,
        /// Where it might come from, as the end of the sentence.
        hint: String,
    },
    /// A library that a program needs is not on this host.
    #[error("{} needs {library}, which the dynamic linker does not find", program.display())]
    NoLibrary {
        /// The program.
        program: PathBuf,
        /// The library's name.
        library: String,
    },
    /// The dynamic linker does not say which libraries a program needs.
    #[error("{} --list {} fails: {message}", linker.display(), program.display())]
    Linker {
        /// The program's own dynamic linker.
        linker: PathBuf,
        /// The program.
        program: PathBuf,
        /// What it said.
        message: String,
    },
    /// The whole host was to be brought.
    #[error("bringing /: it is everything; accepted: a program, a file or a directory below /")]
    Everything,
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

impl RootError {
    pub(crate) fn file(doing: &'static str, path: &Path, cause: io::Error) -> Self {
        RootError::File { doing, path: path.to_path_buf(), cause }
    }
}

/// Why a visitor did not get what was wanted.
#[derive(Debug, Error)]
pub enum VisitError {
    /// Something that is to be there is not.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl VisitError {
    /// Whether the cause lies in what was asked for, rather than in what happened afterwards.
    pub fn is_bad_input(&self) -> bool {
        match self {
            VisitError::Root(_) => true,
            VisitError::Run(error) => {
                matches!(error, RunError::Bad { .. } | RunError::SetUp { .. })
            }
        }
    }
}

/// Why a run failed.
#[derive(Debug, Error)]
pub enum RunError {
    /// The guest was described in a way that makes no sense.
    #[error("{problem}; accepted: {accepted}")]
    Bad {
        /// What is wrong.
        problem: String,
        /// What would have been accepted.
        accepted: String,
    },
    /// The kernel could not be started.
    #[error("{} cannot be started: {cause}", kernel.display())]
    Start {
        /// The kernel.
        kernel: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// Something is wrong with a file of this host.
    #[error("{doing} {}: {cause}", what.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// With what.
        what: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The pages of the guest's recording are not as they should be.
    #[error(transparent)]
    Recording(#[from] trace::Error),
    /// The guest said something that the protocol does not allow.
    #[error("the guest broke the protocol: {what}")]
    Protocol {
        /// What it said.
        what: String,
    },
    /// A connection failed.
    #[error("the connection to the guest's {which} failed: {cause}")]
    Link {
        /// Which connection.
        which: &'static str,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The guest has closed its connections.
    #[error("the guest hung up")]
    HungUp,
    /// The kernel knows nothing of our clock.
    #[error(
        "the kernel does not ask for its time: it was built without UML_TIME_TRAVEL_SUPPORT \
         (Debian's user-mode-linux is); build one with this program"
    )]
    NoClock,
    /// The kernel lives but does not say anything.
    #[error(
        "the guest said nothing for {seconds} s of real time (its clock stands at {at} s or \
         later): a program in it computes without end, or the machine is overloaded"
    )]
    Silent {
        /// How long we waited.
        seconds: u64,
        /// The guest's time when it last said anything.
        at: Instant,
    },
    /// Nothing can ever happen again.
    #[error("the guest is deadlocked at {at} s: nothing is due, in it or in its disks")]
    Deadlock {
        /// The guest's time.
        at: Instant,
    },
    /// The guest has lived for too long.
    #[error("the guest was stopped after {lifetime} of its own time, the limit that was set")]
    Lifetime {
        /// The limit.
        lifetime: Duration,
    },
    /// What is written to a disk beyond the memory it may take goes to a file, and cannot.
    #[error(
        "what was written to disk {disk} goes to a file in {}: {cause}; accepted: a directory with \
         room for it (TMPDIR), or more memory with linux run --data SIZE",
        directory.display()
    )]
    Spill {
        /// The disk's name.
        disk: String,
        /// Where the file is.
        directory: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The kernel gave up.
    #[error("the guest's kernel panicked: {reason}\n{console}")]
    Panicked {
        /// Its own words.
        reason: String,
        /// The end of its output.
        console: String,
    },
    /// The processes that stand for the guest's died at their first signal.
    #[error(
        "the guest's processes die at their first signal, as they do when glibc has registered \
         restartable sequences: GLIBC_TUNABLES=glibc.pthread.rseq=0 had no effect\n{console}"
    )]
    Rseq {
        /// The end of the kernel's output.
        console: String,
    },
    /// A setting was refused, or a command of the set-up failed.
    #[error("the guest's set-up failed: {what}")]
    SetUp {
        /// What failed, with what was said about it.
        what: String,
    },
    /// The kernel ended before it said anything.
    #[error(
        "the kernel ended without a word, as one does that is damaged; accepted: one that \
         `paternoster linux build` has built when the old one is removed from the cache"
    )]
    Mute,
    /// The guest ended before its script did.
    #[error("the guest ended before its script did\n{console}")]
    Unfinished {
        /// The end of the kernel's output.
        console: String,
    },
}

impl RunError {
    pub(crate) fn file(doing: &'static str, what: impl Into<PathBuf>, cause: io::Error) -> Self {
        RunError::File { doing, what: what.into(), cause }
    }

    pub(crate) fn protocol(what: String) -> Self {
        RunError::Protocol { what }
    }

    pub(crate) fn link(which: &'static str, cause: io::Error) -> Self {
        match RunError::is_hang_up(&cause) {
            true => RunError::HungUp,
            false => RunError::Link { which, cause },
        }
    }

    /// Whether an error of a socket means that the other side has gone.
    pub(crate) fn is_hang_up(cause: &io::Error) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        matches!(cause.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
    }
}
