//! How far the simulator is from the kernel, over many experiments.
//!
//! * [`errors()`] puts every job of a report beside itself in the other world.
//! * [`told`]: what is the same in both, of the commands of the disk and of what they are for;
//!   [`seeks`]: how far the arm has to go; [`ties`]: where no rule says what goes first.
//! * [`Overview`] sums up: medians, the worst, and what part agrees command by command.
//! * [`random`] makes experiments up, always the same ones from a seed.

pub mod errors;
pub mod random;
pub mod seeks;
pub mod ties;
pub mod told;

pub use errors::{Agreed, JobError, Pair, agreed, errors};

/// Which figure of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Bytes per second.
    Throughput,
    /// Median latency of the calls that it makes most.
    P50,
    /// 99th percentile of the same.
    P99,
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 3] = [Figure::Throughput, Figure::P50, Figure::P99];

    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Throughput => "throughput",
            Figure::P50 => "p50",
            Figure::P99 => "p99",
        }
    }
}

/// Median and worst error of a figure, in percent of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Half of all errors are at most so large.
    pub median: f64,
    /// Nine of ten errors are.
    pub p90: f64,
    /// The largest.
    pub worst: f64,
    /// How many there are.
    pub count: usize,
}

/// What many experiments come to.
#[derive(Clone, Debug)]
pub struct Overview {
    /// A spread for each of [`Figure::ALL`].
    pub figures: [Spread; 3],
    /// Of so many runs
    pub runs: usize,
    /// so many gave the disk equally many requests of the same sizes,
    pub same_requests: usize,
    /// and so many the same commands in the same order to the end.
    pub same_commands: usize,
    /// Pairs of commands whose order no rule decides and that differ in it.
    pub ties: usize,
    /// Commands up to the first that differs, of all runs together.
    pub commands_before: usize,
    /// Commands of the kernel in all runs together.
    pub commands: usize,
    /// What is the same in the same order, as [`Agreed::alike`].
    pub alike: [(usize, usize); 3],
    /// The smallest share of a run.
    pub least: [f64; 3],
    /// How far the distributions of seek distances are apart, in percent.
    pub seeks: Spread,
}

impl Overview {
    /// What [`Overview::alike`] counts.
    pub const COUNTED: [&str; 3] =
        ["commands", "bios, with flags and task,", "commands, with flags and task of their bios,"];

    /// Sums up.
    pub fn of(errors: &[JobError], agreed: &[Agreed]) -> Overview {
        let spread = |figure: Figure| {
            let pairs = errors.iter().filter_map(|it| it.figure(figure));
            Spread::of(pairs.map(|pair| pair.percent().abs()).collect())
        };
        let before = |it: &Agreed| it.agreement.first_other.unwrap_or(it.agreement.linux);
        Overview {
            figures: Figure::ALL.map(spread),
            runs: agreed.len(),
            same_requests: agreed.iter().filter(|it| it.same_sizes).count(),
            same_commands: agreed.iter().filter(|it| it.agreement.same_commands()).count(),
            ties: agreed.iter().map(|it| it.ties).sum(),
            commands_before: agreed.iter().map(before).sum(),
            commands: agreed.iter().map(|it| it.agreement.linux).sum(),
            alike: [0, 1, 2].map(|kind| {
                let add = |(a, b): (usize, usize), it: &Agreed| {
                    (a + it.alike[kind].0, b + it.alike[kind].1)
                };
                agreed.iter().fold((0, 0), add)
            }),
            least: [0, 1, 2].map(|kind| {
                let shares = agreed.iter().filter_map(|it| it.share(kind));
                shares.fold(1.0, f64::min)
            }),
            seeks: Spread::of(agreed.iter().map(|it| 100.0 * it.seeks_apart).collect()),
        }
    }
}

impl Spread {
    /// Of these errors.
    pub fn of(mut errors: Vec<f64>) -> Spread {
        errors.sort_by(f64::total_cmp);
        let at = |part: usize| errors.get(errors.len() * part / 10).copied().unwrap_or(0.0);
        let worst = errors.last().copied().unwrap_or(0.0);
        Spread { median: at(5), p90: at(9), worst, count: errors.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_its_median_in_the_middle() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((spread.median, spread.worst, spread.count), (2.0, 3.0, 3));
        assert_eq!(Spread::of(Vec::new()).worst, 0.0);
    }
}
