//! Files of a file system: made before a job begins, opened when the first request goes there.
//!
//! What is done, and in which order, was seen with strace of fio 3.33. The main process makes the
//! files of all jobs, or each process its own (`create_serialize=0`): the old one is removed, room
//! is set aside, and where the job reads or overwrites, the whole is written in blocks and made
//! durable. A process opens a file when the first request goes there, drops what is cached of it
//! and says how it will read.

use super::super::engine::{Engine, NameCall};
use super::super::job::{Direction, FileKind, Job, Room, SyncMode};
use super::super::layout::{FileSize, Layout};
use super::donor::OpenDonor;
use super::memory::Heap;
use guest::FioHabits;
use machine::calls::Creation;
use machine::task::{Errno, File, OpenFlags, Task};

/// The files of a job that lie in a file system.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// By their position in the list of the job.
    slots: Vec<Option<Slot>>,
    donor: Option<OpenDonor>,
}

/// One of them.
#[derive(Clone, Debug)]
struct Slot {
    path: String,
    size: FileSize,
    /// The bytes that the job uses.
    range: std::ops::Range<u64>,
    is_open: bool,
    /// What was to be done about its name was done.
    is_named: bool,
}

impl Files {
    /// The files of a job, by what was laid out.
    pub fn of(job: &Job, layout: &Layout, ranges: &[super::super::pattern::Range]) -> Files {
        let slot = |(index, file): (usize, &super::super::job::File)| {
            let size = layout.file_size(job, index).filter(|_| file.kind == FileKind::File)?;
            let range = ranges[index].start..ranges[index].end;
            Some(Slot { path: file.name.clone(), size, range, is_open: false, is_named: false })
        };
        Files { slots: job.files.list.iter().enumerate().map(slot).collect(), donor: None }
    }

    /// Opens the donor of a job that has one.
    pub async fn open_donor(&mut self, task: &Task, job: &Job) -> Result<(), String> {
        self.donor = OpenDonor::open(task, job).await?;
        Ok(())
    }

    /// The same with files that were looked at later.
    pub fn found(self, later: Files) -> Files {
        Files { donor: self.donor, ..later }
    }

    /// The donor, if it was opened.
    pub fn donor(&self) -> Option<&OpenDonor> {
        self.donor.as_ref()
    }

    /// Whether a file lies in a file system.
    pub fn has(&self, file: usize) -> bool {
        self.slots[file].is_some()
    }

    /// Makes those that are missing or too short; the answer is whether there was one.
    pub async fn make(&self, task: &Task, job: &Job, heap: &mut Heap<'_>) -> Result<bool, String> {
        let creates = job.engine == Engine::Names(NameCall::Create);
        if job.creation.on_open || creates || !job.engine.does_block_io() {
            return Ok(false);
        }
        task.prepares(true);
        let made = self.make_each(task, job, heap).await;
        task.prepares(false);
        made
    }

    async fn make_each(&self, task: &Task, job: &Job, heap: &mut Heap<'_>) -> Result<bool, String> {
        let mut makes = false;
        for slot in self.slots.iter().flatten() {
            let failed = |errno: Errno| format!("fio: {}: {errno}", slot.path);
            let there = task.look_for(&slot.path).await;
            if slot.size.wanted > there.unwrap_or(0) || appends(job) {
                task.look_for_files(heap.habits.paths_per_made_file).await;
                make(task, job, slot, there, heap).await.map_err(failed)?;
                makes = true;
            }
        }
        Ok(makes)
    }

    /// Reads all of them, as `pre_read` does.
    pub async fn read_before(&self, task: &Task, job: &Job) -> Result<(), Errno> {
        if !job.creation.pre_read {
            return Ok(());
        }
        task.prepares(true);
        let read = self.read_each(task, largest_block(job, Direction::Read)).await;
        task.prepares(false);
        read
    }

    async fn read_each(&self, task: &Task, block: u64) -> Result<(), Errno> {
        for slot in self.slots.iter().flatten() {
            let (flags, reading) = (OpenFlags::default(), Creation::READ);
            let file = task.open_file(&slot.path, flags, reading).await?;
            let mut at = slot.range.start;
            while at < slot.range.end {
                at += task.pread(&file, at, block.min(slot.range.end - at)).await?.max(1);
            }
            task.close(&file).await;
        }
        Ok(())
    }

    /// Does about the name of a file what the job does once in a round.
    async fn name(&mut self, task: &Task, file: usize, call: NameCall) -> Result<(), Errno> {
        let Some(slot) = self.slots[file].as_mut().filter(|slot| !slot.is_named) else {
            return Ok(());
        };
        slot.is_named = true;
        match call {
            NameCall::Create => {
                let creation = Creation::WRITE;
                let opened = task.open_file(&slot.path, OpenFlags::default(), creation).await?;
                task.close(&opened).await;
                Ok(())
            }
            NameCall::Stat => task.status(&slot.path).await.map(drop),
            NameCall::Delete => task.unlink(&slot.path).await,
        }
    }

