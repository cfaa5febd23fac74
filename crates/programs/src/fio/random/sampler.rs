//! Draws blocks by a distribution other than the uniform one.
//!
//! Zipf's law is drawn as in J. Gray et al., "Quickly generating billion-record synthetic
//! databases" (SIGMOD 1994), Pareto's as the self-similar distribution there, the bell as the mean
//! of twelve uniform draws to which the deviation adds a thirteenth: it widens the bell rather
//! than to set its width. What is popular is scattered over the range by a multiplication. All
//! of this follows from what fio was seen to draw; so does that draws are floating-point numbers
//! here, as nothing else in a run is: two roundings more would be another sequence. One pure-Rust
//! mathematical library makes them the same on every machine.
//!
// Divergence: a bell with a deviation of half its range or more leaves the range in one of some
// 10,000 draws; fio goes elsewhere then.

use base::Bytes;

use super::super::job::{Direction, PerDirection};
use super::super::mix::{Distribution, Skew};
use super::Taus88;

/// The golden section of 2^64: what is popular is scattered by multiples of it.
const SCATTER: u64 = 0x61C8_8646_80B5_83EB;
/// fio sums Zipf's law up to this rank.
const RANKS: u64 = 10_000_000;
/// Uniform draws whose mean makes a bell.
const BELL_DRAWS: u64 = 12;

/// Blocks by a distribution.
#[derive(Clone, Debug)]
pub struct Sampler {
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Uniform,
    Skewed(Skewed),
    Zoned(PerDirection<Vec<Zone>>),
}

/// A part of the range.
#[derive(Clone, Copy, Debug)]
struct Zone {
    /// The share of the accesses in percent up to the end of this zone.
    accesses: u8,
    first: u64,
    blocks: u64,
    /// It ends behind the range: fio draws no offset then.
    is_beyond: bool,
}

impl Sampler {
    /// Draws from a range of `size` bytes, in which a request of each direction can begin at one of
    /// so many `blocks` of some unit, and the smallest size of all goes into so many `parts`; what
    /// is random about the shape itself comes with `seed`.
    pub fn new(
        distributions: &PerDirection<Distribution>,
        size: Bytes,
        blocks: PerDirection<(u64, Bytes)>,
        parts: u64,
        seed: u32,
    ) -> Sampler {
        let shape = match &distributions[0] {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Zoned(_) | Distribution::ZonedAbsolute(_) => {
                Shape::Zoned(std::array::from_fn(|direction| {
                    zones(&distributions[direction], size, blocks[direction])
                }))
            }
            skewed => match Skewed::new(skewed, parts, seed, true) {
                Some(skewed) => Shape::Skewed(skewed),
                None => Shape::Uniform,
            },
        };
        Sampler { shape }
    }

    /// Draws one of so many blocks for a request in `direction`, with the help of something that
    /// draws below a number; `None` where fio finds no offset.
    pub fn draw(
        &mut self,
        direction: Direction,
        blocks: u64,
        mut below: impl FnMut(u64) -> Option<u64>,
        zone: &mut Taus88,
    ) -> Option<u64> {
        match &mut self.shape {
            Shape::Uniform => below(blocks),
            Shape::Skewed(skewed) => Some(skewed.draw()),
            Shape::Zoned(zones) => {
                let zones = &zones[direction as usize];
                let percent = zone.percent();
                let zone = zones.iter().find(|zone| percent < zone.accesses).or(zones.last())?;
                if zone.is_beyond {
                    return None;
                }
                Some(zone.first + below(zone.blocks)?)
            }
        }
    }
}

/// The zones of one direction.
fn zones(distribution: &Distribution, size: Bytes, blocks: (u64, Bytes)) -> Vec<Zone> {
    let (blocks, Bytes(unit)) = blocks;
    let percent = |percent: u64| (u128::from(blocks) * u128::from(percent) / 100) as u64;
    let (mut accesses, mut start) = (0, 0_u64);
    match distribution {
        Distribution::Zoned(zones) => {
            let zone = |(share, width): &(u8, u8)| {
                let (first, blocks) = (percent(start), percent((*width).into()));
                accesses += share;
                start += u64::from(*width);
                Zone { accesses, first, blocks, is_beyond: false }
            };
            zones.iter().map(zone).collect()
        }
        Distribution::ZonedAbsolute(zones) => {
            let zone = |(share, width): &(u8, Bytes)| {
                let (first, blocks) = (start / unit, width.0 / unit);
                accesses += share;
                start = start.saturating_add(width.0);
                Zone { accesses, first, blocks, is_beyond: start > size.0 }
            };
            zones.iter().map(zone).collect()
        }
        _ => Vec::new(),
    }
}

