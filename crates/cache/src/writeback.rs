//! What of the disk must be written: how much is dirty and since when, how far the flusher is, and
//! how its writers are held back.
//!
//! Time is in ticks since the jobs began. Which pages are dirty is known to [`super::pages`]; here
//! they are counted. The arithmetic is in [`super::limits`] and [`super::throttle`].
//!
//! Each control group that has writeback of its own has one of these ([`super::groups`]).
//!
// Divergence: one disk. Kernels before 3.2 are held to the same rules, although their writers write
// themselves. Of pages with descriptions a group knows its own.

use super::limits::{self, HardLimit, Settings, Share, Thresholds};
use super::pages::Counts;
use super::throttle::estimate::Estimate;
use super::throttle::position::Position;
use super::throttle::{self, Dirtier, Verdict};
use crate::Rules;
use base::{Hz, TimerWheel};
use block::{CgroupId, ContextId};

/// Estimates are so far apart at least, in hundredths of a second (rule writeback-limit-8).
const BETWEEN_ESTIMATES: u64 = 20;

/// The state of writing back.
pub struct Writeback {
    /// When its timers go off.
    wheel: TimerWheel,
    has_floor: bool,
    /// What of the disk is to be dirty at most, and for how long.
    settings: Settings,
    limit: HardLimit,
    /// Pages of all tasks of the core until one of them is tested.
    core_test: u64,
    /// How fast its writers dirty pages and the disk writes them.
    pub estimate: Estimate,
    /// Pages dirtied and written in all.
    dirtied: u64,
    written: u64,
    /// When the estimate was made, counted from the boot, and what had been dirtied and written by
    /// then.
    estimated: (u64, u64, u64),
    /// Since when something is dirty.
    since: Option<u64>,
    /// What becomes dirty next counts as old, as nothing ever was dirty before.
    is_fresh: bool,
    /// When the flusher last looked for what has been dirty for long.
    looked: u64,
    /// When the flusher wakes.
    pub wakes: Option<u64>,
    /// It was asked to write until little is dirty.
    pub is_asked: bool,
    /// Somebody wants everything on the disk, where there are no files. These slept until it begins
    /// with that; who found it at work did not.
    pub synced_for: Option<Vec<ContextId>>,
    /// Where it goes on.
    pub cursor: u64,
    is_exceeded: bool,
    /// The bandwidth is estimated for a while after writing has ended.
    estimates_later: bool,
    /// When that is due.
    settles: Option<u64>,
    dirtiers: Vec<Option<Dirtier>>,
    /// Pages that all tasks dirtied since one of them was tested.
    untested: u64,
}

/// What of the disk's pages is whose.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Of all groups together.
    pub all: Counts,
    /// Of the group that this is about.
    pub own: Counts,
    /// Pages that the group and all had written of late.
    pub share: (u64, u64),
}

/// What comes of dirtying a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tested {
    /// The flusher is to start.
    pub starts: bool,
    /// Whose flusher, and by whose limits the writer is held back.
    pub group: CgroupId,
    /// The writer sleeps for so many ticks, and is perhaps tested again.
    pub pause: Option<(u64, bool)>,
}

/// What is said of a machine's dirty pages, and what was reckoned from that.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    settings: Settings,
    limit: HardLimit,
    core_test: u64,
}

impl Limits {
    /// With so many pages that can be dirtied.
    fn new(settings: Settings, dirtyable: u64) -> Limits {
        let threshold = Thresholds::new(&settings, dirtyable).dirty;
        let (limit, core_test) = (HardLimit::new(threshold), throttle::core_test(threshold, 1));
        Limits { settings, limit, core_test }
    }
}

impl Writeback {
    /// Tick zero of the wheel is when jobs begin; `at_boot` is how many pages could have been
    /// dirtied when the kernel began.
    pub fn new(rules: &Rules, wheel: TimerWheel, at_boot: u64) -> Writeback {
        Writeback::with(rules, wheel, Limits::new(Settings::of(rules), at_boot))
    }

    /// Another with limits that are known.
    pub fn with(rules: &Rules, wheel: TimerWheel, limits: Limits) -> Writeback {
        let Limits { settings, limit, core_test } = limits;
        Writeback {
            wheel,
            has_floor: rules.has_floor,
            settings,
            limit,
            core_test,
            estimate: Estimate::START,
            dirtied: 0,
            written: 0,
            estimated: (0, 0, 0),
            since: None,
            is_fresh: rules.unknown_is_much,
            looked: 0,
            wakes: None,
            is_asked: false,
            synced_for: None,
            cursor: 0,
            is_exceeded: false,
            estimates_later: rules.estimates_later,
            settles: None,
            dirtiers: Vec::new(),
            untested: 0,
        }
    }

