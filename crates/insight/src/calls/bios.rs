//! Requests under way and bios that are done: which request a bio was in, and when it went where.

use super::holders::Holders;
use super::queue::QueueHistory;
use base::{Instant, Sector, Sectors};
use block::bio::BioId;
use block::{Action, ContextId, Event, Flags, Op, RequestId, Stage};
use std::collections::{BTreeMap, VecDeque};

/// A completion tells its bios at once, or after the queue has been run: of so many requests that
/// were completed last one has the bio that is told of.
const COMPLETED: usize = 512;

/// When a request went where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Who allocated it.
    pub owner: ContextId,
    /// What it does.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// Somebody waited for it when it was allocated.
    pub is_sync: bool,
    /// First sector, when it was issued.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// G.
    pub allocated: Instant,
    /// I, the first.
    pub inserted: Option<Instant>,
    /// R and D, as often as the driver gave it back and got it again.
    pub requeued: Vec<(Instant, Instant)>,
    /// D, the first.
    pub issued: Option<Instant>,
    /// C.
    pub completed: Instant,
    /// What the device did for it, each since when, if it says so.
    pub stages: Box<[(Instant, Stage)]>,
}

/// A bio that is done.
#[derive(Clone, Debug)]
pub struct DoneBio {
    /// Whose it was.
    pub submitter: ContextId,
    /// Q.
    pub queued: Instant,
    /// Since when it had waited for limits of its control group, if it had.
    pub limited: Option<Instant>,
    /// Its submitter was told.
    pub done: Instant,
    /// Its request, if it was seen; of a bio that was split that of the last part.
    pub way: Option<Way>,
}

/// Requests and bios.
#[derive(Debug)]
pub struct Bios {
    requests: BTreeMap<RequestId, Way>,
    completed: VecDeque<Way>,
    done: VecDeque<DoneBio>,
    /// The number of the first one in `done`.
    first: u64,
    /// Bios that had to wait for limits: whose, since when, and until when.
    released: BTreeMap<BioId, (ContextId, Instant, Instant)>,
    /// Who holds requests.
    pub holders: Holders,
    /// What the scheduler and the device did meanwhile.
    pub queue: QueueHistory,
}

impl Bios {
    /// Of a device that takes so many commands, if that is known.
    pub fn new(depth: Option<u32>) -> Bios {
        Bios {
            requests: BTreeMap::new(),
            completed: VecDeque::new(),
            done: VecDeque::new(),
            first: 0,
            released: BTreeMap::new(),
            holders: Holders::default(),
            queue: QueueHistory::new(depth),
        }
    }

    /// Something happened; the number of the bio that is done by it.
    pub fn see(&mut self, event: &Event) -> Option<u64> {
        match (&event.action, event.request) {
            (Action::GetRequest, Some(id)) => self.allocate(event, id),
            (Action::Insert, Some(id)) => {
                if let Some(way) = self.requests.get_mut(&id) {
                    way.inserted.get_or_insert(event.at);
                }
            }
            (Action::Join { .. }, Some(id)) => {
                if let Some(way) = self.requests.remove(&id) {
                    self.holders.put(self.queue.owner(way.owner), way.is_sync);
                }
            }
            (Action::Dispatch(_), _) => self.queue.dispatch(event.at),
            (Action::Hold { reason, waits_for } | Action::HoldsBack { reason, waits_for }, _) => {
                self.queue.hold(event.at, *reason, *waits_for);
            }
            (Action::Issue, Some(id)) => self.issue(event, id),
            (Action::Requeue, Some(id)) => self.requeue(event, id),
            (Action::Served(stages), Some(id)) => {
                if let Some(way) = self.requests.get_mut(&id) {
                    way.stages = stages.clone();
                }
            }
            (Action::Complete { issued }, Some(id)) => self.complete(event, id, *issued),
            (Action::Released { since }, _) => {
                let bio = event.bio.map(|bio| (bio, (event.context, *since, event.at)));
                self.released.extend(bio);
            }
            (Action::BioDone { queued, issued }, _) => {
                return Some(self.bio_done(event, *queued, *issued));
            }
            _ => {}
        }
        None
    }

