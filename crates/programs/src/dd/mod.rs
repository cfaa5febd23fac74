//! dd: copies blocks from a file to another one.
//!
//! Operands, sizes, messages and closing lines are those of GNU dd 9.1 in the C locale, learned by
//! asking the program. It reads and writes the disk, special files of `/dev`, and files. What a
//! conversion does to data is not modelled, so conversions that change its amount are refused.

mod operands;
mod report;

pub use operands::Dd;

use crate::Program;
use base::Instant;
use machine::calls::Creation;
use machine::file::Errno;
use machine::program::Running;
use machine::task::{File, OpenFlags, Task};
use operands::{Status, Syncs, quote};
use std::rc::Rc;

/// Exit status of dd when something went wrong.
const FAILED: i32 = 1;

/// When dd had closed its files, which is where the time ends that it divides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed(pub Instant);

/// What one run of dd has done so far.
struct Copy {
    task: Task,
    dd: Dd,
    input: File,
    output: File,
    read_at: u64,
    write_at: u64,
    /// Bytes read and not yet written, when input and output blocks differ.
    buffered: u64,
    started: Instant,
    counts: Counts,
}

/// What the closing lines tell.
#[derive(Default)]
pub(super) struct Counts {
    full_in: u64,
    partial_in: u64,
    full_out: u64,
    partial_out: u64,
    bytes_out: u64,
}

impl machine::Program for Dd {
    fn name(&self) -> &str {
        "dd"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

impl Program for Dd {
    fn files(&self) -> Vec<&str> {
        vec![&self.input, &self.output]
    }

    fn typed_files(&mut self) -> Vec<&mut String> {
        vec![&mut self.input, &mut self.output]
    }
}

impl Dd {
    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        let opened = match open(&task, &self.input, self.input_flags, Creation::READ).await {
            Ok(input) => self.open_output(&task).await.map(|output| (input, output)),
            Err(message) => Err(message),
        };
        let (input, output) = match opened {
            Ok(files) => files,
            Err(message) => {
                task.print(message);
                return FAILED;
            }
        };
        // It looks when its files are open and, if it is to say how fast it was, at the end.
        // Observed on 6.12.117: who makes a file by dd is a look behind who makes it by touch.
        task.look_at_clock(1).await;
        let started = task.now();
        let (read_at, write_at) = (self.skip, self.seek);
        let counts = Counts::default();
        let dd = self;
        let mut copy =
            Copy { task, dd, input, output, read_at, write_at, buffered: 0, started, counts };
        let result = copy.all().await;
        copy.close(result).await
    }
}

/// Opens a file, or says why not.
async fn open(
    task: &Task,
    path: &str,
    flags: OpenFlags,
    creation: Creation,
) -> Result<File, String> {
    let failed = |errno: Errno| format!("dd: failed to open {}: {errno}", quote(path));
    let file = task.open_file(path, flags, creation).await.map_err(failed)?;
    if flags.direct && matches!(path, "/dev/zero" | "/dev/null") {
        return Err(failed(Errno::Einval));
    }
    Ok(file)
}

impl Dd {
    /// The output begins empty, or is cut off where writing begins.
    async fn open_output(&self, task: &Task) -> Result<File, String> {
        let truncates = self.truncates && self.seek == 0;
        let creation = Creation { creates: self.creates, truncates, writes: true };
        let file = open(task, &self.output, self.output_flags, creation).await?;
        if self.truncates && self.seek > 0 && (file.is_disk() || task.size(&file) != self.seek) {
            // Disks have a size of their own, and special files none.
            let _ = task.truncate(&file, self.seek).await;
        }
        Ok(file)
    }
}

impl Copy {
    /// Copies until the count is reached, the input ends or something fails.
    async fn all(&mut self) -> Result<(), String> {
        self.find_places()?;
        while let Some(length) = self.next_length() {
            let read = self.task.pread(&self.input, self.read_at, length).await;
            let read = read.map_err(|e| self.failure("reading", &self.dd.input, e))?;
            if read == 0 {
                break;
            }
            self.read_at += read;
            let is_full = read == self.dd.input_block;
            *(if is_full { &mut self.counts.full_in } else { &mut self.counts.partial_in }) += 1;
            let padded = if self.dd.pads { self.dd.input_block } else { read };
            if self.dd.keeps_blocks {
                self.write(padded).await?;
            } else {
                self.buffered += padded;
                while self.buffered >= self.dd.output_block {
                    self.write(self.dd.output_block).await?;
                    self.buffered -= self.dd.output_block;
                }
            }
        }
        let rest = std::mem::take(&mut self.buffered);
        if rest > 0 { self.write(rest).await } else { Ok(()) }
    }

