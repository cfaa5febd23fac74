//! What is said of a set of durations: extremes, mean, spread, percentiles, and how many are longer
//! than a bound.

use base::{Duration, Histogram};
use std::sync::Arc;

/// The percentiles of fio's default list, in hundredths of a percent.
pub const PERCENTILES: [u64; 17] = [
    100, 500, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 9500, 9900, 9950, 9990, 9995,
    9999,
];

/// A histogram, summed up.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Latency {
    /// How many durations there were.
    pub count: u64,
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// The mean, rounded down.
    pub mean: Duration,
    /// The standard deviation, as fio computes it.
    pub stddev: Duration,
    /// Of each of [`PERCENTILES`], the duration that so many stay below or reach; empty when
    /// there was none.
    pub percentiles: Vec<(u64, Duration)>,
    /// A percentile that is as long as this may be longer: the histogram ends here.
    pub ceiling: Duration,
    /// Middles of the bins of the histogram that hold anything, the shortest first, and how many
    /// each holds; empty where only what is above is known.
    pub bins: Arc<[(Duration, u64)]>,
}

impl Latency {
    /// Sums up a histogram.
    pub fn of(histogram: &Histogram) -> Latency {
        let percentile = |it: u64| (it, histogram.quantile(it, 10_000));
        let percentiles = match histogram.count() {
            0 => Vec::new(),
            _ => PERCENTILES.iter().copied().map(percentile).collect(),
        };
        Latency {
            count: histogram.count(),
            min: histogram.min(),
            max: histogram.max(),
            mean: histogram.mean(),
            stddev: histogram.stddev(),
            percentiles,
            ceiling: Histogram::END,
            bins: Latency::bins_of(histogram),
        }
    }

    /// The bins of a histogram as they are kept here.
    pub fn bins_of(histogram: &Histogram) -> Arc<[(Duration, u64)]> {
        histogram.bins().map(|(middle, count)| (Duration::from_nanos(middle), count)).collect()
    }

    /// How many per cent are longer than a bound, by the middles of their bins: so of those within
    /// 1/128 of the bound it is not known which are. None where no bins are known.
    pub fn percent_over(&self, bound: Duration) -> Option<f64> {
        let count_of = |it: &[(Duration, u64)]| it.iter().map(|(_, count)| count).sum::<u64>();
        let from = if self.min > bound {
            0
        } else if self.max <= bound {
            self.bins.len()
        } else {
            self.bins.partition_point(|(middle, _)| *middle <= bound)
        };
        let (over, all) = (count_of(&self.bins[from..]), count_of(&self.bins));
        (all > 0).then(|| 100.0 * over as f64 / all as f64)
    }

    /// Whether a percentile may be longer than is said, because the histogram ends there.
    pub fn is_cut_off(&self, hundredths: u64) -> bool {
        self.percentile(hundredths).is_some_and(|it| it >= self.ceiling && it < self.max)
    }

    /// A percentile of [`PERCENTILES`], if anything was measured.
    pub fn percentile(&self, hundredths: u64) -> Option<Duration> {
        self.percentiles.iter().find(|(it, _)| *it == hundredths).map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_all_percentiles_or_none() {
        let mut histogram = Histogram::new();
        assert_eq!(Latency::of(&histogram).percentile(9900), None);
        (1..=100).for_each(|nanos| histogram.record(Duration::from_nanos(nanos)));
        let latency = Latency::of(&histogram);
        assert_eq!(latency.percentile(5000), Some(Duration::from_nanos(50)));
        assert_eq!(latency.percentile(9900), Some(Duration::from_nanos(99)));
        assert_eq!(latency.percentiles.len(), PERCENTILES.len());
    }

    #[test]
    fn what_is_longer_than_a_bound_is_counted() {
        let mut histogram = Histogram::new();
        let millis = Duration::from_millis;
        assert_eq!(Latency::of(&histogram).percent_over(millis(40)), None);
        [1, 39, 41, 200].into_iter().for_each(|it| histogram.record(millis(it)));
        let latency = Latency::of(&histogram);
        let over = |it| latency.percent_over(it).unwrap();
        assert_eq!([2, 40, 45, 200].map(|it| over(millis(it))), [75.0, 50.0, 25.0, 0.0]);
        assert_eq!(over(Duration::from_nanos(1)), 100.0);
        let known = Latency { bins: Arc::default(), ..latency };
        assert_eq!(known.percent_over(millis(40)), None);
    }
}
