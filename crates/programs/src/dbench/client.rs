//! A client of dbench: executes the load file, line by line, over and over.
//!
//! What each operation calls was seen with strace of 4.00 (rules dbench). Before each it asks
//! whether its parent is there, and before and after it looks at the time. A name that is not there
//! is looked for among all names of its directory, whatever their case, as Samba does.

use super::loadfile::{Disposition, Line, NameId, Operation};
use super::options::Dbench;
use super::report::{KINDS, Tally};
use base::{Duration, Instant};
use machine::calls::Creation;
use machine::file::Errno;
use machine::task::{File, OpenFlags, Task};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// Looks at the clock before an operation, and one more once data have moved (gettimeofday).
const LOOKS_BEFORE: u32 = 2;

/// What a client and its parent know of each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Bytes that reads and writes asked for, since the warm-up.
    pub bytes: u64,
    /// Whether there ever were any.
    pub is_active: bool,
    /// Lines that were executed, of all passes.
    pub lines: u64,
    /// The longest operation since the last second, and when the current one began.
    pub longest: Duration,
    pub tallies: [Tally; KINDS.len()],
    /// How long each whole pass took.
    pub passes: Vec<Duration>,
    /// The time is over.
    pub must_end: bool,
}

/// Why a client gives up.
pub(super) struct Failure;

/// An open file of a client, and its path.
struct Open {
    file: File,
    path: String,
}

pub(super) struct Client {
    task: Task,
    options: Rc<Dbench>,
    progress: Rc<RefCell<Progress>>,
    paths: Vec<String>,
    own: String,
    handles: BTreeMap<u32, Open>,
}

impl Client {
    pub fn new(
        task: Task,
        options: Rc<Dbench>,
        progress: Rc<RefCell<Progress>>,
        number: u64,
    ) -> Client {
        let directory = options.directory.trim_end_matches('/');
        let paths = options.load.names.iter().map(|it| it.of(directory, number)).collect();
        let own = format!("{directory}/clients/client{number}");
        Client { task, options, progress, paths, own, handles: BTreeMap::new() }
    }

