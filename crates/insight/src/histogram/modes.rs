//! Where durations heap up.
//!
//! A kernel density on a logarithmic scale, with a binomial kernel of nine points, whose standard
//! deviation is 1.4 points. There are 8 points for each doubling, or 16, 32 or 64 where durations
//! are many: the most at which the highest peak has 500 durations in each of its points, so that
//! chance moves it by two hundredths. Then the kernel is 13 % of the value wide, or 7, 3 or 1.6 %.
//! A mode is a peak that rises above the valley to a higher peak by a tenth of the highest peak,
//! and that has, between its valleys, at least one duration of a hundred. All of it is whole
//! numbers.

use base::{Duration, Histogram};
use serde::Serialize;

/// Points for each doubling: as many of these as there are durations enough for,
const POINTS: [usize; 3] = [64, 32, 16];
/// or so many.
const FEWEST: Scale = Scale(8);
/// Durations in each point of the highest peak, for more points than the fewest. The kernel makes
/// 0.44 parts of the square root of chance, so it is 2 %.
const ENOUGH: u64 = 500;
/// The kernel; its sum is 256.
const KERNEL: [u64; 9] = [1, 8, 28, 56, 70, 56, 28, 8, 1];
const WEIGHT: u64 = 256;
const HALF: usize = KERNEL.len() / 2;
/// A peak rises by this part of the highest.
const RISE: u64 = 10;
/// And has this part of all durations.
const SHARE: u64 = 100;

/// A heap of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Mode {
    /// Where it is highest.
    #[serde(rename = "at_ns")]
    pub at: Duration,
    /// The valley to the mode before it, or zero.
    #[serde(rename = "from_ns")]
    pub from: Duration,
    /// The valley to the mode behind it, or where all end.
    #[serde(rename = "to_ns")]
    pub to: Duration,
    /// Durations from the one to the other.
    pub count: u64,
}

/// A number of points for each doubling.
#[derive(Clone, Copy)]
struct Scale(usize);

impl Scale {
    /// The point of a duration: the bits behind the highest one tell it from its neighbours.
    fn point_of(self, nanos: u64) -> usize {
        let bits = self.0.ilog2();
        let nanos = nanos.max(self.0 as u64);
        let power = nanos.ilog2() - bits;
        power as usize * self.0 + (nanos >> power) as usize % self.0
    }

    /// Where the durations of a point begin.
    fn beginning(self, point: usize) -> u64 {
        let most = u64::BITS - 1 - self.0.ilog2();
        ((self.0 + point % self.0) as u64) << (point / self.0).min(most as usize)
    }

    /// How many durations each point has, behind as many empty ones as the kernel reaches.
    fn counts(self, histogram: &Histogram) -> Vec<u64> {
        let mut counts = vec![0u64; 2 * HALF + 1];
        for (nanos, count) in histogram.bins() {
            let point = self.point_of(nanos) + HALF;
            if point + HALF >= counts.len() {
                counts.resize(point + HALF + 1, 0);
            }
            counts[point] += count;
        }
        counts
    }

    /// Whether chance moves the highest peak by little.
    fn has_enough(self, histogram: &Histogram) -> bool {
        highest(&smooth(&self.counts(histogram))) >= ENOUGH * WEIGHT
    }

    /// Where the durations of a point in [`Scale::counts`] begin.
    fn at(self, point: usize) -> Duration {
        Duration::from_nanos(self.beginning(point.saturating_sub(HALF)))
    }
}

/// The modes of a histogram, the shortest first.
pub(super) fn of(histogram: &Histogram) -> Vec<Mode> {
    let scale = POINTS.map(Scale).into_iter().find(|scale| scale.has_enough(histogram));
    let scale = scale.unwrap_or(FEWEST);
    let counts = scale.counts(histogram);
    let density = smooth(&counts);
    let highest = highest(&density);
    let rises = |peak: &usize| {
        let (rise, from, to) = surroundings(&density, *peak);
        let count: u64 = counts[from..to].iter().sum();
        rise >= (highest / RISE).max(1) && count * SHARE >= histogram.count()
    };
    let peaks: Vec<usize> = peaks(&density).into_iter().filter(rises).collect();
    // Each ends in the deepest point before the next one.
    let valley = |pair: &[usize]| (pair[0]..pair[1]).min_by_key(|point| density[*point]);
    let valleys = peaks.windows(2).filter_map(valley);
    let borders: Vec<usize> = [0].into_iter().chain(valleys).chain([counts.len()]).collect();
    let mode = |(peak, border): (&usize, &[usize])| {
        let (middle, next) = (scale.at(*peak).as_nanos(), scale.at(peak + 1).as_nanos());
        let at = Duration::from_nanos(u64::midpoint(middle, next));
        let count = counts[border[0]..border[1]].iter().sum();
        Mode { at, from: scale.at(border[0]), to: scale.at(border[1]), count }
    };
    peaks.iter().zip(borders.windows(2)).map(mode).collect()
}

