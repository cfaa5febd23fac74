//! Rotating drives of any make under competing streams: once a command has waited for as long as
//! its drive lets it, the drive serves what is under way, what came before, and then it.

use base::{Duration, Instant, Rng, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::Model;
use proptest::prelude::*;

const MODEL: &str = include_str!("../../../models/hdd-7200-sata.toml");
const DEPTH: u64 = 32;

/// `text` with another value of one parameter.
fn set(text: &str, section: &str, name: &str, value: &str) -> String {
    let mut inside = false;
    let mut found = false;
    let lines = text.lines().map(|line| {
        if line.starts_with('[') {
            inside = line == format!("[{section}]");
        }
        let is_it = inside && line.split([' ', '=']).next() == Some(name);
        found |= is_it;
        match is_it {
            true => {
                format!("{name} = {{ value = {value}, source = \"assumed\", from = \"drawn\" }}")
            }
            false => line.to_string(),
        }
    });
    let changed = lines.collect::<Vec<_>>().join("\n");
    assert!(found, "no {section}.{name}");
    changed
}

/// A drive that was made up.
#[derive(Clone, Debug)]
struct Made {
    text: String,
    ageing: Duration,
    turn: Duration,
    caches_writes: bool,
    /// Tracks that the buffer has something for, at most.
    dirty_tracks: u64,
}

fn pick<'a>(rng: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices[rng.below(choices.len() as u64) as usize]
}

fn make(seed: u64) -> Made {
    let mut rng = Rng::stream(seed, "model");
    let ageing = [0, 20, 100, 300][rng.below(4) as usize];
    let rpm = [5400, 7200, 10_000, 15_000][rng.below(4) as usize];
    let write_segments = 1 + rng.below(12);
    let caches_writes = rng.chance(2, 3);
    let flag = |rng: &mut Rng| pick(rng, &["true", "false"]);
    let sectors = |count: u64| format!("{count}, unit = \"sectors\"");
    let until = ["\"nothing\"", "\"track\"", "\"next-track\"", "\"cylinder\"", "\"segment\""];
    let segment = [512, 3072, 8192][rng.below(3) as usize];
    let size = segment * (1 + rng.below(write_segments));
    let changes = [
        ("queue", "ageing", format!("{ageing}, unit = \"ms\"")),
        ("queue", "window", (1 + rng.below(DEPTH)).to_string()),
        ("mechanics", "rpm", format!("{rpm}, unit = \"rpm\"")),
        ("mechanics", "zero_latency_read", flag(&mut rng).to_string()),
        ("mechanics", "zero_latency_write", flag(&mut rng).to_string()),
        ("read_cache", "segments", (write_segments + rng.below(4)).to_string()),
        ("read_cache", "segment_size", sectors(segment)),
        ("read_cache", "keeps_delivered", flag(&mut rng).to_string()),
        ("look_ahead", "until", pick(&mut rng, &until).to_string()),
        ("look_ahead", "after", pick(&mut rng, &["\"any-read\"", "\"sequential-read\""]).into()),
        ("look_ahead", "maximum", sectors(rng.below(4096))),
        ("look_ahead", "minimum", sectors([0, 256, 2048][rng.below(3) as usize])),
        ("look_ahead", "resumes_on_hit", flag(&mut rng).to_string()),
        ("look_ahead", "stopped_by_write", flag(&mut rng).to_string()),
        ("write_cache", "shared", flag(&mut rng).to_string()),
        ("write_cache", "segments", write_segments.to_string()),
        ("write_cache", "size", sectors(size)),
        ("write_cache", "high_water", format!("0.{}, unit = \"share\"", rng.below(10))),
    ];
    let mut text = changes
        .iter()
        .fold(MODEL.to_string(), |text, (section, name, value)| set(&text, section, name, value));
    if !caches_writes {
        let (from, to) = (text.find("[write_cache]").unwrap(), text.find("[queue]").unwrap());
        text.replace_range(from..to, "");
    }
    let turn = Duration::from_nanos(60_000_000_000 / rpm);
    // The innermost tracks have 1,560 sectors.
    let dirty_tracks = size / 1560 + 2 * write_segments;
    Made { text, ageing: Duration::from_millis(ageing), turn, caches_writes, dirty_tracks }
}

