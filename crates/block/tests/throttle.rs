//! Limits of control groups in the queue (rules throttle): who waits, and how it goes on.

mod common;

use base::{Bytes, Instant};
use block::kernel::Hierarchy;
use block::scheduler::Cgroup;
use block::throttle::IoMax;
use block::{
    Action, Attach, CgroupId, ContextId, Event, EventLog, Facts, Flags, Kernel, Op, RequestQueue,
    Transport, Version,
};
use common::{Bench, RELEASER, facts};

/// Below the root.
const GROUP: CgroupId = CgroupId(1);
/// Below that.
const CHILD: CgroupId = CgroupId(2);

fn bench(version: Version, hierarchy: Hierarchy) -> Bench {
    let capacity = Bytes(1 << 40);
    let mut bench = Bench::multi(version, Facts { rotational: true, capacity, ..facts() });
    bench.queue.prepare_limits(2, hierarchy);
    for (id, parent) in
        [(CgroupId::ROOT, None), (GROUP, Some(CgroupId::ROOT)), (CHILD, Some(GROUP))]
    {
        let path = format!("/{}", id.0);
        bench.queue.define_cgroup(id, Cgroup { path, parent, ..Cgroup::default() });
    }
    bench
}

fn limited(limits: &str) -> Bench {
    let mut bench = bench(Version::V6_12, Hierarchy::Unified);
    limit(&mut bench, GROUP, limits);
    bench
}

fn limit(bench: &mut Bench, group: CgroupId, limits: &str) {
    bench.queue.limit_cgroup(bench.now, group, IoMax::parse(limits).unwrap());
}

fn submit(bench: &mut Bench, group: CgroupId, op: Op, sector: u64, sectors: u32) -> bool {
    let mut bio = bench.bio(7, op, sector, sectors);
    bio.origin.cgroup = group;
    bench.submit(bio)
}

fn released(bench: &mut Bench) -> Vec<Event> {
    let events = bench.queue.log().events().iter();
    events.filter(|it| matches!(it.action, Action::Released { .. })).cloned().collect()
}

#[test]
fn who_submits_goes_on_and_its_bio_is_late() {
    let mut bench = limited("wiops=20");
    for sector in [0, 1000, 2000] {
        assert!(submit(&mut bench, GROUP, Op::Write, sector, 8));
    }
    assert_eq!(bench.with_device(), [0, 1000]);
    bench.pass(100);
    assert_eq!(bench.with_device(), [0, 1000]);
    bench.pass(8);
    assert_eq!(bench.with_device(), [0, 1000, 2000]);
    let released = released(&mut bench);
    assert_eq!(released.len(), 1);
    assert_eq!((released[0].context, released[0].token), (ContextId(7), 3));
    bench.complete_all();
    assert_eq!(bench.done, [1, 2, 3]);
    bench.queue.assert_drained();
}

#[test]
fn the_worker_submits_in_one_plug_reads_first_and_for_the_group() {
    let mut bench = limited("wbps=81920 rbps=40960");
    for (op, sector) in [(Op::Write, 0), (Op::Write, 8), (Op::Read, 1000)] {
        assert!(submit(&mut bench, GROUP, op, sector, 8));
    }
    bench.complete_all();
    for (op, sector) in [(Op::Write, 16), (Op::Write, 24), (Op::Read, 1008)] {
        assert!(submit(&mut bench, GROUP, op, sector, 8));
    }
    bench.events();
    bench.pass(308);
    let by: Vec<ContextId> = bench.queue.log().events().iter().map(|it| it.context).collect();
    assert!(by.contains(&RELEASER));
    let events = bench.events();
    assert!(events.starts_with("Q1008 G1008 P Q16 G16 Q24 M24 U(2)"), "{events}");
    assert_eq!(bench.done.len(), 3);
    bench.complete_all();
    bench.queue.assert_drained();
}

#[test]
fn requests_of_the_worker_are_of_the_bios_group() {
    let mut bench = limited("riops=10");
    assert!(submit(&mut bench, GROUP, Op::Read, 0, 8));
    assert!(submit(&mut bench, GROUP, Op::Read, 1000, 8));
    bench.events();
    bench.pass(150);
    let events = bench.queue.log().events();
    let request = events.iter().find_map(|it| it.request.filter(|_| it.sector.0 == 1000)).unwrap();
    let origin = bench.queue.request(request).unwrap().origin;
    assert_eq!((origin.context, origin.cgroup), (RELEASER, GROUP));
}

#[test]
fn limits_hold_for_groups_below_in_version_2_only() {
    for (hierarchy, held) in [(Hierarchy::Unified, 2), (Hierarchy::Separate, 0)] {
        let mut bench = bench(Version::V6_12, hierarchy);
        limit(&mut bench, GROUP, "riops=10");
        for sector in [0, 1000, 2000] {
            submit(&mut bench, CHILD, Op::Read, sector, 8);
        }
        assert_eq!(bench.device.len(), 3 - held, "{hierarchy:?}");
        // Who is in no limited group never waits.
        submit(&mut bench, CgroupId::ROOT, Op::Read, 5000, 8);
        assert_eq!(bench.device.len(), 4 - held, "{hierarchy:?}");
    }
}

