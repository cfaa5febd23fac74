//! Writeback throttling follows its rules (rules wbt).

mod common;

use block::scheduler::TunableError;
use block::{Action, ContextId, Facts, Flags, Op, PlugFlush, Transport, Version, Work};
use block::{WbtEvent, WbtStatus};
use common::{Bench, facts};

/// Reads are to come back within two milliseconds.
const TARGET: i64 = 2000;

fn deep() -> Facts {
    Facts { transport: Transport::Virtio, queue_depth: 64, rotational: false, ..facts() }
}

/// A queue of that kernel that throttles.
fn bench(version: Version) -> Bench {
    bench_with(version, deep())
}

fn bench_with(version: Version, facts: Facts) -> Bench {
    let mut bench = match version {
        Version::V4_10 => Bench::single(version, facts),
        _ => Bench::multi(version, facts),
    };
    bench.queue.set(bench.now, "wbt_lat_usec", TARGET).unwrap();
    bench
}

/// Submits plain buffered writes, each of a task of its own, until one sleeps; how many did not.
fn fill(bench: &mut Bench, flags: Flags, most: u32) -> u32 {
    for count in 0..most {
        if !write(bench, 100 + bench.next_token as u32, flags) {
            return count;
        }
    }
    most
}

fn write(bench: &mut Bench, task: u32, flags: Flags) -> bool {
    let sector = 1_000_000 + 1000 * bench.next_token;
    let mut bio = bench.bio(task, Op::Write, sector, 8);
    bio.flags = flags;
    bench.submit(bio)
}

/// What throttling has said since the last call.
fn said(bench: &mut Bench) -> Vec<WbtEvent> {
    let events = bench.queue.log().events().iter();
    let said = events.filter_map(|event| match &event.action {
        Action::Wbt(said) => Some(*said),
        _ => None,
    });
    let said = said.collect();
    bench.queue.log().clear();
    said
}

fn statuses(bench: &mut Bench) -> Vec<(WbtStatus, i32)> {
    let timers = said(bench).into_iter().filter_map(|said| match said {
        WbtEvent::Timer { status, step, .. } => Some((status, step)),
        _ => None,
    });
    timers.collect()
}

/// Lets the tasks that were woken go on.
fn go_on(bench: &mut Bench) -> usize {
    let woken = std::mem::take(&mut bench.woken);
    woken.iter().for_each(|task| assert!(bench.go(*task)));
    woken.len()
}

// rule wbt-1
#[test]
fn nothing_is_throttled_unless_somebody_asks() {
    let mut bench = Bench::multi(Version::V6_12, deep());
    assert_eq!(bench.queue.get("wbt_lat_usec"), Some(0));
    assert_eq!(fill(&mut bench, Flags::NONE, 60), 60);
    assert_eq!(bench.queue.next_timer(), None);
}

// rule wbt-1
#[test]
fn minus_one_asks_for_what_such_a_device_has() {
    for (rotational, expected) in [(false, 2000), (true, 75_000)] {
        let facts = Facts { rotational, ..deep() };
        let mut bench = Bench::multi(Version::V6_12, facts);
        bench.queue.set(bench.now, "wbt_lat_usec", -1).unwrap();
        assert_eq!(bench.queue.get("wbt_lat_usec"), Some(expected));
        bench.queue.set(bench.now, "wbt_lat_usec", 0).unwrap();
        assert_eq!(bench.queue.get("wbt_lat_usec"), Some(0));
    }
}

// rule wbt-1
#[test]
fn a_kernel_before_4_10_has_no_such_setting() {
    let mut bench = Bench::single(Version::V2_6_32, facts());
    let refused = bench.queue.set(bench.now, "wbt_lat_usec", 0);
    let Err(TunableError::Unknown { known }) = refused else { panic!("{refused:?}") };
    assert!(!known.contains(&"wbt_lat_usec"));
    assert_eq!(bench.queue.get("wbt_lat_usec"), None);
}

// rule wbt-2
#[test]
fn direct_writes_and_reads_are_never_held_back() {
    for version in [Version::V4_10, Version::V6_12] {
        let mut bench = bench(version);
        assert_eq!(fill(&mut bench, Flags::SYNC.with(Flags::IDLE), 40), 40);
        for n in 0..20 {
            assert!(bench.read(500 + n, u64::from(n) * 1000, 8));
        }
        assert_eq!(bench.queue.next_timer(), None, "nothing is counted");
    }
}

