//! dump: backs up an ext2 or ext3 file system by reading its disk.
//!
//! A master walks the inodes and hands out records of 10 KiB to three slaves in turns; each reads
//! its part of the disk through a descriptor of its own and writes it out when its turn comes
//! (rules dump). So one sequential stream is read by three processes, 10 KiB each at a time. With
//! `--clone-io` all of them share an io_context, as dump from 0.4b42 on does.
//!
//! What the file system holds is described (`--population`), as none exists. Passes I and II, which
//! look for what is to be dumped, and directories are left out.

mod layout;
mod options;

pub use options::Dump;

use crate::Program;
use block::ContextId;
use layout::{Layout, Piece};
use machine::file::Errno;
use machine::program::Running;
use machine::task::{File, IoContextOf, OpenFlags, Task};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Rule dump-1.
const SLAVES: usize = 3;
/// Unit of the tape, and of headers.
const TAPE_BLOCK: u64 = 1024;
/// Data that one header describes (rule dump-4).
const DATA_OF_HEADER: u64 = 512 * 1024;
/// Exit status when something went wrong: the startup could not be completed.
const FAILED: i32 = 3;

/// What a slave reads: places and lengths on the disk.
type Record = Vec<(u64, u64)>;

/// What master and slaves have in common: the sockets and signals between them.
struct Crew {
    master: ContextId,
    slaves: Vec<ContextId>,
    inboxes: [VecDeque<Record>; SLAVES],
    /// It was sent a record and has not answered.
    owes: [bool; SLAVES],
    /// Who writes next.
    turn: usize,
    is_over: bool,
    complaint: Option<Errno>,
}

/// A record in the making.
#[derive(Default)]
struct Draft {
    reads: Record,
    filled: u64,
    /// To whom it goes.
    slave: usize,
}

impl machine::Program for Dump {
    fn name(&self) -> &str {
        "dump"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

impl Program for Dump {
    fn files(&self) -> Vec<&str> {
        vec![&self.disk]
    }
}

impl Dump {
    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        let sharing = if self.clones_io { IoContextOf::Parent } else { IoContextOf::Itself };
        let started = task.now();
        let tape = self.tape_kib();
        let master = task.spawn("dump", sharing, |task| master(self, task, sharing));
        let status = task.join(master).await;
        if status == 0 {
            let elapsed = task.now().since(started);
            let rate = tape * 1_000_000_000 / elapsed.as_nanos().max(1);
            let seconds = elapsed.as_millis() / 1_000;
            task.print(format!("  DUMP: {tape} blocks on 1 volume(s)"));
            task.print(format!(
                "  DUMP: finished in {seconds} seconds, throughput {rate} kBytes/sec"
            ));
            task.print("  DUMP: DUMP IS DONE");
        }
        status
    }
}

/// Opens the disk anew and drops what is clean of it in memory (rule dump-2).
async fn open_disk(task: &Task, path: &str) -> Result<File, Errno> {
    let disk = task.open(path, OpenFlags::default())?;
    task.drop_cached(&disk).await;
    Ok(disk)
}

async fn master(dump: Dump, task: Task, sharing: IoContextOf) -> i32 {
    let layout = Layout::new(&dump, &mut task.rng("program/dump/0"));
    if layout.end > task.disk().capacity.0 {
        task.print("  DUMP: the described file system does not fit on the disk");
        return FAILED;
    }
    let crew = Rc::new(RefCell::new(Crew {
        master: task.id(),
        slaves: Vec::new(),
        inboxes: Default::default(),
        owes: [false; SLAVES],
        turn: 0,
        is_over: false,
        complaint: None,
    }));
    let disk = match open_disk(&task, &dump.disk).await {
        Ok(disk) => disk,
        Err(errno) => {
            task.print(format!("  DUMP: Cannot open {}: {errno}", dump.disk));
            return FAILED;
        }
    };
    for number in 0..SLAVES {
        let (crew_of_slave, dump) = (crew.clone(), dump.clone());
        let slave = task.spawn("dump", sharing, |task| slave(dump, task, crew_of_slave, number));
        crew.borrow_mut().slaves.push(slave);
    }
    let result = walk(&dump, &task, &disk, &layout, &crew).await;
    crew.borrow_mut().is_over = true;
    let slaves = crew.borrow().slaves.clone();
    slaves.iter().for_each(|slave| task.notify(*slave));
    for slave in slaves {
        task.join(slave).await;
    }
    let complaint = result.err().or(crew.borrow().complaint);
    if let Some(errno) = complaint {
        task.print(format!("  DUMP: read error: {errno}"));
        return FAILED;
    }
    0
}

/// Rule dump-4: inode by inode, block by block.
async fn walk(
    dump: &Dump,
    task: &Task,
    disk: &File,
    layout: &Layout,
    crew: &RefCell<Crew>,
) -> Result<(), Errno> {
    let record = dump.record_kib * TAPE_BLOCK;
    let mut draft = Draft::default();
    for file in 0..layout.files.len() {
        if let Some(table) = layout.inode_block(file) {
            task.pread(disk, table, layout::BLOCK).await?;
        }
        let mut described = 0;
        for piece in layout.pieces(file) {
            match piece {
                Piece::Map(at) => {
                    task.pread(disk, at, layout::BLOCK).await?;
                }
                Piece::Data(at, length) => {
                    if described == 0 {
                        draft.header(task, crew, record).await;
                        described = DATA_OF_HEADER;
                    }
                    described = described.saturating_sub(length);
                    draft.data(task, crew, record, at, length).await;
                }
            }
        }
        if layout.files[file].length == 0 {
            draft.header(task, crew, record).await;
        }
    }
    if draft.filled > 0 {
        draft.send(task, crew).await;
    }
    Ok(())
}

impl Draft {
    /// A header goes through the socket.
    async fn header(&mut self, task: &Task, crew: &RefCell<Crew>, record: u64) {
        self.filled += TAPE_BLOCK;
        if self.filled == record {
            self.send(task, crew).await;
        }
    }

