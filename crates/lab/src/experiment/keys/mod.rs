//! What can be said of an experiment, of a job and of a control group: one row for each key.
//!
//! A row has the key's name, how it is written, what it accepts, its default, whether it may be an
//! axis, its options on the command line, its name in results, and a sentence about it. Reading a
//! file, checking its keys, axes, options with their help, the experiment in JSON and the tables of
//! docs/experiments.md all come from these rows.

mod docs;
mod of_experiment;
mod of_file;
mod of_job;

pub use docs::markdown;
pub use of_experiment::EXPERIMENT;
pub use of_file::{FILES, FileKey, file_names, is_of_root};
pub use of_job::{GROUP, JOB};

use super::document::{Document, Value};
use super::setting;
use crate::error::Error;
use serde_json::{Map, Value as JsonValue};
use toml::Spanned;
use toml::de::{DeString, DeTable};

/// How a value is understood: the text as it was written, and where.
pub type Set<T> = fn(&mut T, &str, &str) -> Result<(), Error>;

/// What stands in results.
pub type Json<T> = fn(&T) -> JsonValue;

/// One thing that can be said of a `T`.
pub struct Key<T: 'static> {
    /// What it is called in files and as an axis.
    pub name: &'static str,
    /// How it is written in files.
    pub form: Form,
    /// What it accepts.
    pub accepted: &'static str,
    /// What holds when nobody says it.
    pub default: &'static str,
    /// Whether it may be varied without being used in a job.
    pub is_axis: bool,
    /// Its options on the command line.
    pub flags: &'static [Flag],
    /// What it means.
    pub about: &'static str,
    /// How one value is understood; none for what has a reader of its own.
    pub set: Option<Set<T>>,
    json: Option<(&'static str, Json<T>)>,
}

/// How a value is written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A text in quotes.
    Text,
    /// A whole number.
    Whole,
    /// `true` or `false`.
    Flag,
    /// A text or a number.
    Word,
    /// A list, which has a reader of its own.
    List,
    /// A table, which has a reader of its own.
    Table,
    /// What has a reader of its own, which says what it accepts.
    Composite,
    /// Any name of a file of a control group.
    Files,
    /// Not at all: it comes from the command line or from whoever reads the file.
    Unwritten,
}

/// An option of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its long name.
    pub name: &'static str,
    /// What stands for its value in the help.
    pub value: &'static str,
    /// Its help.
    pub help: &'static str,
}

impl<T> Key<T> {
    /// A key that is no axis, has no option and is not in results.
    const fn new(
        name: &'static str,
        form: Form,
        accepted: &'static str,
        default: &'static str,
    ) -> Key<T> {
        Key {
            name,
            form,
            accepted,
            default,
            is_axis: false,
            flags: &[],
            about: "",
            set: None,
            json: None,
        }
    }

    /// It means this.
    const fn about(mut self, about: &'static str) -> Key<T> {
        self.about = about;
        self
    }

    /// It is understood like this.
    const fn set(mut self, set: Set<T>) -> Key<T> {
        self.set = Some(set);
        self
    }

    /// It may be varied.
    const fn axis(mut self) -> Key<T> {
        self.is_axis = true;
        self
    }

    /// It has these options.
    const fn flags(mut self, flags: &'static [Flag]) -> Key<T> {
        self.flags = flags;
        self
    }

    /// It is in results, under this name.
    const fn json(mut self, name: &'static str, of: Json<T>) -> Key<T> {
        self.json = Some((name, of));
        self
    }

    /// Refuses what only the command line calls so.
    fn elsewhere(&self, document: &Document<'_>, key: &Spanned<DeString<'_>>, what: &str) -> Error {
        let name: &str = key.get_ref();
        let accepted = match self.form {
            Form::Unwritten => format!("--{name} on the command line: {}", self.accepted),
            _ => format!("{}: {}", self.name, self.accepted.replace('`', "")),
        };
        document.bad(&key.span(), format!("{what} has no key \"{name}\""), accepted)
    }

    /// Refuses a value that is not of its form.
    fn check_form(&self, document: &Document<'_>, value: &Value<'_>) -> Result<(), Error> {
        let it = value.get_ref();
        let (is_right, form) = match self.form {
            Form::Text => (it.is_str(), "a text in quotes"),
            Form::Whole => (it.is_integer(), "a whole number"),
            Form::Flag => (it.is_bool(), ""),
            Form::Word => (!it.is_array() && !it.is_table(), ""),
            Form::List => (it.is_array(), ""),
            Form::Table => (it.is_table(), ""),
            Form::Composite | Form::Files | Form::Unwritten => return Ok(()),
        };
        let means = self.accepted.replace('`', "");
        let accepted = match (form, means.as_str()) {
            (_, "a text") => form.to_string(),
            ("", means) => means.to_string(),
            (form, means) => format!("{form}: {means}"),
        };
        if is_right { Ok(()) } else { Err(document.wrong(self.name, value, &accepted)) }
    }

