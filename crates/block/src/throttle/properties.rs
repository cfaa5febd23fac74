//! Whatever comes, whenever: nothing is lost, nothing is overtaken, and no group does more than it
//! may.

use super::*;
use crate::kernel::{Kernel, Version};
use alloc::collections::BTreeMap;
use base::{Duration, Rng};

const GROUPS: usize = 4;
/// Tick of the kernels that are tried.
const TICK: u64 = 4_000_000;

struct Trial {
    throttle: Throttle,
    rng: Rng,
    limits: [IoMax; GROUPS],
    /// Of which group and direction each bio is, and how long.
    bios: Vec<(usize, Direction, u64)>,
    /// When each went on, by number, and in which order.
    gone: Vec<(usize, Instant)>,
    waits: u32,
    /// What there is room for is forgotten before each bio.
    forgets: bool,
}

/// Group 2 is below group 1, and group 3 below group 2, in version 2.
fn parent(group: usize) -> Option<CgroupId> {
    match group {
        0 => None,
        2 | 3 => Some(CgroupId(group as u32 - 1)),
        _ => Some(CgroupId::ROOT),
    }
}

impl Trial {
    fn new(seed: u64, version: Version) -> Trial {
        let mut rng = Rng::stream(seed, "throttle");
        let kernel = Kernel::of(version);
        let rules = kernel.throttle.expect("the kernel limits groups");
        let mut throttle = Throttle::new(rules, kernel.hz, rng.below(2) == 0);
        throttle.set_uptime(rng.below(40));
        if rng.below(2) == 0 {
            throttle.set_hierarchy(Hierarchy::Separate);
        }
        for group in 0..GROUPS {
            throttle.define(CgroupId(group as u32), parent(group));
        }
        let mut trial = Trial {
            throttle,
            rng,
            limits: [IoMax::default(); GROUPS],
            bios: Vec::new(),
            gone: Vec::new(),
            waits: 0,
            forgets: false,
        };
        for group in 1..GROUPS {
            trial.limit(Instant::ZERO, group);
        }
        trial
    }

    fn draw(&mut self) -> Limit {
        let bps = 50_000 + self.rng.below(5_000_000);
        // Of fewer than ten a slice allows less than one, which some kernels do not hold.
        let iops = 10 + self.rng.below(2000) as u32;
        let is = |rng: &mut Rng| rng.below(2) == 0;
        Limit { bps: is(&mut self.rng).then_some(bps), iops: is(&mut self.rng).then_some(iops) }
    }

    fn limit(&mut self, now: Instant, group: usize) {
        let limits = IoMax { read: self.draw(), write: self.draw() };
        self.limits[group] = limits;
        self.throttle.limit(now, CgroupId(group as u32), limits);
    }

    fn timers(&mut self, until: Instant) {
        while let Some(next) = self.throttle.next_timer().filter(|next| *next <= until) {
            if self.throttle.timer(next) {
                self.throttle.hand_out();
                while let Some(bio) = self.throttle.next_handed_out() {
                    self.gone.push((bio.to_bits() as usize, next));
                }
            }
        }
    }

    fn arrive(&mut self, now: Instant) {
        let group = self.rng.below(GROUPS as u64) as usize;
        let direction = BOTH[self.rng.below(2) as usize];
        let bytes = 4096 * (1 + self.rng.below(64));
        let number = self.bios.len();
        let bio = BioId::from_bits(number as u64);
        self.bios.push((group, direction, bytes));
        let group = CgroupId(group as u32);
        let (is_paid, must_go) = (false, false);
        if self.forgets {
            for node in &mut self.throttle.nodes {
                BOTH.into_iter().for_each(|direction| node.account(direction).forget_room());
            }
        }
        let arrival = Arrival { bio, group, direction, bytes, is_paid, must_go };
        match self.throttle.must_wait(now, arrival) {
            true => self.waits += 1,
            false => self.gone.push((number, now)),
        }
    }

    /// Bios come in bursts, and now and then a limit changes.
    fn run(&mut self, changes: bool) {
        let mut now = Instant::ZERO;
        for _ in 0..200 {
            now += Duration::from_nanos(self.rng.below(60 * TICK));
            self.timers(now);
            for _ in 0..self.rng.below(12) {
                self.arrive(now);
            }
            if changes && self.rng.below(10) == 0 {
                let group = 1 + self.rng.below(GROUPS as u64 - 1) as usize;
                self.limit(now, group);
            }
        }
        while let Some(next) = self.throttle.next_timer() {
            self.timers(next);
        }
    }

