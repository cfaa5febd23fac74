//! The combined Tausworthe generators taus88 and taus258.
//!
//! P. L'Ecuyer, "Maximally equidistributed combined Tausworthe generators" (1996), and "Tables of
//! maximally equidistributed combined LFSR generators" (1999): the constants below are his. The
//! components are seeded as fio was seen to seed them: each is 69069 (6906969069 for 64 bits)
//! times the one before, the first one of 53, joined with the seed; then six draws are thrown
//! away.

/// What the component before the first one would be.
const BEFORE_FIRST: u64 = 53;
/// Draws that are thrown away.
const WARM_UP: u32 = 6;

/// A stream of numbers of 32 or 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tausworthe {
    /// 32 bits.
    Short(Taus88),
    /// 64 bits.
    Long(Taus258),
}

impl Tausworthe {
    /// The stream of a seed. Short streams take its low 32 bits.
    pub fn new(seed: u64, long: bool) -> Tausworthe {
        match long {
            false => Tausworthe::Short(Taus88::new(seed as u32)),
            true => Tausworthe::Long(Taus258::new(seed)),
        }
    }

    /// A number below `n`: the part of `n` that the draw is of all draws.
    pub fn below(&mut self, n: u64) -> u64 {
        match self {
            Tausworthe::Short(taus) => taus.below(n),
            Tausworthe::Long(taus) => ((u128::from(taus.next_u64()) * u128::from(n)) >> 64) as u64,
        }
    }

    /// A percentage from 0 to 99.
    pub fn percent(&mut self) -> u8 {
        self.below(100) as u8
    }
}

/// taus88: 32 bits, period 2^88.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taus88 {
    state: [u32; 3],
}

impl Taus88 {
    /// The stream of a seed.
    pub fn new(seed: u32) -> Taus88 {
        let mut component = BEFORE_FIRST as u32;
        let mut taus = Taus88 {
            state: std::array::from_fn(|_| {
                component = component.wrapping_mul(69_069) ^ seed;
                component
            }),
        };
        (0..WARM_UP).for_each(|_| _ = taus.next_u32());
        taus
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        let step = |state: u32, left: u32, right: u32, unused: u32, shift: u32| {
            (((state >> unused) << unused) << shift) ^ (((state << left) ^ state) >> right)
        };
        let [a, b, c] = self.state;
        self.state = [step(a, 13, 19, 1, 12), step(b, 2, 25, 3, 4), step(c, 3, 11, 4, 17)];
        self.state[0] ^ self.state[1] ^ self.state[2]
    }

    /// A number below `n`: the part of `n` that the draw is of all draws.
    pub fn below(&mut self, n: u64) -> u64 {
        let draw = u64::from(self.next_u32());
        match u32::try_from(n) {
            Ok(_) => (draw * n) >> 32,
            Err(_) => ((u128::from(draw) * u128::from(n)) >> 32) as u64,
        }
    }

    /// A percentage from 0 to 99.
    pub fn percent(&mut self) -> u8 {
        self.below(100) as u8
    }

    /// A number from 0 to 1, both included.
    pub fn unit(&mut self) -> f64 {
        f64::from(self.next_u32()) / f64::from(u32::MAX)
    }
}

/// taus258: 64 bits, period 2^258.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taus258 {
    state: [u64; 5],
}

impl Taus258 {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Taus258 {
        let mut component = BEFORE_FIRST;
        let mut taus = Taus258 {
            state: std::array::from_fn(|_| {
                component = component.wrapping_mul(6_906_969_069) ^ seed;
                component
            }),
        };
        (0..WARM_UP).for_each(|_| _ = taus.next_u64());
        taus
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let step = |state: u64, left: u32, right: u32, unused: u32, shift: u32| {
            (((state >> unused) << unused) << shift) ^ (((state << left) ^ state) >> right)
        };
        let [a, b, c, d, e] = self.state;
        self.state = [
            step(a, 1, 53, 1, 10),
            step(b, 24, 50, 9, 5),
            step(c, 3, 23, 12, 29),
            step(d, 5, 24, 17, 23),
            step(e, 3, 33, 23, 8),
        ];
        self.state.iter().fold(0, |sum, state| sum ^ state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_fio() {
        // fio --ioengine=null --size=16m --bs=4k --rw=randread --name=a --debug=random
        //     --randrepeat=0 --randseed=0
        let mut taus = Taus88::new(6);
        let draws: [u32; 4] = std::array::from_fn(|_| taus.next_u32());
        assert_eq!(draws, [450_848_080, 1_439_240_701, 2_537_492_084, 4_178_736_731]);
        //     --random_generator=tausworthe64
        let mut taus = Taus258::new(6);
        let draws: [u64; 3] = std::array::from_fn(|_| taus.next_u64());
        assert_eq!(
            draws,
            [2_477_496_937_351_594_072, 8_331_243_974_712_615_965, 6_226_622_276_437_347_416]
        );
    }

    #[test]
    fn a_draw_is_a_part_of_its_range() {
        for long in [false, true] {
            let mut taus = Tausworthe::new(1, long);
            assert!((0..1000).all(|_| taus.below(1) == 0 && taus.below(7) < 7));
            assert!((0..1000).any(|_| taus.below(1 << 40) >= 1 << 39));
            assert!((0..1000).all(|_| taus.percent() < 100));
        }
    }
}
