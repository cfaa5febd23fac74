//! `replay-startup-io [--prepare] [-D DIRECTORY] LIST`: reads what a program read when it started.
//!
//! As the S suite measures how long programs take to start: each process of the recording is a
//! thread that reads a file of its own with O_DIRECT, one of them at a time. Control goes to the
//! thread that has the next read. Read-ahead is asynchronous; for other reads a thread waits, and
//! before them for what it has under way. Recorded pauses are left out. `--prepare` writes the
//! files, of 20,000,000 bytes each, in pieces of 1 MiB, and syncs.

mod list;

pub use list::List;

use crate::{Program, Surroundings};
use base::{Sector, nearest};
use list::{BUILT_IN, FILE, Place, Read};
use machine::calls::{AsyncOp, AsyncQueue, Creation, Interface};
use machine::file::Errno;
use machine::program::Running;
use machine::task::{File, IoContextOf, OpenFlags, Task};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Exit status when something went wrong.
const FAILED: i32 = 1;
/// What is written at a time.
const PIECE: u64 = 1 << 20;
const SYNOPSIS: &str = "replay-startup-io [--prepare] [-D DIRECTORY] LIST";

/// A command line, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup {
    list: Arc<List>,
    /// The list as it was named.
    name: String,
    directory: String,
    prepares: bool,
}

impl machine::Program for Startup {
    fn name(&self) -> &str {
        NAME
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

/// What it is called.
pub const NAME: &str = "replay-startup-io";

impl Program for Startup {
    fn files(&self) -> Vec<&str> {
        vec![&self.directory]
    }

    fn typed_files(&mut self) -> Vec<&mut String> {
        vec![&mut self.directory]
    }
}

impl Startup {
    /// Understands the words behind its name, or says what is wrong, and what would do.
    pub fn parse(words: &[String], around: &Surroundings<'_>) -> Result<Startup, String> {
        let (mut name, mut directory, mut prepares) = (None, ".".to_string(), false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--prepare" => prepares = true,
                "-D" => {
                    let missing =
                        || format!("{NAME}: -D without a directory; accepted: {SYNOPSIS}");
                    directory = words.next().cloned().ok_or_else(missing)?;
                }
                other if other.starts_with('-') || name.is_some() => {
                    return Err(format!("{NAME}: \"{other}\"; accepted: {SYNOPSIS}"));
                }
                other => name = Some(other.to_string()),
            }
        }
        let names = BUILT_IN.map(|(name, _)| name);
        let accepted = format!("{}, or a file", names.join(", "));
        let name = name.ok_or_else(|| format!("{NAME}: no list; accepted: {accepted}"))?;
        if around.mount.is_none() {
            return Err(format!("{NAME}: no file system; accepted: fs = \"ext4\" or \"xfs\""));
        }
        let text = text_of(&name, around).map_err(|cause| {
            let hint = nearest(&name, names);
            format!("{NAME}: list {name}: {cause}{hint}; accepted: {accepted}")
        })?;
        let list = List::parse(&name, &text).map_err(|it| format!("{NAME}: {it}"))?;
        Ok(Startup { list: Arc::new(list), name, directory, prepares })
    }

    /// Its reads as whoever does the same elsewhere needs them, a line for each: the number of the
    /// process, whether it waits, and where it reads how much of its file, in bytes.
    pub fn script(&self) -> String {
        let mut places = vec![Place::default(); self.list.processes.len()];
        let line = |read: &Read| {
            let place = places[read.process].next(read) * Sector::SIZE;
            let length = read.sectors * Sector::SIZE;
            format!("{} {} {place} {length}\n", read.process, u8::from(read.waits))
        };
        self.list.reads.iter().map(line).collect()
    }

    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        let result = match self.prepares {
            true => self.prepare(&task).await,
            false => self.start(&task).await,
        };
        let Err((path, errno)) = result else { return 0 };
        task.print(format!("{NAME}: {path}: {errno}"));
        FAILED
    }

    /// How many processes there are, and what the paths of their files begin with.
    pub fn files_of(&self) -> (usize, String) {
        let path = self.path(0);
        let stem = path.strip_suffix(".0").expect("it ends with the number of the process");
        (self.list.processes.len(), stem.to_string())
    }

    /// The list as it was named.
    pub fn list_name(&self) -> &str {
        &self.name
    }

    /// Whether it writes the files.
    pub fn prepares(&self) -> bool {
        self.prepares
    }

    fn path(&self, process: usize) -> String {
        let name = self.name.rsplit('/').next().unwrap_or_default();
        format!("{}/{name}.{process}", self.directory.trim_end_matches('/'))
    }

    async fn prepare(&self, task: &Task) -> Result<(), (String, Errno)> {
        for process in 0..self.list.processes.len() {
            let path = self.path(process);
            write_file(task, &path).await.map_err(|errno| (path, errno))?;
        }
        Ok(())
    }

