//! From the records of a device to events of the block layer.
//!
//! A record names no request, so requests are told by where they lie: an allocation makes one, and
//! what comes later at its first sector is about it. Merges let it grow. Where a kernel records no
//! join (up to 5.10), the length of what is issued tells what it absorbed. Records may be missing:
//! what never had an end is given up after a while.

use super::known::{AllKnown, Known, Name, Stage, request};
use crate::requests::tables::Numbers;
use base::{Duration, Instant, Sector, Sectors};
use block::{Action, ContextId, Event, Flags, Op, RequestId};
use std::mem::ManuallyDrop;
use trace::blktrace::{self, Categories, DevT, Payload, Record};

/// What the device had longer is lost: a command gets 30 s by default, and may be tried again.
const DEVICE_LIMIT: Duration = Duration::from_secs(90);
/// What waited longer for the device is lost.
const QUEUE_LIMIT: Duration = Duration::from_secs(600);
/// So often it is looked for what is lost.
const SWEEP: Duration = Duration::from_secs(10);

/// What a record comes to.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// Something happened.
    Event(&'a Event),
    /// Nothing more will be heard of a request.
    Lost(Instant, RequestId),
}

/// What did not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Misfits {
    /// Completions of what nobody was seen to issue.
    pub completions: u64,
    /// Merges into what was not seen.
    pub merges: u64,
    /// Requests that were allocated, inserted or issued and of which nothing was heard again.
    pub lost: u64,
    /// Records of other devices.
    pub other_devices: u64,
    /// Records of commands that do not read or write.
    pub passthrough: u64,
}

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// The bio that it has queued and that went nowhere yet.
    arrival: Option<Sector>,
    /// The request it allocated last.
    last: Option<Name>,
}

/// Follows the records of one device.
#[derive(Default)]
pub(super) struct Follower {
    device: Option<DevT>,
    known: AllKnown,
    numbers: Numbers,
    /// Tasks by their number.
    tasks: Vec<Task>,
    now: Instant,
    swept: Instant,
    last_flush: Instant,
    pub in_device: u32,
    /// The most that the device had.
    most: u32,
    /// Requests that the scheduler has.
    pub inserted: u32,
    pub misfits: Misfits,
}

impl Follower {
    /// Follows a device, or if none is named, the first that a record is of.
    pub fn new(device: Option<DevT>) -> Follower {
        Follower { device, ..Follower::default() }
    }

    pub fn device(&self) -> Option<DevT> {
        self.device
    }

    /// The time of the last record; it never goes back.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Whether the device had more at some time than it has now.
    pub fn has_room(&self) -> bool {
        self.in_device < self.most.max(1)
    }

    pub fn under_way(&self) -> usize {
        self.known.len()
    }

    /// Takes a record, and tells `out` what it comes to.
    pub fn take(&mut self, record: &Record, out: &mut impl FnMut(Told)) {
        use blktrace::Action as Of;
        if record.action.is_note() {
            return;
        }
        if *self.device.get_or_insert(record.device) != record.device {
            self.misfits.other_devices += 1;
            return;
        }
        if record.categories.contains(Categories::PC) {
            self.misfits.passthrough += 1;
            return;
        }
        self.now = self.now.max(record.time);
        if self.now.saturating_since(self.swept) > SWEEP {
            self.sweep(out);
        }
        // It owns no memory, so nothing has to look for any when it goes.
        let mut event = ManuallyDrop::new(event_of(record, self.now));
        let action = match record.action {
            Of::Queue => {
                self.task(record.pid).arrival = Some(record.sector);
                Action::Queue
            }
            Of::Split => {
                let Payload::Split(rest) = record.payload else { return };
                self.task(record.pid).arrival = Some(record.sector);
                Action::Split { rest }
            }
            Of::SleepRequest => Action::Sleep,
            Of::Plug => Action::Plug,
            Of::Unplug => Action::Unplug { depth: depth_of(record) },
            Of::UnplugTimer => Action::TimerUnplug { depth: depth_of(record) },
            Of::GetRequest => {
                let name = self.add(&event, Stage::Allocated);
                *self.task(record.pid) = Task { arrival: None, last: Some(name) };
                event.request = Some(request(name));
                Action::GetRequest
            }
            Of::BackMerge => return self.back_merge(&mut event, out),
            Of::FrontMerge => return self.front_merge(&mut event, out),
            Of::Insert => return self.insert(&mut event, out),
            Of::Issue => return self.issue(&mut event, out),
            Of::Requeue => return self.requeue(&mut event, out),
            Of::Complete => return self.complete(&mut event, out),
            _ => return,
        };
        tell(&mut event, action, out);
    }

    fn task(&mut self, pid: u32) -> &mut Task {
        let next = self.tasks.len();
        let number = self.numbers.get_or(pid, next as u32) as usize;
        if number == next {
            self.tasks.push(Task::default());
        }
        &mut self.tasks[number]
    }

    fn add(&mut self, event: &Event, stage: Stage) -> Name {
        let place = (event.sector, event.sectors);
        self.known.add(Known::new(place, event.op, event.context.0, stage, event.at))
    }