// rules wbt-2 and wbt-6
#[test]
fn discards_have_slots_of_their_own_but_in_4_10() {
    let discard = |bench: &mut Bench, n: u32| {
        let bio = bench.bio(700 + n, Op::Discard, u64::from(n) * 1000, 8);
        bench.submit(bio)
    };
    let facts = Facts { discard: true, ..deep() };
    let mut new = bench_with(Version::V6_12, facts.clone());
    assert_eq!(fill(&mut new, Flags::NONE, 60), 8);
    let discards = (0..20).take_while(|n| discard(&mut new, *n)).count();
    assert_eq!(discards, 4);
    let mut old = bench_with(Version::V4_10, facts);
    assert_eq!((0..20).take_while(|n| discard(&mut old, *n)).count(), 20);
}

// rule wbt-3
#[test]
fn a_bio_that_a_request_absorbs_needs_no_slot() {
    let mut bench = bench_with(Version::V4_10, Facts { queue_depth: 1, ..deep() });
    // One is with the device and one waits for it; the scheduler has the others.
    bench.read(1, 0, 8);
    bench.read(1, 100, 8);
    let mut first = bench.bio(2, Op::Write, 5000, 8);
    first.flags = Flags::NONE;
    assert!(bench.submit(first));
    assert_eq!(fill(&mut bench, Flags::NONE, 60), 3, "one of four is taken");
    let mut next = bench.bio(3, Op::Write, 5008, 8);
    next.flags = Flags::NONE;
    assert!(bench.submit(next), "it is merged");
}

// rule wbt-4
#[test]
fn who_waits_gives_away_its_plug_and_looks_for_no_request_again() {
    let mut bench = bench(Version::V6_12);
    assert_eq!(fill(&mut bench, Flags::NONE, 60), 8);
    bench.events();
    bench.plug(3);
    let held = bench.bio(3, Op::Write, 300, 8);
    assert!(bench.submit(block::Bio { flags: Flags::SYNC.with(Flags::IDLE), ..held }));
    assert!(!write(&mut bench, 3, Flags::NONE));
    let events = bench.events();
    assert!(events.contains("UT(1) I300"), "{events}");
    bench.complete_all();
    assert_eq!(go_on(&mut bench), 2);
    bench.unplug(3, PlugFlush::Explicit);
    bench.complete_all();
    bench.queue.assert_drained();
}

// rule wbt-6
#[test]
fn who_writes_says_how_many_slots_may_be_taken() {
    for version in [Version::V4_10, Version::V4_19, Version::V6_1, Version::V6_12, Version::V7_3] {
        let taken = |flags| fill(&mut bench(version), flags, 60);
        assert_eq!(taken(Flags::NONE), 8, "{version}");
        assert_eq!(taken(Flags::BACKGROUND), 4, "{version}");
        assert_eq!(taken(Flags::SYNC), 16, "{version}");
        assert_eq!(taken(Flags::META), 16, "{version}");
        assert_eq!(taken(Flags::PRIO.with(Flags::BACKGROUND)), 16, "{version}");
    }
}

// rule wbt-6
#[test]
fn for_a_tenth_of_a_second_after_a_read_all_writes_are_background() {
    let mut bench = bench(Version::V6_12);
    bench.read(1, 0, 8);
    bench.complete_all();
    bench.pass(99);
    assert_eq!(fill(&mut bench, Flags::NONE, 60), 4);
    bench.complete_all();
    go_on(&mut bench);
    bench.complete_all();
    bench.pass(5);
    assert_eq!(fill(&mut bench, Flags::NONE, 60), 8);
}

// rule wbt-6
#[test]
fn for_a_second_after_a_writer_paused_everybody_has_all_slots() {
    let mut bench = bench(Version::V6_12);
    bench.queue.note_dirty_pause(bench.now);
    bench.now += base::Duration::from_millis(999);
    assert_eq!(fill(&mut bench, Flags::BACKGROUND, 60), 16);
}

// rule wbt-7
#[test]
fn who_waits_is_first() {
    let mut bench = bench(Version::V6_12);
    assert_eq!(fill(&mut bench, Flags::BACKGROUND, 60), 4);
    // It might have one of sixteen, but somebody waits for one of four.
    assert!(!write(&mut bench, 7, Flags::SYNC));
    bench.complete_all();
    assert_eq!(bench.woken.len(), 2);
    assert_eq!(go_on(&mut bench), 2);
}

// rule wbt-8
#[test]
fn sleepers_are_woken_when_enough_slots_are_free() {
    let mut bench = bench(Version::V6_12);
    assert_eq!(fill(&mut bench, Flags::NONE, 60), 8);
    assert!(!write(&mut bench, 7, Flags::NONE));
    bench.complete(0);
    assert_eq!(bench.woken.len(), 0, "half of the background's slots are to be free");
    bench.complete(0);
    assert_eq!(go_on(&mut bench), 2);
}

