//! Observers that turn the stream of events into figures.
//!
//! Every figure comes from the stream alone, so it means the same in every world that produces
//! one. Latency is measured in layers: *syscall*, what a caller waited; *queue*, a bio's way from
//! entering the block layer to the device (Q2D); *device*, from there to its completion (D2C).

pub mod bios;
pub mod calls;
pub mod commands;
pub mod disk;
pub mod held;
pub mod latency;
pub mod operations;
pub mod samples;
pub mod throttling;

pub use calls::{Actor, CallKind, Calls};
pub use disk::Disk;
pub use latency::Latency;
pub use throttling::Throttling;

use base::{Duration, Histogram, Instant};
use block::{Action, Event};
use disk::DiskMeter;
use machine::{Observer, TaskInfo};
use operations::{Busy, Watch};
use throttling::ThrottlingMeter;

/// Measures a run.
#[derive(Default)]
pub struct Meter {
    naming: Vec<Naming>,
    /// The job that each program of the machine counts for, if that is not the one of its number.
    jobs: Vec<usize>,
    sections: Vec<Actor>,
    processes: Vec<Actor>,
    /// Whose results the events of each context count for, by its number.
    of_context: Vec<Option<Owner>>,
    disk: DiskMeter,
    throttling: ThrottlingMeter,
    last: Instant,
    pairing: Option<Pairing>,
}

/// Watches single operations.
struct Pairing {
    /// The job that is watched, by its number.
    job: usize,
    /// At most so many operations of a section are kept.
    most: usize,
    /// By section; `None` for those that are not watched.
    watches: Vec<Option<Watch>>,
    /// What tasks without calls do, such as the kernel's own.
    busy: Busy,
    /// How many of those who are watched sleep for a request.
    asleep: usize,
}

/// How the tasks of a job are told apart in results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Not at all.
    Whole,
    /// By name; tasks called `NAME.NUMBER` are clones of a section.
    Sections(Vec<Section>),
}

/// A section of a fio job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// What ends sooner after its start is not counted.
    pub ramp: Duration,
}

/// An index into the sections, and one into the processes if the task is a clone.
#[derive(Clone, Copy)]
struct Owner {
    section: usize,
    process: Option<usize>,
    /// Of the section's tasks the n-th.
    task: u32,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Who did something, in the order of appearance; clones count together.
    pub sections: Vec<Actor>,
    /// Each clone for itself.
    pub processes: Vec<Actor>,
    /// What the disk did.
    pub disk: Disk,
    /// Who slept because writeback was throttled.
    pub throttling: Throttling,
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
    /// A meter for jobs whose tasks are told apart like this.
    pub fn new(naming: Vec<Naming>) -> Meter {
        Meter { naming, ..Meter::default() }
    }

    /// Says which job each program of the machine counts for.
    pub fn count_for(&mut self, jobs: Vec<usize>) {
        self.jobs = jobs;
    }

    /// Single operations of a job are watched, and of each of its sections at most so many kept.
    pub fn watch_operations(&mut self, job: usize, most: usize) {
        let (watches, busy) = (Vec::new(), Busy::default());
        self.pairing = Some(Pairing { job, most, watches, busy, asleep: 0 });
    }

    /// The figures, when the run has taken so long.
    pub fn finish(self, elapsed: Duration) -> Measured {
        let end = Instant::ZERO + elapsed;
        let end = end.max(self.last);
        let (disk, throttling) = (self.disk.finish(end), self.throttling.finish(end));
        let Meter { mut sections, processes, pairing, .. } = self;
        let watches = pairing.map(|it| it.watches).unwrap_or_default();
        for (section, watch) in sections.iter_mut().zip(watches) {
            section.operations = watch.map(Watch::finish).unwrap_or_default().into();
        }
        Measured { sections, processes, disk, throttling, elapsed }
    }
}

impl Observer for Meter {
    fn meet(&mut self, who: &TaskInfo) {
        let number = who.context.0 as usize;
        if number >= self.of_context.len() {
            self.of_context.resize(number + 1, None);
        }
        let job = who.job.map(|number| self.jobs.get(number).copied().unwrap_or(number));
        let naming = job.and_then(|job| self.naming.get(job));
        let section = naming.map_or(who.name.as_str(), |naming| naming.section_of(&who.name));
        let called = if section.is_empty() { &who.name } else { section };
        self.disk.meet(who.context, called);
        self.throttling.meet(who.context, called);
        let is_clone = section != who.name && naming != Some(&Naming::Whole);
        let ramp = naming.map_or(Duration::ZERO, |naming| naming.ramp_of(section));
        let section = index_of(&mut self.sections, job, section, ramp);
        let process = is_clone.then(|| index_of(&mut self.processes, job, &who.name, ramp));
        let task = self.sections[section].tasks;
        self.sections[section].tasks += 1;
        if let Some(process) = process {
            self.processes[process].tasks += 1;
        }
        self.of_context[number] = Some(Owner { section, process, task });
    }

    fn see(&mut self, event: &Event) {
        self.see_all(std::slice::from_ref(event));
    }

    fn see_all(&mut self, events: &[Event]) {
        for event in events {
            match Actor::is_about(event) {
                true => self.see_actor(event),
                false => self.see_disk(event),
            }
        }
        self.last = events.last().map_or(self.last, |event| event.at);
    }
}

