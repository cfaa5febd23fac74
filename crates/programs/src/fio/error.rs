//! What is wrong with a job, where, and what would be accepted instead.

use base::nearest::edits;
use std::fmt;
use std::sync::Arc;

/// A place in a job file (a line) or on a command line (an argument).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The job file as it was named, or [`Place::COMMAND_LINE`].
    pub file: Arc<str>,
    /// The line of the file, or the position of the argument; both count from 1.
    pub line: u32,
}

impl Place {
    /// The name of the file of a setting that was typed on the command line.
    pub const COMMAND_LINE: &'static str = "command line";

    /// Line `line` of `file`.
    pub fn new(file: &Arc<str>, line: u32) -> Self {
        Place { file: Arc::clone(file), line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.file == Self::COMMAND_LINE {
            write!(f, "fio argument {}", self.line)
        } else {
            write!(f, "{}:{}", self.file, self.line)
        }
    }
}

/// A job that cannot be run as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where the offending text is.
    pub place: Place,
    /// The option it belongs to, if it belongs to one.
    pub option: Option<String>,
    /// What is wrong, as a sentence without its full stop.
    pub message: String,
    /// What would be accepted.
    pub accepted: Option<String>,
    /// The known name nearest to the one that was given.
    pub nearest: Option<String>,
}

impl ParseError {
    /// `message` about whatever stands at `place`.
    pub fn new(place: &Place, message: impl Into<String>) -> Self {
        ParseError {
            place: place.clone(),
            option: None,
            message: message.into(),
            accepted: None,
            nearest: None,
        }
    }

    /// The same error, about the option `name`.
    pub fn option(mut self, name: &str) -> Self {
        self.option = Some(name.to_owned());
        self
    }

    /// The same error, with what would be accepted.
    pub fn accepts(mut self, accepted: impl Into<String>) -> Self {
        self.accepted = Some(accepted.into());
        self
    }

    /// The same error, with the known name that is nearest to the one that was given.
    pub fn nearest(mut self, nearest: Option<&str>) -> Self {
        self.nearest = nearest.map(str::to_owned);
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(option) = &self.option {
            write!(f, "option '{option}': ")?;
        }
        f.write_str(&self.message)?;
        if let Some(accepted) = &self.accepted {
            write!(f, "; accepted: {accepted}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean '{nearest}'?")?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}

/// The name among `known` with the fewest edits from `given`, unless all are too far away to be
/// what was meant (more than a third of the letters differ).
pub fn nearest<'k>(given: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let limit = (given.chars().count() / 3).max(1);
    known
        .filter(|name| name.len().abs_diff(given.len()) <= limit)
        .map(|name| (edits(given, name), name))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, _)| distance <= limit)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_place_option_and_what_is_accepted() {
        let file: Arc<str> = "db.fio".into();
        let error = ParseError::new(&Place::new(&file, 7), "unknown value 'raed'")
            .option("rw")
            .accepts("read, write")
            .nearest(nearest("raed", ["read", "write"].into_iter()));
        assert_eq!(
            error.to_string(),
            "db.fio:7: option 'rw': unknown value 'raed'; accepted: read, write; \
             did you mean 'read'?"
        );
    }

    #[test]
    fn the_nearest_option_is_near() {
        assert_eq!(nearest("iodpeth", ["iodepth", "direct"].into_iter()), Some("iodepth"));
        assert_eq!(nearest("quux", ["iodepth", "direct"].into_iter()), None);
    }
}
