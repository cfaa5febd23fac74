//! What can be wrong with a model file, and the nearest right name.

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

/// `; nearest: "x"` for the name that takes the fewest edits, or nothing when all are far.
pub(crate) fn nearest<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> String {
    let best = among.map(|candidate| (edits(name, candidate), candidate)).min();
    match best {
        Some((distance, candidate)) if distance <= name.len().div_ceil(2) => {
            format!("; nearest: \"{candidate}\"")
        }
        _ => String::new(),
    }
}

/// The number of single-letter insertions, deletions and substitutions between two words.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_letter_by_letter() {
        assert_eq!(edits("rpm", "rpm"), 0);
        assert_eq!(edits("rmp", "rpm"), 2);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn a_far_name_is_not_suggested() {
        assert_eq!(nearest("zzzzzzzz", ["rpm", "surfaces"].into_iter()), "");
        assert_eq!(nearest("surface", ["rpm", "surfaces"].into_iter()), "; nearest: \"surfaces\"");
    }
}