// rule wbt-8
#[test]
fn a_cache_that_loses_data_wakes_sleepers_only_when_nothing_is_under_way() {
    let facts = Facts { volatile_cache: true, ..deep() };
    let mut bench = bench_with(Version::V6_12, facts);
    assert_eq!(fill(&mut bench, Flags::NONE, 60), 8);
    for left in (0..8).rev() {
        assert_eq!(bench.woken.len(), 0, "{left}");
        bench.complete(0);
    }
    assert_eq!(go_on(&mut bench), 1);
    // Unless a writer has paused lately.
    bench.complete_all();
    assert_eq!(fill(&mut bench, Flags::NONE, 60), 8);
    bench.queue.note_dirty_pause(bench.now);
    bench.complete(0);
    bench.complete(0);
    assert_eq!(go_on(&mut bench), 1);
}

// rule wbt-9
#[test]
fn a_read_that_the_device_keeps_too_long_makes_slots_fewer() {
    let mut bench = bench(Version::V6_12);
    write(&mut bench, 2, Flags::NONE);
    bench.read(1, 0, 8);
    bench.pass(104);
    assert_eq!(statuses(&mut bench), [(WbtStatus::Exceeded, 0)]);
    assert_eq!(fill(&mut bench, Flags::SYNC, 60), 7, "one of eight is taken");
}

// rules wbt-9 and wbt-11
#[test]
fn the_fastest_read_of_a_window_counts_from_its_issue() {
    let window = |millis: u64, reads: u64| {
        let mut bench = bench(Version::V6_12);
        assert_eq!(fill(&mut bench, Flags::NONE, 4), 4);
        bench.complete_all();
        write(&mut bench, 30, Flags::NONE);
        for n in 0..reads {
            bench.read(1, n * 1000, 8);
            bench.now += base::Duration::from_millis(millis);
            let read = bench.device.len() - 1;
            bench.complete(read);
        }
        bench.pass(104);
        statuses(&mut bench)
    };
    assert_eq!(window(1, 1), [(WbtStatus::Ok, 0)]);
    assert_eq!(window(3, 2), [(WbtStatus::Exceeded, 0)]);
    assert_eq!(window(1, 0), [(WbtStatus::UnknownWrites, 0)]);
}

// rule wbt-5
#[test]
fn a_device_takes_as_many_commands_as_requests_it_had_when_it_came() {
    // Observed on 6.1.192, 6.12.117 and 7.3.4, with virtio disks of 1, 4, 32, 64 and 256 tags:
    // `wbt_step` is the same with and without a scheduler, and after `nr_requests` was written.
    let steps_of = |queue_depth, requests: Option<i64>| -> Vec<(u32, u32, u32)> {
        let facts = Facts { queue_depth, ..deep() };
        let mut bench = Bench::multi(Version::V6_12, facts);
        if let Some(requests) = requests {
            bench.queue.set(bench.now, "nr_requests", requests).unwrap();
        }
        bench.queue.set(bench.now, "wbt_lat_usec", TARGET).unwrap();
        write(&mut bench, 2, Flags::NONE);
        (0..4).for_each(|_| bench.pass(104));
        let slots = |event| match event {
            WbtEvent::Step { background, normal, max, .. } => Some((background, normal, max)),
            _ => None,
        };
        said(&mut bench).into_iter().filter_map(slots).collect()
    };
    let of_64 = [(8, 16, 31), (16, 31, 61), (24, 48, 96)];
    assert_eq!(steps_of(64, None), of_64);
    assert_eq!(steps_of(64, Some(40)), of_64);
    assert_eq!([steps_of(1, None), steps_of(4, None)], [[(1, 1, 1)], [(2, 3, 6)]]);
    assert_eq!(steps_of(32, None)[..], [(8, 16, 31), (12, 24, 48)]);
    assert_eq!(steps_of(256, None)[0], (8, 16, 31));
}

// rules wbt-10 and wbt-12
#[test]
fn without_reads_writes_get_more_slots_window_by_window_and_lose_them_when_nothing_happens() {
    let mut bench = bench_with(Version::V6_12, Facts { queue_depth: 256, ..deep() });
    write(&mut bench, 2, Flags::NONE);
    bench.pass(104);
    bench.pass(104);
    assert_eq!(fill(&mut bench, Flags::SYNC, 100), 60, "one of 61 is taken");
    bench.complete_all();
    go_on(&mut bench);
    bench.complete_all();
    said(&mut bench);
    while bench.queue.next_timer().is_some() {
        bench.pass(104);
    }
    let steps: Vec<i32> = statuses(&mut bench).into_iter().map(|it| it.1).collect();
    // The window in which writes were done says a last time that there may be more.
    assert_eq!(steps, [-2, -3, -3, -3, -3, -3, -2, -2, -2, -2, -2, -1, -1, -1, -1, -1]);
}

