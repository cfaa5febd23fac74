//! What is known of a task between a bio's entering and its request: when it came, what it waited
//! for, and whether the task has a plug.

use super::tables::Numbers;
use base::{Duration, Instant, Sector};
use block::bio::BioId;
use block::{ContextId, Event, Flags, RequestId};

/// A bio that has no request yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub queued: Instant,
    pub sector: Sector,
    /// It will be told of when it is done; a part of a bio is not.
    pub bio: Option<BioId>,
    /// It asks for a flush, before its data or behind.
    pub flush: bool,
    pub limits: Duration,
    pub throttle: Duration,
    pub tag: Duration,
    /// It waits for one of the two since then.
    waits: Option<(Wait, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Throttle,
    Tag,
}

impl Arrival {
    /// A bio of which nothing is known but that it is there.
    pub fn at(queued: Instant, sector: Sector) -> Arrival {
        let [limits, throttle, tag] = [Duration::ZERO; 3];
        Arrival { queued, sector, bio: None, flush: false, limits, throttle, tag, waits: None }
    }

    fn wait_ends(&mut self, at: Instant) {
        if let Some((wait, since)) = self.waits.take() {
            let sum = match wait {
                Wait::Throttle => &mut self.throttle,
                Wait::Tag => &mut self.tag,
            };
            *sum += at.saturating_since(since);
        }
    }

    fn wait(&mut self, at: Instant, wait: Wait) {
        if self.waits.is_none_or(|(now, _)| now != wait) {
            self.wait_ends(at);
            self.waits = Some((wait, at));
        }
    }
}

/// What is known of a task.
#[derive(Debug, Default)]
pub(super) struct Task {
    arrival: Option<Arrival>,
    /// What was split off its bio and comes behind it, and when the whole came.
    rest: Option<(Sector, Instant)>,
    /// It has a plug.
    pub plugged: bool,
    /// When its last plug was flushed.
    pub unplugged: Instant,
    /// The request it allocated last.
    pub allocated: Option<RequestId>,
}

/// All tasks that were seen.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    numbers: Numbers,
    tasks: Vec<Task>,
    /// Bios that had to wait for limits of their group, until they are queued.
    released: Vec<(BioId, Instant, Instant)>,
}

impl Tasks {
    #[inline]
    pub fn of(&mut self, context: ContextId) -> &mut Task {
        let next = self.tasks.len();
        let number = self.numbers.get_or(context.0, next as u32) as usize;
        if number == next {
            self.tasks.push(Task::default());
        }
        &mut self.tasks[number]
    }

    /// A bio goes on that had to wait since then.
    pub fn released(&mut self, event: &Event, since: Instant) {
        let Some(bio) = event.bio else { return };
        self.released.retain(|(other, ..)| *other != bio);
        self.released.push((bio, since, event.at));
    }

    /// A bio came in.
    pub fn queued(&mut self, event: &Event) {
        let flush = event.flags.intersects(Flags::PREFLUSH.with(Flags::FUA));
        let bare = Arrival::at(event.at, event.sector);
        let mut arrival = Arrival { bio: event.bio, flush, ..bare };
        let place = self.released.iter().position(|(bio, ..)| Some(*bio) == event.bio);
        if let Some((_, since, until)) = place.map(|place| self.released.swap_remove(place)) {
            arrival.queued = since.min(event.at);
            arrival.limits = until.min(event.at).saturating_since(since);
        }
        self.of(event.context).arrival = Some(arrival);
    }

    /// A bio was split: its first part goes on, the rest comes behind it.
    pub fn split(&mut self, event: &Event, rest: Sector) {
        let task = self.of(event.context);
        let mut first =
            task.arrival_at(event.sector).unwrap_or(Arrival::at(event.at, event.sector));
        first.bio = None;
        task.rest = Some((rest, first.queued));
        task.arrival = Some(first);
    }

    /// A task sleeps for a request.
    pub fn sleeps(&mut self, event: &Event) {
        self.of(event.context).waits(event, Wait::Tag);
    }

    /// A task sleeps because writeback is throttled.
    pub fn throttled(&mut self, event: &Event) {
        self.of(event.context).waits(event, Wait::Throttle);
    }
}

impl Task {
    fn waits(&mut self, event: &Event, wait: Wait) {
        if let Some(arrival) = self.arrival.as_mut().filter(|it| it.sector == event.sector) {
            return arrival.wait(event.at, wait);
        }
        let fresh = || Arrival::at(event.at, event.sector);
        let mut arrival = self.arrival_at(event.sector).unwrap_or_else(fresh);
        arrival.wait(event.at, wait);
        self.arrival = Some(arrival);
    }

    fn arrival_at(&mut self, sector: Sector) -> Option<Arrival> {
        if let Some(arrival) = self.arrival.take_if(|it| it.sector == sector) {
            return Some(arrival);
        }
        let (_, queued) = self.rest.take_if(|rest| rest.0 == sector)?;
        Some(Arrival::at(queued, sector))
    }

    /// The bio there gets a request, or goes into one.
    pub fn arrives(&mut self, at: Instant, sector: Sector) -> Arrival {
        let mut arrival = self.arrival_at(sector).unwrap_or(Arrival::at(at, sector));
        arrival.wait_ends(at);
        arrival
    }
}
