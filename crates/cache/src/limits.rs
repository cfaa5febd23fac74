//! How much may be dirty: thresholds in pages (rules dirty-limits), and how much one visit of the
//! flusher to a file may write (rule dirty-limits-7).
//!
//! All numbers are pages. Whose pages they are, and how many are dirty, is told by the caller.

use crate::Rules;

const PAGE: u64 = 4096;
/// Pages a visit is rounded to: 4 MiB.
const VISIT_STEP: u64 = 1024;

/// The settings of the whole machine (sysctl vm.dirty_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// vm.dirty_ratio, percent of what may be dirtied.
    pub dirty_ratio: u64,
    /// vm.dirty_background_ratio, percent.
    pub background_ratio: u64,
    /// vm.dirty_bytes; zero if unused, otherwise in place of the ratio.
    pub dirty_bytes: u64,
    /// vm.dirty_background_bytes.
    pub background_bytes: u64,
    /// vm.dirty_expire_centisecs: what has been dirty for so long is written.
    pub expire: u64,
    /// vm.dirty_writeback_centisecs: so often the flusher looks for it.
    pub interval: u64,
}

/// A setting of the whole machine, by its name below /proc/sys/vm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineSetting {
    /// Its name.
    pub name: &'static str,
    /// The smallest and the largest value.
    pub range: (i64, i64),
    /// What it counts.
    pub unit: &'static str,
}

const fn machine(name: &'static str, least: i64, most: i64, unit: &'static str) -> MachineSetting {
    MachineSetting { name, range: (least, most), unit }
}

/// All settings of the whole machine that are modelled. A zero that would stop the flusher's looks
/// is not.
pub const MACHINE_SETTINGS: [MachineSetting; 6] = [
    machine("dirty_ratio", 0, 100, "%"),
    machine("dirty_background_ratio", 0, 100, "%"),
    machine("dirty_bytes", 8192, i64::MAX, "bytes"),
    machine("dirty_background_bytes", 1, i64::MAX, "bytes"),
    machine("dirty_expire_centisecs", 1, 360_000, "centiseconds"),
    machine("dirty_writeback_centisecs", 1, 360_000, "centiseconds"),
];

impl Settings {
    /// What a kernel starts with (rule dirty-limits-2).
    pub fn of(rules: &Rules) -> Settings {
        Settings {
            dirty_ratio: rules.dirty_ratio,
            background_ratio: rules.background_ratio,
            dirty_bytes: 0,
            background_bytes: 0,
            expire: 3000,
            interval: 500,
        }
    }

    /// A setting by its name below /proc/sys/vm.
    pub fn get(&self, name: &str) -> Option<u64> {
        Some(match name {
            "dirty_ratio" => self.dirty_ratio,
            "dirty_bytes" => self.dirty_bytes,
            "dirty_background_ratio" => self.background_ratio,
            "dirty_background_bytes" => self.background_bytes,
            "dirty_expire_centisecs" => self.expire,
            "dirty_writeback_centisecs" => self.interval,
            _ => return None,
        })
    }

    /// Takes over a setting by its name below /proc/sys/vm; false if that is none. A number of
    /// bytes takes the place of a ratio, and the other way round.
    pub fn set(&mut self, name: &str, value: i64) -> bool {
        let value = u64::try_from(value).unwrap_or(0);
        match name {
            "dirty_ratio" => (self.dirty_ratio, self.dirty_bytes) = (value, 0),
            "dirty_bytes" => (self.dirty_ratio, self.dirty_bytes) = (0, value),
            "dirty_background_ratio" => {
                (self.background_ratio, self.background_bytes) = (value, 0);
            }
            "dirty_background_bytes" => {
                (self.background_ratio, self.background_bytes) = (0, value);
            }
            "dirty_expire_centisecs" => self.expire = value,
            "dirty_writeback_centisecs" => self.interval = value,
            _ => return false,
        }
        true
    }
}

/// From where on dirty pages are written, and their writers held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Writers are held back so that no more than this is dirty.
    pub dirty: u64,
    /// The flusher starts.
    pub background: u64,
}

