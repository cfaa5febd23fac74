//! fio at work on a simulated disk: what it transfers, when, in which order.
//!
//! The disk takes 100 us for everything, 32 commands at once, and has a volatile cache.

#[path = "../../machine/tests/common/mod.rs"]
mod common;

use base::{Duration, Instant};
use block::{Bio, Input, Op};
use common::calls::{Call, Seen, observe};
use common::{command, setup};
use machine::Exit;
use machine::{Host, Job, Outcome, Setup};
use programs::Surroundings;

const MIB: u64 = 1 << 20;

const COMMON: &str = "fio --filename=/dev/sda --direct=1 --bs=4k";

fn prepared(line: &str) -> Setup {
    let mut setup = setup("6.18", "mq-deadline");
    setup.jobs = vec![command(line)];
    setup.messages = false;
    setup.paranoid = false;
    setup
}

/// Runs fio with options; it must succeed.
fn fio(options: &str) -> (Outcome, Seen) {
    let (outcome, seen) = observe(prepared(&format!("{COMMON} {options}")));
    assert_eq!(outcome.jobs[0].exit, Exit::Status(0), "{:?}", outcome.jobs[0].messages);
    (outcome, seen)
}

/// All that a disk was asked to do, bio by bio.
fn bios(options: &str) -> Vec<Bio> {
    let mut setup = prepared(&format!("{COMMON} {options}"));
    setup.record_inputs = true;
    let (outcome, _) = observe(setup);
    let submitted = |input: &Input| match input {
        Input::Submit(_, bio, _) => Some(*bio),
        _ => None,
    };
    outcome.inputs.iter().filter_map(submitted).collect()
}

fn millis(from: Instant, to: Instant) -> u64 {
    to.since(from).as_nanos() / 1_000_000
}

/// Whether two numbers differ by 1 % at most.
fn near(seen: u64, expected: u64) -> bool {
    seen.abs_diff(expected) * 100 <= expected
}

const ENGINES: [&str; 9] = [
    "--ioengine=psync",
    "--ioengine=vsync --iodepth=4",
    "--ioengine=sg",
    "--ioengine=libaio --iodepth=16",
    "--ioengine=libaio --iodepth=16 --iodepth_batch=8 --iodepth_batch_complete_min=2 \
     --iodepth_batch_complete_max=16 --iodepth_low=4",
    "--ioengine=libaio --iodepth=8 --io_submit_mode=offload",
    "--ioengine=io_uring --iodepth=16",
    "--ioengine=io_uring --iodepth=8 --iodepth_batch_complete_min=0",
    "--ioengine=posixaio --iodepth=8",
];

#[test]
fn every_engine_visits_every_block_once() {
    for engine in ENGINES {
        for rw in ["read", "write", "randread", "randwrite", "randtrim"] {
            let (_, seen) = fio(&format!("--name=x --size=1m --rw={rw} {engine}"));
            let mut offsets = seen.offsets();
            offsets.sort_unstable();
            let all: Vec<u64> = (0..256).map(|block| block * 4096).collect();
            assert_eq!(offsets, all, "{rw} {engine}");
            assert!(seen.calls.iter().all(|call| call.length == 4096), "{rw} {engine}");
        }
    }
}

#[test]
fn a_depth_is_reached_and_never_exceeded() {
    let cases = [
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 16),
        (4, 16),
        (5, 8),
        (6, 16),
        (7, 8),
        // The C library does the requests of a file in turn.
        (8, 1),
    ];
    for (engine, depth) in cases {
        let engine = ENGINES[engine];
        let (_, seen) = fio(&format!("--name=x --size=4m --rw=randread {engine}"));
        assert_eq!(seen.most_in_flight, depth, "{engine}");
    }
}

#[test]
fn requests_that_are_handed_over_in_a_hurry_count_for_the_next_batch() {
    // Seven fill the queue as 3, 3 and, as somebody waits, 1. Six more each time are then 2, 3, 1.
    let options = "--ioengine=libaio --iodepth=7 --iodepth_batch=3 --iodepth_low=1";
    let mut setup =
        prepared(&format!("{COMMON} --name=x --rw=randread --size=4m --number_ios=31 {options}"));
    setup.record_inputs = true;
    let (outcome, _) = observe(setup);
    // What has three is plugged.
    let is_plug = |it: &&Input| matches!(it, Input::StartPlug(_));
    assert_eq!(outcome.inputs.iter().filter(is_plug).count(), 2 + 4);
}

