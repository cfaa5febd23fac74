//! Tasks of loads, and the disks that they are on.

use crate::harness::load::{Change, Load, Service, Task, Way};
use block::contract::Table;
use block::{Flags, Ioprio, IoprioClass};

/// Sectors of a gigabyte; parts of the disk that are so far apart have nothing to do with each
/// other.
pub const FAR: u64 = 1 << 21;
pub const MILLI: u64 = 1_000;
pub const SECOND: u64 = 1_000_000;

pub const REAL_TIME: Ioprio = Ioprio { class: IoprioClass::RealTime, level: 4 };
pub const IDLE: Ioprio = Ioprio { class: IoprioClass::Idle, level: 7 };

pub const fn level(level: u8) -> Ioprio {
    Ioprio { class: IoprioClass::BestEffort, level }
}

/// A load on a disk without a queue of its own.
pub fn on_disk(name: &str, tasks: Vec<Task>) -> Load {
    Load {
        name: name.into(),
        service: Service::Disk,
        table: Table::default(),
        nr_requests: 64,
        throttles: false,
        groups: Vec::new(),
        tasks,
        changes: Vec::new(),
        seed: 1,
    }
}

/// The same on a disk that takes some commands at once.
pub fn deep(depth: u32, load: Load) -> Load {
    Load { table: Table { depth, ..load.table }, ..load }
}

/// A load on flash that takes some commands at once.
pub fn on_flash(name: &str, depth: u32, tasks: Vec<Task>) -> Load {
    let load = on_disk(name, tasks);
    let table = Table { depth, rotational: false, ..load.table };
    Load { service: Service::Flash, table, ..load }
}

pub fn with(changes: &[(u64, Change)], load: Load) -> Load {
    Load { changes: changes.to_vec(), ..load }
}

pub fn random(at: u64) -> Task {
    Task { way: Way::Random(FAR / 2), ..Task::reader(at) }
}

pub fn filling(at: u64, batch: u32, plugs: bool) -> Task {
    Task { way: Way::Filling, batch, plugs, bios: 160, ..Task::reader(at) }
}

/// As dd with a large block: read-ahead that is plugged.
pub fn streams(at: u64, bios: u32) -> Task {
    Task { sectors: 64, batch: 4, plugs: true, bios, ..Task::reader(at) }
}

/// The kernel's flusher: many writes that nobody waits for.
pub fn flushes(at: u64, bios: u32) -> Task {
    Task { batch: 24, sectors: 16, bios, ..Task::writer(at, Flags::NONE) }
}

pub fn logs(at: u64, bios: u32) -> Task {
    Task { bios, thinks: 400, ..Task::writer(at, Flags::SYNC) }
}

/// So many sectors, each so many microseconds.
pub fn plays(at: u64, sectors: u32, each: u64) -> Task {
    Task { sectors, thinks: each, isochronous: true, bios: 120, ..Task::reader(at) }
}

/// It holds what it reads back for so many milliseconds.
pub fn dallies(at: u64, millis: u64) -> Task {
    Task { plugs: true, paces: millis * MILLI / 2, batch: 3, sectors: 16, ..Task::reader(at) }
}

pub fn in_group(group: u32, task: Task) -> Task {
    Task { group, ..task }
}

pub fn at(begins: u64, task: Task) -> Task {
    Task { begins, ..task }
}

/// One more than `number` readers, of which each begins `every` after the one before.
pub fn burst(number: u64, every: u64, begins: u64) -> Vec<Task> {
    let one = |n| {
        let task = Task { bios: 12, thinks: 2 * MILLI, exits: n % 2 == 0, ..random(n * FAR) };
        at(begins + n * every, task)
    };
    (0..=number).map(one).collect()
}

/// Readers that read a piece in turn each, as the threads of one program.
pub fn cooperate(number: u64, first: u64, bios: u32) -> Vec<Task> {
    let one = |n| Task {
        way: Way::Stride(8 * number),
        bios,
        thinks: 80 + 30 * n,
        begins: 3 * n,
        ..Task::reader(first + 8 * n)
    };
    (0..number).map(one).collect()
}

pub fn together(parts: &[&[Task]]) -> Vec<Task> {
    parts.concat()
}
