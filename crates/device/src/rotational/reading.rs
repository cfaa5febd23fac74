//! Reading from the platters, and reading ahead.
//!
//! What the arm reads is a [`Stream`]: it fills one segment from some sector on, as far as
//! commands need it and then as far as the look-ahead goes. It is read track by track, each piece
//! a [`Run`]. Later commands for the stream's next sectors join it and wait for the head to come
//! by, so a sequential reader loses no turn. A command elsewhere ends the stream as soon as no
//! command needs it any more.

use core::ops::Range;

use base::{Duration, Instant, Sector};
use block::command::{Command, CommandOp, Stage, Tag};

use super::Until;
use super::drive::{Drive, Event, Job, range_of};
use super::mechanics::Arm;
use super::queue::Waiting;

/// What is being read into which segment.
#[derive(Default)]
pub(super) struct Stream {
    segment: Option<usize>,
    /// The first sector not yet read or being read.
    next: u64,
    /// The end of what commands need.
    pub needed: u64,
    /// The end of what is read even if other commands wait.
    kept: u64,
    /// The end of the look-ahead.
    limit: u64,
    /// The end of what reads have been given.
    delivered: u64,
    joined: Vec<Joined>,
}

/// A read that waits for a stream.
struct Joined {
    command: Command,
    /// When it came into the drive.
    arrived: Instant,
    range: Range<u64>,
    /// The link begins when everything before this sector is in the buffer.
    mark: u64,
    /// When it does.
    begun: Instant,
    /// When what was buffered so far could have crossed the link.
    delivered: Instant,
}

/// A piece of one track that is passing under the head.
pub(super) struct Run {
    range: Range<u64>,
    start: Instant,
    end: Instant,
    /// Read out of order: nothing of it counts before its end.
    whole: bool,
}

impl Stream {
    /// Reads into a segment from `next` on; nobody needs any of it yet.
    fn begin(&mut self, segment: usize, next: u64, limit: u64) {
        let joined = core::mem::take(&mut self.joined);
        *self = Stream { segment: Some(segment), next, limit, joined, ..Stream::default() };
    }

    /// Whether the arm should go on with it when it has nothing better to do.
    pub fn wants_more(&self) -> bool {
        self.segment.is_some() && self.next < self.limit
    }
}

impl Run {
    /// The first sector that has not been read at `now`.
    pub fn position(&self, now: Instant) -> u64 {
        if now >= self.end {
            return self.range.end;
        }
        if self.whole || now <= self.start {
            return self.range.start;
        }
        let length = u128::from(self.range.end - self.range.start);
        let passed = u128::from(now.since(self.start).as_nanos()) * length;
        // Divergence: slipped sectors inside the piece are spread evenly over it.
        self.range.start + (passed / u128::from(self.end.since(self.start).as_nanos())) as u64
    }
}

impl Drive {
    /// A read whose overhead is over.
    pub(super) fn read(&mut self, now: Instant, command: Command) {
        let range = range_of(&command);
        self.note_progress(now);
        if let Some(segment) = self.cache.hit(&range) {
            return self.serve_hit(now, segment, command);
        }
        if self.can_join(now, &range) {
            self.join(now, command, now, true);
            return self.keep_ahead(range.end);
        }
        let from = self.cache.prefix(&range).map_or(range.start, |at| self.cache.range(at).end);
        self.wait_for_arm(now, command, from);
    }

    /// Brings the range of the segment that is being filled up to date.
    pub(super) fn note_progress(&mut self, now: Instant) {
        if let (Some(segment), Job::Read(run)) = (self.stream.segment, &self.job) {
            self.cache.grow(segment, run.position(now));
        }
    }

    /// Whether the range begins in what the stream has read or will read, and nobody has waited
    /// too long for the arm.
    pub(super) fn can_join(&self, now: Instant, range: &Range<u64>) -> bool {
        match self.stream.segment {
            Some(segment) if self.oldest_overdue(now).is_none() => {
                let held = self.cache.range(segment);
                held.start <= range.start && range.start <= self.stream.limit
            }
            _ => false,
        }
    }

