//! The changes of 2019 (A.3, A.3b), one at a time on the kernel before them (founding report 5).

use super::Bfq;
use super::inject::{Injecting, Measuring};
use super::rules::{OnFlash, Rules, TotallySeeky};
use crate::backport::{Backport, Backports};
use alloc::boxed::Box;
use block::Version;

/// What 5.1 can be given.
pub static BACKPORTS: Backports = Backports {
    list: &LIST,
    build: |kernel, given| {
        let mut rules = Rules::of(kernel);
        given.iter().for_each(|backport| apply(&mut rules, backport.name));
        Box::new(Bfq::with_rules(kernel, rules))
    },
};

const INJECTS: &str = "inject-by-service-time";
const INJECTS_AND_MEASURES: &str = "inject-by-service-time-5.3";
const PARTS: &str = "no-merge-on-flash";
const WAITS: &str = "idle-raised-20ms";
const SPARES: &str = "no-idling-for-lightest";
const STARTS_ALONE: &str = "no-bursts-while-busy";
const JUMPS: &str = "seeky-not-real-time";
const JUMPED: &str = "seeky-not-real-time-5.2-rc";

static LIST: [Backport; 8] = [
    Backport {
        name: INJECTS,
        says: "injects by service times as 5.2 does, where the limit is only ever 0 or 1",
        since: "5.2",
        on: &[Version::V5_1],
        excludes: &[INJECTS_AND_MEASURES],
    },
    Backport {
        name: INJECTS_AND_MEASURES,
        says: "injects by service times, and measures them",
        since: "5.3",
        on: &[Version::V5_1],
        excludes: &[INJECTS],
    },
    Backport {
        name: PARTS,
        says: "merges no queues on flash disks that queue commands",
        since: "5.2",
        on: &[Version::V5_1],
        excludes: &[],
    },
    Backport {
        name: WAITS,
        says: "waits at least 20 ms for a raised queue",
        since: "5.2",
        on: &[Version::V5_1],
        excludes: &[],
    },
    Backport {
        name: SPARES,
        says: "keeps the disk idle for no queue of the lowest weight",
        since: "5.2",
        on: &[Version::V5_1],
        excludes: &[],
    },
    Backport {
        name: STARTS_ALONE,
        says: "takes queues that come into being while others are busy for no burst",
        since: "5.2",
        on: &[Version::V5_1],
        excludes: &[],
    },
    Backport {
        name: JUMPS,
        says: "raises no queue as one in real time that has only jumped about of late",
        since: "5.2",
        on: &[Version::V5_1],
        excludes: &[JUMPED],
    },
    Backport {
        name: JUMPED,
        says: "the same of a queue that has jumped once: the mistake with which it was measured",
        since: "5.2-rc1",
        on: &[Version::V5_1],
        excludes: &[JUMPS],
    },
];

fn apply(rules: &mut Rules, name: &str) {
    match name {
        INJECTS => inject(rules, Measuring::IN_5_2),
        INJECTS_AND_MEASURES => inject(rules, Measuring::IN_5_3),
        PARTS => rules.on_flash = OnFlash::Never,
        WAITS => rules.waits_long_for_raised = true,
        SPARES => rules.spares_lightest = true,
        STARTS_ALONE => rules.bursts_while_busy = false,
        JUMPS => rules.totally_seeky = TotallySeeky::EndsRaising,
        JUMPED => rules.totally_seeky = TotallySeeky::EndsRaisingAtOnce,
        other => panic!("bfq has no backport {other}"),
    }
}

fn inject(rules: &mut Rules, measuring: Measuring) {
    (rules.injecting, rules.measuring) = (Injecting::ByServiceTime, measuring);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use block::Kernel;

    fn given(names: &[&str]) -> Rules {
        let mut rules = Rules::of(Kernel::of(Version::V5_1));
        names.iter().for_each(|name| apply(&mut rules, name));
        rules
    }

    #[test]
    fn with_all_that_came_with_5_2_a_5_1_follows_its_rules_but_for_two_that_are_no_backports() {
        let later = Rules::of(Kernel::of(Version::V5_2));
        let named = LIST.iter().filter(|it| it.since == "5.2").map(|it| it.name);
        let all = given(&named.collect::<Vec<_>>());
        let Rules { saves_weight, messages, .. } = given(&[]);
        assert_eq!(all, Rules { saves_weight, messages, ..later });
    }

    #[test]
    fn those_that_exclude_each_other_give_the_same_rule_another_value() {
        assert_eq!(given(&[JUMPED]).totally_seeky, TotallySeeky::EndsRaisingAtOnce);
        let measures = given(&[INJECTS_AND_MEASURES]);
        assert_eq!((measures.injecting, measures.measuring.alone), (Injecting::ByServiceTime, 1));
        assert!(measures.measuring.follows && !measures.measuring.heeds_injected);
        for it in &LIST {
            assert_ne!(given(&[it.name]), given(&[]), "{}", it.name);
            for other in it.excludes {
                let excluded = LIST.iter().find(|it| it.name == *other);
                assert!(excluded.is_some_and(|other| other.excludes.contains(&it.name)));
                assert_ne!(given(&[it.name]), given(&[other]));
            }
        }
    }
}
