//! Loads for who knows kinds of requests, and no processes.

use crate::harness::load::{Change, Load, Task};
use crate::tasks::{FAR, MILLI, deep, flushes, logs, on_disk, on_flash, random, streams, with};
use block::contract::Table;
use block::{Flags, Op};

/// Loads for who knows kinds of requests, and no processes: four cores, many commands at once.
pub fn of_kinds() -> Vec<Load> {
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
