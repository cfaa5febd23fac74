//! How tokens follow percentiles of latency (rules kyber-10 to kyber-14; kernels from 5.1 on).
//!
//! Two histograms for each domain: how long requests took from their allocation on, and how long
//! the device had them. A timer looks at both and says which domain gets another number of tokens.

use super::rules::{Domain, MOST_DOMAINS};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::Jiffies;

/// Buckets of a histogram; the first half is within the target.
const BUCKETS: usize = 8;
const GOOD: usize = BUCKETS / 2;
/// Samples after which a histogram is looked at, however young it is.
const ENOUGH: u32 = 500;

/// Which latency is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// From allocation to completion.
    Total,
    /// From the issue to completion.
    Io,
}

/// Latencies in parts of the target.
#[derive(Clone, Copy, Debug, Default)]
struct Histogram([u32; BUCKETS]);

impl Histogram {
    /// Rule kyber-10.
    fn add(&mut self, latency: u64, ends: &Ends) {
        // Cheaper than to divide, and without a branch: a search by halves.
        let mut bucket = 0;
        for half in [4, 2, 1] {
            bucket += half * usize::from(latency > ends.0[(bucket + half - 1) % BUCKETS]);
        }
        self.0[bucket % BUCKETS] += 1;
    }

    fn samples(&self) -> u32 {
        self.0.iter().sum()
    }

    /// The bucket that has so many per cent of all samples below its end (rule kyber-12).
    fn percentile(&self, percent: u32) -> usize {
        let mut left = (self.samples() * percent).div_ceil(100);
        for (bucket, count) in self.0[..BUCKETS - 1].iter().enumerate() {
            if *count >= left {
                return bucket;
            }
            left -= count;
        }
        BUCKETS - 1
    }
}

/// The largest latencies of all buckets; nobody asks for that of the last one.
#[derive(Clone, Copy, Debug)]
struct Ends([u64; BUCKETS]);

impl Ends {
    /// Of a domain with this target.
    fn of(target: u64) -> Ends {
        let width = (target / GOOD as u64).max(1);
        Ends(core::array::from_fn(|bucket| (bucket as u64 + 1).saturating_mul(width)))
    }
}

/// What is known of a domain.
#[derive(Clone, Copy, Debug)]
struct Known {
    ends: Ends,
    total: Histogram,
    io: Histogram,
    /// When histograms are looked at that have too few samples.
    due: Option<Jiffies>,
    /// What the total latency last was while the device was good.
    saved: Option<usize>,
}

/// What the timer finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Which latency a domain has, as the tracepoint kyber_latency tells of it.
    Latency { domain: usize, what: &'static str, bucket: usize, samples: u32 },
    /// How many tokens it has from now on.
    Tokens { domain: usize, tokens: u32 },
}

/// Histograms of all domains that have a target.
#[derive(Clone, Debug)]
pub(super) struct Percentiles {
    known: Box<[Known; MOST_DOMAINS]>,
}

impl Percentiles {
    /// Without samples, for domains that have these targets, in nanoseconds.
    pub fn new(targets: &[u64; MOST_DOMAINS]) -> Percentiles {
        let known = |target: u64| Known {
            ends: Ends::of(target),
            total: Histogram::default(),
            io: Histogram::default(),
            due: None,
            saved: None,
        };
        Percentiles { known: Box::new(targets.map(known)) }
    }

    /// Samples to come are judged by another target, in nanoseconds.
    pub fn set_target(&mut self, domain: usize, target: u64) {
        self.known[domain].ends = Ends::of(target);
    }

    /// A request is done (rule kyber-10); latencies in nanoseconds.
    pub fn add(&mut self, domain: usize, total: u64, io: u64) {
        let known = &mut self.known[domain];
        known.total.add(total, &known.ends);
        known.io.add(io, &known.ends);
    }

    /// The timer looks at all domains (rules kyber-12 and kyber-13), of which `depths` says how
    /// many tokens they have. What it finds is appended in its order.
    pub fn adjust(
        &mut self,
        domains: &[Domain],
        now: Jiffies,
        second: Jiffies,
        depths: impl Fn(usize) -> u32,
        found: &mut Vec<Found>,
    ) {
        let with_target = || domains.iter().enumerate().filter(|(_, it)| it.target.is_some());
        let mut is_bad = false;
        for (domain, _) in with_target() {
            let io = self.look(domain, Kind::Io, now, second, found);
            is_bad |= io.is_some_and(|bucket| bucket >= GOOD);
        }
        for (domain, it) in with_target() {
            let total = self.look(domain, Kind::Total, now, second, found);
            let saved = &mut self.known[domain].saved;
            let bucket = match is_bad {
                true => {
                    let before = saved.take();
                    total.or(before)
                }
                false => {
                    *saved = total.or(*saved);
                    total
                }
            };
            let Some(bucket) = bucket.filter(|bucket| is_bad || *bucket >= GOOD) else { continue };
            let depth = depths(domain);
            let tokens = (depth * (bucket as u32 + 1) / GOOD as u32).clamp(1, it.tokens);
            if tokens != depth {
                found.push(Found::Tokens { domain, tokens });
            }
        }
    }

    /// Rule kyber-11: takes a histogram that has enough samples, or is old enough.
    fn look(
        &mut self,
        domain: usize,
        kind: Kind,
        now: Jiffies,
        second: Jiffies,
        found: &mut Vec<Found>,
    ) -> Option<usize> {
        let known = &mut self.known[domain];
        let (histogram, percent, what) = match kind {
            Kind::Io => (&mut known.io, 90, "I/O p90"),
            Kind::Total => (&mut known.total, 99, "total p99"),
        };
        let samples = histogram.samples();
        if samples == 0 {
            return None;
        }
        let due = *known.due.get_or_insert(now + second);
        if samples < ENOUGH && due > now {
            return None;
        }
        known.due = None;
        let bucket = core::mem::take(histogram).percentile(percent);
        found.push(Found::Latency { domain, what, bucket, samples });
        Some(bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_fall_into_quarters_of_the_target() {
        let mut histogram = Histogram::default();
        for latency in [0, 1, 500, 501, 2000, 2001, 4000, u64::MAX] {
            histogram.add(latency, &Ends::of(2000));
        }
        assert_eq!(histogram.0, [3, 1, 0, 1, 1, 0, 0, 2]);
        let mut tiny = Histogram::default();
        (0..4).for_each(|latency| tiny.add(latency, &Ends::of(0)));
        assert_eq!(tiny.0, [2, 1, 1, 0, 0, 0, 0, 0]);
        for target in [0, 7, 2000, u64::MAX] {
            let ends = Ends::of(target);
            for latency in ends.0.iter().flat_map(|end| [*end, end.saturating_add(1)]) {
                let mut one = Histogram::default();
                one.add(latency, &ends);
                let below = ends.0[..BUCKETS - 1].iter().filter(|end| latency > **end).count();
                assert_eq!(one.0[below], 1, "{latency} of {target}");
            }
        }
    }

    #[test]
    fn a_percentile_is_the_bucket_in_which_it_lies() {
        let histogram = Histogram([90, 0, 9, 0, 0, 0, 0, 1]);
        assert_eq!([90, 91, 99, 100].map(|it| histogram.percentile(it)), [0, 2, 2, 7]);
    }
}