fn highest(density: &[u64]) -> u64 {
    density.iter().copied().max().unwrap_or(0)
}

fn smooth(counts: &[u64]) -> Vec<u64> {
    let of = |point: usize| {
        let weighted = KERNEL.iter().enumerate().map(|(place, weight)| {
            let at = (point + place).checked_sub(HALF);
            weight * at.and_then(|at| counts.get(at)).copied().unwrap_or(0)
        });
        weighted.sum()
    };
    (0..counts.len()).map(of).collect()
}

/// Points that are higher than those before them and not lower than those behind; of a plateau the
/// first.
fn peaks(density: &[u64]) -> Vec<usize> {
    let mut peaks = vec![];
    let mut rises = true;
    for point in 0..density.len() {
        let next = density.get(point + 1).copied().unwrap_or(0);
        if rises && next < density[point] {
            peaks.push(point);
        }
        if next != density[point] {
            rises = next > density[point];
        }
    }
    peaks
}

/// By how much a peak rises above the higher one of the valleys that part it from higher peaks,
/// and where its own valleys are.
fn surroundings(density: &[u64], peak: usize) -> (u64, usize, usize) {
    let height = density[peak];
    let valley = |points: &mut dyn Iterator<Item = usize>| {
        let (mut lowest, mut place) = (height, peak);
        for point in points {
            if density[point] > height {
                return (lowest, place);
            }
            if density[point] < lowest {
                (lowest, place) = (density[point], point);
            }
        }
        // There is no higher one: it rises above nothing.
        (0, place)
    };
    let (before, from) = valley(&mut (0..peak).rev());
    let (behind, to) = valley(&mut (peak + 1..density.len()));
    (height - before.max(behind), from, to + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(values: &[(u64, u64)]) -> Vec<Mode> {
        let mut histogram = Histogram::new();
        for (micros, count) in values {
            histogram.record_n(Duration::from_micros(*micros), *count);
        }
        of(&histogram)
    }

    #[test]
    fn what_is_near_is_told_apart_where_there_is_enough_of_it() {
        let times = [(50, 3), (52, 5), (54, 3), (56, 1), (58, 2), (60, 4), (62, 2)];
        let (few, many) = (times, times.map(|(micros, count)| (micros, count * 1000)));
        assert_eq!(modes(&few).len(), 1);
        let micros: Vec<u64> = modes(&many).iter().map(|mode| mode.at.as_nanos() / 1000).collect();
        assert_eq!(micros, [51, 60]);
    }

    #[test]
    fn points_begin_where_they_do() {
        for scale in POINTS.map(Scale).into_iter().chain([FEWEST]) {
            for nanos in [0, 1, 63, 64, 65, 1000, 123_456_789, u64::MAX / 3, u64::MAX] {
                let point = scale.point_of(nanos);
                assert!(scale.beginning(point) <= nanos.max(scale.0 as u64));
                assert!(nanos == u64::MAX || nanos < scale.beginning(point + 1));
            }
        }
    }

    #[test]
    fn reads_from_the_cache_and_from_the_medium_are_two_modes() {
        let seen = modes(&[(90, 20), (100, 60), (110, 20), (7_000, 10), (8_000, 30), (9_000, 12)]);
        assert_eq!(seen.iter().map(|mode| mode.count).collect::<Vec<_>>(), [100, 52]);
        let at: Vec<u64> = seen.iter().map(|mode| mode.at.as_micros()).collect();
        assert!((95..107).contains(&at[0]) && (7_400..8_600).contains(&at[1]), "{at:?}");
        assert!(seen[0].to <= seen[1].from);
    }

    #[test]
    fn a_bump_on_a_flank_and_a_few_outliers_are_none() {
        assert_eq!(modes(&[(100, 1000), (115, 700), (130, 500), (50_000, 5)]).len(), 1);
        assert_eq!(modes(&[]).len(), 0);
        assert_eq!(modes(&[(0, 3)]).len(), 1);
        assert_eq!(modes(&[(u64::MAX / 1000, 3)]).len(), 1);
    }
}
