//! Follows the events of a block layer and tells of each request, when it is done, where its time
//! went: a [`Life`] whose parts add up to the nanosecond.
//!
//! Memory is bounded by what is under way. Nobody looks at a request while it waits: time is
//! counted by the state of the queue, and a request takes differences of these counters.
//!
//! While a request is with the scheduler, an instant counts as
//!
//! * held, if the scheduler has said so since it last chose something;
//! * else as the host's, if the device had no work, or is known to have had room;
//! * else as others', if one that was not this was chosen since it came;
//! * else as the device's being full.
//!
//! Whether there is room is told by the depth. If that is not known, the device is taken for full
//! with as many commands as it ever had, and what is chosen first goes before what it has room for.
//! What others had counts for whoever was chosen last.

mod counters;
mod log;
mod order;
mod request;
mod summary;
pub(crate) mod tables;
mod tasks;
#[cfg(test)]
mod tests;
mod turns;

pub use summary::{Part, Summary};

use crate::life::{Confidence, Life};
use base::Instant;
use block::{Action, DispatchReason, Event, HoldReason, RequestId};
use counters::State;
use request::{Going, Overtaken, Spare, Stage};
use std::collections::VecDeque;
use tables::Table;
use tasks::{Arrival, Tasks};
use turns::Turns;

/// So many may be done and untold. Parts of bios are never told of.
const UNTOLD: usize = 4096;

/// Follows requests.
///
/// ```
/// # let events: Vec<block::Event> = Vec::new();
/// let mut requests = insight::requests::Requests::new(None);
/// for event in &events {
///     requests.see(event);
///     for life in requests.done() {
///         println!("{} {:?}", life.total(), life.layers);
///     }
/// }
/// requests.finish();
/// ```
#[derive(Default)]
pub struct Requests {
    state: State,
    turns: Turns,
    tasks: Tasks,
    /// By the slot of their names.
    going: Vec<Option<Going>>,
    /// Inserted, and nobody was chosen since.
    young: Vec<RequestId>,
    /// How many are inserted and not chosen.
    waiting: u32,
    /// Bios whose ends will be told, and the request of each.
    bios: Table<u64, RequestId>,
    /// Done, and their submitters were not told; their names may be others' by now.
    untold: VecDeque<Going>,
    /// Choices are told, so issues are none.
    tells_choices: bool,
    /// Those that have ended, and behind them some whose memory will be used again.
    lives: Vec<Life>,
    /// How many have ended.
    ended: usize,
    spare: Vec<Spare>,
}

impl Requests {
    /// Follows a device that takes so many commands at a time, if that is known.
    pub fn new(depth: Option<u32>) -> Requests {
        Requests { state: State::new(depth), ..Requests::default() }
    }

