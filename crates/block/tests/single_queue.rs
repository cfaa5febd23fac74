//! The single queue follows its rules (rules plug, dispatch-list, allocate, flush and device-plug).

mod common;

use block::scheduler::Placement;
use block::{Command, CommandOp, Flags, Op, PlugFlush, Shape, Transport, Version};
use common::{Bench, Fifo, facts};

#[test]
fn without_a_plug_a_request_goes_through_at_once() {
    let mut bench = Bench::single(Version::V4_19, facts());
    bench.read(1, 100, 8);
    bench.complete(0);
    assert_eq!(bench.events(), "Q100 G100 I100 D100 C100");
    assert_eq!(bench.done, [1]);
}

#[test]
fn a_plug_is_sorted_by_sector_and_inserted_before_u() {
    let mut bench = Bench::single(Version::V4_19, facts());
    bench.plug(1);
    for sector in [300, 100, 200] {
        bench.read(1, sector, 8);
    }
    bench.unplug(1, PlugFlush::Explicit);
    assert_eq!(
        bench.events(),
        "Q300 G300 P Q100 G100 Q200 G200 I100 I200 I300 U(3) D100 D200 D300"
    );
}

#[test]
fn a_plug_flushes_itself_after_sixteen_requests() {
    let mut bench = Bench::single(Version::V4_19, facts());
    bench.plug(1);
    for n in 0..17 {
        bench.read(1, n * 1000, 8);
    }
    let events = bench.events();
    assert!(events.contains("Q16000 G16000 I0 "), "{events}");
    assert!(events.contains("U(16)"), "{events}");
}

#[test]
fn a_plug_flushes_itself_after_a_large_request() {
    let mut bench = Bench::single(Version::V4_19, facts());
    bench.plug(1);
    bench.read(1, 0, 256);
    bench.read(1, 5000, 8);
    assert_eq!(bench.events(), "Q0 G0 P Q5000 G5000 I0 U(1) D0 P");
}

#[test]
fn a_task_that_blocks_flushes_its_plug_with_the_timer_event() {
    let mut bench = Bench::single(Version::V4_19, facts());
    bench.plug(1);
    bench.read(1, 0, 8);
    bench.unplug(1, PlugFlush::Blocks);
    assert_eq!(bench.events(), "Q0 G0 P I0 UT(1) D0");
}

#[test]
fn bios_merge_in_the_plug_and_in_the_scheduler() {
    let mut bench = Bench::single(Version::V4_19, facts());
    bench.plug(1);
    bench.read(1, 100, 8);
    bench.read(1, 108, 8);
    bench.read(1, 92, 8);
    assert_eq!(bench.events(), "Q100 G100 P Q108 M108 Q92 F92");
    bench.unplug(1, PlugFlush::Explicit);
    assert_eq!(bench.device[0].sectors.0, 24);
    // Fill the device, so that requests stay with the scheduler.
    for n in 1..=5 {
        bench.read(1, n * 10_000, 8);
    }
    bench.events();
    bench.read(2, 70_000, 8);
    bench.read(2, 70_008, 8);
    assert_eq!(bench.events(), "Q70000 G70000 I70000 Q70008 M70008");
}

#[test]
fn a_merge_never_exceeds_the_limits_and_marks_the_request() {
    let mut facts = facts();
    facts.queue_depth = 1;
    let mut bench = Bench::single(Version::V4_19, facts);
    bench.queue.set(bench.now, "max_sectors_kb", 8).unwrap();
    bench.plug(1);
    bench.read(1, 0, 12);
    bench.read(1, 12, 8);
    // The first request is marked now: what would fit is not merged either.
    bench.read(1, 20, 4);
    assert_eq!(bench.events(), "Q0 G0 P Q12 G12 Q20 M20");
}

#[test]
fn one_request_beyond_the_queue_depth_is_activated() {
    let mut bench = Bench::single(Version::V4_19, facts());
    for n in 0..6 {
        bench.read(1, n * 1000, 8);
    }
    assert_eq!(bench.device.len(), 4);
    assert!(bench.events().ends_with("D3000 Q4000 G4000 I4000 D4000 Q5000 G5000 I5000"));
    bench.complete(0);
    assert_eq!(bench.events(), "C0 D5000");
}