impl Thresholds {
    /// The thresholds of an ordinary task, with so many pages that could be dirtied.
    pub fn new(settings: &Settings, dirtyable: u64) -> Thresholds {
        // A ratio is known in parts of a page. // observed on 6.12: /proc/vmstat
        let of = |bytes: u64, ratio: u64| match bytes {
            0 => dirtyable * (ratio * PAGE / 100) / PAGE,
            bytes => bytes.div_ceil(PAGE),
        };
        let dirty = of(settings.dirty_bytes, settings.dirty_ratio);
        let background = of(settings.background_bytes, settings.background_ratio);
        let background = if background >= dirty { dirty / 2 } else { background };
        Thresholds { dirty, background }
    }

    /// Those of a real-time task, which may go further (rule dirty-limits-3).
    pub fn raised(self, hard_limit: u64) -> Thresholds {
        let raise = |pages: u64| pages + pages / 4 + hard_limit / 32;
        Thresholds { dirty: raise(self.dirty), background: raise(self.background) }
    }

    /// Up to so many dirty pages nobody is held back.
    pub fn freerun(self) -> u64 {
        (self.dirty + self.background) / 2
    }
}

/// The limit that dirty pages never pass; it follows the threshold down only slowly
/// (rule dirty-limits-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardLimit {
    followed: u64,
}

impl HardLimit {
    /// At the start.
    pub fn new(threshold: u64) -> HardLimit {
        HardLimit { followed: threshold }
    }

    /// Every 200 ms.
    pub fn follow(&mut self, threshold: u64, dirty: u64) {
        if threshold >= self.followed {
            self.followed = threshold;
            return;
        }
        let floor = threshold.max(dirty);
        if self.followed > floor {
            self.followed -= (self.followed - floor) / 32;
        }
    }

    /// What it is.
    pub fn pages(self, threshold: u64) -> u64 {
        self.followed.max(threshold)
    }

    /// What it was followed down to: the limit that visits of the flusher know.
    pub fn followed(self) -> u64 {
        self.followed
    }
}

/// The share of a device in the writeback that was completed of late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Pages it completed.
    pub completed: u64,
    /// Pages all completed.
    pub of: u64,
    /// Its min_ratio, percent.
    pub at_least: u64,
    /// Its max_ratio, percent.
    pub at_most: u64,
}

impl Share {
    /// The part of the threshold that is the device's (rule dirty-limits-5).
    pub fn threshold(self, total: Thresholds, dirty: u64, floor: bool) -> u64 {
        let dirty_limit = total.dirty;
        let free = dirty_limit * (100 - self.at_least) / 100;
        let own = (free * self.completed).checked_div(self.of).unwrap_or(0);
        let own = own + dirty_limit * self.at_least / 100;
        let floor = if floor { dirty_limit.saturating_sub(dirty) / 8 } else { 0 };
        own.max(floor).min(dirty_limit * self.at_most / 100)
    }
}

/// The part of the background threshold that belongs to a part of the threshold.
pub fn background_share(share: u64, total: Thresholds) -> u64 {
    (share * total.background).checked_div(total.dirty).unwrap_or(0)
}

