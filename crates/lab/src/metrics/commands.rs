//! What the disk was asked for, one command after the other, in both worlds, and where the two
//! part.
//!
//! Figures can agree by luck; two sequences that agree in every command have made every decision
//! alike.

use base::{Duration, Instant, Sector, Sectors};
use block::command::CommandOp;
use block::{Action, ContextId, Event, Flags, Op, RequestId};
use linux::Served;
use machine::Observer;
use std::collections::BTreeMap;

/// A command; times count from the first command of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was asked.
    pub op: CommandOp,
    /// First sector; zero for a flush.
    pub sector: Sector,
    /// Length; zero for a flush.
    pub sectors: Sectors,
    /// When the disk got it.
    pub at: Duration,
    /// How long it took; none if it was not finished.
    pub took: Option<Duration>,
    /// How it came to the disk, where that is known: in the simulator.
    pub offered: Option<Offered>,
}

impl Step {
    /// What the command is, whenever it comes: kind, place and length.
    pub fn what(&self) -> (u8, u64, u32) {
        (self.op as u8, self.sector.0, self.sectors.0)
    }
}

/// How a command came to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Whose request it was.
    pub task: ContextId,
    /// When a bio of that task had been done last.
    pub ready: Instant,
    /// Whether that task gave it to the disk itself.
    pub at_once: bool,
}

/// How far two sequences agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// Commands of the simulator.
    pub sim: usize,
    /// Commands of the kernel.
    pub linux: usize,
    /// The place of the first command that is not the same in kind, place and length, if any.
    pub first_other: Option<usize>,
    /// The place of the first command that is not at the same time either.
    pub first_later: Option<usize>,
}

impl Agreement {
    /// Compares two sequences command by command.
    pub fn of(sim: &[Step], linux: &[Step]) -> Agreement {
        let both = || sim.iter().zip(linux);
        let shorter = sim.len().min(linux.len());
        let end = (sim.len() != linux.len()).then_some(shorter);
        Agreement {
            sim: sim.len(),
            linux: linux.len(),
            first_other: both().position(|(one, other)| one.what() != other.what()).or(end),
            first_later: both()
                .position(|(one, other)| (one.what(), one.at) != (other.what(), other.at))
                .or(end),
        }
    }

    /// Whether every command is the same.
    pub fn same_commands(&self) -> bool {
        self.first_other.is_none()
    }
}

/// Watches a run of the simulator for its commands.
#[derive(Default)]
pub struct Collector {
    steps: Vec<(Instant, Step)>,
    /// Commands in the disk.
    open: BTreeMap<RequestId, usize>,
    /// Whose requests they are.
    owners: BTreeMap<RequestId, ContextId>,
    /// When a bio of each task was done last.
    ready: BTreeMap<ContextId, Instant>,
}

impl Collector {
    /// The commands in the order in which the disk got them.
    pub fn finish(self) -> Vec<Step> {
        counted_from_first(self.steps)
    }

    /// How a request that is issued now came to the disk.
    fn offered(&mut self, request: RequestId, issue: &Event) -> Option<Offered> {
        let task = self.owners.remove(&request)?;
        let ready = self.ready.get(&task).copied().unwrap_or(Instant::ZERO);
        Some(Offered { task, ready, at_once: issue.context == task })
    }
}

impl Observer for Collector {
    fn see(&mut self, event: &Event) {
        match event.action {
            Action::GetRequest => {
                self.owners.extend(event.request.map(|request| (request, event.context)));
            }
            Action::BioDone { .. } => {
                self.ready.insert(event.context, event.at);
            }
            Action::Issue => {
                if let Some(request) = event.request {
                    self.open.insert(request, self.steps.len());
                }
                let op = operation(event);
                let is_flush = op == CommandOp::Flush;
                let sector = if is_flush { Sector(0) } else { event.sector };
                let sectors = if is_flush { Sectors(0) } else { event.sectors };
                let (at, took) = (Duration::ZERO, None);
                let offered = event.request.and_then(|request| self.offered(request, event));
                self.steps.push((event.at, Step { op, sector, sectors, at, took, offered }));
            }
            Action::Complete { issued } => {
                let open = event.request.and_then(|request| self.open.remove(&request));
                if let Some(index) = open {
                    self.steps[index].1.took = Some(event.at.since(issued));
                }
            }
            _ => {}
        }
    }
}

/// The commands of the disk's own log since an instant.
pub fn of_log(served: &[Served], began: Instant) -> Vec<Step> {
    let step = |it: &Served| {
        let done = it.completed != Instant::FAR_FUTURE;
        let took = done.then(|| it.completed.since(it.accepted));
        let (op, sector, sectors) = (it.op, it.sector, it.sectors);
        (it.accepted, Step { op, sector, sectors, at: Duration::ZERO, took, offered: None })
    };
    counted_from_first(served.iter().filter(|it| it.accepted >= began).map(step).collect())
}

fn operation(event: &Event) -> CommandOp {
    match event.op {
        Op::Read => CommandOp::Read,
        Op::Write if event.sectors == Sectors(0) && event.flags.intersects(Flags::PREFLUSH) => {
            CommandOp::Flush
        }
        Op::Write => CommandOp::Write,
        Op::Discard => CommandOp::Discard,
    }
}

fn counted_from_first(mut steps: Vec<(Instant, Step)>) -> Vec<Step> {
    let first = steps.first().map_or(Instant::ZERO, |(at, _)| *at);
    steps.iter_mut().for_each(|(at, step)| step.at = at.since(first));
    steps.into_iter().map(|(_, step)| step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(sector: u64, at: u64) -> Step {
        Step {
            op: CommandOp::Read,
            sector: Sector(sector),
            sectors: Sectors(8),
            at: Duration::from_nanos(at),
            took: None,
            offered: None,
        }
    }

    #[test]
    fn sequences_part_first_in_time_and_then_in_kind() {
        let one = [step(0, 0), step(8, 10), step(16, 20)];
        let other = [step(0, 0), step(8, 11), step(24, 20)];
        let agreement = Agreement::of(&one, &other);
        assert_eq!((agreement.first_later, agreement.first_other), (Some(1), Some(2)));
        assert!(Agreement::of(&one, &one).same_commands());
        assert_eq!(Agreement::of(&one, &one[..2]).first_other, Some(2));
    }
}
