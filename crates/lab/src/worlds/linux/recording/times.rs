//! Times for a recording that was made without a clock.
//!
//! Reading the clock takes a guest 256 ns. A recording without times does not shift a single
//! request, and the disk's log has the exact time of every issue and completion. What happened in
//! between happened when the event before it did, because computing takes no time; with nothing in
//! the disk, when the next command was issued, for which nobody waits then.

use base::{Instant, Sector};
use block::command::CommandOp;
use linux::Served;
use std::collections::{BTreeMap, VecDeque};
use trace::blktrace::{Action, Categories, Record};

/// By what a command is recognised.
pub(super) type Key = (CommandOp, Sector, u32);

/// Gives records whose times are counters those of the disk's log.
pub fn of_disk(records: &mut [Record], served: &[Served]) {
    let known = known(records, served);
    let mut next = Instant::ZERO;
    // Going back, for each record the time of the next one that is known.
    let mut following: Vec<Instant> = known
        .iter()
        .rev()
        .map(|time| {
            next = time.unwrap_or(next);
            next
        })
        .collect();
    following.reverse();
    let (mut now, mut inside) = (Instant::ZERO, 0_i64);
    for ((record, known), next) in records.iter_mut().zip(known).zip(following) {
        let time = known.unwrap_or(if inside == 0 { next } else { now });
        now = now.max(time);
        record.time = now;
        match record.action {
            Action::Issue if known.is_some() => inside += 1,
            Action::Complete if known.is_some() => inside -= 1,
            _ => {}
        }
    }
}

/// The times that the log has: of issues and completions, in the order of both.
fn known(records: &[Record], served: &[Served]) -> Vec<Option<Instant>> {
    let mut waiting: BTreeMap<Key, VecDeque<&Served>> = BTreeMap::new();
    for command in served {
        waiting
            .entry((command.op, command.sector, command.sectors.0))
            .or_default()
            .push_back(command);
    }
    let mut inside: BTreeMap<Key, Vec<Instant>> = BTreeMap::new();
    let time_of = |record: &Record| {
        let key = key_of(record)?;
        match record.action {
            Action::Issue => {
                let command = waiting.get_mut(&key)?.pop_front()?;
                inside.entry(key).or_default().push(command.completed);
                Some(command.accepted)
            }
            Action::Complete => {
                let ends = inside.get_mut(&key)?;
                let first = ends.iter().enumerate().min_by_key(|(_, end)| **end)?.0;
                Some(ends.swap_remove(first))
            }
            _ => None,
        }
    };
    records.iter().map(time_of).collect()
}

/// What a record of an issue or a completion is recognised by in the disk's log.
pub(super) fn key_of(record: &Record) -> Option<Key> {
    let op = match record.categories {
        it if it.contains(Categories::DISCARD) => CommandOp::Discard,
        it if record.bytes == 0 && it.contains(Categories::FLUSH) => CommandOp::Flush,
        _ if record.bytes == 0 => return None,
        it if it.contains(Categories::WRITE) => CommandOp::Write,
        _ => CommandOp::Read,
    };
    let sector = if op == CommandOp::Flush { Sector(0) } else { record.sector };
    Some((op, sector, record.bytes / Sector::SIZE as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Sectors;

    fn record(action: Action, sector: u64) -> Record {
        let record =
            Record { sector: Sector(sector), bytes: 4096, ..Record::event(action, Instant::ZERO) };
        record.with(Categories::READ)
    }

    fn served(sector: u64, accepted: u64, completed: u64) -> Served {
        Served {
            disk: 0,
            op: CommandOp::Read,
            sector: Sector(sector),
            sectors: Sectors(8),
            tag: 0,
            ioprio: 0,
            accepted: Instant::from_nanos(accepted),
            completed: Instant::from_nanos(completed),
        }
    }

    #[test]
    fn what_waits_for_nothing_happens_when_it_is_issued() {
        use Action::{Complete, Issue, Queue};
        let sequence =
            [(Queue, 8), (Issue, 8), (Queue, 16), (Complete, 8), (Queue, 24), (Issue, 16)];
        let mut records: Vec<Record> = sequence.map(|(action, at)| record(action, at)).into();
        of_disk(&mut records, &[served(8, 100, 200), served(16, 300, 400)]);
        let times: Vec<u64> = records.iter().map(|it| it.time.as_nanos()).collect();
        assert_eq!(times, [100, 100, 100, 200, 300, 300]);
    }
}
