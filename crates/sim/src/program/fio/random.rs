//! Random numbers shaped for offsets: permutations, maps of visited blocks, skewed distributions.
//!
//! All draws are integer arithmetic. Floating point is used only while a table is built, through
//! one pure-Rust mathematical library, so that a table is the same on every machine.

use base::{Bytes, Rng};

use super::mix::{Distribution, Skew};

/// Visits every number below `len` once, in an order that depends on a key, without memory: a
/// Feistel network over the next power of four, walked until it hits a number in range.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    half: u32,
    keys: [u64; Self::ROUNDS],
}

impl Permutation {
    const ROUNDS: usize = 4;

    /// A permutation of the numbers below `len`, drawn from `rng`.
    pub fn new(len: u64, rng: &mut Rng) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Permutation {
            len,
            half: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| rng.next_u64()),
        }
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.len
    }

    /// The number at position `index`.
    pub fn at(&self, index: u64) -> u64 {
        assert!(index < self.len, "position {index} of {} numbers", self.len);
        let mut number = self.encrypt(index);
        while number >= self.len {
            number = self.encrypt(number);
        }
        number
    }

    fn encrypt(&self, number: u64) -> u64 {
        let mask = (1_u64 << self.half) - 1;
        let (mut left, mut right) = (number >> self.half, number & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        (left << self.half) | right
    }
}

/// The finalizer of SplitMix64: each bit of the input changes half of the output.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Which blocks have been visited: one bit each, and above them one bit for each full word, level
/// upon level, so that the next free block is found in a few steps.
#[derive(Clone, Debug)]
pub struct VisitMap {
    len: u64,
    free: u64,
    levels: Vec<Vec<u64>>,
}

impl VisitMap {
    /// A map of `len` blocks, none of them visited.
    pub fn new(len: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = len;
        loop {
            let words = bits.div_ceil(64);
            levels.push(vec![0; usize::try_from(words).expect("a map that fits in memory")]);
            if words <= 1 {
                return VisitMap { len, free: len, levels };
            }
            bits = words;
        }
    }

    /// How many blocks have not been visited.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Forgets all visits.
    pub fn clear(&mut self) {
        self.levels.iter_mut().for_each(|level| level.fill(0));
        self.free = self.len;
    }

    /// Whether a block was visited.
    pub fn is_visited(&self, block: u64) -> bool {
        (self.levels[0][(block / 64) as usize] >> (block % 64)) & 1 == 1
    }

