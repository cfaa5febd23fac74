//! The calibration disk: 10,000 requests whose service times were measured on the real drive.
//!
//! The model is driven as the drive was: one request at a time, each a stored think time after
//! the completion of the one before. The demerit figure is the root mean square of the horizontal
//! distance between the measured and the modelled distribution of service times.

use base::{Duration, Instant, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::Model;

const SEEDS: u64 = 5;
const HALF: usize = 5000;

struct Request {
    op: CommandOp,
    sector: Sector,
    sectors: Sectors,
    measured: f64,
    think: Duration,
}

/// The model's file.
const MODEL: &str = include_str!("../../../../models/cheetah9lp.toml");

/// What DiskSim publishes where the model has what was found in the first half.
const PUBLISHED: [(&str, &str); 12] = [
    ("head_switch        = { value = 0.5", "head_switch = { value = 0.03"),
    ("read_hit_in_sequence   = { value = 0.074", "read_hit_in_sequence = { value = 0.066"),
    ("read_hit_after_read    = { value = 0.252", "read_hit_after_read = { value = 0.066"),
    ("read_hit_after_write   = { value = 0.252", "read_hit_after_write = { value = 0.273"),
    ("write_hit_after_read   = { value = 0.69", "write_hit_after_read = { value = 0.748"),
    ("write_hit_after_write  = { value = 0.463", "write_hit_after_write = { value = 0.5"),
    ("write_miss_after_read  = { value = 0.73", "write_miss_after_read = { value = 0.90692"),
    ("write_miss_after_write = { value = 0.7,", "write_miss_after_write = { value = 0.8964,"),
    ("read_rate  = { value = 4.956", "read_rate = { value = 4.87619"),
    ("write_rate = { value = 4.956", "write_rate = { value = 4.87619"),
    ("keeps_delivered = { value = false", "keeps_delivered = { value = true"),
    ("skipped          = { value = 0.059", "skipped = { value = 0"),
];

/// Every write that the buffer takes is a hit.
const CACHED_ARE_HITS: (&str, &str) = (
    "[link]",
    "[write_hits]\nare = { value = \"cached-writes\", source = \"measured\", \
     from = \"DiskSim 4.0\" }\n[link]",
);

/// Prints the demerit figures of both halves.
pub fn print(directory: &str) -> Result<(), String> {
    let path = format!("{directory}/block_csv/cheetah9LP.trace");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let requests: Vec<Request> = text
        .lines()
        .enumerate()
        .map(|(index, line)| {
            parse(line).ok_or_else(|| format!("{path}:{}: not a request: {line}", index + 1))
        })
        .collect::<Result<_, _>>()?;
    println!(
        "| cheetah9lp, {SEEDS} seeds | demerit ms | reads | writes | mean measured | modelled |"
    );
    println!("|---|---|---|---|---|---|");
    let model = Model::from_text("cheetah9lp", MODEL).map_err(|error| error.to_string())?;
    let runs: Vec<Vec<f64>> = (1..=SEEDS).map(|seed| replay(&model, &requests, seed)).collect();
    let halves = [
        ("requests 1-5,000 (fitted)", 0..HALF),
        ("requests 5,001-10,000 (tested)", HALF..requests.len()),
        ("all", 0..requests.len()),
    ];
    for (name, range) in halves {
        let all = spread(&runs, &requests, &range, |_| true);
        let reads = spread(&runs, &requests, &range, |op| op == CommandOp::Read);
        let writes = spread(&runs, &requests, &range, |op| op == CommandOp::Write);
        let measured = mean(requests[range.clone()].iter().map(|request| request.measured));
        let modelled = mean(runs.iter().flat_map(|run| run[range.clone()].iter().copied()));
        println!("| {name} | {all} | {reads} | {writes} | {measured:.3} | {modelled:.3} |");
    }
    println!();
    print_published(&requests)
}

/// Prints the demerit figures of the parameters as they were published, with both meanings of a
/// write hit.
fn print_published(requests: &[Request]) -> Result<(), String> {
    println!("| DiskSim's values; a write hit is | half | demerit ms | reads | writes |");
    println!("|---|---|---|---|---|");
    let meanings = [("what joins another", None), ("what is cached", Some(CACHED_ARE_HITS))];
    for (meaning, more) in meanings {
        let text = PUBLISHED.iter().chain(&more).fold(MODEL.to_string(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replacen(old, new, 1)
        });
        let model = Model::from_text("published", &text).map_err(|error| error.to_string())?;
        // Nothing is drawn at random, so one seed tells all.
        let run = replay(&model, requests, 1);
        for (half, range) in [("first", 0..HALF), ("second", HALF..requests.len())] {
            let figure = |only: Option<CommandOp>| {
                demerit(&run, requests, &range, |op| only.is_none_or(|only| only == op))
            };
            let [all, reads, writes] =
                [None, Some(CommandOp::Read), Some(CommandOp::Write)].map(figure);
            println!("| {meaning} | {half} | {all:.3} | {reads:.3} | {writes:.3} |");
        }
    }
    println!();
    Ok(())
}

fn parse(line: &str) -> Option<Request> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let micros = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some(Request {
        op: match *fields.first()? {
            "R" => CommandOp::Read,
            "W" => CommandOp::Write,
            _ => return None,
        },
        sector: Sector(fields.get(2)?.parse().ok()?),
        sectors: Sectors(fields.get(3)?.parse().ok()?),
        measured: micros(4)? / 1000.0,
        think: Duration::from_nanos((micros(5)? * 1000.0) as u64),
    })
}

