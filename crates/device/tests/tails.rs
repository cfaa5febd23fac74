//! Flash drives under random mixes: every command ends, tails are longer than what is usual but
//! bounded, and nothing is faster than the sheet.

use base::{Duration, Instant, Rng, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::{Device, Model};
use proptest::prelude::*;

/// A closed loop of random commands.
#[derive(Clone, Copy, Debug)]
struct Mix {
    seed: u64,
    depth: u32,
    reads_percent: u64,
    flushes_percent: u64,
    sectors: u32,
}

fn mixes() -> impl Strategy<Value = Mix> {
    let sizes = prop_oneof![Just(8), Just(32), Just(128), Just(2048)];
    (any::<u64>(), 1u32..32, 0u64..=100, 0u64..5, sizes).prop_map(
        |(seed, depth, reads_percent, flushes_percent, sectors)| Mix {
            seed,
            depth,
            reads_percent,
            flushes_percent,
            sectors,
        },
    )
}

/// What a mix saw: response times in order of length, and bytes moved each way in how long.
struct Seen {
    times: Vec<u64>,
    read: u64,
    written: u64,
    span: Duration,
}

fn run(model: &Model, mix: &Mix, count: usize) -> Seen {
    let mut device = model.build(mix.seed);
    let mut rng = Rng::stream(mix.seed, "mix");
    let blocks = model.facts().capacity.0 / 512 / u64::from(mix.sectors);
    let mut draw = |tag: u32| {
        let flush = rng.below(100) < mix.flushes_percent;
        let read = rng.below(100) < mix.reads_percent;
        let (sector, fua) = (rng.below(blocks) * u64::from(mix.sectors), rng.chance(1, 50));
        let (op, sector, sectors) = match (flush, read) {
            (true, _) => (CommandOp::Flush, 0, 0),
            (_, true) => (CommandOp::Read, sector, mix.sectors),
            _ => (CommandOp::Write, sector, mix.sectors),
        };
        let fua = fua && op == CommandOp::Write && model.facts().fua;
        Command { tag: Tag(tag), op, sector: Sector(sector), sectors: Sectors(sectors), fua }
    };
    let mut seen = Seen { times: Vec::new(), read: 0, written: 0, span: Duration::ZERO };
    let mut begun = vec![None; mix.depth as usize];
    let mut accept = |device: &mut dyn Device, now, tag: u32, begun: &mut Vec<Option<_>>| {
        let command = draw(tag);
        begun[tag as usize] = Some((now, command));
        device.accept(now, command);
    };
    (0..mix.depth).for_each(|tag| accept(&mut *device, Instant::ZERO, tag, &mut begun));
    let mut completed = Vec::new();
    while let Some(now) = device.next_event() {
        device.advance(now, &mut completed);
        for Tag(tag) in completed.drain(..) {
            let (start, command): (Instant, Command) = begun[tag as usize].take().expect("it ran");
            seen.times.push(now.since(start).as_nanos());
            seen.span = now.since(Instant::ZERO);
            match command.op {
                CommandOp::Read => seen.read += command.sectors.bytes().0,
                _ => seen.written += command.sectors.bytes().0,
            }
            if seen.times.len() + mix.depth as usize <= count {
                accept(&mut *device, now, tag, &mut begun);
            }
        }
    }
    assert!(begun.iter().all(Option::is_none), "{}: commands were lost", model.name());
    seen.times.sort_unstable();
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn tails_are_long_but_bounded_and_nothing_beats_the_sheet(mix in mixes()) {
        // Bytes a microsecond that the sheet allows each way, and the size of the write buffer.
        let sheets = [
            ("ssd-sata-m4", 550, 260, 16 << 20),
            ("ssd-sata-px256m5s", 520, 390, 32 << 20),
            ("nvme-980pro", 3200, 3300, 64 << 20),
            ("nvme-plp", 6900, 2700, 64 << 20),
        ];
        for (name, read, write, buffer) in sheets {
            let seen = run(&Model::builtin(name).unwrap(), &mix, 2000);
            prop_assert_eq!(seen.times.len(), 2000);
            let place = |share: usize| seen.times[(seen.times.len() - 1) * share / 1000];
            let (p50, p99, longest) = (place(500), place(990), place(1000));
            prop_assert!(p50 <= p99 && p99 <= longest, "{name}: {p50} {p99} {longest}");
            // A full queue of large writes, collection and flushes included.
            prop_assert!(longest < 2_000_000_000, "{name}: {longest}");
            let micros = seen.span.as_nanos() / 1000;
            prop_assert!(seen.read <= micros * read * 102 / 100, "{name}: {} read", seen.read);
            let most = buffer + micros * write * 102 / 100;
            prop_assert!(seen.written <= most, "{name}: {} written", seen.written);
        }
    }
}
