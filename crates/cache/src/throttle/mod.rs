//! Holding back who dirties pages: whether a writer goes on, and how long he pauses if not
//! (rules writeback-limit).
//!
//! Pure arithmetic: ticks of the kernel's clock, pages, and pages per second. The bandwidth of the
//! device and the rate its writers are held to are in [`estimate`], how near dirty pages are to
//! their limits in [`position`]. Kernels before 3.2 let writers write instead; that is not here.

pub mod estimate;
pub mod position;

use base::Hz;
use estimate::Estimate;
use position::Position;

/// Pages between two tests of a task at first, and what fewer of which are not worth a short pause.
pub const USUAL_PAGES: u64 = 32;
/// Pages between two tests while the device is beyond its share.
pub const EXCEEDED_PAGES: u64 = 8;

/// What a task is known for: how much it dirtied since its last pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirtier {
    /// Pages since the last test that counted.
    pub dirtied: u64,
    /// It is tested when it dirtied so many.
    pub test_after: u64,
    /// When its last period ended, in ticks.
    pub paused_at: u64,
}

/// How long pauses may be, in ticks, and how many pages belong to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// No longer than this.
    pub longest: u64,
    /// A shorter one is not slept.
    pub shortest: u64,
    /// Pages until the next test.
    pub test_after: u64,
}

/// What becomes of a writer that was tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// He goes on.
    GoOn,
    /// He sleeps for so many ticks; then he goes on, or is tested again.
    Pause {
        /// Ticks.
        ticks: u64,
        /// Dirty pages are at their hard limit.
        is_tested_again: bool,
    },
}

impl Dirtier {
    /// A task that has dirtied nothing.
    pub fn new(now: u64) -> Dirtier {
        Dirtier { dirtied: 0, test_after: USUAL_PAGES, paused_at: now }
    }

    /// Whether it must be tested; `exceeded` is whether the device is beyond its share.
    pub fn is_due(&self, exceeded: bool) -> bool {
        let most = if exceeded { EXCEEDED_PAGES } else { u64::MAX };
        self.dirtied >= self.test_after.min(most)
    }

    /// So little is dirty that nobody is held back: the next test (rule writeback-limit-2).
    pub fn run_free(&mut self, now: u64, position: &Position) {
        self.dirtied = 0;
        self.paused_at = now;
        self.test_after = next_free_test(position.threshold.saturating_sub(position.dirty));
    }

    /// The test beyond the freerun ceiling (rules writeback-limit-3 and writeback-limit-4).
    /// `dirtied` is what the task counted when it was tested.
    pub fn hold_back(
        &mut self,
        now: u64,
        hz: Hz,
        position: &Position,
        estimate: &Estimate,
    ) -> Verdict {
        let rate = (estimate.ratelimit * position.ratio()) >> position::SHIFT;
        let longest = longest_pause(position.device_dirty, estimate.average, hz);
        let pauses = Pauses::new(longest, rate, estimate, hz);
        if rate == 0 {
            return self.sleep(now, longest, pauses, true);
        }
        let hz = u64::from(hz.get());
        let period = hz * self.dirtied / rate;
        let pause = period as i64 - now.wrapping_sub(self.paused_at) as i64;
        if pause < pauses.shortest as i64 {
            if pause < -(hz as i64) {
                self.paused_at = now;
                self.dirtied = 0;
            } else if period > 0 {
                self.paused_at += period;
                self.dirtied = 0;
            } else if self.dirtied >= self.test_after {
                // Not where the core's count had him tested (observed on 6.12).
                self.test_after += self.dirtied;
            }
            return Verdict::GoOn;
        }
        let ticks = (pause as u64).min(longest);
        let verdict = self.sleep(now, ticks, pauses, false);
        // Of what is cut off as much as a longest pause is forgiven (rule writeback-limit-4).
        self.paused_at += (pause as u64 - ticks).saturating_sub(longest);
        verdict
    }