impl Meter {
    /// Something happened to the disk, or to the requests on their way there.
    #[inline]
    fn see_disk(&mut self, event: &Event) {
        self.disk.see(event);
        self.throttling.see(event);
        if Watch::is_about_sleep(event)
            && let Some(pairing) = &mut self.pairing
        {
            pairing.see_sleep(&self.of_context, event);
        }
    }

    /// Something happened in the context of an actor that says nothing about the disk.
    #[inline(never)]
    fn see_actor(&mut self, event: &Event) {
        if matches!(event.action, Action::Released { .. }) {
            self.throttling.see(event);
        }
        let owner = self.of_context.get(event.context.0 as usize).copied().flatten();
        if let Some(Owner { section, process, task }) = owner {
            let actor = &mut self.sections[section];
            actor.see(event);
            if let Some(pairing) = &mut self.pairing {
                pairing.see(section, actor, task, event);
            }
            if let Some(process) = process {
                self.processes[process].see(event);
            }
        }
    }
}

impl Pairing {
    /// Something happened that only who sleeps for a request is told by.
    fn see_sleep(&mut self, of_context: &[Option<Owner>], event: &Event) {
        if self.asleep == 0 && operations::sleeps_at(event).is_none() {
            return;
        }
        let owner = of_context.get(event.context.0 as usize).copied().flatten();
        let Some(Owner { section, task, .. }) = owner else { return };
        if let Some(Some(watch)) = self.watches.get_mut(section) {
            watch.see_sleep(task, event, &mut self.asleep);
        }
    }

    fn see(&mut self, section: usize, actor: &Actor, task: u32, event: &Event) {
        match actor.job {
            None => self.busy.see(event),
            Some(job) if job == self.job => {
                if section >= self.watches.len() {
                    self.watches.resize_with(section + 1, || None);
                }
                let watch = self.watches[section].get_or_insert_with(|| Watch::new(self.most));
                let enters = matches!(event.action, Action::SyscallEnter(_));
                match watch.is_helper(task) && !enters {
                    true => self.busy.see(event),
                    false => watch.see(task, event, actor, &self.busy),
                }
            }
            Some(_) => {}
        }
    }
}

/// The actor of this name in a job, made if need be.
fn index_of(actors: &mut Vec<Actor>, job: Option<usize>, name: &str, ramp: Duration) -> usize {
    let same = |actor: &Actor| actor.job == job && actor.name == name;
    actors.iter().position(same).unwrap_or_else(|| {
        actors.push(Actor::new(job, name, ramp));
        actors.len() - 1
    })
}

impl Naming {
    fn ramp_of(&self, section: &str) -> Duration {
        let Naming::Sections(sections) = self else { return Duration::ZERO };
        let found = sections.iter().find(|it| it.name == section);
        found.map_or(Duration::ZERO, |section| section.ramp)
    }

    /// The section a task of this name belongs to.
    pub fn section_of<'n>(&'n self, task: &'n str) -> &'n str {
        let Naming::Sections(sections) = self else { return "" };
        let known = |name: &str| sections.iter().any(|section| section.name == name);
        match task.rsplit_once('.') {
            Some((section, number))
                if !known(task) && known(section) && number.parse::<u32>().is_ok() =>
            {
                section
            }
            _ => task,
        }
    }
}

impl Measured {
    /// The layers of everybody together.
    pub fn layers(&self) -> Layers {
        Layers::of(self.sections.iter())
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

#[cfg(test)]
mod tests {
    use super::*;
    use block::{CgroupId, ContextId, IoContextId, Ioprio, Syscall};

    fn who(context: u32, name: &str) -> TaskInfo {
        TaskInfo {
            context: ContextId(context),
            name: name.to_string(),
            job: Some(0),
            io_context: IoContextId(0),
            cgroup: CgroupId(0),
            ioprio: Ioprio::NONE,
        }
    }

    fn call(context: u32) -> Event {
        let (call, entered) = (Syscall::Read, Instant::ZERO);
        let action = Action::SyscallExit { call, entered, submitted: entered };
        Event { context: ContextId(context), ..Event::note(action) }
    }

    fn measure(naming: Naming, names: &[&str]) -> Measured {
        let mut meter = Meter::new(vec![naming]);
        for (context, name) in names.iter().enumerate() {
            meter.meet(&who(context as u32, name));
            meter.see(&Event {
                action: Action::SyscallEnter(Syscall::Read),
                ..call(context as u32)
            });
            meter.see(&call(context as u32));
        }
        meter.finish(Duration::ZERO)
    }

    fn counts(actors: &[Actor]) -> Vec<(&str, u64)> {
        actors.iter().map(|actor| (actor.name.as_str(), actor.calls[0].count)).collect()
    }

    #[test]
    fn clones_count_for_themselves_and_for_their_section() {
        let section = |name: &str| Section { name: name.to_string(), ramp: Duration::ZERO };
        let sections = Naming::Sections(vec![section("db"), section("db.9")]);
        let measured = measure(sections, &["db.0", "db.1", "db.9", "log"]);
        assert_eq!(counts(&measured.sections), [("db", 2), ("db.9", 1), ("log", 1)]);
        assert_eq!(counts(&measured.processes), [("db.0", 1), ("db.1", 1)]);
    }

    #[test]
    fn tasks_of_a_plain_program_are_not_told_apart() {
        let measured = measure(Naming::Whole, &["replay", "replay of pid 7"]);
        assert_eq!(counts(&measured.sections), [("", 2)]);
        assert!(measured.processes.is_empty());
    }
}
