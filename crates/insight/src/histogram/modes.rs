//! Where durations heap up.
//!
//! A kernel density on a logarithmic scale: eight points for each doubling, and a binomial kernel
//! of nine points, whose standard deviation is 1.4 points, 13 % of the value. A mode is a peak of
//! it that rises above the valley to a higher peak by a tenth of the highest peak, and that has,
//! between its valleys, at least one duration of a hundred. All of it is whole numbers.

use base::{Duration, Histogram};
use serde::Serialize;

/// Points for each doubling.
const POINTS: usize = 8;
/// The kernel; its sum is 256.
const KERNEL: [u64; 9] = [1, 8, 28, 56, 70, 56, 28, 8, 1];
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
    /// The valley before it.
    #[serde(rename = "from_ns")]
    pub from: Duration,
    /// The valley behind it.
    #[serde(rename = "to_ns")]
    pub to: Duration,
    /// Durations from the one to the other.
    pub count: u64,
}

/// The point of a duration: the three bits behind the highest one tell it from its neighbours.
fn point_of(nanos: u64) -> usize {
    let nanos = nanos.max(8);
    let power = nanos.ilog2() as usize;
    (power - 3) * POINTS + (nanos >> (power - 3)) as usize % POINTS
}

/// Where the durations of a point begin.
fn beginning(point: usize) -> u64 {
    ((POINTS + point % POINTS) as u64) << (point / POINTS).min(60)
}

/// The modes of a histogram, the shortest first.
pub(super) fn of(histogram: &Histogram) -> Vec<Mode> {
    let mut counts = vec![0u64; 2 * HALF + 1];
    for (nanos, count) in histogram.bins() {
        let point = point_of(nanos) + HALF;
        if point + HALF >= counts.len() {
            counts.resize(point + HALF + 1, 0);
        }
        counts[point] += count;
    }
    let density = smooth(&counts);
    let highest = density.iter().copied().max().unwrap_or(0);
    let mode = |peak: usize| {
        let (rise, from, to) = surroundings(&density, peak);
        let count: u64 = counts[from..to].iter().sum();
        let counts = rise >= (highest / RISE).max(1) && count * SHARE >= histogram.count();
        let at = |point: usize| Duration::from_nanos(beginning(point.saturating_sub(HALF)));
        let (middle, next) = (at(peak).as_nanos(), at(peak + 1).as_nanos());
        let peak = Duration::from_nanos(u64::midpoint(middle, next));
        counts.then_some(Mode { at: peak, from: at(from), to: at(to), count })
    };
    peaks(&density).into_iter().filter_map(mode).collect()
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

    #[test]
    fn a_point_begins_where_it_begins() {
        for nanos in [8, 9, 17, 1000, 123_456_789, u64::MAX] {
            let point = point_of(nanos);
            assert!(beginning(point) <= nanos, "{nanos}");
        }
    }
}