    fn serve_hit(&mut self, now: Instant, segment: usize, command: Command) {
        let end = range_of(&command).end;
        self.cache.deliver(segment, end);
        self.transfer(now, &command);
        if self.stream.segment == Some(segment) {
            self.stream.limit = self.stream.limit.max(self.look_ahead_end(end));
            self.keep_ahead(end);
        } else if self.parameters.look_ahead.resumes_on_hit {
            self.resume_reading(now, segment, end);
        }
    }

    /// Goes on reading ahead where a stream ended, when the arm has nothing else to do.
    fn resume_reading(&mut self, now: Instant, segment: usize, end: u64) {
        let (held, limit) = (self.cache.range(segment).clone(), self.look_ahead_end(end));
        let free = matches!(self.job, Job::Idle) && self.cache.can_continue(segment);
        if free && held.end < limit {
            self.cache.set_busy(segment, true);
            self.stream.begin(segment, held.end, limit);
            self.next_job(now);
        }
    }

    /// Adds a read to the stream; part of it may be in the buffer or on its way. `sequential`
    /// says whether it continues what is there.
    fn join(&mut self, now: Instant, command: Command, arrived: Instant, sequential: bool) {
        let range = range_of(&command);
        self.stream.needed = self.stream.needed.max(range.end);
        let reads_ahead = sequential || !self.parameters.look_ahead.after_sequential;
        let limit = if reads_ahead { self.look_ahead_end(range.end) } else { range.end };
        self.stream.limit = self.stream.limit.max(limit);
        let segment = self.stream.segment.expect("a stream to join");
        self.cache.touch(segment);
        let held = self.cache.range(segment).end.min(range.end).saturating_sub(range.start);
        let mark = range.start + self.parameters.sectors_to_watermark(command.sectors.0);
        let crosses = if range.start + held < mark { 0 } else { held };
        let delivered = now + self.link_time(CommandOp::Read, crosses as u32);
        let mut joined = Joined { command, arrived, range, mark, begun: now, delivered };
        self.stages.enter(now, command.tag, Stage::Media);
        if let Job::Read(run) = &self.job
            && self.deliver(run, now, &mut joined)
        {
            return self.schedule_buffered(now, &joined);
        }
        self.stream.joined.push(joined);
    }

    /// A sequential reader has come to `end`: the drive stays so far ahead of him whoever waits.
    fn keep_ahead(&mut self, end: u64) {
        let enough = (end + self.parameters.look_ahead.minimum).min(self.stream.limit);
        self.stream.kept = self.stream.kept.max(enough);
    }

    /// Starts the stream of a read that waited. `false` when it was served without the arm.
    pub(super) fn start_read(&mut self, now: Instant, waiting: Waiting) -> bool {
        let range = range_of(&waiting.command);
        self.segment_wanted = None;
        if let Some(segment) = self.cache.hit(&range) {
            self.cache.deliver(segment, range.end);
            self.transfer(now, &waiting.command);
            return false;
        }
        let held = self.cache.prefix(&range);
        let (segment, next) = match held {
            Some(segment) => (held, self.cache.range(segment).end),
            None => (self.cache.claim_for_reading(range.start), range.start),
        };
        let Some(segment) = segment else {
            // All segments hold dirty data: one must be emptied first.
            self.segment_wanted = Some(waiting.arrived);
            self.queue.insert(waiting);
            self.start_write_back(now);
            return true;
        };
        self.cache.set_busy(segment, true);
        self.stream.begin(segment, next, 0);
        self.join(now, waiting.command, waiting.arrived, held.is_some());
        if self.rng.chance(u64::from(self.parameters.look_ahead.skipped), 1000) {
            self.stream.limit = self.stream.needed;
        }
        // Behind the limit, which it never exceeds.
        if held.is_some() {
            self.keep_ahead(range.end);
        }
        self.start_run(now);
        true
    }