    /// Opens a file that is not open; the answer is none where it is, or is no file.
    pub async fn open(
        &mut self,
        task: &Task,
        job: &Job,
        file: usize,
    ) -> Option<Result<File, Errno>> {
        if let Engine::Names(call) = job.engine {
            return self.name(task, file, call).await.err().map(Err);
        }
        let slot = self.slots[file].as_mut().filter(|slot| !slot.is_open)?;
        let creation = Creation {
            creates: job.writes() && job.creation.is_allowed,
            truncates: false,
            writes: job.writes(),
        };
        let opened = match task.open_file(&slot.path, flags(job), creation).await {
            Ok(file) => file,
            Err(errno) => return Some(Err(errno)),
        };
        slot.is_open = true;
        let range = slot.range.clone();
        if job.caching.invalidate {
            task.forget(&opened, range).await;
        }
        if let Some(hint) = job.caching.hint {
            task.advise(&opened, hint);
        }
        Some(Ok(opened))
    }

    /// Closes a file if it is open.
    pub async fn close_one(&mut self, task: &Task, open: &[File], file: usize) {
        if let Some(slot) = &mut self.slots[file]
            && std::mem::take(&mut slot.is_open)
        {
            task.close(&open[file]).await;
        }
    }

    /// Closes what is open, and removes what is to be removed.
    pub async fn close(&mut self, task: &Task, open: &[File], removes: bool) {
        for (slot, file) in self.slots.iter_mut().zip(open) {
            let Some(slot) = slot else { continue };
            slot.is_named = false;
            if std::mem::take(&mut slot.is_open) {
                task.close(file).await;
            }
            if removes {
                // That it is gone already is what was wanted.
                let _ = task.unlink(&slot.path).await;
            }
        }
    }
}

/// How the files of a job are opened.
pub(super) fn flags(job: &Job) -> OpenFlags {
    let durability = &job.durability;
    OpenFlags {
        direct: durability.direct,
        sync: durability.sync == SyncMode::Sync,
        dsync: durability.sync == SyncMode::DataSync,
        append: false,
    }
}

fn appends(job: &Job) -> bool {
    job.creation.append && job.writes()
}

async fn make(
    task: &Task,
    job: &Job,
    slot: &Slot,
    there: Option<u64>,
    heap: &mut Heap<'_>,
) -> Result<(), Errno> {
    let reads = job.reads();
    // What is mapped must be there.
    let writes_all = reads || job.creation.overwrite || job.engine == Engine::Mmap;
    let trims = !reads && !job.pattern.directions.include(Direction::Write);
    if !appends(job) && !trims {
        // Most often there is nothing to be removed.
        let _ = task.unlink(&slot.path).await;
    }
    let creation =
        Creation { creates: job.creation.is_allowed, truncates: writes_all, writes: true };
    let file = task.open_file(&slot.path, OpenFlags::default(), creation).await?;
    let size = slot.size.wanted;
    match job.creation.room {
        Room::None => {}
        Room::Reserve => task.fallocate(&file, 0..size, false).await?,
        Room::KeepSize => task.fallocate(&file, 0..size, true).await?,
        Room::Truncate => task.truncate(&file, size).await?,
    }
    if writes_all && !appends(job) {
        if !job.extent.fill_device {
            task.truncate(&file, size).await?;
        }
        let block = largest_block(job, Direction::Write);
        let pages = heap.take(task, block);
        let mut at = 0;
        while at < size {
            at += task.pwrite(&file, at, block.min(size - at)).await?;
        }
        task.let_memory_go(pages);
        if job.creation.fsync {
            task.fsync(&file).await?;
        }
    }
    task.forget(&file, there.unwrap_or(0)..size).await;
    task.close(&file).await;
    Ok(())
}

pub(super) fn largest_block(job: &Job, direction: Direction) -> u64 {
    job.pattern.sizes[direction as usize].most().0.max(1)
}

/// Makes the files of all jobs whose processes do not do so themselves; the answer is how many of
/// them had theirs already.
pub(super) async fn make_all(
    task: &Task,
    jobs: &[Job],
    files: &[Files],
    habits: &FioHabits,
) -> Result<Vec<u32>, String> {
    let serial = jobs.iter().zip(files).filter(|(job, _)| job.creation.is_serial);
    let (mut there, mut heap) = (Vec::new(), Heap::new(habits));
    for (job, files) in serial.filter(|(job, _)| job.has_files()) {
        let each = habits.paths_per_file * files.slots.iter().flatten().count() as u32;
        task.look_for_files(habits.paths_per_job + each).await;
        if !files.make(task, job, &mut heap).await? {
            there.push(job.number);
        }
    }
    Ok(there)
}
