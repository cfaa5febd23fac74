//! What kernels said of their decisions, beside what is said here of the same bios.
//!
//! Each line of a recording begins with the kernel's counter of ticks. `Q` is a bio that enters the
//! queue, of a task (which was not held back) or of the worker; `X` is a bio that is split, whose
//! rest comes again. Everything else is a message ("throtl" left out).

use super::*;
use crate::kernel::{Kernel, Version};
use alloc::string::ToString;

/// The groups of a recording, by the limit of bytes that tells them apart in its messages; bios
/// that no message is about are of the last one.
struct Recording {
    name: &'static str,
    kernel: Version,
    text: &'static str,
    groups: &'static [Group],
}

struct Group {
    number: u32,
    parent: u32,
    /// Its limit of bytes written; zero: none, or another one from time to time.
    wbps: u64,
    /// Bios that wait for this limit come from it.
    waits_for: u64,
}

const fn group(number: u32, parent: u32, wbps: u64, waits_for: u64) -> Group {
    Group { number, parent, wbps, waits_for }
}

const ONE: &[Group] = &[group(1, 0, 0, 0)];
/// One below the other, in version 1.
const SEPARATE: &[Group] = &[group(2, 1, 500_000, 500_000), group(1, 0, 1_000_000, 1_000_000)];
/// Two below one, in version 2.
const UNIFIED: &[Group] =
    &[group(1, 0, 1_000_000, 0), group(2, 1, 600_000, 600_000), group(3, 1, 0, 1_000_000)];

macro_rules! recording {
    ($name:literal, $kernel:ident, $groups:expr) => {
        Recording {
            name: $name,
            kernel: Version::$kernel,
            text: include_str!(concat!("recorded/", $name, ".txt")),
            groups: $groups,
        }
    };
}

static RECORDINGS: &[Recording] = &[
    recording!("both-directions-7.3", V7_3, ONE),
    recording!("bytes-7.3", V7_3, ONE),
    recording!("bytes-and-ios-7.3", V7_3, ONE),
    recording!("changed-6.1", V6_1, ONE),
    recording!("changed-6.12", V6_12, ONE),
    recording!("changed-7.3", V7_3, ONE),
    recording!("changed-thrice-6.1", V6_1, ONE),
    recording!("changed-thrice-6.12", V6_12, ONE),
    recording!("changed-thrice-7.3", V7_3, ONE),
    recording!("far-ahead-6.1", V6_1, ONE),
    recording!("far-ahead-6.12", V6_12, ONE),
    recording!("far-ahead-7.3", V7_3, ONE),
    recording!("few-ios-7.3", V7_3, ONE),
    recording!("few-ios-few-bytes-7.3", V7_3, ONE),
    recording!("few-ios-many-bytes-7.3", V7_3, ONE),
    recording!("four-limits-7.3", V7_3, ONE),
    recording!("lowered-7.3", V7_3, ONE),
    recording!("not-rotational-6.1", V6_1, ONE),
    recording!("not-rotational-6.12", V6_12, ONE),
    recording!("not-rotational-7.3", V7_3, ONE),
    recording!("raised-6.12", V6_12, ONE),
    recording!("raised-7.3", V7_3, ONE),
    recording!("raised-and-one-more-7.3", V7_3, ONE),
    recording!("separate-groups-6.1", V6_1, SEPARATE),
    recording!("separate-groups-6.12", V6_12, SEPARATE),
    recording!("separate-groups-7.3", V7_3, SEPARATE),
    recording!("split-and-flushed-6.12", V6_12, ONE),
    recording!("split-and-flushed-7.3", V7_3, ONE),
    recording!("sync-writes-6.12", V6_12, ONE),
    recording!("unified-groups-6.1", V6_1, UNIFIED),
    recording!("unified-groups-6.12", V6_12, UNIFIED),
    recording!("unified-groups-7.3", V7_3, UNIFIED),
];

/// The counter at time zero, two seconds after the boot.
const ZERO: u64 = 4_294_892_796;

fn at(counter: u64) -> Instant {
    Instant::from_nanos((counter - ZERO) * 4_000_000)
}

/// The number behind a key of a message.
fn number(text: &str, key: &str) -> u64 {
    let (_, rest) = text.split_once(key).unwrap_or_else(|| panic!("no {key} in {text}"));
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().expect("a number")
}

struct Replay {
    throttle: Throttle,
    bios: u64,
    said: Vec<String>,
}