    /// Sets a setting by its name, with so many pages that could be dirtied; false if there is
    /// none, or not with this value. One of the dirty threshold has the limit and the test of a
    /// core reckoned anew, as the boot does.
    // Observed on 6.12 by global_dirty_state: the test of a core stays else, whatever is free.
    pub fn set(&mut self, name: &str, value: i64, dirtyable: u64) -> bool {
        let before = self.thresholds(dirtyable);
        if !self.settings.set(name, value) {
            return false;
        }
        if before.dirty != self.thresholds(dirtyable).dirty {
            let anew = Limits::new(self.settings, dirtyable);
            (self.limit, self.core_test) = (anew.limit, anew.core_test);
        }
        true
    }

    /// Its limits as they are.
    pub fn limits(&self) -> Limits {
        Limits { settings: self.settings, limit: self.limit, core_test: self.core_test }
    }

    /// When its timers go off.
    pub fn wheel(&self) -> TimerWheel {
        self.wheel
    }

    /// The rate of ticks.
    pub fn hz(&self) -> Hz {
        self.wheel.hz()
    }

    /// A task dirtied a page that was clean; true if the flusher must be woken some day.
    pub fn note_dirtied(&mut self, task: ContextId, now: u64) -> bool {
        self.dirtied += 1;
        self.untested += 1;
        self.dirtier(task, now).dirtied += 1;
        if self.since.is_some() {
            return false;
        }
        self.since = Some(if std::mem::take(&mut self.is_fresh) { 0 } else { now });
        self.arm(now);
        true
    }

    /// Pages have been written, and perhaps no other is under writeback.
    pub fn note_written(&mut self, now: u64, pages: u64, is_last: bool) {
        self.settle(now);
        self.written += pages;
        if is_last && self.estimates_later && self.settles.is_none() {
            self.settles = Some(self.wheel.after(now, self.ticks(BETWEEN_ESTIMATES)));
        }
    }

    /// Makes the estimate that was due after writing had ended, if it was, however new the last one
    /// is (rule writeback-limit-8; observed on 6.12 by bdi_dirty_ratelimit).
    fn settle(&mut self, now: u64) {
        if let Some(due) = self.settles.filter(|due| *due <= now) {
            self.settles = None;
            self.reckon(due, None, true);
        }
    }

    /// Pages were put under writeback, the first of them after nothing was: time when nothing was
    /// written does not count for the estimate.
    pub fn begins(&mut self, now: u64) {
        self.settle(now);
        let now = now + self.wheel.booted();
        if now > self.estimated.0 + u64::from(self.hz().get()) {
            self.estimated = (now, self.dirtied, self.written);
        }
    }

    /// Before which tick something must have become dirty that the flusher, awake, is to write
    /// because it is old; none if it looked a while ago.
    pub fn looks_for_old(&mut self, now: u64) -> Option<u64> {
        if now < self.looked + self.ticks(self.settings.interval) {
            return None;
        }
        self.looked = now;
        Some((now + 1).saturating_sub(self.ticks(self.settings.expire)))
    }

    /// Whether a writer is to be tested, and what comes of it (rules writeback-limit).
    pub fn test(&mut self, task: ContextId, now: u64, dirtyable: u64, counts: Counted) -> Tested {
        let exceeded = self.is_exceeded;
        let is_due = self.dirtier(task, now).is_due(exceeded);
        if is_due || self.untested >= self.core_test {
            self.untested = 0;
            return self.balance(task, now, dirtyable, counts);
        }
        Tested::default()
    }

    /// The same for one who has slept and is tested again.
    pub fn balance(
        &mut self,
        task: ContextId,
        now: u64,
        dirtyable: u64,
        counts: Counted,
    ) -> Tested {
        self.settle(now);
        let position = self.position(dirtyable, counts);
        let mut tested = Tested::default();
        if counts.all.dirty > position.background && !self.is_asked {
            (self.is_asked, tested.starts) = (true, true);
        }
        if position.dirty <= position.freerun() {
            self.dirtier(task, now).run_free(now, &position);
            return tested;
        }
        tested.starts |= !std::mem::replace(&mut self.is_asked, true);
        self.is_exceeded = position.exceeds();
        self.reckon(now, Some(&position), false);
        let (hz, estimate) = (self.hz(), self.estimate);
        let verdict = self.dirtier(task, now).hold_back(now, hz, &position, &estimate);
        if let Verdict::Pause { ticks, is_tested_again } = verdict {
            tested.pause = Some((ticks, is_tested_again));
        }
        tested
    }

    /// Makes a new estimate if the last one is 200 ms old.
    pub fn estimate(&mut self, now: u64) {
        self.settle(now);
        self.reckon(now, None, false);
    }

    /// Whether so much is dirty that the flusher goes on (rule flusher-2).
    pub fn is_too_much(&self, dirtyable: u64, counts: Counted) -> bool {
        let thresholds = self.thresholds(dirtyable);
        let share =
            Writeback::share(counts).threshold(thresholds, counts.all.dirty, self.has_floor);
        counts.all.dirty > thresholds.background
            || counts.own.dirty > limits::background_share(share, thresholds)
    }

    /// How many pages one visit of the flusher writes at most.
    pub fn visit(&mut self, now: u64, left: u64) -> u64 {
        self.settle(now);
        limits::visit(self.estimate.average, self.limit.followed(), left)
    }

