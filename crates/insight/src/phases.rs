//! The phases of requests as `btt` has them: Q2Q, Q2G, G2I, Q2M, I2D, M2D, D2C and Q2C, with
//! merges, seeks, plugs and depth.
//!
//! As with `btt`, D2C and Q2C count for each bio, Q2G, G2I and I2D for each request. Other than
//! `btt`, zero stays zero (it prints 1 ns), a bio at time zero counts, and medians are medians,
//! within 1/128 (`btt` prints the first bucket that has half of all, or else zero).

use crate::recorded::Told;
use crate::requests::tables::Table;
use crate::spread::Spread;
use base::{Duration, Histogram, Instant, Sector};
use block::{Action, ContextId, Event, RequestId};
use std::fmt;

/// A request under way.
#[derive(Clone, Copy, Debug, Default)]
struct Going {
    /// When its bios came, and when those of them that were merged.
    queued: Spread,
    merged: Spread,
    allocated: Option<Instant>,
    inserted: Option<Instant>,
    issued: Option<Instant>,
    /// The device has it.
    is_with_device: bool,
}

/// How far apart what follows each other lies.
#[derive(Clone, Debug, Default)]
pub struct Seeks {
    /// Distances in sectors, as nanoseconds; zero if the two touch.
    distances: Histogram,
    zeros: u64,
    last: Option<(Sector, Sector)>,
}

impl Seeks {
    fn add(&mut self, event: &Event) {
        let end = event.sector.0.saturating_add(u64::from(event.sectors.0));
        let start = event.sector.0;
        let (last, last_end) = self.last.map_or((0, 0), |(last, end)| (last.0, end.0));
        let distance = match () {
            () if start > last_end => start - last_end,
            () if end < last => last - start,
            () => 0,
        };
        self.zeros += u64::from(distance == 0);
        self.distances.record(Duration::from_nanos(distance));
        self.last = Some((event.sector, Sector(end)));
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.distances.count()
    }

    /// How many of them lie at the one before.
    pub fn none(&self) -> u64 {
        self.zeros
    }

    /// The mean distance in sectors.
    pub fn mean(&self) -> f64 {
        self.distances.sum() as f64 / self.count().max(1) as f64
    }

    /// The median in sectors, within 1/128.
    pub fn median(&self) -> u64 {
        match 2 * self.zeros >= self.count() {
            true => 0,
            false => self.distances.quantile(1, 2).as_nanos(),
        }
    }
}

/// What the device was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bios that came in.
    pub queued: u64,
    /// Commands.
    pub issued: u64,
    /// The shortest in sectors.
    pub min: u32,
    /// The longest.
    pub max: u32,
    /// All together.
    pub total: u64,
}

/// Adds up phases.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    /// From bio to bio.
    pub q2q: Spread,
    /// From a bio to its request.
    pub q2g: Spread,
    /// From there to the scheduler.
    pub g2i: Spread,
    /// From a bio to its merge.
    pub q2m: Spread,
    /// From the scheduler to the device.
    pub i2d: Spread,
    /// From a merge to the device.
    pub m2d: Spread,
    /// With the device.
    pub d2c: Spread,
    /// From a bio to its end.
    pub q2c: Spread,
    /// Lengths and merges.
    pub sizes: Sizes,
    /// From bio to bio.
    pub q2q_seeks: Seeks,
    /// From command to command.
    pub d2d_seeks: Seeks,
    /// Plugs that were begun.
    pub plugs: u64,
    /// Those that ended on purpose, and requests in them.
    pub unplugs: (u64, u64),
    /// Those that ended by a timer, or because their task slept.
    pub timer_unplugs: (u64, u64),
    /// The most commands that the device had.
    pub most: u32,
    last_queued: Option<Instant>,
    arrivals: Table<ContextId, Instant>,
    going: Table<u64, Going>,
    in_device: u32,
    busy: Duration,
    depth_time: u128,
    since: Instant,
}

