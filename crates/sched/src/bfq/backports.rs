//! The changes of March 2019, one at a time on the kernel before them (founding report 5).

use super::Bfq;
use super::inject::{Injecting, Measuring};
use super::rules::{OnFlash, Rules};
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

static LIST: [Backport; 4] = [
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
];

fn apply(rules: &mut Rules, name: &str) {
    match name {
        INJECTS => inject(rules, Measuring::IN_5_2),
        INJECTS_AND_MEASURES => inject(rules, Measuring::IN_5_3),
        PARTS => rules.on_flash = OnFlash::Never,
        WAITS => rules.waits_long_for_raised = true,
        other => panic!("bfq has no backport {other}"),
    }
}

fn inject(rules: &mut Rules, measuring: Measuring) {
    (rules.injecting, rules.measuring) = (Injecting::ByServiceTime, measuring);
}