    /// A bio goes into the request that ends where it begins; or a request does, if its task has
    /// no such bio.
    fn back_merge(&mut self, event: &mut Event, out: &mut impl FnMut(Told)) {
        let pid = event.context.0;
        let task = *self.task(pid);
        let is_bio = task.arrival == Some(event.sector);
        let last = task.last.filter(|it| self.known.still_ends(*it, event.sector, event.op));
        let survivor = last.or_else(|| {
            self.known.ending(event.sector, |known| {
                let fits = known.op == event.op && known.sectors.0 > 0;
                fits.then_some((known.pid == pid && known.stage == Stage::Allocated, known.since))
            })
        });
        let Some(name) = survivor else {
            self.misfits.merges += 1;
            return tell(event, Action::BackMerge, out);
        };
        let mut action = Action::BackMerge;
        event.request = Some(request(name));
        if is_bio {
            self.task(pid).arrival = None;
        } else if let Some(gone) = self.joins(event, name) {
            event.request = Some(request(gone));
            action = Action::Join { into: request(name) };
            self.forget(gone);
        }
        let known = self.known.get(name);
        let (sector, sectors) =
            (known.sector, Sectors(known.sectors.0.saturating_add(event.sectors.0)));
        self.known.place(name, sector, sectors);
        tell(event, action, out);
    }

    /// The request that is meant by a merge that is not of a bio.
    fn joins(&self, event: &Event, into: Name) -> Option<Name> {
        let into = request(into);
        let gone = self.known.beginning(event.sector, |known| {
            let fits = known.sectors == event.sectors && known.op == event.op;
            (fits && known.stage != Stage::Issued).then_some(known.stage == Stage::Inserted)
        });
        gone.filter(|name| request(*name) != into)
    }

    fn front_merge(&mut self, event: &mut Event, out: &mut impl FnMut(Told)) {
        let pid = event.context.0;
        self.task(pid).arrival = None;
        let survivor = self.known.beginning(end(event), |known| {
            let fits = known.op == event.op && known.stage != Stage::Issued;
            fits.then_some((known.pid == pid && known.stage == Stage::Allocated, known.since))
        });
        match survivor {
            Some(name) => {
                event.request = Some(request(name));
                let before = self.known.get(name).sectors.0;
                let sectors = Sectors(before.saturating_add(event.sectors.0));
                self.known.place(name, event.sector, sectors);
            }
            None => self.misfits.merges += 1,
        }
        tell(event, Action::FrontMerge, out);
    }

    fn insert(&mut self, event: &mut Event, out: &mut impl FnMut(Told)) {
        let found = self.known.beginning(event.sector, |known| {
            let fits = known.stage == Stage::Allocated;
            let is_it = (known.sectors == event.sectors, known.pid == event.context.0);
            fits.then_some((is_it, std::cmp::Reverse(known.since)))
        });
        let name = found.unwrap_or_else(|| {
            // One that was given back is inserted again, of which nothing need be told.
            let again = self.known.beginning(event.sector, |known| {
                (known.stage == Stage::Inserted && known.sectors == event.sectors).then_some(())
            });
            again.unwrap_or_else(|| self.add(event, Stage::Allocated))
        });
        event.request = Some(request(name));
        if self.known.get(name).stage == Stage::Allocated {
            self.inserted += 1;
            self.known.advance(name, Stage::Inserted, event.at);
            self.known.place(name, event.sector, event.sectors);
        }
        tell(event, Action::Insert, out);
    }

    fn issue(&mut self, event: &mut Event, out: &mut impl FnMut(Told)) {
        let found = self.known.beginning(event.sector, |known| {
            let is_flush = known.sectors.0 == 0;
            let fits = known.stage != Stage::Issued && is_flush == (event.sectors.0 == 0);
            let is_it = (known.sectors == event.sectors, known.stage == Stage::Inserted);
            fits.then_some((is_it, std::cmp::Reverse(known.since)))
        });
        let name = found.unwrap_or_else(|| self.add(event, Stage::Allocated));
        self.absorb(name, event, out);
        let was_inserted = self.known.get(name).stage == Stage::Inserted;
        self.inserted -= u32::from(was_inserted);
        self.known.advance(name, Stage::Issued, event.at);
        self.known.place(name, event.sector, event.sectors);
        self.in_device += 1;
        self.most = self.most.max(self.in_device);
        if event.sectors.0 == 0 {
            self.last_flush = event.at;
        }
        event.request = Some(request(name));
        tell(event, Action::Issue, out);
    }

    /// What is issued is longer than what was seen of it: it has absorbed those that lie there.
    fn absorb(&mut self, name: Name, event: &Event, out: &mut impl FnMut(Told)) {
        let known = self.known.get(name);
        let mut reached = known.sector.0.saturating_add(u64::from(known.sectors.0));
        while reached < end(event).0 {
            let next = self.known.beginning(Sector(reached), |known| {
                let fits = known.stage != Stage::Issued && known.op == event.op;
                (fits && known.sectors.0 > 0).then_some(known.stage == Stage::Inserted)
            });
            let Some(next) = next else { return };
            let gone = *self.known.get(next);
            reached += u64::from(gone.sectors.0);
            let (sector, sectors) = (gone.sector, gone.sectors);
            let mut join = Event { sector, sectors, request: Some(request(next)), ..event.clone() };
            self.forget(next);
            tell(&mut join, Action::Join { into: request(name) }, out);
        }
    }