    /// Whether the flusher, awake, is to write what has been dirty for long.
    pub fn looks(&mut self, now: u64) -> bool {
        if now < self.looked + self.ticks(self.settings.interval) {
            return false;
        }
        self.looked = now;
        self.since
            .is_some_and(|since| since == 0 || since + self.ticks(self.settings.expire) <= now)
    }

    /// A visit has ended, with pages that are still dirty or none.
    pub fn visited(&mut self, now: u64, is_dirty: bool, goes_on: bool) {
        match is_dirty {
            false => self.since = None,
            true if !goes_on => self.since = Some(now),
            true => {}
        }
    }

    /// The flusher goes to sleep; it wakes again if anything is dirty.
    pub fn sleeps(&mut self, now: u64) {
        self.is_asked = false;
        if self.since.is_some() {
            self.arm(now);
        }
    }

    /// When a flusher wakes that falls asleep now (vm.dirty_writeback_centisecs).
    pub fn next_look(&self, now: u64) -> u64 {
        self.wheel.after(now, self.ticks(self.settings.interval))
    }

    fn arm(&mut self, now: u64) {
        let at = self.next_look(now);
        self.wakes = Some(self.wakes.map_or(at, |wakes| wakes.min(at)));
    }

    fn ticks(&self, hundredths: u64) -> u64 {
        hundredths * u64::from(self.hz().get()) / 100
    }

    fn dirtier(&mut self, task: ContextId, now: u64) -> &mut Dirtier {
        let index = task.0 as usize;
        if index >= self.dirtiers.len() {
            self.dirtiers.resize(index + 1, None);
        }
        self.dirtiers[index].get_or_insert_with(|| Dirtier::new(now))
    }

    fn thresholds(&self, dirtyable: u64) -> Thresholds {
        Thresholds::new(&self.settings, dirtyable)
    }

    /// The disk is the only one, and so does all that is done, for all groups together.
    fn share(counts: Counted) -> Share {
        let (completed, of) = counts.share;
        Share { completed, of, at_least: 0, at_most: 100 }
    }

    fn position(&mut self, dirtyable: u64, counts: Counted) -> Position {
        let thresholds = self.thresholds(dirtyable);
        let dirty = counts.all.dirty + counts.all.writeback;
        Position {
            threshold: thresholds.dirty,
            background: thresholds.background,
            hard_limit: self.limit.pages(thresholds.dirty),
            dirty,
            device_threshold: Writeback::share(counts).threshold(thresholds, dirty, self.has_floor),
            device_dirty: counts.own.dirty + counts.own.writeback,
            average_bandwidth: self.estimate.average,
        }
    }

    /// A new estimate of the bandwidth, and of the rate for writers at this position, if the last
    /// one is old, or anyway.
    fn reckon(&mut self, now: u64, position: Option<&Position>, anyway: bool) {
        let now = now + self.wheel.booted();
        let (at, dirtied, written) = self.estimated;
        let elapsed = now.saturating_sub(at);
        if elapsed < self.ticks(BETWEEN_ESTIMATES) && !anyway {
            return;
        }
        if let Some(position) = position {
            let is_below = position.dirty < position.setpoint();
            let pages = self.dirtied - dirtied;
            self.limit.follow(position.threshold, position.dirty);
            self.estimate.dirtied(pages, elapsed, self.hz(), position.ratio(), is_below);
        }
        self.estimate.written(self.written - written, elapsed, self.hz());
        self.estimated = (now, self.dirtied, self.written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Kernel, Version};

    #[test]
    fn what_may_be_dirty_at_boot_says_when_a_core_is_tested_until_a_threshold_is_set() {
        // Observed on 6.12 by global_dirty_state: 512 MiB, then dirty_ratio of 10.
        let rules = Rules::of(Kernel::of(Version::V6_12));
        let wheel = TimerWheel::new(Hz::new(250).unwrap(), 0);
        let mut writeback = Writeback::new(&rules, wheel, 127_272);
        assert_eq!(writeback.core_test, 795);
        assert!(writeback.set("dirty_background_ratio", 5, 125_000));
        assert_eq!(writeback.core_test, 795);
        assert!(writeback.set("dirty_ratio", 10, 125_080));
        assert_eq!((writeback.core_test, writeback.limit.followed()), (390, 12_489));
        assert!(!writeback.set("swappiness", 10, 125_080));
    }
    #[test]
    fn the_estimate_after_writing_is_made_however_new_the_last_one_is() {
        let rules = Rules::of(Kernel::of(Version::V6_12));
        let wheel = TimerWheel::new(Hz::new(250).unwrap(), 0);
        let mut writeback = Writeback::new(&rules, wheel, 127_272);
        writeback.note_written(2, 1000, true);
        let due = writeback.settles.expect("writing has ended");
        writeback.estimate(due - 1);
        let before = writeback.estimate;
        writeback.estimate(due);
        assert_ne!(writeback.estimate, before);
        let settled = writeback.estimate;
        writeback.estimate(due + 1);
        assert_eq!(writeback.estimate, settled);
    }
}
