//! Which requests of a mixture are reads.
//!
//! Each direction is drawn, but not for each request: after a change of direction, fio stays with
//! the new one until it has its share of what the other one has had. So was found by comparing
//! sequences of directions with the draws; it matters after long runs in one direction.

use super::super::job::{Direction, Directions};
use super::super::random::{Purpose, Seeds, Taus88};

/// The directions of a mixture of reads and writes.
#[derive(Clone, Debug)]
pub(super) struct Mixture {
    /// Percent of reads.
    reads: u8,
    current: Direction,
    /// Requests in each direction.
    counts: [u64; 3],
    /// How many there must be in the current direction before another one is drawn.
    least: u64,
    draws: Taus88,
}

impl Mixture {
    pub fn new(directions: Directions, seeds: &Seeds) -> Mixture {
        let reads = match directions {
            Directions::ReadWrite(reads) => reads,
            _ => 100,
        };
        let draws = Taus88::new(seeds.of(Purpose::Direction) as u32);
        Mixture { reads, current: Direction::Read, counts: [0; 3], least: 0, draws }
    }

    /// The direction of the next request.
    pub fn draw(&mut self) -> Direction {
        if self.counts[self.current as usize] < self.least {
            return self.current;
        }
        let (drawn, other, share) = match self.draws.percent() < self.reads {
            true => (Direction::Read, Direction::Write, self.reads),
            false => (Direction::Write, Direction::Read, 100 - self.reads),
        };
        if drawn != self.current {
            self.least = self.counts[other as usize] * u64::from(share) / 100;
        }
        self.current = drawn;
        drawn
    }

    /// A new round begins with a draw.
    pub fn restart(&mut self) {
        self.least = 0;
    }

    /// A request goes in this direction.
    pub fn count(&mut self, direction: Direction) {
        self.counts[direction as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::random::Repeated;
    use super::*;

    #[test]
    fn a_direction_that_was_left_behind_catches_up() {
        // fio --ioengine=null --name=a --size=16m --bs=4k --rw=randrw --norandommap
        //     --randrepeat=0 --randseed=9 --numjobs=2, the second process: its 17th and 18th
        // request are reads although two writes were drawn.
        let seeds = Seeds::plain(9, 2, Repeated { offsets: false, all: false });
        let mut mixture = Mixture::new(Directions::ReadWrite(50), &seeds);
        let mut draw = || {
            let direction = mixture.draw();
            mixture.count(direction);
            if direction == Direction::Read { 'r' } else { 'w' }
        };
        let directions: String = (0..24).map(|_| draw()).collect();
        assert_eq!(directions, "wrwwwrrwwwwwwwwrrrwwrrww");
    }
}
