//! Closed loops of simple commands on a device, and what came out.

use base::{Instant, Rng, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::{Device, Model};

/// What a loop achieved after its warm-up.
pub struct Achieved {
    pub iops: f64,
    pub mean_us: f64,
    pub median_us: f64,
}

/// Keeps `depth` commands in flight until `count` have finished; the first `warm_up` of them do
/// not count.
pub fn closed_loop(
    device: &mut dyn Device,
    depth: u32,
    warm_up: usize,
    count: usize,
    mut next: impl FnMut(&mut Rng) -> (CommandOp, u64, u32),
) -> Achieved {
    let mut rng = Rng::stream(1, "validate");
    let mut command = |tag: u32, rng: &mut Rng| {
        let (op, sector, sectors) = next(rng);
        let (sector, sectors) = (Sector(sector), Sectors(sectors));
        Command { tag: Tag(tag), op, sector, sectors, fua: false }
    };
    let (mut now, mut completed) = (Instant::ZERO, Vec::new());
    let mut begun = vec![now; depth as usize];
    for tag in 0..depth {
        device.accept(now, command(tag, &mut rng));
    }
    let (mut times, mut from) = (Vec::with_capacity(count), now);
    while times.len() < count {
        now = device.next_event().expect("commands are in flight");
        device.advance(now, &mut completed);
        for tag in completed.drain(..) {
            times.push(now.since(begun[tag.0 as usize]).as_nanos());
            if times.len() == warm_up {
                from = now;
            }
            begun[tag.0 as usize] = now;
            device.accept(now, command(tag.0, &mut rng));
        }
    }
    let counted = &mut times[warm_up..];
    counted.sort_unstable();
    let number = counted.len() as f64;
    Achieved {
        iops: number / now.since(from).as_nanos() as f64 * 1e9,
        mean_us: counted.iter().sum::<u64>() as f64 / number / 1e3,
        median_us: counted[counted.len() / 2] as f64 / 1e3,
    }
}

/// Random commands of `sectors` sectors over the whole disk.
pub fn random(model: &Model, op: CommandOp, sectors: u32, depth: u32, count: usize) -> Achieved {
    let blocks = model.facts().capacity.0 / 512 / u64::from(sectors);
    closed_loop(&mut *model.build(1), depth, count / 4, count, |rng| {
        (op, rng.below(blocks) * u64::from(sectors), sectors)
    })
}

/// Megabytes per second of a sequential stream from `start` on.
pub fn sequential(model: &Model, op: CommandOp, start: u64, depth: u32, count: usize) -> f64 {
    const SECTORS: u32 = 256;
    let mut at = start;
    let achieved = closed_loop(&mut *model.build(1), depth, count / 4, count, |_| {
        at += u64::from(SECTORS);
        (op, at - u64::from(SECTORS), SECTORS)
    });
    achieved.iops * f64::from(SECTORS) * 512.0 / 1e6
}

/// Mean service time of 4 KiB reads that alternate between the two ends of the disk.
pub fn end_to_end(model: &Model) -> f64 {
    let last = model.facts().capacity.0 / 512;
    let mut inner = false;
    let achieved = closed_loop(&mut *model.build(1), 1, 0, 4000, |rng| {
        inner = !inner;
        let offset = rng.below(300_000) / 8 * 8;
        (CommandOp::Read, if inner { last - 8 - offset } else { offset }, 8)
    });
    achieved.mean_us
}

/// Mean time of a flush right after one random 4 KiB write, the write included.
pub fn write_and_flush(model: &Model) -> f64 {
    let blocks = model.facts().capacity.0 / 4096;
    let mut flush = true;
    let achieved = closed_loop(&mut *model.build(1), 1, 0, 2000, |rng| {
        flush = !flush;
        match flush {
            true => (CommandOp::Flush, 0, 0),
            false => (CommandOp::Write, rng.below(blocks) * 8, 8),
        }
    });
    achieved.mean_us * 2.0
}
