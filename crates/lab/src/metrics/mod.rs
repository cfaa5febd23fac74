//! Observers that turn the stream of events into figures.
//!
//! Every figure comes from the stream alone, so it means the same in every world that produces
//! one. Latency is measured in layers: *syscall*, what a caller waited; *queue*, a bio's way from
//! entering the block layer to the device (Q2D); *device*, from there to its completion (D2C).

pub mod calls;
pub mod disk;
pub mod figure;
pub mod latency;
pub mod samples;

pub use calls::{Actor, CallKind, Calls};
pub use disk::Disk;
pub use latency::Latency;

use base::{Duration, Histogram, Instant};
use block::Event;
use disk::DiskMeter;
use sim::{Observer, Who};

/// Measures a run.
#[derive(Default)]
pub struct Meter {
    actors: Vec<Actor>,
    /// The actor of each context, by its number.
    of_context: Vec<Option<usize>>,
    disk: DiskMeter,
    last: Instant,
    /// Of each job, whether its tasks are told apart by name.
    by_task: Vec<bool>,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Who did something, in the order of appearance.
    pub actors: Vec<Actor>,
    /// What the disk did.
    pub disk: Disk,
    /// From the start to the end of the run.
    pub elapsed: Duration,
}

/// Latency by layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// What callers waited.
    pub syscall: Latency,
    /// From entering the block layer to the device.
    pub queue: Latency,
    /// In the device.
    pub device: Latency,
}

impl Meter {
    /// A meter for jobs of which this says whether their tasks are told apart by name.
    pub fn new(by_task: Vec<bool>) -> Meter {
        Meter { by_task, ..Meter::default() }
    }

    /// The figures, when the run has taken so long.
    pub fn finish(self, elapsed: Duration) -> Measured {
        let end = Instant::ZERO + elapsed;
        let disk = self.disk.finish(end.max(self.last));
        Measured { actors: self.actors, disk, elapsed }
    }
}

impl Observer for Meter {
    fn meet(&mut self, who: &Who) {
        let number = who.context.0 as usize;
        if number >= self.of_context.len() {
            self.of_context.resize(number + 1, None);
        }
        let apart = who.job.is_none_or(|job| self.by_task.get(job) == Some(&true));
        let same = |it: &Actor| it.job == who.job && (!apart || it.name == who.name);
        let index = self.actors.iter().position(same).unwrap_or_else(|| {
            self.actors.push(Actor::new(who.job, &who.name));
            self.actors.len() - 1
        });
        self.actors[index].tasks += 1;
        self.of_context[number] = Some(index);
    }

    fn see(&mut self, event: &Event) {
        self.last = event.at;
        self.disk.see(event);
        let actor = self.of_context.get(event.context.0 as usize).copied().flatten();
        if let Some(actor) = actor {
            self.actors[actor].see(event);
        }
    }
}

impl Measured {
    /// The layers of everybody together.
    pub fn layers(&self) -> Layers {
        Layers::of(self.actors.iter())
    }
}

impl Layers {
    /// The layers of some actors together.
    pub fn of<'a>(actors: impl Iterator<Item = &'a Actor>) -> Layers {
        let mut all = [Histogram::new(), Histogram::new(), Histogram::new()];
        for actor in actors {
            all[0].merge(&actor.syscalls());
            all[1].merge(&actor.queue);
            all[2].merge(&actor.device);
        }
        let [syscall, queue, device] = all.map(|histogram| Latency::of(&histogram));
        Layers { syscall, queue, device }
    }
}
