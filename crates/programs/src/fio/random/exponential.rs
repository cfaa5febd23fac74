//! Times between the events of a Poisson process.

use base::Rng;

/// Draws times; the drawing is integer arithmetic, only the table is built with floating point.
#[derive(Clone, Debug)]
pub struct Exponential {
    /// -ln of 1/2 to 1 in `STEPS` steps, in parts of `UNIT`.
    table: Vec<u64>,
}

/// The mass of a whole distribution: a draw of `Rng::bits53`.
const MASS: u64 = 1 << 53;
/// Steps of the table.
const STEPS: u64 = 4096;

impl Exponential {
    /// The mean of a draw.
    pub const UNIT: u64 = 1 << 32;

    /// Builds the table.
    pub fn new() -> Self {
        let entry = |step: u64| {
            let x = 0.5 + step as f64 / (2 * STEPS) as f64;
            (-libm::log(x) * Self::UNIT as f64) as u64
        };
        Exponential { table: (0..=STEPS).map(entry).collect() }
    }

    /// A draw with mean [`Exponential::UNIT`].
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        // A number between 0 and 1 is 2^-zeros times one between 1/2 and 1.
        let draw = rng.bits53() | 1;
        let zeros = draw.leading_zeros() - 11;
        let mantissa = (draw << zeros) - MASS / 2;
        self.interpolate(mantissa * 2) + u64::from(zeros) * self.table[0]
    }

    /// The value at `draw` of `MASS` between the `STEPS + 1` values of the table.
    fn interpolate(&self, draw: u64) -> u64 {
        let width = MASS / STEPS;
        let (step, rest) = ((draw / width) as usize, draw % width);
        let (low, high) = (i128::from(self.table[step]), i128::from(self.table[step + 1]));
        (low + (high - low) * i128::from(rest) / i128::from(width)) as u64
    }
}

impl Default for Exponential {
    fn default() -> Self {
        Exponential::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_draws_have_mean_and_variance_one() {
        let (exponential, mut rng) = (Exponential::new(), Rng::stream(1, "test"));
        let draws: Vec<u64> = (0..100_000).map(|_| exponential.draw(&mut rng)).collect();
        let mean = draws.iter().sum::<u64>() / draws.len() as u64;
        assert!(mean.abs_diff(Exponential::UNIT) < Exponential::UNIT / 100, "{mean}");
        // A Poisson process lets a share of 1/e wait longer than the mean.
        let longer = draws.iter().filter(|draw| **draw > Exponential::UNIT).count();
        assert!((36_300..37_300).contains(&longer), "{longer}");
    }
}
