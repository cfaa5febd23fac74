//! Where a recording lies, and its records of one device.

use super::manifest::Manifest;
use super::setup::Options;
use crate::error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace::blktrace::{Action, DevT, Record};

/// A recording that was found.
pub struct Found {
    /// What to call it.
    pub name: String,
    /// What lies beside it.
    pub manifest: Option<Manifest>,
    /// A file, or the name that its files have in common.
    base: PathBuf,
}

const ACCEPTED: &str = "a blktrace file, NAME where NAME.blktrace.0 exists, or a folder with one \
                        recording";

/// Finds the recording that a path means.
pub fn find(path: &Path) -> Result<Found, Error> {
    let name = path.display().to_string();
    let (folder, base) = if path.is_dir() {
        (path.to_path_buf(), only_recording(path)?)
    } else {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        (folder.unwrap_or(Path::new(".")).to_path_buf(), path.to_path_buf())
    };
    Ok(Found { name, manifest: Manifest::beside(&folder)?, base })
}

/// The recording in a folder, if there is exactly one.
fn only_recording(folder: &Path) -> Result<PathBuf, Error> {
    let entries = std::fs::read_dir(folder).map_err(|cause| Error::unreadable(folder, cause))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.split_once(".blktrace.")?.0.to_string()))
        .collect();
    names.sort();
    names.dedup();
    match &names[..] {
        [one] => Ok(folder.join(one)),
        [] => Err(Error::bad(folder.display().to_string(), "no recording in it", ACCEPTED)),
        several => {
            let problem = format!("recordings of {}", several.join(", "));
            Err(Error::bad(folder.display().to_string(), problem, ACCEPTED))
        }
    }
}

/// Gives the records of the one device to `take`; returns what a reader should know.
pub fn read(
    found: &Found,
    options: &Options,
    mut take: impl FnMut(&Record),
) -> Result<Vec<String>, Error> {
    let mut records = trace::read_records(&found.base)?;
    let wanted = options.device.as_deref();
    let mut devices: BTreeMap<DevT, u64> = BTreeMap::new();
    for record in records.by_ref() {
        let record = record?;
        if record.action.is_note() || record.action == Action::Remap {
            continue;
        }
        *devices.entry(record.device).or_insert(0) += 1;
        let is_wanted = wanted.is_none_or(|name| record.device.to_string() == name);
        if is_wanted {
            take(&record);
        }
    }
    check_devices(found, wanted, &devices)?;
    let mut remarks = Vec::new();
    if records.lost() > 0 {
        remarks.push(format!("{} events were lost when it was recorded", records.lost()));
    }
    for (name, torn) in records.torn() {
        remarks.push(format!("{name} ends within a record at byte {}", torn.offset));
    }
    Ok(remarks)
}

fn check_devices(
    found: &Found,
    wanted: Option<&str>,
    devices: &BTreeMap<DevT, u64>,
) -> Result<(), Error> {
    let names: Vec<String> = devices.keys().map(DevT::to_string).collect();
    let accepted = format!("--trace-device with one of {}", names.join(" "));
    match wanted {
        Some(name) if !names.iter().any(|it| it == name) => {
            Err(Error::bad(&found.name, format!("no device {name} in it"), accepted))
        }
        None if names.len() > 1 => {
            Err(Error::bad(&found.name, format!("records of {} devices", names.len()), accepted))
        }
        None if names.is_empty() => {
            Err(Error::bad(&found.name, "no events in it", "a recording with events"))
        }
        _ => Ok(()),
    }
}
