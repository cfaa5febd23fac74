//! A 64-bit fingerprint of a stream of numbers, the same on every machine.
//!
//! Two runs with the same fingerprint did the same. It is fast (one multiplication a number) and
//! spreads every bit of its input, but it is no defence against somebody who wants two streams to
//! collide. Its values are written down in golden files: the function must never change.

use core::fmt;

/// Odd and without pattern: the fractional digits of the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
/// The state before the first number: the fractional digits of pi.
const START: u64 = 0x243F_6A88_85A3_08D3;

/// A fingerprint in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    state: u64,
    /// How many numbers were mixed in.
    words: u64,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint { state: START, words: 0 }
    }
}

impl Fingerprint {
    /// The fingerprint of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Mixes in one number.
    pub fn mix(&mut self, word: u64) {
        // The high half of a product depends on all bits of the factors, the low half keeps
        // different factors different; both together make the next state.
        let product = u128::from(self.state ^ word) * u128::from(MULTIPLIER);
        self.state = product as u64 ^ (product >> 64) as u64;
        self.words = self.words.wrapping_add(1);
    }

    /// Mixes in a string of bytes and its length, so that `ab`, `c` differs from `a`, `bc`.
    pub fn mix_bytes(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.mix(u64::from_le_bytes(*chunk));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(last));
        }
        self.mix(bytes.len() as u64);
    }

    /// The fingerprint of everything mixed in so far.
    pub fn finish(&self) -> u64 {
        scramble(self.state ^ self.words.wrapping_mul(MULTIPLIER))
    }
}

impl fmt::Display for Fingerprint {
    /// Sixteen hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.finish())
    }
}

/// Spreads every bit of `x` over all bits of the result, reversibly (the finaliser of SplitMix64).
pub(crate) const fn scramble(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;
    use std::string::ToString;

    fn of(words: &[u64]) -> u64 {
        let mut fingerprint = Fingerprint::new();
        words.iter().for_each(|word| fingerprint.mix(*word));
        fingerprint.finish()
    }

    #[test]
    fn it_prints_as_sixteen_digits() {
        assert_eq!(Fingerprint::new().to_string().len(), 16);
    }

    #[test]
    fn it_is_the_same_for_ever() {
        // Worked out by another program.
        let mut fingerprint = Fingerprint::new();
        assert_eq!(fingerprint.to_string(), "e9e0033e3badaf36");
        fingerprint.mix(0);
        assert_eq!(fingerprint.to_string(), "0fbb102147ff3351");
        fingerprint.mix(u64::MAX);
        fingerprint.mix_bytes(b"paternoster");
        assert_eq!(fingerprint.to_string(), "f6e084b3db779f77");
    }

    #[test]
    fn order_and_number_of_words_matter() {
        let all = [of(&[]), of(&[0]), of(&[0, 0]), of(&[1, 2]), of(&[2, 1]), of(&[1, 2, 0])];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn the_border_between_strings_matters() {
        let (mut left, mut right) = (Fingerprint::new(), Fingerprint::new());
        left.mix_bytes(b"ab");
        left.mix_bytes(b"c");
        right.mix_bytes(b"a");
        right.mix_bytes(b"bc");
        assert_ne!(left, right);
    }

    #[test]
    fn every_input_bit_changes_about_half_of_the_output_bits() {
        let words = [3, 1 << 40, 99];
        for place in 0..words.len() {
            for bit in 0..64 {
                let mut other = words;
                other[place] ^= 1 << bit;
                let changed = (of(&words) ^ of(&other)).count_ones();
                assert!((12..=52).contains(&changed), "word {place} bit {bit}: {changed}");
            }
        }
    }

    #[test]
    fn small_numbers_do_not_collide() {
        let mut seen = BTreeSet::new();
        for a in 0..300 {
            for b in 0..300 {
                assert!(seen.insert(of(&[a, b])), "{a} {b}");
            }
        }
    }
}
