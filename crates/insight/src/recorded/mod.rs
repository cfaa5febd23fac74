//! Recordings of `blktrace`: of each request in one, where its time went.
//!
//! [`open`] reads a recording as `blkparse` does, merged over all CPUs, and its records become the
//! same events that the simulated block layer tells of. What a recording does not have is missing
//! here, too: there are no bios by name, no limits and no reasons. That a scheduler withholds
//! requests is inferred, and such lives say so ([`Life::guess`]).

mod follow;
mod idle;
mod known;
#[cfg(test)]
mod tests;

pub use follow::{Misfits, Told};

use crate::life::Life;
use crate::requests::Requests;
use base::Instant;
use block::{Event, RequestId};
use follow::Follower;
use idle::{Gaps, Held};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use trace::blktrace::{DevT, Merge, Payload, Record};

/// Of a gap longer than so many events the rest counts as a gap of its own.
const LONGEST: usize = 1 << 16;

/// Opens the recording at `path`: a file of `blktrace`, or `NAME` where `NAME.blktrace.0` and so
/// on are. Of several devices in it the named one is read, or the first.
///
/// ```no_run
/// let mut recording = insight::recorded::open("sda".as_ref(), None)?;
/// let mut summary = insight::requests::Summary::default();
/// recording.read_all(|_told| {}, |life| summary.see(life))?;
/// # Ok::<(), trace::Error>(())
/// ```
pub fn open(path: &Path, device: Option<DevT>) -> Result<Recording<trace::Source>, trace::Error> {
    Ok(Recording::new(trace::read_records(path)?, device))
}

/// A recording that is being read.
pub struct Recording<R> {
    records: Merge<R>,
    stream: Stream,
}

/// Records that come in turn; what they come to is told as it goes.
#[derive(Default)]
pub struct Stream {
    follower: Follower,
    requests: Requests,
    gaps: Gaps,
    /// What the engine was not told yet: it may turn out that much was withheld.
    pending: Vec<Pending>,
    /// When the gap began that these are of.
    gap: Option<Instant>,
    names: BTreeMap<u32, String>,
    records: u64,
}

/// What will be told.
enum Pending {
    Event(Event),
    Lost(Instant, RequestId),
}

impl Pending {
    #[inline(always)]
    fn keep(told: Told, pending: &mut Vec<Pending>) {
        pending.push(match told {
            Told::Event(event) => Pending::Event(event.clone()),
            Told::Lost(at, id) => Pending::Lost(at, id),
        });
    }

    fn told(&self) -> Told<'_> {
        match self {
            Pending::Event(event) => Told::Event(event),
            Pending::Lost(at, id) => Told::Lost(*at, *id),
        }
    }
}

impl<R: Read> Recording<R> {
    /// The recording that these records are.
    pub fn new(records: Merge<R>, device: Option<DevT>) -> Recording<R> {
        Recording { records, stream: Stream::new(device) }
    }

    /// Reads some records; what they come to is shown to `see`. False at the end, when all
    /// requests that are done have been told of.
    pub fn read_some(&mut self, mut see: impl FnMut(Told)) -> Result<bool, trace::Error> {
        let stream = &mut self.stream;
        let more = self.records.show(1024, |record| stream.take(record, &mut see));
        if !matches!(more, Ok(true)) {
            stream.finish(&mut see);
        }
        more
    }

    /// Reads all records that are left; what they come to is shown to `see`, and requests to `end`
    /// when they have ended. Where there is a second core, it reads while this one follows.
    pub fn read_all(
        &mut self,
        mut see: impl FnMut(Told),
        mut end: impl FnMut(&Life),
    ) -> Result<(), trace::Error>
    where
        R: Send,
    {
        let stream = &mut self.stream;
        let read = self.records.show_all(|record| {
            stream.take(record, &mut see);
            stream.show_lives(&mut end);
        });
        stream.finish(&mut see);
        stream.show_lives(&mut end);
        read
    }

