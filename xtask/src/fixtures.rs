//! `fixtures`: what tests compare with is written anew by the tests themselves. What changed is for
//! `git diff`, and is accepted by a commit.

use crate::Outcome;
use std::process::{Command, ExitCode};

/// A crate, and those of its tests that compare with goldens, scripts, recordings or tables.
const WRITERS: [(&str, &[&str]); 7] = [
    ("paternoster-sched", &["--test", "scripts", "--test", "loads"]),
    ("paternoster-machine", &["--test", "machine"]),
    ("paternoster-programs", &["--lib", "the_table_of"]),
    ("paternoster-programs", &["--test", "fio_oracle"]),
    ("paternoster-programs", &["--test", "fio_streams"]),
    ("paternoster-lab", &["--test", "docs"]),
    ("paternoster", &["--test", "end_to_end"]),
];

/// Has all of them written, or those of the crates that are named.
pub fn main(crates: Vec<String>) -> Outcome {
    for (package, tests) in WRITERS {
        if !crates.is_empty() && !crates.iter().any(|it| it == package) {
            continue;
        }
        eprintln!("UPDATE_EXPECT=1 cargo test -p {package} {}", tests.join(" "));
        let mut cargo = Command::new(std::env::var("CARGO").unwrap_or("cargo".to_string()));
        cargo.args(["test", "--quiet", "-p", package]).args(tests).env("UPDATE_EXPECT", "1");
        let status = cargo.status()?;
        if !status.success() {
            return Err(format!("the tests of {package} fail ({status})").into());
        }
    }
    Ok(ExitCode::SUCCESS)
}