    /// Sends the arm to the next sectors of the stream that lie on one track.
    pub(super) fn start_run(&mut self, now: Instant) {
        let parameters = self.parameters.clone();
        let mechanics = &parameters.mechanics;
        let first = self.stream.next;
        let place = parameters.geometry.place(first);
        let arrived = now + Duration::from_nanos(mechanics.moving(self.arm, &place, false));
        let end = (first + u64::from(place.left)).min(self.stream.limit);
        let needed = end.min(self.stream.needed.max(first + 1)) - first;
        let needed_span = parameters.geometry.passing(first, &place, needed as u32);
        let span = parameters.geometry.passing(first, &place, (end - first) as u32);
        let range = first..end;
        let run = if parameters.zero_latency_read
            && mechanics.is_inside(arrived, place.angle, needed_span)
        {
            // One turn brings everything, whatever comes first.
            let end = arrived + Duration::from_nanos(mechanics.revolution);
            Run { range, start: arrived, end, whole: true }
        } else {
            let start = mechanics.arrival(arrived, place.angle);
            Run { range, start, end: start + Duration::from_nanos(span), whole: false }
        };
        self.arm = Arm { cylinder: place.cylinder, head: place.head };
        self.arm_lba = end;
        self.stream.next = run.range.end;
        self.job_end = Some(self.events.schedule(run.end, Event::JobEnd));
        let times = [(now, Stage::Seek), (arrived, Stage::Rotation), (run.start, Stage::Media)];
        let mut joined = core::mem::take(&mut self.stream.joined);
        joined.iter().for_each(|it| self.stages.enter_all(it.command.tag, &times));
        joined.retain_mut(|joined| {
            let complete = self.deliver(&run, now, joined);
            if complete {
                self.schedule_buffered(now, joined);
            }
            !complete
        });
        self.stream.joined = joined;
        self.job = Job::Read(run);
    }

    /// Counts what a run brings for a read; whether that completes it. From the watermark on, the
    /// link takes over sector by sector: a slow link counts from the first sector, a fast one from
    /// the last.
    fn deliver(&self, run: &Run, now: Instant, joined: &mut Joined) -> bool {
        let first = joined.range.start.max(run.position(now));
        let end = joined.range.end.min(run.range.end);
        if first < end && joined.mark <= end {
            // What came before the watermark has waited for it.
            let (first, from) = match first < joined.mark {
                true => (joined.range.start, run.buffered(joined.mark - 1)),
                false => (first, run.buffered(first)),
            };
            if first == joined.range.start {
                joined.begun = from;
            }
            let rest = self.link_time(CommandOp::Read, (end - first) as u32 - 1);
            let sector = self.link_time(CommandOp::Read, 1);
            let from_first = joined.delivered.max(from) + rest + sector;
            joined.delivered = from_first.max(run.buffered(end - 1) + sector);
        }
        joined.range.end <= run.range.end
    }

    fn schedule_buffered(&mut self, now: Instant, joined: &Joined) {
        self.stream.delivered = self.stream.delivered.max(joined.range.end);
        let delivered = joined.delivered.max(self.held_up(joined));
        // The last sector cannot cross before it is there; the event is for that moment.
        let last = delivered - self.link_time(CommandOp::Read, 1);
        self.stages.enter(last.max(now), joined.command.tag, Stage::Link);
        let event = Event::Buffered { tag: joined.command.tag, delivered };
        self.events.schedule(last.max(now), event);
    }

    /// When a read has crossed a link that is slower than the platters, and carries first what the
    /// reads before it need. Divergence: it carries nothing for those that came before it but lie
    /// behind it, and on a faster link reads of a stream do not hold each other up.
    fn held_up(&mut self, joined: &Joined) -> Instant {
        let (begun, until) = self.crossing;
        if !self.parameters.link_is_slow || joined.begun < begun {
            return Instant::ZERO;
        }
        let time = self.link_time(CommandOp::Read, joined.command.sectors.0);
        let crossed = until.max(joined.begun) + time;
        self.crossing = (joined.begun, crossed);
        if until > joined.begun { crossed } else { Instant::ZERO }
    }

    /// A read has all its data in the buffer but for the last sector's crossing.
    pub(super) fn buffered(&mut self, now: Instant, tag: Tag, delivered: Instant) {
        let done = delivered.max(self.link_free.max(now) + self.link_time(CommandOp::Read, 1));
        self.link_free = done;
        self.events.schedule(done, Event::Done(tag));
        if !self.queue.is_empty() || self.must_write_back() {
            self.interrupt(now);
        }
    }

