//! The I/O priority of each request that was inserted.
//!
//! The kernel's event of the insertion says it from 6.12 on. On 6.1 it does not, but the disk is
//! told the priority in the header of each command, and requests that become one have the same. So
//! whatever lies in a command that is issued had the command's priority.

use super::Insertion;
use super::times::{Key, key_of};
use base::Sector;
use block::Ioprio;
use block::command::CommandOp;
use linux::Served;
use std::collections::{BTreeMap, VecDeque};
use trace::blktrace::{Action, Record};

/// The priorities of insertions, in their order, which is also that of the I events.
pub fn of(records: &[Record], insertions: &[Insertion], served: &[Served]) -> Vec<Ioprio> {
    if let Some(said) = insertions.iter().map(|it| it.ioprio).collect() {
        return said;
    }
    // Who usually has which is only known at the end: so everything is gone through twice.
    let first = Found::through(records, insertions, served, BTreeMap::new());
    let found = Found::through(records, insertions, served, first.usual());
    let known = insertions.iter().zip(found.ioprios);
    let of_task = |pid| found.by_task.get(&pid).copied().unwrap_or_default();
    known.map(|(it, ioprio)| ioprio.unwrap_or_else(|| of_task(it.pid))).collect()
}

/// A request that was inserted and not issued yet.
struct Waiting {
    /// Which insertion it was.
    place: usize,
    pid: u32,
    sectors: u32,
}

#[derive(Default)]
struct Found {
    ioprios: Vec<Option<Ioprio>>,
    /// The last one of each task.
    by_task: BTreeMap<u32, Ioprio>,
    /// How often a task's request was a command by itself, with these bits of
    /// priority.
    alone: BTreeMap<(u32, u16), u32>,
    /// What tasks usually have, as far as that is known.
    usual: BTreeMap<u32, Ioprio>,
}

/// Requests that were inserted and not issued yet, by where they begin.
type AllWaiting = BTreeMap<(CommandOp, Sector), VecDeque<Waiting>>;

impl Found {
    /// Finds what lies in which command.
    fn through(
        records: &[Record],
        insertions: &[Insertion],
        served: &[Served],
        usual: BTreeMap<u32, Ioprio>,
    ) -> Found {
        let ioprios = vec![None; insertions.len()];
        let mut found = Found { ioprios, usual, ..Found::default() };
        let mut told: BTreeMap<Key, VecDeque<Ioprio>> = BTreeMap::new();
        for it in served {
            let key = (it.op, it.sector, it.sectors.0);
            told.entry(key).or_default().push_back(Ioprio::from_bits(it.ioprio));
        }
        let mut waiting = AllWaiting::new();
        let mut inserted = 0;
        for record in records {
            let Some(key @ (op, sector, sectors)) = key_of(record) else {
                inserted += usize::from(record.action == Action::Insert);
                continue;
            };
            match record.action {
                Action::Insert => {
                    let one = Waiting { place: inserted, pid: insertions[inserted].pid, sectors };
                    waiting.entry((op, sector)).or_default().push_back(one);
                    inserted += 1;
                }
                Action::Issue => {
                    let ioprio = told.get_mut(&key).and_then(VecDeque::pop_front);
                    found.follow(&mut waiting, key, ioprio.unwrap_or_default());
                }
                _ => {}
            }
        }
        found
    }

    /// What each task has most often, of requests that were commands by themselves.
    fn usual(&self) -> BTreeMap<u32, Ioprio> {
        let mut most: BTreeMap<u32, (u32, u16)> = BTreeMap::new();
        for ((pid, bits), count) in &self.alone {
            let usual = most.entry(*pid).or_insert((*count, *bits));
            *usual = (*usual).max((*count, *bits));
        }
        most.into_iter().map(|(pid, (_, bits))| (pid, Ioprio::from_bits(bits))).collect()
    }

    /// Takes what lies in a command: of tasks that have its priority; if there is nothing, what
    /// begins with it. What was merged at the front or in between has no insertion of its own.
    fn follow(&mut self, waiting: &mut AllWaiting, command: Key, ioprio: Ioprio) {
        if !self.take_parts(waiting, command, ioprio, true) {
            self.take_parts(waiting, command, ioprio, false);
        }
    }

