//! Shows how near the models of the recordings' disks are to the service times in the recordings.
//!
//! `service_times DIRECTORY [NAME]`: of each recording below the directory (or of those whose names
//! begin so) the commands are given to the model at the times at which the kernel issued them (D),
//! and what comes out is held against the recorded completions (C). The driver computes between an
//! issue and the disk's start and between the disk's end and the record of the completion; these
//! times are parameters of the host `icount` and stand here as they do there.
//!
//! How far the medium had turned when a recording began is in no recording: it is taken from the
//! first thousand commands.

use base::{Duration, Instant, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::{Device, Model};
use lab::recordings::Recording;
use machine::Host;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use trace::Op;
use trace::blktrace::Action;

/// Issue and completion of a command, as recorded.
struct Served {
    issued: Instant,
    completed: Instant,
    op: CommandOp,
    sector: base::Sector,
    sectors: Sectors,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: service_times DIRECTORY [NAME]")?;
    let wanted = arguments.next().unwrap_or_default();
    println!(
        "| recording | disk | commands | same command | within 5 µs | mean, recorded | model |"
    );
    println!("|---|---|---|---|---|---|---|");
    for recording in Recording::below(Path::new(&directory))? {
        let name = &recording.name;
        let Some(disk) = recording.model.filter(|_| name.starts_with(&wanted)) else { continue };
        let served = read(&recording.trace())?;
        let model = Model::builtin(disk)?;
        let turned = phase(&model, &served);
        println!("| {name} | {disk} {}", row(&replay(&model, &served, turned)));
    }
    Ok(())
}

/// The commands whose issue and completion were recorded.
fn read(path: &Path) -> Result<Vec<Served>, Box<dyn Error>> {
    let mut served: Vec<Served> = Vec::new();
    let mut under_way: BTreeMap<(u64, bool), Vec<usize>> = BTreeMap::new();
    for record in trace::read_records(path)? {
        let record = record?;
        let Some(op) = record.op().filter(|_| record.bytes > 0) else { continue };
        let key = (record.sector.0, op == Op::Write);
        match record.action {
            Action::Issue => {
                under_way.entry(key).or_default().push(served.len());
                let op = if op == Op::Write { CommandOp::Write } else { CommandOp::Read };
                let (issued, completed) = (record.time, Instant::FAR_FUTURE);
                let sectors = Sectors(record.bytes / 512);
                served.push(Served { issued, completed, op, sector: record.sector, sectors });
            }
            Action::Complete => {
                let waiting = under_way.get_mut(&key).filter(|it| !it.is_empty());
                if let Some(waiting) = waiting {
                    served[waiting.remove(0)].completed = record.time;
                }
            }
            _ => {}
        }
    }
    Ok(served)
}

/// What the model says of a completion.
struct Predicted {
    /// When it was recorded, after its issue.
    recorded: Duration,
    /// When the model would have done what it served then, after that issue.
    model: Duration,
    /// That was the same command.
    is_same: bool,
}

/// Gives the commands to the model `turned` nanoseconds of a revolution later, and lets it go on
/// with the next one when a completion was recorded: so an error lasts for one command.
fn replay(model: &Model, served: &[Served], turned: u64) -> Vec<Predicted> {
    let host = Host::named("icount").expect("it is built in");
    let after = host.costs.interrupt + host.costs.completion;
    let before =
        |it: &Served| host.costs.driver + host.costs.transfer * u64::from(it.sectors.0) / 8;
    let mut device: Box<dyn Device> = model.build(0);
    let shift = Duration::from_nanos(turned);
    let mut order: Vec<usize> = (0..served.len()).collect();
    order.retain(|n| served[*n].completed < Instant::FAR_FUTURE);
    order.sort_by_key(|n| served[*n].completed);
    let (mut next, mut now, mut tags) = (0, Instant::ZERO, Vec::new());
    let mut predicted = Vec::new();
    // A disk that takes one command is given the next one, although it was issued, when it is done.
    let takes_one = device.facts().queue_depth == 1;
    let mut last = Instant::ZERO;
    for number in order {
        let completed = served[number].completed + shift;
        let ended = completed - after;
        let handed = |it: &Served| {
            let issued = it.issued + shift;
            (if takes_one { issued.max(last) } else { issued }) + before(it)
        };
        let comes = |next: usize| !takes_one || next <= number;
        while let Some(it) = served.get(next).filter(|it| comes(next) && handed(it) <= ended) {
            now = now.max(handed(it));
            let Served { op, sector, sectors, .. } = *it;
            let tag = Tag(next as u32);
            device.accept(now, Command { tag, op, sector, sectors, fua: false });
            next += 1;
        }
        let Some(at) = device.next_event() else { continue };
        now = now.max(at).max(ended);
        device.advance(now, &mut tags);
        let is_same = tags.drain(..).next() == Some(Tag(number as u32));
        let issued = served[number].issued + shift;
        let model = (at + after).saturating_since(issued);
        last = completed;
        predicted.push(Predicted { recorded: completed.since(issued), model, is_same });
    }
    predicted
}

/// How far the medium had turned when time began: of the turns that commands of the beginning ask
/// for, and some beside them, the one with which most commands take as long as recorded.
fn phase(model: &Model, served: &[Served]) -> u64 {
    let revolution = model.parameters().iter().find(|it| it.name == "arm.revolution");
    let Some(revolution) = revolution.and_then(|it| it.value.parse::<f64>().ok()) else { return 0 };
    let revolution = (revolution * 1e6) as u64;
    let first = &served[..served.len().min(1000)];
    let mut votes: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
    for it in replay(model, first, 0) {
        let model = it.model.as_nanos() % revolution;
        let late = (it.recorded.as_nanos() + revolution - model) % revolution;
        let vote = votes.entry(late / 2000).or_default();
        *vote = (vote.0 + 1, vote.1 + late);
    }
    let mut votes: Vec<(u32, u64)> = votes.into_values().collect();
    votes.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let turns = votes.iter().take(20).map(|(count, sum)| revolution - sum / u64::from(*count));
    let nearby = turns.flat_map(|turn| [0, 1000, revolution - 1000].map(|it| turn + it));
    let agreeing = |turn: &u64| Tally::of(&replay(model, first, *turn)).near;
    nearby.max_by_key(agreeing).unwrap_or(0) % revolution
}

/// How near the model is.
#[derive(Default)]
struct Tally {
    count: u64,
    /// The same command was done.
    same: u64,
    /// Within 5 us.
    near: u64,
    recorded: u64,
    model: u64,
}

impl Tally {
    fn of(predicted: &[Predicted]) -> Tally {
        let mut tally = Tally::default();
        for it in predicted {
            let (recorded, model) = (it.recorded.as_nanos(), it.model.as_nanos());
            tally.count += 1;
            tally.same += u64::from(it.is_same);
            tally.near += u64::from(recorded.abs_diff(model) <= 5_000);
            tally.recorded += recorded;
            tally.model += model;
        }
        tally
    }
}

fn row(predicted: &[Predicted]) -> String {
    let Tally { count, same, near, recorded, model } = Tally::of(predicted);
    let percent = |part: u64| part as f64 * 100.0 / count.max(1) as f64;
    let mean = |sum: u64| Duration::from_nanos(sum / count.max(1));
    format!(
        "| {count} | {:.1} % | {:.1} % | {} | {} |",
        percent(same),
        percent(near),
        mean(recorded),
        mean(model)
    )
}
