//! Reading a file of parameters: every one is checked against the schema and keeps its source.

use crate::accept::{Value, article};
use crate::error::Error;
use crate::schema::{Format, Parameter, SOURCES, Section, Spec};
use crate::source::Source;
use crate::table::{Place, Table};
use base::nearest;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The fields of a parameter; the last one only in files whose parameters are dated.
const FIELDS: [&str; 5] = ["value", "unit", "source", "from", "date"];

/// A file that is TOML, has its texts at the top, and may have any sections.
pub struct Document<'t> {
    format: &'static Format,
    source: Source<'t>,
    file: Arc<str>,
    root: DeTable<'t>,
    heads: Vec<(&'static str, String, usize)>,
}

impl<'t> Document<'t> {
    /// Reads the text of a file; `file` stands for it in messages.
    ///
    /// # Errors
    ///
    /// It is no TOML, or lacks a text at its top.
    pub fn parse(format: &'static Format, file: &'t str, text: &'t str) -> Result<Self, Error> {
        let source = Source::new(file, text);
        let root = source.parse().map_err(|wrong| Error::Bad {
            file: file.to_string(),
            line: source.line(&wrong.span),
            problem: wrong.problem,
            accepted: format!("a {} file is TOML 1.0", format.what),
        })?;
        let mut document = Document { format, source, file: file.into(), root, heads: Vec::new() };
        for (name, is_required) in format.heads {
            let head = document.read_head(name, *is_required)?;
            document.heads.extend(head);
        }
        Ok(document)
    }

    /// The text under a name at the top, and empty where it may be missing and is.
    pub fn head(&self, name: &str) -> &str {
        self.heads.iter().find(|head| head.0 == name).map_or("", |head| &head.1)
    }

    /// An error about a text at the top.
    pub fn refuse_head(&self, name: &str, problem: String, accepted: String) -> Error {
        self.bad_line(self.head_line(name), problem, accepted)
    }

    /// Checks everything against a schema. Messages call the file `whose`, such as `a host`.
    ///
    /// # Errors
    ///
    /// The first thing that is not as it must be, with its place.
    pub fn check(
        &self,
        schema: &[&Section],
        whose: &str,
    ) -> Result<(Table, Vec<Parameter>), Error> {
        self.check_over((Table::new(), Vec::new()), schema, whose)
    }

