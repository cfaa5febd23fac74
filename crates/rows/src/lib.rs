//! A row for each request: when each step of it was and what it spent in each layer, in a file
//! that others can compute with.
//!
//! The suffix of the file says how: `.csv` or `.parquet`. Columns are the same in both, whatever
//! was recorded: a layer in which a request spent nothing is zero, a step that is not known is
//! empty. All times are nanoseconds.
//!
//! Arrow's own files are not among them: its crates would take longer to build than all others
//! together, and whoever reads Arrow reads Parquet.

mod columns;
mod csv;
mod table;

use columns::COLUMNS;
use insight::Life;
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

/// A file of rows that is being written.
pub struct Rows {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    Csv(csv::Writer),
    Parquet(Box<table::Writer>),
}

impl Rows {
    /// Begins a file of the kind that its suffix says; a file that exists is overwritten.
    pub fn create(path: &Path) -> Result<Rows, Error> {
        let suffix = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        let file = || File::create(path).map_err(|cause| Error::unwritable(path, &cause));
        let failed = |cause| Error::unwritable(path, &cause);
        let sink = match suffix {
            "csv" => Sink::Csv(csv::Writer::new(file()?)),
            "parquet" => {
                let writer = table::Writer::new(file()?).map_err(failed)?;
                Sink::Parquet(Box::new(writer))
            }
            _ => {
                let (path, cause) = (path.to_path_buf(), format!("unknown suffix `{suffix}`"));
                return Err(Error { path, cause, accepted: ".csv or .parquet" });
            }
        };
        Ok(Rows { path: path.to_path_buf(), sink })
    }

    /// Adds a request.
    pub fn add(&mut self, life: &Life) -> Result<(), Error> {
        let cells = COLUMNS.iter().map(|column| (column.of)(life));
        match &mut self.sink {
            Sink::Csv(sink) => {
                sink.add(cells).map_err(|cause| Error::unwritable(&self.path, &cause))
            }
            Sink::Parquet(sink) => {
                sink.add(cells).map_err(|cause| Error::unwritable(&self.path, &cause))
            }
        }
    }

    /// Writes out what is held back.
    pub fn finish(self) -> Result<(), Error> {
        match self.sink {
            Sink::Csv(sink) => sink.finish().map_err(|cause| Error::unwritable(&self.path, &cause)),
            Sink::Parquet(sink) => {
                sink.finish().map_err(|cause| Error::unwritable(&self.path, &cause))
            }
        }
    }
}
