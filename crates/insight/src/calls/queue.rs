//! What the scheduler and the device did, as far back as somebody may ask: whether requests were
//! withheld, whether the device had any, and whose it got.

use crate::layer::Layer;
use base::{Instant, Sectors};
use block::{ContextId, HoldReason};
use std::collections::VecDeque;

/// What holds from a time on, until the next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at: Instant,
    /// Why requests are withheld, and for whom.
    held: Option<(HoldReason, Option<ContextId>)>,
    in_flight: u32,
    flushes: u32,
    /// Whose request the device got at this time, if it got one.
    issued: Option<ContextId>,
    /// How the device is shared, if it has commands of several.
    sharing: Option<Sharing>,
}

/// Whose commands the device has. Tasks of a job that have one name are one: fio numbers those of a
/// section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sharing {
    /// Who has most there.
    most: Share,
    /// Who has most of the others.
    next: Share,
    /// The work of all of them.
    work: u64,
}

/// What the device has of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    who: Owner,
    /// The task of theirs whose command came last.
    task: ContextId,
    commands: u32,
    work: u64,
}

/// The tasks of a job that have one name, by number; or a task of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Named(usize),
    Task(ContextId),
}

/// A command by itself is as much work as moving so many sectors. A flash drive moves these 64 KiB
/// in about the time that a small read takes. On a disk that turns a seek is worth ten times as
/// much or more, so there many small commands of one are taken for less than they are.
const COMMAND: u64 = 128;

/// The last states of the queue.
#[derive(Debug, Default)]
pub struct QueueHistory {
    past: VecDeque<Entry>,
    /// Whose commands the device has.
    with_device: Vec<Share>,
    /// Jobs with names of their tasks, each at its number.
    names: Vec<(usize, String)>,
    /// The number of that, by task.
    named: Vec<Option<usize>>,
    /// As many commands as the device takes, if that is known.
    depth: Option<u32>,
}

/// A piece of the time in which a request waits to be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// Why it waited.
    pub layer: Layer,
    /// For whom it was withheld, or whose request had been chosen last.
    pub whose: Option<ContextId>,
}

impl QueueHistory {
    /// Of a device that takes so many commands, if that is known.
    pub fn new(depth: Option<u32>) -> QueueHistory {
        QueueHistory { depth, ..QueueHistory::default() }
    }

    /// The scheduler withholds its requests.
    pub fn hold(&mut self, at: Instant, reason: HoldReason, waits_for: Option<ContextId>) {
        let (last, held) = (self.last(at), Some((reason, waits_for)));
        if last.held != held {
            self.push(Entry { held, ..last });
        }
    }

    /// The scheduler chose a request: it withholds nothing.
    pub fn dispatch(&mut self, at: Instant) {
        let last = self.last(at);
        if last.held.is_some() {
            self.push(Entry { held: None, ..last });
        }
    }

    /// A task has a name, and is of a job or of the kernel.
    pub fn meet(&mut self, task: ContextId, job: Option<usize>, name: &str) {
        let numbered = name.rsplit_once('.').filter(|(_, number)| number.parse::<u32>().is_ok());
        let name = numbered.map_or(name, |(name, _)| name);
        let place = task.0 as usize;
        if place >= self.named.len() {
            self.named.resize(place + 1, None);
        }
        self.named[place] = job.map(|job| {
            let known = self.names.iter().position(|it| it.0 == job && it.1 == name);
            known.unwrap_or_else(|| {
                self.names.push((job, name.to_string()));
                self.names.len() - 1
            })
        });
    }

    /// Whose a task is.
    pub fn owner(&self, task: ContextId) -> Owner {
        let named = self.named.get(task.0 as usize).copied().flatten();
        named.map_or(Owner::Task(task), Owner::Named)
    }

