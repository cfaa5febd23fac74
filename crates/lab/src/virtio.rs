//! A disk as virtio presents it: one hardware queue, no forced unit access, a ring of 256.
//!
//! Times are those of the model; only what the kernel is told of the disk differs.

use base::{Duration, Instant, Sector, Sectors};
use block::command::{Command, Facts, Stage, Tag, Transport};
use device::{Device, Model};

/// Entries of the ring, and so the largest queue depth (docs/linux.md).
pub const RING: u32 = 256;
/// A request is never longer; the kernel's own limit is far below (virtio-blk sets none).
const MOST_SECTORS: Sectors = Sectors(u32::MAX / Sector::SIZE as u32);

/// Where a file system is mounted, jobs begin two seconds after this one of the guest's clock; by
/// then all has long been quiet. Within five seconds of mounting the kernel looks at the bitmaps of
/// ext4: after 3.0 and 4.2 s on 6.12.117, by the disk.
pub const QUIET: u64 = 10;

/// By what the first command of the jobs is known.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// How long nothing came before.
    silence: Duration,
    /// The machine has been up for so long.
    earliest: Duration,
}

impl Beginning {
    /// It is the first one.
    pub const AT_ONCE: Beginning = Beginning { silence: Duration::ZERO, earliest: Duration::ZERO };
    /// A guest has looked at its disk and slept.
    pub const AFTER_BOOT: Beginning =
        Beginning { silence: Duration::from_secs(1), earliest: Duration::ZERO };
    /// It has mounted a file system as well.
    pub const AFTER_MOUNT: Beginning =
        Beginning { silence: Duration::from_secs(4), earliest: Duration::from_secs(QUIET) };
}

/// The facts of a disk behind virtio, with another queue depth if one is asked for.
pub fn facts(model: &Facts, depth: Option<u32>) -> Facts {
    Facts {
        transport: Transport::Virtio,
        hardware_queues: 1,
        queue_depth: depth.unwrap_or(model.queue_depth).min(RING),
        // virtio has no flag for it; the kernel sends flushes instead.
        fua: false,
        max_hw_sectors: MOST_SECTORS,
        chunk_sectors: Sectors(0),
        // Memory that nobody has used yet is handed out page after page. // measured: 8 MiB
        segment: MOST_SECTORS,
        ..model.clone()
    }
}

/// A disk that is as new, at time zero, when the first command of the jobs arrives: a guest looks
/// at its disks while it boots, and programs take their time before they begin, but both worlds
/// should meet the platter at the same angle.
pub struct Renewed {
    disk: Box<dyn Device>,
    /// What it becomes, until it has.
    new: Option<Box<dyn Device>>,
    facts: Facts,
    beginning: Beginning,
    /// Commands in the disk.
    in_flight: usize,
    origin: Duration,
    last: Instant,
}

impl Renewed {
    /// The disk of a model with these facts, and when its jobs begin.
    pub fn new(model: &Model, seed: u64, facts: Facts, beginning: Beginning) -> Renewed {
        let (disk, new) = (model.build(seed), Some(model.build(seed)));
        Renewed {
            disk,
            new,
            facts,
            beginning,
            in_flight: 0,
            origin: Duration::ZERO,
            last: Instant::ZERO,
        }
    }

    /// The time of the disk at this time of the guest.
    fn time(&self, now: Instant) -> Instant {
        Instant::ZERO + now.since(Instant::ZERO + self.origin)
    }
}

impl Device for Renewed {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        let Beginning { silence, earliest } = self.beginning;
        let is_silent = now.saturating_since(self.last) >= silence;
        if is_silent
            && now >= Instant::ZERO + earliest
            && self.in_flight == 0
            && let Some(new) = self.new.take()
        {
            (self.disk, self.origin) = (new, now.since(Instant::ZERO));
        }
        self.last = now;
        self.in_flight += 1;
        self.disk.accept(self.time(now), command);
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event().map(|at| at + self.origin)
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        let before = completed.len();
        self.disk.advance(self.time(now), completed);
        self.in_flight -= completed.len() - before;
    }

    fn keep_stages(&mut self) {
        self.disk.keep_stages();
        self.new.iter_mut().for_each(|it| it.keep_stages());
    }

    fn take_stages(&mut self, tag: Tag) -> Box<[(Instant, Stage)]> {
        let mut stages = self.disk.take_stages(tag);
        stages.iter_mut().for_each(|(at, _)| *at += self.origin);
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::Model;

    #[test]
    fn a_disk_behind_virtio_keeps_its_size_and_gets_one_queue() {
        let model = Model::find("hdd-7200-sata").unwrap();
        let facts = facts(model.facts(), Some(1000));
        assert_eq!((facts.hardware_queues, facts.queue_depth, facts.fua), (1, RING, false));
        assert_eq!(facts.capacity, model.facts().capacity);
        let disk = Renewed::new(&model, 1, facts.clone(), Beginning::AT_ONCE);
        assert_eq!(disk.facts(), &facts);
    }

    #[test]
    fn what_the_kernel_reads_after_mounting_does_not_make_the_disk_new() {
        let model = Model::find("hdd-7200-sata").unwrap();
        let facts = facts(model.facts(), None);
        let mut disk = Renewed::new(&model, 1, facts, Beginning::AFTER_MOUNT);
        disk.keep_stages();
        let mut serve = |at: Instant| {
            let read = Command {
                op: block::command::CommandOp::Read,
                sector: Sector(8),
                sectors: Sectors(8),
                tag: Tag(0),
                fua: false,
            };
            disk.accept(at, read);
            let mut completed = Vec::new();
            while let Some(at) = disk.next_event() {
                disk.advance(at, &mut completed);
            }
            assert_eq!(disk.take_stages(Tag(0))[0].0, at, "what is told is of the guest's time");
            disk.new.is_none()
        };
        let after = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert!(!serve(after(100)) && !serve(after(4320)), "the bitmaps");
        assert!(serve(after(12_065)));
    }
}