    /// A bio by its number, if it is not forgotten.
    pub fn get(&self, number: u64) -> Option<&DoneBio> {
        self.done.get(number.checked_sub(self.first)? as usize)
    }

    /// What was done before a time is not asked for any more.
    pub fn forget(&mut self, before: Instant) {
        while self.done.front().is_some_and(|it| it.done < before) {
            self.done.pop_front();
            self.first += 1;
        }
        let oldest = self.requests.values().map(|it| it.allocated).min();
        self.queue.forget(oldest.map_or(before, |it| it.min(before)));
    }

    fn allocate(&mut self, event: &Event, id: RequestId) {
        let way = Way::of(event);
        self.holders.get(self.queue.owner(way.owner), way.owner, way.is_sync);
        self.requests.insert(id, way);
    }

    fn issue(&mut self, event: &Event, id: RequestId) {
        // The machinery's own flushes are allocated without a word.
        let way = self.requests.entry(id).or_insert_with(|| Way::of(event));
        (way.sector, way.sectors) = (event.sector, event.sectors);
        match way.requeued.last_mut() {
            Some((_, again)) if *again == Instant::FAR_FUTURE => *again = event.at,
            _ => {
                way.issued.get_or_insert(event.at);
            }
        }
        let owner = way.owner;
        self.queue.issue(event.at, owner, event.sectors);
    }

    fn requeue(&mut self, event: &Event, id: RequestId) {
        if let Some(way) = self.requests.get_mut(&id) {
            way.requeued.push((event.at, Instant::FAR_FUTURE));
            self.queue.end(event.at, way.owner, event.sectors);
        }
    }

    fn complete(&mut self, event: &Event, id: RequestId, issued: Instant) {
        let Some(mut way) = self.requests.remove(&id) else { return };
        self.holders.put(self.queue.owner(way.owner), way.is_sync);
        // A flush that another command has served was never with the device itself.
        match way.issued {
            Some(_) => self.queue.end(event.at, way.owner, way.sectors),
            None => way.issued = Some(issued),
        }
        way.completed = event.at;
        if self.completed.len() == COMPLETED {
            self.completed.pop_front();
        }
        self.completed.push_back(way);
    }

    fn bio_done(&mut self, event: &Event, queued: Instant, issued: Instant) -> u64 {
        let has = |way: &&Way| match event.sectors.is_zero() {
            true => way.issued == Some(issued) && way.sectors.is_zero(),
            false => way.op == event.op && way.overlaps(event.sector, event.sectors),
        };
        let way = self.completed.iter().rev().find(has).filter(|it| it.completed >= queued);
        let released = event.bio.and_then(|bio| self.released.remove(&bio));
        let (submitter, since, queued) = released.unwrap_or((event.context, queued, queued));
        let limited = released.map(|_| since);
        let (done, way) = (event.at, way.cloned());
        self.done.push_back(DoneBio { submitter, queued, limited, done, way });
        self.first + self.done.len() as u64 - 1
    }
}

impl Way {
    pub(super) fn of(event: &Event) -> Way {
        Way {
            owner: event.context,
            op: event.op,
            flags: event.flags,
            is_sync: block::bio::is_sync(event.op, event.flags),
            sector: event.sector,
            sectors: event.sectors,
            allocated: event.at,
            inserted: None,
            requeued: Vec::new(),
            issued: None,
            completed: event.at,
            stages: Box::default(),
        }
    }

    /// Whether a flush of the device's cache comes first.
    pub fn asks_flush(&self) -> bool {
        self.flags.intersects(Flags::PREFLUSH) || self.sectors.is_zero()
    }

    fn overlaps(&self, sector: Sector, sectors: Sectors) -> bool {
        self.sector < sector + sectors && sector < self.sector + self.sectors
    }
}
