//! What a device did, interval by interval, as `iostat -x` shows it.
//!
//! As there, a request counts when it ends; its `await` is the time since its allocation, which is
//! when it began to be under way; `%util` is the part of the time in which any was; `aqu-sz` is how
//! many were, on the average.

use crate::recorded::Told;
use crate::requests::tables::Table;
use base::{Duration, Instant};
use block::{Action, Event, Op, RequestId};
use std::fmt;

/// So many intervals at most; if there would be more, they become twice as long.
const MOST: usize = 1 << 16;

/// Requests of one kind in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// That ended.
    pub requests: u64,
    /// Bios and requests that became part of others.
    pub merges: u64,
    /// Sectors of those that ended.
    pub sectors: u64,
    /// How long all of them were under way.
    pub time: Duration,
}

impl Kind {
    fn add(&mut self, other: &Kind) {
        self.requests += other.requests;
        self.merges += other.merges;
        self.sectors += other.sectors;
        self.time =
            Duration::from_nanos(self.time.as_nanos().saturating_add(other.time.as_nanos()));
    }

    /// The mean time under way, in milliseconds.
    pub fn r#await(&self) -> f64 {
        self.time.as_nanos() as f64 / 1e6 / self.requests.max(1) as f64
    }

    /// The part of what came in that was merged, in percent.
    pub fn merged_percent(&self) -> f64 {
        100.0 * self.merges as f64 / (self.merges + self.requests).max(1) as f64
    }

    /// The mean size in kB.
    pub fn mean_size(&self) -> f64 {
        self.sectors as f64 / 2.0 / self.requests.max(1) as f64
    }
}

/// What happened in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Reads.
    pub reads: Kind,
    /// Writes.
    pub writes: Kind,
    /// Discards.
    pub discards: Kind,
    /// Flushes.
    pub flushes: Kind,
    /// How long anything was under way.
    pub busy: Duration,
    /// Requests under way times nanoseconds.
    pub queue_time: u128,
}

impl Interval {
    fn add(&mut self, other: &Interval) {
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
        self.discards.add(&other.discards);
        self.flushes.add(&other.flushes);
        self.busy += other.busy;
        self.queue_time += other.queue_time;
    }

    fn kind(&mut self, event: &Event) -> &mut Kind {
        match event.op {
            _ if event.sectors.is_zero() => &mut self.flushes,
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Discard => &mut self.discards,
        }
    }
}

/// Adds up intervals.
pub struct Intervals {
    every: Duration,
    begin: Option<Instant>,
    all: Vec<Interval>,
    since: Instant,
    under_way: Table<u64, Instant>,
}

impl Intervals {
    /// Intervals of this length, counted from the first event.
    pub fn new(every: Duration) -> Intervals {
        let every = every.max(Duration::from_nanos(1));
        let under_way = Table::default();
        Intervals { every, begin: None, all: vec![], since: Instant::ZERO, under_way }
    }

    /// Their length, which grows if there would be too many.
    pub fn every(&self) -> Duration {
        self.every
    }

    /// When the first began.
    pub fn begin(&self) -> Option<Instant> {
        self.begin
    }

    /// All of them, in order.
    pub fn all(&self) -> &[Interval] {
        &self.all
    }

    /// The same in longer intervals, if there are more than so many: 1, 2 or 5 times a power of
    /// ten as long.
    pub fn in_at_most(&self, most: usize) -> Intervals {
        let fits = |factor: &usize| self.all.len().div_ceil(*factor) <= most.max(1);
        let powers = std::iter::successors(Some(1usize), |it| it.checked_mul(10));
        let factors = powers.flat_map(|power| [1, 2, 5].map(|it| power.saturating_mul(it)));
        let factor = { factors }.find(fits).unwrap_or(usize::MAX);
        let sum = |some: &[Interval]| {
            let mut sum = some[0];
            some[1..].iter().for_each(|other| sum.add(other));
            sum
        };
        Intervals {
            every: self.every * factor as u64,
            begin: self.begin,
            all: self.all.chunks(factor).map(sum).collect(),
            since: self.since,
            under_way: Table::default(),
        }
    }

    /// Takes note of an event.
    pub fn see(&mut self, event: &Event) {
        self.pass(event.at);
        let id = event.request.map(RequestId::to_bits);
        match &event.action {
            Action::GetRequest | Action::Insert | Action::Issue => {
                if let Some(id) = id {
                    self.under_way.entry(id).or_insert(event.at);
                }
            }
            Action::BackMerge | Action::FrontMerge => self.at(event.at).kind(event).merges += 1,
            Action::Join { .. } => {
                id.map(|id| self.under_way.remove(&id));
                self.at(event.at).kind(event).merges += 1;
            }
            Action::Complete { .. } => {
                let Some(begun) = id.and_then(|id| self.under_way.remove(&id)) else { return };
                let (sectors, time) = (event.sectors.0.into(), event.at.saturating_since(begun));
                self.at(event.at).kind(event).add(&Kind { requests: 1, merges: 0, sectors, time });
            }
            _ => {}
        }
    }

    /// Takes note of what a record comes to.
    pub fn hear(&mut self, told: Told) {
        match told {
            Told::Event(event) => self.see(event),
            Told::Lost(at, id) => {
                self.pass(at);
                self.under_way.remove(&id.to_bits());
            }
        }
    }

