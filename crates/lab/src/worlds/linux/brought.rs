//! What programs in the guest need that it has not: dbench's load file; made here from C, pgioperf
//! and a program that replays start-ups, with its script.

use super::LinuxWorld;
use super::command::Draws;
use crate::error::Error;
use base::Rng;
use programs::Program;
use programs::dbench::Dbench;
use programs::pgioperf::{self, Pgioperf};
use programs::startup::Startup;
use std::path::{Component, Path, PathBuf};

/// Where such files are: the guest mounts nothing of its own there.
const BROUGHT: &str = "/load";
const STARTUP: &str = "/startup";
const STARTUP_SOURCE: &str = include_str!("startup.c");
const PGIOPERF: &str = "/pgioperf";
const PGIOPERF_SOURCE: &str = include_str!("pgioperf.c");

impl LinuxWorld {
    /// Puts what a program needs into the root directory; `beside` is where relative names begin
    /// that are not found otherwise.
    pub(super) fn bring(&self, program: &dyn Program, beside: &Path) -> Result<(), Error> {
        if let Some(dbench) = program.downcast::<Dbench>() {
            let named = Path::new(dbench.load_file());
            let file = if named.exists() { named.to_path_buf() } else { beside.join(named) };
            let place = place(dbench.load_file());
            self.root.add_file_as(&file, &place).map_err(Error::no_linux)?;
        }
        if let Some(startup) = program.downcast::<Startup>() {
            self.compile("startup", STARTUP_SOURCE)?;
            let script = self.directory.join("script");
            let written = std::fs::write(&script, startup.script());
            written.map_err(|cause| Error::unwritable(&script, cause))?;
            let place = place(startup.list_name());
            self.root.add_file_as(&script, &place).map_err(Error::no_linux)?;
        }
        if program.is::<Pgioperf>() {
            let source = format!("{}{PGIOPERF_SOURCE}", pgioperf::definitions());
            self.compile("pgioperf", &source)?;
        }
        Ok(())
    }
}

/// Where the guest has a file of this machine.
pub(super) fn place(named: &str) -> PathBuf {
    let mut place = PathBuf::from(BROUGHT);
    for part in Path::new(named).components() {
        match part {
            Component::Normal(name) => place.push(name),
            Component::ParentDir => place.push("up"),
            _ => {}
        }
    }
    place
}

/// The command of a program that was made here.
pub(super) fn command(program: &dyn Program, draws: Draws) -> Option<Vec<String>> {
    if let Some(startup) = program.downcast() {
        return Some(startup_command(startup));
    }
    let pgioperf: &Pgioperf = program.downcast()?;
    let words = pgioperf.words(draws.job, &|name| Rng::stream(draws.seed, name));
    Some([PGIOPERF.to_string()].into_iter().chain(words).collect())
}

fn startup_command(startup: &Startup) -> Vec<String> {
    let (processes, files) = startup.files_of();
    let what = if startup.prepares() { "prepare" } else { "run" };
    let name = startup.list_name();
    let script = place(name).to_string_lossy().into_owned();
    let processes = processes.to_string();
    [STARTUP, &script, &files, &processes, what, name].map(str::to_string).to_vec()
}