    fn passes(&self, group: usize, level: usize) -> bool {
        let is_unified = self.throttle.hierarchy == Hierarchy::Unified;
        group == level
            || is_unified && parent(group).is_some_and(|above| self.passes(above.0 as usize, level))
    }

    /// That nothing is lost, doubled or overtaken by one of its own group and direction.
    fn check_order(&self) {
        assert_eq!(self.gone.len(), self.bios.len());
        let mut last: BTreeMap<(usize, Direction), usize> = BTreeMap::new();
        for &(number, _) in &self.gone {
            let (group, direction, _) = self.bios[number];
            if let Some(before) = last.insert((group, direction), number) {
                assert!(before < number, "{number} was overtaken by {before}");
            }
        }
    }

    /// That a group did no more than it may, and a slice besides; and in any span of time behind
    /// a bio no more than that and four slices, for what was not used counts until a slice is over.
    fn check_rates(&self) {
        let pace = self.throttle.pace();
        let most = |rate: u64, span: u64, slices: u64| {
            let ticks = u128::from(span / TICK + 1 + slices * pace.slice);
            u128::from(rate) * ticks / u128::from(pace.hz)
        };
        // What has waited in a group may wait again in those above, and then go on all at once.
        let levels = match self.throttle.hierarchy {
            Hierarchy::Unified => 1..2,
            Hierarchy::Separate => 1..GROUPS,
        };
        for (level, direction) in levels.flat_map(|it| BOTH.map(|direction| (it, direction))) {
            let limit = self.limits[level].of(direction);
            let of_level = self.gone.iter().filter(|(number, _)| {
                self.bios[*number].1 == direction && self.passes(self.bios[*number].0, level)
            });
            let of_level: Vec<(u64, u64)> =
                of_level.map(|(number, at)| (at.as_nanos(), self.bios[*number].2)).collect();
            for from in 0..of_level.len() {
                let (mut bytes, mut ios) = (0, 0);
                let (since, slices) = if from == 0 { (0, 1) } else { (of_level[from].0, 4) };
                for &(at, length) in &of_level[from..] {
                    (bytes, ios) = (bytes + u128::from(length), ios + 1);
                    let span = at - since;
                    if let Some(iops) = limit.iops {
                        assert!(ios <= most(u64::from(iops), span, slices), "{ios} in {span} ns");
                    }
                    // Bytes that were waited for go on later where there are stages.
                    let at_once = !self.throttle.rules.in_stages || self.has_no_ios();
                    if let Some(bps) = limit.bps.filter(|_| at_once) {
                        let first = u128::from(of_level[from].1);
                        assert!(
                            bytes - first <= most(bps, span, slices),
                            "{bytes} bytes in {span} ns"
                        );
                    }
                }
            }
        }
    }

    fn has_no_ios(&self) -> bool {
        self.limits.iter().all(|it| it.read.iops.is_none() && it.write.iops.is_none())
    }
}

const VERSIONS: [Version; 4] = [Version::V4_19, Version::V6_1, Version::V6_12, Version::V7_3];

#[test]
fn nothing_is_lost_or_overtaken() {
    let mut waits = 0;
    for (seed, version) in (0..100).flat_map(|seed| VERSIONS.map(|it| (seed, it))) {
        let mut trial = Trial::new(seed, version);
        trial.run(true);
        trial.check_order();
        waits += trial.waits;
    }
    assert!(waits > 10_000, "{waits}");
}

#[test]
fn no_group_does_more_than_it_may() {
    for (seed, version) in (0..60).flat_map(|seed| VERSIONS.map(|it| (seed, it))) {
        let mut trial = Trial::new(1000 + seed, version);
        trial.run(false);
        trial.check_order();
        trial.check_rates();
    }
}

#[test]
fn what_there_is_room_for_within_a_tick_is_what_slices_allow() {
    for (seed, version) in (0..100).flat_map(|seed| VERSIONS.map(|it| (seed, it))) {
        let trials = [false, true].map(|forgets| {
            let mut trial = Trial { forgets, ..Trial::new(2000 + seed, version) };
            trial.throttle.want_messages(true);
            trial.run(true);
            (trial.gone, trial.throttle.take_messages())
        });
        assert!(trials[0] == trials[1], "seed {seed} on {version:?}");
    }
}