    fn requeue(&mut self, event: &mut Event, out: &mut impl FnMut(Told)) {
        let found = self.known.beginning(event.sector, |known| {
            let is_it = known.sectors == event.sectors;
            (known.stage == Stage::Issued).then_some((is_it, known.since))
        });
        let Some(name) = found else { return };
        self.in_device -= 1;
        self.inserted += 1;
        self.known.advance(name, Stage::Inserted, event.at);
        event.request = Some(request(name));
        tell(event, Action::Requeue, out);
    }

    fn complete(&mut self, event: &mut Event, out: &mut impl FnMut(Told)) {
        let found = self.known.beginning(event.sector, |known| {
            let is_flush = known.sectors.0 == 0;
            let is_it = known.sectors == event.sectors;
            let fits = is_flush == (event.sectors.0 == 0);
            fits.then_some(((known.stage == Stage::Issued, is_it), std::cmp::Reverse(known.since)))
        });
        let Some(name) = found else {
            // The end of a flush sequence is told with the sector of its data, and no length.
            self.misfits.completions += u64::from(event.sectors.0 > 0);
            return;
        };
        let known = *self.known.get(name);
        let id = request(name);
        if known.stage != Stage::Issued && known.sectors.0 > 0 {
            // Its issue was not recorded, so nobody knows when it was.
            self.forget(name);
            self.misfits.lost += 1;
            return out(Told::Lost(event.at, id));
        }
        if known.sectors.0 > event.sectors.0 {
            // A part of it is done.
            let (sector, left) = (end(event), known.sectors.0 - event.sectors.0);
            return self.known.place(name, sector, Sectors(left));
        }
        let issued = if known.stage == Stage::Issued { known.since } else { self.last_flush };
        event.request = Some(id);
        self.forget(name);
        tell(event, Action::Complete { issued }, out);
    }

    /// A request is gone.
    fn forget(&mut self, name: Name) {
        match self.known.remove(name).stage {
            Stage::Allocated => {}
            Stage::Inserted => self.inserted -= 1,
            Stage::Issued => self.in_device -= 1,
        }
    }

    /// Gives up what nothing was heard of for long.
    fn sweep(&mut self, out: &mut impl FnMut(Told)) {
        self.swept = self.now;
        let is_lost = |known: &Known| {
            let age = self.now.saturating_since(known.since);
            age > if known.stage == Stage::Issued { DEVICE_LIMIT } else { QUEUE_LIMIT }
        };
        let lost = self.known.iter().filter(|(_, known)| is_lost(known)).map(|(name, _)| name);
        for name in lost.collect::<Vec<_>>() {
            self.forget(name);
            self.misfits.lost += 1;
            out(Told::Lost(self.now, request(name)));
        }
    }
}

#[inline(always)]
fn tell(event: &mut Event, action: Action, out: &mut impl FnMut(Told)) {
    // What is told here owns no memory.
    std::mem::forget(std::mem::replace(&mut event.action, action));
    out(Told::Event(event));
}

fn end(event: &Event) -> Sector {
    Sector(event.sector.0.saturating_add(u64::from(event.sectors.0)))
}

fn depth_of(record: &Record) -> u32 {
    match record.payload {
        Payload::Unplug(depth) => u32::try_from(depth).unwrap_or(u32::MAX),
        _ => 0,
    }
}

/// Flags that few requests have.
const RARE: [(Categories, Flags); 4] = [
    (Categories::META, Flags::META),
    (Categories::AHEAD, Flags::RAHEAD),
    (Categories::FLUSH, Flags::PREFLUSH),
    (Categories::FUA, Flags::FUA),
];

/// What a record says of a bio or request.
fn event_of(record: &Record, at: Instant) -> Event {
    let has = |category| record.categories.contains(category);
    let is_flush = record.bytes == 0 && has(Categories::FLUSH);
    let op = match () {
        () if has(Categories::DISCARD) => Op::Discard,
        () if has(Categories::WRITE) || is_flush => Op::Write,
        () => Op::Read,
    };
    let mut flags = if has(Categories::SYNC) { Flags::SYNC } else { Flags::NONE };
    let rare = RARE.iter().fold(Categories::NONE, |all, (category, _)| all | *category);
    if record.categories.intersects(rare) {
        let set = RARE.iter().filter(|(category, _)| has(*category));
        flags = set.fold(flags, |all, (_, flag)| all.with(*flag));
    }
    Event {
        at,
        context: ContextId(record.pid),
        cpu: record.cpu as u16,
        op,
        flags,
        sector: record.sector,
        sectors: Sectors(record.bytes / Sector::SIZE as u32),
        ..Event::note(Action::Plug)
    }
}