#[test]
fn directions_share_the_amount() {
    for (options, [reads, writes, trims]) in [
        ("--rw=read --size=1m", [256, 0, 0]),
        ("--rw=trim --size=1m", [0, 0, 256]),
        ("--rw=trimwrite --size=1m", [0, 256, 256]),
        ("--rw=randtrimwrite --size=1m --ioengine=libaio --iodepth=4", [0, 256, 256]),
        ("--rw=randread --size=1m --io_size=2500k", [625, 0, 0]),
        ("--rw=randread --size=1m --loops=3", [768, 0, 0]),
        ("--rw=randread --size=1m --number_ios=10 --loops=3", [30, 0, 0]),
        ("--rw=read:8k --size=1m", [86, 0, 0]),
        ("--rw=read:-8k --size=1m", [256, 0, 0]),
        ("--rw=read --size=1m --zonemode=strided --zonesize=8k --zoneskip=16k", [256, 0, 0]),
        ("--rw=randread:8 --size=1m", [256, 0, 0]),
        ("--rw=randread --percentage_random=50 --size=1m", [256, 0, 0]),
    ] {
        let (_, seen) = fio(&format!("--name=x {options}"));
        let counts = [Op::Read, Op::Write, Op::Discard].map(|op| seen.count(op));
        assert_eq!(counts, [reads, writes, trims], "{options}");
        assert_eq!(seen.bytes(Op::Read), reads * 4096, "{options}");
        assert_eq!(seen.bytes(Op::Write), writes * 4096, "{options}");
    }
}

#[test]
fn a_mixture_keeps_its_shares_and_its_amount() {
    for (options, share) in [
        ("--rw=randrw --rwmixread=70", 70),
        ("--rw=rw --rwmixwrite=10", 90),
        ("--rw=randrw --norandommap", 50),
    ] {
        let options = format!("--name=x --size=80m --ioengine=libaio --iodepth=32 {options}");
        let (_, seen) = fio(&options);
        assert_eq!(seen.calls.len() as u64, 80 * 256, "{options}");
        let reads = seen.count(Op::Read) * 100 / (80 * 256);
        assert!(reads.abs_diff(share) <= 1, "{options}: {reads} %");
    }
}

#[test]
fn sizes_of_requests_are_those_of_the_mix() {
    let (_, seen) = fio("--name=x --size=256m --rw=randread --bssplit=4k/50:16k/30:64k/20");
    assert_eq!(seen.bytes(Op::Read), 256 * MIB);
    let (_, seen) = fio("--name=x --size=64m --rw=randrw --bs=4k,64k --norandommap");
    assert!(seen.moving(Op::Read).all(|call| call.length == 4096));
    assert!(seen.moving(Op::Write).all(|call| call.length == 65_536));
}

#[test]
fn time_ends_a_job_and_time_based_fills_it() {
    let (outcome, seen) = fio("--name=x --size=1m --rw=randread --runtime=50ms --time_based");
    assert_eq!(outcome.elapsed, Duration::from_millis(50));
    assert_eq!(seen.count(Op::Read), 500);
    let (outcome, _) = fio("--name=x --size=1m --rw=randread --runtime=50ms");
    assert_eq!(outcome.elapsed, Duration::from_micros(25_600));
    let (outcome, _) = fio("--name=x --size=1g --rw=randread --runtime=50ms --ramp_time=30ms");
    assert_eq!(outcome.elapsed, Duration::from_millis(80));
    // The request that is under way when time is over is done.
    let (outcome, _) = fio("--name=x --rw=randread --runtime=50050us --time_based");
    assert_eq!(outcome.elapsed, Duration::from_micros(50_100));
}

