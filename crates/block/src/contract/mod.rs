//! The contract of every scheduler, as a test that anybody can run on his own.
//!
//! [`check`] drives a scheduler with random operations on a real queue, whose guard is on, and
//! looks for what must hold whatever the policy: nothing is lost or done twice, merging preserves
//! every sector, and everything ends. The scheduler checks its own invariants after every step.
//!
//! Left out: whether the scheduler chooses well. For that, compare it.

mod table;

pub use table::{Harness, KERNEL, Table};

use crate::{
    Bio, CgroupId, CommandOp, ContextId, Flags, IoContextId, Ioprio, IoprioClass, Kernel, Op,
    Origin, PlugFlush, Scheduler,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Duration, Rng, Sector, Sectors};

/// Tasks that submit; context 0 is the kernel's.
const TASKS: u64 = 6;

/// Does so many random operations with a scheduler of this making, then lets everything end.
/// Panics when the contract is broken.
pub fn check(
    kernel: &'static Kernel,
    build: impl Fn() -> Box<dyn Scheduler>,
    seed: u64,
    operations: u32,
) {
    let mut rng = Rng::stream(seed, "contract");
    let depth = rng.between(1, 4) as u32;
    let table = Table { depth, cache: rng.chance(1, 2), max_sectors: 64, ..Table::default() };
    let harness = Harness::new(kernel, table, Some(build()));
    let mut run = Run { harness, rng, submitted: Vec::new(), plugged: [false; TASKS as usize + 1] };
    for _ in 0..operations {
        run.operate(&build);
    }
    run.drain();
    run.harness.queue.assert_drained();
    assert_all_done(&run.harness, &run.submitted);
}

/// Asserts that every bio that was accepted was done once and by commands of its kind, of which
/// there were no more than that takes. With each bio stands how many commands had been completed
/// before it was submitted; its token is its own.
pub fn assert_all_done(harness: &Harness, submitted: &[(Bio, usize)]) {
    let mut asked = [0u64; 3];
    for (bio, before) in submitted.iter().filter(|it| !harness.refused.contains(&it.0.token)) {
        let (times, after) = harness.done.get(&bio.token).copied().unwrap_or_default();
        assert_eq!(times, 1, "done that often: {bio:?}");
        asked[bio.op as usize] += u64::from(bio.sectors.0);
        let commands = &harness.completed[*before..after];
        assert!(is_covered(bio, commands.iter().map(|(_, command)| command)), "{bio:?}");
    }
    let mut done = [0u64; 3];
    for (_, command) in &harness.completed {
        match command.op {
            CommandOp::Read => done[0] += u64::from(command.sectors.0),
            CommandOp::Write => done[1] += u64::from(command.sectors.0),
            CommandOp::Discard => done[2] += u64::from(command.sectors.0),
            CommandOp::Flush => {}
        }
    }
    assert_eq!(done, asked, "sectors of reads, writes, discards");
}

/// Whether commands of its kind transferred every sector of the bio.
fn is_covered<'c>(bio: &Bio, commands: impl Iterator<Item = &'c crate::Command>) -> bool {
    let kind = match bio.op {
        Op::Read => CommandOp::Read,
        Op::Write => CommandOp::Write,
        Op::Discard => CommandOp::Discard,
    };
    let mut missing: Vec<u64> = (bio.sector.0..bio.end().0).collect();
    for command in commands.filter(|command| command.op == kind) {
        let range = command.sector.0..(command.sector + command.sectors).0;
        missing.retain(|sector| !range.contains(sector));
    }
    missing.is_empty()
}

/// A queue with what was submitted to it.
struct Run {
    harness: Harness,
    rng: Rng,
    submitted: Vec<(Bio, usize)>,
    plugged: [bool; TASKS as usize + 1],
}

impl Run {
    fn operate(&mut self, build: &impl Fn() -> Box<dyn Scheduler>) {
        match self.rng.below(100) {
            0..50 => self.submit(),
            50..65 => self.toggle_plug(),
            65..85 => self.complete(),
            85..88 => self.requeue(),
            88..98 => {
                let micros = self.rng.between(1, 3_000);
                let then = self.harness.now + Duration::from_micros(micros);
                self.harness.advance_to(then);
            }
            98 => {
                let level = self.rng.below(3) as i64;
                self.harness.set("nomerges", level).expect("0, 1 or 2");
            }
            _ => {
                self.drain();
                self.harness.switch(Some(build()));
            }
        }
    }

    fn submit(&mut self) {
        let bio = self.bio();
        if !self.harness.asleep.contains(&bio.origin.context) {
            self.submitted.push((bio, self.harness.completed.len()));
            self.harness.submit(bio);
        }
    }

    /// Of few places, so that there is something to merge.
    fn bio(&mut self) -> Bio {
        let rng = &mut self.rng;
        let task = rng.between(1, TASKS) as u32;
        let (op, flags) = match rng.below(20) {
            0..8 => (Op::Read, Flags::NONE),
            8..13 => (Op::Write, Flags::NONE),
            13..18 => (Op::Write, Flags::SYNC),
            18 => (Op::Write, Flags::FUA.with(Flags::SYNC)),
            _ => (Op::Discard, Flags::NONE),
        };
        let classes = [IoprioClass::None, IoprioClass::RealTime, IoprioClass::Idle];
        let class = classes.get(rng.below(8) as usize).copied();
        Bio {
            op,
            flags,
            sector: Sector(rng.below(64) * 8),
            sectors: Sectors(rng.between(1, 4) as u32 * 8),
            ioprio: Ioprio { class: class.unwrap_or(IoprioClass::BestEffort), level: 4 },
            origin: Origin {
                context: ContextId(task),
                io_context: IoContextId(task),
                cgroup: CgroupId::ROOT,
                cpu: 0,
            },
            token: self.submitted.len() as u64,
        }
    }

    fn toggle_plug(&mut self) {
        let context = ContextId(self.rng.between(1, TASKS) as u32);
        if self.harness.asleep.contains(&context) {
            return;
        }
        if self.plugged[context.0 as usize] {
            self.unplug(context);
        } else {
            self.plugged[context.0 as usize] = true;
            self.harness.start_plug(context);
        }
    }

    fn unplug(&mut self, context: ContextId) {
        let is_asleep = self.harness.asleep.contains(&context);
        if !is_asleep && core::mem::take(&mut self.plugged[context.0 as usize]) {
            self.harness.finish_plug(context, 0, PlugFlush::Explicit);
        }
    }

    fn complete(&mut self) {
        let in_flight = self.harness.in_flight.len() as u64;
        if in_flight > 0 {
            self.harness.complete(self.rng.below(in_flight) as usize);
        }
    }

    /// Flush commands are not given back: a device that refuses them is a device fault.
    fn requeue(&mut self) {
        let commands = &self.harness.in_flight;
        let index = commands.iter().position(|command| command.op != CommandOp::Flush);
        if let Some(index) = index {
            self.harness.requeue(index);
        }
    }

    /// Everything is completed, oldest first, until nothing is left.
    fn drain(&mut self) {
        for _ in 0..10_000 {
            (1..=TASKS).for_each(|task| self.unplug(ContextId(task as u32)));
            if !self.harness.in_flight.is_empty() {
                self.harness.complete(0);
            } else if self.harness.queue.allocated() == 0 && self.harness.asleep.is_empty() {
                return;
            } else {
                self.harness.advance_to(self.harness.now + Duration::from_millis(10));
            }
        }
        panic!("the queue does not run dry: {} requests", self.harness.queue.allocated());
    }
}
