//! blk-mq follows its rules (rules none, merge, plug, hctx, flush and tags).

mod common;

use block::scheduler::Placement;
use block::{
    Attach, Bio, CommandOp, ContextId, DEVICE_DEPTH, Facts, Flags, Op, Output, PlugFlush, Shape,
    Step,
};
use block::{Transport, Version, Work};
use common::{Bench, Fifo, WORKER, facts};

fn virtio() -> Facts {
    Facts { transport: Transport::Virtio, ..facts() }
}

fn none(facts: Facts) -> Bench {
    Bench::new(Version::V6_18, facts, Attach::none())
}

#[test]
fn without_a_plug_a_worker_runs_the_queue() {
    let mut bench = Bench::multi(Version::V4_19, facts());
    bench.read(1, 100, 8);
    bench.complete(0);
    assert_eq!(bench.events(), "Q100 G100 I100 D100 C100");
    assert_eq!(bench.done, [1]);
    bench.queue.assert_drained();
}

#[test]
fn a_single_bio_has_a_plug_of_its_own_in_recent_kernels() {
    let mut bench = Bench::multi(Version::V6_12, facts());
    bench.read(1, 100, 8);
    assert_eq!(bench.events(), "Q100 G100 P U(1) I100 D100");
}

#[test]
fn a_plug_keeps_the_order_of_submission_and_traces_u_before_i() {
    let mut bench = Bench::multi(Version::V6_18, facts());
    bench.plug(1);
    for sector in [300, 100, 200] {
        bench.read(1, sector, 8);
    }
    bench.unplug(1, PlugFlush::Explicit);
    assert_eq!(
        bench.events(),
        "Q300 G300 P Q100 G100 Q200 G200 U(3) I300 I100 I200 D300 D100 D200"
    );
}

#[test]
fn blk_mq_of_4_19_sorts_a_plug() {
    let mut bench = Bench::multi(Version::V4_19, facts());
    bench.plug(1);
    for sector in [300, 100, 200] {
        bench.read(1, sector, 8);
    }
    bench.unplug(1, PlugFlush::Explicit);
    // One by one: each goes to the driver before the next is asked for.
    assert_eq!(
        bench.events(),
        "Q300 G300 P Q100 G100 Q200 G200 U(3) I100 I200 I300 D100 D200 D300"
    );
}

#[test]
fn from_6_17_on_the_oldest_request_decides_about_size() {
    let mut bench = Bench::multi(Version::V6_18, facts());
    bench.plug(1);
    bench.read(1, 5000, 8);
    bench.read(1, 0, 256);
    bench.read(1, 6000, 8);
    assert!(!bench.events().contains('U'));
    bench.unplug(1, PlugFlush::Explicit);
    bench.complete_all();
    bench.events();
    bench.plug(1);
    bench.read(1, 0, 256);
    bench.read(1, 6000, 8);
    assert!(bench.events().contains("U(1)"));
}

#[test]
fn only_the_newest_request_of_a_plug_takes_bios() {
    let mut bench = Bench::multi(Version::V6_18, facts());
    bench.plug(1);
    bench.read(1, 0, 8);
    bench.read(1, 1000, 8);
    bench.read(1, 1008, 8);
    bench.read(1, 8, 8);
    assert_eq!(bench.events(), "Q0 G0 P Q1000 G1000 Q1008 M1008 Q8 G8");
    bench.unplug(1, PlugFlush::Explicit);
    // The scheduler joins what the plug did not.
    assert!(bench.events().starts_with("U(3) I0 I1000 J8"));
}

#[test]
fn decisions_come_in_bursts_and_one_too_many_is_parked() {
    let mut bench = Bench::multi(Version::V6_18, virtio());
    for n in 0..7 {
        bench.read(1, n * 1000, 8);
    }
    assert_eq!(bench.device.len(), 4);
    // Four with the device, one parked without a tag, two with the scheduler.
    assert_eq!(bench.queue.queued(), 2);
    bench.complete_all();
    assert_eq!(bench.done.len(), 7);
}

