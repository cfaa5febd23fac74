//! When a process issues its next request: rates, and pauses to think.

use base::{Duration, Instant, Rng};

use super::super::job::{Direction, Pace, PerDirection, Rate, Think};
use super::super::random::Exponential;

const SECOND: u128 = 1_000_000_000;
/// fio does not judge `rate_min` in the first two seconds. Measured with fio 3.33.
const SETTLING: Duration = Duration::from_secs(2);

/// The rates of a process.
pub(super) struct Rates {
    schedules: PerDirection<Option<Schedule>>,
    /// Requests come at random times.
    chance: Option<(Exponential, Rng)>,
    minimum: Option<Minimum>,
}

/// When requests of one direction are due.
struct Schedule {
    rate: Rate,
    /// When the first one was due, had there been no pauses to leave out.
    start: Instant,
    bytes: u64,
    requests: u64,
    /// When the next one is due, if times are random.
    next: Instant,
}

/// The rates below which a process gives up.
struct Minimum {
    rates: PerDirection<Option<Rate>>,
    cycle: Duration,
    /// When the current window began, and what had been done by then.
    since: Instant,
    done: PerDirection<(u64, u64)>,
}

impl Rates {
    pub fn new(pace: &Pace, start: Instant, chance: Rng) -> Rates {
        let schedule = |rate| Schedule { rate, start, bytes: 0, requests: 0, next: start };
        let is_watched = pace.rate_min.iter().any(Option::is_some);
        Rates {
            schedules: pace.rate.map(|rate| rate.map(schedule)),
            chance: pace.poisson.then(|| (Exponential::new(), chance)),
            minimum: is_watched.then(|| Minimum {
                rates: pace.rate_min,
                cycle: pace.rate_cycle,
                since: start + SETTLING,
                done: [(0, 0); 3],
            }),
        }
    }

    /// Whether there is a rate to keep.
    pub fn are_limited(&self) -> bool {
        self.schedules.iter().any(Option::is_some)
    }

    /// When the next request in a direction is due.
    pub fn due(&self, direction: Direction) -> Instant {
        match &self.schedules[direction as usize] {
            None => Instant::ZERO,
            Some(schedule) if self.chance.is_some() => schedule.next,
            Some(schedule) => schedule.start + schedule.time(schedule.bytes, schedule.requests),
        }
    }

    /// A request was issued.
    pub fn count(&mut self, direction: Direction, bytes: u64) {
        let Some(schedule) = &mut self.schedules[direction as usize] else { return };
        schedule.bytes += bytes;
        schedule.requests += 1;
        if let Some((exponential, rng)) = &mut self.chance {
            let mean = u128::from(schedule.time(bytes, 1).as_nanos());
            let pause = mean * u128::from(exponential.draw(rng)) / u128::from(Exponential::UNIT);
            schedule.next += Duration::from_nanos(pause as u64);
        }
    }

    /// What was missed in a pause is not made up for.
    pub fn leave_out(&mut self, pause: Duration) {
        for schedule in self.schedules.iter_mut().flatten() {
            schedule.start += pause;
            schedule.next += pause;
        }
    }

    /// What is to be said when the rate of a cycle that is over fell below the minimum. `done` are
    /// the bytes and requests of each direction so far.
    pub fn missed(&mut self, now: Instant, done: &PerDirection<(u64, u64)>) -> Option<String> {
        let minimum = self.minimum.as_mut()?;
        if now < minimum.since {
            minimum.done = *done;
            return None;
        }
        let elapsed = u128::from(now.since(minimum.since).as_nanos());
        if elapsed < u128::from(minimum.cycle.as_nanos()) {
            return None;
        }
        let before = std::mem::replace(&mut minimum.done, *done);
        minimum.since = now;
        let per_second = |amount: u64| (u128::from(amount) * SECOND / elapsed.max(1)) as u64;
        Direction::ALL.into_iter().find_map(|direction| {
            let rate = minimum.rates[direction as usize]?;
            let (bytes, requests) = before[direction as usize];
            let (more_bytes, more_requests) = done[direction as usize];
            let (option, least, seen, unit) = match rate {
                Rate::Bandwidth(least) => {
                    ("rate_min", least.0, per_second(more_bytes - bytes), "B/s")
                }
                Rate::Requests(least) => {
                    ("rate_iops_min", least, per_second(more_requests - requests), "IOPS")
                }
            };
            (seen < least).then(|| format!("{option}={least} not met, got {seen} {unit}"))
        })
    }
}

impl Schedule {
    /// How long so many bytes and requests take at the rate.
    fn time(&self, bytes: u64, requests: u64) -> Duration {
        let nanos = match self.rate {
            Rate::Bandwidth(rate) => u128::from(bytes) * SECOND / u128::from(rate.0),
            Rate::Requests(rate) => u128::from(requests) * SECOND / u128::from(rate),
        };
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The pauses of a process.
pub(super) struct Pauses {
    think: Think,
    /// Requests that counted before the last pause.
    mark: u64,
    /// When it ended.
    since: Instant,
}

impl Pauses {
    pub fn new(think: Think, start: Instant) -> Pauses {
        Pauses { think, mark: 0, since: start }
    }

    /// Whether it is time for a pause, when so many requests were issued and completed.
    pub fn is_due(&mut self, issued: u64, completed: u64, now: Instant) -> bool {
        let count = if self.think.at_issue { issued } else { completed };
        let by_count = count - self.mark >= u64::from(self.think.blocks);
        let by_time =
            self.think.io_time.is_some_and(|time| now.saturating_since(self.since) >= time);
        if by_count || by_time {
            self.mark = count;
        }
        by_count || by_time
    }

    /// A pause has ended.
    pub fn ended(&mut self, now: Instant) {
        self.since = now;
    }
}
