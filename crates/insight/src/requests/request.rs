//! A request on its way, and the layers its time makes when it is done.

use super::counters::{Counters, UNKNOWN};
use super::log::{Stand, Stands};
use super::order;
use super::tasks::Arrival;
use crate::layer::Layer;
use crate::life::{Confidence, Life};
use base::{Duration, Instant, Sector, Sectors};
use block::bio::BioId;
use block::{ContextId, DispatchReason, Event, Flags, HoldReason, Op, RequestId};

/// Times in layers.
pub(super) type Layers = Vec<(Layer, Duration)>;

/// Times of others.
pub(super) type Others = Vec<(ContextId, Duration)>;

/// Memory that a request needs, empty.
#[derive(Debug, Default)]
pub(super) struct Spare {
    layers: Layers,
    others: Others,
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Allocated,
    Inserted,
    Chosen,
    Issued,
    Requeued,
    Done,
}

/// What the counters were when the first of the others was chosen that came before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overtaken {
    pub at: Instant,
    pub full: u64,
    pub room: u64,
    /// For how long others had gone first.
    pub clock: u64,
    pub turn: u64,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Going {
    pub id: RequestId,
    pub stage: Stage,
    pub context: ContextId,
    /// In whose context it was completed.
    pub completer: ContextId,
    op: Op,
    flags: Flags,
    sector: Sector,
    sectors: Sectors,
    arrival: Arrival,
    allocated: Instant,
    pub inserted: Option<Instant>,
    /// Since when it is in a plug, and for how long it was.
    pub plugged: Option<Instant>,
    plug: Duration,
    /// A command of the flush machinery.
    pub is_flush: bool,
    /// How long the device had had flushes when it was allocated.
    flushing: u64,
    /// The counters at its insertion.
    entered: Counters,
    pub overtaken: Option<Overtaken>,
    /// Whether the device has room is known, and no guess.
    pub knows_room: bool,
    /// When it was chosen, why, and for how long the device had no room then.
    chosen: Option<(Instant, u64)>,
    reason: Option<DispatchReason>,
    was_issued: bool,
    /// When the driver gave it back that has it no more.
    given_back: Option<Instant>,
    issued: Instant,
    /// What it was to the device and between, before it was issued as it is now.
    before: Vec<(Layer, Duration)>,
    completed: Instant,
    /// What the device does for it: it serves its data, or flushes its cache.
    serves: Layer,
    merged: u32,
    pub bios: Vec<BioId>,
    layers: Layers,
    pub others: Others,
    guess: Option<Confidence>,
}

impl Going {
    /// A request that an event tells of.
    // Part of its caller, so that it is put together where it will be.
    #[inline(always)]
    pub fn new(
        id: RequestId,
        event: &Event,
        arrival: &Arrival,
        flushing: u64,
        Spare { layers, others }: Spare,
    ) -> Going {
        Going {
            id,
            stage: Stage::Allocated,
            context: event.context,
            completer: event.context,
            op: event.op,
            flags: event.flags,
            sector: event.sector,
            sectors: event.sectors,
            arrival: *arrival,
            allocated: event.at,
            inserted: None,
            plugged: None,
            plug: Duration::ZERO,
            is_flush: false,
            flushing,
            entered: Counters::default(),
            overtaken: None,
            knows_room: false,
            chosen: None,
            reason: None,
            was_issued: false,
            given_back: None,
            issued: event.at,
            before: Vec::new(),
            completed: event.at,
            serves: if event.sectors.is_zero() { Layer::Flush } else { Layer::Device },
            merged: 0,
            bios: arrival.bio.map_or(Vec::new(), |bio| vec![bio]),
            layers,
            others,
            guess: None,
        }
    }

    /// It asks for a flush, and so may be done with its data and not over.
    pub fn asks_for_flush(&self) -> bool {
        self.arrival.flush
    }

    /// A bio became part of it.
    pub fn absorb(&mut self, arrival: &Arrival) {
        self.merged += 1;
        self.bios.extend(arrival.bio);
    }

    /// A request became part of it.
    pub fn join(&mut self, other: Going) {
        self.merged += 1 + other.merged;
        self.bios.extend(other.bios);
    }

    /// Its plug ends, if it is in one.
    pub fn leaves_plug(&mut self, at: Instant) {
        if let Some(since) = self.plugged.take() {
            self.plug = at.saturating_since(since);
        }
    }

    /// It is given to the scheduler.
    pub fn insert(&mut self, at: Instant, counters: &Counters) {
        self.stage = Stage::Inserted;
        self.inserted = Some(at);
        self.entered = *counters;
    }