#[test]
fn who_has_to_leave_its_core_hands_a_run_to_the_worker_when_a_list_is_issued() {
    let hands_over = |version, has_scheduler| {
        let attach = match has_scheduler {
            true => Fifo::attach(Shape::Multi, Placement::Sorted),
            false => Attach::none(),
        };
        let mut bench = Bench::new(version, virtio(), attach);
        let (task, bio) = (ContextId(3), bench.bio(3, Op::Read, 100, 8));
        bench.queue.start_plug(task);
        bench.queue.submit(bench.now, bio);
        bench.queue.finish(bench.now, task);
        bench.queue.finish_plug(bench.now, task, 0, PlugFlush::Explicit);
        let mut ran = false;
        loop {
            let is_issued = matches!(bench.queue.step(bench.now, task), Step::Did(Work::Issue));
            bench.queue.leave_run(task);
            while let Some(output) = bench.queue.pop_output() {
                ran |= matches!(output, Output::RunWorker { .. });
            }
            if is_issued {
                return (ran, bench.queue.is_idle(task));
            }
            assert!(!ran, "before it has issued anything");
        }
    };
    assert_eq!(hands_over(Version::V6_12, true), (true, true));
    assert!(!hands_over(Version::V4_19, true).0);
    assert!(!hands_over(Version::V6_12, false).0);
}

#[test]
fn a_scsi_driver_asks_for_a_budget_first() {
    let mut bench = Bench::multi(Version::V6_18, facts());
    for n in 0..7 {
        bench.read(1, n * 1000, 8);
    }
    assert_eq!(bench.device.len(), 4);
    assert_eq!(bench.queue.queued(), 3);
    bench.complete_all();
    assert_eq!(bench.done.len(), 7);
}

#[test]
fn a_device_that_is_given_fewer_commands_keeps_its_tags_and_requests() {
    let scheduled = || Bench::multi(Version::V6_18, facts());
    let benches = [scheduled, || none(facts()), || none(virtio())];
    for (bench, requests) in benches.into_iter().zip([8, 4, 4]) {
        let mut bench = bench();
        bench.queue.set(bench.now, DEVICE_DEPTH, 1).unwrap();
        assert_eq!(bench.queue.get("nr_requests"), Some(requests));
        // Nobody has to sleep, and the device has one.
        (0..4).for_each(|n| assert!(bench.read(1, n * 1000, 8)));
        assert_eq!(bench.device.len(), 1);
        bench.complete(0);
        assert_eq!(bench.device.len(), 1);
        bench.complete_all();
        assert_eq!(bench.done.len(), 4);
        bench.queue.set(bench.now, DEVICE_DEPTH, 4).unwrap();
        (0..4).for_each(|n| assert!(bench.read(1, n * 1000, 8)));
        assert_eq!(bench.device.len(), 4);
        assert!(bench.queue.set(bench.now, DEVICE_DEPTH, 5).is_err());
    }
}

#[test]
fn a_task_without_a_tag_sleeps_and_is_woken() {
    let mut bench = Bench::multi(Version::V6_18, virtio());
    // Depth 4 gives 8 scheduler tags.
    for n in 0..8 {
        assert!(bench.read(1, n * 1000, 8));
    }
    assert!(!bench.read(2, 20_000, 8));
    assert!(!bench.read(3, 30_000, 8));
    bench.complete(0);
    assert_eq!(bench.woken, [ContextId(2)]);
    assert!(bench.go(ContextId(2)));
    bench.complete(0);
    assert_eq!(bench.woken, [ContextId(2), ContextId(3)]);
    assert!(bench.go(ContextId(3)));
    bench.complete_all();
    assert_eq!(bench.done.len(), 10);
    bench.queue.assert_drained();
}