#[test]
fn rates_are_kept_within_a_percent() {
    for (options, reads, writes) in [
        ("--rw=randread --rate_iops=500", 5_000, 0),
        ("--rw=randread --rate=2m", 5_120, 0),
        ("--rw=randread --rate_iops=500 --ioengine=libaio --iodepth=32", 5_000, 0),
        ("--rw=randrw --rate_iops=500,200", 5_000, 2_000),
        ("--rw=randrw --rate=1m,4m --ioengine=io_uring --iodepth=4", 2_560, 10_240),
        (
            "--rw=randread --rate_iops=20000 --ioengine=libaio --iodepth=8 \
             --io_submit_mode=offload",
            200_000,
            0,
        ),
        // Five in a row, to catch up, after each pause; or at their rate.
        ("--rw=randread --rate_iops=500 --thinktime=20ms --thinktime_blocks=5", 2_439, 0),
        (
            "--rw=randread --rate_iops=500 --thinktime=20ms --thinktime_blocks=5 \
             --rate_ignore_thinktime=1",
            1_667,
            0,
        ),
    ] {
        let (_, seen) = fio(&format!("--name=x --time_based --runtime=10 {options}"));
        let counts = [seen.count(Op::Read), seen.count(Op::Write)];
        assert!(near(counts[0], reads) && near(counts[1], writes), "{options}: {counts:?}");
    }
}

#[test]
fn a_poisson_process_has_its_rate_and_varies() {
    let options = "--rw=randread --rate_iops=1000 --rate_process=poisson --iodepth=32";
    let (_, seen) = fio(&format!(
        "--name=x --time_based --runtime=100 --ioengine=libaio --io_submit_mode=offload {options}"
    ));
    let count = seen.count(Op::Read);
    assert!(near(count, 100_000), "{count}");
    let mut times: Vec<Instant> = seen.calls.iter().map(|call| call.entered).collect();
    times.sort_unstable();
    let long = times.windows(2).filter(|pair| millis(pair[0], pair[1]) >= 1).count();
    // A share of 1/e waits longer than the mean.
    assert!(near(long as u64, 36_788) || long.abs_diff(36_788) < 1_000, "{long}");
}

#[test]
fn a_job_that_falls_below_its_least_rate_fails() {
    let line = "--name=x --rw=randread --rate_iops_min=900 --thinktime=9ms --size=1g";
    let (outcome, _) = observe(prepared(&format!("{COMMON} {line}")));
    assert_eq!(outcome.jobs[0].exit, Exit::Status(1));
    assert_eq!(outcome.jobs[0].messages, ["fio: x: rate_iops_min=900 not met, got 110 IOPS"]);
    // Two seconds to settle, then one cycle.
    assert!(
        outcome.elapsed > Duration::from_secs(3) && outcome.elapsed < Duration::from_millis(3_020)
    );
}

#[test]
fn pauses_come_after_so_many_requests_or_so_much_time() {
    let elapsed = |options: &str| {
        let (outcome, _) = fio(&format!("--name=x --rw=randread --number_ios=12 {options}"));
        outcome.elapsed.as_nanos() / 100_000
    };
    // 12 requests of 100 us, and pauses of 1 ms.
    assert_eq!(elapsed("--thinktime=1ms"), 12 + 120);
    assert_eq!(elapsed("--thinktime=1ms --thinktime_blocks=4"), 12 + 30);
    assert_eq!(elapsed("--thinktime=1ms --thinktime_spin=400us"), 12 + 120);
    assert_eq!(elapsed("--thinktime=1ms --thinktime_iotime=500us"), 12 + 20);
    // Four at once at first, then one after the other.
    let queue = "--ioengine=libaio --iodepth=4 --thinktime=1ms";
    assert_eq!(elapsed(queue), 1 + 10 + 8 * 11);
    assert_eq!(elapsed(&format!("{queue} --thinktime_blocks_type=issue")), 12 + 120);
}

#[test]
fn thinking_aloud_keeps_a_core_busy() {
    let line = format!(
        "{COMMON} --cpus_allowed=0 --name=spins --rw=read --number_ios=1 --thinktime=5ms \
         --thinktime_spin=5ms --name=computes --ioengine=cpuio --cpuload=100 --runtime=5ms"
    );
    let mut setup = prepared(&line);
    setup.host = Host::named("host-2009").unwrap();
    let (outcome, _) = observe(setup);
    assert!(outcome.elapsed > Duration::from_millis(10), "{}", outcome.elapsed);
}

