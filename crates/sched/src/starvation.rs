//! Reads or writes? The count that keeps deadline's preference for reads from starving writes.

use block::Direction;

/// How often a waiting write was passed over since writes were last chosen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Starvation {
    passed_over: u32,
}

impl Starvation {
    /// The direction of the next batch, given who waits (rule deadline-6).
    // measured in the linux world for mq-deadline of 6.12, assumed for the others: writes_starved
    // compares as an unsigned number, so with a negative one reads always win.
    pub fn choose(&mut self, reads: bool, writes: bool, writes_starved: i64) -> Option<Direction> {
        match (reads, writes) {
            (false, false) => return None,
            (true, false) => return Some(Direction::Read),
            (true, true) => {
                let passed_over = self.passed_over;
                self.passed_over = self.passed_over.wrapping_add(1);
                if passed_over < writes_starved as u32 {
                    return Some(Direction::Read);
                }
            }
            (false, true) => {}
        }
        self.passed_over = 0;
        Some(Direction::Write)
    }

    /// Somebody else has chosen.
    pub fn follow(&mut self, chosen: Direction, reads: bool, writes: bool) {
        match chosen {
            Direction::Write => self.passed_over = 0,
            Direction::Read if reads && writes => {
                self.passed_over = self.passed_over.wrapping_add(1);
            }
            Direction::Read => {}
        }
    }

    /// The count, for descriptions.
    pub fn passed_over(self) -> u32 {
        self.passed_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Read, Write};

    #[test]
    fn writes_get_every_third_batch_by_default() {
        let mut starvation = Starvation::default();
        let chosen = [(); 6].map(|()| starvation.choose(true, true, 2).unwrap());
        assert_eq!(chosen, [Read, Read, Write, Read, Read, Write]);
    }

    #[test]
    fn a_negative_bound_is_none() {
        let mut starvation = Starvation::default();
        let mut chosen = (0..100).map(|_| starvation.choose(true, true, -1).unwrap());
        assert!(chosen.all(|direction| direction == Read));
    }

    #[test]
    fn lone_reads_do_not_count_as_passing_over() {
        let mut starvation = Starvation::default();
        for _ in 0..5 {
            assert_eq!(starvation.choose(true, false, 2), Some(Read));
        }
        assert_eq!(starvation.choose(true, true, 1), Some(Read));
        assert_eq!(starvation.choose(true, true, 1), Some(Write));
        assert_eq!(starvation.choose(false, false, 1), None);
    }

    #[test]
    fn lone_writes_reset_the_count() {
        let mut starvation = Starvation::default();
        starvation.choose(true, true, 2);
        assert_eq!(starvation.passed_over(), 1);
        starvation.choose(false, true, 2);
        assert_eq!(starvation.passed_over(), 0);
        let chosen = [(); 3].map(|()| starvation.choose(true, true, 2).unwrap());
        assert_eq!(chosen, [Read, Read, Write]);
    }
}
