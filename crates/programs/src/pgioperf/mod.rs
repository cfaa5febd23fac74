//! pgioperf: what PostgreSQL does to a disk, as a program of Andres Freund simulates it.
//!
//! Processes of one parent read and write a large file at random, and one writes a log: rules
//! pgioperf. Two things make it another load than it seems. Offsets are multiples of nothing, so
//! most calls touch three pages. All processes draw from one sequence, each at its own pace: the
//! foremost reader waits for the disk, and the others come along behind it.
//!
//! `--prepare` writes the files, which MMTests does as a phase of its own.
//!
//! The same as a program of its own, for a real kernel, gets [`Pgioperf::words`].

mod options;
mod report;

pub use options::Pgioperf;
pub use report::Account;

use crate::Program;
use base::{Duration, Instant, Rng};
use block::ContextId;
use machine::calls::Creation;
use machine::file::Errno;
use machine::program::Running;
use machine::task::{File, IoContextOf, OpenFlags, Task};
use report::Interval;
use std::cell::Cell;
use std::rc::Rc;

/// Exit status when something went wrong.
const FAILED: i32 = 1;
/// What a call reads or writes, in bytes.
pub const BLOCK: u64 = 8192;
const CHECKPOINTER_PAUSE: Duration = Duration::from_micros(200);
const WAL_PAUSE: Duration = Duration::from_millis(1);
/// The first write of the log and each so many after it are a commit.
const WRITES_OF_COMMIT: u64 = 5;
/// How often it is looked whether there are lines enough.
const LOOK: Duration = Duration::from_secs(10);
/// It says something of so many reads, writes of the log, and commits.
const TOLD_READS: u64 = 10_000;
const TOLD_WRITES: u64 = 1000;
const TOLD_COMMITS: u64 = 500;

/// What its processes are called in results.
pub const READER: &str = "reader";
/// What the process is called that writes data and syncs them.
pub const CHECKPOINTER: &str = "checkpointer";
/// What the process is called that writes the log.
pub const WAL: &str = "wal";

const DATA_FILE: &str = "data";
const WAL_FILE: &str = "wal";

impl machine::Program for Pgioperf {
    fn name(&self) -> &str {
        "pgioperf"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

impl Program for Pgioperf {
    fn files(&self) -> Vec<&str> {
        vec![&self.directory]
    }

    fn typed_files(&mut self) -> Vec<&mut String> {
        vec![&mut self.directory]
    }
}

/// A file and why it does not work.
type Failure = (String, Errno);

/// Which process it is.
#[derive(Clone, Copy)]
enum Role {
    Reader,
    Checkpointer,
    Wal,
}

/// A process.
struct Process {
    options: Rc<Pgioperf>,
    task: Task,
    /// The sequence as it was when the parent forked.
    rng: Rng,
    output: Rc<Output>,
}

/// What all processes print to.
#[derive(Default)]
struct Output {
    lines: Cell<u64>,
    /// There are lines enough, or somebody has failed.
    has_ended: Cell<bool>,
}

impl Pgioperf {
    /// What its processes are called in results, if it has any.
    pub fn processes(&self) -> Vec<&'static str> {
        match (self.prepares, self.readers) {
            (true, _) => Vec::new(),
            (false, 0) => vec![CHECKPOINTER, WAL],
            (false, _) => vec![READER, CHECKPOINTER, WAL],
        }
    }

    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        match self.prepares {
            true => self.prepare(&task).await,
            false => self.simulate(task).await,
        }
    }

    /// Writes both files.
    async fn prepare(&self, task: &Task) -> i32 {
        for (name, size) in [(DATA_FILE, self.data), (WAL_FILE, self.wal())] {
            let path = self.path(name);
            if let Err(errno) = write_file(task, &path, size).await {
                return complain(task, &(path, errno));
            }
        }
        0
    }

    async fn simulate(self, task: Task) -> i32 {
        for (name, size) in [(DATA_FILE, self.data), (WAL_FILE, self.wal())] {
            let (path, least) = (self.path(name), size + BLOCK);
            if task.stat(&path).is_none_or(|there| there < least) {
                task.print(format!(
                    "pgioperf: {path} has not {least} bytes; accepted: what pgioperf --prepare \
                     writes for the same --size and memory"
                ));
                return FAILED;
            }
        }
        let (lines, output) = (self.lines, Rc::<Output>::default());
        let children = self.fork(&task, &output);
        while !output.has_ended.get() {
            task.notified_until(task.now() + LOOK).await;
            output.has_ended.set(output.has_ended.get() || output.lines.get() >= lines);
        }
        let mut status = 0;
        for child in children {
            status = status.max(task.join(child).await);
        }
        status
    }