#[test]
fn a_task_that_sleeps_for_a_tag_flushes_its_plug() {
    let mut bench = Bench::multi(Version::V6_18, virtio());
    bench.plug(1);
    for n in 0..8 {
        assert!(bench.read(1, n * 1000, 8));
    }
    assert_eq!(bench.device.len(), 0);
    assert!(!bench.read(1, 20_000, 8));
    assert_eq!(bench.device.len(), 4);
    let events = bench.events();
    assert!(events.contains("S UT(8)"), "{events}");
    bench.complete_all();
    assert!(bench.go(ContextId(1)));
    bench.unplug(1, PlugFlush::Explicit);
    bench.complete_all();
    bench.queue.assert_drained();
}

#[test]
fn without_a_scheduler_requests_go_straight_to_the_driver() {
    let mut bench = none(virtio());
    bench.read(1, 100, 8);
    assert_eq!(bench.events(), "Q100 G100 P U(1) D100");
    bench.plug(1);
    bench.read(1, 300, 8);
    bench.read(1, 200, 8);
    bench.unplug(1, PlugFlush::Explicit);
    assert_eq!(bench.events(), "Q300 G300 P Q200 G200 U(2) D300 D200");
    bench.complete_all();
    bench.queue.assert_drained();
}

#[test]
fn without_a_scheduler_a_task_that_blocks_uses_the_software_queue() {
    let mut bench = none(virtio());
    bench.plug(1);
    bench.read(1, 300, 8);
    bench.unplug(1, PlugFlush::Blocks);
    assert_eq!(bench.events(), "Q300 G300 P UT(1) I300 D300");
}

#[test]
fn without_a_scheduler_tags_are_the_drivers() {
    let mut bench = none(virtio());
    for n in 0..4 {
        assert!(bench.read(1, n * 1000, 8));
    }
    assert!(!bench.read(1, 9000, 8));
    bench.complete(2);
    assert!(bench.go(ContextId(1)));
    assert_eq!(bench.with_device(), [0, 1000, 3000, 9000]);
}

#[test]
fn a_flush_sequence_ends_every_submitter_once() {
    for version in [Version::V4_19, Version::V6_12, Version::V6_18] {
        for scheduler in [true, false] {
            for fua in [true, false] {
                let facts = Facts { volatile_cache: true, fua, ..virtio() };
                let attach = if scheduler {
                    Fifo::attach(Shape::Multi, Placement::Sorted)
                } else {
                    Attach::none()
                };
                let mut bench = Bench::new(version, facts, attach);
                bench.write(1, 100, 8, Flags::PREFLUSH.with(Flags::FUA));
                bench.write(2, 0, 0, Flags::PREFLUSH);
                bench.write(3, 200, 8, Flags::FUA);
                bench.complete_all();
                bench.done.sort_unstable();
                assert_eq!(bench.done, [1, 2, 3], "{version} {scheduler} {fua}");
                bench.queue.assert_drained();
            }
        }
    }
}

#[test]
fn recent_kernels_give_fua_data_to_the_scheduler() {
    let facts = Facts { volatile_cache: true, fua: true, ..virtio() };
    let mut bench = Bench::multi(Version::V6_18, facts.clone());
    bench.write(1, 100, 8, Flags::FUA);
    assert_eq!(bench.events(), "Q100 G100 P U(1) I100 D100");
    assert!(bench.complete(0).fua);
    let mut bench = Bench::multi(Version::V4_19, facts);
    bench.write(1, 100, 8, Flags::FUA);
    assert_eq!(bench.events(), "Q100 G100 D100");
}

#[test]
fn one_flush_serves_writes_with_fua_that_are_under_way_together() {
    let rows = [
        (Version::V6_1, "Q100 G100 D100 Q200 G200 D200"),
        (Version::V6_12, "Q100 G100 P U(1) I100 D100 Q200 G200 P U(1) I200 D200"),
        (Version::V7_3, "Q100 G100 I100 D100 Q200 G200 I200 D200"),
    ];
    for (version, events) in rows {
        let facts = Facts { volatile_cache: true, ..virtio() };
        let mut bench = Bench::multi(version, facts);
        bench.write(1, 100, 8, Flags::FUA);
        bench.write(2, 200, 8, Flags::FUA);
        assert_eq!(bench.events(), events, "{version}");
        let mut ops = Vec::new();
        while !bench.device.is_empty() {
            ops.push(bench.complete(0).op);
        }
        assert_eq!(ops, [CommandOp::Write, CommandOp::Write, CommandOp::Flush], "{version}");
        assert_eq!(bench.done, [1, 2], "{version}");
        bench.queue.assert_drained();
    }
}