#[test]
fn the_dispatch_list_is_sorted_from_the_boundary_on() {
    // A forced drain moves everything behind one command, so that the sorting shows.
    let mut facts = facts();
    facts.queue_depth = 1;
    let mut bench = Bench::single(Version::V4_19, facts);
    for sector in [500, 400, 600, 300, 550] {
        bench.read(1, sector, 8);
    }
    let attach = Fifo::attach(Shape::Single, Placement::Tail);
    bench.queue.switch(bench.now, common::WORKER, attach);
    bench.go(common::WORKER);
    let mut order = Vec::new();
    while !bench.device.is_empty() {
        order.push(bench.complete(0).sector.0);
    }
    // 400 was activated already: the boundary is behind it.
    assert_eq!(order, [500, 400, 550, 600, 300]);
}

#[test]
fn a_split_bio_traces_one_q_and_its_first_part_does_not_merge() {
    let mut bench = Bench::single(Version::V4_19, facts());
    bench.queue.set(bench.now, "max_sectors_kb", 64).unwrap();
    bench.plug(1);
    bench.read(1, 0, 300);
    bench.read(1, 300, 8);
    bench.unplug(1, PlugFlush::Explicit);
    assert_eq!(
        bench.events(),
        "Q0 X0/128 G0 P X128/256 G128 G256 Q300 M300 I0 I128 I256 U(3) D0 D128 D256"
    );
    bench.complete_all();
    assert_eq!(bench.done, [1, 2]);
}

#[test]
fn the_129th_request_starts_a_batch_and_the_next_task_sleeps() {
    let mut facts = facts();
    facts.queue_depth = 1;
    let mut bench = Bench::single(Version::V4_19, facts);
    for n in 0..112 {
        assert!(bench.read(1, n * 1000, 8));
    }
    assert!(!bench.queue.is_congested());
    assert!(bench.read(1, 112_000, 8));
    assert!(bench.queue.is_congested());
    for n in 113..128 {
        assert!(bench.read(1, n * 1000, 8));
    }
    // Task 1 made the list full and is batching; task 2 is not.
    assert!(!bench.read(2, 900_000, 8));
    assert!(bench.read(1, 128_000, 8));
    bench.complete(0);
    assert_eq!(bench.woken, []);
    bench.complete(0);
    assert_eq!(bench.woken, [block::ContextId(2)]);
    assert!(bench.go(block::ContextId(2)));
}

#[test]
fn a_flush_sequence_is_flush_data_flush() {
    let mut facts = facts();
    facts.volatile_cache = true;
    let mut bench = Bench::single(Version::V4_19, facts);
    bench.write(1, 100, 8, Flags::PREFLUSH.with(Flags::FUA));
    let ops = [CommandOp::Flush, CommandOp::Write, CommandOp::Flush];
    for op in ops {
        assert_eq!(bench.done, []);
        assert_eq!(bench.device.len(), 1);
        let Command { op: seen, fua, .. } = bench.complete(0);
        assert_eq!((seen, fua), (op, false));
    }
    assert_eq!(bench.done, [1]);
    bench.queue.assert_drained();
}

#[test]
fn native_fua_needs_no_second_flush() {
    let mut facts = facts();
    (facts.volatile_cache, facts.fua) = (true, true);
    let mut bench = Bench::single(Version::V4_19, facts);
    bench.write(1, 100, 8, Flags::PREFLUSH.with(Flags::FUA));
    assert_eq!(bench.complete(0).op, CommandOp::Flush);
    let data = bench.complete(0);
    assert_eq!((data.op, data.fua), (CommandOp::Write, true));
    assert_eq!(bench.done, [1]);
}

#[test]
fn one_flush_command_serves_all_that_wait() {
    let mut facts = facts();
    facts.volatile_cache = true;
    let mut bench = Bench::single(Version::V4_19, facts);
    for _ in 0..3 {
        bench.write(1, 0, 0, Flags::PREFLUSH);
    }
    // The first started at once, the other two wait for the next.
    assert_eq!(bench.device.len(), 1);
    bench.complete(0);
    assert_eq!(bench.done, [1]);
    assert_eq!(bench.device.len(), 1);
    bench.complete(0);
    assert_eq!(bench.done, [1, 2, 3]);
}

