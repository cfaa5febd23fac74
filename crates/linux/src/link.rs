//! What a kernel is linked with beside its own objects and the C library: a `ptrace` between them
//! that newer hosts do not refuse.

use std::fs;
use std::path::Path;

use crate::error::BuildError;
use crate::tool::{run, tool};

/// The wrapper's source, which says why it is there.
pub(crate) const PTRACE: &str = include_str!("../ptrace.c");

/// Tells the compiler to link with it.
const SPECS: &str = "link.specs";

/// The variable of `make` that names the compiler, which links with what [`wrap_ptrace`] made.
pub(crate) fn linking_compiler(object: &Path) -> String {
    format!("CC=gcc -specs={}", object.join(SPECS).display())
}

/// Compiles the wrapper into `object`.
pub(crate) fn wrap_ptrace(object: &Path) -> Result<(), BuildError> {
    let [source, compiled, specs] = ["ptrace.c", "ptrace.o", SPECS].map(|name| object.join(name));
    let text = format!("*link:\n+ --wrap=ptrace\n\n*startfile:\n+ {}\n", compiled.display());
    for (file, text) in [(&source, PTRACE), (&specs, &text)] {
        fs::write(file, text).map_err(|cause| BuildError::file("writing", file, cause))?;
    }
    let mut compiler = tool("gcc");
    compiler.args(["-O2", "-c", "-o"]).args([&compiled, &source]);
    run("compiling what the kernel is linked with", &mut compiler).map(drop)
}
