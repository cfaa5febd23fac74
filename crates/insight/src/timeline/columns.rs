//! Columns of numbers as bytes: what repeats or grows slowly becomes small.
//!
//! A number is written in groups of seven bits, the lowest first, each but the last with its
//! highest bit set (LEB128). Differences are written with the sign in the lowest bit.

/// Where a column lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What it is called.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: usize,
}

/// Columns one after the other.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// What they are.
    pub columns: Vec<Column>,
    /// All their bytes.
    pub bytes: Vec<u8>,
}

impl Columns {
    /// Adds a column of numbers.
    pub(super) fn numbers(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let before = self.bytes.len();
        values.for_each(|it| push(&mut self.bytes, it));
        self.columns.push(Column { name, bytes: self.bytes.len() - before });
    }

    /// Adds a column of numbers, each as its difference to the one before.
    pub(super) fn deltas(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let mut last = 0;
        let difference = |it: u64| signed(it.wrapping_sub(std::mem::replace(&mut last, it)) as i64);
        self.numbers(name, values.map(difference));
    }

    /// Adds a column of bytes as they are.
    pub(super) fn raw(&mut self, name: &'static str, values: impl Iterator<Item = u8>) {
        let before = self.bytes.len();
        self.bytes.extend(values);
        self.columns.push(Column { name, bytes: self.bytes.len() - before });
    }
}

/// A number with a sign as one without: 0, −1, 1, −2, 2 are 0, 1, 2, 3, 4.
pub(super) fn signed(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_many_groups_of_seven_bits_as_they_need() {
        let mut columns = Columns::default();
        columns.numbers("a", [0, 127, 128, 300].into_iter());
        assert_eq!(columns.bytes, [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(columns.columns, [Column { name: "a", bytes: 6 }]);
    }

    #[test]
    fn differences_have_their_sign_in_the_lowest_bit() {
        assert_eq!([0, -1, 1, -2, 2].map(signed), [0, 1, 2, 3, 4]);
        let mut columns = Columns::default();
        columns.deltas("a", [5, 3, 3].into_iter());
        assert_eq!(columns.bytes, [10, 3, 0]);
    }
}