    /// A block, a part of which may belong to the next record.
    async fn data(&mut self, task: &Task, crew: &RefCell<Crew>, record: u64, at: u64, length: u64) {
        let (mut at, mut left) = (at, length);
        while left > 0 {
            let part = left.min(record - self.filled);
            self.reads.push((at, part));
            self.filled += part.next_multiple_of(TAPE_BLOCK);
            at += part;
            left -= part;
            if self.filled == record {
                self.send(task, crew).await;
            }
        }
    }

    /// Rule dump-5: to the slave whose turn it is; not before it has answered the last time.
    async fn send(&mut self, task: &Task, crew: &RefCell<Crew>) {
        let to = self.slave;
        while crew.borrow().owes[to] {
            task.notified().await;
        }
        task.enter_kernel().await;
        task.compute(task.costs().system_call).await;
        task.leave_kernel();
        let mut crew = crew.borrow_mut();
        crew.inboxes[to].push_back(std::mem::take(&mut self.reads));
        crew.owes[to] = true;
        task.notify(crew.slaves[to]);
        *self = Draft { slave: (to + 1) % SLAVES, ..Draft::default() };
    }
}

/// Rule dump-6: reads at once, writes in turn.
async fn slave(dump: Dump, task: Task, crew: Rc<RefCell<Crew>>, number: usize) -> i32 {
    let disk = match open_disk(&task, &dump.disk).await {
        Ok(disk) => disk,
        Err(errno) => {
            crew.borrow_mut().complaint = Some(errno);
            return FAILED;
        }
    };
    let tape = task.open("/dev/null", OpenFlags::default()).expect("it is always there");
    loop {
        let record = loop {
            let record = crew.borrow_mut().inboxes[number].pop_front();
            match record {
                Some(record) => break record,
                None if crew.borrow().is_over => return 0,
                None => task.notified().await,
            }
        };
        for (at, length) in record {
            if let Err(errno) = task.pread(&disk, at, length).await {
                crew.borrow_mut().complaint = Some(errno);
            }
        }
        while crew.borrow().turn != number {
            task.notified().await;
        }
        let _ = task.pwrite(&tape, 0, dump.record_kib * TAPE_BLOCK).await;
        let mut crew = crew.borrow_mut();
        crew.owes[number] = false;
        crew.turn = (number + 1) % SLAVES;
        task.notify(crew.master);
        task.notify(crew.slaves[crew.turn]);
    }
}
