//! A disk as virtio presents it: one hardware queue, no forced unit access, a ring of 256.
//!
//! Times are those of the model; only what the kernel is told of the disk differs.

use base::{Instant, Sectors};
use block::command::{Command, Facts, Tag, Transport};
use device::Device;

/// Entries of the ring, and so the largest queue depth. // linux-in-virtual-time.md 4
pub const RING: u32 = 256;
/// A request is never longer; the kernel's own limit is far below. // virtio-blk sets none
const MOST_SECTORS: Sectors = Sectors(u32::MAX >> 9);

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
        ..model.clone()
    }
}

/// A disk that tells other facts of itself.
pub struct Behind {
    disk: Box<dyn Device>,
    facts: Facts,
}

impl Behind {
    /// `disk` with these facts.
    pub fn new(disk: Box<dyn Device>, facts: Facts) -> Behind {
        Behind { disk, facts }
    }
}

impl Device for Behind {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        self.disk.accept(now, command);
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        self.disk.advance(now, completed);
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
        let disk = Behind::new(model.build(1), facts.clone());
        assert_eq!(disk.facts(), &facts);
    }
}