impl Phases {
    /// Takes note of an event.
    pub fn see(&mut self, event: &Event) {
        match &event.action {
            Action::Queue => self.queued(event),
            Action::GetRequest => {
                let queued = self.arrives(event);
                let mut going = Going { allocated: Some(event.at), ..Going::default() };
                if let Some(queued) = queued {
                    self.q2g.add(event.at.saturating_since(queued));
                    going.queued.add(since_zero(queued));
                }
                self.going.extend(event.request.map(|id| (id.to_bits(), going)));
            }
            Action::BackMerge | Action::FrontMerge => self.merged(event),
            Action::Insert => self.inserted(event),
            Action::Join { into } => self.joined(event, *into),
            Action::Issue => self.issued(event),
            Action::Requeue => {
                self.pass(event.at);
                self.in_device = self.in_device.saturating_sub(1);
                if let Some(going) = self.of(event) {
                    going.is_with_device = false;
                }
            }
            Action::Complete { .. } => self.completed(event),
            Action::Plug => self.plugs += 1,
            Action::Unplug { depth } => count(&mut self.unplugs, *depth),
            Action::TimerUnplug { depth } => count(&mut self.timer_unplugs, *depth),
            _ => {}
        }
    }

    /// Takes note of what a record comes to.
    pub fn hear(&mut self, told: Told) {
        match told {
            Told::Event(event) => self.see(event),
            Told::Lost(at, id) => self.lose(at, id),
        }
    }

    /// Nothing will be heard of a request any more.
    fn lose(&mut self, at: Instant, id: RequestId) {
        self.pass(at);
        let gone = self.going.remove(&id.to_bits());
        let was_with_device = gone.is_some_and(|it| it.is_with_device);
        self.in_device = self.in_device.saturating_sub(was_with_device.into());
    }

    /// The mean number of commands in the device while it had any.
    pub fn depth(&self) -> f64 {
        self.depth_time as f64 / (self.busy.as_nanos() as f64).max(1.0)
    }

    /// How long the device had any.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    fn queued(&mut self, event: &Event) {
        if let Some(last) = self.last_queued.replace(event.at) {
            self.q2q.add(event.at.saturating_since(last));
        }
        self.sizes.queued += 1;
        self.q2q_seeks.add(event);
        self.arrivals.insert(event.context, event.at);
    }

    /// When the bio came that its task has in hand; parts of it came when the whole did.
    fn arrives(&mut self, event: &Event) -> Option<Instant> {
        self.arrivals.remove(&event.context)
    }

    fn of(&mut self, event: &Event) -> Option<&mut Going> {
        self.going.get_mut(&event.request?.to_bits())
    }

    fn merged(&mut self, event: &Event) {
        let Some(queued) = self.arrives(event) else { return };
        self.q2m.add(event.at.saturating_since(queued));
        if let Some(going) = self.of(event) {
            going.queued.add(since_zero(queued));
            going.merged.add(since_zero(event.at));
        }
    }

    fn inserted(&mut self, event: &Event) {
        let Some(going) = self.of(event).filter(|it| it.inserted.is_none()) else { return };
        going.inserted = Some(event.at);
        if let Some(allocated) = going.allocated {
            self.g2i.add(event.at.saturating_since(allocated));
        }
    }

    fn joined(&mut self, event: &Event, into: RequestId) {
        let gone = event.request.and_then(|id| self.going.remove(&id.to_bits()));
        if let (Some(gone), Some(survivor)) = (gone, self.going.get_mut(&into.to_bits())) {
            survivor.queued.merge(&gone.queued);
            survivor.merged.merge(&gone.merged);
        }
    }

    fn issued(&mut self, event: &Event) {
        self.pass(event.at);
        self.in_device += 1;
        self.most = self.most.max(self.in_device);
        let Some(id) = event.request else { return };
        let going = self.going.entry(id.to_bits()).or_default();
        let inserted = going.inserted.filter(|_| going.issued.is_none());
        going.issued = Some(event.at);
        going.is_with_device = true;
        let merged = going.merged.until(event.at.as_nanos());
        going.merged = Spread::default();
        self.m2d.merge(&merged);
        if let Some(inserted) = inserted {
            self.i2d.add(event.at.saturating_since(inserted));
        }
        let (sizes, sectors) = (&mut self.sizes, event.sectors.0);
        sizes.min = if sizes.issued == 0 { sectors } else { sizes.min.min(sectors) };
        sizes.max = sizes.max.max(sectors);
        sizes.issued += 1;
        sizes.total += u64::from(sectors);
        self.d2d_seeks.add(event);
    }

    fn completed(&mut self, event: &Event) {
        self.pass(event.at);
        let gone = event.request.and_then(|id| self.going.remove(&id.to_bits()));
        let Some(going) = gone else { return };
        let Some(issued) = going.issued else { return };
        self.in_device = self.in_device.saturating_sub(1);
        self.q2c.merge(&going.queued.until(event.at.as_nanos()));
        let service = event.at.saturating_since(issued);
        let count = going.queued.count.max(1);
        let sum = u128::from(count) * u128::from(service.as_nanos());
        self.d2c.merge(&Spread { count, min: service, max: service, sum });
    }

    fn pass(&mut self, at: Instant) {
        let passed = at.saturating_since(self.since);
        self.since = self.since.max(at);
        if self.in_device > 0 {
            self.busy += passed;
            self.depth_time += u128::from(self.in_device) * u128::from(passed.as_nanos());
        }
    }

    /// Phases that `btt` shows, with their names.
    pub fn rows(&self) -> [(&'static str, &Spread); 8] {
        [
            ("Q2Q", &self.q2q),
            ("Q2G", &self.q2g),
            ("G2I", &self.g2i),
            ("Q2M", &self.q2m),
            ("I2D", &self.i2d),
            ("M2D", &self.m2d),
            ("D2C", &self.d2c),
            ("Q2C", &self.q2c),
        ]
    }

    /// What a phase is of Q2C, in percent.
    pub fn percent(&self, phase: &Spread) -> f64 {
        100.0 * phase.sum as f64 / (self.q2c.sum as f64).max(1.0)
    }
}