#[test]
fn the_rest_of_a_split_bio_counts_as_one_more_without_bytes() {
    let mut bench = limited("wiops=20 wbps=10485760");
    bench.queue.set(bench.now, "max_sectors_kb", 64).unwrap();
    // Three parts: the third waits for its turn.
    assert!(submit(&mut bench, GROUP, Op::Write, 0, 3 * 128));
    assert_eq!(bench.with_device(), [0, 128]);
    bench.pass(108);
    assert_eq!(bench.with_device(), [0, 128, 256]);
    bench.complete_all();
    assert_eq!(bench.done, [1]);
    let mut bench = limited("wbps=1966080");
    bench.queue.set(bench.now, "max_sectors_kb", 64).unwrap();
    // All of a slice, once.
    assert!(submit(&mut bench, GROUP, Op::Write, 0, 3 * 128));
    assert_eq!(bench.with_device(), [0, 128, 256]);
}

#[test]
fn a_discard_counts_for_one_sector() {
    let mut bench = limited("wbps=10240");
    for n in 0..3 {
        assert!(submit(&mut bench, GROUP, Op::Discard, n * 100_000, 80_000));
    }
    // Of 1024 bytes in a slice.
    assert_eq!(bench.device.len(), 2);
}

#[test]
fn metadata_go_through_and_are_made_up_for() {
    let mut bench = limited("wiops=10");
    let mut write = |sector, flags| {
        let mut bio = bench.bio(7, Op::Write, sector, 8);
        bio.origin.cgroup = GROUP;
        bio.flags = flags;
        bench.submit(bio);
        bench.device.len()
    };
    assert_eq!(write(0, Flags::SYNC), 1);
    assert_eq!(write(1000, Flags::SYNC.with(Flags::META)), 2);
    assert_eq!(write(2000, Flags::SYNC.with(Flags::META)), 3);
    assert_eq!(write(3000, Flags::SYNC), 3);
    bench.pass(108);
    assert_eq!(bench.device.len(), 3);
    bench.pass(200);
    assert_eq!(bench.device.len(), 4);
}

#[test]
fn who_asked_not_to_wait_waits_all_the_same() {
    let mut bench = limited("riops=10");
    for sector in [0, 1000] {
        let mut bio = bench.bio(7, Op::Read, sector, 8);
        bio.origin.cgroup = GROUP;
        bio.flags = Flags::NOWAIT;
        assert!(bench.submit(bio));
    }
    assert_eq!(bench.with_device(), [0]);
    bench.pass(150);
    assert_eq!(bench.with_device(), [0, 1000]);
}

#[test]
fn slices_are_short_on_what_does_not_turn_but_for_virtio_and_new_kernels() {
    // Of 50 reads a second one goes through in 20 ms and five in 100.
    let at_once = |version, transport, rotational| {
        let facts = Facts { transport, rotational, queue_depth: 32, ..facts() };
        let mut bench = Bench::multi(version, facts);
        bench.queue.define_cgroup(GROUP, Cgroup::default());
        limit(&mut bench, GROUP, "riops=50");
        (0..6).for_each(|n| assert!(submit(&mut bench, GROUP, Op::Read, 1000 * n, 8)));
        bench.device.len()
    };
    assert_eq!(at_once(Version::V6_12, Transport::Nvme, false), 1);
    assert_eq!(at_once(Version::V6_12, Transport::Sata, true), 5);
    assert_eq!(at_once(Version::V6_12, Transport::Virtio, false), 5);
    assert_eq!(at_once(Version::V7_3, Transport::Nvme, false), 5);
}

#[test]
fn what_is_said_is_of_the_group() {
    let kernel = Kernel::of(Version::V6_12);
    let log = EventLog::with_messages();
    let mut queue = RequestQueue::new(kernel, facts(), Attach::none(), 1, log);
    queue.prepare_limits(2, Hierarchy::Unified);
    queue.define_cgroup(GROUP, Cgroup::default());
    queue.limit_cgroup(Instant::ZERO, GROUP, IoMax::parse("wbps=4096").unwrap());
    let mut bio = limited("").bio(7, Op::Write, 0, 8);
    bio.origin.cgroup = GROUP;
    queue.submit(Instant::ZERO, bio);
    queue.finish(Instant::ZERO, ContextId(7));
    let events = queue.log().events().iter();
    let said: Vec<(Option<CgroupId>, &str)> = events
        .filter_map(|it| match &it.action {
            Action::Message { text, cgroup } => Some((*cgroup, text.as_str())),
            _ => None,
        })
        .collect();
    assert!(said.iter().any(|it| it.0 == Some(GROUP) && it.1.contains("[W] bio. bdisp=0 sz=4096")));
    assert_eq!(said.last().unwrap().1, "throtl schedule timer. delay=200 jiffies=4294892796");
}
