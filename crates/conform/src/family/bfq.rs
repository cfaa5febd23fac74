//! Loads that BFQ treats in ways of its own: twelve kinds, in turn.
//!
//! Some are what any scheduler is tried with; the others are weights of control groups, flat and
//! nested, bursts of processes, players, interactive readers, readers that work as one, and writers
//! that wait for the disk.

use super::{Tunables, jobs, pick};
use base::Rng;

/// Values that are tried for each file; most members have the default of most.
pub(super) const TUNABLES: &Tunables = &[
    ("iosched/low_latency", &[0, 0, 1]),
    ("iosched/slice_idle", &[0, 2]),
    ("iosched/strict_guarantees", &[1]),
    ("iosched/fifo_expire_sync", &[20, 5]),
    ("iosched/back_seek_max", &[0, 1000]),
    ("iosched/max_budget", &[4096]),
    ("nomerges", &[1, 2]),
    ("max_sectors_kb", &[64, 256]),
];

/// A control group with its weight.
pub type Group = (&'static str, u32);

/// Processes, by control group; those of no group have an empty path.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub groups: Vec<Group>,
    pub jobs: Vec<(&'static str, Vec<String>)>,
}

const FLAT: [Group; 3] = [("a", 100), ("b", 300), ("c", 600)];
const NESTED: [Group; 5] = [("a", 100), ("a/x", 100), ("a/y", 300), ("b", 300), ("c", 600)];

/// The load of a member.
pub(super) fn load(rng: &mut Rng, number: u64) -> Load {
    let of_none = |jobs: Vec<String>| Load { groups: Vec::new(), jobs: vec![("", jobs)] };
    match number % 12 {
        1 => in_groups(rng, &FLAT, &["a", "b", "c"]),
        3 => in_groups(rng, &NESTED, &["a/x", "a/y", "b", "c"]),
        5 => of_none(burst(rng)),
        6 => of_none(player(rng)),
        7 => of_none(interactive(rng)),
        9 => of_none(cooperating(rng)),
        10 => of_none(waiting_writers(rng)),
        11 => in_groups(rng, &FLAT[..2], &["", "a", "b"]),
        _ => of_none(jobs(rng)),
    }
}

/// Somebody who always has more to do than the disk can.
fn greedy(rng: &mut Rng, base: u64) -> String {
    let reads = pick(rng, &[0, 50, 100, 100]);
    let (min, max) = pick(rng, &[(4, 4), (16, 64), (128, 128), (64, 512)]);
    let (pattern, depth) = (rng.below(3), pick(rng, &[8, 32, 128]));
    format!("reads={reads},min={min},max={max},pattern={pattern},depth={depth},base={base}")
}

fn in_groups(rng: &mut Rng, groups: &[Group], inside: &[&'static str]) -> Load {
    let mut place = 0;
    let jobs = inside.iter().map(|path| {
        let count = rng.between(1, 2);
        let jobs = (0..count).map(|_| {
            place += 2_000;
            greedy(rng, place)
        });
        (*path, jobs.collect())
    });
    let jobs = jobs.collect();
    Load { groups: groups.to_vec(), jobs }
}

/// Ten to fourteen processes that begin almost at once, and another one.
fn burst(rng: &mut Rng) -> Vec<String> {
    let mut jobs = vec![greedy(rng, 0)];
    for number in 0..rng.between(10, 14) {
        let (start, think) = (rng.between(20_000, 250_000), pick(rng, &[0, 100, 3_000]));
        let (pattern, base) = (rng.below(2), 3_000 + 500 * number);
        jobs.push(format!(
            "reads=100,min=4,max=64,pattern={pattern},depth=1,base={base},size=400,\
             start={start},think={think}"
        ));
    }
    jobs
}

/// Who plays wants little, at regular times.
fn player(rng: &mut Rng) -> Vec<String> {
    let think = pick(rng, &[8_000, 20_000, 40_000]);
    let player = |base: u64| {
        format!("reads=100,min=16,max=64,pattern=1,depth=1,base={base},size=400,think={think}")
    };
    let mut jobs = vec![player(20_000), player(22_000)];
    jobs.extend((0..rng.between(1, 3)).map(|number| greedy(rng, 4_000 * number)));
    jobs
}

/// Who begins late and reads a little here and there, beside others.
fn interactive(rng: &mut Rng) -> Vec<String> {
    let mut jobs: Vec<String> = (0..rng.between(2, 4)).map(|it| greedy(rng, 4_000 * it)).collect();
    for number in 0..rng.between(1, 3) {
        let (start, think) = (rng.between(100_000, 3_000_000), pick(rng, &[100, 1_000, 5_000]));
        let base = 18_000 + 1_000 * number;
        jobs.push(format!(
            "reads=100,min=4,max=128,pattern=0,depth=1,base={base},start={start},think={think}"
        ));
    }
    jobs
}

/// Several read the same place, one after the other, and so read it together.
fn cooperating(rng: &mut Rng) -> Vec<String> {
    let (base, think) = (rng.below(20_000), pick(rng, &[0, 100]));
    let reader = |rng: &mut Rng| {
        let depth = pick(rng, &[1, 4]);
        format!(
            "reads=100,min=64,max=64,pattern=1,depth={depth},base={base},size=600,think={think}"
        )
    };
    let mut jobs: Vec<String> = (0..rng.between(2, 4)).map(|_| reader(rng)).collect();
    jobs.push(greedy(rng, 24_000));
    jobs
}

/// Who writes through the page cache and waits for it, beside somebody who reads.
fn waiting_writers(rng: &mut Rng) -> Vec<String> {
    let mut jobs = vec![greedy(rng, 10_000)];
    for number in 0..rng.between(2, 4) {
        let (flush, level) = (pick(rng, &[1, 4, 16]), rng.between(2, 5));
        let (pattern, base) = (rng.below(2), 1_000 * number);
        jobs.push(format!(
            "reads=0,min=4,max=64,pattern={pattern},depth=0,flush={flush},base={base},\
             class=2,level={level}"
        ));
    }
    jobs
}
