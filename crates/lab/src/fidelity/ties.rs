//! Commands that the worlds have in another order although no rule says which of them goes first.
//!
//! Two neighbours are a tie if all of this holds:
//!
//! * in the simulator different tasks asked for them, and both tasks could go on since the same
//!   instant, at which their last bios were done;
//! * each task gave its command to the disk itself, so none waited where somebody could choose: not
//!   in a scheduler, a software queue or a residual list;
//! * the kernel has the same two the other way round, and the first of them at the same instant;
//! * the command behind them is the same in both worlds, or both end there.
//!
//! Ties are counted and said. They stay differences in every other figure. Behind the first
//! difference that is none, nothing is compared: there the worlds have other requests to choose
//! from.

use crate::metrics::commands::Step;

/// How many pairs are ties.
pub fn ties(sim: &[Step], linux: &[Step]) -> usize {
    let (mut place, mut found) = (0, 0);
    while place < sim.len().min(linux.len()) {
        if sim[place].what() == linux[place].what() {
            place += 1;
        } else if is_tie(&sim[place..], &linux[place..]) {
            found += 1;
            place += 2;
        } else {
            break;
        }
    }
    found
}

/// Whether the first two commands are a tie.
fn is_tie(sim: &[Step], linux: &[Step]) -> bool {
    let ([one, other, after @ ..], [second, first, then @ ..]) = (sim, linux) else { return false };
    let is_swapped = one.what() == first.what() && other.what() == second.what();
    let (Some(here), Some(there)) = (one.offered, other.offered) else { return false };
    let nobody_chose = here.at_once && there.at_once;
    is_swapped
        && nobody_chose
        && here.task != there.task
        && here.ready == there.ready
        && one.at == second.at
        && after.first().map(Step::what) == then.first().map(Step::what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::commands::Offered;
    use base::{Duration, Instant, Sector, Sectors};
    use block::ContextId;
    use block::command::CommandOp;

    /// A command at a sector; its task, since when that could go on, and whether it went at once.
    fn step(sector: u64, at: u64, (task, ready, at_once): (u32, u64, bool)) -> Step {
        let ready = Instant::from_nanos(ready);
        Step {
            op: CommandOp::Read,
            sector: Sector(sector),
            sectors: Sectors(8),
            at: Duration::from_nanos(at),
            took: None,
            offered: Some(Offered { task: ContextId(task), ready, at_once }),
        }
    }

    /// The kernel's side of it: the same commands with two changed, which go at the same times.
    fn swapped(sim: &[Step], place: usize) -> Vec<Step> {
        let mut linux = sim.to_vec();
        linux.swap(place, place + 1);
        for (step, ours) in linux.iter_mut().zip(sim) {
            (step.at, step.offered) = (ours.at, None);
        }
        linux
    }

    fn of(one: (u32, u64, bool), other: (u32, u64, bool)) -> [Step; 4] {
        let last = (9, 0, true);
        [step(800, 0, last), step(100, 10, one), step(50, 10, other), step(900, 20, last)]
    }

    #[test]
    fn who_goes_first_of_two_tasks_that_were_told_together_is_a_tie() {
        let sim = of((1, 7, true), (2, 7, true));
        assert_eq!(ties(&sim, &swapped(&sim, 1)), 1);
        assert_eq!(ties(&sim, &sim), 0);
    }

    #[test]
    fn an_order_that_a_scheduler_chose_is_no_tie() {
        // The elevator had both and took the higher sector first, which no rule allows.
        let sim = of((1, 7, false), (2, 7, false));
        assert_eq!(ties(&sim, &swapped(&sim, 1)), 0);
        let sim = of((1, 7, true), (2, 7, false));
        assert_eq!(ties(&sim, &swapped(&sim, 1)), 0);
    }

    #[test]
    fn requests_of_one_task_or_of_one_that_was_told_earlier_are_no_tie() {
        for sim in [of((1, 7, true), (1, 7, true)), of((1, 6, true), (2, 7, true))] {
            assert_eq!(ties(&sim, &swapped(&sim, 1)), 0);
        }
    }

    #[test]
    fn what_comes_after_has_to_agree_and_the_time_too() {
        let sim = of((1, 7, true), (2, 7, true));
        let mut linux = swapped(&sim, 1);
        linux[3].sector = Sector(901);
        assert_eq!(ties(&sim, &linux), 0);
        assert_eq!(ties(&sim, &swapped(&sim, 1)[..3]), 0);
        let mut linux = swapped(&sim, 1);
        linux[1].at = Duration::from_nanos(11);
        assert_eq!(ties(&sim, &linux), 0);
    }

    #[test]
    fn behind_a_real_difference_nothing_is_a_tie() {
        let sim = of((1, 7, true), (2, 7, true));
        let mut linux = swapped(&sim, 1);
        linux[0].sector = Sector(801);
        assert_eq!(ties(&sim, &linux), 0);
    }
}