    fn sleep(&mut self, now: u64, ticks: u64, pauses: Pauses, is_tested_again: bool) -> Verdict {
        self.paused_at = now + ticks;
        self.dirtied = 0;
        self.test_after = pauses.test_after;
        Verdict::Pause { ticks, is_tested_again }
    }
}

impl Pauses {
    /// Rule writeback-limit-5.
    pub fn new(longest: u64, task_rate: u64, estimate: &Estimate, hz: Hz) -> Pauses {
        let hz = u64::from(hz.get());
        let ratelimit = estimate.ratelimit;
        let faster = log2(estimate.average).saturating_sub(log2(ratelimit));
        let target = (hz / 100).max(1) + faster * 10 * hz / 1024;
        let mut target = target.min(1 + longest / 2);
        let second = hz.next_power_of_two();
        let mut pages = ratelimit * target / second;
        if pages < USUAL_PAGES {
            target = longest;
            pages = ratelimit * target / second;
            if pages > USUAL_PAGES {
                pages = USUAL_PAGES;
                target = hz * USUAL_PAGES / ratelimit;
            }
        }
        if hz * pages / (task_rate + 1) > longest {
            target = longest;
            pages = task_rate * target / second;
        }
        let shortest = if pages >= USUAL_PAGES { 1 + target / 2 } else { target };
        Pauses { longest, shortest, test_after: pages }
    }
}

/// The longest pause, in ticks: 200 ms, or less if the device would run dry (rule
/// writeback-limit-5).
pub fn longest_pause(device_dirty: u64, average_bandwidth: u64, hz: Hz) -> u64 {
    let hz = u64::from(hz.get());
    let eighth = (1 + hz / 8).next_power_of_two();
    (hz / 5).max(1).min(device_dirty / (1 + average_bandwidth / eighth) + 1)
}

/// Pages until the next test when so many more may become dirty (rule writeback-limit-2).
pub fn next_free_test(free: u64) -> u64 {
    1 << (log2(free) / 2)
}

/// Pages of all tasks of a core until one of them is tested (rule writeback-limit-1).
pub fn core_test(threshold: u64, cores: u64) -> u64 {
    (threshold / (32 * cores)).max(16)
}