#[test]
fn the_worker_does_a_run_before_what_was_requeued_after_it_was_asked_for() {
    let facts = Facts { volatile_cache: true, ..virtio() };
    let flush_first = [CommandOp::Flush, CommandOp::Write];
    let write_first = [CommandOp::Write, CommandOp::Flush];
    // On 7.3 a task leaves the run to the worker, on 6.12 it does it itself.
    let rows = [(Version::V7_3, true, write_first), (Version::V7_3, false, flush_first)];
    for (version, writes_before, ops) in rows {
        let mut bench = Bench::multi(version, facts.clone());
        let write = bench.bio(1, Op::Write, 100, 8);
        let flush = Bio { flags: Flags::PREFLUSH, ..bench.bio(2, Op::Write, 0, 0) };
        let order = if writes_before { [write, flush] } else { [flush, write] };
        for bio in order {
            bench.queue.submit(bench.now, bio);
            bench.queue.finish(bench.now, bio.origin.context);
        }
        bench.go(WORKER);
        let found: Vec<_> = bench.device.iter().map(|it| it.op).collect();
        assert_eq!(found, ops, "{version} {writes_before}");
    }
}

#[test]
fn a_flush_command_comes_before_the_data_it_protects() {
    let facts = Facts { volatile_cache: true, ..virtio() };
    let mut bench = Bench::multi(Version::V6_18, facts);
    bench.write(1, 100, 8, Flags::PREFLUSH.with(Flags::FUA));
    let mut ops = Vec::new();
    while !bench.device.is_empty() {
        ops.push(bench.complete(0).op);
    }
    assert_eq!(ops, [CommandOp::Flush, CommandOp::Write, CommandOp::Flush]);
}

#[test]
fn the_next_flush_begins_before_data_of_requests_behind_the_first_that_was_served() {
    let facts = Facts { volatile_cache: true, ..virtio() };
    let ops = |bench: &Bench| bench.device.iter().map(|it| it.op).collect::<Vec<_>>();
    let mut bench = Bench::multi(Version::V6_12, facts);
    bench.write(1, 0, 0, Flags::PREFLUSH);
    bench.write(2, 0, 0, Flags::PREFLUSH);
    bench.write(3, 100, 8, Flags::PREFLUSH);
    bench.complete(0);
    // This one serves 2 and 3.
    assert_eq!(ops(&bench), [CommandOp::Flush]);
    bench.write(4, 0, 0, Flags::PREFLUSH);
    bench.complete(0);
    assert_eq!(ops(&bench), [CommandOp::Flush, CommandOp::Write]);
    bench.complete_all();
    assert_eq!(bench.done, [1, 2, 4, 3]);
    bench.queue.assert_drained();
}

#[test]
fn data_that_follow_a_flush_are_inserted_by_the_worker() {
    let facts = Facts { volatile_cache: true, queue_depth: 1, ..virtio() };
    let mut bench = Bench::multi(Version::V6_12, facts);
    bench.write(1, 500, 8, Flags::PREFLUSH);
    bench.read(2, 100, 8);
    bench.events();
    let command = bench.device.remove(0);
    assert_eq!(command.op, CommandOp::Flush);
    // The read has left the scheduler and waits for the tag.
    bench.queue.complete(bench.now, common::INTERRUPT, 0, command.tag);
    bench.go(common::INTERRUPT);
    bench.complete_all();
    assert_eq!(bench.events(), "C0 I500 D100 C100 D500 C500");
    bench.queue.assert_drained();
}