    /// What has ended since this was last asked.
    pub fn done(&mut self) -> std::vec::Drain<'_, Life> {
        self.lives.drain(..std::mem::take(&mut self.ended))
    }

    /// Shows the same. Who keeps none is faster so: their memory is used again.
    #[inline]
    pub fn show_done(&mut self, see: impl FnMut(&Life)) {
        self.lives[..std::mem::take(&mut self.ended)].iter().for_each(see);
    }

    /// Nothing more comes: who is done is told of, though nobody told its submitter.
    pub fn finish(&mut self) {
        while let Some(mut going) = self.untold.pop_front() {
            self.end(&mut going, None);
        }
    }

    /// How many requests are under way.
    pub fn under_way(&self) -> usize {
        self.going.iter().flatten().count() + self.untold.len()
    }

    /// Something happened. Time never goes back: what comes late counts as of now.
    // Where it is known what happened, only that is left of this and of what it calls.
    #[inline(always)]
    pub fn see(&mut self, event: &Event) {
        if event.at < self.state.now() {
            return self.take_late(event);
        }
        self.take(event);
    }

    #[inline(never)]
    fn take_late(&mut self, event: &Event) {
        self.take(&Event { at: self.state.now(), ..event.clone() });
    }

    /// Somebody infers that the scheduler withholds what it has; a reason may be known.
    pub fn infer_hold(&mut self, at: Instant, reason: Option<HoldReason>, how: Confidence) {
        self.state.pass(at);
        self.state.hold(reason, Some(how));
    }

    /// Nothing will be heard of a request any more, though it was not completed.
    pub fn lose(&mut self, at: Instant, id: RequestId) {
        self.state.pass(at);
        self.remove(id);
    }

    #[inline(always)]
    fn take(&mut self, event: &Event) {
        self.state.pass(event.at);
        match &event.action {
            Action::Queue => self.tasks.queued(event),
            Action::Split { rest } => self.tasks.split(event, *rest),
            Action::Sleep => self.tasks.sleeps(event),
            Action::Throttled { .. } => self.tasks.throttled(event),
            Action::Released { since } => self.tasks.released(event, *since),
            Action::GetRequest => self.allocated(event),
            Action::BackMerge | Action::FrontMerge => self.merged(event),
            Action::Plug => self.plugged(event),
            Action::Unplug { .. } | Action::TimerUnplug { .. } => {
                let task = self.tasks.of(event.context);
                (task.plugged, task.unplugged) = (false, event.at);
            }
            Action::Insert => self.inserted(event),
            Action::Join { into } => self.joined(event, *into),
            Action::Dispatch(reason) => self.dispatched(event, *reason),
            Action::Hold { reason, .. } | Action::HoldsBack { reason, .. } => {
                self.state.hold(Some(*reason), None);
            }
            Action::Issue => self.issued(event),
            Action::Served(stages) => self.taken(event, stages.first().map(|it| it.0)),
            Action::Requeue => self.requeued(event),
            Action::Complete { issued } => self.completed(event, *issued),
            Action::BioDone { .. } => self.told(event),
            _ => {}
        }
    }

    #[inline]
    fn get(&mut self, id: RequestId) -> Option<&mut Going> {
        find(&mut self.going, id)
    }

    /// A request begins, in place of what has the same slot.
    fn begin(&mut self, id: RequestId, event: &Event, arrival: &Arrival) -> &mut Going {
        let slot = id.index();
        if slot >= self.going.len() {
            self.going.resize_with(slot + 1, || None);
        }
        if let Some(stale) = self.going[slot].as_ref().map(|it| it.id) {
            self.remove(stale);
        }
        let spare = self.spare.pop().unwrap_or_default();
        let flushing = self.state.counters.flushing;
        let going = self.going[slot].insert(Going::new(id, event, arrival, flushing, spare));
        going.knows_room = self.state.depth_is_known();
        going
    }

    /// Forgets a request wherever it is.
    fn remove(&mut self, id: RequestId) -> Option<Going> {
        let slot = self.going.get_mut(id.index())?;
        let going = slot.take_if(|it| it.id == id)?;
        self.leaves(going.stage, going.is_flush);
        self.forget_bios(&going);
        Some(going)
    }

    /// A request at this stage is there no more.
    fn leaves(&mut self, stage: Stage, is_flush: bool) {
        match stage {
            Stage::Inserted => self.stops_waiting(),
            Stage::Issued => self.state.leave(is_flush),
            _ => {}
        }
    }

    fn forget_bios(&mut self, going: &Going) {
        for bio in &going.bios {
            self.bios.remove(&bio.to_bits());
        }
    }

    fn stops_waiting(&mut self) {
        self.waiting -= 1;
        if self.waiting == 0 {
            self.turns.forget();
            self.state.log.iter_mut().for_each(|log| log.forget());
        }
    }

    fn allocated(&mut self, event: &Event) {
        let Some(id) = event.request else { return };
        let task = self.tasks.of(event.context);
        let arrival = task.arrives(event.at, event.sector);
        task.allocated = Some(id);
        let plugged = task.plugged.then_some(event.at);
        self.begin(id, event, &arrival).plugged = plugged;
        if let Some(bio) = arrival.bio {
            self.bios.insert(bio.to_bits(), id);
        }
    }

    fn merged(&mut self, event: &Event) {
        let arrival = self.tasks.of(event.context).arrives(event.at, event.sector);
        let Some(id) = event.request else { return };
        if let Some(going) = self.get(id) {
            going.absorb(&arrival);
            self.bios.extend(arrival.bio.map(|bio| (bio.to_bits(), id)));
        }
    }

    fn plugged(&mut self, event: &Event) {
        let task = self.tasks.of(event.context);
        task.plugged = true;
        let Some(id) = task.allocated else { return };
        if let Some(going) = self.get(id).filter(|it| it.stage == Stage::Allocated) {
            going.plugged.get_or_insert(event.at);
        }
    }

    /// A request is in a plug no more; it left when that was flushed, or now.
    fn leaves_plug(&mut self, id: RequestId, at: Instant) {
        let going = find(&mut self.going, id).filter(|it| it.stage == Stage::Allocated);
        let Some(going) = going else { return };
        let Some(since) = going.plugged else { return };
        let task = self.tasks.of(going.context);
        let flushed = Some(task.unplugged).filter(|then| !task.plugged && *then >= since);
        going.leaves_plug(flushed.unwrap_or(at).min(at));
    }

    fn inserted(&mut self, event: &Event) {
        let Some(id) = event.request else { return };
        self.meet(id, event);
        self.leaves_plug(id, event.at);
        let going = find(&mut self.going, id).filter(|it| it.stage == Stage::Allocated);
        let Some(going) = going else { return };
        going.insert(event.at, &self.state.counters);
        self.waiting += 1;
        self.young.push(id);
    }

    /// A request that was not heard of before counts from here.
    fn meet(&mut self, id: RequestId, event: &Event) {
        if self.get(id).is_none() {
            self.begin(id, event, &Arrival::at(event.at, event.sector));
        }
    }

    fn joined(&mut self, event: &Event, into: RequestId) {
        let Some(id) = event.request.filter(|id| *id != into) else { return };
        let Some(gone) = self.remove(id) else { return };
        let bios = gone.bios.clone();
        if let Some(survivor) = self.get(into) {
            survivor.join(gone);
            self.bios.extend(bios.iter().map(|bio| (bio.to_bits(), into)));
        }
    }

    fn dispatched(&mut self, event: &Event, reason: DispatchReason) {
        let Some(id) = event.request else { return };
        self.tells_choices = true;
        self.meet(id, event);
        self.leaves_plug(id, event.at);
        self.choose(id, event.at, Some(reason));
        self.state.release();
    }

    /// A request is chosen; those that came since another was are overtaken.
    fn choose(&mut self, id: RequestId, at: Instant, reason: Option<DispatchReason>) {
        let clock = self.state.others();
        let stands = self.stands(id, at);
        let Some(going) = find(&mut self.going, id) else { return };
        let waited = going.stage == Stage::Inserted;
        if !waited && going.stage != Stage::Allocated {
            return;
        }
        going.choose(at, &self.state.counters, reason, &stands);
        if let Some(then) = going.overtaken.filter(|then| then.clock < clock) {
            self.turns.between(then.turn, then.clock, clock, &mut going.others);
        }
        self.turns.begins(going.context, clock);
        let (full, room) = (self.state.counters.full, self.state.counters.room);
        let overtaken = Overtaken { at, full, room, clock, turn: self.turns.current() };
        for young in self.young.drain(..) {
            let young = find(&mut self.going, young);
            if let Some(going) = young.filter(|it| it.stage == Stage::Inserted) {
                going.overtaken = Some(overtaken);
            }
        }
        if waited {
            self.stops_waiting();
        }
    }

    fn issued(&mut self, event: &Event) {
        let Some(id) = event.request else { return };
        let is_new = self.get(id).is_none();
        if is_new {
            self.meet(id, event);
        }
        self.leaves_plug(id, event.at);
        self.choose(id, event.at, None);
        if !self.tells_choices {
            self.state.release();
        }
        let stands = self.stands(id, event.at);
        let Some(going) = find(&mut self.going, id) else { return };
        going.is_flush = is_new && event.sectors.is_zero();
        let is_again = going.stage == Stage::Issued;
        going.issue(event, &self.state.counters, &stands);
        let is_flush = going.is_flush;
        if !is_again {
            self.state.issue(is_flush);
        }
    }

    fn taken(&mut self, event: &Event, at: Option<Instant>) {
        if let Some((going, at)) = event.request.and_then(|id| self.get(id)).zip(at) {
            going.taken(at);
        }
    }

    fn requeued(&mut self, event: &Event) {
        let Some(id) = event.request else { return };
        if let Some(going) = self.get(id).filter(|it| it.stage == Stage::Issued) {
            going.requeue(event.at);
            let is_flush = going.is_flush;
            self.state.leave(is_flush);
        }
    }

    fn completed(&mut self, event: &Event, issued: Instant) {
        let Some(id) = event.request else { return };
        if let Some(done) = self.untold.iter_mut().find(|it| it.id == id) {
            return done.complete(event, issued);
        }
        let Some(going) = find(&mut self.going, id) else { return };
        let (stage, is_flush) = (going.stage, going.is_flush);
        going.complete(event, issued);
        let is_told_of = !going.bios.is_empty();
        if !is_told_of && !is_flush {
            let life = next_life(&mut self.lives, &mut self.ended);
            going.finish(None, life, &mut self.spare, self.state.log.is_some());
        }
        let slot = &mut self.going[id.index()];
        if is_told_of && !is_flush {
            self.untold.extend(slot.take());
        } else {
            // Those that a flush serves are told of, and not the command.
            *slot = None;
        }
        self.leaves(stage, is_flush);
        if self.untold.len() > UNTOLD {
            let oldest = self.untold.pop_front();
            oldest.into_iter().for_each(|mut it| self.end(&mut it, None));
        }
    }

    /// The submitter of a bio is told. Submitters are told in order by each context, so whoever
    /// was completed before by this one has nothing but parts of bios, or waits for a flush.
    fn told(&mut self, event: &Event) {
        let Some(bio) = event.bio else { return };
        let Some(id) = self.bios.get(&bio.to_bits()).copied() else { return };
        let Some(done) = self.untold.iter().find(|it| it.id == id) else { return };
        let completer = done.completer;
        let mut place = 0;
        while let Some(other) = self.untold.get(place) {
            let is_last = other.id == id;
            let is_over = other.completer == completer && !other.asks_for_flush();
            if !is_last && !is_over {
                place += 1;
                continue;
            }
            let Some(mut other) = self.untold.remove(place) else { break };
            self.end(&mut other, is_last.then_some(event.at));
            if is_last {
                break;
            }
        }
    }

    /// A request is over.
    fn end(&mut self, going: &mut Going, told: Option<Instant>) {
        self.forget_bios(going);
        let in_order = self.state.log.is_some();
        let life = next_life(&mut self.lives, &mut self.ended);
        going.finish(told, life, &mut self.spare, in_order);
    }
}

/// The request that is called so.
#[inline]
fn find(going: &mut [Option<Going>], id: RequestId) -> Option<&mut Going> {
    let going = going.get_mut(id.index())?.as_mut()?;
    (going.id == id).then_some(going)
}

/// Where the life of the next goes that has ended.
fn next_life<'a>(lives: &'a mut Vec<Life>, ended: &mut usize) -> &'a mut Life {
    if *ended == lives.len() {
        lives.push(Life::blank());
    }
    *ended += 1;
    &mut lives[*ended - 1]
}

impl machine::Observer for Requests {
    fn see(&mut self, event: &Event) {
        Requests::see(self, event);
    }
}