#[test]
fn stages_follow_each_other() {
    let (_, seen) =
        fio("--rw=read --size=400k --name=a --name=b --name=c --stonewall --name=d --wait_for=c \
         --name=e --startdelay=200ms --name=f --stonewall");
    let span = |name| seen.span(name);
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    assert_eq!((span("a").0, span("b").0), (at(0), at(0)));
    let first_stage = span("a").1.max(span("b").1);
    assert_eq!(first_stage, at(10));
    // fio looks every 100 ms and a timer slack, sleeps once more and lets a process get ready.
    let looks = |count: u64| Instant::ZERO + Duration::from_micros(100_050) * count;
    assert_eq!(span("c").0, looks(3));
    assert_eq!(span("d").0, span("c").1);
    assert_eq!(span("e").0, looks(3));
    assert_eq!(span("f").0, looks(6));
}

/// On the guest, when the second of two stages begins, in looks at the clock.
fn second_stage(options: &str, change: impl FnOnce(&mut guest::FioHabits)) -> i64 {
    let mut habits = guest::Profile::uml().habits;
    change(&mut habits.fio);
    let context = Surroundings {
        page_size: 4096,
        ncpus: 1,
        mb_memory: 1024,
        habits: &habits,
        mount: None,
        environment: &|_| None,
        read_file: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    };
    let line = format!("{COMMON} --rw=read --size=400k {options}");
    let job = Job::new("fio", programs::parse_in(&line, &context).unwrap().program);
    let host = Host::named("guest").unwrap();
    let (_, seen) = observe(Setup { jobs: vec![job], host, ..prepared("sleep 0") });
    let begins = seen.span("last").0.as_nanos();
    i64::try_from(begins / 256).unwrap()
}

#[test]
fn the_main_process_looks_at_the_clock_for_each_that_ended_and_each_that_begins() {
    let stages = "--name=a --name=b --name=c --name=last --stonewall --numjobs=2 --group_reporting";
    let plain = second_stage(stages, |_| ());
    let later = |expected: i64, change: &dyn Fn(&mut guest::FioHabits)| {
        let looks = second_stage(stages, change) - plain;
        assert!((looks - expected).abs() <= 1, "{looks} looks later, not {expected}");
    };
    later(300, &|it| it.looks_per_end += 100);
    later(200, &|it| it.looks_per_later_process += 100);
    // It looks when it has seen the end of a stage, but not when it has let the first go.
    later(100, &|it| it.looks_while_waiting += 100);
}

#[test]
fn others_end_with_a_job() {
    let ends = |options: &str| {
        let line = format!(
            "{COMMON} --rw=randread --time_based --runtime=1 --name=a --runtime=100ms --exitall \
             {options} --name=b --thinktime=400ms --name=c --new_group --name=d --stonewall"
        );
        let (outcome, seen) = observe(prepared(&line));
        assert_eq!(outcome.jobs[0].exit, Exit::Status(0));
        ["a", "b", "c", "d"].map(|name| {
            seen.of(name).map(|call| call.ended.as_nanos() / 10_000_000).max().unwrap_or(0)
        })
    };
    // b sleeps; it ends after its first request, when it is told.
    assert_eq!(ends(""), [10, 0, 100, 220]);
    assert_eq!(ends("--exit_what=stonewall"), [10, 0, 10, 130]);
    assert_eq!(ends("--exit_what=all"), [10, 0, 10, 0]);
}

#[test]
fn a_flow_divides_by_weight() {
    let (_, seen) = fio(
        "--rw=randread --time_based --runtime=2 --flow_id=7 --name=a --flow=3 --name=b --flow=1 \
         --name=c --flow_id=8 --flow=5",
    );
    let counts = ["a", "b", "c"].map(|name| seen.of(name).count() as u64);
    assert!(near(counts[0], 3 * counts[1]), "{counts:?}");
    assert_eq!(counts[2], 20_000);
    let (_, seen) = fio(
        "--rw=randread --time_based --runtime=2 --flow_sleep=1000 --ioengine=libaio --iodepth=4 \
         --name=a --flow=1 --name=b --flow=4",
    );
    let counts = ["a", "b"].map(|name| seen.of(name).count() as u64);
    assert!(near(counts[1], 4 * counts[0]), "{counts:?}");
}