#[test]
fn a_requeued_request_is_inserted_at_the_head() {
    let mut bench = Bench::multi(Version::V6_18, facts());
    for n in 0..6 {
        bench.read(1, n * 1000, 8);
    }
    let command = bench.device.remove(0);
    bench.events();
    bench.queue.requeue(bench.now, common::INTERRUPT, 0, command.tag);
    bench.go(common::INTERRUPT);
    assert_eq!(bench.events(), "R0 I0 D0");
    bench.complete_all();
    assert_eq!(bench.done.len(), 6);
    bench.queue.assert_drained();
}

#[test]
fn a_task_may_issue_a_write_before_the_worker_issues_the_next_flush() {
    for (version, first) in [(Version::V6_1, CommandOp::Write), (Version::V4_19, CommandOp::Flush)]
    {
        let facts = Facts { volatile_cache: true, ..virtio() };
        let mut bench = Bench::new(version, facts, Attach::none());
        bench.write(1, 0, 0, Flags::PREFLUSH);
        bench.write(2, 0, 0, Flags::PREFLUSH);
        bench.interrupt(0);
        bench.write(3, 100, 8, Flags::SYNC);
        assert_eq!(bench.device[0].op, first, "{version}");
        assert_eq!(bench.device.len(), 2, "{version}");
        bench.complete_all();
        bench.queue.assert_drained();
    }
}

#[test]
fn a_flush_command_given_back_keeps_the_tag_it_borrowed() {
    let mut bench = none(Facts { volatile_cache: true, queue_depth: 1, ..virtio() });
    bench.write(1, 0, 0, Flags::PREFLUSH);
    let command = bench.device.remove(0);
    bench.queue.requeue(bench.now, common::INTERRUPT, 0, command.tag);
    bench.go(common::INTERRUPT);
    assert_eq!(bench.device, [command]);
    bench.complete_all();
    assert_eq!(bench.done, [1]);
    bench.queue.assert_drained();
}

#[test]
fn several_hardware_queues_have_tags_of_their_own() {
    let facts = Facts { hardware_queues: 2, ..virtio() };
    let mut bench = none(facts);
    for n in 0..4 {
        assert!(bench.read(1, n * 1000, 8));
    }
    let mut bio = bench.bio(2, Op::Read, 50_000, 8);
    bio.origin.cpu = 1;
    assert!(bench.submit(bio));
    assert_eq!(bench.device.len(), 5);
    bench.complete_all();
    bench.queue.assert_drained();
}

#[test]
fn the_number_of_requests_changes_when_the_queue_is_empty() {
    let mut bench = Bench::multi(Version::V6_18, virtio());
    for n in 0..6 {
        bench.read(1, n * 1000, 8);
    }
    bench.queue.set(bench.now, "nr_requests", 2).unwrap();
    assert_eq!(bench.queue.get("nr_requests"), Some(8));
    bench.complete_all();
    // Raised to four.
    assert_eq!(bench.queue.get("nr_requests"), Some(4));
    for n in 0..4 {
        assert!(bench.read(1, n * 1000, 8));
    }
    assert!(!bench.read(1, 9000, 8));
}

#[test]
fn a_scheduler_can_be_attached_and_removed_in_flight() {
    let mut bench = none(virtio());
    for n in 0..4 {
        bench.read(1, n * 1000, 8);
    }
    let attach = Fifo::attach(Shape::Multi, Placement::Sorted);
    bench.queue.switch(bench.now, common::WORKER, attach);
    assert!(!bench.read(2, 9000, 8));
    bench.complete_all();
    assert_eq!(bench.woken, [ContextId(2)]);
    assert!(bench.go(ContextId(2)));
    assert_eq!(bench.queue.get("nr_requests"), Some(8));
    bench.queue.switch(bench.now, common::WORKER, Attach::none());
    bench.complete_all();
    assert_eq!(bench.queue.get("nr_requests"), Some(4));
    bench.queue.assert_drained();
}
