//! What can be wrong with a model file.

use thiserror::Error;

/// Why a model could not be loaded: the place, the cause and what would be accepted.
#[derive(Debug, Error)]
pub enum ModelError {
    /// There is no built-in model of this name.
    #[error("unknown model \"{name}\"{hint}; built-in models: {all}")]
    Unknown {
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
