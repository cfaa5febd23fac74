//! What the disk did: when it was busy, when it had nothing to do while work was queued, and why.
//!
//! The disk is *busy* while a command is with it, else *idle*; it is *held* while it is idle
//! although requests are allocated that have not been given to it. The reason is the scheduler's
//! own if it said one since the last command; `plugged` while requests wait in a plug and nowhere
//! else; `host` otherwise: no processor has got round to it.

use super::held::{Actor, HeldFor, Hold, Pauses};
use base::{Bytes, Duration, Instant, Sector, Side};
use block::request::Request;
use block::{Action, ContextId, Event, Op, RequestId};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Nobody has given the requests to the device yet.
pub const HOST: &str = "host";
/// Requests wait in a plug.
pub const PLUGGED: &str = "plugged";

/// The totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// With at least one command in the device.
    #[serde(rename = "busy_ns")]
    pub busy: Duration,
    /// Without any.
    #[serde(rename = "idle_ns")]
    pub idle: Duration,
    /// Without any although requests were queued.
    #[serde(rename = "held_ns")]
    pub held: Duration,
    /// The same by reason.
    pub held_by_reason: BTreeMap<&'static str, Duration>,
    /// What the scheduler withheld, by reason, by who was waited for and by who waited.
    pub held_for: Vec<HeldFor>,
    /// What was read.
    pub read_bytes: Bytes,
    /// What was written.
    pub write_bytes: Bytes,
    /// Reads that completed.
    pub reads: u64,
    /// Writes that completed.
    pub writes: u64,
    /// Writes that were issued and that nobody waits for.
    pub async_writes: u64,
    /// Flushes that completed.
    pub flushes: u64,
    /// Discards that completed.
    pub discards: u64,
    /// Bios that joined a request, and requests that joined another.
    pub merges: u64,
    /// Commands that were issued, but for flushes.
    pub commands: u64,
    /// Those of them that begin where the one issued before ended.
    pub sequential: u64,
    /// The mean distance in sectors from the end of a command to the start of the next.
    pub seek_sectors_mean: u64,
    /// The mean number of commands in the device while it was busy, in thousandths.
    #[serde(rename = "depth_mean", serialize_with = "thousandths")]
    pub depth_mean_thousandths: u64,
    /// The time in the device of all reads together.
    #[serde(skip)]
    pub read_time: Duration,
    /// The time in the device of all writes together.
    #[serde(skip)]
    pub write_time: Duration,
}

fn thousandths<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*number as f64 / 1000.0)
}

/// Where a request is that the device does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Allocated,
    Inserted,
    Issued,
}

/// A request on its way.
#[derive(Clone, Copy)]
struct Place {
    stage: Stage,
    /// Who waits for the device to get it.
    waiting: Option<Actor>,
}

/// Adds up a run as it goes.
#[derive(Default)]
pub struct DiskMeter {
    totals: Disk,
    places: Side<Request, Place>,
    /// Requests that are allocated and neither inserted nor issued.
    allocated: u32,
    /// Requests that are inserted and not issued.
    inserted: u32,
    in_device: u32,
    plugs_open: u32,
    /// The scheduler's reason, since the last command.
    hold: Option<Hold>,
    pauses: Pauses,
    since: Instant,
    /// Commands x nanoseconds.
    depth_time: u128,
    last_end: Option<Sector>,
    seeks: u64,
    seek_sum: u128,
}

impl DiskMeter {
    /// Takes note of an event.
    pub fn see(&mut self, event: &Event) {
        match &event.action {
            Action::GetRequest => self.enter(event, Stage::Allocated),
            Action::Insert => self.enter(event, Stage::Inserted),
            Action::Issue => self.issue(event),
            Action::Complete { issued } => self.complete(event, *issued),
            Action::Requeue => _ = self.leave(event),
            Action::Join { .. } => {
                self.totals.merges += 1;
                self.leave(event);
            }
            Action::BackMerge | Action::FrontMerge => self.totals.merges += 1,
            Action::Hold { reason, waits_for } => {
                self.pass(event.at);
                self.hold = Some(Hold { reason: *reason, waits_for: *waits_for });
            }
            Action::Plug => {
                self.pass(event.at);
                self.plugs_open += 1;
            }
            Action::Unplug { .. } | Action::TimerUnplug { .. } => {
                self.pass(event.at);
                self.plugs_open = self.plugs_open.saturating_sub(1);
            }
            _ => {}
        }
    }