#[test]
fn what_was_written_is_read_back_in_its_order() {
    for engine in ["psync", "libaio --iodepth=8", "io_uring --iodepth=8"] {
        let options =
            format!("--name=x --rw=randwrite --size=1m --verify=crc32c --ioengine={engine}");
        let (_, seen) = fio(&options);
        let written: Vec<u64> = seen.moving(Op::Write).map(|call| call.offset).collect();
        let read: Vec<u64> = seen.moving(Op::Read).map(|call| call.offset).collect();
        assert_eq!((written.len(), &written), (256, &read), "{engine}");
        let last = seen.moving(Op::Write).map(|call| call.ended).max();
        assert!(seen.moving(Op::Read).all(|call| Some(call.entered) >= last), "{engine}");
    }
}

#[test]
fn a_backlog_is_read_back_as_it_grows() {
    let (_, seen) =
        fio("--name=x --rw=randrw --size=1m --verify=md5 --verify_backlog=16 --ioengine=libaio \
         --iodepth=4 --loops=2");
    // The reads of the mixture are there, too.
    let writes = seen.count(Op::Write);
    assert_eq!(seen.count(Op::Read), 512);
    assert!((200..312).contains(&writes), "{writes}");
    let mut unread = 0_i64;
    let (_, seen) = fio("--name=x --rw=randwrite --size=1m --verify=md5 --verify_backlog=16 \
         --verify_backlog_batch=8");
    for call in &seen.calls {
        unread += if call.op == Op::Write { 1 } else { -1 };
        assert!((0..=16).contains(&unread), "{unread}");
    }
    assert_eq!(unread, 0);
}

#[test]
fn verification_ends_with_time_and_may_be_all_there_is() {
    let (_, seen) = fio("--name=x --rw=write --size=100m --verify=md5 --runtime=10ms");
    assert_eq!((seen.count(Op::Write), seen.count(Op::Read)), (100, 0));
    let (_, seen) = fio("--name=x --rw=randwrite --size=1m --verify=md5 --do_verify=0");
    assert_eq!((seen.count(Op::Write), seen.count(Op::Read)), (256, 0));
    let write = fio("--name=x --rw=randwrite --size=1m").1.offsets();
    let (_, seen) = fio("--name=x --rw=randwrite --size=1m --verify=md5 --verify_only");
    assert_eq!(seen.count(Op::Write), 0);
    assert_eq!(seen.offsets(), write);
}

#[test]
fn writes_are_made_durable_as_often_as_asked() {
    // Where syncs are asynchronous, others follow until the first of them is done.
    let engines = [
        ("psync", 2, 1),
        ("libaio --iodepth=4", 2, 1),
        ("io_uring --iodepth=4", 4, 4),
        ("posixaio --iodepth=4", 4, 4),
    ];
    for (engine, every_third, every_fourth) in engines {
        let flushes = |options: &str| {
            let line = format!("--name=x --rw=randwrite --size=32k --ioengine={engine} {options}");
            fio(&line).1.flushes()
        };
        // After the third and the sixth of eight; none when the job is over anyway.
        assert_eq!(flushes("--fsync=3"), every_third, "{engine}");
        assert_eq!(flushes("--fdatasync=4"), every_fourth, "{engine}");
        assert_eq!(flushes("--end_fsync=1 --loops=2"), 2, "{engine}");
        assert_eq!(flushes("--fsync_on_close=1 --end_fsync=1"), 1, "{engine}");
        assert_eq!(flushes("--fsync=1 --rw=randread"), 0, "{engine}");
    }
    // A write and a flush for each block, without FUA on this disk.
    assert_eq!(bios("--name=x --rw=write --size=32k --sync=1").len(), 16);
    assert_eq!(bios("--name=x --rw=write --size=32k --sync=dsync").len(), 16);
}

#[test]
fn scsi_commands_write_verify_or_both() {
    let counts = |mode: &str| {
        let options =
            format!("--name=x --ioengine=sg --rw=write --size=32k --sg_write_mode={mode}");
        let seen = fio(&options).1;
        (seen.count(Op::Write), seen.count(Op::Read))
    };
    assert_eq!(counts("write"), (8, 0));
    assert_eq!(counts("write_and_verify"), (8, 8));
    assert_eq!(counts("verify_bytchk_00"), (0, 8));
}