    /// Time passes with what is under way, and is shared out to intervals.
    fn pass(&mut self, at: Instant) {
        if self.begin.is_none() {
            (self.begin, self.since) = (Some(at), at);
        }
        if at <= self.since {
            return;
        }
        let count = self.under_way.len() as u128;
        // The last one must be there before: intervals may grow.
        self.at(at);
        while self.since < at {
            let begin = self.begin.unwrap_or(at);
            let every = self.every.as_nanos();
            let place = self.since.saturating_since(begin).as_nanos() / every;
            let end = begin.as_nanos().saturating_add((place + 1).saturating_mul(every));
            let until = at.min(Instant::from_nanos(end));
            let passed = until.saturating_since(self.since);
            if count > 0 {
                let interval = &mut self.all[place as usize];
                interval.busy += passed;
                interval.queue_time += count * u128::from(passed.as_nanos());
            }
            self.since = until;
        }
    }

    /// The interval of a moment.
    fn at(&mut self, at: Instant) -> &mut Interval {
        let passed = at.saturating_since(self.begin.unwrap_or(at)).as_nanos();
        while passed / self.every.as_nanos() >= MOST as u64 {
            self.every = self.every * 2;
            let pairs = self.all.chunks(2).map(|pair| {
                let mut sum = pair[0];
                pair[1..].iter().for_each(|other| sum.add(other));
                sum
            });
            self.all = pairs.collect();
        }
        let place = (passed / self.every.as_nanos()) as usize;
        if place >= self.all.len() {
            self.all.resize(place + 1, Interval::default());
        }
        &mut self.all[place]
    }
}

/// A line for each interval, with the columns of `iostat -x` and the second at which it begins.
impl fmt::Display for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["r", "w", "d"];
        write!(f, "{:>9}", "time")?;
        for name in names {
            let heads = ["/s", "kB/s", "rqm/s"].map(|head| format!("{name}{head}"));
            let more = [format!("%{name}rqm"), format!("{name}_await"), format!("{name}areq-sz")];
            heads.iter().chain(&more).try_for_each(|head| write!(f, "{head:>10}"))?;
        }
        writeln!(f, "{:>10}{:>10}{:>10}{:>8}", "f/s", "f_await", "aqu-sz", "%util")?;
        let seconds = self.every.as_nanos() as f64 / 1e9;
        for (number, interval) in self.all.iter().enumerate() {
            write!(f, "{:>9.3}", number as f64 * seconds)?;
            for kind in [&interval.reads, &interval.writes, &interval.discards] {
                let rate = |count: u64| count as f64 / seconds;
                let columns = [rate(kind.requests), rate(kind.sectors) / 2.0, rate(kind.merges)];
                let means = [kind.merged_percent(), kind.r#await(), kind.mean_size()];
                columns.iter().chain(&means).try_for_each(|it| write!(f, "{it:>10.2}"))?;
            }
            let flushes = &interval.flushes;
            let queue = interval.queue_time as f64 / 1e9 / seconds;
            let busy = interval.busy.as_nanos() as f64 / 1e9 / seconds;
            let flushed = flushes.requests as f64 / seconds;
            write!(f, "{flushed:>10.2}{:>10.2}", flushes.r#await())?;
            writeln!(f, "{queue:>10.2}{:>8.2}", 100.0 * busy)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Sector, Sectors};

    fn event(millis: u64, rq: u64, action: Action) -> Event {
        Event {
            at: Instant::from_nanos(millis * 1_000_000),
            sector: Sector(0),
            sectors: Sectors(8),
            request: Some(RequestId::from_bits(rq)),
            ..Event::note(action)
        }
    }

    fn done(millis: u64, rq: u64) -> Event {
        event(millis, rq, Action::Complete { issued: Instant::ZERO })
    }

    #[test]
    fn time_and_requests_are_shared_out_to_intervals() {
        let mut intervals = Intervals::new(Duration::from_millis(100));
        let events = [
            event(1_000, 1, Action::GetRequest),
            event(1_050, 2, Action::GetRequest),
            event(1_060, 2, Action::BackMerge),
            done(1_150, 1),
            done(1_320, 2),
        ];
        events.iter().for_each(|event| intervals.see(event));
        let [first, second, third, fourth] = intervals.all() else { panic!("four intervals") };
        let millis = Duration::from_millis;
        assert_eq!((first.busy, first.queue_time), (millis(100), 150_000_000));
        assert_eq!((second.busy, second.queue_time), (millis(100), 150_000_000));
        assert_eq!((second.reads.requests, second.reads.time), (1, millis(150)));
        assert_eq!((third.busy, third.reads.requests, first.reads.merges), (millis(100), 0, 1));
        assert_eq!((fourth.busy, fourth.reads.sectors), (millis(20), 8));
        let two = intervals.in_at_most(3);
        assert_eq!((two.every(), two.all().len()), (millis(200), 2));
        assert_eq!(two.all()[0].reads.time, millis(150));
        let text = intervals.to_string();
        assert!(text.lines().all(|line| line.len() == text.lines().next().unwrap().len()));
        assert!(text.lines().next().unwrap().contains("r/s     rkB/s    rrqm/s"), "{text}");
    }

    #[test]
    fn of_a_clock_that_jumps_intervals_become_longer_and_not_more() {
        let mut intervals = Intervals::new(Duration::from_millis(1));
        intervals.see(&event(0, 1, Action::GetRequest));
        intervals.see(&event(1, 2, Action::GetRequest));
        intervals.see(&done(u64::MAX / 2_000_000, 1));
        intervals.see(&done(u64::MAX / 1_000_000, 2));
        assert!(intervals.all().len() <= MOST && intervals.every() > Duration::from_millis(1));
        assert_eq!(intervals.all().iter().map(|it| it.reads.requests).sum::<u64>(), 2);
    }
}
