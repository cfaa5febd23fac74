//! `fixtures`: what tests compare with is written anew by the tests themselves. What changed is for
//! `git diff`, and is accepted by a commit.

use crate::Outcome;
use std::process::{Command, ExitCode};

/// A crate, and the variable that makes its tests write what they compare with.
const WRITERS: [(&str, &str); 5] = [
    ("paternoster-sched", "UPDATE_SCRIPTS"),
    ("paternoster-machine", "PATERNOSTER_BLESS"),
    ("paternoster-machine", "UPDATE_TABLES"),
    ("paternoster", "PATERNOSTER_BLESS"),
    ("xtask", "UPDATE_TABLES"),
];

/// Has all of them written, or those of the crates that are named.
pub fn main(crates: Vec<String>) -> Outcome {
    for (package, variable) in WRITERS {
        if !crates.is_empty() && !crates.iter().any(|it| it == package) {
            continue;
        }
        eprintln!("{variable}=1 cargo test -p {package}");
        let mut cargo = Command::new(std::env::var("CARGO").unwrap_or("cargo".to_string()));
        let status = cargo.args(["test", "--quiet", "-p", package]).env(variable, "1").status()?;
        if !status.success() {
            return Err(format!("the tests of {package} fail ({status})").into());
        }
    }
    Ok(ExitCode::SUCCESS)
}
