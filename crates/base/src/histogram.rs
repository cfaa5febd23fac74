//! A histogram of durations with the bins of fio.
//!
//! The bins are those of fio's `json+` output: below 128 ns a bin for every nanosecond, above it
//! 64 bins for each power of two, so that the middle of a bin is wrong by at most 1/128 of the
//! value. Fio's end at 17.1 s; these go on in the same way to [`Histogram::END`], 9.8 hours.
//! Count, sum, extremes and spread are exact. Only the bins between the shortest and the
//! longest duration so far take memory. It shows nothing: units, percentages and layout are left
//! to whoever prints it.

use alloc::vec::Vec;

use crate::time::Duration;

/// Bins in a group; the first two groups count single nanoseconds, each of the others spans one
/// power of two (fio 3.33, json+).
const GROUP: usize = 64;
/// Number of groups: fio's 29, which end at 2^34 ns, and eleven more, so that no run is too long.
const GROUPS: usize = 40;
/// The last bin, which takes whatever is [`Histogram::END`] or longer.
const LAST: usize = GROUP * GROUPS;

/// How often which durations occurred.
#[derive(Clone, Debug)]
pub struct Histogram {
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    sum_of_squares: u128,
    /// Index of the first bin in `bins`; a multiple of [`GROUP`].
    first: usize,
    /// Whole groups, from the one of the shortest to the one of the longest duration.
    bins: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        let (bins, min) = (Vec::new(), u64::MAX);
        Histogram { count: 0, min, max: 0, sum: 0, sum_of_squares: 0, first: 0, bins }
    }
}

impl Histogram {
    /// Where the bins end: of a quantile that says this, no more is known than that it is as long.
    pub const END: Duration = Duration::from_nanos(1 << 45);

    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        self.count_n(duration, 1);
    }

    /// Counts the same duration `n` times.
    pub fn record_n(&mut self, duration: Duration, n: u64) {
        if n > 0 {
            self.count_n(duration, n);
        }
    }

    // Inlined because squares of a single duration need no wide product.
    #[inline(always)]
    fn count_n(&mut self, duration: Duration, n: u64) {
        let nanos = duration.as_nanos();
        let index = bin_of(nanos);
        match self.bins.get_mut(index.wrapping_sub(self.first)) {
            Some(bin) => *bin += n,
            None => self.record_in_new_group(index, n),
        }
        self.count += n;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        let sum = u128::from(nanos) * u128::from(n);
        self.sum += sum;
        // Room for 2^40 records of 4.9 hours each; beyond it the spread is a lower bound.
        let squares = sum.saturating_mul(u128::from(nanos));
        self.sum_of_squares = self.sum_of_squares.saturating_add(squares);
    }

    /// Counts everything that `other` has counted.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        self.cover(other.first);
        self.cover(other.first + other.bins.len() - 1);
        let offset = other.first - self.first;
        for (bin, more) in self.bins[offset..].iter_mut().zip(&other.bins) {
            *bin += more;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest duration, exactly; zero when there is none.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.count == 0 { 0 } else { self.min })
    }

    /// The longest duration, exactly; zero when there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// All durations together in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean, rounded down to a nanosecond; zero when there is none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos((self.sum / u128::from(self.count.max(1))) as u64)
    }

    /// The standard deviation of the population that the durations are a sample of (division by
    /// count - 1, as fio does it), rounded down; zero when there are fewer than two.
    pub fn stddev(&self) -> Duration {
        if self.count < 2 {
            return Duration::ZERO;
        }
        // sum^2 / count without the square, which could be too large: sum = mean * count + rest.
        let count = u128::from(self.count);
        let (mean, rest) = (self.sum / count, self.sum % count);
        let square = mean.saturating_mul(self.sum).saturating_add(rest * mean);
        let square = square.saturating_add(rest * rest / count);
        let variance = self.sum_of_squares.saturating_sub(square) / (count - 1);
        Duration::from_nanos(variance.isqrt() as u64)
    }

    /// The duration below which `numerator / denominator` of all durations are, by fio's rule.
    ///
    /// The bins are walked from the shortest until they hold at least that part of all durations;
    /// the answer is the middle of the bin where that happens. It is never below the shortest or
    /// above the longest duration, as fio's may be. It is [`Histogram::END`] where the bins end.
    /// `quantile(999, 1000)` is fio's percentile 99.9. Zero when nothing was recorded.
    /// Panics when the part is more than the whole.
    #[track_caller]
    pub fn quantile(&self, numerator: u64, denominator: u64) -> Duration {
        assert!(numerator <= denominator, "{numerator}/{denominator} is more than everything");
        // fio 3.33, by experiment: the rank is rounded up, and is at least 1.
        let rank = u128::from(self.count) * u128::from(numerator);
        let rank = rank.div_ceil(u128::from(denominator.max(1))).max(1) as u64;
        let mut seen = 0;
        let reached = self.bins().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        reached.map_or(Duration::ZERO, |(middle, _)| {
            Duration::from_nanos(middle.clamp(self.min, self.max)).min(Self::END)
        })
    }

    /// The bins that hold anything, from the shortest: middle in nanoseconds, and how many.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> {
        let bins = self.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        bins.map(|(offset, count)| (middle_of(self.first + offset), *count))
    }

    /// The slow path of recording: a group is touched for the first time.
    #[cold]
    #[inline(never)]
    fn record_in_new_group(&mut self, index: usize, n: u64) {
        self.cover(index);
        self.bins[index - self.first] += n;
    }

    /// Makes room for the group of the bin with this index, and for all between it and the others.
    fn cover(&mut self, index: usize) {
        let first = index / GROUP * GROUP;
        if self.bins.is_empty() {
            self.first = first;
        }
        if first < self.first {
            let missing = self.first - first;
            self.bins.splice(..0, core::iter::repeat_n(0, missing));
            self.first = first;
        }
        let end = first + GROUP - self.first;
        if end > self.bins.len() {
            self.bins.resize(end, 0);
        }
    }
}