    /// Marks a block as visited.
    pub fn visit(&mut self, block: u64) {
        assert!(block < self.len, "block {block} of {}", self.len);
        if self.is_visited(block) {
            return;
        }
        self.free -= 1;
        let mut bit = block;
        for level in &mut self.levels {
            let word = &mut level[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != u64::MAX {
                break;
            }
            bit /= 64;
        }
    }

    /// The first block from `from` on that was not visited, wrapping around at the end.
    pub fn next_free(&self, from: u64) -> Option<u64> {
        let found = self.free_from(from).or_else(|| self.free_from(0));
        if self.free == 0 { None } else { found }
    }

    /// How many blocks from `block` on were not visited, `most` at most.
    pub fn free_run(&self, block: u64, most: u64) -> u64 {
        let end = block.saturating_add(most).min(self.len);
        (block..end).take_while(|block| !self.is_visited(*block)).count() as u64
    }

    fn free_from(&self, from: u64) -> Option<u64> {
        let mut bit = from;
        let mut level = 0;
        // Up, until a word has a zero at or behind the bit; then down to the first one.
        loop {
            let words = self.levels.get(level)?;
            let word = words.get((bit / 64) as usize).copied();
            let zeros = word.map_or(0, |word| !word & (u64::MAX << (bit % 64)));
            if zeros != 0 {
                bit = bit / 64 * 64 + u64::from(zeros.trailing_zeros());
                break;
            }
            bit = bit / 64 + 1;
            level += 1;
        }
        while level > 0 {
            level -= 1;
            let word = self.levels[level].get(bit as usize).copied()?;
            bit = bit * 64 + u64::from(word.trailing_ones());
        }
        (bit < self.len).then_some(bit)
    }
}

/// Draws blocks of a range by a distribution.
#[derive(Clone, Debug)]
pub struct Sampler {
    len: u64,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Uniform,
    /// Ranks by buckets: the mass up to the end of each, its first rank, its width.
    Ranked {
        buckets: Vec<(u64, u64, u64)>,
        place: Ranks,
    },
    /// Quantiles in parts of `QUANTILE` of the range.
    SelfSimilar {
        quantiles: Vec<u64>,
        place: Ranks,
    },
    /// Quantiles around the center, in parts of `QUANTILE` of the range.
    Bell {
        quantiles: Vec<i64>,
        center: u64,
    },
    /// Share of the accesses in percent up to the end of each zone, and its blocks.
    Zones(Vec<(u8, u64, u64)>),
}

/// Which block has which rank.
#[derive(Clone, Debug)]
enum Ranks {
    /// The popular blocks are scattered over the range.
    Scattered(Permutation),
    /// The popular blocks lie together behind this one.
    From(u64),
}

impl Ranks {
    fn new(len: u64, skew: &Skew, rng: &mut Rng) -> Self {
        match skew.center {
            Some(center) => Ranks::From(fraction(len, center as u64)),
            None => Ranks::Scattered(Permutation::new(len, rng)),
        }
    }

    fn block(&self, rank: u64, len: u64) -> u64 {
        match self {
            Ranks::Scattered(permutation) => permutation.at(rank),
            Ranks::From(first) => (first + rank) % len,
        }
    }
}

/// The mass of a whole distribution: a draw of `Rng::bits53`.
const MASS: u64 = 1 << 53;
/// The size of a range as quantiles count it.
const QUANTILE: u64 = 1 << 40;
/// Quantiles in a table.
const STEPS: u64 = 4096;
/// Ranks of Zipf's law with a bucket of their own.
const SINGLE_RANKS: u64 = 1024;

impl Sampler {
    /// Draws from `len` blocks of `block` bytes; what is random about the shape itself (which
    /// blocks are popular) is drawn from `rng`.
    pub fn new(distribution: &Distribution, len: u64, block: Bytes, rng: &mut Rng) -> Self {
        assert!(len > 0, "a range without blocks");
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Zipf(skew) => Shape::Ranked {
                buckets: zipf(len, skew.parameter),
                place: Ranks::new(len, skew, rng),
            },
            Distribution::Pareto(skew) => Shape::SelfSimilar {
                quantiles: self_similar(skew.parameter),
                place: Ranks::new(len, skew, rng),
            },
            Distribution::Normal(skew) => Shape::Bell {
                quantiles: bell(skew.parameter),
                center: fraction(len, skew.center.unwrap_or(500_000) as u64),
            },
            Distribution::Zoned(zones) => {
                let ends = zones.iter().scan(0_u64, |sum, (_, percent)| {
                    *sum += u64::from(*percent);
                    Some((u128::from(len) * u128::from(*sum) / 100) as u64)
                });
                zoned(zones.iter().map(|(access, _)| *access), ends, len)
            }
            Distribution::ZonedAbsolute(zones) => {
                let ends = zones.iter().scan(0_u64, |sum, (_, bytes)| {
                    *sum = sum.saturating_add(bytes.0);
                    Some((*sum / block.0.max(1)).min(len))
                });
                zoned(zones.iter().map(|(access, _)| *access), ends, len)
            }
        };
        Sampler { len, shape }
    }