// rule wbt-12
#[test]
fn who_is_throttled_gets_slots_back_when_reads_are_gone() {
    let mut bench = bench(Version::V6_12);
    write(&mut bench, 2, Flags::NONE);
    bench.read(1, 0, 8);
    bench.pass(104);
    bench.pass(104);
    bench.complete_all();
    said(&mut bench);
    while bench.queue.next_timer().is_some() {
        bench.pass(104);
    }
    let seen = statuses(&mut bench);
    assert_eq!(seen.last(), Some(&(WbtStatus::Unknown, 1)));
    assert_eq!(fill(&mut bench, Flags::SYNC, 60), 16);
}

// rule wbt-13
#[test]
fn requests_that_are_given_back_keep_their_slots_and_are_not_watched() {
    let mut bench = bench(Version::V6_12);
    bench.read(1, 0, 8);
    write(&mut bench, 2, Flags::NONE);
    let tag = bench.device.remove(0).tag;
    bench.queue.requeue(bench.now, common::INTERRUPT, 0, tag);
    while !bench.queue.is_idle(common::INTERRUPT) {
        bench.queue.step(bench.now, common::INTERRUPT);
    }
    bench.pass(104);
    assert_eq!(statuses(&mut bench), [(WbtStatus::UnknownWrites, 0)]);
    bench.go(common::INTERRUPT);
    bench.queue.run(bench.now, common::WORKER, 0);
    bench.go(common::WORKER);
    bench.complete_all();
    bench.queue.assert_drained();
}

// rules wbt-1 and wbt-8
#[test]
fn writing_zero_lets_everybody_go() {
    let mut bench = bench(Version::V6_12);
    assert_eq!(fill(&mut bench, Flags::NONE, 60), 8);
    bench.queue.set(bench.now, "wbt_lat_usec", 0).unwrap();
    while bench.queue.has_outputs() {
        if let Some(block::Output::Wake(context)) = bench.queue.pop_output() {
            bench.woken.push(context);
        }
    }
    assert_eq!(go_on(&mut bench), 1);
    assert_eq!(fill(&mut bench, Flags::NONE, 40), 40);
    bench.complete_all();
    assert_eq!(go_on(&mut bench), 0);
    bench.queue.assert_drained();
}

#[test]
fn a_bio_that_must_not_wait_for_a_tag_gives_its_slot_back() {
    // Four tags, and as many direct writes that need no slots.
    let mut bench = bench_with(Version::V6_12, Facts { queue_depth: 4, ..deep() });
    bench.queue.set(bench.now, "nr_requests", 4).unwrap();
    let direct = Flags::SYNC.with(Flags::IDLE);
    assert_eq!(fill(&mut bench, direct, 10), 4);
    for task in 0..100 {
        let mut bio = bench.bio(task, Op::Write, 5000 + 100 * u64::from(task), 8);
        bio.flags = Flags::NOWAIT;
        bench.submit(bio);
    }
    assert_eq!(fill(&mut bench, Flags::NONE, 10), 0, "who may wait for a tag does");
    let sleeps = bench.queue.log().events().iter().filter(|it| it.action == Action::Sleep);
    assert_eq!(sleeps.count(), 2);
}

// Observed on 6.12.117, who reads the clock: a bio that is cut does for each part but the last,
// unless its plug knows the time.
#[test]
fn whose_bio_is_cut_has_read_the_clock_when_it_is_throttled() {
    const WHOLE: u32 = 8;
    const CUT: u32 = 4000;
    for (version, sectors, knows, looks) in [
        (Version::V6_12, CUT, false, 1),
        (Version::V6_12, CUT, true, 0),
        (Version::V6_12, WHOLE, false, 0),
        (Version::V6_1, CUT, false, 0),
    ] {
        let mut bench = bench(version);
        let sleeper = ContextId(7);
        bench.queue.start_plug(sleeper);
        if knows {
            bench.queue.looks_at_clock(sleeper, Work::Allocate);
        }
        fill(&mut bench, Flags::NONE, 60);
        let mut bio = bench.bio(sleeper.0, Op::Write, 5000, sectors);
        bio.flags = Flags::NONE;
        assert!(!bench.submit(bio), "{version}");
        let told = [(); 2].map(|()| bench.queue.looks_for_policy(sleeper));
        assert_eq!(told, [looks, 0], "{version} {sectors} {knows}");
    }
}
