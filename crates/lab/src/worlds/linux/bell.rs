//! Where a run is to end although its jobs have not: a bell in the guest.
//!
//! A kernel cannot be told to count. But a read that a disk answers late can wait for anything, so
//! a process of the guest waits for one, and the disk answers it when the other disk has been given
//! so many commands. Then that process ends the jobs, as somebody would who types Ctrl-C. When it
//! rings is decided by the commands alone, so it is the same in every run.

use super::warming;
use base::{Instant, Sector};
use block::command::{Command, CommandOp, Facts, Tag};
use device::Device;
use std::cell::Cell;
use std::rc::Rc;

/// Where the two reads are: far from what a kernel reads when it looks for partitions.
const WAITING: u64 = 40_960;
const RELEASING: u64 = 81_920;

/// The disk that lets it go on where the first one takes one request at a time, and has that.
const SECOND: &str = "vdc";

/// Whether a second disk is needed, at this queue depth of all disks.
pub fn needs_second(queue_depth: u32) -> bool {
    queue_depth == 1
}

/// What waits in the guest, and what lets it go on when the jobs have ended by themselves.
pub fn commands(queue_depth: u32) -> linux::Bell {
    let (name, other) = (warming::NAME, warming::OTHER_NAME);
    let first = format!("disk=/dev/{other}; test -e $disk || disk=/dev/{name}; ");
    // Nobody has another disk in mind by a name that is its own.
    let second = format!(
        "disk=/run/{SECOND}; IFS=: read major minor </sys/block/{SECOND}/dev; \
         mknod $disk b $major $minor; "
    );
    let read = |disk: &str, sector: u64| {
        let dd = format!("dd if=$disk of=/dev/null bs=512 count=1 skip={sector} iflag=direct");
        format!("{disk}{dd} 2>/dev/null")
    };
    let releases = if needs_second(queue_depth) { &second } else { &first };
    linux::Bell { wait: read(&first, WAITING), release: read(releases, RELEASING) }
}

/// Commands of a disk, counted from when somebody waits for their number.
#[derive(Clone, Debug, Default)]
pub struct Count(Rc<Cell<Counting>>);

#[derive(Clone, Copy, Debug, Default)]
struct Counting {
    /// Commands that are still to come, once somebody waits.
    left: Option<u64>,
    /// When the disk finished something for the first time after the last of them.
    reached: Option<Instant>,
    /// When the jobs had ended by themselves.
    ended: Option<Instant>,
}

impl Count {
    fn begin(&self, most: u64) {
        self.0.set(Counting { left: Some(most), ..Counting::default() });
    }

    fn end(&self, at: Instant) {
        self.0.set(Counting { ended: Some(at), ..self.0.get() });
    }

    fn count(&self) {
        let counting = self.0.get();
        let left = counting.left.map(|left| left.saturating_sub(1));
        self.0.set(Counting { left, ..counting });
    }

    /// The disk finishes something, so the guest waits, and no part of it is ahead of this time.
    fn finish(&self, now: Instant) {
        let counting = self.0.get();
        if counting.left == Some(0) && counting.reached.is_none() {
            self.0.set(Counting { reached: Some(now), ..counting });
        }
    }
}

/// A disk whose commands are counted.
pub struct Counted {
    disk: Box<dyn Device>,
    count: Count,
}

impl Counted {
    /// Counts what the disk is given.
    pub fn new(disk: Box<dyn Device>, count: Count) -> Counted {
        Counted { disk, count }
    }
}

impl Device for Counted {
    fn facts(&self) -> &Facts {
        self.disk.facts()
    }

    fn accept(&mut self, now: Instant, command: Command) {
        self.count.count();
        self.disk.accept(now, command);
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        self.count.finish(now);
        self.disk.advance(now, completed);
    }
}

/// Reads that are answered when another disk has been given enough.
#[derive(Debug)]
pub struct Bell {
    count: Count,
    most: u64,
    /// The read that waits.
    waiting: Option<Tag>,
    /// The read that ends the waiting, and when it is answered.
    release: Option<(Tag, Instant)>,
}

impl Bell {
    /// Rings after so many commands, counted from when somebody begins to wait.
    pub fn new(count: Count, most: u64) -> Bell {
        Bell { count, most, waiting: None, release: None }
    }

    /// Takes a read that is answered at this time, unless it waits; others are not for it.
    pub fn accept(&mut self, at: Instant, command: Command) -> bool {
        match (command.op, command.sector) {
            (CommandOp::Read, Sector(WAITING)) => {
                self.waiting = Some(command.tag);
                self.count.begin(self.most);
            }
            (CommandOp::Read, Sector(RELEASING)) => {
                self.release = Some((command.tag, at));
                self.count.end(at);
            }
            _ => return false,
        }
        true
    }

    /// When something is to be answered.
    pub fn next_event(&self) -> Option<Instant> {
        let counting = self.count.0.get();
        let rung = counting.reached.or(counting.ended).filter(|_| self.waiting.is_some());
        rung.or(self.release.map(|(_, at)| at))
    }

    /// Answers everything.
    pub fn answer(&mut self, completed: &mut Vec<Tag>) {
        completed.extend(self.waiting.take());
        completed.extend(self.release.take().map(|(tag, _)| tag));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Sectors;

    fn read(tag: u32, sector: u64) -> Command {
        let (op, sector, sectors) = (CommandOp::Read, Sector(sector), Sectors(1));
        Command { tag: Tag(tag), op, sector, sectors, fua: false }
    }

    #[test]
    fn it_rings_after_so_many_commands_from_when_somebody_waits() {
        let (count, at) = (Count::default(), Instant::from_nanos);
        let mut bell = Bell::new(count.clone(), 2);
        count.count();
        assert!(!bell.accept(at(2), read(0, 0)), "what looks for partitions is not for it");
        assert!(bell.accept(at(3), read(1, WAITING)));
        count.count();
        count.finish(at(4));
        assert_eq!(bell.next_event(), None);
        count.count();
        assert_eq!(bell.next_event(), None, "the guest may be ahead of it");
        count.finish(at(5));
        count.finish(at(6));
        assert_eq!(bell.next_event(), Some(at(5)));
        let mut completed = Vec::new();
        bell.answer(&mut completed);
        assert_eq!((&completed[..], bell.next_event()), (&[Tag(1)][..], None));
        assert!(bell.accept(at(7), read(2, RELEASING)));
        assert_eq!(bell.next_event(), Some(at(7)));
    }

    #[test]
    fn jobs_that_end_by_themselves_let_it_go() {
        let mut bell = Bell::new(Count::default(), 3);
        bell.accept(Instant::ZERO, read(1, WAITING));
        bell.accept(Instant::from_nanos(9), read(2, RELEASING));
        let mut completed = Vec::new();
        bell.answer(&mut completed);
        assert_eq!(completed, [Tag(1), Tag(2)]);
    }

    #[test]
    fn a_second_disk_lets_it_go_where_the_first_takes_one_request() {
        let count = Count::default();
        let mut bell = Bell::new(count.clone(), 3);
        let mut second = Bell::new(count, 3);
        let at = Instant::from_nanos(9);
        bell.accept(Instant::ZERO, read(0, WAITING));
        assert_eq!(bell.next_event(), None);
        assert!(second.accept(at, read(0, RELEASING)));
        assert_eq!((bell.next_event(), second.next_event()), (Some(at), Some(at)));
        let mut completed = Vec::new();
        bell.answer(&mut completed);
        second.answer(&mut completed);
        assert_eq!((completed.len(), bell.next_event(), second.next_event()), (2, None, None));
    }
}