    /// A context is called like this where it waits or is waited for.
    pub fn meet(&mut self, who: ContextId, name: &str) {
        self.pauses.meet(who, name);
    }

    /// The totals, at the end of the run.
    pub fn finish(mut self, end: Instant) -> Disk {
        self.pass(end.max(self.since));
        let mut totals = self.totals;
        totals.held_for = self.pauses.finish();
        totals.held = totals.held_by_reason.values().copied().sum();
        totals.seek_sectors_mean = (self.seek_sum / u128::from(self.seeks.max(1))) as u64;
        let busy = u128::from(totals.busy.as_nanos().max(1));
        totals.depth_mean_thousandths = (self.depth_time * 1000 / busy) as u64;
        totals
    }

    /// Time has passed in the state so far, if it has.
    #[inline]
    fn pass(&mut self, at: Instant) {
        if at > self.since {
            self.add_up(at);
        }
    }

    fn add_up(&mut self, at: Instant) {
        let passed = at.since(self.since);
        self.since = at;
        if self.in_device > 0 {
            self.totals.busy += passed;
            self.depth_time += u128::from(self.in_device) * u128::from(passed.as_nanos());
            return;
        }
        self.totals.idle += passed;
        if self.allocated + self.inserted == 0 {
            return;
        }
        let reason = match self.hold {
            Some(hold) => {
                self.pauses.pass(hold, passed);
                hold.reason.name()
            }
            None if self.plugs_open > 0 && self.inserted == 0 => PLUGGED,
            None => HOST,
        };
        *self.totals.held_by_reason.entry(reason).or_default() += passed;
    }

    fn enter(&mut self, event: &Event, stage: Stage) {
        self.pass(event.at);
        let Some(rq) = event.request else { return };
        let before = self.forget(rq).and_then(|place| place.waiting);
        let waiting = match stage {
            Stage::Inserted => before,
            Stage::Allocated | Stage::Issued => {
                self.wait_ends(before);
                (stage == Stage::Allocated).then(|| self.pauses.begins(event.context))
            }
        };
        *self.count_of(stage) += 1;
        self.places.set(rq, Place { stage, waiting });
    }

    fn leave(&mut self, event: &Event) -> Option<Stage> {
        self.pass(event.at);
        let place = self.forget(event.request?)?;
        self.wait_ends(place.waiting);
        Some(place.stage)
    }

    fn wait_ends(&mut self, waiting: Option<Actor>) {
        if let Some(actor) = waiting {
            self.pauses.ends(actor);
        }
    }

    /// A request is no longer where it was; `None` if nothing was known of it.
    fn forget(&mut self, rq: RequestId) -> Option<Place> {
        let place = self.places.take(rq)?;
        *self.count_of(place.stage) -= 1;
        Some(place)
    }

    fn count_of(&mut self, stage: Stage) -> &mut u32 {
        match stage {
            Stage::Allocated => &mut self.allocated,
            Stage::Inserted => &mut self.inserted,
            Stage::Issued => &mut self.in_device,
        }
    }

    fn issue(&mut self, event: &Event) {
        self.enter(event, Stage::Issued);
        self.hold = None;
        self.pauses.next();
        if event.sectors.is_zero() {
            return;
        }
        self.totals.commands += 1;
        let is_async = event.op == Op::Write && !block::is_sync(event.op, event.flags);
        self.totals.async_writes += u64::from(is_async);
        if let Some(last) = self.last_end {
            self.totals.sequential += u64::from(last == event.sector);
            self.seeks += 1;
            self.seek_sum += u128::from(last.distance(event.sector));
        }
        self.last_end = Some(event.sector + event.sectors);
    }

