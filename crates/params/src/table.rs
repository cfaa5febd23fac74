//! A file that kept its schema: typed look-ups by name cannot fail.

use crate::accept::Value;
use crate::error::Error;
use base::{Duration, Sectors};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a value stands.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub file: Arc<str>,
    pub line: usize,
}

/// What a file states. Look-ups panic on a name that is not in the schema, or of another type.
#[derive(Clone, Debug)]
pub struct Table {
    values: BTreeMap<String, (Place, Value)>,
    sections: Vec<String>,
}

impl Table {
    pub(crate) fn new() -> Table {
        Table { values: BTreeMap::new(), sections: Vec::new() }
    }

    pub(crate) fn insert(&mut self, name: String, place: Place, value: Value) {
        self.values.insert(name, (place, value));
    }

    pub(crate) fn note_section(&mut self, name: &str) {
        self.sections.push(name.to_string());
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Whether the optional section `name` is present.
    pub fn has(&self, name: &str) -> bool {
        self.sections.iter().any(|section| section == name)
    }

    /// A number, in base units.
    pub fn real(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Number(number) => *number,
            other => panic!("{name}: expected a number in the schema, seen {other:?}"),
        }
    }

    /// A time, to the nanosecond.
    pub fn time(&self, name: &str) -> Duration {
        Duration::from_nanos(libm::round(self.real(name)) as u64)
    }

    /// A size in bytes.
    pub fn size(&self, name: &str) -> u64 {
        libm::round(self.real(name)) as u64
    }

    /// A size in sectors, rounded down.
    pub fn sectors(&self, name: &str) -> Sectors {
        Sectors(u32::try_from(self.size(name) / 512).expect("size bounded by the schema"))
    }

    /// A whole number.
    pub fn whole(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Whole(number) => *number,
            other => panic!("{name}: expected a whole number in the schema, seen {other:?}"),
        }
    }

    /// A list of whole numbers, as many as the schema says.
    pub fn wholes<const N: usize>(&self, name: &str) -> [u64; N] {
        match self.get(name) {
            Value::Wholes(list) => list[..].try_into().expect("as many as the schema says"),
            other => panic!("{name}: expected whole numbers in the schema, seen {other:?}"),
        }
    }

    /// A flag.
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Value::Flag(flag) => *flag,
            other => panic!("{name}: expected a flag in the schema, seen {other:?}"),
        }
    }

    /// A text: a choice, or a name.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Value::Text(text) => text,
            other => panic!("{name}: expected a text in the schema, seen {other:?}"),
        }
    }

    /// Rows of numbers.
    pub fn rows(&self, name: &str) -> &[Vec<f64>] {
        match self.get(name) {
            Value::Rows(rows) => rows,
            other => panic!("{name}: expected rows in the schema, seen {other:?}"),
        }
    }

    /// What was found under the name that this parameter holds; when nothing was, the error tells
    /// the place of the parameter.
    ///
    /// # Errors
    ///
    /// That one.
    pub fn named<T>(&self, name: &str, found: Result<T, Error>) -> Result<T, Error> {
        found.map_err(|error| match error {
            Error::Unknown { name: unknown, hint, all, .. } => {
                self.refuse(name, format!("unknown name \"{unknown}\"{hint}"), &all)
            }
            Error::Unreadable { file, cause } => {
                self.refuse(name, format!("{file} cannot be read"), &cause.to_string())
            }
            bad @ Error::Bad { .. } => bad,
        })
    }

    /// An error about a parameter whose value fits the schema but not the other values.
    pub fn refuse(&self, name: &str, problem: String, accepted: &str) -> Error {
        let place = &self.values[name].0;
        Error::Bad {
            file: place.file.to_string(),
            line: place.line,
            problem: format!("{name}: {problem}"),
            accepted: accepted.to_string(),
        }
    }

    fn get(&self, name: &str) -> &Value {
        match self.values.get(name) {
            Some((_, value)) => value,
            None => panic!("{name} is not in the schema of this kind"),
        }
    }
}