    /// Since when the states of the queue matter to it.
    pub fn stands_since(&self) -> Option<Instant> {
        match self.stage {
            Stage::Inserted => self.inserted,
            Stage::Chosen => self.chosen.map(|(at, _)| at),
            _ => None,
        }
    }

    /// It is chosen: from here it waits for nobody but the device and the host. What it waited for
    /// till now is in the order of `stands`, if there are any.
    pub fn choose(
        &mut self,
        at: Instant,
        now: &Counters,
        reason: Option<DispatchReason>,
        stands: &Stands,
    ) {
        self.stage = Stage::Chosen;
        self.chosen = Some((at, now.no_room));
        self.reason = reason;
        if self.inserted.is_none() {
            return;
        }
        let passed = now.since(&self.entered);
        let all = [Confidence::Low, Confidence::Medium, Confidence::High];
        self.guess = all.into_iter().find(|it| passed.guessed[*it as usize] > 0);
        if !stands.is_empty() {
            return self.add_waiting(stands);
        }
        let (full, room) = self.overtaken.map_or((passed.full, passed.room), |then| {
            let room = then.room - self.entered.room;
            (then.full - self.entered.full, if self.knows_room { passed.room } else { room })
        });
        for (number, time) in passed.held.iter().enumerate().filter(|(_, time)| **time > 0) {
            let layer = match number {
                UNKNOWN => Layer::Withheld,
                _ => Layer::Held(HoldReason::ALL[number]),
            };
            self.add(layer, *time);
        }
        self.add(Layer::Full, full);
        self.add(Layer::Others, passed.working() - full - room);
        self.add(Layer::Host, room + passed.idle);
    }

    /// What it waited for with the scheduler, piece by piece.
    fn add_waiting(&mut self, stands: &Stands) {
        let overtaken = self.overtaken.map_or(Instant::FAR_FUTURE, |then| then.at);
        for (from, to, Stand { held, works, is_full }) in stands.iter().copied() {
            let middle = overtaken.clamp(from, to);
            let (before, behind) = match held {
                Some(UNKNOWN) => (Layer::Withheld, Layer::Withheld),
                Some(number) => {
                    let held = Layer::Held(HoldReason::ALL[number]);
                    (held, held)
                }
                None if is_full => (Layer::Full, Layer::Others),
                None if works && !self.knows_room => (Layer::Host, Layer::Others),
                None => (Layer::Host, Layer::Host),
            };
            order::push(&mut self.layers, before, middle.since(from));
            order::push(&mut self.layers, behind, to.since(middle));
        }
    }

    /// The device gets it; `stands` is what the queue did since it was chosen, if that is known.
    pub fn issue(&mut self, event: &Event, now: &Counters, stands: &Stands) {
        let at = event.at;
        if self.was_issued {
            // A record of its being given back may be missing.
            let since = self.given_back.take().unwrap_or(self.issued);
            self.before.push((Layer::Requeued, at.saturating_since(since)));
        } else {
            self.was_issued = true;
            let (chosen, no_room) = self.chosen.unwrap_or((at, now.no_room));
            let between = at.saturating_since(chosen).as_nanos();
            if self.inserted.is_none() {
                self.add_direct(chosen, now);
            }
            for (from, to, stand) in stands {
                let layer = if stand.is_full { Layer::Full } else { Layer::Host };
                order::push(&mut self.layers, layer, to.since(*from));
            }
            if stands.is_empty() {
                let full = (now.no_room - no_room).min(between);
                self.add(Layer::Full, full);
                self.add(Layer::Host, between - full);
            }
        }
        (self.stage, self.issued) = (Stage::Issued, at);
        (self.op, self.flags) = (event.op, event.flags);
        (self.sector, self.sectors) = (event.sector, event.sectors);
    }

    /// The device has begun with it then. The single queue shows the driver one request more than
    /// the device takes, and tells of its issue at that time (rule dispatch-list-3).
    pub fn taken(&mut self, at: Instant) {
        if self.stage == Stage::Issued && at > self.issued {
            self.before.push((Layer::Full, at.since(self.issued)));
            self.issued = at;
        }
    }

    /// The driver gives it back.
    pub fn requeue(&mut self, at: Instant) {
        self.before.push((Layer::Requeued, at.saturating_since(self.issued)));
        self.given_back = Some(at);
        self.stage = Stage::Requeued;
    }

    /// It passed the scheduler by: what is not the plug's is the host's, but for the flushes that
    /// a request which asks for them waits for.
    fn add_direct(&mut self, until: Instant, now: &Counters) {
        let passed = until.saturating_since(self.allocated).saturating_sub(self.plug).as_nanos();
        let flags = self.flags.intersects(Flags::PREFLUSH.with(Flags::FUA));
        let flush = if flags || self.asks_for_flush() {
            (now.flushing - self.flushing).min(passed)
        } else {
            0
        };
        self.add(Layer::Flush, flush);
        self.add(Layer::Host, passed - flush);
    }