    async fn start(self, task: &Task) -> Result<(), (String, Errno)> {
        let begun = task.now();
        let mut files = Vec::new();
        for process in 0..self.list.processes.len() {
            let path = self.path(process);
            let opened = task.open_file(&path, OpenFlags::direct(), Creation::READ).await;
            files.push(opened.map_err(|errno| (path, errno))?);
        }
        let reads = self.list.reads.len();
        let relay = Rc::new(Relay {
            list: self.list.clone(),
            turn: Cell::new(0),
            threads: RefCell::default(),
        });
        let mut threads = Vec::new();
        for (process, file) in files.into_iter().enumerate() {
            let relay = relay.clone();
            threads.push(task.spawn(NAME, IoContextOf::Itself, |task| async move {
                match relay.run(&task, process, file).await {
                    Ok(()) => 0,
                    Err(_) => FAILED,
                }
            }));
        }
        relay.threads.replace(threads.clone());
        for (process, thread) in threads.into_iter().enumerate() {
            if task.join(thread).await != 0 {
                return Err((self.path(process), Errno::Einval));
            }
        }
        let took = task.now().since(begun).as_micros();
        let (millis, micros) = (took / 1_000, took % 1_000);
        task.print(format!("{}: {reads} reads in {millis}.{micros:03} ms", self.name));
        Ok(())
    }
}

/// The text of a list.
fn text_of(name: &str, around: &Surroundings<'_>) -> std::io::Result<String> {
    match BUILT_IN.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(text.to_string()),
        None => (around.read_file)(Path::new(name)),
    }
}

async fn write_file(task: &Task, path: &str) -> Result<(), Errno> {
    let file = task.open_file(path, OpenFlags::default(), Creation::WRITE).await?;
    let mut at = 0;
    while at < FILE {
        at += task.pwrite(&file, at, PIECE.min(FILE - at)).await?;
    }
    task.fsync(&file).await?;
    task.close(&file).await;
    Ok(())
}

/// Whose turn it is.
struct Relay {
    list: Arc<List>,
    turn: Cell<usize>,
    threads: RefCell<Vec<block::ContextId>>,
}

impl Relay {
    /// A thread: does its turns when they come, and waits for what is under way in the end.
    async fn run(&self, task: &Task, process: usize, file: File) -> Result<(), Errno> {
        let mut queue = task.async_queue(Interface::Libaio);
        let mut place = Place::default();
        let turns = self.list.turns();
        for (number, turn) in turns.iter().enumerate() {
            if turn[0].process != process {
                continue;
            }
            while self.turn.get() != number {
                task.notified().await;
            }
            let result = self.read(task, &mut queue, &file, &mut place, turn).await;
            self.turn.set(number + 1);
            if let Some(next) = turns.get(number + 1) {
                task.notify(self.threads.borrow()[next[0].process]);
            }
            result?;
        }
        wait_for_all(&mut queue).await
    }

    async fn read(
        &self,
        task: &Task,
        queue: &mut AsyncQueue,
        file: &File,
        place: &mut Place,
        turn: &[Read],
    ) -> Result<(), Errno> {
        for read in turn {
            let at = place.next(read) * Sector::SIZE;
            let length = read.sectors * Sector::SIZE;
            if read.waits {
                wait_for_all(queue).await?;
                task.pread(file, at, length).await?;
            } else {
                queue.prepare(file, AsyncOp::Read, at, length, 0, None);
                queue.submit().await;
            }
        }
        Ok(())
    }
}

async fn wait_for_all(queue: &mut AsyncQueue) -> Result<(), Errno> {
    let mut reaped = Vec::new();
    let all = queue.in_flight();
    if all > 0 {
        queue.reap(all, all, None, &mut reaped).await;
    }
    reaped.into_iter().try_for_each(|it| it.result.map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Mount;

    fn parse(line: &str, mount: Option<&Mount>) -> Result<Startup, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let read_file = |path: &Path| match path.to_str() {
            Some("own") => Ok("a RA 8 8\na RA 16 8\nb RM 0 8\na R 800 8\n".to_string()),
            Some("bad") => Ok("a RA 8\n".to_string()),
            _ => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        };
        let around = Surroundings {
            page_size: 4096,
            ncpus: 1,
            mb_memory: 512,
            mount,
            habits: &guest::Profile::uml().habits,
            environment: &|_| None,
            read_file: &read_file,
        };
        Startup::parse(&words, &around)
    }

    #[test]
    fn a_list_is_a_script_of_places_in_files() {
        let mount = Mount::default();
        let own = parse("-D /mnt/x own", Some(&mount)).unwrap();
        assert_eq!(own.script(), "0 0 4096 4096\n0 0 8192 4096\n1 1 0 4096\n0 1 409600 4096\n");
        assert_eq!(own.files_of(), (2, "/mnt/x/own".to_string()));
        assert!(!own.prepares() && parse("--prepare xterm", Some(&mount)).unwrap().prepares());
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_would_do() {
        let mount = Mount::default();
        for (line, said) in [
            ("", "replay-startup-io: no list; accepted: emacs, lowriter, vim, xterm, or a file"),
            ("xterm vim", "replay-startup-io: \"vim\"; accepted: replay-startup-io"),
            ("-x xterm", "replay-startup-io: \"-x\"; accepted: replay-startup-io"),
            ("xterm -D", "replay-startup-io: -D without a directory; accepted: "),
            ("xtrm", "replay-startup-io: list xtrm: "),
            ("bad", "replay-startup-io: bad:1: \"a RA 8\"; accepted: PROCESS"),
        ] {
            let refusal = parse(line, Some(&mount)).unwrap_err();
            assert!(refusal.starts_with(said), "{line}: {refusal}");
        }
        assert!(parse("xterm", None).unwrap_err().contains("no file system"));
    }
}