/// Index of the bin that counts this many nanoseconds.
fn bin_of(nanos: u64) -> usize {
    // The highest 7 bits of the value; the first of them is set but for values below 64.
    let shift = 63_u32.saturating_sub(nanos.leading_zeros() + 6);
    (GROUP * shift as usize + (nanos >> shift) as usize).min(LAST)
}

/// The middle of the bin with this index, in nanoseconds; of the last, open one its start.
fn middle_of(index: usize) -> u64 {
    if index < 2 * GROUP {
        return index as u64;
    }
    if index == LAST {
        return Histogram::END.as_nanos();
    }
    let shift = index / GROUP - 1;
    let leading = (GROUP + index % GROUP) as u64;
    (leading << shift) + (1 << (shift - 1))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn of(nanos: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        nanos.iter().for_each(|n| histogram.record(Duration::from_nanos(*n)));
        histogram
    }

    fn percentiles(histogram: &Histogram, percents: &[u64]) -> Vec<u64> {
        percents.iter().map(|percent| histogram.quantile(*percent, 100).as_nanos()).collect()
    }

    #[test]
    fn bins_are_those_of_fio() {
        // Values and keys of bins as fio 3.33 printed them.
        for (nanos, key) in [(10_656, 10_688), (13_781, 13_760), (13_441, 13_504), (30, 30)] {
            assert_eq!(of(&[nanos]).bins().collect::<Vec<_>>(), [(key, 1)]);
        }
    }

    #[test]
    fn the_last_bin_takes_what_is_too_long() {
        let end = Histogram::END.as_nanos();
        let histogram = of(&[u64::MAX, end, end - 1]);
        let bins: Vec<_> = histogram.bins().collect();
        assert_eq!(bins[1..], [(end, 2)]);
        assert_eq!(histogram.max(), Duration::MAX);
        assert_eq!(histogram.quantile(1, 1), Histogram::END);
    }

    #[test]
    fn what_takes_minutes_is_told_from_what_takes_seconds() {
        let seconds = |it: u64| it * 1_000_000_000;
        let histogram = of(&[seconds(18), seconds(60), seconds(3600)]);
        let median = histogram.quantile(1, 2).as_nanos();
        assert!(median.abs_diff(seconds(60)) * 128 <= seconds(60), "{median}");
        assert!(histogram.quantile(1, 1).as_nanos().abs_diff(seconds(3600)) * 128 <= seconds(3600));
    }

    #[test]
    fn percentiles_are_those_of_fio() {
        // Three runs of fio 3.33 over its null engine, with the percentiles it printed.
        let ten = of(&[20, 20, 20, 20, 20, 20, 20, 40, 40, 14_792]);
        assert_eq!(
            percentiles(&ten, &[1, 50, 70, 75, 90, 95, 100]),
            [20, 20, 20, 40, 40, 14_784, 14_784]
        );
        let two = of(&[30, 13_781]);
        assert_eq!(percentiles(&two, &[1, 45, 50, 55, 100]), [30, 30, 30, 13_760, 13_760]);
        assert_eq!(two.mean(), Duration::from_nanos(6_905));
        assert_eq!(two.stddev(), Duration::from_nanos(9_723));
    }

    #[test]
    fn an_empty_histogram_is_all_zero() {
        let empty = of(&[]);
        assert_eq!((empty.count(), empty.min(), empty.max()), (0, Duration::ZERO, Duration::ZERO));
        assert_eq!((empty.mean(), empty.stddev()), (Duration::ZERO, Duration::ZERO));
        assert_eq!(empty.quantile(1, 2), Duration::ZERO);
        assert_eq!(empty.bins().count(), 0);
    }

    #[test]
    fn the_spread_of_long_times_does_not_overflow() {
        let hour = 3_600_000_000_000;
        let mut histogram = Histogram::new();
        histogram.record_n(Duration::from_nanos(hour), 1 << 30);
        histogram.record_n(Duration::from_nanos(3 * hour), 1 << 30);
        assert_eq!(histogram.mean(), Duration::from_nanos(2 * hour));
        // 2^31 / (2^31 - 1) more than the square of one hour.
        assert_eq!(histogram.stddev(), Duration::from_nanos(hour + 838));
    }

    fn any_magnitude() -> impl Strategy<Value = u64> {
        (0u32..48).prop_flat_map(|bits| 0u64..1 << bits)
    }

    proptest! {
        #[test]
        fn the_middle_of_a_bin_is_off_by_at_most_a_128th(nanos in 0u64..1 << 45) {
            let middle = middle_of(bin_of(nanos));
            prop_assert!(middle.abs_diff(nanos) * 128 <= nanos);
            prop_assert_eq!(bin_of(middle), bin_of(nanos));
        }

        #[test]
        fn it_agrees_with_a_sorted_list(
            mut nanos in prop::collection::vec(any_magnitude(), 1..80),
            percent in 0u64..=100
        ) {
            let histogram = of(&nanos);
            nanos.sort_unstable();
            let count = nanos.len() as u64;
            prop_assert_eq!(histogram.count(), count);
            prop_assert_eq!(histogram.min().as_nanos(), nanos[0]);
            prop_assert_eq!(histogram.max().as_nanos(), nanos[nanos.len() - 1]);
            let sum: u64 = nanos.iter().sum();
            prop_assert_eq!(histogram.sum(), u128::from(sum));
            prop_assert_eq!(histogram.mean().as_nanos(), sum / count);
            let rank = (count * percent).div_ceil(100).max(1);
            let middle = middle_of(bin_of(nanos[rank as usize - 1]));
            let expected = middle.clamp(nanos[0], nanos[nanos.len() - 1]);
            let expected = expected.min(Histogram::END.as_nanos());
            prop_assert_eq!(histogram.quantile(percent, 100).as_nanos(), expected);
            let mean = sum as f64 / count as f64;
            let squares: f64 = nanos.iter().map(|n| (*n as f64 - mean).powi(2)).sum();
            let deviation = (squares / (count.max(2) - 1) as f64).sqrt();
            let error = (histogram.stddev().as_nanos() as f64 - deviation).abs();
            prop_assert!(error <= 1.0 + deviation * 1e-9, "{error} of {deviation}");
        }

        #[test]
        fn merging_is_recording_both(
            left in prop::collection::vec(0u64..1 << 46, 0..20),
            right in prop::collection::vec(0u64..1 << 20, 0..20)
        ) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let both = of(&[left, right].concat());
            prop_assert_eq!(merged.bins().collect::<Vec<_>>(), both.bins().collect::<Vec<_>>());
            let facts = |h: &Histogram| vec![h.min(), h.max(), h.mean(), h.stddev()];
            prop_assert_eq!(facts(&merged), facts(&both));
            prop_assert_eq!((merged.count(), merged.sum()), (both.count(), both.sum()));
        }
    }
}
