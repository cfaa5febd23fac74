//! Reading a TOML file such that whatever is wrong with it is told with its place.

use crate::error::Error;
use base::nearest;
use params::Source;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

/// A value and where it stands.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// A TOML file.
pub(crate) struct Document<'t>(Source<'t>);

impl<'t> Document<'t> {
    /// The document and its root table.
    pub fn parse(file: &'t str, text: &'t str) -> Result<(Document<'t>, DeTable<'t>), Error> {
        let document = Document(Source::new(file, text));
        match document.0.parse() {
            Ok(root) => Ok((document, root)),
            Err(wrong) => {
                Err(document.bad(&wrong.span, wrong.problem, "an experiment is TOML 1.0"))
            }
        }
    }

    /// `file:line` of a place.
    pub fn place(&self, span: &Range<usize>) -> String {
        format!("{}:{}", self.0.file, self.0.line(span))
    }

    /// An error at a place.
    pub fn bad(
        &self,
        span: &Range<usize>,
        problem: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Error {
        Error::bad(self.place(span), problem, accepted)
    }

    /// What stands at a place.
    pub fn written(&self, span: &Range<usize>) -> &'t str {
        self.0.written(span.clone())
    }

    /// Refuses any key of `table` that is not among `known`.
    pub fn check_keys(&self, table: &DeTable<'_>, what: &str, known: &[&str]) -> Result<(), Error> {
        table.iter().try_for_each(|(key, _)| self.check_key(key, what, known))
    }

    /// Refuses a key that is not among `known`.
    pub fn check_key(
        &self,
        key: &Spanned<DeString<'_>>,
        what: &str,
        known: &[&str],
    ) -> Result<(), Error> {
        let name: &str = key.get_ref();
        if known.contains(&name) {
            return Ok(());
        }
        let hint = nearest(name, known.iter().copied());
        let problem = format!("{what} has no key \"{name}\"{hint}");
        Err(self.bad(&key.span(), problem, known.join(", ")))
    }

    /// A text under `key`, if it is there.
    pub fn text(&self, table: &DeTable<'_>, key: &str) -> Result<Option<Text>, Error> {
        let Some(value) = table.get(key) else { return Ok(None) };
        self.as_text(key, value).map(Some)
    }

    /// A whole number under `key`, as [`number_text`] writes it, if it is there.
    pub fn whole(&self, table: &DeTable<'_>, key: &str) -> Result<Option<Text>, Error> {
        let Some(value) = table.get(key) else { return Ok(None) };
        match value.get_ref().as_integer().map(number_text) {
            Some(text) => Ok(Some(Text { text, place: self.place(&value.span()) })),
            None => Err(self.wrong(key, value, "a whole number")),
        }
    }

    /// A truth value under `key`; false when it is not there.
    pub fn flag(&self, table: &DeTable<'_>, key: &str) -> Result<bool, Error> {
        let Some(value) = table.get(key) else { return Ok(false) };
        value.get_ref().as_bool().ok_or_else(|| self.wrong(key, value, "true or false"))
    }

    /// A list under `key`; empty when it is not there.
    pub fn list<'a>(&self, table: &'a DeTable<'t>, key: &str) -> Result<&'a [Value<'t>], Error> {
        let Some(value) = table.get(key) else { return Ok(&[]) };
        match value.get_ref().as_array() {
            Some(array) => Ok(&array[..]),
            None => Err(self.wrong(key, value, "a list in brackets")),
        }
    }

    /// A table under `key`, if it is there.
    pub fn table<'a>(
        &self,
        table: &'a DeTable<'t>,
        key: &str,
    ) -> Result<Option<&'a DeTable<'t>>, Error> {
        let Some(value) = table.get(key) else { return Ok(None) };
        match value.get_ref().as_table() {
            Some(inner) => Ok(Some(inner)),
            None => Err(self.wrong(key, value, &format!("a table: [{key}]"))),
        }
    }

    /// A value that must be a text.
    pub fn as_text(&self, key: &str, value: &Value<'_>) -> Result<Text, Error> {
        match value.get_ref().as_str() {
            Some(text) => Ok(Text { text: text.to_string(), place: self.place(&value.span()) }),
            None => Err(self.wrong(key, value, "a text in quotes")),
        }
    }

    /// A value as a person wrote it: a text, a number or a truth value.
    pub fn as_word(&self, key: &str, value: &Value<'_>) -> Result<String, Error> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => Ok(number_text(number)),
            DeValue::Float(number) => Ok(number.as_str().to_string()),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            _ => Err(self.wrong(key, value, "a text, a number, true or false")),
        }
    }

    /// An error about a value of the wrong type.
    pub fn wrong(&self, key: &str, value: &Value<'_>, accepted: &str) -> Error {
        let problem = format!("{key} is of type {}", value.get_ref().type_str());
        self.bad(&value.span(), problem, accepted)
    }
}

/// A whole number in decimal digits; one that nothing here can hold, as it was written.
fn number_text(number: &DeInteger<'_>) -> String {
    let value = i128::from_str_radix(number.as_str(), number.radix());
    value.map_or(number.to_string(), |value| value.to_string())
}

/// A text and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub text: String,
    pub place: String,
}
