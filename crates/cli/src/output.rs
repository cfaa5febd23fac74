//! Where results go: the standard output, files that appear only when they are complete, and
//! whatever else can be written to, such as a pipe.
//!
//! A destination is tried before anything runs: a file is made beside it and removed. What is not
//! a regular file is never replaced.

use lab::Error;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What a destination may be.
const ACCEPTED: &str = "a file in a directory that is there and can be written to, a pipe, or - \
                        for the standard output";
/// Other names of the standard output.
const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Where a result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The standard output.
    Stdout,
    /// A regular file, replaced as a whole.
    File(PathBuf),
    /// A pipe or a device, written to as it is.
    Stream(PathBuf),
}

impl Destination {
    /// What is asked for by an option, of which the value may be left out.
    pub fn asked(option: &str, value: Option<&Option<PathBuf>>) -> Result<Option<Self>, Error> {
        match value {
            None => Ok(None),
            Some(None) => Ok(Some(Destination::Stdout)),
            Some(Some(path)) => Destination::at(option, path).map(Some),
        }
    }

    /// What a path stands for, if something can be written there.
    fn at(option: &str, path: &Path) -> Result<Destination, Error> {
        if STDOUT.iter().any(|name| path == Path::new(name)) {
            return Ok(Destination::Stdout);
        }
        let refuse =
            |why: &str| Err(Error::bad(option, format!("{}: {why}", path.display()), ACCEPTED));
        let file = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return refuse("it is a directory"),
            Ok(there) if !there.is_file() => return Ok(Destination::Stream(path.to_path_buf())),
            // A link stays, and what it leads to is replaced.
            Ok(_) => fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()),
            Err(_) if fs::symlink_metadata(path).is_ok() => {
                return refuse("it is a link that leads nowhere");
            }
            Err(_) => path.to_path_buf(),
        };
        if path.file_name().is_none() {
            return refuse("it names no file");
        }
        match can_make_files(directory_of(&file)) {
            Ok(()) => Ok(Destination::File(file)),
            Err(cause) => refuse(&format!("{}: {cause}", directory_of(&file).display())),
        }
    }

    /// Writes a result.
    pub fn write(&self, text: &str) -> Result<(), Error> {
        match self {
            Destination::Stdout => print(text.as_bytes()),
            Destination::File(path) => write_file(path, text),
            Destination::Stream(path) => {
                let open = OpenOptions::new().append(true).open(path);
                let written = open.and_then(|mut it| it.write_all(text.as_bytes()));
                let is_lost = |it: &std::io::Error| it.kind() != ErrorKind::BrokenPipe;
                written.or_else(|it| {
                    if is_lost(&it) { Err(Error::unwritable(path, it)) } else { Ok(()) }
                })
            }
        }
    }
}

/// Refuses two results in one place; each has its option.
pub fn check_that_they_differ(all: &[(&str, Option<&Destination>)]) -> Result<(), Error> {
    for (at, (option, destination)) in all.iter().enumerate().filter(|(_, it)| it.1.is_some()) {
        if let Some((other, _)) = all[..at].iter().find(|it| it.1 == *destination) {
            let problem = format!("it goes where {other} goes");
            return Err(Error::bad(*option, problem, "another file for one of them"));
        }
    }
    Ok(())
}

/// Refuses a directory for files that cannot be made; one that is not there will be.
pub fn check_directory(option: &str, path: &Path) -> Result<(), Error> {
    let is_there = |it: &&Path| fs::symlink_metadata(it).is_ok();
    let named = path.ancestors().filter(|it| !it.as_os_str().is_empty());
    let there = named.into_iter().find(is_there).unwrap_or(Path::new("."));
    let refuse = |cause| {
        let problem = format!("{}: {}: {cause}", path.display(), there.display());
        Error::bad(option, problem, "a directory that can be written to, or its name")
    };
    can_make_files(there).map_err(refuse)
}

/// The directory that a file is in.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether files can be made in a directory, which only making one tells for certain.
fn can_make_files(directory: &Path) -> std::io::Result<()> {
    if !fs::metadata(directory)?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    let trial = directory.join(format!(".paternoster.{}.partial", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&trial)?;
    fs::remove_file(&trial)
}

/// Writes to the standard output. A reader who has gone away is no failure.
pub fn print(bytes: &[u8]) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => {
            Err(Error::unwritable(Path::new("standard output"), cause))
        }
        _ => Ok(()),
    }
}

/// Writes a file as a whole: under another name first, renamed when it is complete. Nothing is left
/// of one that cannot be.
pub fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    let unfinished = path.with_file_name(name);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&unfinished, path)
    };
    write().map_err(|cause: std::io::Error| {
        // One that was there before is not ours.
        if cause.kind() != ErrorKind::AlreadyExists {
            let _ = fs::remove_file(&unfinished);
        }
        Error::unwritable(path, cause)
    })
}