/// Zipf, Pareto or a bell over the numbers below some length.
#[derive(Clone, Debug)]
pub struct Skewed {
    law: Law,
    len: u64,
    /// Where the most popular number lies.
    start: u64,
    is_scattered: bool,
    draws: Taus88,
}

#[derive(Clone, Debug)]
enum Law {
    /// Gray's constants.
    Zipf { zeta: f64, eta: f64, alpha: f64, two: f64 },
    /// The exponent of the self-similar distribution.
    Pareto { power: f64 },
    /// How many numbers the deviation spans.
    Bell { deviation: u64 },
}

impl Skewed {
    /// Numbers below `len`; `None` if the distribution has no skew.
    pub fn new(
        distribution: &Distribution,
        len: u64,
        seed: u32,
        is_scattered: bool,
    ) -> Option<Skewed> {
        assert!(len > 0, "a range without blocks");
        let mut draws = Taus88::new(seed);
        // A start is drawn also where the job gives one.
        let mut start = |skew: &Skew| match (draws.next_u32(), skew.center) {
            (_, Some(center)) => (len as f64 * (center as f64 / 1e6)) as u64,
            (drawn, None) => u64::from(drawn),
        };
        let (law, start) = match distribution {
            Distribution::Zipf(skew) => (Law::zipf(len, skew.parameter as f64 / 1e6), start(skew)),
            Distribution::Pareto(skew) => {
                let share = skew.parameter as f64 / 1e6;
                let power = libm::log(share) / libm::log(1.0 - share);
                (Law::Pareto { power }, start(skew))
            }
            Distribution::Normal(skew) => {
                let deviation = libm::ceil(len as f64 * (skew.parameter as f64 / 1e6) / 100.0);
                let center = skew.center.unwrap_or(500_000) as f64 / 1e6 - 0.5;
                // fio keeps the start in 32 bits without a sign, also where it is below zero.
                let start = (len as f64 * center) as i64 as u32;
                (Law::Bell { deviation: (deviation as u64).min(len / 2) }, u64::from(start))
            }
            _ => return None,
        };
        Some(Skewed { law, len, start, is_scattered, draws })
    }

    /// Draws a number.
    pub fn draw(&mut self) -> u64 {
        let rank = match self.law {
            Law::Zipf { zeta, eta, alpha, two } => {
                let draw = self.draws.unit();
                let mass = draw * zeta;
                match () {
                    () if mass < 1.0 => 0,
                    () if mass < two => 1,
                    () => (self.len as f64 * libm::pow(eta * draw - eta + 1.0, alpha)) as u64,
                }
            }
            Law::Pareto { power } => {
                ((self.len - 1) as f64 * libm::pow(self.draws.unit(), power)) as u64
            }
            Law::Bell { deviation } => self.bell(deviation),
        };
        let place = if self.is_scattered { rank.wrapping_mul(SCATTER) } else { rank };
        (place % self.len + self.start % self.len) % self.len
    }

    fn bell(&mut self, deviation: u64) -> u64 {
        let most = self.len + 1;
        let sum: u64 = (0..BELL_DRAWS).map(|_| u64::from(self.draws.next_u32()) % most).sum();
        let mean = sum.div_ceil(BELL_DRAWS);
        if deviation == 0 {
            return mean;
        }
        mean.wrapping_add(self.draws.below(deviation)).wrapping_sub(deviation / 2)
    }
}

impl Law {
    fn zipf(len: u64, theta: f64) -> Law {
        let zeta = zeta(len.min(RANKS), theta);
        let two = 1.0 + libm::pow(0.5, theta);
        let eta = (1.0 - libm::pow(2.0 / len as f64, 1.0 - theta)) / (1.0 - two / zeta);
        Law::Zipf { zeta, eta, alpha: 1.0 / (1.0 - theta), two }
    }
}

