//! Mutants that no input can show: a list of them, each with the reason.
//!
//! An entry of `equivalent.txt` names a file, the line of the mutant as it is written there, the
//! mutant, and why. Lines before that one may be given too, in a row. What is listed and not there
//! is an error: the code has changed, and the reason may not hold any more.

use crate::Outcome;
use crate::plant::Mutant;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The numbers of those that are listed, of files that are planted.
pub fn numbers(root: &Path, files: &[String], mutants: &[Mutant]) -> Outcome<BTreeSet<u32>> {
    let listed = fs::read_to_string(root.join("mutants/equivalent.txt"))?;
    let mut sources = BTreeMap::new();
    for file in files {
        sources.insert(file.as_str(), fs::read_to_string(root.join(file))?);
    }
    let mut found = BTreeSet::new();
    for entry in listed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let parts: Vec<&str> = entry.split(" | ").collect();
        let [file, line, what, _reason] = parts[..] else {
            return Err(format!("equivalent.txt: not four parts: {entry}").into());
        };
        let Some(source) = sources.get(file) else { continue };
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let wanted: Vec<&str> = line.split(" / ").collect();
        let is_meant = |it: &&Mutant| {
            it.file == file && it.line >= wanted.len() && lines[..it.line].ends_with(&wanted)
        };
        let numbers: Vec<u32> = mutants
            .iter()
            .filter(is_meant)
            .filter(|it| it.what.starts_with(what))
            .map(|it| it.number)
            .collect();
        if numbers.is_empty() {
            return Err(format!("equivalent.txt: no such mutant: {entry}").into());
        }
        found.extend(numbers);
    }
    Ok(found)
}