fn since_zero(at: Instant) -> Duration {
    Duration::from_nanos(at.as_nanos())
}

fn count(unplugs: &mut (u64, u64), depth: u32) {
    unplugs.0 += 1;
    unplugs.1 += u64::from(depth);
}

/// The tables of `btt`: all phases, overhead, merges, seeks, plugs and depth.
impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = |width: usize| "-".repeat(width);
        writeln!(f, "{:>15} {:>13} {:>13} {:>13} {:>11}", "ALL", "MIN", "AVG", "MAX", "N")?;
        let dashes = [15, 13, 13, 13, 11].map(rule).join(" ");
        writeln!(f, "{dashes}\n")?;
        let seconds = |nanos: f64| nanos / 1e9;
        for (name, phase) in self.rows().into_iter().filter(|(_, phase)| phase.count > 0) {
            let (min, max) = (phase.min.as_nanos() as f64, phase.max.as_nanos() as f64);
            let [min, mean, max] = [min, phase.mean(), max].map(seconds);
            let count = phase.count;
            writeln!(f, "{name:<15} {min:>13.9} {mean:>13.9} {max:>13.9} {count:>11}")?;
        }
        let parts = [&self.q2g, &self.g2i, &self.q2m, &self.i2d, &self.d2c];
        writeln!(f, "\n      Q2G       G2I       Q2M       I2D       D2C")?;
        for part in parts {
            write!(f, "{:>8.4}% ", self.percent(part))?;
        }
        let Sizes { queued, issued, min, max, total } = self.sizes;
        let ratio = queued as f64 / issued.max(1) as f64;
        let mean = total / issued.max(1);
        writeln!(f, "\n\n      #Q       #D   Ratio   BLKmin   BLKavg   BLKmax    Total")?;
        writeln!(f, "{queued:>8} {issued:>8} {ratio:>7.1} {min:>8} {mean:>8} {max:>8} {total:>8}")?;
        writeln!(f, "\n              NSEEKS            MEAN          MEDIAN   AT THE LAST")?;
        for (name, seeks) in [("Q2Q", &self.q2q_seeks), ("D2D", &self.d2d_seeks)] {
            let (count, mean, median) = (seeks.count(), seeks.mean(), seeks.median());
            writeln!(f, "{name:<4} {count:>15} {mean:>15.1} {median:>15} {:>13}", seeks.none())?;
        }
        let (unplugs, requests) = self.unplugs;
        let each = requests as f64 / unplugs.max(1) as f64;
        writeln!(f, "\nplugs {} (timer {})  IOs/Unp {each:.1}", self.plugs, self.timer_unplugs.0)?;
        writeln!(f, "depth {:.2} while busy, at most {}", self.depth(), self.most)
    }
}