    /// Starts all processes; each goes on with the sequence of the parent for itself.
    fn fork(self, parent: &Task, output: &Rc<Output>) -> Vec<ContextId> {
        let sequences = self.sequences(parent.job().unwrap_or(0), &|name| parent.rng(name));
        let options = Rc::new(self);
        let start = |((name, role), rng): ((String, Role), Rng)| {
            let (options, output) = (options.clone(), output.clone());
            let waiting = parent.id();
            parent.spawn(&name, IoContextOf::Itself, move |task| async move {
                let process = Process { options, task: task.clone(), rng, output: output.clone() };
                let Err(failure) = process.work(role).await else { return 0 };
                // The first one that fails ends all.
                if !output.has_ended.replace(true) {
                    complain(&task, &failure);
                    task.notify(waiting);
                }
                FAILED
            })
        };
        options.all_processes().zip(sequences).map(start).collect()
    }

    /// All its processes.
    fn all_processes(&self) -> impl Iterator<Item = (String, Role)> {
        let readers = (0..self.readers).map(|it| (format!("{READER}.{it}"), Role::Reader));
        let writers = [(CHECKPOINTER, Role::Checkpointer), (WAL, Role::Wal)];
        readers.chain(writers.map(|(name, role)| (name.to_string(), role)))
    }

    /// What each process draws from, if this is the job with this number; `stream` knows the random
    /// numbers of the run by name.
    fn sequences(&self, job: usize, stream: &dyn Fn(&str) -> Rng) -> Vec<Rng> {
        let shared = format!("program/pgioperf/{job}");
        let of = |(name, _): (String, Role)| match self.shares_sequence {
            true => stream(&shared),
            false => stream(&format!("{shared}/{name}")),
        };
        self.all_processes().map(of).collect()
    }

    /// What a program of its own is told that does the same, drawing the same numbers: `prepare`,
    /// the directory and the bytes of both files, each without its last block; or `run` and the
    /// same, how many readers there are, after how many writes data are synced, what a commit is,
    /// after how many lines it ends, and where sequences begin: one of all, or one of each process
    /// that draws.
    pub fn words(&self, job: usize, stream: &dyn Fn(&str) -> Rng) -> Vec<String> {
        let (data, wal) = (self.data.to_string(), self.wal().to_string());
        let phase = if self.prepares { "prepare" } else { "run" };
        let mut words = vec![phase.to_string(), self.directory.clone(), data, wal];
        if self.prepares {
            return words;
        }
        let commit = if self.load.commits_data_only { "fdatasync" } else { "fsync" };
        words.extend([self.readers.to_string(), self.load.checkpoint.to_string()]);
        words.extend([commit.to_string(), self.lines.to_string()]);
        let state = |rng: Rng| rng.state().map(|it| format!("{it:016x}")).concat();
        // The log's writer, which is the last process, draws nothing.
        let begin = if self.shares_sequence { 1 } else { self.readers as usize + 1 };
        words.extend(self.sequences(job, stream).into_iter().take(begin).map(state));
        words
    }
}

/// Its numbers as definitions for a program in C that does the same.
pub fn definitions() -> String {
    let all = [
        ("BLOCK", BLOCK),
        ("CHECKPOINTER_PAUSE", CHECKPOINTER_PAUSE.as_nanos()),
        ("WAL_PAUSE", WAL_PAUSE.as_nanos()),
        ("WRITES_OF_COMMIT", WRITES_OF_COMMIT),
        ("LOOK", LOOK.as_nanos() / 1_000_000_000),
        ("TOLD_READS", TOLD_READS),
        ("TOLD_WRITES", TOLD_WRITES),
        ("TOLD_COMMITS", TOLD_COMMITS),
    ];
    all.map(|(name, value)| format!("#define {name} {value}\n")).concat()
}

/// Says what went wrong; the answer is the exit status.
fn complain(task: &Task, (path, errno): &Failure) -> i32 {
    task.print(format!("pgioperf: {path}: {errno}"));
    FAILED
}

/// Writes a file of this size and a block, so that a block fits behind every offset within its
/// size.
async fn write_file(task: &Task, path: &str, size: u64) -> Result<(), Errno> {
    let file = task.open_file(path, OpenFlags::default(), Creation::WRITE).await?;
    let mut at = 0;
    while at < size + BLOCK {
        at += task.pwrite(&file, at, BLOCK).await?;
    }
    task.fsync(&file).await?;
    task.close(&file).await;
    Ok(())
}

impl Process {
    async fn work(self, role: Role) -> Result<(), Failure> {
        let name = if let Role::Wal = role { WAL_FILE } else { DATA_FILE };
        let creation = match role {
            Role::Reader => Creation::READ,
            Role::Checkpointer | Role::Wal => Creation { writes: true, ..Creation::READ },
        };
        let path = self.options.path(name);
        let opened = self.task.open_file(&path, OpenFlags::default(), creation).await;
        let result = match (opened, role) {
            (Err(errno), _) => Err(errno),
            (Ok(file), Role::Reader) => self.read(file).await,
            (Ok(file), Role::Checkpointer) => self.checkpoint(file).await,
            (Ok(file), Role::Wal) => self.write_log(file).await,
        };
        result.map_err(|errno| (path, errno))
    }