    /// Shows the requests that have ended since this was last asked.
    pub fn show_lives(&mut self, see: impl FnMut(&Life)) {
        self.stream.show_lives(see);
    }

    /// The requests that have ended since this was last asked.
    pub fn lives(&mut self) -> std::vec::Drain<'_, Life> {
        self.stream.requests.done()
    }

    /// What is known beside the requests.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The source of records, which may know what was lost.
    pub fn source(&self) -> &Merge<R> {
        &self.records
    }
}

impl Stream {
    /// Records of a device, or if none is named, of the first in them.
    pub fn new(device: Option<DevT>) -> Stream {
        Stream { follower: Follower::new(device), ..Stream::default() }
    }

    /// The device that is followed.
    pub fn device(&self) -> Option<DevT> {
        self.follower.device()
    }

    /// What tasks are called, by their numbers.
    pub fn names(&self) -> &BTreeMap<u32, String> {
        &self.names
    }

    /// What did not fit.
    pub fn misfits(&self) -> &Misfits {
        &self.follower.misfits
    }

    /// Records that were read.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Requests that are under way.
    pub fn under_way(&self) -> usize {
        self.follower.under_way()
    }

    /// Shows the requests that have ended since this was last asked. Who keeps none is faster so.
    #[inline]
    pub fn show_lives(&mut self, see: impl FnMut(&Life)) {
        self.requests.show_done(see);
    }

    /// The requests that have ended since this was last asked.
    pub fn lives(&mut self) -> std::vec::Drain<'_, Life> {
        self.requests.done()
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record, see: &mut impl FnMut(Told)) {
        self.records += 1;
        match &record.payload {
            Payload::Message(text) => return self.gaps.said(text),
            Payload::Process(name) => return self.meet(record.pid, name),
            _ => {}
        }
        let was_in_device = self.follower.in_device;
        let (pending, requests) = (&mut self.pending, &mut self.requests);
        let is_gap = self.gap.is_some();
        self.follower.take(record, &mut |told| match is_gap {
            true => Pending::keep(told, pending),
            false => tell(told, requests, see),
        });
        if self.follower.in_device > was_in_device {
            return self.issued(was_in_device == 0, see);
        }
        let is_gap = self.follower.inserted > 0 && self.follower.has_room();
        match self.gap {
            None if is_gap => self.gap = Some(self.follower.now()),
            Some(_) if is_gap && self.pending.len() < LONGEST => {}
            None => {}
            Some(_) => {
                self.gap = None;
                self.tell(see);
            }
        }
    }

    /// A request was issued, which may end a gap.
    fn issued(&mut self, was_idle: bool, see: &mut impl FnMut(Told)) {
        if let Some(since) = self.gap.take()
            && let Some(held) = self.gaps.ends(since, self.follower.now(), was_idle)
        {
            let Held { reason, confidence } = held;
            self.requests.infer_hold(since, reason, confidence);
        }
        self.gaps.issued();
        self.tell(see);
        if self.follower.inserted > 0 && self.follower.has_room() {
            self.gap = Some(self.follower.now());
        }
    }

    /// Tells what is pending.
    fn tell(&mut self, see: &mut impl FnMut(Told)) {
        for pending in self.pending.drain(..) {
            tell(pending.told(), &mut self.requests, see);
        }
    }

    /// There are no more records.
    pub fn finish(&mut self, see: &mut impl FnMut(Told)) {
        self.gap = None;
        self.tell(see);
        self.requests.finish();
    }

    fn meet(&mut self, pid: u32, name: &[u8]) {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        self.names.insert(pid, String::from_utf8_lossy(&name[..end]).into_owned());
    }
}

#[inline(always)]
fn tell(told: Told, requests: &mut Requests, see: &mut impl FnMut(Told)) {
    see(told);
    match told {
        Told::Event(event) => requests.see(event),
        Told::Lost(at, id) => requests.lose(at, id),
    }
}
