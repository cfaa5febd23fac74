//! Loads for who knows processes, drawn at random.

use crate::harness::load::{Change, Load, Task, Way};
use crate::tasks::{
    FAR, IDLE, MILLI, REAL_TIME, SECOND, at, cooperate, deep, flushes, level, logs, on_disk,
    on_flash, random, streams,
};
use block::Ioprio;
use block::scheduler::CpuPolicy;

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

/// How many loads there are of times at which something changes.
pub const EDGES: u64 = 24;

/// Tasks that come again about when a rule makes a difference: 10 ms after they were split, 180 ms
/// after the last of a burst, 2 s after they had something to do. Each comes a few ticks before,
/// after, or in the tick itself.
pub fn edges(seed: u64) -> Load {
    let name = format!("edges_{seed}");
    let mut rng = base::Rng::stream(seed, "edges");
    let spans = [3, 9, 17, 93, 173, 493, 593, 993, 1_993, 1_993, 9_993];
    let mut tasks: Vec<Task> = Vec::new();
    let mut begins = 0;
    let mut changes = Vec::new();
    for n in 0..rng.between(5, 11) {
        let span = spans[rng.below(spans.len() as u64) as usize];
        begins += [0, 60, 174 * MILLI, 594 * MILLI][rng.below(4) as usize];
        let way = [Way::Forward, Way::Stride(16), Way::Random(FAR)][rng.below(3) as usize];
        let place = if rng.chance(1, 3) { n / 3 * 3 } else { n };
        let bios = match span {
            0..100 => 60,
            100..1_000 => 30,
            1_000..5_000 => 16,
            _ => 5,
        };
        tasks.push(Task {
            way,
            begins: begins + rng.below(12) * MILLI,
            thinks: span * MILLI,
            jitter: [8, 16, 36][rng.below(3) as usize] * MILLI,
            sectors: [8, 8, 64, 512][rng.below(4) as usize],
            batch: rng.between(1, 3) as u32,
            bios,
            mixed: if rng.chance(1, 4) { 25 } else { 0 },
            ioprio: if rng.chance(1, 4) { level(2) } else { Ioprio::NONE },
            group: if seed.is_multiple_of(4) { rng.below(2) as u32 } else { 0 },
            ..Task::reader(place * FAR + n % 3 * 8)
        });
        let at = begins + rng.below(2 * SECOND);
        let way = Way::Random(FAR);
        changes.push((at, Change::Turn { task: n as usize, at: (20 + n) * FAR, way }));
        let at = at + rng.below(3 * SECOND);
        let way = Way::Stride(16);
        changes.push((at, Change::Turn { task: n as usize, at: 40 * FAR + n * 8, way }));
    }
    let depth = [1, 1, 2, 8][rng.below(4) as usize];
    let load = match seed % 3 {
        0 => on_flash(&name, depth, tasks),
        _ => deep(depth, on_disk(&name, tasks)),
    };
    Load { groups: vec![(0, 300)], changes, seed, ..load }
}

/// How many loads there are of what is seldom.
pub const SELDOM: u64 = 16;

/// Policies of the processor, shared io_contexts, tasks that wake others, settings at their bounds,
/// groups that go, and requests that come back.
pub fn seldom(seed: u64) -> Load {
    let name = format!("seldom_{seed}");
    let mut rng = base::Rng::stream(seed, "seldom");
    let number = rng.between(5, 9);
    let mut tasks: Vec<Task> = Vec::new();
    for n in 0..number {
        let place = rng.below(number) / 2 * FAR + n % 2 * 8;
        let mut task = match rng.below(6) {
            0 => Task { way: Way::Stride(16), ..Task::reader(place) },
            1 => random(place),
            2 => flushes(n * FAR, 0),
            3 => Task { mixed: 50, ..random(place) },
            4 => logs(n * FAR, 0),
            _ => streams(n * FAR, 0),
        };
        task.policy = [CpuPolicy::Normal, CpuPolicy::Normal, CpuPolicy::RealTime, CpuPolicy::Idle]
            [rng.below(4) as usize];
        task.thinks = [0, 100, 3_000, 11_000, 45_000][rng.below(5) as usize];
        task.jitter = rng.below(task.thinks / 2 + 1);
        task.begins = rng.below(4) * rng.below(90) * MILLI;
        task.bios = rng.between(60, 140) as u32;
        task.batch = task.batch.max(rng.between(1, 3) as u32);
        task.sectors = [8, 16, 64, 256][rng.below(4) as usize];
        task.group = rng.below(4) as u32;
        task.exits = rng.chance(1, 3);
        task.isochronous = task.thinks > 2_000 && rng.chance(1, 4);
        let earlier = (n > 0).then(|| rng.below(n) as usize);
        match rng.below(5) {
            0 => task.shares = earlier,
            1 => task.woken_by = earlier.filter(|other| tasks[*other].woken_by.is_none()),
            _ => {}
        }
        tasks.push(task);
    }
    let mut changes = Vec::new();
    for _ in 0..rng.between(10, 30) {
        let task = rng.below(number) as usize;
        let group = rng.below(4) as u32;
        let settings = [
            ("slice_idle", 0),
            ("slice_idle", 8),
            ("slice_idle_us", 500),
            ("strict_guarantees", 1),
            ("strict_guarantees", 0),
            ("low_latency", 0),
            ("low_latency", 1),
            ("max_budget", 100),
            ("max_budget", 60_000),
            ("max_budget", 0),
            ("back_seek_max", 0),
            ("timeout_sync", 20),
            ("fifo_expire_async", 1),
            ("nr_requests", 20),
        ];
        let change = match rng.below(9) {
            0..3 => {
                let (setting, value) = settings[rng.below(settings.len() as u64) as usize];
                Change::Set(setting, value)
            }
            3 => {
                let ioprio = [level(0), level(7), IDLE, REAL_TIME][rng.below(4) as usize];
                Change::Priority { task, ioprio }
            }
            4 => Change::Move { task, group },
            5 => Change::Turn { task, at: rng.below(number) * FAR, way: Way::Stride(16) },
            6 => Change::Turn { task, at: rng.below(number) * FAR, way: Way::Random(FAR) },
            7 => Change::Weigh { group: 2, weight: rng.between(1, 1_000) as u32 },
            _ => Change::Requeue,
        };
        changes.push((rng.below(1_500) * MILLI, change));
    }
    changes.push((rng.between(300, 900) * MILLI, Change::Remove(1)));
    changes.push((rng.between(300, 900) * MILLI, Change::Remove(3)));
    let depth = [1, 2, 4, 32][rng.below(4) as usize];
    let load = match seed % 2 {
        0 => on_flash(&name, depth, tasks),
        _ => deep(depth, on_disk(&name, tasks)),
    };
    Load { groups: vec![(0, 100), (0, 400), (2, 250)], changes, nr_requests: 32, seed, ..load }
}
