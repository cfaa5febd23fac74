//! What can be wrong with a file of parameters.

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
    std::fs::read_to_string(path)
        .map_err(|cause| Error::Unreadable { file: path.display().to_string(), cause })
}
