//! Prints nanoseconds of real time per command for every built-in model: random 4 KiB commands,
//! 32 in flight, half of them reads, device built beforehand.

use base::{Instant, Rng, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::Model;

fn main() {
    const COUNT: u64 = 400_000;
    println!("| model | reads ns | writes ns | mixed ns |");
    println!("|---|---|---|---|");
    let only = std::env::args().nth(1);
    for name in Model::names().filter(|name| only.as_deref().is_none_or(|only| only == *name)) {
        let model = Model::builtin(name).expect("a built-in model");
        let [reads, writes, mixed] = [1, 0, 2].map(|kind| measure(&model, kind, COUNT));
        println!("| {name} | {reads} | {writes} | {mixed} |");
    }
}

/// Real nanoseconds a command, for writes (0), reads (1) or both (2).
fn measure(model: &Model, kind: u64, count: u64) -> u128 {
    let mut device = model.build(1);
    let depth = model.facts().queue_depth.min(32);
    let blocks = model.facts().capacity.0 / 4096;
    let mut rng = Rng::stream(1, "speed");
    let mut command = |tag: u32| {
        let op = match if kind == 2 { rng.next_u64() & 1 } else { kind } {
            0 => CommandOp::Write,
            _ => CommandOp::Read,
        };
        let sector = Sector(rng.below(blocks) * 8);
        Command { tag: Tag(tag), op, sector, sectors: Sectors(8), fua: false }
    };
    let (mut now, mut completed, mut finished) = (Instant::ZERO, Vec::new(), 0);
    for tag in 0..depth {
        device.accept(now, command(tag));
    }
    let start = std::time::Instant::now();
    while finished < count {
        now = device.next_event().expect("commands are in flight");
        device.advance(now, &mut completed);
        for Tag(tag) in completed.drain(..) {
            finished += 1;
            device.accept(now, command(tag));
        }
    }
    start.elapsed().as_nanos() / u128::from(count)
}
