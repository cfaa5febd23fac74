//! A TOML text and the places in it.

use std::ops::Range;
use toml::de::DeTable;

/// A TOML text under the name by which a person knows it.
#[derive(Clone, Debug)]
pub struct Source<'t> {
    /// The path as it was given.
    pub file: &'t str,
    text: &'t str,
    line_ends: Vec<usize>,
}

/// Why a text is no TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotToml {
    /// Where, in bytes.
    pub span: Range<usize>,
    /// What is wrong, beginning with `not TOML`.
    pub problem: String,
}

impl<'t> Source<'t> {
    /// The text of a file.
    pub fn new(file: &'t str, text: &'t str) -> Source<'t> {
        let line_ends = text.match_indices('\n').map(|(place, _)| place).collect();
        Source { file, text, line_ends }
    }

    /// The root table.
    ///
    /// # Errors
    ///
    /// The text is no TOML.
    pub fn parse(&self) -> Result<DeTable<'t>, NotToml> {
        DeTable::parse(self.text).map(|root| root.into_inner()).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            // The parser does not say which key.
            let key = match error.message() {
                "duplicate key" => format!(" \"{}\"", self.written(span.clone())),
                _ => String::new(),
            };
            let problem = format!("not TOML: {}{key}", error.message().replace('\n', ", "));
            NotToml { span, problem }
        })
    }

    /// The line of a place, counted from one.
    pub fn line(&self, span: &Range<usize>) -> usize {
        self.line_ends.partition_point(|end| *end < span.start) + 1
    }

    /// What stands there.
    pub fn written(&self, span: Range<usize>) -> &'t str {
        &self.text[span]
    }
}
