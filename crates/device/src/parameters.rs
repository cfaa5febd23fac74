//! Reading a model file: every parameter is checked against a schema and keeps its source.
//!
//! A model file has a `kind`, a `title` and sections of parameters, each written as
//! `name = { value = 7200, unit = "rpm", source = "datasheet", from = "where" }`. The schema of a
//! kind (see the modules of the kinds) says which sections and parameters there are, in which
//! unit and range. Nothing has a default: a missing parameter is an error, so a model file is the
//! whole truth about a model. Floats exist here and in what is computed at load, never later.

use std::collections::BTreeMap;
use std::ops::Range;

use base::{Duration, Sectors};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::ModelError;
use base::nearest;

/// What a section of a model file may contain.
pub(crate) struct Section {
    pub name: &'static str,
    /// Whether a model of this kind must have the section.
    pub required: bool,
    pub specs: &'static [Spec],
}

/// One parameter a section has.
pub(crate) struct Spec {
    pub name: &'static str,
    pub accept: Accept,
}

/// What values a parameter takes. Bounds of times are in nanoseconds, of sizes in bytes, of rates
/// in bytes per second; all bounds are inclusive.
#[derive(Clone, Copy)]
pub(crate) enum Accept {
    Time(f64, f64),
    Size(f64, f64),
    Rate(f64, f64),
    Whole(u64, u64, &'static str),
    Real(f64, f64, &'static str),
    Flag,
    Choice(&'static [&'static str]),
    /// The name of a table beside the model file.
    File,
    /// The name of another model.
    Model,
    /// A list of rows, each of this many numbers, with a unit for the reader.
    Rows(usize, &'static str),
}

/// Shorthand for the schema tables.
pub(crate) const fn spec(name: &'static str, accept: Accept) -> Spec {
    Spec { name, accept }
}

/// The sources a parameter can have.
pub const SOURCES: [&str; 5] = ["datasheet", "measured", "derived", "fitted", "assumed"];

const TIME_UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZE_UNITS: [(&str, f64); 8] = [
    ("bytes", 1.0),
    ("sectors", 512.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
];
const RATE_UNITS: [(&str, f64); 3] = [("MB/s", 1e6), ("MiB/s", 1_048_576.0), ("GB/s", 1e9)];

/// One parameter of a model as its file states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Section and name, such as `mechanics.rpm`.
    pub name: String,
    /// The value as written.
    pub value: String,
    /// The unit as written; empty for flags, choices and names.
    pub unit: String,
    /// One of [`SOURCES`].
    pub source: String,
    /// Where the value is from, in the file's own words.
    pub from: String,
}

#[derive(Clone, Debug)]
enum Value {
    Number(f64),
    Whole(u64),
    Text(String),
    Flag(bool),
    Rows(Vec<Vec<f64>>),
}

/// A model file that kept its schema: typed look-ups by name cannot fail.
pub(crate) struct Table {
    file: String,
    values: BTreeMap<String, (usize, Value)>,
    sections: Vec<String>,
}

impl Table {
    /// Whether the optional section `name` is present.
    pub fn has(&self, name: &str) -> bool {
        self.sections.iter().any(|section| section == name)
    }

    pub fn real(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Number(number) => *number,
            other => panic!("{name}: expected a number in the schema, seen {other:?}"),
        }
    }

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

    pub fn whole(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Whole(number) => *number,
            other => panic!("{name}: expected a whole number in the schema, seen {other:?}"),
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Value::Flag(flag) => *flag,
            other => panic!("{name}: expected a flag in the schema, seen {other:?}"),
        }
    }

    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Value::Text(text) => text,
            other => panic!("{name}: expected a text in the schema, seen {other:?}"),
        }
    }

    pub fn rows(&self, name: &str) -> &[Vec<f64>] {
        match self.get(name) {
            Value::Rows(rows) => rows,
            other => panic!("{name}: expected rows in the schema, seen {other:?}"),
        }
    }

    /// What was found under the name that this parameter holds; when nothing was, the error tells
    /// the place of the parameter.
    pub fn named<T>(&self, name: &str, found: Result<T, ModelError>) -> Result<T, ModelError> {
        found.map_err(|error| match error {
            ModelError::Unknown { name: unknown, hint, all } => {
                self.refuse(name, format!("unknown name \"{unknown}\"{hint}"), &all)
            }
            ModelError::Unreadable { file, cause } => {
                self.refuse(name, format!("{file} cannot be read"), &cause.to_string())
            }
            bad @ ModelError::Bad { .. } => bad,
        })
    }

    /// An error about a parameter whose value fits the schema but not the other values.
    pub fn refuse(&self, name: &str, problem: String, accepted: &str) -> ModelError {
        ModelError::Bad {
            file: self.file.clone(),
            line: self.values[name].0,
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

/// A model file that is TOML, has a kind and a title, and may have any sections.
pub(crate) struct Document<'t> {
    file: &'t str,
    text: &'t str,
    root: DeTable<'t>,
    pub kind: String,
    pub title: String,
    kind_line: usize,
}

impl<'t> Document<'t> {
    pub fn parse(file: &'t str, text: &'t str) -> Result<Self, ModelError> {
        let root = DeTable::parse(text).map_err(|error| ModelError::Bad {
            file: file.to_string(),
            line: error.span().map_or(1, |span| line_of(text, &span)),
            problem: format!("not TOML: {}", error.message().replace('\n', ", ")),
            accepted: "a model file is TOML 1.0".to_string(),
        })?;
        let mut document = Document {
            file,
            text,
            root: root.into_inner(),
            kind: String::new(),
            title: String::new(),
            kind_line: 1,
        };
        (document.kind, document.kind_line) = document.top_level_text("kind")?;
        (document.title, _) = document.top_level_text("title")?;
        Ok(document)
    }

    /// The error for a `kind` that does not exist.
    pub fn unknown_kind(&self, kinds: &[&str]) -> ModelError {
        self.bad_line(
            self.kind_line,
            format!("unknown kind \"{}\"{}", self.kind, nearest(&self.kind, kinds.iter().copied())),
            format!("kinds: {}", kinds.join(", ")),
        )
    }

    /// The error for a `kind` that exists but not here.
    pub fn kind_refused(&self, why: &str) -> ModelError {
        self.bad_line(self.kind_line, format!("kind \"{}\"", self.kind), why.to_string())
    }

    /// Checks everything against the schema of the kind.
    pub fn check(&self, schema: &[&Section]) -> Result<(Table, Vec<Parameter>), ModelError> {
        let mut table =
            Table { file: self.file.to_string(), values: BTreeMap::new(), sections: Vec::new() };
        let mut listed: Vec<(usize, Parameter)> = Vec::new();
        for (key, value) in &self.root {
            let name: &str = key.get_ref();
            if matches!(name, "kind" | "title") {
                continue;
            }
            let section = schema.iter().find(|section| section.name == name).ok_or_else(|| {
                let names: Vec<&str> = schema.iter().map(|section| section.name).collect();
                self.bad(
                    &key.span(),
                    format!("unknown section [{name}]{}", nearest(name, names.iter().copied())),
                    format!("sections of kind \"{}\": {}", self.kind, names.join(", ")),
                )
            })?;
            self.check_section(section, key.span(), value, &mut table, &mut listed)?;
        }
        for section in schema {
            if section.required && !table.has(section.name) {
                return Err(self.bad_line(
                    self.kind_line,
                    format!("missing section [{}]", section.name),
                    format!("a model of kind \"{}\" has {}", self.kind, names_of(section)),
                ));
            }
        }
        listed.sort_by_key(|(position, _)| *position);
        Ok((table, listed.into_iter().map(|(_, parameter)| parameter).collect()))
    }

    fn check_section(
        &self,
        section: &Section,
        span: Range<usize>,
        value: &Spanned<DeValue<'_>>,
        table: &mut Table,
        listed: &mut Vec<(usize, Parameter)>,
    ) -> Result<(), ModelError> {
        let entries = value.get_ref().as_table().ok_or_else(|| {
            let problem = format!("{} is not a section", section.name);
            self.bad(&span, problem, format!("write [{}]", section.name))
        })?;
        for (key, entry) in entries {
            let name: &str = key.get_ref();
            let spec = section.specs.iter().find(|spec| spec.name == name).ok_or_else(|| {
                let hint = nearest(name, section.specs.iter().map(|spec| spec.name));
                self.bad(
                    &key.span(),
                    format!("unknown parameter \"{}.{name}\"{hint}", section.name),
                    format!("[{}] has {}", section.name, names_of(section)),
                )
            })?;
            let full = format!("{}.{name}", section.name);
            let (value, parameter) = self.check_entry(spec, &full, &key.span(), entry)?;
            listed.push((key.span().start, parameter));
            table.values.insert(full, (line_of(self.text, &key.span()), value));
        }
        for spec in section.specs {
            if !table.values.contains_key(&format!("{}.{}", section.name, spec.name)) {
                return Err(self.bad(
                    &span,
                    format!("missing parameter \"{}.{}\"", section.name, spec.name),
                    format!(
                        "add {} = {{ value = …, unit = …, source = …, from = … }} with {}",
                        spec.name,
                        spec.accept.describe()
                    ),
                ));
            }
        }
        table.sections.push(section.name.to_string());
        Ok(())
    }

    fn check_entry(
        &self,
        spec: &Spec,
        full: &str,
        span: &Range<usize>,
        entry: &Spanned<DeValue<'_>>,
    ) -> Result<(Value, Parameter), ModelError> {
        let fields = entry.get_ref().as_table().ok_or_else(|| {
            let problem = format!("{full} is a bare value");
            let accepted =
                format!("write {} = {{ value = …, unit = …, source = …, from = … }}", spec.name);
            self.bad(span, problem, accepted)
        })?;
        const FIELDS: [&str; 4] = ["value", "unit", "source", "from"];
        for (key, _) in fields {
            let name: &str = key.get_ref();
            if !FIELDS.contains(&name) {
                let hint = nearest(name, FIELDS);
                let problem = format!("{full}: unknown field \"{name}\"{hint}");
                return Err(self.bad(&key.span(), problem, FIELDS.join(", ")));
            }
        }
        let value = fields
            .get("value")
            .ok_or_else(|| self.bad(span, format!("{full}: no value"), spec.accept.describe()))?;
        let unit = self.field_text(fields, full, "unit", span)?.unwrap_or_default();
        let source = self.field_text(fields, full, "source", span)?.unwrap_or_default();
        let from = self.field_text(fields, full, "from", span)?.unwrap_or_default();
        if !SOURCES.contains(&source.as_str()) {
            let problem = match source.as_str() {
                "" => format!("{full}: no source"),
                _ => {
                    format!("{full}: source \"{source}\"{}", nearest(&source, SOURCES))
                }
            };
            return Err(self.bad(span, problem, format!("sources: {}", SOURCES.join(", "))));
        }
        if from.is_empty() {
            let problem = format!("{full}: no \"from\"");
            return Err(self.bad(span, problem, "say where the value is from".to_string()));
        }
        let checked = spec.accept.convert(value.get_ref(), &unit).map_err(|problem| {
            let problem = format!("{full}: {problem}");
            self.bad(&value.span(), problem, spec.accept.describe())
        })?;
        let written = self.text[value.span()].trim_matches('"').to_string();
        Ok((checked, Parameter { name: full.to_string(), value: written, unit, source, from }))
    }

    fn field_text(
        &self,
        fields: &DeTable<'_>,
        full: &str,
        name: &str,
        span: &Range<usize>,
    ) -> Result<Option<String>, ModelError> {
        match fields.get(name).map(|value| value.get_ref()) {
            None => Ok(None),
            Some(DeValue::String(text)) => Ok(Some(text.to_string())),
            Some(other) => {
                let problem = format!("{full}: {name} is {}", article(other));
                Err(self.bad(span, problem, "it must be a text in quotes".to_string()))
            }
        }
    }

    fn top_level_text(&self, name: &str) -> Result<(String, usize), ModelError> {
        match self.root.get_key_value(name) {
            Some((key, value)) => match value.get_ref() {
                DeValue::String(text) => Ok((text.to_string(), line_of(self.text, &key.span()))),
                other => Err(self.bad(
                    &value.span(),
                    format!("{name} is {}", article(other)),
                    format!("write {name} = \"…\""),
                )),
            },
            None => Err(self.bad_line(
                1,
                format!("no {name}"),
                format!("write {name} = \"…\" before the first section"),
            )),
        }
    }

    fn bad(&self, span: &Range<usize>, problem: String, accepted: String) -> ModelError {
        self.bad_line(line_of(self.text, span), problem, accepted)
    }

    fn bad_line(&self, line: usize, problem: String, accepted: String) -> ModelError {
        ModelError::Bad { file: self.file.to_string(), line, problem, accepted }
    }
}

impl Accept {
    /// The value in base units, or what is wrong with it.
    fn convert(&self, value: &DeValue<'_>, unit: &str) -> Result<Value, String> {
        match self {
            Accept::Time(low, high) => scaled(value, unit, &TIME_UNITS, *low, *high),
            Accept::Size(low, high) => scaled(value, unit, &SIZE_UNITS, *low, *high),
            Accept::Rate(low, high) => scaled(value, unit, &RATE_UNITS, *low, *high),
            Accept::Real(low, high, expected) => {
                scaled(value, unit, &[(*expected, 1.0)], *low, *high)
            }
            Accept::Whole(low, high, expected) => {
                unit_is(unit, expected)?;
                let text = match value {
                    DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
                    other => return Err(format!("value is {}", article(other))),
                };
                let whole: u64 = text.parse().map_err(|_| format!("value {text}"))?;
                if (*low..=*high).contains(&whole) {
                    Ok(Value::Whole(whole))
                } else {
                    Err(format!("value {whole} is out of range"))
                }
            }
            Accept::Flag => match value {
                DeValue::Boolean(flag) => Ok(Value::Flag(*flag)),
                other => Err(format!("value is {}", article(other))),
            },
            Accept::Choice(choices) => match value {
                DeValue::String(text) if choices.contains(&text.as_ref()) => {
                    Ok(Value::Text(text.to_string()))
                }
                DeValue::String(text) => {
                    Err(format!("value \"{text}\"{}", nearest(text, choices.iter().copied())))
                }
                other => Err(format!("value is {}", article(other))),
            },
            Accept::File | Accept::Model => match value {
                DeValue::String(text) => Ok(Value::Text(text.to_string())),
                other => Err(format!("value is {}", article(other))),
            },
            Accept::Rows(columns, expected) => rows(value, unit, *columns, expected),
        }
    }

    /// What is accepted, as the end of an error message.
    fn describe(&self) -> String {
        let units = |units: &[(&str, f64)]| {
            let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
            names.join(", ")
        };
        match self {
            Accept::Time(low, high) => format!(
                "a time from {} to {} in one of {}",
                Duration::from_nanos(*low as u64),
                Duration::from_nanos(*high as u64),
                units(&TIME_UNITS)
            ),
            Accept::Size(low, high) => {
                format!("a size from {low} to {high} bytes in one of {}", units(&SIZE_UNITS))
            }
            Accept::Rate(low, high) => format!(
                "a rate from {} to {} MB/s in one of {}",
                low / 1e6,
                high / 1e6,
                units(&RATE_UNITS)
            ),
            Accept::Whole(low, high, unit) => {
                format!("a whole number from {low} to {high}, unit \"{unit}\"")
            }
            Accept::Real(low, high, unit) => {
                format!("a number from {low} to {high}, unit \"{unit}\"")
            }
            Accept::Flag => "true or false".to_string(),
            Accept::Choice(choices) => format!("one of {}", choices.join(", ")),
            Accept::File => "the name of a table beside the model file".to_string(),
            Accept::Model => "the name of a model".to_string(),
            Accept::Rows(columns, unit) => {
                format!("a list of rows of {columns} numbers, unit \"{unit}\"")
            }
        }
    }
}

fn scaled(
    value: &DeValue<'_>,
    unit: &str,
    units: &[(&str, f64)],
    low: f64,
    high: f64,
) -> Result<Value, String> {
    let number = number(value)?;
    let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(|| {
        format!("unit \"{unit}\"{}", nearest(unit, units.iter().map(|(name, _)| *name)))
    })?;
    let scaled = number * factor.1;
    if scaled >= low && scaled <= high {
        Ok(Value::Number(scaled))
    } else {
        Err(format!("value {number} is out of range"))
    }
}

fn rows(value: &DeValue<'_>, unit: &str, columns: usize, expected: &str) -> Result<Value, String> {
    unit_is(unit, expected)?;
    let array = value.as_array().ok_or_else(|| format!("value is {}", article(value)))?;
    let mut rows = Vec::new();
    for row in array.iter() {
        let row = row.get_ref();
        let cells = row.as_array().ok_or_else(|| format!("a row is {}", article(row)))?;
        let cells: Vec<f64> =
            cells.iter().map(|cell| number(cell.get_ref())).collect::<Result<_, _>>()?;
        if cells.len() != columns {
            return Err(format!("a row has {} numbers", cells.len()));
        }
        rows.push(cells);
    }
    Ok(Value::Rows(rows))
}

fn number(value: &DeValue<'_>) -> Result<f64, String> {
    let text = match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => return Err(format!("value is {}", article(other))),
    };
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("value {text}")),
    }
}

fn unit_is(unit: &str, expected: &str) -> Result<(), String> {
    if unit == expected { Ok(()) } else { Err(format!("unit \"{unit}\"")) }
}

fn article(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let vowel = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}

fn names_of(section: &Section) -> String {
    let names: Vec<&str> = section.specs.iter().map(|spec| spec.name).collect();
    names.join(", ")
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.as_bytes()[..span.start.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}
