//! Service times that scatter: a log-normal body and rare outliers.
//!
//! At load the distribution becomes a table of factors; a draw is one random number and one
//! look-up, in integers.

use base::{Duration, Rng};

use params::Accept::{self, Real, Rows};
use params::Error;
use params::{Section, Spec, Table, spec};

const SPECS: &[Spec] = &[SIGMA, spec("tail", Rows(3, "share, us, us"))];
const SIGMA: Spec = spec("sigma", sigma());

/// How service times scatter.
pub(crate) const JITTER: Section = Section { name: "jitter", required: true, specs: SPECS };
/// How those of writes do, where they differ.
pub(crate) const WRITE_JITTER: Section =
    Section { name: "write_jitter", required: false, specs: SPECS };

/// What is accepted as the standard deviation of the logarithm of times.
pub(crate) const fn sigma() -> Accept {
    Real(0.0, 2.0, "ln")
}

const STEPS: usize = 4096;
const ONE: u64 = 1 << 16;

/// Log-normal times: factors in units of 1/65536, one per equally likely case; empty: always one.
#[derive(Clone, Debug)]
pub(crate) struct Spread(Vec<u32>);

impl Spread {
    /// The parameter of this name is the standard deviation of the logarithm.
    pub fn load(table: &Table, name: &str) -> Spread {
        Spread(lognormal(table.real(name)))
    }

    /// A time whose median is `median`.
    pub fn draw(&self, rng: &mut Rng, median: Duration) -> Duration {
        match self.0.is_empty() {
            true => median,
            false => self.at(rng.next_u64(), median),
        }
    }

    /// The time that the twelve highest of these random bits stand for.
    fn at(&self, bits: u64, median: Duration) -> Duration {
        match self.0.get((bits >> 52) as usize) {
            Some(factor) => Duration::from_nanos(median.as_nanos() * u64::from(*factor) / ONE),
            None => median,
        }
    }
}

/// How service times scatter around their median.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    body: Spread,
    /// Outliers: up to which 32-bit number they are drawn, and between which two times they lie.
    tail: Vec<(u64, Duration, Duration)>,
}

impl Jitter {
    /// What the section of this name says.
    pub fn load(table: &Table, section: &Section) -> Result<Jitter, Error> {
        let name = format!("{}.tail", section.name);
        let mut tail = Vec::new();
        let mut share = 0.0;
        for row in table.rows(&name) {
            share += row[0];
            if row[0] < 0.0 || share > 1.0 || row[1] < 0.0 || row[1] > row[2] || row[2] > 1e9 {
                let accepted = "rows [share, from, to] whose shares add up to at most 1";
                return Err(table.refuse(&name, format!("row {row:?}"), accepted));
            }
            let nanos = |micros: f64| Duration::from_nanos(libm::round(micros * 1000.0) as u64);
            tail.push((libm::round(share * 4_294_967_296.0) as u64, nanos(row[1]), nanos(row[2])));
        }
        Ok(Jitter { body: Spread::load(table, &format!("{}.sigma", section.name)), tail })
    }

    /// A service time whose median is `median`.
    pub fn draw(&self, rng: &mut Rng, median: Duration) -> Duration {
        if self.tail.is_empty() {
            return self.body.draw(rng, median);
        }
        let bits = rng.next_u64();
        let low = bits & 0xffff_ffff;
        for (below, from, to) in &self.tail {
            if low < *below {
                return Duration::from_nanos(rng.between(from.as_nanos(), to.as_nanos()));
            }
        }
        self.body.at(bits, median)
    }
}

/// Factors with median one whose logarithm has the standard deviation `sigma`.
fn lognormal(sigma: f64) -> Vec<u32> {
    if sigma == 0.0 {
        return Vec::new();
    }
    let quantile = |step: usize| normal_quantile((step as f64 + 0.5) / STEPS as f64);
    let lower: Vec<f64> = (0..STEPS / 2).map(quantile).collect();
    // The distribution is symmetric: the upper half is the lower one with the other sign.
    let upper = lower.iter().rev().map(|quantile| -quantile);
    let factor = |quantile| libm::round(libm::exp(sigma * quantile) * ONE as f64) as u32;
    lower.iter().copied().chain(upper).map(factor).collect()
}

/// The point below which a standard normal variable stays with this probability: found by
/// bisection of the distribution function, which is good to the last digit and needs no table.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if 0.5 * libm::erfc(-middle / core::f64::consts::SQRT_2) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution() {
        assert!(normal_quantile(0.5).abs() < 1e-9);
        assert!((normal_quantile(0.99) - 2.326_347_874).abs() < 1e-6);
    }

    #[test]
    fn draws_have_the_median_and_the_spread_asked_for() {
        let jitter = Jitter { body: Spread(lognormal(0.4)), tail: Vec::new() };
        let mut rng = Rng::stream(1, "test");
        let median = Duration::from_micros(600);
        let mut drawn: Vec<u64> =
            (0..20_001).map(|_| jitter.draw(&mut rng, median).as_nanos()).collect();
        drawn.sort_unstable();
        assert!(drawn[10_000].abs_diff(600_000) < 10_000, "median {}", drawn[10_000]);
        // exp(0.4 * 2.326) = 2.536
        assert!(drawn[19_800].abs_diff(1_521_000) < 80_000, "p99 {}", drawn[19_800]);
    }
}