/// Who asks for what: one in flight, a pause after each.
struct Asker {
    op: CommandOp,
    /// Where the next command of a stream begins; `None`: anywhere.
    next: Option<u64>,
    sectors: u64,
    pause: Duration,
}

/// A command that the drive has finished.
struct Served {
    what: String,
    began: Instant,
    ended: Instant,
}

fn askers(rng: &mut Rng, blocks: u64) -> Vec<Asker> {
    let streams: Vec<u64> = (0..3).map(|_| rng.below(blocks) * 8).collect();
    let count = 2 + rng.below(DEPTH - 2);
    let ask = |_| Asker {
        op: if rng.chance(2, 3) { CommandOp::Read } else { CommandOp::Write },
        next: rng.chance(2, 3).then(|| streams[rng.below(3) as usize]),
        sectors: [8, 64, 256, 1024][rng.below(4) as usize],
        pause: Duration::from_micros([0, 20, 1000][rng.below(3) as usize]),
    };
    (0..count).map(ask).collect()
}

/// What everybody was given in two seconds.
fn compete(made: &Made, seed: u64) -> Vec<Served> {
    let model = Model::from_text("made", &made.text).unwrap_or_else(|error| panic!("{error}"));
    let mut device = model.build(seed);
    let mut rng = Rng::stream(seed, "load");
    let sectors_of_disk = model.facts().capacity.0 / 512;
    let mut askers = askers(&mut rng, sectors_of_disk / 8 - 1_000_000);
    let mut wanting: Vec<(Instant, usize)> =
        (0..askers.len()).map(|index| (Instant::ZERO, index)).collect();
    let mut began = vec![Instant::ZERO; askers.len()];
    let (mut served, mut completed) = (Vec::new(), Vec::new());
    let until = Instant::from_nanos(2_000_000_000);
    loop {
        wanting.sort_unstable_by(|a, b| b.cmp(a));
        let event = device.next_event();
        if let Some((at, index)) = wanting.pop_if(|(at, _)| event.is_none_or(|event| *at <= event))
        {
            if at > until {
                continue;
            }
            let asker = &mut askers[index];
            let anywhere = rng.below(sectors_of_disk - asker.sectors);
            let sector = asker.next.unwrap_or(anywhere);
            // Streams of several askers are one: each goes on where the others are, more or less.
            asker.next = asker.next.map(|at| (at + asker.sectors) % (sectors_of_disk - 1024));
            began[index] = at;
            let (sector, sectors) = (Sector(sector), Sectors(asker.sectors as u32));
            let tag = Tag(index as u32);
            device.accept(at, Command { tag, op: asker.op, sector, sectors, fua: false });
            continue;
        }
        let Some(now) = event else { return served };
        device.advance(now, &mut completed);
        for Tag(tag) in completed.drain(..) {
            let index = tag as usize;
            let Asker { op, sectors, pause, .. } = askers[index];
            let what = format!("{op:?} of {sectors} sectors, asked for at {}", began[index]);
            served.push(Served { what, began: began[index], ended: now });
            wanting.push((now + pause, index));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    #[test]
    fn what_is_overdue_waits_for_what_came_before_and_no_longer(seed in any::<u64>()) {
        let made = make(seed);
        let served = compete(&made, seed);
        // Across the disk, a turn of waiting, and a turn and a skew for each of two tracks.
        let service = Duration::from_nanos(16_000_000 + 4 * made.turn.as_nanos());
        for it in &served {
            let due = it.began + made.ageing;
            let before = served
                .iter()
                .filter(|other| other.began <= it.began && other.ended > due)
                .count() as u64;
            // One is under way. Writing back takes turns with commands, and a write may have to
            // wait until everything in the buffer is on the platters.
            let jobs = match made.caches_writes {
                true => 2 * (before + 1 + made.dirty_tracks),
                false => before + 1,
            };
            let most = due + Duration::from_nanos(jobs * service.as_nanos());
            let (what, ended) = (&it.what, it.ended);
            prop_assert!(ended <= most, "{what}: {ended}, {jobs} jobs; {}", made.text);
        }
    }
}
