//! The disk on which a guest gets ready: its kernel gets the workers it needs, and its timer a time
//! that is the same in every run.
//!
//! The guest's clock counts in steps, and its timers fire as much later than asked as the clock was
//! behind when they were last set. Where the disks of the experiment left it after booting depends
//! on their models. This disk answers after ticks have stopped, at the beginning of a step, so all
//! timers are set anew then.

use base::Instant;
use block::command::{Command, Facts, Tag};
use device::{Device, Model};
use linux::{Contents, Disk};

/// A command that has to go through the kernel's worker. The first request that a kernel leaves to
/// it takes longer, as the worker makes another one before it begins; machines have that behind
/// them. A flush is left to the worker, and on a disk of its own it leaves the scheduler and the
/// tags of the other one alone (observed on 6.12).
pub const WARM_UP: &str = "dd if=/dev/null of=/dev/vdb conv=fsync 2>/dev/null";
/// What the guest takes it for: a disk with a cache to flush.
const MODEL: &str = "hdd-7200-sata";
/// It answers at multiples of so many nanoseconds, one of them later: many steps of the clock and
/// several ticks.
const ANSWERS: u64 = 1 << 26;

/// A disk that answers late and in step.
struct InStep {
    facts: Facts,
    waiting: Vec<(Instant, Tag)>,
}

/// The disk, with as many requests at once as the other one.
pub fn disk(queue_depth: u32) -> Disk {
    let model = Model::find(MODEL).expect("a built-in model");
    let facts = crate::virtio::facts(model.facts(), Some(queue_depth));
    let device = Box::new(InStep { facts, waiting: Vec::new() });
    Disk { name: MODEL.to_string(), device, contents: Contents::forgetful() }
}

impl Device for InStep {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        let at = Instant::from_nanos((now.as_nanos() / ANSWERS + 2) * ANSWERS);
        self.waiting.push((at, command.tag));
    }

    fn next_event(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at)
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        let due = self.waiting.partition_point(|(at, _)| *at <= now);
        completed.extend(self.waiting.drain(..due).map(|(_, tag)| tag));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Sector, Sectors};
    use block::command::CommandOp;

    #[test]
    fn it_answers_at_the_beginning_of_a_step_after_several_ticks() {
        let mut disk = InStep { facts: super::disk(1).device.facts().clone(), waiting: Vec::new() };
        let (op, sector, sectors) = (CommandOp::Flush, Sector(0), Sectors(0));
        disk.accept(
            Instant::from_nanos(777),
            Command { tag: Tag(3), op, sector, sectors, fua: false },
        );
        let at = disk.next_event().unwrap();
        assert_eq!(at, Instant::from_nanos(2 * ANSWERS));
        let mut completed = Vec::new();
        disk.advance(at, &mut completed);
        assert_eq!(completed, [Tag(3)]);
        assert_eq!(disk.next_event(), None);
    }
}
