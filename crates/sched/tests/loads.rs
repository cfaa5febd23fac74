//! What the schedulers make of whole loads: readers and writers that react to what is done, on
//! disks that take their time.
//!
//! Their rules are judged by recordings of real kernels, by scripts and by naive twins. This test
//! holds what they do together: the story of each load on each kernel (who leaves when, what is
//! withheld, all messages and timers) is one line of `tests/loads/`, with a fingerprint at the end.
//! `UPDATE_EXPECT=1` writes the lines anew; a line that changes wants a reason.

mod harness;

use block::contract::Table;
use block::{Flags, Ioprio, IoprioClass, Kernel, Op, Version};
use expect_test::expect_file;
use harness::load::{Change, Load, Service, Task, Way};
use sched::{Backport, Entry};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Sectors of a gigabyte; parts of the disk that are so far apart have nothing to do with each
/// other.
const FAR: u64 = 1 << 21;
const MILLI: u64 = 1_000;
const SECOND: u64 = 1_000_000;

const REAL_TIME: Ioprio = Ioprio { class: IoprioClass::RealTime, level: 4 };
const IDLE: Ioprio = Ioprio { class: IoprioClass::Idle, level: 7 };

const fn level(level: u8) -> Ioprio {
    Ioprio { class: IoprioClass::BestEffort, level }
}