    /// Draws a block.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.shape {
            Shape::Uniform => rng.below(self.len),
            Shape::Ranked { buckets, place } => {
                let draw = rng.bits53();
                let bucket = buckets.partition_point(|(end, ..)| *end <= draw);
                let (_, first, width) = buckets[bucket.min(buckets.len() - 1)];
                let rank = if width == 1 { first } else { first + rng.below(width) };
                place.block(rank, self.len)
            }
            Shape::SelfSimilar { quantiles, place } => {
                let part = interpolate(rng.bits53(), |step| quantiles[step] as i64) as u64;
                place.block(scale(part, self.len).min(self.len - 1), self.len)
            }
            Shape::Bell { quantiles, center } => {
                let part = interpolate(rng.bits53(), |step| quantiles[step]);
                let distance = i128::from(part) * i128::from(self.len) / i128::from(QUANTILE);
                let block = i128::from(*center) + distance;
                block.rem_euclid(i128::from(self.len)) as u64
            }
            Shape::Zones(zones) => {
                let draw = rng.below(100) as u8;
                let zone = zones.partition_point(|(end, ..)| *end <= draw);
                let (_, first, width) = zones[zone.min(zones.len() - 1)];
                first + rng.below(width)
            }
        }
    }
}

/// `millionths` of `len`, below it.
fn fraction(len: u64, millionths: u64) -> u64 {
    let place = u128::from(len) * u128::from(millionths) / 1_000_000;
    (place as u64).min(len - 1)
}

/// `part` of `QUANTILE`, of `len`.
fn scale(part: u64, len: u64) -> u64 {
    (u128::from(part) * u128::from(len) / u128::from(QUANTILE)) as u64
}

/// The value at `draw` of `MASS` between the `STEPS + 1` values of a table.
fn interpolate(draw: u64, table: impl Fn(usize) -> i64) -> i64 {
    let width = MASS / STEPS;
    let (step, rest) = ((draw / width) as usize, draw % width);
    let (low, high) = (i128::from(table(step)), i128::from(table(step + 1)));
    (low + (high - low) * i128::from(rest) / i128::from(width)) as i64
}

/// Ranks from 0 in buckets whose mass follows Zipf's law: one bucket each for the first ranks,
/// then buckets that grow by a sixteenth, within which ranks are equally likely.
fn zipf(len: u64, theta: i64) -> Vec<(u64, u64, u64)> {
    let theta = theta as f64 / 1e6;
    // The integral of x^-theta, for buckets of many ranks.
    let integral = |x: f64| libm::pow(x, 1.0 - theta) / (1.0 - theta);
    let mut weights: Vec<(f64, u64, u64)> = Vec::new();
    let mut first = 0;
    while first < len {
        let width = if first < SINGLE_RANKS { 1 } else { (first / 16).min(len - first) };
        let weight = match width {
            1 => libm::pow(first as f64 + 1.0, -theta),
            _ => integral((first + width) as f64 + 0.5) - integral(first as f64 + 0.5),
        };
        weights.push((weight, first, width));
        first += width;
    }
    let total: f64 = weights.iter().map(|(weight, ..)| weight).sum();
    let mut sum = 0.0;
    let ends = weights.into_iter().map(|(weight, first, width)| {
        sum += weight;
        ((sum / total * MASS as f64) as u64, first, width)
    });
    ends.collect()
}

/// Quantiles of the self-similar distribution: a share `h` of the range gets 1 - `h` of the
/// accesses, within that share again, and so on (Gray et al., SIGMOD 1994).
fn self_similar(h: i64) -> Vec<u64> {
    let h = h as f64 / 1e6;
    let power = libm::log(h) / libm::log(1.0 - h);
    let quantile = |step: u64| {
        let part = libm::pow(step as f64 / STEPS as f64, power);
        (part * QUANTILE as f64) as u64
    };
    (0..=STEPS).map(quantile).collect()
}

