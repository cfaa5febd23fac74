//! Files of parameters: TOML in which every parameter states its value, unit and source.
//!
//! A file has texts at its top, such as a title, and sections of parameters, each written as
//! `name = { value = 7200, unit = "rpm", source = "datasheet", from = "where" }`. A schema says
//! which sections and parameters there are, in which unit and range. Nothing has a default: a
//! missing parameter is an error, so a file is the whole truth about what it describes. Floats
//! exist here and in what is computed at load, never later.

#![forbid(unsafe_code)]

mod accept;
mod document;
mod error;
mod schema;
mod section;
mod source;
mod table;

pub use accept::Accept;
pub use document::Document;
pub use error::{Error, read, read_text};
pub use schema::{Format, Parameter, SOURCES, Section, Spec, spec};
pub use section::Stated;
pub use source::{NotToml, Source};
pub use table::Table;