    /// The same for a file that states what differs from another one, of which this is known.
    ///
    /// # Errors
    ///
    /// The first thing that is not as it must be, with its place.
    pub fn check_over(
        &self,
        (mut table, listed): (Table, Vec<Parameter>),
        schema: &[&Section],
        whose: &str,
    ) -> Result<(Table, Vec<Parameter>), Error> {
        let mut listed: Vec<(usize, Parameter)> = listed.into_iter().enumerate().collect();
        for (key, value) in &self.root {
            let name: &str = key.get_ref();
            if self.format.heads.iter().any(|(head, _)| *head == name) {
                continue;
            }
            let section = schema.iter().find(|section| section.name == name).ok_or_else(|| {
                let names: Vec<&str> = schema.iter().map(|section| section.name).collect();
                let hint = nearest(name, names.iter().copied());
                let accepted = format!("sections of {whose}: {}", names.join(", "));
                self.bad(&key.span(), format!("unknown section [{name}]{hint}"), accepted)
            })?;
            self.check_section(section, key.span(), value, &mut table, &mut listed)?;
        }
        for section in schema {
            if section.required && !table.has(section.name) {
                let line = self.heads.first().map_or(1, |head| head.2);
                let problem = format!("missing section [{}]", section.name);
                return Err(self.bad_line(
                    line,
                    problem,
                    format!("{whose} has [{}]", section.name),
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
    ) -> Result<(), Error> {
        let entries = value.get_ref().as_table().ok_or_else(|| {
            let problem = format!("{} is not a section", section.name);
            self.bad(&span, problem, format!("write [{}]", section.name))
        })?;
        for (key, entry) in entries {
            let name: &str = key.get_ref();
            let spec = section.specs.iter().find(|spec| spec.name == name).ok_or_else(|| {
                let hint = nearest(name, section.specs.iter().map(|spec| spec.name));
                let problem = format!("unknown parameter \"{}.{name}\"{hint}", section.name);
                let accepted = format!("[{}] has {}", section.name, names_of(section));
                self.bad(&key.span(), problem, accepted)
            })?;
            let full = format!("{}.{name}", section.name);
            let (value, parameter) = self.check_entry(spec, &full, &key.span(), entry)?;
            match listed.iter_mut().find(|(_, known)| known.name == full) {
                Some((_, known)) => *known = parameter,
                None => listed.push((key.span().start, parameter)),
            }
            let line = self.source.line(&key.span());
            table.insert(full, Place { file: self.file.clone(), line }, value);
        }
        for spec in section.specs {
            let full = format!("{}.{}", section.name, spec.name);
            if !table.contains(&full) {
                let accepted = format!("add {} with {}", self.form(spec), spec.accept.describe());
                return Err(self.bad(&span, format!("missing parameter \"{full}\""), accepted));
            }
        }
        table.note_section(section.name);
        Ok(())
    }

    fn check_entry(
        &self,
        spec: &Spec,
        full: &str,
        span: &Range<usize>,
        entry: &Spanned<DeValue<'_>>,
    ) -> Result<(Value, Parameter), Error> {
        let fields = entry.get_ref().as_table().ok_or_else(|| {
            let problem = format!("{full} is a bare value");
            self.bad(span, problem, format!("write {}", self.form(spec)))
        })?;
        let known = self.fields();
        for (key, _) in fields {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let hint = nearest(name, known.iter().copied());
                let problem = format!("{full}: unknown field \"{name}\"{hint}");
                return Err(self.bad(&key.span(), problem, known.join(", ")));
            }
        }
        let value = fields
            .get("value")
            .ok_or_else(|| self.bad(span, format!("{full}: no value"), spec.accept.describe()))?;
        let text = |name| self.field_text(fields, full, name, span);
        let (unit, source, from, date) =
            (text("unit")?, text("source")?, text("from")?, text("date")?);
        self.check_provenance(full, span, &source, &from, &date)?;
        let checked = spec.accept.convert(value.get_ref(), &unit).map_err(|problem| {
            let problem = format!("{full}: {problem}");
            self.bad(&value.span(), problem, spec.accept.describe())
        })?;
        let written = self.source.written(value.span()).trim_matches('"').to_string();
        let name = full.to_string();
        Ok((checked, Parameter { name, value: written, unit, source, from, date }))
    }

    /// Whether it is said where a value is from, and when it was seen.
    fn check_provenance(
        &self,
        full: &str,
        span: &Range<usize>,
        source: &str,
        from: &str,
        date: &str,
    ) -> Result<(), Error> {
        if !SOURCES.contains(&source) {
            let problem = match source {
                "" => format!("{full}: no source"),
                _ => format!("{full}: source \"{source}\"{}", nearest(source, SOURCES)),
            };
            return Err(self.bad(span, problem, format!("sources: {}", SOURCES.join(", "))));
        }
        if from.is_empty() {
            let problem = format!("{full}: no \"from\"");
            return Err(self.bad(span, problem, "say where the value is from".to_string()));
        }
        if self.format.is_dated && !is_date(date) {
            let problem = format!("{full}: date \"{date}\"");
            let accepted = "say when it was seen, such as date = \"2026-11-20\"".to_string();
            return Err(self.bad(span, problem, accepted));
        }
        Ok(())
    }

    fn fields(&self) -> &'static [&'static str] {
        if self.format.is_dated { &FIELDS } else { &FIELDS[..FIELDS.len() - 1] }
    }

    /// How a parameter is written.
    fn form(&self, spec: &Spec) -> String {
        let fields: Vec<String> = self.fields().iter().map(|it| format!("{it} = …")).collect();
        format!("{} = {{ {} }}", spec.name, fields.join(", "))
    }

    /// A field of a parameter; empty when it is missing.
    fn field_text(
        &self,
        fields: &DeTable<'_>,
        full: &str,
        name: &str,
        span: &Range<usize>,
    ) -> Result<String, Error> {
        match fields.get(name).map(|value| value.get_ref()) {
            None => Ok(String::new()),
            Some(DeValue::String(text)) => Ok(text.to_string()),
            Some(other) => {
                let problem = format!("{full}: {name} is {}", article(other));
                Err(self.bad(span, problem, "it must be a text in quotes".to_string()))
            }
        }
    }

    fn read_head(
        &self,
        name: &'static str,
        is_required: bool,
    ) -> Result<Option<(&'static str, String, usize)>, Error> {
        match self.root.get_key_value(name) {
            Some((key, value)) => match value.get_ref() {
                DeValue::String(text) => {
                    Ok(Some((name, text.to_string(), self.source.line(&key.span()))))
                }
                other => {
                    let problem = format!("{name} is {}", article(other));
                    Err(self.bad(&value.span(), problem, format!("write {name} = \"…\"")))
                }
            },
            None if !is_required => Ok(None),
            None => {
                let accepted = format!("write {name} = \"…\" before the first section");
                Err(self.bad_line(1, format!("no {name}"), accepted))
            }
        }
    }

    fn head_line(&self, name: &str) -> usize {
        self.heads.iter().find(|head| head.0 == name).map_or(1, |head| head.2)
    }

    fn bad(&self, span: &Range<usize>, problem: String, accepted: String) -> Error {
        self.bad_line(self.source.line(span), problem, accepted)
    }

    fn bad_line(&self, line: usize, problem: String, accepted: String) -> Error {
        Error::Bad { file: self.source.file.to_string(), line, problem, accepted }
    }
}

fn names_of(section: &Section) -> String {
    let names: Vec<&str> = section.specs.iter().map(|spec| spec.name).collect();
    names.join(", ")
}

/// Whether it is written as 2026-11-20.
fn is_date(text: &str) -> bool {
    let digits =
        |part: &str, count| part.len() == count && part.bytes().all(|it| it.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
}
