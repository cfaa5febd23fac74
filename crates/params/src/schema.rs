//! What a file of parameters may contain.

use crate::accept::Accept;

/// A kind of file.
#[derive(Debug)]
pub struct Format {
    /// What a file describes, such as `model`.
    pub what: &'static str,
    /// The texts before the first section, and whether each must be there.
    pub heads: &'static [(&'static str, bool)],
    /// Each parameter says when it was seen (`date = "2026-11-20"`).
    pub is_dated: bool,
}

/// What a section may contain.
#[derive(Debug)]
pub struct Section {
    /// Its name, as in `[name]`.
    pub name: &'static str,
    /// Whether a file must have it.
    pub required: bool,
    /// Its parameters, all of which it must have.
    pub specs: &'static [Spec],
}

/// One parameter that a section has.
#[derive(Debug)]
pub struct Spec {
    /// Its name within the section.
    pub name: &'static str,
    /// Its values.
    pub accept: Accept,
}

/// Shorthand for the schema tables.
pub const fn spec(name: &'static str, accept: Accept) -> Spec {
    Spec { name, accept }
}

/// The sources a parameter can have.
pub const SOURCES: [&str; 5] = ["datasheet", "measured", "derived", "fitted", "assumed"];

/// One parameter as its file states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Section and name, such as `mechanics.rpm`.
    pub name: String,
    /// The value as written.
    pub value: String,
    /// The unit as written; empty for counts, flags, choices and names.
    pub unit: String,
    /// One of [`SOURCES`].
    pub source: String,
    /// Where the value is from, in the file's own words.
    pub from: String,
    /// When it was seen, in files whose parameters say so; empty in others.
    pub date: String,
}