    /// The device got a request of somebody, of so many sectors.
    pub fn issue(&mut self, at: Instant, task: ContextId, sectors: Sectors) {
        let (last, who, work) = (self.last(at), self.owner(task), work_of(sectors));
        match self.with_device.iter_mut().find(|it| it.who == who) {
            Some(it) => (it.task, it.commands, it.work) = (task, it.commands + 1, it.work + work),
            None => self.with_device.push(Share { who, task, commands: 1, work }),
        }
        self.push(Entry {
            in_flight: last.in_flight + 1,
            flushes: last.flushes + u32::from(sectors.is_zero()),
            issued: Some(task),
            sharing: self.sharing(),
            ..last
        });
    }

    /// The device is done with one of somebody, or gave it back.
    pub fn end(&mut self, at: Instant, task: ContextId, sectors: Sectors) {
        let (last, who) = (self.last(at), self.owner(task));
        let flushes = last.flushes.saturating_sub(u32::from(sectors.is_zero()));
        if let Some(place) = self.with_device.iter().position(|it| it.who == who) {
            let share = &mut self.with_device[place];
            share.commands -= 1;
            share.work = share.work.saturating_sub(work_of(sectors));
            if share.commands == 0 {
                self.with_device.remove(place);
            }
        }
        let (in_flight, sharing) = (last.in_flight.saturating_sub(1), self.sharing());
        self.push(Entry { in_flight, flushes, sharing, ..last });
    }

    /// How the device is shared now, if it is.
    fn sharing(&self) -> Option<Sharing> {
        let most = self.with_device.iter().copied().max_by_key(|it| it.work)?;
        let others = self.with_device.iter().copied().filter(|it| it.who != most.who);
        let next = others.max_by_key(|it| it.work)?;
        let work = self.with_device.iter().map(|it| it.work).sum();
        Some(Sharing { most, next, work })
    }

    /// How the device was shared while it had a request of somebody: whoever has most of its
    /// commands is slowed down by nobody that counts.
    pub fn served(&self, from: Instant, to: Instant, whose: ContextId) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut at = from;
        let own = self.owner(whose);
        let layer = |state: Option<Entry>| match state.and_then(|it| it.sharing) {
            None => (Layer::Device, None),
            Some(it) if it.most.who != own => (Layer::Shared, Some(it.most.task)),
            Some(it) if it.work - it.most.work < it.most.work => (Layer::Device, None),
            Some(it) => (Layer::Shared, Some(it.next.task)),
        };
        let first = self.past.partition_point(|it| it.at <= from);
        let mut state = first.checked_sub(1).and_then(|n| self.past.get(n)).copied();
        for next in self.past.range(first..).take_while(|it| it.at < to) {
            let (layer, behind) = layer(state);
            push(&mut pieces, at, next.at, layer, behind);
            (at, state) = (next.at, Some(*next));
        }
        let (layer, behind) = layer(state);
        push(&mut pieces, at, to, layer, behind);
        pieces
    }

    /// Whether the device flushed its cache at some time in an interval.
    pub fn flushed(&self, from: Instant, to: Instant) -> bool {
        let first = self.past.partition_point(|it| it.at <= from).saturating_sub(1);
        self.past.range(first..).take_while(|it| it.at < to).any(|it| it.flushes > 0)
    }

    /// Why a request that could be chosen from `from` on was not before `to`. One that waits for a
    /// flush of the cache is with the device while there is one.
    pub fn pieces(&self, from: Instant, to: Instant, for_flush: bool) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut at = from;
        let mut whose = None;
        let first = self.past.partition_point(|it| it.at <= from);
        let mut state = first.checked_sub(1).and_then(|n| self.past.get(n)).copied();
        for next in self.past.range(first..).take_while(|it| it.at < to) {
            let (layer, behind) = self.layer(state, whose, for_flush);
            push(&mut pieces, at, next.at, layer, behind);
            at = next.at;
            whose = next.issued.or(whose);
            state = Some(*next);
        }
        let (layer, behind) = self.layer(state, whose, for_flush);
        push(&mut pieces, at, to, layer, behind);
        pieces
    }

    /// Where a request waits, and for whom or behind whom; `passed` was chosen before it.
    fn layer(
        &self,
        state: Option<Entry>,
        passed: Option<ContextId>,
        for_flush: bool,
    ) -> (Layer, Option<ContextId>) {
        let Some(state) = state else { return (Layer::Host, None) };
        if let Some((reason, waits_for)) = state.held {
            return (Layer::Held(reason), waits_for);
        }
        let has_room = self.depth.is_some_and(|depth| state.in_flight < depth);
        match state.in_flight {
            _ if for_flush && state.flushes > 0 => (Layer::Flush, None),
            0 => (Layer::Host, None),
            _ if has_room => (Layer::Host, None),
            _ if passed.is_some() => (Layer::Others, passed),
            _ => (Layer::Full, None),
        }
    }

    /// What was before a time is not asked for any more.
    pub fn forget(&mut self, before: Instant) {
        while self.past.get(1).is_some_and(|it| it.at <= before) {
            self.past.pop_front();
        }
    }

    fn last(&self, at: Instant) -> Entry {
        let nothing =
            Entry { at, held: None, in_flight: 0, flushes: 0, issued: None, sharing: None };
        self.past.back().map_or(nothing, |last| Entry { at, issued: None, ..*last })
    }

    fn push(&mut self, entry: Entry) {
        self.past.push_back(entry);
    }
}

