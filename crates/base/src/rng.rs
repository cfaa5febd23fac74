//! Reproducible randomness.
//!
//! The generator is xoshiro256** of Blackman and Vigna, seeded through SplitMix64, both as their
//! authors published them. A simulation draws from named streams ([`Rng::stream`]): one consumer
//! more or less does not change what the others draw. Everything is integer arithmetic and the
//! same on every machine. Not for secrets.

use crate::fingerprint::{Fingerprint, scramble};

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream that belongs to `seed`.
    // Inlined because who draws one number only needs a quarter of the state.
    #[inline]
    pub fn new(seed: u64) -> Rng {
        // SplitMix64: a counter in steps of the golden ratio, scrambled. Four successive outputs
        // are never all zero, the one state in which the generator would be stuck.
        let output = |n: u64| scramble(seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        Rng { state: [output(1), output(2), output(3), output(4)] }
    }

    /// The stream called `name`, such as `program/dd/0`, of the run with this seed.
    pub fn stream(seed: u64, name: &str) -> Rng {
        let mut fingerprint = Fingerprint::new();
        fingerprint.mix(seed);
        fingerprint.mix_bytes(name.as_bytes());
        Rng::new(fingerprint.finish())
    }

    /// The state of the generator as its authors number it, for a program elsewhere that goes on
    /// with the stream.
    pub const fn state(&self) -> [u64; 4] {
        self.state
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let output = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        output
    }

    /// A number from 0 to 2^53 - 1, each equally likely: a position in the unit interval in steps
    /// of 2^-53, for whoever shapes a distribution with integers.
    pub fn bits53(&mut self) -> u64 {
        self.next_u64() >> 11
    }

    /// A number from 0 to `n - 1`, each equally likely. Panics when `n` is zero.
    #[track_caller]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no number is below 0");
        // Lemire's method: the high half of the product is the answer; the few products with too
        // small a low half, which make some answers likelier, are drawn again.
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let surplus = n.wrapping_neg() % n;
            while (product as u64) < surplus {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A number from `lowest` to `highest`, both included, each equally likely. Panics when
    /// `lowest` is greater than `highest`.
    #[track_caller]
    pub fn between(&mut self, lowest: u64, highest: u64) -> u64 {
        assert!(lowest <= highest, "no number is between {lowest} and {highest}");
        match (highest - lowest).checked_add(1) {
            Some(choices) => lowest + self.below(choices),
            None => self.next_u64(),
        }
    }

    /// True in `numerator` of `denominator` cases. Panics when `denominator` is zero.
    #[track_caller]
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Puts `items` into random order, each order equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::{prop_assert, proptest};
    use std::vec::Vec;

    fn first<const N: usize>(mut rng: Rng) -> [u64; N] {
        core::array::from_fn(|_| rng.next_u64())
    }

    #[test]
    fn the_generator_is_xoshiro256_star_star() {
        // The outputs of the authors' program for the state 1, 2, 3, 4.
        let expected = [11520, 0, 1509978240, 1215971899390074240, 1216172134540287360];
        assert_eq!(first(Rng { state: [1, 2, 3, 4] }), expected);
    }

    #[test]
    fn the_seed_is_spread_by_splitmix64() {
        // The first outputs of the authors' program for the seed 1234567.
        let expected =
            [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431];
        assert_eq!(Rng::new(1234567).state, expected);
    }

    #[test]
    fn a_named_stream_is_the_same_for_ever() {
        // Worked out by another program.
        let expected = [0x0211bb8a882c9ed4, 0x280aac0ab6901366, 0xb2d839fe3f854ad9];
        assert_eq!(first(Rng::stream(1, "program/dd/0")), expected);
    }

    #[test]
    fn streams_differ_by_seed_and_by_name() {
        let here = Rng::stream(1, "device");
        assert_eq!(here, Rng::stream(1, "device"));
        assert_ne!(here, Rng::stream(2, "device"));
        assert_ne!(here, Rng::stream(1, "device/0"));
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(1).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn every_choice_is_about_equally_likely() {
        let mut rng = Rng::new(7);
        let mut seen = [0u32; 6];
        (0..60_000).for_each(|_| seen[rng.below(6) as usize] += 1);
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
        let heads = (0..60_000).filter(|_| rng.chance(1, 4)).count();
        assert!((14_400..15_600).contains(&heads), "{heads}");
    }

    proptest! {
        #[test]
        fn numbers_stay_in_their_range(seed: u64, a: u64, b: u64) {
            let mut rng = Rng::new(seed);
            let (lowest, highest) = (a.min(b), a.max(b));
            let drawn = rng.between(lowest, highest);
            prop_assert!((lowest..=highest).contains(&drawn));
            prop_assert!(rng.below(highest.max(1)) < highest.max(1));
            prop_assert!(rng.bits53() < 1 << 53);
            prop_assert!(rng.chance(1, 1) && !rng.chance(0, 1));
        }
    }
}
