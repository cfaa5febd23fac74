//! Mean and spread over seeds.
//!
//! The spread of a figure is the half-width of a 95 % confidence interval of its mean (Student's
//! t). Two schedulers are compared seed by seed: the differences of a figure under the same seed
//! are a sample of their own, from which everything that both runs share has dropped out.

use crate::quantity::{Kind, human_spread};
use serde::Serialize;

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom (textbook table).
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same for infinitely many.
const T_95_NORMAL: f64 = 1.960;

/// 5 % quantiles of chi-square for 1 to 20 degrees of freedom (textbook table).
const CHI_05: [f64; 20] = [
    0.00393, 0.103, 0.352, 0.711, 1.145, 1.635, 2.167, 2.733, 3.325, 3.940, 4.575, 5.226, 5.892,
    6.571, 7.261, 7.962, 8.672, 9.390, 10.117, 10.851,
];
/// 95 % quantiles of the same.
const CHI_95: [f64; 20] = [
    3.841, 5.991, 7.815, 9.488, 11.070, 12.592, 14.067, 15.507, 16.919, 18.307, 19.675, 21.026,
    22.362, 23.685, 24.996, 26.296, 27.587, 28.869, 30.144, 31.410,
];
/// Nobody runs more seeds than this.
pub const MOST_SEEDS: usize = 1000;

/// Whether seeds move a figure by more than some part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// They do not, in 95 cases of 100.
    Calm,
    /// They do, in 95 cases of 100.
    Chaotic,
    /// There are too few to say; so many would say it if they differed as these do. At most
    /// [`MOST_SEEDS`], then more.
    TooFew(usize),
}

impl Regime {
    /// The regime of a figure by its values under different seeds: it is chaotic if their standard
    /// deviation is more than `limit` times their mean.
    pub fn of(values: &[f64], limit: f64) -> Regime {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let count = values.len();
        let squares: f64 = values.iter().map(|it| (it - mean).powi(2)).sum();
        let deviation = (squares / count.saturating_sub(1).max(1) as f64).sqrt() / mean.abs();
        let says = |count: usize| match deviation_bounds(count) {
            Some((_, upper)) if deviation * upper <= limit => Some(Regime::Calm),
            Some((lower, _)) if deviation * lower > limit => Some(Regime::Chaotic),
            _ => None,
        };
        // The same value again and again says nothing after one of them.
        let enough = || (count.max(2)..MOST_SEEDS).find(|it| says(*it).is_some());
        says(count).unwrap_or_else(|| Regime::TooFew(enough().unwrap_or(MOST_SEEDS)))
    }
}

/// The true standard deviation is, in 95 cases of 100 each, at least and at most so many times that
/// of so many values.
fn deviation_bounds(count: usize) -> Option<(f64, f64)> {
    let degrees = count.checked_sub(1).filter(|it| *it > 0)?;
    let factor = |quantile: f64| (degrees as f64 / quantile).sqrt();
    let of = |table: &[f64; 20], z: f64| {
        // Beyond the table by Wilson and Hilferty, which is off by less than 0.1 % there.
        let part = 2.0 / (9.0 * degrees as f64);
        let far = || degrees as f64 * (1.0 - part + z * part.sqrt()).powi(3);
        table.get(degrees - 1).copied().unwrap_or_else(far)
    };
    Some((factor(of(&CHI_95, 1.645)), factor(of(&CHI_05, -1.645))))
}

/// How many seeds tell the mean of differences like these from zero, up to [`MOST_SEEDS`].
pub fn seeds_for_difference(differences: &[f64]) -> usize {
    let count = differences.len();
    let Some(now) = Estimate::of(differences).filter(|_| count > 1) else { return 2 };
    let quantile = |count: usize| T_95.get(count - 2).copied().unwrap_or(T_95_NORMAL);
    let deviation = now.half_width / quantile(count) * (count as f64).sqrt();
    let says =
        |count: &usize| now.mean.abs() > quantile(*count) * deviation / (*count as f64).sqrt();
    (count..MOST_SEEDS).find(says).unwrap_or(MOST_SEEDS)
}

/// A mean and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The true mean lies within this of it, in 95 cases of 100; zero for a single value.
    #[serde(rename = "half_width_95")]
    pub half_width: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// How many values there were.
    #[serde(rename = "n")]
    pub count: usize,
    /// It is at least so much: the histogram of one of the values ends there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

