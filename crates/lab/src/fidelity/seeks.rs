//! How far the arm has to go from each command to the next, and how far the distribution of that
//! is from the other world's.
//!
//! Where a file lies may differ by a divergence that has a name, and then no sector is the same;
//! but a disk that is asked to seek as far and as often has been asked for the same load.
//!
//! Leaves out flushes, which go nowhere, and the order of distances.

use crate::metrics::commands::Step;
use block::command::CommandOp;

/// Distances between the end of each command and the start of the next, in sectors, sorted.
pub fn distances(steps: &[Step]) -> Vec<u64> {
    let moving = || steps.iter().filter(|step| step.op != CommandOp::Flush);
    let end = |step: &Step| step.sector.0 + u64::from(step.sectors.0);
    let mut all: Vec<u64> = moving()
        .zip(moving().skip(1))
        .map(|(one, next)| end(one).abs_diff(next.sector.0))
        .collect();
    all.sort_unstable();
    all
}

/// The largest difference between the shares of two sorted samples that are at most so large
/// (Kolmogorov and Smirnov): 0 if they are distributed alike, 1 if they have nothing in common.
pub fn apart(one: &[u64], other: &[u64]) -> f64 {
    if one.is_empty() || other.is_empty() {
        return if one.len() == other.len() { 0.0 } else { 1.0 };
    }
    let share = |all: &[u64], most: u64| {
        all.partition_point(|distance| *distance <= most) as f64 / all.len() as f64
    };
    let at = |most: &u64| (share(one, *most) - share(other, *most)).abs();
    one.iter().chain(other).map(at).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Duration, Sector, Sectors};

    fn steps(sectors: &[u64]) -> Vec<Step> {
        let step = |sector: &u64| Step {
            op: if *sector == 0 { CommandOp::Flush } else { CommandOp::Write },
            sector: Sector(*sector),
            sectors: Sectors(if *sector == 0 { 0 } else { 8 }),
            at: Duration::ZERO,
            took: None,
            offered: None,
        };
        sectors.iter().map(step).collect()
    }

    #[test]
    fn a_seek_goes_from_the_end_of_a_command_over_flushes_to_the_next() {
        assert_eq!(distances(&steps(&[100, 108, 0, 58, 158])), [0, 58, 92]);
        assert!(distances(&steps(&[100, 0])).is_empty());
    }

    #[test]
    fn the_same_load_somewhere_else_seeks_alike() {
        let here = distances(&steps(&[100, 500, 200, 208]));
        let there = distances(&steps(&[9100, 9500, 9200, 9208]));
        assert_eq!(apart(&here, &there), 0.0);
    }

    #[test]
    fn one_distance_of_four_that_is_longer_makes_a_quarter() {
        assert_eq!(apart(&[0, 0, 8, 100], &[0, 0, 8, 900]), 0.25);
        assert_eq!(apart(&[1, 2], &[5, 6, 7]), 1.0);
        assert_eq!(apart(&[], &[]), 0.0);
        assert_eq!(apart(&[], &[1]), 1.0);
    }
}
