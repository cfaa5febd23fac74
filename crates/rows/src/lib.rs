//! A row for each request, or for each system call: when each step of it was and what it spent in
//! each layer, in a file that others can compute with.
//!
//! The suffix of the file says how: `.csv` or `.parquet`. Columns are the same in both, whatever
//! was recorded: a layer in which a request spent nothing is zero, a step that is not known is
//! empty. All times are nanoseconds.
//!
//! Arrow's own files are not among them: its crates would take longer to build than all others
//! together, and whoever reads Arrow reads Parquet.

mod calls;
mod columns;
mod csv;
mod table;

use columns::Column;
use insight::{Call, Life};
use std::fs::File;
use std::path::{Path, PathBuf};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}; accepted: {accepted}", path.display())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// What went wrong.
    pub cause: String,
    /// What is accepted instead.
    pub accepted: &'static str,
}

impl Error {
    fn unwritable(path: &Path, cause: &dyn std::fmt::Display) -> Error {
        let accepted = "a file that can be written to";
        Error { path: path.to_path_buf(), cause: cause.to_string(), accepted }
    }
}

/// A file of rows that is being written. It has its name when it is complete, and not before.
pub struct Rows<T: 'static> {
    path: PathBuf,
    unfinished: PathBuf,
    columns: Vec<Column<T>>,
    sink: Option<Sink>,
}

enum Sink {
    Csv(csv::Writer),
    Parquet(Box<table::Writer>),
}

/// What the suffix of a file says.
#[derive(Clone, Copy)]
enum Form {
    Csv,
    Parquet,
}

/// Refuses a file of which the suffix says nothing.
pub fn check(path: &Path) -> Result<(), Error> {
    form_of(path).map(drop)
}

fn form_of(path: &Path) -> Result<Form, Error> {
    match path.extension().and_then(|it| it.to_str()).unwrap_or_default() {
        "csv" => Ok(Form::Csv),
        "parquet" => Ok(Form::Parquet),
        suffix => {
            let (path, cause) = (path.to_path_buf(), format!("unknown suffix `{suffix}`"));
            Err(Error { path, cause, accepted: ".csv or .parquet" })
        }
    }
}

impl Rows<Life> {
    /// Begins a file of requests, of the kind that its suffix says; one that exists is replaced.
    pub fn create(path: &Path) -> Result<Rows<Life>, Error> {
        Rows::of(path, columns::columns())
    }
}

impl Rows<Call> {
    /// Begins a file of system calls.
    pub fn of_calls(path: &Path) -> Result<Rows<Call>, Error> {
        Rows::of(path, calls::columns())
    }
}

impl<T> Rows<T> {
    fn of(path: &Path, columns: Vec<Column<T>>) -> Result<Rows<T>, Error> {
        let form = form_of(path)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let unfinished = path.with_file_name(name);
        let file = File::create(&unfinished).map_err(|cause| Error::unwritable(path, &cause))?;
        let heads: Vec<_> = columns.iter().map(|it| (it.name, it.kind)).collect();
        let mut rows = Rows { path: path.to_path_buf(), unfinished, columns, sink: None };
        rows.sink = Some(match form {
            Form::Csv => Sink::Csv(csv::Writer::new(file, heads.iter().map(|it| it.0).collect())),
            Form::Parquet => {
                let writer = table::Writer::new(file, heads);
                Sink::Parquet(Box::new(writer.map_err(|cause| Error::unwritable(path, &cause))?))
            }
        });
        Ok(rows)
    }

    /// Adds a request or a call.
    pub fn add(&mut self, of: &T) -> Result<(), Error> {
        let cells = self.columns.iter().map(|column| column.of(of));
        match &mut self.sink {
            Some(Sink::Csv(sink)) => {
                sink.add(cells).map_err(|cause| Error::unwritable(&self.path, &cause))
            }
            Some(Sink::Parquet(sink)) => {
                sink.add(cells).map_err(|cause| Error::unwritable(&self.path, &cause))
            }
            None => Ok(()),
        }
    }

    /// Writes out what is held back, and gives the file its name.
    pub fn finish(mut self) -> Result<(), Error> {
        let path = self.path.clone();
        match self.sink.take() {
            Some(Sink::Csv(sink)) => {
                sink.finish().map_err(|cause| Error::unwritable(&path, &cause))?;
            }
            Some(Sink::Parquet(sink)) => {
                sink.finish().map_err(|cause| Error::unwritable(&path, &cause))?;
            }
            None => {}
        }
        std::fs::rename(&self.unfinished, &path).map_err(|cause| Error::unwritable(&path, &cause))
    }
}

impl<T> Drop for Rows<T> {
    /// Nothing is left of a file that is not complete.
    fn drop(&mut self) {
        // There is nobody left to tell that cleaning up failed; what has its name is not there.
        let _ = std::fs::remove_file(&self.unfinished);
    }
}
