//! Loads in which writeback is throttled.

use crate::harness::load::{Change, Load, Task, Way};
use crate::tasks::{FAR, MILLI, SECOND, at, deep, on_disk, on_flash, random, with};
use block::contract::Table;
use block::{Flags, Op};

/// Loads in which writes that nobody waits for are throttled.
pub fn of_writeback() -> Vec<Load> {
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
