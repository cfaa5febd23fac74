//! `--events`: a row for each request, and for each system call, in files.

use crate::output::{Destination, check_directory};
use lab::plan::{Plan, Row};
use lab::{Error, World, events, record};
use rows::Rows;
use std::path::{Path, PathBuf};

/// The option.
const OPTION: &str = "--events";

/// The file that is asked for, if its suffix says a kind and it can be written.
pub fn asked(file: Option<&PathBuf>) -> Result<Option<&PathBuf>, Error> {
    let Some(file) = file else { return Ok(None) };
    rows::check(file).map_err(|it| refused(file, &it))?;
    match Destination::asked(OPTION, Some(&Some(file.clone())))? {
        Some(Destination::File(_)) => Ok(Some(file)),
        _ => {
            let problem = format!("{}: it is no regular file", file.display());
            Err(Error::bad(OPTION, problem, "a file in a directory that can be written to"))
        }
    }
}

fn refused(file: &Path, cause: &rows::Error) -> Error {
    Error::bad(OPTION, format!("{}: {}", file.display(), cause.cause), cause.accepted)
}

fn failed(cause: rows::Error) -> Error {
    Error::unwritable(&cause.path, std::io::Error::other(cause.cause))
}

/// Refuses a plan of which nobody sees single requests, or of which several results would need a
/// directory that cannot be.
pub fn check_plan(plan: &Plan, seeds: &[u64], file: &Path) -> Result<(), Error> {
    if plan.rows.iter().any(|row| row.world != World::Sim) {
        let accepted = "--world sim, or --record DIR and explain DIR/RESULT";
        return Err(Error::bad(OPTION, "the world linux tells of no single request", accepted));
    }
    directory_of(plan, seeds, file).map_or(Ok(()), |it| check_directory(OPTION, &it))
}

/// The directory of several results: it is called as the file is without its suffix.
fn directory_of(plan: &Plan, seeds: &[u64], file: &Path) -> Option<PathBuf> {
    (plan.rows.len() * seeds.len() > 1).then(|| file.with_extension(""))
}

/// Writes the requests of each result. Several have a directory, in which they are called as
/// recordings are.
pub fn write(plan: &Plan, seeds: &[u64], file: &Path, with_calls: bool) -> Result<(), Error> {
    let results: Vec<(&Row, u64)> =
        plan.rows.iter().flat_map(|row| seeds.iter().map(move |seed| (row, *seed))).collect();
    let directory = directory_of(plan, seeds, file);
    if let Some(directory) = &directory {
        let made = std::fs::create_dir_all(directory);
        made.map_err(|cause| Error::unwritable(directory, cause))?;
    }
    let suffix = file.extension().unwrap_or_default().to_string_lossy();
    for (row, seed) in results {
        let name = format!("{}.{suffix}", record::directory_name(row, seed));
        let path = directory.as_ref().map_or(file.to_path_buf(), |it| it.join(name));
        write_one(plan, row, seed, &path, with_calls)?;
    }
    Ok(())
}

fn write_one(plan: &Plan, row: &Row, seed: u64, path: &Path, calls: bool) -> Result<(), Error> {
    let mut requests = Requests::create(path)?;
    let mut on_life = |life: &_| requests.add(life);
    if !calls {
        events::of(plan, row, seed, &mut on_life, None)?;
        return requests.finish();
    }
    let mut rows = Rows::of_calls(&beside(path)).map_err(failed)?;
    let mut failure = None;
    let mut on_call = |call: &_| {
        if failure.is_none() {
            failure = rows.add(call).err();
        }
    };
    events::of(plan, row, seed, &mut on_life, Some(&mut on_call))?;
    failure.map_or(Ok(()), |cause| Err(failed(cause)))?;
    rows.finish().map_err(failed)?;
    requests.finish()
}

/// The file of the calls: `NAME.calls.csv` beside `NAME.csv`.
fn beside(path: &Path) -> PathBuf {
    let suffix = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    path.with_extension(format!("calls.{suffix}"))
}

/// A file of requests; what fails first is told at the end.
pub struct Requests {
    rows: Rows<insight::Life>,
    failure: Option<rows::Error>,
}

impl Requests {
    /// Begins one.
    pub fn create(path: &Path) -> Result<Requests, Error> {
        Ok(Requests { rows: Rows::create(path).map_err(failed)?, failure: None })
    }

    /// Adds a request.
    pub fn add(&mut self, life: &insight::Life) {
        if self.failure.is_none() {
            self.failure = self.rows.add(life).err();
        }
    }

    /// It is complete.
    pub fn finish(self) -> Result<(), Error> {
        self.failure.map_or(Ok(()), |cause| Err(failed(cause)))?;
        self.rows.finish().map_err(failed)
    }
}