impl Replay {
    fn take(&mut self) {
        let said = self.throttle.take_messages();
        self.said.extend(said.into_iter().map(|it| it.1["throtl ".len()..].to_string()));
    }

    fn timers(&mut self, until: Instant) {
        while let Some(next) = self.throttle.next_timer().filter(|next| *next <= until) {
            if self.throttle.timer(next) {
                self.throttle.hand_out();
                while self.throttle.next_handed_out().is_some() {}
            }
        }
        self.take();
    }

    fn arrive(&mut self, now: Instant, group: u32, direction: Direction, bytes: u64, paid: bool) {
        self.bios += 1;
        let bio = BioId::from_bits(self.bios);
        let group = CgroupId(group);
        let arrival = Arrival { bio, group, direction, bytes, is_paid: paid, must_go: false };
        self.throttle.must_wait(now, arrival);
        self.take();
    }
}

fn replay(recording: &Recording) -> (Vec<String>, Vec<String>) {
    let kernel = Kernel::of(recording.kernel);
    let rules = kernel.throttle.expect("the kernel limits groups");
    let mut throttle = Throttle::new(rules, kernel.hz, true);
    throttle.set_uptime(2);
    if core::ptr::eq(recording.groups, SEPARATE) {
        throttle.set_hierarchy(Hierarchy::Separate);
    }
    throttle.want_messages(true);
    throttle.define(CgroupId::ROOT, None);
    let mut groups: Vec<&Group> = recording.groups.iter().collect();
    groups.sort_by_key(|it| it.number);
    for group in groups {
        throttle.define(CgroupId(group.number), Some(CgroupId(group.parent)));
    }
    let mut replay = Replay { throttle, bios: 0, said: Vec::new() };
    let lines: Vec<(u64, &str)> = recording
        .text
        .lines()
        .map(|line| line.split_once(' ').expect("a tick and a text"))
        .map(|(tick, text)| (tick.parse().expect("a tick"), text))
        .collect();
    let mut is_rest = false;
    for (index, &(counter, text)) in lines.iter().enumerate() {
        let now = at(counter);
        replay.timers(now);
        let other = recording.groups.last().expect("a group").number;
        if let Some((bio, bytes)) = text.strip_prefix("Q ").and_then(|it| it.split_once(' ')) {
            let (bytes, by) = bytes.split_once(' ').expect("who");
            let reads = bio.contains('R');
            let direction = if reads { Direction::Read } else { Direction::Write };
            if by == "task" {
                replay.arrive(now, other, direction, bytes.parse().unwrap(), false);
            }
        } else if text == "X" {
            // What is said next tells whether its rest has to wait.
            let next = lines.get(index + 1).map_or("", |it| it.1);
            is_rest = next.contains("] bio.");
            if !is_rest {
                replay.arrive(now, other, Direction::Write, 0, true);
            }
        } else if text.contains("] bio.") {
            let reads = text.starts_with("[R]");
            let direction = if reads { Direction::Read } else { Direction::Write };
            let of = recording.groups.iter().find(|it| it.waits_for == number(text, " bps="));
            let group = of.map_or(other, |it| it.number);
            replay.arrive(now, group, direction, number(text, "sz="), is_rest);
            is_rest = false;
        } else if text.starts_with("limit change") {
            let bps = |key| Some(number(text, key)).filter(|it| *it != u64::MAX);
            let iops = |key| Some(number(text, key) as u32).filter(|it| *it != u32::MAX);
            let limits = IoMax {
                read: Limit { bps: bps("rbps="), iops: iops("riops=") },
                write: Limit { bps: bps("wbps="), iops: iops("wiops=") },
            };
            let of = recording.groups.iter().find(|it| Some(it.wbps) == limits.write.bps);
            let group = of.map_or(other, |it| it.number);
            replay.throttle.limit(now, CgroupId(group), limits);
            replay.take();
        }
    }
    let is_message = |text: &&str| !text.starts_with("Q ") && *text != "X";
    let theirs = lines.iter().map(|it| it.1).filter(is_message).map(ToString::to_string);
    (theirs.collect(), replay.said)
}

#[test]
fn every_message_is_the_kernels() {
    for recording in RECORDINGS {
        let (theirs, ours) = replay(recording);
        for (index, (their, our)) in theirs.iter().zip(&ours).enumerate() {
            let before = &theirs[index.saturating_sub(5)..index];
            assert_eq!(their, our, "{}, message {index}; before: {before:#?}", recording.name);
        }
        assert_eq!(theirs.len(), ours.len(), "{}: {:?}", recording.name, ours.last());
    }
}