#[test]
fn a_sata_flush_keeps_the_scheduler_from_being_asked() {
    for (transport, beside) in [(Transport::Sata, 0), (Transport::Scsi, 1)] {
        let mut facts = facts();
        (facts.volatile_cache, facts.transport) = (true, transport);
        let mut bench = Bench::single(Version::V4_19, facts);
        bench.write(1, 0, 0, Flags::PREFLUSH);
        bench.read(2, 100, 8);
        assert_eq!(bench.device.len(), 1 + beside, "{transport:?}");
        bench.complete_all();
        assert_eq!(bench.done.len(), 2);
    }
}

#[test]
fn without_a_cache_flushes_cost_nothing() {
    let mut bench = Bench::single(Version::V4_19, facts());
    bench.write(1, 0, 0, Flags::PREFLUSH);
    assert_eq!(bench.done, [1]);
    bench.write(1, 100, 8, Flags::PREFLUSH.with(Flags::FUA));
    assert_eq!(bench.device[0].op, CommandOp::Write);
    bench.complete(0);
    bench.queue.assert_drained();
}

#[test]
fn a_requeued_request_goes_first_and_is_issued_again() {
    let mut bench = Bench::single(Version::V4_19, facts());
    bench.read(1, 100, 8);
    let command = bench.device.pop().unwrap();
    bench.events();
    bench.queue.requeue(bench.now, common::INTERRUPT, 0, command.tag);
    bench.go(common::INTERRUPT);
    assert_eq!(bench.events(), "R100 I100 D100");
    bench.complete(0);
    assert_eq!(bench.done, [1]);
}

#[test]
fn an_old_kernel_plugs_the_device_until_four_wait() {
    let mut bench = Bench::single(Version::V2_6_32, facts());
    for n in 0..3 {
        bench.read(1, n * 1000, 8);
    }
    assert_eq!(bench.device.len(), 0);
    assert_eq!(bench.events(), "Q0 G0 P I0 Q1000 G1000 I1000 Q2000 G2000 I2000");
    bench.read(1, 3000, 8);
    assert_eq!(bench.events(), "Q3000 G3000 I3000 U(4) D0 D1000 D2000 D3000");
}

#[test]
fn an_old_kernel_unplugs_by_itself_after_three_milliseconds() {
    let mut bench = Bench::single(Version::V2_6_32, facts());
    bench.read(1, 0, 8);
    bench.pass(2);
    assert_eq!(bench.device.len(), 0);
    bench.pass(1);
    assert_eq!(bench.events(), "Q0 G0 P I0 UT(1) D0");
}

#[test]
fn a_reader_that_sleeps_unplugs_the_device() {
    let mut bench = Bench::single(Version::V2_6_32, facts());
    bench.read(1, 0, 8);
    bench.unplug(1, PlugFlush::Blocks);
    assert_eq!(bench.events(), "Q0 G0 P I0 U(1) D0");
}

#[test]
fn the_scheduler_can_be_exchanged_in_flight() {
    let mut bench = Bench::single(Version::V4_19, facts());
    for n in 0..10 {
        bench.read(1, n * 1000, 8);
    }
    let attach = Fifo::attach(Shape::Single, Placement::Tail);
    bench.queue.switch(bench.now, common::WORKER, attach);
    bench.go(common::WORKER);
    assert_eq!(bench.queue.queued(), 0, "the old one was drained");
    // A newcomer waits until everything is done, then goes on.
    assert!(!bench.read(2, 50_000, 8));
    bench.complete_all();
    assert_eq!(bench.woken, [block::ContextId(2)]);
    assert!(bench.go(block::ContextId(2)));
    bench.complete_all();
    assert_eq!(bench.done.len(), 11);
    bench.queue.assert_drained();
}

#[test]
fn a_nowait_bio_is_refused_instead_of_sleeping() {
    let mut facts = facts();
    facts.queue_depth = 1;
    let mut bench = Bench::single(Version::V4_19, facts);
    for n in 0..128 {
        bench.read(1, n * 1000, 8);
    }
    let mut bio = bench.bio(2, Op::Read, 900_000, 8);
    bio.flags = Flags::NOWAIT;
    assert!(bench.submit(bio));
    assert_eq!(bench.done, [1_000_000 + 129]);
}