    /// How much is read next; `None` when the count is reached.
    fn next_length(&self) -> Option<u64> {
        let block = self.dd.input_block;
        match self.dd.count {
            None => Some(block),
            Some(count) if count.in_bytes => {
                let left = count.number.saturating_sub(self.read_at - self.dd.skip);
                (left > 0).then_some(left.min(block))
            }
            Some(count) => {
                let records = self.counts.full_in + self.counts.partial_in;
                (records < count.number).then_some(block)
            }
        }
    }

    /// Writes one block; a write that is cut short is continued.
    async fn write(&mut self, length: u64) -> Result<(), String> {
        // As dd does: a block that is not whole cannot be written directly.
        if length < self.dd.output_block {
            self.output.flags.direct = false;
        }
        let mut written = 0;
        while written < length {
            let result = self.task.pwrite(&self.output, self.write_at, length - written).await;
            match result {
                Ok(bytes) => {
                    written += bytes;
                    self.write_at += bytes;
                    self.counts.bytes_out += bytes;
                }
                Err(errno) => {
                    // As dd does: what was written of a block counts as one only if blocks are put
                    // together.
                    let counts = written > 0 && !self.dd.keeps_blocks;
                    self.counts.partial_out += u64::from(counts);
                    return Err(self.failure("writing", &self.dd.output, errno));
                }
            }
        }
        let is_full = length == self.dd.output_block;
        *(if is_full { &mut self.counts.full_out } else { &mut self.counts.partial_out }) += 1;
        Ok(())
    }

    /// Goes to where reading and writing begin; beyond the end of a disk that fails.
    fn find_places(&self) -> Result<(), String> {
        let is_beyond = |file: &File, at| file.is_disk() && at > self.task.size(file);
        let failed = |name, what| format!("dd: {name}: cannot {what}: {}", Errno::Einval);
        if is_beyond(&self.input, self.read_at) {
            return Err(failed(&self.dd.input, "skip"));
        }
        if is_beyond(&self.output, self.write_at) {
            return Err(failed(&self.dd.output, "seek"));
        }
        Ok(())
    }

    /// Makes the output durable if asked, also after a failure (strace of dd 9.1), and prints the
    /// closing lines.
    async fn close(self, result: Result<(), String>) -> i32 {
        let mut complaint = result.err();
        if self.dd.syncs != Syncs::Nothing {
            let name = quote(&self.dd.output);
            let failed = |errno| format!("dd: fsync failed for {name}: {errno}");
            let synced = match self.dd.syncs {
                Syncs::Data => self.task.fdatasync(&self.output).await,
                _ => self.task.fsync(&self.output).await,
            };
            complaint = complaint.or(synced.err().map(failed));
        }
        self.task.close(&self.input).await;
        self.task.close(&self.output).await;
        self.task.keep_account(Rc::new(Closed(self.task.now())));
        let status = if complaint.is_some() { FAILED } else { 0 };
        if let Some(complaint) = complaint {
            self.task.print(complaint);
        }
        let says_how_fast = matches!(self.dd.status, Status::Full | Status::Progress);
        if says_how_fast {
            self.task.look_at_clock(1).await;
        }
        let elapsed = self.task.now().since(self.started);
        if self.dd.status != Status::None {
            let counts = &self.counts;
            self.task.print(format!("{}+{} records in", counts.full_in, counts.partial_in));
            self.task.print(format!("{}+{} records out", counts.full_out, counts.partial_out));
        }
        if says_how_fast {
            self.task.print(report::closing_line(self.counts.bytes_out, elapsed));
        }
        status
    }

    fn failure(&self, doing: &str, name: &str, errno: Errno) -> String {
        format!("dd: error {doing} {}: {errno}", quote(name))
    }
}
