//! Damaged recordings.
//!
//!     cargo run --release -p paternoster-insight --example fuzz_recordings -- 1000000 [SEED]
//!
//! Each input must be read, or refused with what was wrong and what is accepted. Whatever was read
//! keeps the promises of a life. The tests run a short form of the same loop.

use base::{Duration, Instant, Rng, Sector};
use insight::phases::Phases;
use insight::recorded::Recording;
use insight::{Layer, Life};
use std::io::Cursor;
use trace::blktrace::{Action, Categories, DevT, Layout, Merge, Payload, Reader, Record};

/// What became of the inputs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many were read to their end.
    pub read: u64,
    /// How many were refused, at their beginning or later.
    pub refused: u64,
    /// Requests that were understood.
    pub lives: u64,
}

#[allow(dead_code, reason = "the tests include this file for `run`")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| match arguments.next() {
        Some(text) => text.parse().unwrap_or_else(|_| panic!("`{text}` is not a whole number")),
        None => default,
    };
    let (count, seed) = (number(100_000), number(1));
    let Outcome { read, refused, lives } = run(seed, count);
    println!("{count} inputs from seed {seed}: {read} read, {refused} refused, {lives} requests");
}

/// Follows `count` damaged recordings; panics when one of them breaks a promise.
pub fn run(seed: u64, count: u64) -> Outcome {
    let mut rng = Rng::stream(seed, "insight/fuzz");
    let mut outcome = Outcome::default();
    for _ in 0..count {
        let mut records = load(&mut rng);
        for _ in 0..rng.below(6) {
            damage(&mut rng, &mut records);
        }
        let layouts = [Layout::V7_LITTLE, Layout::V8_BIG, Layout::CUT_LITTLE];
        let layout = layouts[rng.below(layouts.len() as u64) as usize];
        let mut bytes = vec![];
        records.iter().for_each(|record| layout.encode(record, &mut bytes));
        if rng.chance(1, 3) {
            damage_bytes(&mut rng, &mut bytes);
        }
        follow(bytes, &mut outcome);
    }
    outcome
}

fn follow(bytes: Vec<u8>, outcome: &mut Outcome) {
    let reader = Reader::new(Cursor::new(bytes), "fuzzed");
    let mut recording = Recording::new(Merge::new(vec![reader]), None);
    let mut phases = Phases::default();
    loop {
        let goes_on = recording.read_some(|told| phases.hear(told));
        recording.lives().for_each(|life| {
            check(&life);
            outcome.lives += 1;
        });
        match goes_on {
            Ok(true) => {}
            Ok(false) => break outcome.read += 1,
            Err(error) => {
                assert!(!error.cause.is_empty() && !error.accepted.is_empty(), "{error}");
                break outcome.refused += 1;
            }
        }
    }
    assert!(!phases.to_string().is_empty());
}

/// What every life promises.
fn check(life: &Life) {
    let sum: Duration = life.layers.iter().map(|part| part.1).sum();
    assert_eq!(sum, life.end().since(life.queued), "{life:?}");
    assert!(life.queued <= life.allocated && life.issued <= life.completed, "{life:?}");
    let others: Duration = life.others.iter().map(|other| other.1).sum();
    assert!(others <= life.time_in(Layer::Others), "{life:?}");
}

/// Records of a few requests, as a kernel writes them.
fn load(rng: &mut Rng) -> Vec<Record> {
    use Action::{BackMerge, Complete, GetRequest, Insert, Issue, Plug, Queue, Requeue, Unplug};
    let steps = [Queue, GetRequest, Plug, Insert, Unplug, Issue, Requeue, Issue, Complete];
    let mut records = vec![Record::process(Instant::ZERO, 7, "fio")];
    for request in 0..rng.below(12) {
        let place = rng.below(8) * 8;
        let (pid, start) = (rng.below(3) as u32 + 7, request * 1000 + rng.below(3000));
        let direction = if rng.chance(1, 2) { Categories::READ } else { Categories::WRITE };
        for (number, action) in steps.into_iter().enumerate() {
            if action == Requeue && rng.chance(3, 4) {
                continue;
            }
            let merges = action == Plug && rng.chance(1, 3);
            let record = Record {
                sector: Sector(place + if merges { 8 } else { 0 }),
                bytes: if rng.chance(1, 20) { 0 } else { 4096 },
                pid,
                device: DevT::new(8, 0),
                ..Record::event(
                    if merges { BackMerge } else { action },
                    Instant::from_nanos(1_000_000 + start + number as u64 * rng.below(2000)),
                )
            };
            records.push(record.with(direction));
        }
        if rng.chance(1, 4) {
            let text = "cfq7S  arm_idle: 8000000 group_idle: 0";
            records.push(Record::message(Instant::from_nanos(1_000_000 + start), text));
        }
    }
    records.sort_by_key(|record| record.time);
    records
}

/// Changes a record, or loses or repeats some.
fn damage(rng: &mut Rng, records: &mut Vec<Record>) {
    let at = rng.below(records.len() as u64) as usize;
    let border = |rng: &mut Rng| (1u64 << rng.below(64)).wrapping_sub(rng.below(3));
    match rng.below(9) {
        0 => records[at].time = Instant::from_nanos(border(rng)),
        1 => records[at].sector = Sector(border(rng)),
        2 => records[at].bytes = border(rng) as u32,
        3 => records[at].pid = border(rng) as u32,
        4 => drop(records.remove(at)),
        5 => records.truncate(at),
        6 => records.insert(at, records[rng.below(records.len() as u64) as usize].clone()),
        7 => {
            records[at].action = Action::Split;
            records[at].payload = Payload::Split(Sector(border(rng)));
        }
        _ => records[at].categories = Categories::from_bits(rng.below(1 << 16)),
    }
    if records.is_empty() {
        records.push(Record::process(Instant::ZERO, 7, "fio"));
    }
}

fn damage_bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let at = rng.below(bytes.len() as u64) as usize;
    match rng.below(4) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..bytes.len().min(at + 64))),
        _ => bytes[at] = rng.next_u64() as u8,
    }
}