    pub(super) fn run_ended(&mut self, now: Instant, run: &Run) {
        let segment = self.stream.segment.expect("a run belongs to a stream");
        self.cache.grow(segment, run.range.end);
        let keeps = self.stream.next < self.stream.kept && self.may_keep_reading(now);
        if self.stream.next < self.stream.needed || keeps {
            self.start_run(now);
        } else {
            self.next_job(now);
        }
    }

    /// A command that came at `arrived` has waited too long: what joined the stream later, and is
    /// not passing under the head already, waits for the arm again.
    pub(super) fn end_stream_for(&mut self, now: Instant, arrived: Instant) {
        let Some(segment) = self.stream.segment else { return };
        self.note_progress(now);
        let joined = core::mem::take(&mut self.stream.joined);
        let (older, younger): (Vec<Joined>, Vec<Joined>) =
            joined.into_iter().partition(|joined| joined.arrived <= arrived);
        self.stream.joined = older;
        let ends = self.stream.joined.iter().map(|joined| joined.range.end);
        self.stream.needed = ends.max().unwrap_or(0).max(self.stream.delivered);
        self.stream.limit = self.stream.needed;
        self.stream.kept = self.stream.needed;
        let held = self.cache.range(segment).end;
        for Joined { command, arrived, range, .. } in younger {
            let from = held.clamp(range.start, range.end - 1);
            let place = self.parameters.geometry.place(from);
            self.queue.insert(Waiting { command, arrived, from, place, ready: now });
        }
        self.interrupt(now);
    }

    /// Whether nothing is more urgent than staying ahead of a sequential reader.
    fn may_keep_reading(&self, now: Instant) -> bool {
        !self.must_write_back() && self.oldest_overdue(now).is_none()
    }

    /// Whether the arm stays with a sequential reader although others wait. If it does, the drive
    /// looks again when enough is read.
    pub(super) fn keeps_reading(&mut self, now: Instant) -> bool {
        let Job::Read(run) = &self.job else { return false };
        let kept = self.stream.kept;
        if run.position(now) >= kept || !self.may_keep_reading(now) {
            return false;
        }
        if kept <= run.range.end && self.read_enough.is_none() {
            let at = run.buffered(kept - 1).max(now);
            self.read_enough = Some(self.events.schedule(at, Event::ReadEnough));
        }
        true
    }

    /// Ends the stream, if there is one; what it has read stays in its segment.
    pub(super) fn stop_reading(&mut self, now: Instant) {
        let Some(segment) = self.stream.segment.take() else { return };
        debug_assert!(self.stream.joined.is_empty(), "reads wait for the stream that ends");
        if let Job::Read(run) = &self.job {
            self.cache.grow(segment, run.position(now));
            self.job = Job::Idle;
        }
        for ticket in self.job_end.take().into_iter().chain(self.read_enough.take()) {
            self.events.cancel(ticket);
        }
        self.cache.deliver(segment, self.stream.delivered);
        self.cache.set_busy(segment, false);
    }

    /// Where reading ahead ends after a read that ends at `end`.
    fn look_ahead_end(&self, end: u64) -> u64 {
        let (rule, geometry) = (&self.parameters.look_ahead, &self.parameters.geometry);
        let capacity = self.facts.capacity.0 / Sector::SIZE;
        let natural = match rule.until {
            Until::Nothing => end,
            Until::Track => geometry.track_end(end - 1),
            Until::NextTrack => {
                let track = geometry.track_end(end - 1);
                if track < capacity { geometry.track_end(track) } else { track }
            }
            Until::Cylinder => geometry.cylinder_end(end - 1, capacity),
            Until::Segment => end + self.parameters.layout.segment_sectors,
        };
        natural.min(end + rule.maximum).min(capacity)
    }
}

impl Run {
    /// When the sector is wholly in the buffer.
    fn buffered(&self, sector: u64) -> Instant {
        if self.whole {
            return self.end;
        }
        let length = self.range.end - self.range.start;
        let span = u128::from(self.end.since(self.start).as_nanos());
        // Rounded up, so that `position` agrees.
        let part = (span * u128::from(sector + 1 - self.range.start)).div_ceil(u128::from(length));
        self.start + Duration::from_nanos(part as u64)
    }
}
