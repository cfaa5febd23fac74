//! The one error of this crate: a file that cannot be read, and where, why, and what could be.

use std::fmt;

/// Why a trace was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{place}: {cause}; accepted: {accepted}")]
pub struct Error {
    /// The file (or the name that was given to a stream).
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong there.
    pub cause: String,
    /// What would be accepted instead.
    pub accepted: String,
}

/// A place in a trace. Of a compressed file, the place in what it decompresses to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line of text, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
}

impl Error {
    /// An error at `place` of `file`.
    pub(crate) fn new(
        file: &str,
        place: Place,
        cause: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Error {
        Error { file: file.to_owned(), place, cause: cause.into(), accepted: accepted.into() }
    }

    /// What the operating system or the decompressor said while reading or writing `file`.
    pub(crate) fn io(file: &str, place: Place, error: &std::io::Error) -> Error {
        Error::new(file, place, error.to_string(), "a file that can be read to its end")
    }
}

impl fmt::Display for Place {
    /// Continues the name of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Line(line) => write!(f, ":{line}"),
            Place::Byte(offset) => write!(f, " at byte {offset}"),
        }
    }
}