#[test]
fn a_share_of_requests_has_a_priority_of_its_own() {
    let options = "--name=x --rw=randrw --size=40m --ioengine=libaio --iodepth=8 --prioclass=2 \
                   --prio=7 --cmdprio_percentage=20,0 --cmdprio_class=1 --cmdprio=3";
    let all = bios(options);
    let raised = |op: Op, bits: u16| {
        all.iter().filter(|bio| bio.op == op && bio.ioprio.to_bits() == bits).count() as u64
    };
    let reads = all.iter().filter(|bio| bio.op == Op::Read).count() as u64;
    let share = raised(Op::Read, 1 << 13 | 3) * 100 / reads;
    assert!((18..=22).contains(&share), "{share} %");
    assert_eq!(raised(Op::Write, 2 << 13 | 7), all.len() as u64 - reads);
    let by_size = "--name=x --rw=randread --bssplit=4k/50:64k/50 --size=40m --ioengine=libaio \
                   --cmdprio_bssplit=64k/100";
    let all = bios(by_size);
    assert!(all.iter().all(|bio| (bio.sectors.0 == 128) == (bio.ioprio.to_bits() >> 13 == 1)));
}

#[test]
fn processes_have_io_contexts_groups_and_names_of_their_own() {
    let setup = prepared(&format!(
        "{COMMON} --rw=randread --size=4k --name=a --numjobs=2 --cgroup=batch --cgroup_weight=200 \
         --name=b --name=c --group_reporting --name=d --group_reporting --numjobs=2"
    ));
    let (outcome, seen) = observe(setup);
    let names: Vec<&str> = outcome.tasks[1..].iter().map(|who| who.name.as_str()).collect();
    let main = outcome.jobs[0].name.as_str();
    assert_eq!(names, [main, "a.0", "a.1", "b", "c", "c", "c"]);
    let mut contexts: Vec<_> = outcome.tasks.iter().map(|who| who.io_context).collect();
    contexts.dedup();
    assert_eq!(contexts.len(), outcome.tasks.len());
    assert_eq!(seen.calls.len(), 6);
}

#[test]
fn the_deepest_queue_that_keeps_a_latency_is_found() {
    // The disk serves 32 at once: more have to wait for another 100 us.
    let (outcome, _) =
        fio("--name=x --rw=randread --time_based --runtime=100 --ioengine=libaio --iodepth=128 \
         --latency_target=150us --latency_window=10ms");
    assert_eq!(
        outcome.jobs[0].messages,
        ["fio: x: latency: target=150 us, window=10.0 ms, percentile=100.00%, depth=32"]
    );
    assert!(outcome.elapsed < Duration::from_millis(200), "{}", outcome.elapsed);
}

#[test]
fn a_steady_rate_or_a_late_request_ends_a_job() {
    let options = "--name=x --rw=randread --time_based --runtime=100";
    let (outcome, _) = fio(&format!("{options} --ss=iops:0.1% --ss_dur=5 --ss_ramp=2"));
    assert_eq!(outcome.elapsed, Duration::from_secs(7));
    // Two that report as a group are judged together, and end together.
    let (outcome, _) = fio(&format!(
        "{options} --ss=iops:1 --ss_dur=3 --group_reporting --name=y --rw=randread --time_based \
         --runtime=100 --ss=iops:1 --ss_dur=3 --group_reporting --startdelay=2"
    ));
    assert_eq!(outcome.elapsed, Duration::from_secs(5));
    let line = format!("{COMMON} {options} --max_latency=150us --ioengine=libaio --iodepth=33");
    let (outcome, _) = observe(prepared(&line));
    assert_eq!(outcome.jobs[0].exit, Exit::Status(1));
    assert!(outcome.jobs[0].messages[0].contains("latency of 200 us exceeds"));
}

#[test]
fn requests_that_overlap_wait_for_each_other() {
    let overlaps = |option: &str| {
        let (_, seen) = fio(&format!(
            "--name=x --rw=randwrite --size=64k --norandommap --number_ios=500 --ioengine=libaio \
             --iodepth=8 {option}"
        ));
        let at_once = |a: &Call, b: &Call| a.entered < b.ended && b.entered < a.ended;
        let calls = &seen.calls;
        let pairs = (0..calls.len()).flat_map(|n| (0..n).map(move |m| (n, m)));
        pairs
            .filter(|(n, m)| {
                calls[*n].offset == calls[*m].offset && at_once(&calls[*n], &calls[*m])
            })
            .count()
    };
    assert!(overlaps("") > 0);
    assert_eq!(overlaps("--serialize_overlap=1"), 0);
}