/// Quantiles of the normal distribution with a deviation in percent of the range.
fn bell(deviation: i64) -> Vec<i64> {
    let deviation = deviation as f64 / 1e8;
    let quantile = |step: u64| {
        // The outermost steps stand for the tails, which end at some four deviations.
        let step = (step as f64).clamp(0.125, STEPS as f64 - 0.125);
        let wanted = step / STEPS as f64;
        let (mut low, mut high) = (-8.0, 8.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            let mass = libm::erfc(-middle / std::f64::consts::SQRT_2) / 2.0;
            if mass < wanted { low = middle } else { high = middle }
        }
        (low * deviation * QUANTILE as f64) as i64
    };
    (0..=STEPS).map(quantile).collect()
}

/// Zones from their shares and their ends; a zone without blocks shares the one before it.
fn zoned(accesses: impl Iterator<Item = u8>, ends: impl Iterator<Item = u64>, len: u64) -> Shape {
    let (mut share, mut first) = (0, 0);
    let zones = accesses.zip(ends).map(|(access, end)| {
        share += access;
        let start = first.min(len - 1);
        let zone = (share, start, end.min(len).saturating_sub(start).max(1));
        first = end;
        zone
    });
    Shape::Zones(zones.collect())
}

/// Draws times between the events of a Poisson process.
#[derive(Clone, Debug)]
pub struct Exponential {
    /// -ln of 1/2 to 1 in `STEPS` steps, in parts of `UNIT`.
    table: Vec<u64>,
}

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
        let log = interpolate(mantissa * 2, |step| self.table[step] as i64) as u64;
        log + u64::from(zeros) * self.table[0]
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
    use std::collections::BTreeSet;

    fn rng() -> Rng {
        Rng::stream(1, "test")
    }

    #[test]
    fn a_permutation_visits_every_number_once() {
        for len in [1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097] {
            let permutation = Permutation::new(len, &mut rng());
            let seen: BTreeSet<u64> = (0..len).map(|index| permutation.at(index)).collect();
            assert_eq!((seen.len() as u64, seen.last()), (len, Some(&(len - 1))));
        }
    }

    #[test]
    fn a_permutation_spreads_neighbours() {
        let permutation = Permutation::new(1 << 20, &mut rng());
        let jumps: u64 =
            (1..1000).map(|index| permutation.at(index).abs_diff(permutation.at(index - 1))).sum();
        // Two random numbers below n lie n/3 apart on average.
        assert!((300_000..400_000).contains(&(jumps / 999)), "{}", jumps / 999);
    }

    #[test]
    fn the_map_agrees_with_a_set() {
        for len in [1_u64, 63, 64, 65, 4096, 5000, 300_000] {
            let mut rng = rng();
            let mut map = VisitMap::new(len);
            let mut free: BTreeSet<u64> = (0..len).collect();
            for _ in 0..2000 {
                let from = rng.below(len);
                let expected = free.range(from..).next().or(free.first()).copied();
                assert_eq!(map.next_free(from), expected);
                let block = if rng.below(2) == 0 { from } else { expected.unwrap_or(from) };
                map.visit(block);
                free.remove(&block);
                assert_eq!((map.free(), map.is_visited(block)), (free.len() as u64, true));
            }
            map.clear();
            assert_eq!((map.free(), map.next_free(len - 1)), (len, Some(len - 1)));
        }
    }

    #[test]
    fn free_runs_end_at_visited_blocks_and_at_the_end() {
        let mut map = VisitMap::new(100);
        map.visit(10);
        assert_eq!((map.free_run(5, 50), map.free_run(10, 5)), (5, 0));
        assert_eq!((map.free_run(11, 3), map.free_run(98, 50)), (3, 2));
    }

    /// How many of 100,000 draws fall into each tenth of the range.
    fn tenths(distribution: &Distribution, len: u64) -> [u64; 10] {
        let mut rng = rng();
        let sampler = Sampler::new(distribution, len, Bytes(4096), &mut rng);
        let mut tenths = [0; 10];
        for _ in 0..100_000 {
            tenths[(sampler.draw(&mut rng) * 10 / len) as usize] += 1;
        }
        tenths
    }

    #[test]
    fn zipf_gives_the_first_rank_its_share() {
        let skew = Skew { parameter: 1_200_000, center: Some(0) };
        let mut rng = rng();
        let sampler = Sampler::new(&Distribution::Zipf(skew), 100_000, Bytes(4096), &mut rng);
        let mut first = [0_u32; 2];
        for _ in 0..100_000 {
            let block = sampler.draw(&mut rng);
            if block < 2 {
                first[block as usize] += 1;
            }
        }
        // 1 / sum of k^-1.2 up to 100,000 = 19.86 %; the second rank has 2^-1.2 of it.
        assert!((19_400..20_300).contains(&first[0]), "{first:?}");
        assert!((8_300..9_000).contains(&first[1]), "{first:?}");
    }

    #[test]
    fn zipf_scatters_what_is_popular_without_a_center() {
        let skew = Skew { parameter: 900_000, center: None };
        let tenths = tenths(&Distribution::Zipf(skew), 1_000_000);
        assert!(tenths.iter().all(|count| *count > 2_000), "{tenths:?}");
    }

    #[test]
    fn pareto_gives_a_fifth_of_the_range_four_fifths_of_the_accesses() {
        let skew = Skew { parameter: 200_000, center: Some(0) };
        let tenths = tenths(&Distribution::Pareto(skew), 1_000_000);
        assert!((79_000..81_000).contains(&(tenths[0] + tenths[1])), "{tenths:?}");
    }

    #[test]
    fn normal_keeps_two_thirds_within_a_deviation() {
        let skew = Skew { parameter: 10_000_000, center: None };
        let tenths = tenths(&Distribution::Normal(skew), 1_000_000);
        assert!((67_000..69_500).contains(&(tenths[4] + tenths[5])), "{tenths:?}");
        assert!(tenths[4].abs_diff(tenths[5]) < 1_000, "{tenths:?}");
    }

    #[test]
    fn zones_get_their_shares() {
        let zones = Distribution::Zoned(vec![(50, 10), (30, 20), (20, 70)]);
        let tenths = tenths(&zones, 1_000_000);
        assert!((49_000..51_000).contains(&tenths[0]), "{tenths:?}");
        assert!((29_000..31_000).contains(&(tenths[1] + tenths[2])), "{tenths:?}");
    }

    #[test]
    fn small_ranges_are_never_left() {
        let skew = Skew { parameter: 1_200_000, center: None };
        for distribution in [
            Distribution::Uniform,
            Distribution::Zipf(skew),
            Distribution::Pareto(Skew { parameter: 200_000, center: None }),
            Distribution::Normal(Skew { parameter: 99_000_000, center: Some(1_000_000) }),
            Distribution::Zoned(vec![(99, 1), (1, 0)]),
            Distribution::ZonedAbsolute(vec![(50, Bytes(1 << 40)), (50, Bytes(1 << 40))]),
        ] {
            for len in [1, 2, 7] {
                let sampler = Sampler::new(&distribution, len, Bytes(4096), &mut rng());
                let mut rng = rng();
                assert!((0..1000).all(|_| sampler.draw(&mut rng) < len), "{distribution:?}");
            }
        }
    }

    #[test]
    fn exponential_draws_have_mean_and_variance_one() {
        let (exponential, mut rng) = (Exponential::new(), rng());
        let draws: Vec<u64> = (0..100_000).map(|_| exponential.draw(&mut rng)).collect();
        let mean = draws.iter().sum::<u64>() / draws.len() as u64;
        assert!(mean.abs_diff(Exponential::UNIT) < Exponential::UNIT / 100, "{mean}");
        // A Poisson process lets a share of 1/e wait longer than the mean.
        let longer = draws.iter().filter(|draw| **draw > Exponential::UNIT).count();
        assert!((36_300..37_300).contains(&longer), "{longer}");
    }
}
