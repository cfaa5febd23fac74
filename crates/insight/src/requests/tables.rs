//! Tables by number, with a hash that costs a multiplication: numbers here are those of tasks and
//! sectors, of which files may have chosen any, so the high bits are used.

#[expect(clippy::disallowed_types, reason = "nobody iterates over these")]
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by a number.
#[expect(clippy::disallowed_types, reason = "nobody iterates over these")]
pub(crate) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// A hash of one number.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let wide = u128::from(self.0 ^ number ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = (wide as u64) ^ (wide >> 64) as u64;
    }
}

/// Numbers below this have a place of their own in a list.
const SMALL: usize = 1 << 16;

/// Numbers in a row for others that may be anything, though most are small.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    small: Vec<u32>,
    others: Table<u32, u32>,
}

impl Numbers {
    /// The number that was given to it, or this one from now on.
    #[inline]
    pub fn get_or(&mut self, of: u32, next: u32) -> u32 {
        let place = of as usize;
        match self.small.get(place) {
            Some(number) if *number != u32::MAX => *number,
            _ => self.give(of, next),
        }
    }

    #[inline(never)]
    fn give(&mut self, of: u32, next: u32) -> u32 {
        let place = of as usize;
        if place >= SMALL {
            return *self.others.entry(of).or_insert(next);
        }
        if place >= self.small.len() {
            self.small.resize(place + 1, u32::MAX);
        }
        self.small[place] = next;
        next
    }
}
