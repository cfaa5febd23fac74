//! Loads for who knows processes; each shows one thing.

use crate::drawn::{EDGES, LATE, MIXTURES, PAIRS, SELDOM};
use crate::drawn::{edges, late, mixture, pairs, seldom};
use crate::harness::load::{Change, Load, Service, Task, Way};
use crate::tasks::{
    FAR, IDLE, MILLI, REAL_TIME, SECOND, at, burst, cooperate, dallies, deep, filling, flushes,
    in_group, level, logs, on_disk, on_flash, plays, random, streams, together, with,
};
use block::{Flags, Ioprio};

/// Loads that show one thing each.
pub fn of_processes() -> Vec<Load> {
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
    loads.extend((1..=EDGES).map(edges));
    loads.extend((1..=SELDOM).map(seldom));
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
