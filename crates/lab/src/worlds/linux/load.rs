//! A load that needs little of a guest: a small program made here, from C, when it is wanted.
//!
//! fio looks at the clock a dozen times a request, which a guest in virtual time pays for with a
//! trap each. `load.c` does not, and so makes several times as many requests a second. What it does
//! follows from a seed.

use super::LinuxWorld;
use crate::error::Error;
use std::process::Command;

const SOURCE: &str = include_str!("load.c");

impl LinuxWorld {
    /// Puts the program into the root directory. The command that starts it.
    pub fn add_load(&self) -> Result<&'static str, Error> {
        self.compile("load", SOURCE)?;
        Ok("/load")
    }

    /// Makes a program of this name in the root directory, if it is not there.
    pub(super) fn compile(&self, name: &str, text: &str) -> Result<(), Error> {
        let source = self.directory.join(format!("{name}.c"));
        let program = self.directory.join(name);
        if program.exists() {
            return Ok(());
        }
        std::fs::write(&source, text).map_err(|cause| Error::unwritable(&source, cause))?;
        let mut compiler = Command::new("cc");
        let compiler = compiler.args(["-O2", "-static", "-o"]).arg(&program).arg(&source);
        let output = compiler.output().map_err(|cause| {
            let hint = "on Debian: apt-get install gcc libc6-dev";
            Error::linux(format!("cc, which compiles {name}.c: {cause}; {hint}"))
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::linux(format!("cc cannot compile {name}.c: {}", said.trim())));
        }
        Ok(())
    }
}
