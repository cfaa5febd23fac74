//! A disk as virtio presents it: one hardware queue, no forced unit access, a ring of 256.
//!
//! Times are those of the model; only what the kernel is told of the disk differs.

use base::{Duration, Instant, Sector, Sectors};
use block::command::{Command, Facts, Tag, Transport};
use device::{Device, Model};

/// Entries of the ring, and so the largest queue depth (docs/linux.md).
pub const RING: u32 = 256;
/// A request is never longer; the kernel's own limit is far below (virtio-blk sets none).
const MOST_SECTORS: Sectors = Sectors(u32::MAX / Sector::SIZE as u32);

/// After so long without a command, from the first one on, the boot is over (the set-up sleeps
/// longer).
pub const SILENCE: Duration = Duration::from_secs(1);
/// The same where a file system is mounted: 2.7 s after that the kernel looks at its bitmaps
/// (observed on 6.12).
pub const SILENCE_MOUNTED: Duration = Duration::from_secs(4);

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
    /// How long nothing comes before the jobs begin.
    silence: Duration,
    /// Commands in the disk.
    in_flight: usize,
    origin: Duration,
    last: Instant,
}

impl Renewed {
    /// The disk of a model with these facts, for a machine on which nothing comes for so long
    /// before the jobs begin; zero for one that has no boot.
    pub fn new(model: &Model, seed: u64, facts: Facts, silence: Duration) -> Renewed {
        let (disk, new) = (model.build(seed), Some(model.build(seed)));
        Renewed {
            disk,
            new,
            facts,
            silence,
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
        let silent = now.saturating_since(self.last) >= self.silence;
        if silent
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
        let disk = Renewed::new(&model, 1, facts.clone(), Duration::ZERO);
        assert_eq!(disk.facts(), &facts);
    }
}
