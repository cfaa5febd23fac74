//! The disk on which a guest gets ready: its kernel gets the workers it needs, and its timer a time
//! that is the same in every run.
//!
//! The guest's clock counts in steps, and its timers fire as much later than asked as the clock was
//! behind when they were last set. Where the disks of the experiment left it after booting depends
//! on their models. This disk answers after ticks have stopped, at the beginning of a step, so all
//! timers are set anew then.

use super::bell::Bell;
use base::Instant;
use block::command::{Command, Facts, Tag};
use device::{Device, Model};
use linux::{Contents, Disk};

/// A command that has to go through the kernel's worker. The first request that a kernel leaves to
/// it takes longer, as the worker makes another one before it begins; machines have that behind
/// them. A flush is left to the worker, and on a disk of its own it leaves the scheduler and the
/// tags of the other one alone (observed on 6.12).
pub const WARM_UP: &str = "dd if=/dev/null of=/dev/vdb conv=fsync 2>/dev/null";
/// What the guest calls it, and what it is called where a job means its own disk by that name.
pub const NAME: &str = "vdb";
pub const OTHER_NAME: &str = "warming";
/// What the guest takes it for: a disk with a cache to flush.
const MODEL: &str = "hdd-7200-sata";
/// It answers at multiples of so many nanoseconds, one of them later: many steps of the clock and
/// several ticks.
const ANSWERS: u64 = 1 << 26;

/// The same command where the disk has its other name.
pub fn by_other_name() -> String {
    WARM_UP.replace(NAME, OTHER_NAME)
}

/// A disk that answers late and in step.
struct InStep {
    facts: Facts,
    waiting: Vec<(Instant, Tag)>,
    /// What ends a run whose jobs have no end.
    bell: Option<Bell>,
}

/// The disk, with as many requests at once as the other one, and a bell if the run is to have one.
pub fn disk(queue_depth: u32, bell: Option<Bell>) -> Disk {
    let model = Model::find(MODEL).expect("a built-in model");
    let facts = crate::virtio::facts(model.facts(), Some(queue_depth));
    let device = Box::new(InStep { facts, waiting: Vec::new(), bell });
    Disk { name: MODEL.to_string(), device, contents: Contents::forgetful() }
}

/// When what comes now is answered.
fn in_step(now: Instant) -> Instant {
    Instant::from_nanos((now.as_nanos() / ANSWERS + 2) * ANSWERS)
}

impl Device for InStep {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        if self.bell.as_mut().is_some_and(|bell| bell.accept(in_step(now), command)) {
            return;
        }
        self.waiting.push((in_step(now), command.tag));
    }

    fn next_event(&self) -> Option<Instant> {
        let bell = self.bell.as_ref().and_then(Bell::next_event);
        self.waiting.first().map(|(at, _)| *at).into_iter().chain(bell).min()
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        let due = self.waiting.partition_point(|(at, _)| *at <= now);
        completed.extend(self.waiting.drain(..due).map(|(_, tag)| tag));
        if let Some(bell) = &mut self.bell
            && bell.next_event().is_some_and(|at| at <= now)
        {
            bell.answer(completed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Sector, Sectors};
    use block::command::CommandOp;

    #[test]
    fn it_answers_at_the_beginning_of_a_step_after_several_ticks() {
        let mut disk = InStep {
            facts: super::disk(1, None).device.facts().clone(),
            waiting: Vec::new(),
            bell: None,
        };
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