/// A load on a disk without a queue of its own.
fn on_disk(name: &str, tasks: Vec<Task>) -> Load {
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
fn deep(depth: u32, load: Load) -> Load {
    Load { table: Table { depth, ..load.table }, ..load }
}

/// A load on flash that takes some commands at once.
fn on_flash(name: &str, depth: u32, tasks: Vec<Task>) -> Load {
    let load = on_disk(name, tasks);
    let table = Table { depth, rotational: false, ..load.table };
    Load { service: Service::Flash, table, ..load }
}

fn with(changes: &[(u64, Change)], load: Load) -> Load {
    Load { changes: changes.to_vec(), ..load }
}

fn random(at: u64) -> Task {
    Task { way: Way::Random(FAR / 2), ..Task::reader(at) }
}

fn filling(at: u64, batch: u32, plugs: bool) -> Task {
    Task { way: Way::Filling, batch, plugs, bios: 160, ..Task::reader(at) }
}

/// As dd with a large block: read-ahead that is plugged.
fn streams(at: u64, bios: u32) -> Task {
    Task { sectors: 64, batch: 4, plugs: true, bios, ..Task::reader(at) }
}

/// The kernel's flusher: many writes that nobody waits for.
fn flushes(at: u64, bios: u32) -> Task {
    Task { batch: 24, sectors: 16, bios, ..Task::writer(at, Flags::NONE) }
}

fn logs(at: u64, bios: u32) -> Task {
    Task { bios, thinks: 400, ..Task::writer(at, Flags::SYNC) }
}

/// So many sectors, each so many microseconds.
fn plays(at: u64, sectors: u32, each: u64) -> Task {
    Task { sectors, thinks: each, isochronous: true, bios: 120, ..Task::reader(at) }
}

/// It holds what it reads back for so many milliseconds.
fn dallies(at: u64, millis: u64) -> Task {
    Task { plugs: true, paces: millis * MILLI / 2, batch: 3, sectors: 16, ..Task::reader(at) }
}

fn in_group(group: u32, task: Task) -> Task {
    Task { group, ..task }
}

fn at(begins: u64, task: Task) -> Task {
    Task { begins, ..task }
}

/// One more than `number` readers, of which each begins `every` after the one before.
fn burst(number: u64, every: u64, begins: u64) -> Vec<Task> {
    let one = |n| {
        let task = Task { bios: 12, thinks: 2 * MILLI, exits: n % 2 == 0, ..random(n * FAR) };
        at(begins + n * every, task)
    };
    (0..=number).map(one).collect()
}

/// Readers that read a piece in turn each, as the threads of one program.
fn cooperate(number: u64, first: u64, bios: u32) -> Vec<Task> {
    let one = |n| Task {
        way: Way::Stride(8 * number),
        bios,
        thinks: 80 + 30 * n,
        begins: 3 * n,
        ..Task::reader(first + 8 * n)
    };
    (0..number).map(one).collect()
}

fn together(parts: &[&[Task]]) -> Vec<Task> {
    parts.concat()
}

/// Loads that show one thing each.
fn of_processes() -> Vec<Load> {
    let mut loads = Vec::new();
    loads.extend(of_sharing());
    loads.extend(of_merging());
    loads.extend(of_time());
    loads.extend(of_bursts());
    loads.extend(of_settings());
    loads.extend(of_groups());
    loads.extend((1..=LATE).map(late));
    loads.extend((1..=PAIRS).map(pairs));
    loads.extend((1..=MIXTURES).map(mixture));
    loads
}

/// Who shares the disk with whom.
fn of_sharing() -> Vec<Load> {
    let (reader, far) = (streams(0, 160), streams(FAR, 160));
    let classes = vec![
        Task { ioprio: REAL_TIME, thinks: 6 * MILLI, bios: 60, ..random(0) },
        Task { ioprio: level(0), ..streams(FAR, 80) },
        Task { ioprio: level(7), ..streams(2 * FAR, 80) },
        Task { ioprio: IDLE, bios: 60, ..Task::reader(3 * FAR) },
        Task { ioprio: IDLE, ..logs(4 * FAR, 60) },
    ];
    let promote = [
        (200 * MILLI, Change::Priority { task: 3, ioprio: level(2) }),
        (300 * MILLI, Change::Priority { task: 1, ioprio: IDLE }),
        (400 * MILLI, Change::Priority { task: 2, ioprio: REAL_TIME }),
        (450 * MILLI, Change::Priority { task: 4, ioprio: level(1) }),
        (600 * MILLI, Change::Priority { task: 1, ioprio: level(4) }),
    ];
    let levels = [level(1), IDLE, level(4), REAL_TIME, level(6), Ioprio::NONE];
    let changing: Vec<_> = (1..40)
        .map(|n| {
            let (task, ioprio) = (n % 4, levels[n / 2 % levels.len()]);
            (n as u64 * 41 * MILLI, Change::Priority { task, ioprio })
        })
        .collect();
    let writing = vec![
        Task { thinks: 20 * MILLI, ..flushes(0, 500) },
        Task { thinks: 30 * MILLI, mixed: 20, ..flushes(FAR, 400) },
        logs(2 * FAR, 200),
        Task { mixed: 30, ..random(3 * FAR) },
    ];
    // Faster than any raising lasts long for, and one that seeks when it has begun to.
    let stream = |n: u64| Task { sectors: 512, batch: 6, ..streams(n * FAR, 900) };
    let mut fast: Vec<Task> = (0..5).map(stream).collect();
    fast.push(at(800 * MILLI, Task { thinks: 4 * MILLI, bios: 1_000, ..random(9 * FAR) }));
    let back = Task { way: Way::Backward, batch: 3, plugs: true, ..Task::reader(3 * FAR) };
    vec![
        on_disk("streams", vec![reader.clone(), far.clone(), logs(2 * FAR, 200)]),
        deep(8, on_disk("seekers", vec![random(0), random(FAR), random(2 * FAR), reader.clone()])),
        deep(4, on_disk("flusher", vec![flushes(0, 300), reader.clone(), logs(2 * FAR, 120)])),
        on_flash("flusher_flash", 16, vec![flushes(0, 400), reader.clone(), random(2 * FAR)]),
        with(&changing, deep(2, on_disk("priorities", writing))),
        with(&promote, deep(2, on_disk("classes", classes))),
        deep(3, on_disk("backward", vec![back, far.clone(), random(0)])),
        on_disk("gaps", vec![filling(0, 8, false), filling(FAR, 4, true), random(2 * FAR)]),
        deep(2, on_disk("gaps_deep", vec![filling(0, 8, true), filling(FAR, 12, false)])),
        on_flash("flash", 8, vec![reader.clone(), far, random(2 * FAR), logs(3 * FAR, 150)]),
        deep(2, on_disk("plugs_long", vec![dallies(0, 3), dallies(FAR, 11), dallies(2 * FAR, 17)])),
        // Four are one request; 500 of those are as much as raising lasts for.
        on_disk("one_stream", vec![Task { sectors: 60, ..streams(0, 4_000) }]),
        on_flash("fast_streams", 32, fast),
        on_flash("one_stream_flash", 4, vec![Task { sectors: 512, ..streams(0, 1_500) }]),
        on_flash("flash_alone", 1, vec![reader, random(2 * FAR), logs(3 * FAR, 150)]),
        Load { nr_requests: 6, ..deep(3, on_disk("few_tags", few_tags())) },
        Load { nr_requests: 12, ..on_flash("few_tags_flash", 32, few_tags()) },
    ]
}

fn few_tags() -> Vec<Task> {
    vec![
        flushes(0, 200),
        Task { batch: 12, ..logs(FAR, 160) },
        Task { batch: 12, bios: 160, ..random(2 * FAR) },
        Task { mixed: 40, batch: 4, bios: 160, ..random(3 * FAR) },
        at(300 * MILLI, Task { thinks: 3 * MILLI, bios: 60, ..Task::reader(4 * FAR) }),
    ]
}

/// Queues that become one and part again.
fn of_merging() -> Vec<Load> {
    let apart = |begins| {
        [
            (begins, Change::Turn { task: 0, at: 5 * FAR, way: Way::Random(FAR) }),
            (begins + 5 * MILLI, Change::Turn { task: 1, at: 7 * FAR, way: Way::Random(FAR) }),
            (begins + 5 * SECOND, Change::Turn { task: 0, at: 9 * FAR, way: Way::Stride(16) }),
            (begins + 5 * SECOND, Change::Turn { task: 1, at: 9 * FAR + 8, way: Way::Stride(16) }),
        ]
    };
    let pair = |bios| cooperate(2, 0, bios);
    let other = [Task { bios: 250, thinks: MILLI, ..random(3 * FAR) }, streams(4 * FAR, 200)];
    let slow: Vec<Task> =
        pair(200).into_iter().map(|it| Task { thinks: 12 * MILLI, jitter: 8_000, ..it }).collect();
    let late: Vec<Task> = pair(200).into_iter().map(|it| at(9 * SECOND + it.begins, it)).collect();
    let mut chain = cooperate(4, 0, 120);
    chain.iter_mut().enumerate().for_each(|(n, it)| it.begins = 40 * MILLI * n as u64);
    let exits = [
        (120 * MILLI, Change::Exit(0)),
        (500 * MILLI, Change::Exit(2)),
        (900 * MILLI, Change::Exit(1)),
    ];
    let mut grouped = together(&[&pair(250), &other]);
    grouped[0].group = 1;
    grouped[1].group = 1;
    let moved = [
        (80 * MILLI, Change::Move { task: 0, group: 2 }),
        (400 * MILLI, Change::Move { task: 1, group: 2 }),
        (800 * MILLI, Change::Remove(1)),
    ];
    let quiet = |load| with(&[(0, Change::Set("low_latency", 0))], load);
    vec![
        with(&apart(300 * MILLI), on_disk("cooperators", together(&[&pair(300), &other]))),
        with(
            &apart(300 * MILLI),
            deep(6, on_disk("cooperators_deep", together(&[&pair(300), &other]))),
        ),
        with(&apart(20 * MILLI), on_flash("cooperators_flash", 1, together(&[&pair(300), &other]))),
        with(&apart(2 * SECOND), on_disk("cooperators_slow", together(&[&slow, &other]))),
        with(&apart(9_300 * MILLI), on_disk("cooperators_late", together(&[&late, &other]))),
        quiet(on_disk("cooperators_unraised", together(&[&cooperate(3, 0, 200), &other]))),
        with(&exits, deep(2, on_disk("cooperators_exit", together(&[&chain, &other])))),
        Load {
            groups: vec![(0, 200), (0, 700)],
            ..with(&moved, on_disk("cooperators_move", grouped))
        },
        on_disk("stable", stable()),
        on_flash("stable_flash", 16, stable()),
        with(
            &apart(11 * SECOND),
            on_disk("cooperators_old", together(&[&slow, &burst(5, 0, 8 * SECOND)])),
        ),
    ]
}

/// Born together and alike for long.
fn stable() -> Vec<Task> {
    let one = |n: u64| Task {
        bios: 250,
        thinks: 9 * MILLI,
        jitter: 5_000,
        begins: n * 4 * MILLI,
        mixed: 10 * (n % 2),
        ..Task::reader(n * FAR)
    };
    together(&[&(0..4).map(one).collect::<Vec<_>>(), &[at(2 * SECOND, streams(6 * FAR, 300))]])
}

/// Who waits for whom, and for how long.
fn of_time() -> Vec<Load> {
    let thinks = |n: u64, micros| Task { thinks: micros, bios: 150, ..Task::reader(n * FAR) };
    // The third wakes the second, and that one the first.
    let seeks = |n: u64, thinks, woken_by| Task { thinks, woken_by, bios: 300, ..random(n * FAR) };
    let chain = |thinks| {
        vec![
            seeks(0, thinks, Some(1)),
            seeks(1, thinks, Some(2)),
            Task { thinks: 9 * MILLI + thinks, ..seeks(2, 0, None) },
        ]
    };
    let noise = [streams(5 * FAR, 250), flushes(6 * FAR, 200)];
    let player = [at(11 * SECOND, plays(0, 64, 60 * MILLI)), plays(2 * FAR, 8, 300 * MILLI)];
    let jumps = [
        (13 * SECOND, Change::Turn { task: 0, at: 0, way: Way::Random(8 * FAR) }),
        (15 * SECOND, Change::Turn { task: 0, at: 0, way: Way::Forward }),
    ];
    // How bound by I/O they are decides, where the disk takes many commands and nobody is raised.
    let bound = |name: &str, scale: u64| {
        let task = |n: u64, micros| Task {
            jitter: micros * scale / 4,
            bios: 300,
            batch: 1 + (n % 2) as u32,
            ..thinks(n, micros * scale)
        };
        let mut tasks: Vec<Task> =
            (0..).zip([60, 200, 700, 2_500]).map(|(n, micros)| task(n, micros)).collect();
        tasks.push(Task { batch: 12, bios: 1_500, ..random(6 * FAR) });
        tasks.push(Task { batch: 6, bios: 800, ..streams(7 * FAR, 800) });
        let mut changes = vec![(0, Change::Set("low_latency", 0))];
        for n in 0..40 {
            let micros = [50, 900, 3_000, 9_000, 14_000, 200][n as usize % 6];
            changes.push((n * 29 * MILLI, Change::Think { task: n as usize % 4, micros }));
        }
        with(&changes, on_flash(name, 32, tasks))
    };
    let quiet: Vec<_> = (24..64)
        .map(|n| (n * 500 * MILLI, Change::Set("low_latency", i64::from(n % 4 != 0))))
        .collect();
    let late = Task { begins: 11 * SECOND, bios: 900, ..streams(5 * FAR, 900) };
    vec![
        on_disk(
            "thinkers",
            vec![thinks(0, 500), thinks(1, 3_000), thinks(2, 7_000), thinks(3, 20_000)],
        ),
        deep(
            4,
            on_disk(
                "thinkers_deep",
                vec![thinks(0, 2_000), thinks(1, 5_000), random(3 * FAR), flushes(5 * FAR, 150)],
            ),
        ),
        on_flash(
            "thinkers_flash",
            4,
            vec![thinks(0, 200), thinks(1, 1_000), thinks(2, 30_000), random(3 * FAR)],
        ),
        bound("bound_flash", 1),
        bound("bound_flash_slow", 3),
        Load { service: Service::Disk, ..bound("bound_disk", 2) },
        on_disk("wakers", together(&[&chain(300), &noise])),
        deep(4, on_disk("wakers_deep", together(&[&chain(6 * MILLI), &noise]))),
        on_flash("wakers_flash", 4, together(&[&chain(6 * MILLI), &noise])),
        with(&jumps, on_disk("player", together(&[&player, std::slice::from_ref(&late)]))),
        with(&quiet, on_disk("player_unraised", together(&[&player, std::slice::from_ref(&late)]))),
        with(&jumps, on_flash("player_flash", 4, together(&[&player, &[late]]))),
        on_disk(
            "long_idle",
            vec![
                Task { thinks: 3 * SECOND, bios: 12, batch: 3, ..Task::reader(0) },
                at(SECOND, Task { thinks: 11 * SECOND, bios: 4, ..random(FAR) }),
                Task { thinks: 90 * MILLI, ..logs(2 * FAR, 250) },
            ],
        ),
    ]
}

/// Tasks that come together.
fn of_bursts() -> Vec<Load> {
    let old = streams(20 * FAR, 200);
    let twice = together(&[
        &burst(9, 2 * MILLI, 0),
        &burst(5, 2 * MILLI, 14 * SECOND),
        &[Task { thinks: 100 * MILLI, bios: 160, ..old.clone() }],
    ]);
    let again = |number| {
        let mut tasks = burst(number, MILLI, 0);
        tasks.iter_mut().for_each(|it| {
            (it.thinks, it.bios) = (2_500 * MILLI, 8);
        });
        tasks
    };
    // One that is interrupted by another group, and goes on.
    let mut grouped = burst(15, 9 * MILLI, 0);
    grouped.iter_mut().enumerate().for_each(|(n, it)| it.group = [1, 1, 2, 2, 2, 1][n % 6]);
    grouped[8..].iter_mut().for_each(|it| it.group = 1);
    let mut pairs = cooperate(2, 0, 150);
    pairs.extend(burst(7, MILLI, 4));
    vec![
        deep(
            2,
            on_disk("burst_small", together(&[&burst(4, MILLI, 10), &[at(SECOND, old.clone())]])),
        ),
        deep(
            2,
            on_disk("burst_large", together(&[&burst(11, MILLI, 10), &[at(SECOND, old.clone())]])),
        ),
        deep(
            2,
            on_disk(
                "burst_busy",
                together(&[std::slice::from_ref(&old), &burst(11, 20 * MILLI, 300 * MILLI)]),
            ),
        ),
        on_disk("burst_at_once", together(&[&burst(9, 0, 0), &[at(SECOND, old.clone())]])),
        on_flash("burst_flash", 8, together(&[&burst(11, 30 * MILLI, 10), &[at(SECOND, old)]])),
        on_disk("burst_twice", twice),
        Load { groups: vec![(0, 100), (0, 300)], ..on_disk("burst_groups", grouped) },
        deep(2, on_disk("burst_again", again(10))),
        deep(2, on_disk("burst_again_small", again(5))),
        with(
            &[(200 * MILLI, Change::Turn { task: 0, at: 30 * FAR, way: Way::Random(FAR) })],
            on_disk("burst_of_cooperators", pairs),
        ),
    ]
}

/// Settings that are written while it goes on.
fn of_settings() -> Vec<Load> {
    let tasks = || {
        vec![
            streams(0, 240),
            Task { thinks: 2 * MILLI, bios: 200, ..Task::reader(FAR) },
            Task { mixed: 30, bios: 200, ..random(2 * FAR) },
            flushes(3 * FAR, 200),
            logs(4 * FAR, 200),
        ]
    };
    let set = |name: &str, settings: &[(u64, &'static str, i64)]| {
        let changes: Vec<_> =
            settings.iter().map(|it| (it.0 * MILLI, Change::Set(it.1, it.2))).collect();
        with(&changes, deep(4, on_disk(name, tasks())))
    };
    let waits: Vec<_> =
        (1..300).map(|n| (n * 5_300, Change::Set("slice_idle", (n % 2 * 8) as i64))).collect();
    let requeues: Vec<_> = (1..60).map(|n| (n * 23 * MILLI, Change::Requeue)).collect();
    let renewed = [(300 * MILLI, Change::Renew), (900 * MILLI, Change::Exit(1))];
    let mut cached = deep(
        4,
        on_disk(
            "flushes",
            together(&[
                &tasks(),
                &[Task { flags: Flags::SYNC.with(Flags::FUA), bios: 80, ..logs(6 * FAR, 80) }],
            ]),
        ),
    );
    cached.table.cache = true;
    vec![
        set(
            "low_latency",
            &[(0, "low_latency", 0), (700, "low_latency", 1), (1_400, "low_latency", 0)],
        ),
        set(
            "slice_idle",
            &[(0, "slice_idle", 0), (600, "slice_idle", 8), (900, "slice_idle_us", 900)],
        ),
        with(&waits, deep(2, on_disk("slice_idle_changes", tasks()))),
        set(
            "strict",
            &[(0, "slice_idle", 2), (1, "strict_guarantees", 1), (900, "strict_guarantees", 0)],
        ),
        set(
            "budgets",
            &[
                (0, "max_budget", 96),
                (500, "max_budget", 0),
                (800, "timeout_sync", 12),
                (1_500, "max_budget", 4_000),
            ],
        ),
        set(
            "expiry",
            &[
                (0, "fifo_expire_sync", 3),
                (0, "fifo_expire_async", 20),
                (900, "fifo_expire_sync", 60),
            ],
        ),
        set(
            "seeks",
            &[(0, "back_seek_max", 100), (400, "back_seek_penalty", 1), (900, "back_seek_max", 0)],
        ),
        set(
            "depths",
            &[
                (0, "nr_requests", 40),
                (300, "async_depth", 5),
                (600, "nr_requests", 9),
                (1_000, "nr_requests", 120),
            ],
        ),
        set(
            "slices",
            &[
                (0, "slice_sync", 20),
                (0, "slice_async", 10),
                (300, "quantum", 2),
                (600, "group_idle", 0),
                (900, "target_latency", 50),
            ],
        ),
        with(&requeues, deep(4, on_disk("requeues", tasks()))),
        with(&requeues, on_flash("requeues_flash", 6, tasks())),
        with(&renewed, deep(2, on_disk("renewed", tasks()))),
        cached,
    ]
}

/// Control groups.
fn of_groups() -> Vec<Load> {
    let groups = vec![(0, 100), (0, 600), (2, 50), (2, 800), (4, 300)];
    let tasks = || {
        vec![
            in_group(1, streams(0, 160)),
            in_group(2, Task { bios: 120, ..random(FAR) }),
            in_group(3, streams(2 * FAR, 160)),
            in_group(4, Task { thinks: 3 * MILLI, bios: 120, ..Task::reader(3 * FAR) }),
            in_group(5, logs(4 * FAR, 160)),
            in_group(5, flushes(5 * FAR, 100)),
            at(150 * MILLI, Task { bios: 90, ..Task::reader(6 * FAR) }),
        ]
    };
    let moves = [
        (100 * MILLI, Change::Move { task: 0, group: 3 }),
        (140 * MILLI, Change::Weigh { group: 4, weight: 20 }),
        (260 * MILLI, Change::Move { task: 3, group: 1 }),
        (350 * MILLI, Change::Move { task: 5, group: 2 }),
        (420 * MILLI, Change::Move { task: 4, group: 0 }),
        (500 * MILLI, Change::Weigh { group: 1, weight: 1_000 }),
        (700 * MILLI, Change::Move { task: 0, group: 1 }),
        (900 * MILLI, Change::Exit(2)),
    ];
    let removes = [
        (200 * MILLI, Change::Remove(5)),
        (400 * MILLI, Change::Remove(3)),
        (500 * MILLI, Change::Remove(4)),
        (600 * MILLI, Change::Remove(2)),
        (700 * MILLI, Change::Remove(1)),
    ];
    let one = vec![
        in_group(1, streams(0, 160)),
        in_group(1, streams(FAR, 160)),
        in_group(1, Task { thinks: 4 * MILLI, ..random(2 * FAR) }),
    ];
    let seekers = || {
        vec![
            in_group(1, Task { thinks: 700, ..random(0) }),
            in_group(1, Task { thinks: 2 * MILLI, ..random(FAR) }),
            in_group(2, Task { sectors: 256, batch: 4, ..random(2 * FAR) }),
            in_group(3, Task { sectors: 64, batch: 2, bios: 300, ..random(3 * FAR) }),
        ]
    };
    // They move in the middle of a batch, with requests out.
    let busy: Vec<Task> = [streams(0, 200), logs(FAR, 200), random(2 * FAR), flushes(3 * FAR, 200)]
        .into_iter()
        .map(|task| in_group(1, Task { batch: 8, plugs: false, paces: 900, bios: 240, ..task }))
        .collect();
    let hopping: Vec<_> = (1..60)
        .map(|n| {
            let (task, group) = (n % 4, [3, 0, 5, 1, 4][n % 5]);
            (n as u64 * 7_700, Change::Move { task, group })
        })
        .collect();
    let waits: Vec<_> = (0..200)
        .map(|n| (n * 2_300, Change::Set("slice_idle", (n % 2 * 8) as i64)))
        .chain([(0, Change::Set("low_latency", 0))])
        .collect();
    let quiet = |load: Load| with(&[(0, Change::Set("low_latency", 0))], load);
    let shares =
        [&tasks()[..2], &[in_group(1, Task { shares: Some(0), thinks: MILLI, ..random(7 * FAR) })]]
            .concat();
    let load =
        |name, depth, tasks| Load { groups: groups.clone(), ..deep(depth, on_disk(name, tasks)) };
    let flash = |name, tasks| Load { groups: groups.clone(), ..on_flash(name, 12, tasks) };
    vec![
        load("groups", 1, tasks()),
        load("groups_deep", 6, tasks()),
        flash("groups_flash", tasks()),
        with(&moves, load("moves", 2, tasks())),
        with(&moves, flash("moves_flash", tasks())),
        with(&removes, load("removes", 2, tasks())),
        quiet(flash("groups_unraised", tasks())),
        quiet(flash("seekers_unraised", seekers())),
        with(&waits, flash("seekers_waits", seekers())),
        with(&hopping, load("moves_busy", 3, busy.clone())),
        Load { nr_requests: 24, ..with(&hopping, flash("moves_busy_flash", busy)) },
        load("one_group", 2, one.clone()),
        flash("one_group_flash", one),
        load("shared_context", 2, shares),
        Load {
            nr_requests: 10,
            ..load("groups_few_tags", 4, [&tasks()[..], &few_tags()].concat())
        },
    ]
}

/// How many loads of pairs there are.
const PAIRS: u64 = 10;

/// Readers that begin together, work together, and then go apart: a few of them at a time, in
/// groups, in bursts, raised and long since not.
fn pairs(seed: u64) -> Load {
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
const LATE: u64 = 5;

/// Readers that are raised no more, now with pauses and now without, on a disk that is too slow for
/// their budgets.
fn late(seed: u64) -> Load {
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
const MIXTURES: u64 = 12;

/// Tasks, devices and changes drawn at random.
fn mixture(seed: u64) -> Load {
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

/// Loads for who knows kinds of requests, and no processes: four cores, many commands at once.
fn of_kinds() -> Vec<Load> {
    let on_core = |cpu: u16, task: Task| Task { cpu, ..task };
    let reads = |cpu, bios| {
        on_core(cpu, Task { batch: 20, thinks: 300, bios, ..random(u64::from(cpu) * FAR) })
    };
    let writes = |cpu, bios| on_core(cpu, Task { batch: 30, ..logs(10 * FAR, bios) });
    let discards = |cpu, bios| {
        let task = Task { op: Op::Discard, batch: 12, ..random(20 * FAR) };
        on_core(cpu, Task { bios, ..task })
    };
    let durable = |bios| {
        let flags = Flags::SYNC.with(Flags::FUA).with(Flags::PREFLUSH);
        Task { flags, bios, thinks: 2 * MILLI, ..logs(30 * FAR, bios) }
    };
    let all = || {
        let kernel = on_core(3, Task { batch: 60, ..flushes(12 * FAR, 240) });
        vec![reads(0, 240), reads(1, 240), writes(2, 240), discards(3, 80), kernel, durable(40)]
    };
    let core = |load: Load| {
        let table = Table { cpus: 4, cache: true, max_sectors: 64, ..load.table };
        Load { table, nr_requests: 256, ..load }
    };
    let disk = |name: &str, depth, tasks| core(deep(depth, on_disk(name, tasks)));
    let flash = |name: &str, depth, tasks| core(on_flash(name, depth, tasks));
    let set = |settings: &[(u64, &'static str, i64)], load| {
        let changes: Vec<_> =
            settings.iter().map(|it| (it.0 * MILLI, Change::Set(it.1, it.2))).collect();
        with(&changes, load)
    };
    // None of them is met, then all are, and then one of each.
    let targets = [
        (100, "read_lat_nsec", 20_000),
        (100, "write_lat_nsec", 20_000),
        (900, "read_lat_nsec", 900_000_000),
        (1_000, "write_lat_nsec", 900_000_000),
        (2_200, "read_lat_nsec", 1_000_000),
        (3_500, "write_lat_nsec", 3_000_000),
        (3_500, "read_lat_nsec", 500_000_000),
    ];
    let depths = [
        (0, "async_depth", 30),
        (200, "nr_requests", 40),
        (500, "nr_requests", 900),
        (700, "async_depth", 90),
    ];
    let long = |times| {
        let mut tasks = all();
        tasks.iter_mut().for_each(|it| (it.bios, it.thinks) = (it.bios * times, it.thinks + 4_000));
        tasks
    };
    let wide = || {
        let mut tasks = all();
        tasks.iter_mut().for_each(|it| (it.bios, it.batch) = (it.bios * 2, it.batch * 8));
        tasks
    };
    let more = |load| Load { nr_requests: 1_200, ..load };
    let requeues: Vec<_> = (1..80).map(|n| (n * 11 * MILLI, Change::Requeue)).collect();
    let two = flash("two_queues", 40, all());
    let plugged = vec![streams(0, 400), on_core(1, streams(FAR, 400)), writes(2, 300)];
    vec![
        disk("kinds", 64, all()),
        flash("kinds_flash", 64, all()),
        flash("kinds_shallow", 2, all()),
        disk("kinds_alone", 1, all()),
        set(&targets, disk("targets", 32, long(3))),
        set(&targets, flash("targets_flash", 200, long(4))),
        set(&targets[3..], flash("targets_shallow", 6, long(3))),
        set(&depths, flash("many_requests", 100, all())),
        with(&requeues, flash("kinds_requeued", 24, all())),
        with(&[(150 * MILLI, Change::Renew)], disk("kinds_renewed", 16, all())),
        more(flash("tokens_flash", 800, wide())),
        more(disk("tokens", 800, wide())),
        more(set(&targets, flash("tokens_targets", 800, long(2)))),
        flash("plugged", 8, plugged),
        Load { table: Table { hctxs: 2, ..two.table }, ..two },
    ]
}

/// Loads in which writes that nobody waits for are throttled.
fn of_writeback() -> Vec<Load> {
    let flags = [
        Flags::BACKGROUND,
        Flags::NONE,
        Flags::NONE,
        Flags::SYNC.with(Flags::META),
        Flags::SYNC.with(Flags::IDLE),
    ];
    let writers = |bios, thinks| -> Vec<Task> {
        let writer = |(n, flags): (usize, &Flags)| Task {
            batch: 10,
            bios,
            thinks: thinks * (n as u64 + 1),
            ..Task { way: Way::Random(FAR), ..Task::writer(n as u64 * FAR, *flags) }
        };
        flags.iter().enumerate().map(writer).collect()
    };
    let reads = |thinks, bios| Task { thinks, bios, ..random(8 * FAR) };
    let all = || {
        [&writers(120, 300)[..], &[reads(2 * MILLI, 150), at(SECOND, reads(40 * MILLI, 40))]]
            .concat()
    };
    let discards = || Task { op: Op::Discard, batch: 12, bios: 100, ..random(9 * FAR) };
    let throttled = |load| Load { throttles: true, ..load };
    let disk = |name: &str, depth, tasks| throttled(deep(depth, on_disk(name, tasks)));
    let flash = |name: &str, depth, tasks| throttled(on_flash(name, depth, tasks));
    let cached = |load: Load| Load { table: Table { cache: true, ..load.table }, ..load };
    let targets = |load| {
        let settings = [(0, 400), (900, -1), (1_500, 0), (1_800, 2_000), (3_000, 70_000)];
        let change = |(at, value)| (at * MILLI, Change::Set("wbt_lat_usec", value));
        with(&settings.map(change), load)
    };
    let pauses: Vec<_> =
        [50, 60, 1_300, 2_500].iter().map(|at| (at * MILLI, Change::Pause)).collect();
    let requeues: Vec<_> = (1..60).map(|n| (n * 21 * MILLI, Change::Requeue)).collect();
    let some = |tasks: Vec<Task>| [&tasks[..], &[discards(), reads(5 * MILLI, 60)]].concat();
    let idle = || {
        let late = writers(30, 900).into_iter().map(|it| at(6 * SECOND, it)).collect::<Vec<_>>();
        [&writers(200, 200)[..], &late, &[reads(900 * MILLI, 12)]].concat()
    };
    let mut grouped = all();
    grouped.iter_mut().skip(2).for_each(|it| (it.group, it.begins) = (1, 700 * MILLI));
    let renewed = [(400 * MILLI, Change::Renew), (700 * MILLI, Change::Set("rotational", 0))];
    vec![
        disk("writeback", 32, all()),
        flash("writeback_flash", 64, all()),
        disk("writeback_alone", 1, all()),
        flash("writeback_shallow", 4, all()),
        cached(disk("writeback_cached", 16, all())),
        cached(with(&pauses, flash("writeback_cached_pauses", 32, all()))),
        with(&pauses, disk("writeback_pauses", 32, all())),
        targets(disk("writeback_targets", 32, all())),
        targets(flash("writeback_targets_flash", 256, idle())),
        targets(disk("writeback_targets_alone", 1, all())),
        disk("writeback_idle", 128, idle()),
        flash("writeback_idle_flash", 128, idle()),
        flash("writeback_discards", 32, some(writers(80, 400))),
        disk("writeback_discards_only", 32, some(Vec::new())),
        with(&requeues, disk("writeback_requeued", 16, all())),
        with(&renewed, disk("writeback_renewed", 16, all())),
        Load { groups: vec![(0, 100)], ..disk("writeback_groups", 32, grouped) },
    ]
}

/// Loads of processes that never are cooperators, and come late enough that they never seem to be
/// one program: of others the twin of BFQ knows nothing.
fn apart(seed: u64) -> Load {
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

/// A load on a kernel, with changes of later ones.
struct Place<'l> {
    load: &'l Load,
    kernel: &'static Kernel,
    given: &'static [&'static str],
}

/// Changes of later kernels that can be given together; the last are in none of the kernels.
const GIVEN: [&[&str]; 3] = [
    &[],
    &["inject-by-service-time", "idle-raised-20ms", "no-bursts-while-busy", "seeky-not-real-time"],
    &[
        "inject-by-service-time-5.3",
        "no-merge-on-flash",
        "no-idling-for-lightest",
        "seeky-not-real-time-5.2-rc",
    ],
];

impl Place<'_> {
    /// Every load on every kernel that has a scheduler, and with what it can be given there.
    fn all<'l>(entry: &'static Entry, loads: &'l [Load]) -> Vec<Place<'l>> {
        let mut places = Vec::new();
        for load in loads {
            for kernel in sched::kernels(entry.name) {
                for given in GIVEN {
                    let can_be = |it: &Backport| it.on.contains(&kernel.version);
                    let has = backports(entry, given).filter(|it| can_be(it)).count();
                    if has == given.len() {
                        places.push(Place { load, kernel, given });
                    }
                }
            }
        }
        places
    }

    fn line(&self, entry: &'static Entry) -> String {
        let Place { load, kernel, given } = self;
        let more = match given.first() {
            Some(first) => format!("+{first}"),
            None => String::new(),
        };
        let (version, given): (_, Vec<_>) =
            (kernel.version.to_string() + &more, backports(entry, given).collect());
        format!("{:20} {version:30} {}", load.name, load.run(entry, kernel, &given))
    }
}

fn backports(
    entry: &'static Entry,
    names: &'static [&'static str],
) -> impl Iterator<Item = &'static Backport> {
    entry.backports().iter().filter(|it| names.contains(&it.name))
}

/// Every load on every kernel that has a scheduler does as its line says. Who differs ends it all,
/// unless the lines are written anew.
fn check(file: &str, name: &'static str, loads: &[Load]) {
    let entry = sched::LIST.iter().find(|entry| entry.name == name).expect("there is one");
    let places = Place::all(entry, loads);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/loads/{file}.txt"));
    let is_written = std::env::var_os("UPDATE_EXPECT").is_some();
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let written: Vec<&str> = text.lines().collect();
    let (next, differs) = (AtomicUsize::new(0), AtomicBool::new(false));
    let lines: Vec<OnceLock<String>> = places.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        while !differs.load(Ordering::Relaxed)
            && let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(place) = places.get(at)
        {
            let line = place.line(entry);
            if !is_written && written.get(at) != Some(&line.as_str()) {
                differs.store(true, Ordering::Relaxed);
                panic!("\nexpected {}\nbut is   {line}", written.get(at).unwrap_or(&"nothing"));
            }
            lines[at].set(line).expect("each is done once");
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let lines: Vec<&str> = lines.iter().map(|line| line.get().expect("done").as_str()).collect();
    expect_file![path].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn bfq_does_as_written() {
    check("bfq", "bfq", &of_processes());
}

#[test]
fn kyber_does_as_written() {
    check("kyber", "kyber", &of_kinds());
}

#[test]
fn kyber_does_as_its_naive_twin() {
    let kernels: Vec<_> = sched::kernels("kyber").collect();
    let loads = of_kinds().into_iter().filter(|load| load.table.hctxs == 1);
    loads.zip(kernels.into_iter().cycle()).for_each(|(load, on)| load.run_beside_twin("kyber", on));
}

#[test]
fn bfq_does_as_its_naive_twin() {
    let kernels = sched::kernels("bfq").filter(|kernel| kernel.version >= Version::V6_1);
    let kernels: Vec<_> = kernels.collect();
    let loads = (1..=MIXTURES).map(apart);
    loads.zip(kernels.into_iter().cycle()).for_each(|(load, on)| load.run_beside_twin("bfq", on));
}

#[test]
fn writes_are_throttled_as_written() {
    for name in ["deadline", "cfq", "mq-deadline", "bfq"] {
        check(&format!("writeback_{name}"), name, &of_writeback());
    }
}