/// The most that one visit of the flusher to a file writes: half a second at the average bandwidth
/// in pages per second, but at least 4 MiB (rule dirty-limits-7).
pub fn visit(average_bandwidth: u64, hard_limit: u64, left: u64) -> u64 {
    let pages = (average_bandwidth / 2).min(hard_limit / 8).min(left);
    (pages + VISIT_STEP) / VISIT_STEP * VISIT_STEP
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Kernel, Version};

    fn rules(version: Version) -> Rules {
        Rules::of(Kernel::of(version))
    }

    #[test]
    fn bytes_take_the_place_of_a_ratio_and_the_other_way_round() {
        let mut settings = Settings::of(&rules(Version::V6_12));
        for setting in MACHINE_SETTINGS {
            assert!(settings.set(setting.name, setting.range.0.max(1)), "{}", setting.name);
        }
        assert_eq!((settings.dirty_ratio, settings.background_ratio), (0, 0));
        assert!(settings.set("dirty_ratio", 5) && !settings.set("swappiness", 5));
        assert_eq!((settings.dirty_ratio, settings.dirty_bytes), (5, 0));
        assert_eq!(Thresholds::new(&settings, 10_000).dirty, 498);
    }

    const DEFAULTS: Settings = Settings {
        dirty_ratio: 20,
        background_ratio: 10,
        dirty_bytes: 0,
        background_bytes: 0,
        expire: 3000,
        interval: 500,
    };

    #[test]
    fn a_fifth_may_be_dirty_and_half_of_that_starts_the_flusher() {
        let thresholds = Thresholds::new(&DEFAULTS, 1_000_000);
        assert_eq!(thresholds, Thresholds { dirty: 199_951, background: 99_853 });
        assert_eq!(thresholds.freerun(), 149_902);
        let old = Thresholds::new(&Settings::of(&rules(Version::V2_6_28)), 1_000_000);
        assert_eq!(old, Thresholds { dirty: 99_853, background: 49_804 });
    }

    #[test]
    fn bytes_override_ratios() {
        let settings = Settings { dirty_bytes: 40_960_000, background_bytes: 4097, ..DEFAULTS };
        let expected = Thresholds { dirty: 10_000, background: 2 };
        assert_eq!(Thresholds::new(&settings, 1_000_000), expected);
    }

    #[test]
    fn a_background_threshold_that_is_not_lower_becomes_half_of_the_other() {
        let settings = Settings { background_ratio: 20, ..DEFAULTS };
        assert_eq!(Thresholds::new(&settings, 1000).background, 99);
    }

    #[test]
    fn a_real_time_task_gets_a_quarter_and_a_32nd_of_the_limit_more() {
        let thresholds = Thresholds { dirty: 3200, background: 1600 };
        assert_eq!(thresholds.raised(3200), Thresholds { dirty: 4100, background: 2100 });
    }

    #[test]
    fn the_hard_limit_rises_at_once_and_falls_by_a_32nd_but_not_below_what_is_dirty() {
        let mut limit = HardLimit::new(1000);
        limit.follow(3200, 0);
        assert_eq!(limit.pages(3200), 3200);
        limit.follow(0, 0);
        assert_eq!(limit.pages(0), 3100);
        limit.follow(0, 3000);
        assert_eq!(limit.pages(0), 3097);
        limit.follow(0, 4000);
        assert_eq!(limit.followed(), 3097);
    }

    #[test]
    fn a_device_gets_its_share_and_since_6_an_eighth_of_what_is_free() {
        let total = Thresholds { dirty: 8000, background: 4000 };
        let share = Share { completed: 1, of: 4, at_least: 0, at_most: 100 };
        assert_eq!(share.threshold(total, 0, rules(Version::V4_19).has_floor), 2000);
        let idle = Share { completed: 0, ..share };
        assert_eq!(idle.threshold(total, 0, rules(Version::V4_19).has_floor), 0);
        assert_eq!(idle.threshold(total, 1600, rules(Version::V6_18).has_floor), 800);
        assert_eq!(Share { at_least: 50, ..share }.threshold(total, 8000, true), 5000);
        assert_eq!(Share { at_most: 10, ..share }.threshold(total, 0, true), 800);
        assert_eq!(background_share(2000, total), 1000);
    }

    #[test]
    fn a_visit_writes_half_a_second_in_steps_of_4_mib() {
        // Rule dirty-limits-7.
        let cases = [
            (25600, 200_000, u64::MAX, 13312),
            (25600, 40_000, u64::MAX, 5120),
            (6000, 200_000, u64::MAX, 3072),
            (1500, 200_000, u64::MAX, 1024),
            (25600, 200_000, 100, 1024),
        ];
        for (bandwidth, limit, left, expected) in cases {
            assert_eq!(visit(bandwidth, limit, left), expected, "{bandwidth} {limit} {left}");
        }
    }
}
