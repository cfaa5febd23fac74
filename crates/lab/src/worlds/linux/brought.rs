//! Files of this machine that programs in the guest read and that are no jobs: dbench's load file.

use crate::error::Error;
use linux::Root;
use programs::Program;
use programs::dbench::Dbench;
use std::path::{Component, Path, PathBuf};

/// Where files are that cannot keep their place, as the guest mounts something of its own there.
const BROUGHT: &str = "/load";

/// Puts the files that a program reads into the root directory; `beside` is where relative names
/// begin that are not found otherwise.
pub(super) fn bring(root: &Root, program: &dyn Program, beside: &Path) -> Result<(), Error> {
    let Some(dbench) = program.downcast::<Dbench>() else { return Ok(()) };
    let named = Path::new(dbench.load_file());
    let file = if named.exists() { named.to_path_buf() } else { beside.join(named) };
    root.add_file_as(&file, &place(dbench)).map_err(Error::no_linux)
}

/// Where the guest has the load file.
pub(super) fn place(dbench: &Dbench) -> PathBuf {
    let mut place = PathBuf::from(BROUGHT);
    for part in Path::new(dbench.load_file()).components() {
        match part {
            Component::Normal(name) => place.push(name),
            Component::ParentDir => place.push("up"),
            _ => {}
        }
    }
    place
}
