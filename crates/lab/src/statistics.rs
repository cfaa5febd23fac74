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
