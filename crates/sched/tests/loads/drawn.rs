//! Loads for who knows processes, drawn at random.

use crate::harness::load::{Change, Load, Task, Way};
use crate::tasks::{
    FAR, IDLE, MILLI, REAL_TIME, SECOND, at, cooperate, deep, flushes, level, logs, on_disk,
    on_flash, random, streams,
};
use block::Ioprio;

/// How many loads of pairs there are.
pub const PAIRS: u64 = 10;

/// Readers that begin together, work together, and then go apart: a few of them at a time, in
/// groups, in bursts, raised and long since not.
pub fn pairs(seed: u64) -> Load {
    let name = format!("pairs_{seed}");
    let mut rng = base::Rng::stream(seed, "pairs");
    let (mut tasks, mut changes) = (Vec::new(), Vec::new());
    let mut now = 2 * MILLI;
    for pair in 0..rng.between(4, 7) {
        let number = rng.between(2, 4);
        let place = (pair + 1) * 8 * FAR;
        let each = [3, 40, 200, 500][rng.below(4) as usize];
        let thinks = [60, 60, 900, 5_000][rng.below(4) as usize];
        let group = if seed.is_multiple_of(3) { rng.below(3) as u32 } else { 0 };
        let apart = now + [60, 250, 700][rng.below(3) as usize] * MILLI;
        for (n, mut task) in cooperate(number, place, 70).into_iter().enumerate() {
            let other = place + (n as u64 + 1) * FAR;
            task.begins = now + n as u64 * each;
            task.thinks += thinks;
            task.group = group;
            task.mixed = if rng.chance(1, 4) { 10 } else { 0 };
            task.bios = rng.between(50, 140) as u32;
            task.exits = rng.chance(1, 2);
            task.ioprio = if rng.chance(1, 4) { level(2) } else { Ioprio::NONE };
            let number = tasks.len();
            let way = Way::Random(FAR);
            changes.push((apart + n as u64 * each, Change::Turn { task: number, at: other, way }));
            if rng.chance(1, 3) {
                let ioprio = level(rng.below(8) as u8);
                changes.push((apart - 30 * MILLI, Change::Priority { task: number, ioprio }));
            }
            if rng.chance(1, 5) {
                changes.push((apart - 20 * MILLI, Change::Set("low_latency", 0)));
                changes.push((apart + 400 * MILLI, Change::Set("low_latency", 1)));
            }
            tasks.push(task);
        }
        now += [1, 30, 400, 2_000, 11_000][rng.below(5) as usize] * MILLI;
    }
    tasks.push(at(now / 3, Task { thinks: 3 * MILLI, ..random(0) }));
    tasks.push(Task { thinks: now / 300, bios: 250, ..Task::reader(FAR) });
    let depth = if rng.chance(1, 2) { 1 } else { 3 };
    let load = match seed % 4 {
        0 => on_flash(&name, depth, tasks),
        _ => deep(depth, on_disk(&name, tasks)),
    };
    Load { groups: vec![(0, 100), (1, 400)], changes, seed, ..load }
}

/// How many loads there are in which time runs out.
pub const LATE: u64 = 5;

/// Readers that are raised no more, now with pauses and now without, on a disk that is too slow for
/// their budgets.
pub fn late(seed: u64) -> Load {
    let name = format!("late_{seed}");
    let mut rng = base::Rng::stream(seed, "late");
    let task = |n: u64| {
        let way = [Way::Forward, Way::Random(FAR), Way::Stride(600)][(n + seed) as usize % 3];
        let (batch, sectors) = (rng.between(1, 5) as u32, rng.between(1, 6) as u32 * 8);
        Task { way, batch, sectors, bios: 260, plugs: n == 1, ..Task::reader(n * FAR) }
    };
    let mut tasks: Vec<Task> = (0..4).map(task).collect();
    tasks[3].mixed = 50;
    tasks.push(Task { thinks: 30 * MILLI, ..flushes(5 * FAR, 150) });
    let millis = rng.between(10, 60) as i64;
    let mut changes = vec![
        (0, Change::Set("low_latency", 0)),
        (0, Change::Set("timeout_sync", millis)),
        (500 * MILLI, Change::Set("max_budget", rng.between(200, 1_500) as i64)),
        (SECOND, Change::Set("max_budget", 0)),
        (1_500 * MILLI, Change::Set("max_budget", rng.between(100, 800) as i64)),
    ];
    for _ in 0..50 {
        let (task, at) = (rng.below(4) as usize, rng.below(2 * SECOND));
        let micros = [40, 40, 5 * MILLI, 14 * MILLI][rng.below(4) as usize];
        changes.push((at, Change::Think { task, micros }));
    }
    let depth = rng.between(1, 3) as u32;
    Load { changes, seed, ..deep(depth, on_disk(&name, tasks)) }
}