    /// Its name in results, if it is there.
    pub fn json_name(&self) -> Option<&'static str> {
        self.json.map(|(name, _)| name)
    }
}

/// A key of the experiment.
pub fn of_experiment(name: &str) -> Option<&'static Key<super::Experiment>> {
    EXPERIMENT.iter().find(|key| key.name == name)
}

/// The names of keys that may be varied without being used in a job.
pub fn axes() -> impl Iterator<Item = &'static str> {
    EXPERIMENT.iter().filter(|key| key.is_axis).map(|key| key.name)
}

/// Whether a key of this name may be varied without being used in a job.
pub fn is_axis(name: &str) -> bool {
    axes().any(|it| it == name)
}

/// An option of the command line; there must be one.
pub fn flag(name: &str) -> &'static Flag {
    let found = EXPERIMENT.iter().flat_map(|key| key.flags).find(|flag| flag.name == name);
    found.unwrap_or_else(|| panic!("no key has the option --{name}"))
}

/// Refuses keys of a table that are not among these, and values of another form.
pub(super) fn check<T>(
    keys: &[Key<T>],
    what: &str,
    document: &Document<'_>,
    table: &DeTable<'_>,
) -> Result<(), Error> {
    let written = keys.iter().filter(|key| key.form != Form::Unwritten);
    let names: Vec<&str> = written.map(|key| key.name).collect();
    let has_files = keys.iter().any(|key| key.form == Form::Files);
    let is_file = |(key, value): &(&Spanned<DeString<'_>>, &Value<'_>)| {
        has_files && setting::begins_file(key.get_ref(), value)
    };
    for (key, value) in table.iter().filter(|it| !is_file(it)) {
        let name: &str = key.get_ref();
        let has_flag = |key: &Key<T>| key.flags.iter().any(|it| it.name == name);
        let mut meant = keys.iter().filter(|key| key.name == name || has_flag(key));
        match (meant.next(), meant.next()) {
            (Some(key), _) if key.name == name && key.form != Form::Unwritten => {
                key.check_form(document, value)?;
            }
            (Some(other), None) => return Err(other.elsewhere(document, key, what)),
            _ => document.check_key(key, what, &names)?,
        }
    }
    Ok(())
}

/// Reads from a table what needs no reader of its own, in the order of the rows.
pub(super) fn read<T>(
    keys: &[Key<T>],
    document: &Document<'_>,
    table: &DeTable<'_>,
    target: &mut T,
) -> Result<(), Error> {
    for Key { name, form, set, .. } in keys {
        let (Some(value), Some(set)) = (table.get(*name), set) else { continue };
        let text = match form {
            Form::Text => document.as_text(name, value)?.text,
            Form::Whole => document.whole(table, name)?.map_or(String::new(), |it| it.text),
            Form::Flag => document.flag(table, name)?.to_string(),
            Form::Word => document.as_word(name, value)?,
            Form::List | Form::Table | Form::Composite => continue,
            Form::Files | Form::Unwritten => continue,
        };
        set(target, &text, &document.place(&value.span()))?;
    }
    Ok(())
}

/// As it is in results.
pub fn to_json<T>(keys: &[Key<T>], of: &T) -> JsonValue {
    let named = keys.iter().filter_map(|key| key.json);
    JsonValue::Object(named.map(|(name, json)| (name.to_string(), json(of))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_and_no_option_stands_twice() {
        let mut names: Vec<&str> = EXPERIMENT.iter().map(|key| key.name).collect();
        let flags: Vec<&str> =
            EXPERIMENT.iter().flat_map(|key| key.flags).map(|it| it.name).collect();
        for list in [&mut names, &mut flags.clone()] {
            list.sort_unstable();
            assert!(list.windows(2).all(|pair| pair[0] != pair[1]), "{list:?}");
        }
    }

    #[test]
    fn what_may_be_varied_can_be_understood_from_a_word() {
        assert!(EXPERIMENT.iter().filter(|key| key.is_axis).all(|key| key.set.is_some()));
    }
}