    /// The device is done with it; with a flush behind its data, that happens twice.
    pub fn complete(&mut self, event: &Event, issued: Instant) {
        let at = event.at;
        match self.stage {
            Stage::Done => {
                let service = self.completed.saturating_since(self.issued);
                self.before.push((self.serves, service));
                self.serves = Layer::Flush;
                let issued = issued.max(self.completed).min(at);
                self.before.push((Layer::Host, issued.saturating_since(self.completed)));
                self.issued = issued;
            }
            Stage::Issued => {}
            // A record of its second issue is missing.
            Stage::Requeued => {
                let since = self.given_back.take().unwrap_or(self.issued);
                self.before.push((Layer::Requeued, at.saturating_since(since)));
                self.issued = at;
            }
            // A pure flush, which another command has served.
            _ => {
                let issued = issued.clamp(self.allocated, at);
                let waited = issued.saturating_since(self.allocated);
                self.before.push((Layer::Host, waited));
                self.issued = issued;
                self.inserted = None;
                self.layers.clear();
                self.others.clear();
                self.guess = None;
                self.plug = Duration::ZERO;
            }
        }
        self.stage = Stage::Done;
        self.completed = at;
        self.completer = event.context;
    }

    fn add(&mut self, layer: Layer, nanos: u64) {
        add(&mut self.layers, layer, Duration::from_nanos(nanos));
    }

    /// What there is to tell of it, in place of another life.
    ///
    /// What it needed for that goes into `spare`: memory is asked for once and not at each request.
    pub fn finish(
        &mut self,
        told: Option<Instant>,
        life: &mut Life,
        spare: &mut Vec<Spare>,
        in_order: bool,
    ) {
        let add = |layers: &mut Layers, layer, time| match in_order {
            true => order::push(layers, layer, time),
            false => add(layers, layer, time),
        };
        let (arrival, layers) = (&self.arrival, &mut life.layers);
        layers.clear();
        add(layers, Layer::Limits, arrival.limits);
        add(layers, Layer::Throttle, arrival.throttle);
        add(layers, Layer::Tag, arrival.tag);
        let asked = arrival.limits + arrival.throttle + arrival.tag;
        let to_request = self.allocated.saturating_since(arrival.queued);
        add(layers, Layer::Host, to_request.saturating_sub(asked));
        add(layers, Layer::Plug, self.plug);
        if let Some(inserted) = self.inserted {
            let to_scheduler = inserted.saturating_since(self.allocated);
            add(layers, Layer::Host, to_scheduler.saturating_sub(self.plug));
        }
        for (layer, time) in self.layers.drain(..).chain(self.before.drain(..)) {
            add(layers, layer, time);
        }
        add(layers, self.serves, self.completed.saturating_since(self.issued));
        let told = told.filter(|told| *told >= self.completed);
        let untold = told.map_or(Duration::ZERO, |told| told.since(self.completed));
        add(layers, Layer::Interrupt, untold);
        if in_order {
            order::thin(layers);
        }
        self.tell(told, life);
        let (layers, mut others) =
            (std::mem::take(&mut self.layers), std::mem::take(&mut self.others));
        others.clear();
        spare.push(Spare { layers, others });
    }

    /// All but the layers.
    fn tell(&mut self, told: Option<Instant>, life: &mut Life) {
        life.context = self.context;
        life.op = self.op;
        life.flags = self.flags;
        life.sector = self.sector;
        life.sectors = self.sectors;
        life.queued = self.arrival.queued;
        life.allocated = self.allocated;
        life.inserted = self.inserted;
        life.issued = self.issued;
        life.completed = self.completed;
        life.merged = self.merged;
        life.reason = self.reason;
        life.told = told;
        life.bios = std::mem::take(&mut self.bios);
        std::mem::swap(&mut life.others, &mut self.others);
        life.guess = self.guess;
        debug_assert_eq!(
            life.layers.iter().map(|part| part.1).sum::<Duration>(),
            life.end().since(life.queued),
            "{life:?}"
        );
    }
}

/// Adds to a layer that is there, or at the end.
#[inline]
fn add(layers: &mut Layers, layer: Layer, time: Duration) {
    if !time.is_zero() {
        add_some(layers, layer, time);
    }
}

fn add_some(layers: &mut Layers, layer: Layer, time: Duration) {
    match layers.iter_mut().find(|part| part.0 == layer) {
        Some(part) => part.1 += time,
        None => layers.push((layer, time)),
    }
}
