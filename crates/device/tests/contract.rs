//! What every device promises, checked for every built-in model with random commands: nothing
//! lost, nothing twice, time never back, quiet in the end, and the same again with the same seed.

use base::fingerprint::Fingerprint;
use base::{Duration, Instant, Rng, Sector, Sectors};
use block::command::{Command, CommandOp, Facts, Stage, Tag};
use device::{Device, Model};
use proptest::prelude::*;

/// How a random load behaves.
#[derive(Clone, Copy, Debug)]
struct Load {
    seed: u64,
    commands: u32,
    depth: u32,
    reads_percent: u64,
    flushes_percent: u64,
    sequential_percent: u64,
    /// Commands have up to this many sectors.
    largest: u64,
    longest_pause: Duration,
}

fn loads() -> impl Strategy<Value = Load> {
    let sizes = prop_oneof![Just(8), Just(64), Just(2560), Just(u64::MAX)];
    let pauses = prop_oneof![Just(0), Just(100_000), Just(50_000_000)];
    (any::<u64>(), 1u32..80, 0u64..=100, 0u64..8, 0u64..=100, sizes, pauses).prop_map(
        |(seed, depth, reads_percent, flushes_percent, sequential_percent, largest, pause)| Load {
            seed,
            commands: 250,
            depth,
            reads_percent,
            flushes_percent,
            sequential_percent,
            largest,
            longest_pause: Duration::from_nanos(pause),
        },
    )
}

/// Draws the next command; it fits what the device says of itself.
fn draw(rng: &mut Rng, facts: &Facts, load: &Load, end_of_last: u64, tag: Tag) -> Command {
    let sectors_of_disk = facts.capacity.0 / 512;
    let step = u64::from(facts.logical_block) / 512;
    let roll = rng.below(100);
    if roll < load.flushes_percent {
        let (sector, sectors) = (Sector(0), Sectors(0));
        return Command { tag, op: CommandOp::Flush, sector, sectors, fua: false };
    }
    let op = match rng.below(100) < load.reads_percent {
        true => CommandOp::Read,
        false if facts.discard && rng.chance(1, 20) => CommandOp::Discard,
        false => CommandOp::Write,
    };
    let largest = load.largest.min(u64::from(facts.max_hw_sectors.0)).min(sectors_of_disk);
    let sectors = (rng.below(largest / step) + 1) * step;
    let start = match rng.below(100) < load.sequential_percent {
        true if end_of_last + sectors <= sectors_of_disk => end_of_last,
        _ => rng.below((sectors_of_disk - sectors) / step + 1) * step,
    };
    let (sector, sectors) = (Sector(start), Sectors(sectors as u32));
    Command { tag, op, sector, sectors, fua: facts.fua && rng.chance(1, 10) }
}

/// Runs a load to its end and to quiet; returns a fingerprint of all completions.
fn run(model: &Model, load: &Load) -> u64 {
    run_keeping(model, load, false)
}

/// The same, where the device may have to keep what it does for each command.
fn run_keeping(model: &Model, load: &Load, keeps: bool) -> u64 {
    let mut device = model.build(load.seed);
    if keeps {
        device.keep_stages();
    }
    let facts = device.facts().clone();
    let depth = load.depth.min(facts.queue_depth * facts.hardware_queues);
    let mut free: Vec<Tag> = (0..depth).rev().map(Tag).collect();
    let mut rng = Rng::stream(load.seed, "load");
    let mut print = Fingerprint::new();
    let (mut now, mut end_of_last, mut completed) = (Instant::ZERO, 0, Vec::new());
    let mut begun: Vec<Option<Instant>> = vec![None; depth as usize];
    let mut in_flight = 0;
    for _ in 0..load.commands {
        let pause = rng.below(load.longest_pause.as_nanos() + 1);
        let until = now + Duration::from_nanos(pause);
        while let Some(at) = device.next_event().filter(|at| free.is_empty() || *at <= until) {
            assert!(at >= now, "{}: an event at {at}, before {now}", model.name());
            now = at;
            collect(&mut *device, now, &mut completed, &mut begun, &mut free, &mut print);
        }
        assert!(!free.is_empty(), "{}: {in_flight} commands hang", model.name());
        now = now.max(until);
        let tag = free.pop().expect("a free tag");
        let command = draw(&mut rng, &facts, load, end_of_last, tag);
        end_of_last = (command.sector + command.sectors).0;
        begun[tag.0 as usize] = Some(now);
        device.accept(now, command);
        in_flight = depth as usize - free.len();
    }
    let mut events = 0;
    while let Some(at) = device.next_event() {
        assert!(at >= now, "{}: an event at {at}, before {now}", model.name());
        now = at;
        collect(&mut *device, now, &mut completed, &mut begun, &mut free, &mut print);
        events += 1;
        assert!(events < 2_000_000, "{}: never quiet", model.name());
    }
    assert_eq!(free.len(), depth as usize, "{}: commands were lost", model.name());
    print.finish()
}

