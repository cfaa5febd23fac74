//! Programs of the host that a build needs.

use std::process::{Command, Stdio};

use crate::error::BuildError;
use crate::launch::ends_with_us;
use crate::rootfs::{find_program, program_directories};

/// A program of the host that finds others where we do.
pub(crate) fn tool(name: &str) -> Command {
    let mut command = Command::new(find_program(name).unwrap_or(name.into()));
    // None of the directories has a colon in it, as they were cut at colons.
    let path = std::env::join_paths(program_directories()).unwrap_or_default();
    command.env("PATH", path).env("LC_ALL", "C").stdin(Stdio::null());
    ends_with_us(&mut command);
    command
}

/// Runs a command to its end and returns what it wrote.
pub(crate) fn run(step: &'static str, command: &mut Command) -> Result<String, BuildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|cause| BuildError::start(&program, cause))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(BuildError::step(step, command, output.status, &text))
        }
    }
}