impl Estimate {
    /// The estimate from values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let half_width = if count < 2 {
            0.0
        } else {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let error = (squares / (count - 1) as f64 / count as f64).sqrt();
            T_95.get(count - 2).copied().unwrap_or(T_95_NORMAL) * error
        };
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Estimate { mean, half_width, min, max, count, at_least: false })
    }

    /// The estimate of `first - second`, pair by pair; `None` unless there are as many of both.
    pub fn of_difference(first: &[f64], second: &[f64]) -> Option<Estimate> {
        if first.len() != second.len() {
            return None;
        }
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        Estimate::of(&differences)
    }

    /// As people read it, with `>` where it may be more.
    pub fn human(&self, kind: Kind) -> String {
        Estimate { half_width: 0.0, ..*self }.human_spread(kind)
    }

    /// The same with its spread.
    pub fn human_spread(&self, kind: Kind) -> String {
        let text = human_spread(self.mean, self.half_width, kind);
        if self.at_least { format!("> {text}") } else { text }
    }

    /// Whether zero lies outside of the interval.
    pub fn differs_from_zero(&self) -> bool {
        self.mean.abs() > self.half_width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_student_s() {
        let estimate = Estimate::of(&[10.0, 12.0, 11.0, 9.0, 13.0]).unwrap();
        assert_eq!((estimate.mean, estimate.min, estimate.max), (11.0, 9.0, 13.0));
        // s = sqrt(2.5), t(4) = 2.776
        assert!((estimate.half_width - 2.776 * (2.5_f64 / 5.0).sqrt()).abs() < 1e-9);
        assert_eq!(Estimate::of(&[3.0]).unwrap().half_width, 0.0);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn few_seeds_do_not_say_whether_a_figure_is_chaotic() {
        assert_eq!(Regime::of(&[100.0, 101.0, 99.0], 0.1), Regime::Calm);
        assert_eq!(Regime::of(&[100.0, 200.0, 20.0], 0.1), Regime::Chaotic);
        // A deviation of 5 %: its upper bound is 22 % with three seeds, and 9.6 % with seven.
        assert_eq!(Regime::of(&[100.0, 105.0, 95.0], 0.1), Regime::TooFew(7));
        let eight = [105.0, 95.0, 105.0, 95.0, 105.0, 95.0, 100.0, 100.0];
        assert_eq!(Regime::of(&eight, 0.1), Regime::Calm);
        assert_eq!(Regime::of(&[100.0], 0.1), Regime::TooFew(2));
    }

    #[test]
    fn bounds_of_a_deviation_go_on_beyond_the_table() {
        // Chi-square of 20 and of 30 degrees of freedom: 31.41 and 43.77, 10.85 and 18.49.
        let (lower, upper) = deviation_bounds(31).unwrap();
        assert!((lower - (30.0_f64 / 43.77).sqrt()).abs() < 1e-3, "{lower}");
        assert!((upper - (30.0_f64 / 18.49).sqrt()).abs() < 1e-3, "{upper}");
    }

    #[test]
    fn more_seeds_tell_a_small_difference_from_chance() {
        assert_eq!(seeds_for_difference(&[1.0, 2.0, 3.0]), 4);
        assert_eq!(seeds_for_difference(&[5.0]), 2);
        assert_eq!(seeds_for_difference(&[1.0, -1.0]), MOST_SEEDS);
    }

    #[test]
    fn what_may_be_more_says_so() {
        let whole = Estimate::of(&[2e9]).unwrap();
        assert_eq!(whole.human(Kind::Time), "2.00 s");
        assert_eq!(Estimate { at_least: true, ..whole }.human(Kind::Time), "> 2.00 s");
    }

    #[test]
    fn what_both_runs_share_drops_out_of_a_difference() {
        let (first, second) = ([100.0, 200.0, 300.0], [90.0, 191.0, 289.0]);
        let difference = Estimate::of_difference(&first, &second).unwrap();
        assert!(difference.differs_from_zero());
        assert_eq!(difference.mean, 10.0);
        assert_eq!(Estimate::of_difference(&first, &second[..2]), None);
    }
}