fn work_of(sectors: Sectors) -> u64 {
    COMMAND + u64::from(sectors.0)
}

/// Adds a piece, to the one before it if that is alike.
fn push(
    pieces: &mut Vec<Piece>,
    from: Instant,
    to: Instant,
    layer: Layer,
    whose: Option<ContextId>,
) {
    if from >= to {
        return;
    }
    match pieces.last_mut() {
        Some(last) if last.layer == layer && last.whose == whose => last.to = to,
        _ => pieces.push(Piece { from, to, layer, whose }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    fn task(number: u32) -> ContextId {
        ContextId(number)
    }

    /// How the device serves a task from the first microsecond to the second one.
    fn served(queue: &QueueHistory, whose: u32) -> Vec<(Layer, Option<u32>)> {
        let pieces = queue.served(at(1), at(2), task(whose));
        pieces.iter().map(|it| (it.layer, it.whose.map(|it| it.0))).collect()
    }

    #[test]
    fn who_has_less_with_the_device_is_behind_who_has_more() {
        let mut queue = QueueHistory::new(Some(32));
        queue.issue(at(0), task(1), Sectors(8));
        (0..4).for_each(|_| queue.issue(at(0), task(2), Sectors(8)));
        assert_eq!(served(&queue, 1), [(Layer::Shared, Some(2))]);
        assert_eq!(served(&queue, 2), [(Layer::Device, None)]);
    }

    #[test]
    fn a_long_command_is_more_than_several_short_ones() {
        let mut queue = QueueHistory::new(Some(32));
        (0..4).for_each(|_| queue.issue(at(0), task(1), Sectors(8)));
        queue.issue(at(0), task(2), Sectors(2048));
        assert_eq!(served(&queue, 1), [(Layer::Shared, Some(2))]);
        assert_eq!(served(&queue, 2), [(Layer::Device, None)]);
    }

    #[test]
    fn tasks_of_one_name_are_one() {
        let mut queue = QueueHistory::new(Some(32));
        (1..4).for_each(|number| queue.meet(task(number), Some(0), &format!("db.{number}")));
        queue.meet(task(9), Some(0), "log");
        for number in [1, 2, 3, 9] {
            queue.issue(at(0), task(number), Sectors(8));
        }
        assert_eq!(served(&queue, 1), [(Layer::Device, None)]);
        assert_eq!(served(&queue, 9), [(Layer::Shared, Some(3))]);
        (1..3).for_each(|number| queue.end(at(1), task(number), Sectors(8)));
        assert_eq!(served(&queue, 3), [(Layer::Shared, Some(9))]);
    }
}