#[test]
fn some_engines_leave_the_disk_alone() {
    for (options, elapsed) in [
        ("--name=x --ioengine=null --size=400m --rw=randread", Duration::from_micros(102_400)),
        ("--name=x --ioengine=null --time_based --runtime=50ms", Duration::from_micros(50_176)),
        ("--name=x --ioengine=cpuio --cpuload=20 --runtime=1", Duration::from_secs(1)),
        ("--name=x --filename=/dev/zero --direct=0 --size=4m", Duration::from_micros(1_024)),
    ] {
        let (outcome, seen) = fio(options);
        assert_eq!(outcome.elapsed, elapsed, "{options}");
        assert!(seen.calls.is_empty(), "{options}");
    }
    let (outcome, _) = fio("--name=x --ioengine=cpuio --cpuload=20 --exit_on_io_done=1 --name=y \
         --rw=read --size=400k");
    assert!(outcome.elapsed < Duration::from_millis(400), "{}", outcome.elapsed);
}

#[test]
fn chance_follows_the_seed_of_the_experiment_unless_the_job_fixes_it() {
    let offsets = |options: &str, seed: u64| {
        let mut setup = prepared(&format!("{COMMON} --rw=randread --size=1m {options}"));
        setup.seed = seed;
        observe(setup).1.offsets()
    };
    assert_eq!(offsets("--name=x", 1), offsets("--name=x", 1));
    assert_ne!(offsets("--name=x", 1), offsets("--name=x", 2));
    let fixed = "--name=x --randseed=42";
    assert_eq!(offsets(fixed, 1), offsets(fixed, 2));
    assert_ne!(offsets(fixed, 1), offsets("--name=x --randseed=43", 1));
}

#[test]
fn what_cannot_be_done_is_said_with_the_status_of_a_failure() {
    let failure = |options: &str| {
        let (outcome, _) = observe(prepared(&format!("{COMMON} {options}")));
        assert_eq!(outcome.jobs[0].exit, Exit::Status(1), "{options}");
        outcome.jobs[0].messages[0].clone()
    };
    let message = failure("--name=x --offset=2g --rw=read");
    assert!(message.contains("there is no room for a block"), "{message}");
    let message = failure("--name=x --filename=test --rw=read");
    assert!(message.contains("no job says how large it is"), "{message}");
    let mut setup = prepared(&format!("{COMMON} --name=x --rw=read --bs=512 --size=4k"));
    let disk = common::Steady::new(Duration::from_micros(100), 32);
    setup.device = Box::new(disk.with(|facts| facts.logical_block = 4096));
    let (outcome, _) = observe(setup);
    assert_eq!(
        outcome.jobs[0].messages,
        ["fio: x: io_u error on file /dev/sda: Invalid argument: read offset=0, buflen=512"]
    );
}

#[test]
fn calls_that_move_no_data_count_as_if_each_were_made_alone() {
    let took = |options: &str| {
        let mut setup = prepared(&format!("fio --name=x {options}"));
        setup.host = Host::named("host-2020").unwrap();
        let (outcome, _) = observe(setup);
        assert_eq!(outcome.jobs[0].exit, Exit::Status(0), "{:?}", outcome.jobs[0].messages);
        outcome.elapsed
    };
    // Reads take 200 us and more, so seconds are few requests.
    let writes = "--filename=/dev/null --rw=write --size=1m --bsrange=1k-8k --time_based";
    let reads = "--filename=/dev/zero --rw=randread --size=16m --bsrange=960k-1m --time_based";
    for options in [
        format!("{writes} --number_ios=10007"),
        format!("{writes} --runtime=5ms"),
        format!("{reads} --rw=randrw --number_ios=1007"),
        format!("{reads} --runtime=5 --ss=iops:1% --ss_dur=2 --ss_ramp=10ms"),
        format!("{reads} --runtime=5 --ss=bw_slope:5 --ss_dur=3 --numjobs=3"),
    ] {
        // A latency that is watched has each request looked at.
        let one_by_one = took(&format!("{options} --max_latency=1s"));
        assert_eq!(took(&options), one_by_one, "{options}");
    }
}