fn collect(
    device: &mut dyn Device,
    now: Instant,
    completed: &mut Vec<Tag>,
    begun: &mut [Option<Instant>],
    free: &mut Vec<Tag>,
    print: &mut Fingerprint,
) {
    device.advance(now, completed);
    if let Some(next) = device.next_event() {
        assert!(next > now, "what was due at {now} is done, yet something is due at {next}");
    }
    for tag in completed.drain(..) {
        let start = begun[tag.0 as usize].take();
        let start = start.unwrap_or_else(|| panic!("{tag:?} completed, but was not in flight"));
        check_stages(&device.take_stages(tag), start, now);
        print.mix(u64::from(tag.0));
        print.mix(now.since(start).as_nanos());
        free.push(tag);
    }
}

/// Stages of a command cover its time from its beginning on; none is told of twice in a row.
fn check_stages(stages: &[(Instant, Stage)], start: Instant, end: Instant) {
    let Some((first, _)) = stages.first() else { return };
    assert_eq!(*first, start, "{stages:?}");
    for ((at, stage), (later, next)) in stages.iter().zip(&stages[1..]) {
        assert!(at < later && stage != next, "{stages:?} from {start} to {end}");
    }
    assert!(stages.last().is_some_and(|(at, _)| *at <= end), "{stages:?} end at {end}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn every_command_completes_once_and_the_same_seed_gives_the_same_times(load in loads()) {
        for name in Model::names() {
            let model = Model::builtin(name).unwrap();
            prop_assert_eq!(run(&model, &load), run_keeping(&model, &load, true), "{}", name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn so_it_is_behind_a_host_that_writes_back(load in loads(), slow in any::<bool>()) {
        let text = include_str!("../../../models/vm-disk.toml");
        let after = if slow { 50 } else { 0 };
        let section = format!(
            "[write_back]\n\
             after = {{ value = {after}, unit = \"ms\", source = \"assumed\", from = \"test\" }}\n\
             at_once = {{ value = 4, source = \"assumed\", from = \"test\" }}\n\
             largest = {{ value = 1, unit = \"MiB\", source = \"assumed\", from = \"test\" }}\n\
             [jitter]"
        );
        let text = text.replacen("dirty_limit = { value = 256", "dirty_limit = { value = 1", 1);
        let model = Model::from_text("vm", &text.replacen("[jitter]", &section, 1)).unwrap();
        prop_assert_eq!(run(&model, &load), run_keeping(&model, &load, true));
    }
}

#[test]
fn another_seed_gives_other_times_where_chance_is_involved() {
    let load = |seed| Load {
        seed,
        commands: 200,
        depth: 4,
        reads_percent: 50,
        flushes_percent: 0,
        sequential_percent: 0,
        largest: 8,
        longest_pause: Duration::ZERO,
    };
    for name in ["vm-disk", "cloud-gp3"] {
        let model = Model::builtin(name).unwrap();
        assert_ne!(run(&model, &load(1)), run(&model, &load(2)), "{name}");
    }
}

#[test]
fn a_late_caller_sees_the_same_order() {
    let model = Model::builtin("hdd-7200-sata").unwrap();
    let order = |late: bool| {
        let mut device = model.build(1);
        let mut rng = Rng::stream(1, "late");
        for tag in 0..32 {
            let sector = Sector(rng.below(200_000_000) * 8);
            let (op, sectors) = (CommandOp::Read, Sectors(8));
            device
                .accept(Instant::ZERO, Command { tag: Tag(tag), op, sector, sectors, fua: false });
        }
        let mut completed = Vec::new();
        if late {
            device.advance(Instant::from_nanos(10_000_000_000), &mut completed);
        }
        while let Some(at) = device.next_event() {
            device.advance(at, &mut completed);
        }
        completed
    };
    assert_eq!(order(false).len(), 32);
    assert_eq!(order(false), order(true));
}