/// Modelled service times in milliseconds.
fn replay(model: &Model, requests: &[Request], seed: u64) -> Vec<f64> {
    let mut device = model.build(seed);
    let (mut now, mut completed) = (Instant::ZERO, Vec::new());
    let mut times = Vec::new();
    for request in requests {
        while let Some(at) = device.next_event().filter(|at| *at <= now) {
            device.advance(at, &mut completed);
        }
        let start = now;
        let (op, sector, sectors) = (request.op, request.sector, request.sectors);
        device.accept(now, Command { tag: Tag(0), op, sector, sectors, fua: false });
        while completed.is_empty() {
            now = device.next_event().expect("a command in the drive");
            device.advance(now, &mut completed);
        }
        completed.clear();
        times.push(now.since(start).as_nanos() as f64 / 1e6);
        now += request.think;
    }
    times
}

/// Mean and range of the demerit over the seeds.
fn spread(
    runs: &[Vec<f64>],
    requests: &[Request],
    range: &std::ops::Range<usize>,
    chosen: impl Fn(CommandOp) -> bool,
) -> String {
    let demerits: Vec<f64> =
        runs.iter().map(|run| demerit(run, requests, range, &chosen)).collect();
    let low = demerits.iter().copied().fold(f64::INFINITY, f64::min);
    let high = demerits.iter().copied().fold(0.0, f64::max);
    format!("{:.3} ({low:.3}-{high:.3})", mean(demerits.iter().copied()))
}

/// The root mean square of the horizontal distance between the two distributions.
fn demerit(
    run: &[f64],
    requests: &[Request],
    range: &std::ops::Range<usize>,
    chosen: impl Fn(CommandOp) -> bool,
) -> f64 {
    let indices: Vec<usize> = range.clone().filter(|index| chosen(requests[*index].op)).collect();
    let mut measured: Vec<f64> = indices.iter().map(|&index| requests[index].measured).collect();
    let mut modelled: Vec<f64> = indices.iter().map(|&index| run[index]).collect();
    measured.sort_by(f64::total_cmp);
    modelled.sort_by(f64::total_cmp);
    let squares = measured.iter().zip(&modelled).map(|(a, b)| (a - b) * (a - b));
    mean(squares).sqrt()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    sum / count
}