    /// Goes through a command from its first sector to its last, one request behind the other;
    /// whether any was found.
    fn take_parts(
        &mut self,
        waiting: &mut AllWaiting,
        (op, start, sectors): Key,
        ioprio: Ioprio,
        is_usual: bool,
    ) -> bool {
        let end = Sector(start.0 + u64::from(sectors));
        let (mut next, mut is_found) = (start, false);
        while next <= end {
            let Some((&(_, sector), _)) = waiting.range((op, next)..=(op, end)).next() else {
                break;
            };
            let requests = waiting.get_mut(&(op, sector)).expect("it was found");
            let fits = |it: &Waiting| sector.0 + u64::from(it.sectors) <= end.0;
            let usual = |it: &Waiting| self.usual.get(&it.pid);
            let last = |it: &Waiting| self.by_task.get(&it.pid);
            let has = |it: &Waiting| usual(it).or(last(it)) == Some(&ioprio);
            // Of two that begin at the same place, that of a task with this priority.
            let place = requests.iter().position(|it| fits(it) && has(it));
            // What begins amid the command may lie there only by its place on the disk.
            let may_be = |it: &Waiting| sector == start || last(it).or(usual(it)).is_none();
            let other = || requests.iter().position(|it| fits(it) && may_be(it));
            let place = if is_usual { place } else { place.or_else(other) };
            next = Sector(sector.0 + 1);
            if let Some(one) = place.and_then(|place| requests.remove(place)) {
                next = Sector(sector.0 + u64::from(one.sectors).max(1));
                is_found = true;
                self.ioprios[one.place] = Some(ioprio);
                self.by_task.insert(one.pid, ioprio);
                if (sector, one.sectors) == (start, sectors) {
                    *self.alone.entry((one.pid, ioprio.to_bits())).or_insert(0) += 1;
                }
            }
            if requests.is_empty() {
                waiting.remove(&(op, sector));
            }
        }
        is_found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Instant, Sectors};
    use block::IoprioClass;
    use trace::blktrace::Categories;

    fn record(action: Action, sector: u64, sectors: u32) -> Record {
        let (sector, bytes) = (Sector(sector), sectors * 512);
        Record { sector, bytes, ..Record::event(action, Instant::ZERO) }.with(Categories::READ)
    }

    fn served(sector: u64, sectors: u32, ioprio: Ioprio) -> Served {
        Served {
            disk: 0,
            op: CommandOp::Read,
            sector: Sector(sector),
            sectors: Sectors(sectors),
            tag: 0,
            ioprio: ioprio.to_bits(),
            accepted: Instant::ZERO,
            completed: Instant::ZERO,
        }
    }

    fn insertion(pid: u32, ioprio: Option<Ioprio>) -> Insertion {
        Insertion { time: 0, pid, name: "dd".to_string(), ioprio }
    }

    fn real_and_idle() -> [Ioprio; 2] {
        [(IoprioClass::RealTime, 3), (IoprioClass::Idle, 0)]
            .map(|(class, level)| Ioprio::new(class, level).unwrap())
    }

    #[test]
    fn what_the_kernel_says_is_taken() {
        let [real, _] = real_and_idle();
        let insertions = [insertion(7, Some(real))];
        let records = [record(Action::Insert, 8, 8)];
        assert_eq!(of(&records, &insertions, &[]), [real]);
    }

    #[test]
    fn a_request_has_the_priority_of_the_command_that_it_is_a_part_of() {
        use Action::{Insert, Issue};
        let [real, idle] = real_and_idle();
        // Two that are joined, one that is issued alone, one at the same place of another task,
        // and one that is never issued.
        let records = [
            record(Insert, 16, 8),
            record(Insert, 8, 8),
            record(Insert, 100, 8),
            record(Issue, 8, 16),
            record(Issue, 100, 8),
            record(Insert, 100, 8),
            record(Insert, 100, 8),
            record(Issue, 100, 8),
            record(Insert, 500, 8),
        ];
        let pids = [1, 1, 2, 1, 2, 2];
        let insertions = pids.map(|pid| insertion(pid, None));
        let told = [served(8, 16, real), served(100, 8, idle), served(100, 8, idle)];
        assert_eq!(of(&records, &insertions, &told), [real, real, idle, real, idle, idle]);
    }

    #[test]
    fn what_begins_with_a_command_is_no_part_of_it_if_its_task_never_has_that_priority() {
        use Action::{Insert, Issue};
        let [real, idle] = real_and_idle();
        // The second task's request grows to the front; the first one's, which began there, is
        // issued later; others show what the tasks have.
        let records = [
            record(Insert, 0, 8),
            record(Insert, 8, 8),
            record(Issue, 0, 16),
            record(Issue, 0, 8),
            record(Insert, 100, 8),
            record(Issue, 100, 8),
            record(Insert, 200, 8),
            record(Issue, 200, 8),
        ];
        let insertions = [1, 2, 1, 2].map(|pid| insertion(pid, None));
        let told = [(0, 16, real), (0, 8, idle), (100, 8, idle), (200, 8, real)];
        let told = told.map(|(sector, sectors, ioprio)| served(sector, sectors, ioprio));
        assert_eq!(of(&records, &insertions, &told), [idle, real, idle, real]);
    }

    #[test]
    fn what_lies_amid_the_command_of_another_task_is_no_part_of_it() {
        use Action::{Insert, Issue};
        let [real, idle] = real_and_idle();
        let records = [
            record(Insert, 1000, 8),
            record(Issue, 1000, 8),
            record(Insert, 0, 800),
            record(Insert, 400, 8),
            record(Issue, 0, 800),
            record(Issue, 400, 8),
        ];
        let insertions = [1, 2, 1].map(|pid| insertion(pid, None));
        let told = [served(1000, 8, real), served(0, 800, idle), served(400, 8, real)];
        assert_eq!(of(&records, &insertions, &told), [real, idle, real]);
    }
}