    fn complete(&mut self, event: &Event, issued: Instant) {
        // A pure flush is completed by the command that served it, and is none itself.
        if self.leave(event) != Some(Stage::Issued) {
            return;
        }
        let totals = &mut self.totals;
        let (bytes, time) = (event.sectors.bytes(), event.at.saturating_since(issued));
        match event.op {
            _ if event.sectors.is_zero() => totals.flushes += 1,
            Op::Read => {
                totals.reads += 1;
                totals.read_bytes += bytes;
                totals.read_time += time;
            }
            Op::Write => {
                totals.writes += 1;
                totals.write_bytes += bytes;
                totals.write_time += time;
            }
            Op::Discard => totals.discards += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Sectors;
    use block::HoldReason;

    fn event(micros: u64, rq: u64, sector: u64, action: Action) -> Event {
        Event {
            at: Instant::from_nanos(micros * 1000),
            sector: Sector(sector),
            sectors: Sectors(8),
            request: Some(RequestId::from_bits(1 << 32 | rq)),
            ..Event::note(action)
        }
    }

    fn done(micros: u64) -> Action {
        Action::Complete { issued: Instant::from_nanos(micros * 1000) }
    }

    fn measure(events: &[Event], end: u64) -> Disk {
        let mut meter = DiskMeter::default();
        events.iter().for_each(|event| meter.see(event));
        meter.finish(Instant::from_nanos(end * 1000))
    }

    const HOLD: Action =
        Action::Hold { reason: HoldReason::HigherClassInFlight, waits_for: Some(ContextId(5)) };

    #[test]
    fn a_disk_is_busy_while_it_has_a_command_and_held_while_one_waits() {
        let disk = measure(
            &[
                event(0, 1, 0, Action::GetRequest),
                event(0, 1, 0, Action::Insert),
                event(1, 1, 0, Action::Issue),
                event(2, 2, 100, Action::GetRequest),
                event(3, 2, 100, Action::Insert),
                event(5, 1, 0, done(1)),
                event(5, 1, 0, HOLD),
                event(9, 2, 100, Action::Issue),
                event(10, 2, 100, done(9)),
            ],
            20,
        );
        assert_eq!(disk.busy, Duration::from_micros(5));
        assert_eq!(disk.idle, Duration::from_micros(15));
        let held: Vec<_> = disk.held_by_reason.into_iter().collect();
        let micros = Duration::from_micros;
        assert_eq!(held, [("higher_class_in_flight", micros(4)), (HOST, micros(1))]);
        assert_eq!((disk.held, disk.reads, disk.seek_sectors_mean), (micros(5), 2, 92));
        assert_eq!((disk.commands, disk.sequential), (2, 0));
        let [held] = &disk.held_for[..] else { panic!("one waits for one") };
        assert_eq!((held.waited_for.as_deref(), held.waiting.as_str()), (Some("task 5"), "task 0"));
        assert_eq!((held.time, held.times), (micros(4), 1));
    }

    #[test]
    fn a_command_is_sequential_if_it_begins_where_the_one_before_ended() {
        let issued = |micros, rq, sector| event(micros, rq, sector, Action::Issue);
        let disk = measure(&[issued(1, 1, 0), issued(2, 2, 8), issued(3, 3, 8)], 4);
        assert_eq!((disk.commands, disk.sequential), (3, 1));
    }

    #[test]
    fn requests_in_a_plug_hold_the_disk_until_it_is_flushed() {
        let disk = measure(
            &[
                event(0, 1, 0, Action::GetRequest),
                event(0, 1, 0, Action::Plug),
                event(4, 1, 0, Action::Unplug { depth: 1 }),
                event(4, 1, 0, Action::Insert),
                event(4, 1, 0, Action::Issue),
                event(5, 1, 0, done(4)),
            ],
            5,
        );
        assert_eq!(disk.held_by_reason.get(PLUGGED), Some(&Duration::from_micros(4)));
        assert_eq!(disk.held_by_reason.len(), 1);
    }

    #[test]
    fn a_request_that_joined_another_waits_no_more() {
        let into = RequestId::from_bits(1 << 32 | 1);
        let disk = measure(
            &[
                event(0, 1, 0, Action::GetRequest),
                event(0, 2, 8, Action::GetRequest),
                event(0, 2, 8, Action::Join { into }),
                event(0, 1, 0, Action::Issue),
                event(2, 1, 0, done(0)),
            ],
            10,
        );
        assert_eq!((disk.held, disk.merges), (Duration::ZERO, 1));
    }

    #[test]
    fn a_flush_is_counted_once_for_all_it_serves() {
        let flush = |micros, rq, action| Event {
            sectors: Sectors(0),
            op: Op::Write,
            ..event(micros, rq, 0, action)
        };
        let disk = measure(
            &[
                flush(0, 1, Action::GetRequest),
                flush(0, 2, Action::GetRequest),
                flush(0, 3, Action::Issue),
                flush(4, 3, done(0)),
                flush(4, 1, done(0)),
                flush(4, 2, done(0)),
            ],
            4,
        );
        assert_eq!((disk.flushes, disk.writes, disk.held), (1, 0, Duration::ZERO));
    }
}