/// The sum of rank^-theta over all ranks from 1, added up from the first to the last as fio does:
/// an exact sum would differ in some last places, and draws with it.
fn zeta(ranks: u64, theta: f64) -> f64 {
    /// Ranks whose power is calculated by itself.
    const SINGLE: u64 = 4096;
    /// Ranks for each of which a power is developed into a series.
    const RUN: u64 = 64;
    let single = (1..=ranks.min(SINGLE)).map(|rank| libm::pow(1.0 / rank as f64, theta));
    let mut sum: f64 = single.fold(0.0, |sum, term| sum + term);
    // (1 + x)^-theta = 1 - theta x + …; x is below 1/64, so nine terms are exact to 2^-53.
    let mut coefficients = [1.0; 9];
    for place in 1..coefficients.len() {
        let n = place as f64;
        coefficients[place] = coefficients[place - 1] * (1.0 - theta - n) / n;
    }
    let mut first = SINGLE + 1;
    while first <= ranks {
        let power = libm::pow(1.0 / first as f64, theta);
        for rank in first..(first + RUN).min(ranks + 1) {
            let x = (rank - first) as f64 / first as f64;
            sum += power * coefficients.iter().rev().fold(0.0, |value, term| value * x + term);
        }
        first += RUN;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skewed(distribution: &Distribution, len: u64) -> Skewed {
        Skewed::new(distribution, len, 1, true).unwrap()
    }

    #[test]
    fn the_sum_of_powers_is_what_single_powers_add_up_to() {
        for theta in [0.3, 0.99, 1.2, 2.5] {
            let plain: f64 =
                (1..=100_000).fold(0.0, |sum, rank| sum + libm::pow(1.0 / f64::from(rank), theta));
            let error = (zeta(100_000, theta) - plain).abs() / plain;
            assert!(error < 1e-14, "{theta}: {error}");
        }
    }

    #[test]
    fn zipf_gives_the_first_rank_its_share() {
        let skew = Skew { parameter: 1_200_000, center: Some(0) };
        let mut zipf = skewed(&Distribution::Zipf(skew), 100_000);
        let draws: Vec<u64> = (0..100_000).map(|_| zipf.draw()).collect();
        let count = |block: u64| draws.iter().filter(|draw| **draw == block).count();
        // 1 / sum of k^-1.2 up to 100,000 = 19.86 %; the second rank has 2^-1.2 of it.
        assert!((19_400..20_300).contains(&count(0)), "{}", count(0));
        assert!((8_300..9_000).contains(&count(SCATTER % 100_000)));
    }

    #[test]
    fn small_ranges_are_never_left() {
        let skew = Skew { parameter: 1_200_000, center: None };
        for distribution in [
            Distribution::Zipf(skew),
            Distribution::Pareto(Skew { parameter: 200_000, center: None }),
            Distribution::Normal(Skew { parameter: 99_000_000, center: Some(1_000_000) }),
            Distribution::Normal(Skew { parameter: 0, center: Some(0) }),
        ] {
            for len in [1, 2, 7] {
                let mut skewed = skewed(&distribution, len);
                assert!((0..1000).all(|_| skewed.draw() < len), "{distribution:?}");
            }
        }
    }

    #[test]
    fn zones_get_their_shares_and_none_reaches_beyond_the_range() {
        let distribution = Distribution::Zoned(vec![(50, 10), (30, 20), (20, 70)]);
        let all = std::array::from_fn(|_| distribution.clone());
        let blocks = [(1000, Bytes(512)); 3];
        let mut sampler = Sampler::new(&all, Bytes(512_000), blocks, 1000, 1);
        let (mut offsets, mut zone) = (Taus88::new(1), Taus88::new(2));
        let mut below = |n| Some(offsets.below(n));
        let mut draw = || sampler.draw(Direction::Read, 1000, &mut below, &mut zone).unwrap();
        let draws: Vec<u64> = (0..100_000).map(|_| draw()).collect();
        let within = |end: u64| draws.iter().filter(|draw| **draw < end).count();
        assert!((49_000..51_000).contains(&within(100)), "{}", within(100));
        assert!((79_000..81_000).contains(&within(300)), "{}", within(300));
        assert_eq!(within(1000), 100_000);
        let beyond = Distribution::ZonedAbsolute(vec![(100, Bytes(1 << 20))]);
        let all = std::array::from_fn(|_| beyond.clone());
        let mut sampler = Sampler::new(&all, Bytes(512_000), blocks, 1000, 1);
        assert_eq!(sampler.draw(Direction::Write, 1000, &mut below, &mut zone), None);
    }
}