    async fn read(mut self, file: File) -> Result<(), Errno> {
        let mut reads = Interval::new("read", TOLD_READS);
        while !self.output.has_ended.get() {
            let offset = next_offset(&mut self.rng, self.options.data);
            let begun = self.begin().await;
            self.task.pread(&file, offset, BLOCK).await?;
            let took = self.since(begun).await;
            self.print(reads.add(took, self.task.id().0));
        }
        Ok(())
    }

    async fn checkpoint(mut self, file: File) -> Result<(), Errno> {
        for number in 1_u64.. {
            if self.output.has_ended.get() {
                break;
            }
            let offset = next_offset(&mut self.rng, self.options.data);
            self.task.pwrite(&file, offset, BLOCK).await?;
            self.task.sleep_with_slack(CHECKPOINTER_PAUSE).await;
            if number.is_multiple_of(self.options.load.checkpoint) {
                self.print(Some("starting fsync() of files".to_string()));
                self.task.fsync(&file).await?;
                self.print(Some("finished fsync() of files".to_string()));
            }
        }
        Ok(())
    }

    async fn write_log(self, file: File) -> Result<(), Errno> {
        let account = Rc::new(Account::default());
        self.task.keep_account(account.clone());
        let (mut writes, mut commits) =
            (Interval::new("wal", TOLD_WRITES), Interval::new("commit", TOLD_COMMITS));
        for (number, offset) in (0_u64..).zip(wal_offsets(self.options.wal())) {
            if self.output.has_ended.get() {
                break;
            }
            let begun = self.begin().await;
            self.task.pwrite(&file, offset, BLOCK).await?;
            let took = self.since(begun).await;
            self.print(writes.add(took, self.task.id().0));
            if number.is_multiple_of(WRITES_OF_COMMIT) {
                match self.options.load.commits_data_only {
                    true => self.task.fdatasync(&file).await?,
                    false => self.task.fsync(&file).await?,
                }
                let took = self.since(begun).await;
                account.commits.borrow_mut().record(took);
                self.print(commits.add(took, self.task.id().0));
            }
            self.task.sleep_with_slack(WAL_PAUSE).await;
        }
        Ok(())
    }

    /// Looks at the clock.
    async fn begin(&self) -> Instant {
        self.task.look_at_clock(1).await;
        self.task.now()
    }

    async fn since(&self, begun: Instant) -> Duration {
        self.task.look_at_clock(1).await;
        self.task.now().since(begun)
    }

    fn print(&self, line: Option<String>) {
        if let Some(line) = line {
            self.output.lines.set(self.output.lines.get() + 1);
            self.task.print(line);
        }
    }
}

/// Where the next block of the data is: anywhere within the size, to the byte.
fn next_offset(rng: &mut Rng, size: u64) -> u64 {
    rng.below(size)
}

/// Where the blocks of the log are: one after the other, and from the beginning again.
fn wal_offsets(size: u64) -> impl Iterator<Item = u64> {
    (0..size).step_by(BLOCK as usize).cycle()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_multiples_of_nothing_and_lie_everywhere() {
        let mut rng = Rng::new(1);
        let offsets: Vec<u64> = (0..48_000).map(|_| next_offset(&mut rng, 96 << 20)).collect();
        for multiple in [2, 512, 4096] {
            let aligned = offsets.iter().filter(|it| it.is_multiple_of(multiple)).count() as u64;
            let expected = 48_000 / multiple;
            assert!(aligned.abs_diff(expected) <= 12 + expected / 20, "{multiple}: {aligned}");
        }
        let three_pages = |it: &&u64| (**it + BLOCK - 1) / 4096 - **it / 4096 == 2;
        assert!(offsets.iter().filter(three_pages).count() > 47_900);
        let upper_half = offsets.iter().filter(|it| **it >= 48 << 20).count() as u64;
        assert!(upper_half.abs_diff(24_000) < 500 && offsets.iter().all(|it| *it < 96 << 20));
    }

    #[test]
    fn processes_go_on_with_one_sequence_each_at_its_own_pace() {
        let parent = Rng::new(2);
        let [mut fast, mut slow] = [parent.clone(), parent.clone()];
        let ahead: Vec<u64> = (0..100).map(|_| next_offset(&mut fast, 1 << 30)).collect();
        let behind: Vec<u64> = (0..50).map(|_| next_offset(&mut slow, 1 << 30)).collect();
        assert_eq!(ahead[..50], behind);
        assert_eq!(next_offset(&mut slow, 1 << 30), ahead[50]);
    }

    #[test]
    fn the_log_begins_again_at_its_end() {
        let offsets: Vec<u64> = wal_offsets(5 * BLOCK / 2).take(5).collect();
        assert_eq!(offsets, [0, BLOCK, 2 * BLOCK, 0, BLOCK]);
    }
}
