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
        let (source, program) = (self.directory.join("load.c"), self.directory.join("load"));
        std::fs::write(&source, SOURCE).map_err(|cause| Error::unwritable(&source, cause))?;
        let mut compiler = Command::new("cc");
        let compiler = compiler.args(["-O2", "-static", "-o"]).arg(&program).arg(&source);
        let output = compiler.output().map_err(|cause| {
            let hint = "on Debian: apt-get install gcc libc6-dev";
            Error::linux(format!("cc, which compiles the load: {cause}; {hint}"))
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::linux(format!("cc cannot compile the load: {}", said.trim())));
        }
        Ok("/load")
    }
}
