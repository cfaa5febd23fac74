//! The programs that commands can name.

use crate::cp::Cp;
use crate::dbench::Dbench;
use crate::dd::Dd;
use crate::dump::Dump;
use crate::fio::Fio;
use crate::lg::Lg;
use crate::pgioperf::Pgioperf;
use crate::startup::{self, Startup};
use crate::sysbench::Sysbench;
use crate::tools::Tool;
use crate::{Program, Sleep, Surroundings, Sync};
use std::sync::Arc;

/// A program that commands can name.
pub struct Entry {
    /// The word that names it.
    pub name: &'static str,
    /// What it does in a few words.
    pub does: &'static str,
    /// What its words mean.
    pub(crate) parse: Parse,
}

/// From the words behind its name, or why it would refuse them.
type Parse = fn(&[String], &Surroundings<'_>) -> Result<Arc<dyn Program>, String>;

/// All of them, by name.
pub const LIST: &[Entry] = &[
    row("cp", "copies a file of the file system", |words, around| made(Cp::parse(words), around)),
    row("dbench", "clients of a file server that repeat a load file", |words, around| {
        made(Dbench::parse(words, around), around)
    }),
    row("dd", "copies blocks from or to the disk", |words, around| made(Dd::parse(words), around)),
    row("dump", "reads a described file system with several processes", |words, around| {
        made(Dump::parse(words, around.mount.is_some()), around)
    }),
    row("fallocate", "sets room aside for a file", |words, around| {
        made(Tool::fallocate(words), around)
    }),
    row("fio", "the flexible I/O tester: job files and command lines", |words, around| {
        made(Fio::parse(words, around).map_err(|error| error.to_string()), around)
    }),
    row("lg", "the load generator of the recordings of a real 4.19", |words, around| {
        made(Lg::parse(words), around)
    }),
    row("ls", "reads directories", |words, around| made(Tool::ls(words), around)),
    row("mkdir", "makes directories", |words, around| made(Tool::mkdir(words), around)),
    row("mv", "renames files and directories", |words, around| made(Tool::mv(words), around)),
    row("pgioperf", "reads and writes as PostgreSQL does, and commits", |words, around| {
        made(Pgioperf::parse(words, around), around)
    }),
    row(startup::NAME, "reads what a program read when it started", |words, around| {
        made(Startup::parse(words, around), around)
    }),
    row("rm", "removes files, and directories with -r", |words, around| {
        made(Tool::rm(words), around)
    }),
    row("rmdir", "removes empty directories", |words, around| made(Tool::rmdir(words), around)),
    row("sleep", "does nothing for so many seconds", |words, around| {
        made(Sleep::parse(words), around)
    }),
    row("stat", "looks at files", |words, around| made(Tool::stat(words), around)),
    row("sync", "writes everything that is dirty to the disk", |words, around| {
        made(Sync::parse(words), around)
    }),
    row("sysbench", "fileio: threads that read and write a set of files", |words, around| {
        let directory = around.mount.map(|mount| mount.point.as_str());
        made(Sysbench::parse(words, directory, around.habits.sysbench), around)
    }),
    row("touch", "makes empty files, or files younger", |words, around| {
        made(Tool::touch(words), around)
    }),
    row("truncate", "makes files shorter or longer", |words, around| {
        made(Tool::truncate(words), around)
    }),
];

const fn row(name: &'static str, does: &'static str, parse: Parse) -> Entry {
    Entry { name, does, parse }
}

/// The program, with the files that it names where programs begin.
fn made<P: Program>(
    program: Result<P, String>,
    around: &Surroundings<'_>,
) -> Result<Arc<dyn Program>, String> {
    program.map(|mut it| {
        it.typed_files().into_iter().for_each(|name| *name = around.placed(name));
        Arc::new(it) as Arc<dyn Program>
    })
}