/// Truncated; zero for zero.
fn log2(number: u64) -> u64 {
    u64::from(number.max(1).ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hz() -> Hz {
        Hz::new(250).expect("a rate of ticks")
    }

    fn estimate(average: u64, ratelimit: u64) -> Estimate {
        Estimate { average, ratelimit, ..Estimate::START }
    }

    #[test]
    fn pauses_are_those_of_the_table() {
        // Rule writeback-limit-5.
        let cases = [
            (175_000, 25_600, 25_600, (50, 2, 200)),
            (175_000, 25_600, 6_400, (50, 4, 150)),
            (175_000, 25_600, 1_600, (50, 6, 68)),
            (175_000, 2_560, 2_560, (50, 2, 32)),
            (175_000, 2_560, 320, (50, 13, 32)),
            (20_000, 2_560, 80, (50, 50, 15)),
        ];
        for (dirty, average, ratelimit, expected) in cases {
            let longest = longest_pause(dirty, average, hz());
            let pauses = Pauses::new(longest, ratelimit, &estimate(average, ratelimit), hz());
            let found = (pauses.longest, pauses.shortest, pauses.test_after);
            assert_eq!(found, expected, "{dirty} {average} {ratelimit}");
        }
    }

    #[test]
    fn who_runs_free_is_tested_after_the_root_of_what_is_free() {
        // Rule writeback-limit-2.
        let found = [100_000, 65_536, 1000, 10].map(next_free_test);
        assert_eq!(found, [256, 256, 16, 2]);
        let mut dirtier = Dirtier { dirtied: 40, ..Dirtier::new(0) };
        dirtier.run_free(7, &Position::of_one_device(100_000));
        assert_eq!(dirtier, Dirtier { dirtied: 0, test_after: 256, paused_at: 7 });
    }

    #[test]
    fn a_task_is_tested_sooner_while_its_device_is_beyond_its_share() {
        let dirtier = Dirtier { dirtied: 8, ..Dirtier::new(0) };
        assert!(!dirtier.is_due(false));
        assert!(dirtier.is_due(true));
        assert_eq!(core_test(200_000, 4), 1562);
        assert_eq!(core_test(100, 4), 16);
    }

    #[test]
    fn time_that_was_spent_thinking_shortens_the_pause() {
        let mut dirtier = Dirtier { dirtied: 2048, ..Dirtier::new(1000) };
        let verdict =
            dirtier.hold_back(1005, hz(), &Position::of_one_device(175_000), &Estimate::START);
        // 2048 pages at 25575 pages a second take 20 ticks, of which 5 have passed.
        assert_eq!(verdict, Verdict::Pause { ticks: 15, is_tested_again: false });
        assert_eq!(dirtier, Dirtier { dirtied: 0, test_after: 200, paused_at: 1020 });
    }

    #[test]
    fn a_pause_too_short_to_sleep_is_owed() {
        let mut dirtier = Dirtier { dirtied: 2048, ..Dirtier::new(1000) };
        let verdict =
            dirtier.hold_back(1019, hz(), &Position::of_one_device(175_000), &Estimate::START);
        assert_eq!(verdict, Verdict::GoOn);
        assert_eq!((dirtier.dirtied, dirtier.paused_at), (0, 1020));
    }

    #[test]
    fn who_was_away_for_over_a_second_begins_anew() {
        let mut dirtier = Dirtier { dirtied: 2048, ..Dirtier::new(1000) };
        dirtier.hold_back(2000, hz(), &Position::of_one_device(175_000), &Estimate::START);
        assert_eq!((dirtier.dirtied, dirtier.paused_at), (0, 2000));
    }

    #[test]
    fn a_period_of_less_than_a_tick_puts_off_the_next_test() {
        let mut dirtier = Dirtier { dirtied: 32, ..Dirtier::new(1000) };
        let verdict =
            dirtier.hold_back(1000, hz(), &Position::of_one_device(175_000), &Estimate::START);
        assert_eq!(verdict, Verdict::GoOn);
        assert_eq!((dirtier.dirtied, dirtier.test_after), (32, 64));
    }

    #[test]
    fn a_test_that_came_before_its_time_puts_off_no_other() {
        let mut dirtier = Dirtier { dirtied: 31, test_after: 32, ..Dirtier::new(1000) };
        dirtier.hold_back(1000, hz(), &Position::of_one_device(175_000), &Estimate::START);
        assert_eq!((dirtier.dirtied, dirtier.test_after), (31, 32));
    }

    #[test]
    fn no_pause_is_longer_than_200_ms_and_as_much_again_is_forgiven() {
        // At 25575 pages a second 10000 pages take 97 ticks, and 20000 take 195.
        for (dirtied, owed) in [(10_000, 0), (20_000, 95)] {
            let mut dirtier = Dirtier { dirtied, ..Dirtier::new(1000) };
            let verdict =
                dirtier.hold_back(1000, hz(), &Position::of_one_device(175_000), &Estimate::START);
            assert_eq!(verdict, Verdict::Pause { ticks: 50, is_tested_again: false });
            assert_eq!(dirtier.paused_at, 1050 + owed);
        }
    }

    #[test]
    fn at_the_hard_limit_a_writer_pauses_as_long_as_may_be_and_is_tested_again() {
        let mut dirtier = Dirtier { dirtied: 1, ..Dirtier::new(1000) };
        let verdict =
            dirtier.hold_back(1000, hz(), &Position::of_one_device(200_000), &Estimate::START);
        assert_eq!(verdict, Verdict::Pause { ticks: 50, is_tested_again: true });
    }
}
