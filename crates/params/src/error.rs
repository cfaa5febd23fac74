//! What can be wrong with a file of parameters.

use std::io::Read;
use thiserror::Error as ThisError;

/// Why a file of parameters could not be loaded: the place, the cause and what would be accepted.
#[derive(Debug, ThisError)]
pub enum Error {
    /// Nothing built in has this name.
    #[error("unknown {what} \"{name}\"{hint}; built-in {what}s: {all}")]
    Unknown {
        /// What was looked for, such as `model`.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// The nearest name that exists, as the end of a sentence.
        hint: String,
        /// All names, separated by commas.
        all: String,
    },
    /// The file, or a table it names, could not be read.
    #[error("{file}: cannot be read: {cause}")]
    Unreadable {
        /// The path as it was given.
        file: String,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// Something in the file is not as it must be.
    #[error("{file}:{line}: {problem}; {accepted}")]
    Bad {
        /// The path as it was given.
        file: String,
        /// The line, counted from one.
        line: usize,
        /// What is wrong, and with which parameter.
        problem: String,
        /// What would have been accepted.
        accepted: String,
    },
}

impl Error {
    /// The error for a name that nothing built in has.
    pub fn unknown<'n>(
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) -> Error {
        let hint = base::nearest(name, known.clone());
        let all = known.collect::<Vec<_>>().join(", ");
        Error::Unknown { what, name: name.to_string(), hint, all }
    }
}

/// The text of a file.
///
/// # Errors
///
/// [`Error::Unreadable`].
pub fn read(path: &std::path::Path) -> Result<String, Error> {
    read_text(path).map_err(|cause| Error::Unreadable { file: path.display().to_string(), cause })
}

/// What is read as text is not longer: the load file of dbench, the longest, has 25 MiB.
const LONGEST: u64 = 64 << 20;

/// The text of a file that a person has written. Pipes and devices may have no end, or nobody at
/// theirs, so they are refused.
///
/// # Errors
///
/// Those of the operating system; it is no file, or too long.
pub fn read_text(path: &std::path::Path) -> std::io::Result<String> {
    let wrong = |why| Err(std::io::Error::other(why));
    let about = std::fs::metadata(path)?;
    if !about.is_file() && !about.is_dir() {
        return wrong("it is no regular file");
    }
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LONGEST {
        return wrong("it is longer than 64 MiB");
    }
    Ok(text)
}