    /// Executes the load file until the time is over, and removes what is left then.
    pub async fn work(mut self) -> Result<(), Failure> {
        let options = self.options.clone();
        let begun = self.task.now();
        let mut moved = 0;
        'passes: loop {
            let pass = self.task.now();
            for line in &options.load.lines {
                if self.progress.borrow().must_end {
                    break 'passes;
                }
                moved += self.execute(line).await?;
                self.slow_down(begun, moved).await;
            }
            let took = self.task.now().since(pass);
            self.progress.borrow_mut().passes.push(took);
        }
        if options.cleans_up {
            self.delete_tree(&self.own.clone()).await;
            let parent = parent(&self.own).to_string();
            let _ = self.task.rmdir(&parent).await;
        }
        Ok(())
    }

    /// With a target rate it sleeps whole milliseconds until it is no longer too fast.
    async fn slow_down(&self, begun: Instant, moved: u64) {
        let Some(rate) = self.options.rate else { return };
        let due = begun + Duration::from_micros(moved * 1_000_000 / rate);
        let early = due.saturating_since(self.task.now()).as_millis();
        if early > 0 {
            self.task.sleep(Duration::from_millis(early)).await;
        }
    }

    /// One line; the answer is how many bytes it asked for.
    async fn execute(&mut self, line: &Line) -> Result<u64, Failure> {
        let looks = LOOKS_BEFORE + u32::from(self.progress.borrow().is_active);
        self.calls(1).await;
        self.task.look_at_clock(looks).await;
        let begun = self.task.now();
        let (kind, moved) = self.operate(line).await?;
        self.task.look_at_clock(1).await;
        let took = self.task.now().since(begun);
        let mut progress = self.progress.borrow_mut();
        progress.lines += 1;
        progress.bytes += moved;
        progress.is_active |= moved > 0;
        progress.longest = progress.longest.max(took);
        let at = KINDS.iter().position(|it| *it == kind).expect("every kind is in the table");
        progress.tallies[at].add(took);
        Ok(moved)
    }

    async fn operate(&mut self, line: &Line) -> Result<(&'static str, u64), Failure> {
        let path = |client: &Client, name: NameId| client.paths[name as usize].clone();
        let kind = match line.what {
            Operation::Create { name, is_directory, disposition, handle } => {
                let path = path(self, name);
                self.create(line, path, is_directory, disposition, handle).await?;
                "NTCreateX"
            }
            Operation::Close { handle } => {
                let file = self.open_file(line, handle)?;
                self.handles.remove(&handle);
                self.task.close(&file).await;
                "Close"
            }
            Operation::Rename { from, to } => {
                let (from, to) = (path(self, from), path(self, to));
                self.rename(line, &from, &to).await?;
                "Rename"
            }
            Operation::Unlink { name } => {
                let path = self.found(&path(self, name)).await;
                let result = self.paid(self.task.unlink(&path).await).await;
                self.check(line, result, "unlink", &path)?;
                self.sync_directory(&path).await;
                "Unlink"
            }
            Operation::Rmdir { name } => {
                let path = self.found(&path(self, name)).await;
                let result = self.paid(self.task.rmdir(&path).await).await;
                self.check(line, result, "rmdir", &path)?;
                self.sync_directory(&path).await;
                "Rmdir"
            }
            Operation::Deltree { name } => {
                self.delete_tree(&path(self, name)).await;
                "Deltree"
            }
            Operation::Mkdir { name } => {
                let path = self.found(&path(self, name)).await;
                // That it is there already was expected.
                let _ = self.paid(self.task.mkdir(&path).await).await;
                self.sync_directory(&path).await;
                "Mkdir"
            }
            Operation::QueryPath { name } => {
                self.resolve(&path(self, name)).await;
                "Qpathinfo"
            }
            Operation::Find { name } => {
                let path = path(self, name);
                if self.resolve(&path).await.is_none() {
                    let _ = self.scan(parent(&path)).await;
                }
                "Find"
            }
            Operation::QueryFileSystem => {
                self.calls(1).await;
                "Qfsinfo"
            }
            other => return self.operate_on_handle(line, other).await,
        };
        Ok((kind, 0))
    }

    async fn operate_on_handle(
        &mut self,
        line: &Line,
        what: Operation,
    ) -> Result<(&'static str, u64), Failure> {
        let moved = match what {
            Operation::Write { handle, offset, length } => {
                let file = self.open_file(line, handle)?;
                let result = self.task.pwrite(&file, offset, length).await;
                self.check(line, result.map(drop), "write", &self.handles[&handle].path)?;
                if self.options.syncs_writes {
                    let _ = self.task.fsync(&file).await;
                }
                ("WriteX", length)
            }
            Operation::Read { handle, offset, length } => {
                let file = self.open_file(line, handle)?;
                let result = self.task.pread(&file, offset, length).await;
                self.check(line, result.map(drop), "read", &self.handles[&handle].path)?;
                ("ReadX", length)
            }
            Operation::Flush { handle } => {
                let file = self.open_file(line, handle)?;
                let result = self.task.fsync(&file).await;
                self.check(line, result, "fsync", &self.handles[&handle].path)?;
                ("Flush", 0)
            }
            Operation::SetFile { handle } => {
                let file = self.open_file(line, handle)?;
                self.calls(1).await;
                let _ = self.task.set_times(&file).await;
                ("Sfileinfo", 0)
            }
            Operation::QueryFile { handle } => (self.ask(line, handle, "Qfileinfo").await?, 0),
            Operation::Lock { handle } => (self.ask(line, handle, "LockX").await?, 0),
            Operation::Unlock { handle } => (self.ask(line, handle, "UnlockX").await?, 0),
            _ => unreachable!("those on names were done before"),
        };
        Ok(moved)
    }

    /// A call on an open file that only takes time.
    async fn ask(
        &self,
        line: &Line,
        handle: u32,
        kind: &'static str,
    ) -> Result<&'static str, Failure> {
        self.open_file(line, handle)?;
        self.calls(1).await;
        Ok(kind)
    }

    async fn create(
        &mut self,
        line: &Line,
        path: String,
        is_directory: bool,
        disposition: Disposition,
        handle: u32,
    ) -> Result<(), Failure> {
        let path = self.found(&path).await;
        let result = match is_directory {
            true => {
                if disposition != Disposition::Open {
                    let _ = self.paid(self.task.mkdir(&path).await).await;
                    self.sync_directory(&path).await;
                }
                self.open(&path, Creation::READ).await
            }
            false => {
                let creation = Creation {
                    creates: disposition != Disposition::Open,
                    truncates: disposition == Disposition::Truncate,
                    writes: true,
                };
                match self.open(&path, creation).await {
                    Err(Errno::Eisdir) => self.open(&path, Creation::READ).await,
                    result => result,
                }
            }
        };
        match result {
            Ok(file) => {
                // fstat.
                self.calls(1).await;
                if !line.succeeds {
                    self.task.close(&file).await;
                    return self.complain(line, &format!("open {path} succeeded"));
                }
                self.handles.insert(handle, Open { file, path });
                Ok(())
            }
            Err(_) if !line.succeeds => Ok(()),
            Err(errno) => {
                self.complain(line, &format!("open {path} failed for handle {handle} ({errno})"))
            }
        }
    }

    async fn open(&self, path: &str, creation: Creation) -> Result<File, Errno> {
        let flags = OpenFlags { sync: self.options.syncs_files, ..OpenFlags::default() };
        self.paid(self.task.open_file(path, flags, creation).await).await
    }

    async fn rename(&self, line: &Line, from: &str, to: &str) -> Result<(), Failure> {
        let (from, to) = (self.found(from).await, self.found(to).await);
        let result = self.paid(self.task.rename(&from, &to).await).await;
        self.check(line, result, "rename", &from)?;
        self.sync_directory(&to).await;
        Ok(())
    }

    /// The file of a handle that is open.
    fn open_file(&self, line: &Line, handle: u32) -> Result<File, Failure> {
        match self.handles.get(&handle) {
            Some(open) => Ok(open.file),
            None => {
                self.task.print(format!("({}) ERROR: handle {handle} was not found", line.number));
                Err(Failure)
            }
        }
    }

    /// A result that was not recorded ends the client.
    fn check(
        &self,
        line: &Line,
        result: Result<(), Errno>,
        what: &str,
        path: &str,
    ) -> Result<(), Failure> {
        match result {
            Err(errno) if line.succeeds => {
                self.complain(line, &format!("{what} {path} failed ({errno})"))
            }
            Ok(()) if !line.succeeds => self.complain(line, &format!("{what} {path} succeeded")),
            _ => Ok(()),
        }
    }

    fn complain(&self, line: &Line, what: &str) -> Result<(), Failure> {
        let expected = if line.succeeds { "success" } else { "failure" };
        self.task.print(format!("[{}] {what} - expected {expected}", line.number));
        Err(Failure)
    }

    /// The path as it is there, or as it was asked for.
    async fn found(&self, path: &str) -> String {
        self.resolve(path).await.unwrap_or_else(|| path.to_string())
    }

    /// Looks for a name, if need be among all names of its directory.
    async fn resolve(&self, path: &str) -> Option<String> {
        if self.paid(self.task.status(path).await).await.is_ok() {
            return Some(path.to_string());
        }
        if !self.options.resolves {
            return None;
        }
        let directory = parent(path);
        let wanted = &path[directory.len() + 1..];
        let names = self.scan(directory).await.ok()?;
        let name = names.iter().find(|it| it.eq_ignore_ascii_case(wanted))?;
        Some(format!("{directory}/{name}"))
    }

    /// Reads a directory: opendir, fstat, getdents twice, closedir.
    async fn scan(&self, directory: &str) -> Result<Vec<String>, Errno> {
        let names = self.paid(self.task.list(directory).await).await?;
        self.calls(4).await;
        Ok(names)
    }

    /// Removes all files below a directory; directories stay.
    fn delete_tree<'a>(&'a self, directory: &'a str) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(async move {
            let Ok(names) = self.scan(directory).await else { return };
            for name in names {
                let path = format!("{directory}/{name}");
                match self.task.status(&path).await {
                    Ok(status) if status.is_directory => self.delete_tree(&path).await,
                    _ => drop(self.task.unlink(&path).await),
                }
            }
        })
    }

    /// With `-S`, what has changed in the directory of a path is made durable.
    async fn sync_directory(&self, path: &str) {
        if !self.options.syncs_directories {
            return;
        }
        let directory = parent(path);
        let opened = self.task.open_file(directory, OpenFlags::default(), Creation::READ).await;
        if let Ok(file) = opened {
            let _ = self.task.fdatasync(&file).await;
            self.task.close(&file).await;
        }
    }

    /// A call that names a file and fails takes as long as looking for a file of the system.
    // measured: the time of a hundred of each with 6.12, against those that succeed
    async fn paid<T>(&self, result: Result<T, Errno>) -> Result<T, Errno> {
        if result.is_err() {
            self.task.look_for_files(1).await;
        }
        result
    }

    /// Calls that come to no disk and change nothing.
    async fn calls(&self, calls: u64) {
        self.task.memory_calls(calls, self.task.costs().system_call * calls).await;
    }
}

/// The directory of a path.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
