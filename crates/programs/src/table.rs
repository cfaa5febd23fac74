//! The programs that commands can name.

use crate::cp::Cp;
use crate::dd::Dd;
use crate::dump::Dump;
use crate::fio::Fio;
use crate::lg::Lg;
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
    row("cp", "copies a file of the file system", |words, _| made(Cp::parse(words))),
    row("dd", "copies blocks from or to the disk", |words, _| made(Dd::parse(words))),
    row("dump", "reads a described file system with several processes", |words, around| {
        made(Dump::parse(words, around.mount.is_some()))
    }),
    row("fallocate", "sets room aside for a file", |words, _| made(Tool::fallocate(words))),
    row("fio", "the flexible I/O tester: job files and command lines", |words, around| {
        made(Fio::parse(words, around).map_err(|error| error.to_string()))
    }),
    row("lg", "the load generator of the recordings of a real 4.19", |words, _| {
        made(Lg::parse(words))
    }),
    row("ls", "reads directories", |words, _| made(Tool::ls(words))),
    row("mkdir", "makes directories", |words, _| made(Tool::mkdir(words))),
    row("mv", "renames files and directories", |words, _| made(Tool::mv(words))),
    row("rm", "removes files, and directories with -r", |words, _| made(Tool::rm(words))),
    row("rmdir", "removes empty directories", |words, _| made(Tool::rmdir(words))),
    row("sleep", "does nothing for so many seconds", |words, _| made(Sleep::parse(words))),
    row("stat", "looks at files", |words, _| made(Tool::stat(words))),
    row("sync", "writes everything that is dirty to the disk", |words, _| made(Sync::parse(words))),
    row("sysbench", "fileio: threads that read and write a set of files", |words, around| {
        let directory = around.mount.map(|mount| mount.point.as_str());
        made(Sysbench::parse(words, directory, around.habits.sysbench))
    }),
    row("touch", "makes empty files, or files younger", |words, _| made(Tool::touch(words))),
    row("truncate", "makes files shorter or longer", |words, _| made(Tool::truncate(words))),
];

const fn row(name: &'static str, does: &'static str, parse: Parse) -> Entry {
    Entry { name, does, parse }
}

fn made<P: Program>(program: Result<P, String>) -> Result<Arc<dyn Program>, String> {
    program.map(|it| Arc::new(it) as Arc<dyn Program>)
}
