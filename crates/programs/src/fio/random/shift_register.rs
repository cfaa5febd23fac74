//! The linear feedback shift register of `random_generator=lfsr`: it comes by every number below
//! its length once, in an order that depends on the seed only by where it begins.
//!
//! It is the register with the feedback of the table in P. Alfke, "Efficient shift registers, LFSR
//! counters, and long pseudo-random sequence generators" (Xilinx XAPP 052, 1996), inverted so that
//! the one state it never takes is all ones rather than zero. Which widths fio uses, where it
//! begins and what it does at the end was seen in its output.

/// A register that is on its way through its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShiftRegister {
    len: u64,
    seed: u64,
    state: u64,
    left: u64,
    taps: u64,
    top: u64,
}

/// fio has no register for less.
const LEAST: u64 = 8;
/// The stages whose outputs feed back, for registers of 3 to 36 stages, the last stage aside.
const TAPS: [&[u32]; 34] = [
    &[2],
    &[3],
    &[3],
    &[5],
    &[6],
    &[6, 5, 4],
    &[5],
    &[7],
    &[9],
    &[6, 4, 1],
    &[4, 3, 1],
    &[5, 3, 1],
    &[14],
    &[15, 13, 4],
    &[14],
    &[11],
    &[6, 2, 1],
    &[17],
    &[19],
    &[21],
    &[18],
    &[23, 22, 17],
    &[22],
    &[6, 2, 1],
    &[5, 2, 1],
    &[25],
    &[27],
    &[6, 4, 1],
    &[28],
    // 31, 29, 1: as observed, of the several choices for 32 stages.
    &[31, 29, 1],
    &[20],
    &[27, 2, 1],
    &[33],
    &[25],
];

impl ShiftRegister {
    /// A register that comes by the numbers below `len`.
    pub fn new(len: u64, seed: u64) -> ShiftRegister {
        let width = (u64::BITS - len.leading_zeros()).max(3);
        let inner = TAPS.get(width as usize - 3).copied().unwrap_or(&[]);
        let top = 1 << (width - 1);
        let taps = inner.iter().fold(top, |taps, stage| taps | 1 << (stage - 1));
        let seed = seed & (top | (top - 1));
        let mut register = ShiftRegister { len, seed, state: seed, left: len, taps, top };
        register.shift();
        register
    }

    /// The next number; `None` when it came by all of them. A register that fio has not, or that
    /// begins in the state that it never leaves, has none; fio does nothing then.
    pub fn draw(&mut self) -> Option<u64> {
        let is_stuck = self.seed == self.top | (self.top - 1);
        if self.left == 0 || self.len < LEAST || is_stuck {
            return None;
        }
        self.left -= 1;
        self.shift();
        while self.state >= self.len {
            self.shift();
        }
        Some(self.state)
    }

    /// Begins anew. The first time the register has been shifted once more before.
    pub fn restart(&mut self) {
        self.state = self.seed;
        self.left = self.len;
    }

    fn shift(&mut self) {
        let feedback = if self.state & 1 == 1 { 0 } else { self.taps };
        self.state = (self.state >> 1) ^ self.top ^ feedback;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_number_comes_once_in_each_round() {
        for len in [8, 15, 16, 17, 31, 1000, 4095, 4096, 70_000] {
            let mut register = ShiftRegister::new(len, 0x1234_5678);
            for _ in 0..2 {
                let seen: BTreeSet<u64> = std::iter::from_fn(|| register.draw()).collect();
                assert_eq!((seen.len() as u64, seen.last()), (len, Some(&(len - 1))), "{len}");
                register.restart();
            }
        }
    }

    #[test]
    fn numbers_are_those_of_fio() {
        // fio --ioengine=null --name=a --size=80k --bs=4k --rw=randread --random_generator=lfsr
        //     --randrepeat=0 --randseed=1 --io_size=1m
        let mut register = ShiftRegister::new(20, 0x2E26_0007);
        let first: Vec<u64> = std::iter::from_fn(|| register.draw()).collect();
        let expected = [10, 1, 16, 12, 2, 5, 18, 13, 15, 11, 9, 14, 3, 17, 8, 0, 4, 6, 7, 19];
        assert_eq!(first, expected);
        register.restart();
        assert_eq!((register.draw(), register.draw()), (Some(19), Some(10)));
    }

    #[test]
    fn wide_registers_shift_through_many_states() {
        for width in 3..=36_u32 {
            let len = (1_u64 << width) - 1;
            let mut register = ShiftRegister::new(len, 1);
            let mut seen = BTreeSet::new();
            let draws = if width == 3 { 0 } else { 10 };
            assert!((0..draws).all(|_| seen.insert(register.draw())), "{width}");
        }
    }
}