/// How many mixtures there are.
pub const MIXTURES: u64 = 12;

/// Tasks, devices and changes drawn at random.
pub fn mixture(seed: u64) -> Load {
    let name = format!("mixture_{seed}");
    let mut rng = base::Rng::stream(seed, "mixture");
    let number = rng.between(4, 9);
    let begins = [0, 1_000, 50_000, 700_000, 3_000_000];
    let thinks = [0, 0, 150, 2_000, 6_000, 15_000, 60_000];
    let task = |rng: &mut base::Rng, n: u64| {
        let place = rng.below(number);
        let mut task = match rng.below(8) {
            0 | 1 => Task::reader(n * FAR),
            2 => random(n * FAR),
            3 => Task { way: Way::Stride(16), ..Task::reader(place / 2 * FAR + n % 2 * 8) },
            4 => streams(n * FAR, 0),
            5 => flushes(n * FAR, 0),
            6 => logs(n * FAR, 0),
            _ => Task { mixed: 30, ..random(place * FAR) },
        };
        task.begins = begins[rng.below(5) as usize] + rng.below(3) * 600;
        task.thinks = thinks[rng.below(7) as usize];
        task.jitter = rng.below(task.thinks + 1);
        task.batch = task.batch.max(rng.between(1, 4) as u32);
        task.plugs |= rng.chance(1, 3);
        task.bios = rng.between(40, 160) as u32;
        task.group = rng.below(4) as u32;
        task.exits = rng.chance(1, 3);
        task.ioprio = [Ioprio::NONE, Ioprio::NONE, level(rng.below(8) as u8), REAL_TIME, IDLE]
            [rng.below(5) as usize];
        task
    };
    let tasks = (0..number).map(|n| task(&mut rng, n)).collect();
    let depth = [1, 2, 5, 16][rng.below(4) as usize];
    let load = if rng.chance(2, 3) {
        deep(depth, on_disk(&name, tasks))
    } else {
        on_flash(&name, depth, tasks)
    };
    let mut changes = Vec::new();
    for _ in 0..rng.below(20) {
        let task = rng.below(number) as usize;
        let settings = [
            ("slice_idle", 8),
            ("low_latency", 3),
            ("max_budget", 2_000),
            ("fifo_expire_sync", 100),
            ("timeout_sync", 200),
            ("nr_requests", 60),
        ];
        let (setting, most) = settings[rng.below(6) as usize];
        let change = match rng.below(8) {
            0 => Change::Set(setting, rng.below(most) as i64),
            1 => Change::Priority { task, ioprio: level(rng.below(8) as u8) },
            2 => Change::Move { task, group: rng.below(4) as u32 },
            3 => Change::Weigh {
                group: rng.between(1, 3) as u32,
                weight: rng.between(10, 900) as u32,
            },
            4 => Change::Turn { task, at: rng.below(number) * FAR, way: Way::Forward },
            5 => Change::Think { task, micros: thinks[rng.below(7) as usize] },
            6 => Change::Exit(task),
            _ => Change::Requeue,
        };
        changes.push((rng.below(2 * SECOND), change));
    }
    let nr_requests = [8, 24, 64, 64][rng.below(4) as usize];
    Load { groups: vec![(0, 100), (0, 400), (2, 250)], changes, nr_requests, seed, ..load }
}

/// Loads of processes that never are cooperators, and come late enough that they never seem to be
/// one program: of others the twin of BFQ knows nothing.
pub fn apart(seed: u64) -> Load {
    let mut load = mixture(seed);
    for (n, task) in load.tasks.iter_mut().enumerate() {
        task.at = (n as u64 + 1) * 64 * FAR;
        task.begins = n as u64 * 700 * MILLI;
        // The others shall be in its queue when it comes.
        task.bios = task.bios.max(90);
        task.exits = false;
    }
    let number = load.tasks.len() as u64;
    load.nr_requests = 64;
    for (n, (at, change)) in load.changes.iter_mut().enumerate() {
        *at *= number / 2;
        match change {
            Change::Turn { at, .. } => *at = (100 + n as u64) * 64 * FAR,
            Change::Set("nr_requests", _) => *change = Change::Requeue,
            _ => {}
        }
    }
    load
}
