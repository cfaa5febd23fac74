//! `tidy`: what a reviewer should not have to look for. Each check is a function on a tree of
//! files. What is allowed all the same is in `xtask/tidy.toml`, with the reason.

mod allowed;
pub mod circles;
mod crates;
mod items;
mod links;
mod results;
mod text;
mod tree;

use crate::Outcome;
use std::path::Path;
use std::process::ExitCode;
use tree::Tree;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Complaint {
    check: &'static str,
    path: String,
    /// From one; zero stands for the whole file.
    line: usize,
    text: String,
}

impl Complaint {
    fn new(check: &'static str, path: &str, line: usize, text: impl Into<String>) -> Complaint {
        Complaint { check, path: path.to_string(), line, text: text.into() }
    }
}

/// What looks at a tree and complains.
type Check = fn(&Tree) -> Vec<Complaint>;

const CHECKS: [Check; 12] = [
    crates::unused_dependencies,
    crates::arrows_up,
    items::dead,
    circles::across_rooms,
    links::dead,
    results::stale,
    text::long_lines,
    text::version_comparisons,
    text::names_of_one_guest,
    text::old_words,
    text::comments_in_documentation,
    text::machine_paths,
];

/// Runs the command on the directory named, or on the one it is started in.
pub fn main(arguments: Vec<String>) -> Outcome {
    let root = arguments.first().map_or(".", String::as_str);
    let tree = Tree::read(Path::new(root))?;
    let mut allowed = allowed::Allowed::of(&tree)?;
    let mut complaints: Vec<Complaint> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    complaints.retain(|it| !allowed.covers(it));
    for Complaint { check, path, line, text } in &complaints {
        println!("{path}:{line}: {check}: {text}");
    }
    allowed.unused().for_each(|it| eprintln!("xtask/tidy.toml: no complaint needs {it}"));
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
