//! dd on a simulated disk: what it prints, and what reaches the block layer.

#[path = "../../machine/tests/common/mod.rs"]
mod common;

use base::{Duration, Instant};
use block::{Action, CommandOp, Event, Flags, Op};
use common::{checked, command, setup};
use machine::{Exit, Observer};

const NO_SPACE: &str = "dd: error writing '/dev/sda': No space left on device";

/// Keeps all events.
#[derive(Default)]
struct Keep(Vec<Event>);

impl Observer for Keep {
    fn see(&mut self, event: &Event) {
        self.0.push(event.clone());
    }
}

fn run(line: &str) -> (i32, Vec<String>) {
    let mut setup = setup("6.18", "mq-deadline");
    setup.jobs.push(command(line));
    let (outcome, _) = checked(setup);
    let job = &outcome.jobs[0];
    let Exit::Status(status) = job.exit else { panic!("dd was cut off: {job:?}") };
    (status, job.messages.clone())
}

fn queued(kernel: &str, scheduler: &str, line: &str) -> Vec<(Op, Flags, u64, u32)> {
    let mut setup = setup(kernel, scheduler);
    setup.jobs.push(command(line));
    let mut keep = Keep::default();
    machine::run(setup, &mut keep).unwrap();
    let queued = keep.0.iter().filter(|event| event.action == Action::Queue);
    queued.map(|event| (event.op, event.flags, event.sector.0, event.sectors.0)).collect()
}

#[test]
fn dd_says_what_it_copied_in_virtual_time() {
    // Three writes, one at a time, of 100 us each.
    let (status, messages) = run("dd if=/dev/zero of=/dev/sda bs=4k count=3 oflag=direct");
    assert_eq!(status, 0);
    assert_eq!(
        messages,
        [
            "3+0 records in",
            "3+0 records out",
            "12288 bytes (12 kB, 12 KiB) copied, 0.0003 s, 41.0 MB/s",
        ]
    );
}

#[test]
fn dd_fails_as_it_does_on_linux() {
    let (status, messages) = run("dd if=/dev/zero of=/dev/sda bs=1000 count=3 oflag=direct");
    assert_eq!(status, 1);
    assert_eq!(
        messages,
        [
            "dd: error writing '/dev/sda': Invalid argument",
            "1+0 records in",
            "0+0 records out",
            "0 bytes copied, 0 s, Infinity B/s",
        ]
    );
    let line = "dd if=/dev/zero of=/dev/sda bs=1M seek=1023 oflag=direct";
    let (status, messages) = run(line);
    assert_eq!(status, 1);
    assert_eq!(messages[0], NO_SPACE);
    assert_eq!(messages[1..3], ["2+0 records in", "1+0 records out"]);
    let (status, messages) = run("dd if=/dev/zero of=/dev/null iflag=direct");
    assert_eq!(
        (status, messages[0].as_str()),
        (1, "dd: failed to open '/dev/zero': Invalid argument")
    );
    for (line, failed) in [
        ("if=/dev/sda of=/dev/null bs=1M skip=1025", "cannot skip"),
        ("if=/dev/zero of=/dev/sda bs=1M seek=1025", "cannot seek"),
    ] {
        let (status, messages) = run(&format!("dd {line}"));
        assert_eq!(status, 1);
        assert_eq!(messages[0], format!("dd: /dev/sda: {failed}: Invalid argument"));
    }
}

#[test]
fn what_was_asked_to_be_durable_is_so_after_a_failure_too() {
    let line = "dd if=/dev/zero of=/dev/sda bs=1M seek=1023 oflag=direct conv=fdatasync";
    let flushes = queued("6.18", "none", line).iter().filter(|(.., sectors)| *sectors == 0).count();
    assert_eq!(flushes, 1);
}

#[test]
fn dd_reads_to_the_end_of_the_disk() {
    let (status, messages) = run("dd if=/dev/sda of=/dev/null bs=1M skip=1022 iflag=direct");
    assert_eq!(status, 0);
    assert_eq!(messages[..2], ["2+0 records in", "2+0 records out"]);
}

#[test]
fn without_direct_blocks_may_be_of_any_size() {
    for line in ["if=/dev/sda of=/dev/null", "if=/dev/zero of=/dev/sda"] {
        let (status, messages) = run(&format!("dd {line} bs=700 count=3"));
        assert_eq!(status, 0);
        assert_eq!(messages[..2], ["3+0 records in", "3+0 records out"]);
    }
}

#[test]
fn blocks_that_differ_are_collected() {
    let (_, messages) = run("dd if=/dev/sda of=/dev/null ibs=512 obs=2048 count=10 iflag=direct");
    assert_eq!(messages[..2], ["10+0 records in", "2+1 records out"]);
}

#[test]
fn a_durable_write_is_followed_by_a_flush() {
    let line = "dd if=/dev/zero of=/dev/sda bs=512 count=1 oflag=direct,dsync";
    let write = Flags::SYNC.with(Flags::IDLE).with(Flags::FUA);
    let flush = Flags::SYNC.with(Flags::PREFLUSH);
    for (kernel, scheduler) in [("4.19", "noop"), ("6.18", "none")] {
        let expected = [(Op::Write, write, 0, 1), (Op::Write, flush, 0, 0)];
        assert_eq!(queued(kernel, scheduler, line), expected, "{kernel}");
    }
}

#[test]
fn a_large_call_is_cut_into_bios_of_256_pages() {
    let line = "dd if=/dev/sda of=/dev/null bs=2560k count=1 iflag=direct";
    let lengths = |kernel, scheduler| -> Vec<u32> {
        queued(kernel, scheduler, line).iter().map(|(.., sectors)| *sectors).collect()
    };
    assert_eq!(lengths("6.18", "mq-deadline"), [2048, 2048, 1024]);
    // Before 4.3 bios are built within the limits of the queue: 512 KiB.
    assert_eq!(lengths("2.6.28", "deadline"), [1024; 5]);
}

#[test]
fn conv_fsync_flushes_once_at_the_end() {
    let mut setup = setup("6.18", "mq-deadline");
    setup.jobs.push(command("dd if=/dev/zero of=/dev/sda bs=4k count=2 oflag=direct conv=fsync"));
    let mut keep = Keep::default();
    let outcome = machine::run(setup, &mut keep).unwrap();
    let flushes =
        keep.0.iter().filter(|event| event.action == Action::Queue && event.sectors.0 == 0);
    assert_eq!(flushes.count(), 1);
    assert_eq!(outcome.elapsed, Duration::from_micros(300));
    let _ = CommandOp::Flush;
}

#[test]
fn an_endless_program_is_refused_where_nothing_takes_time() {
    let mut setup = setup("6.18", "none");
    setup.jobs.push(command("dd if=/dev/zero of=/dev/null"));
    let error = machine::run(setup, &mut machine::Nobody).unwrap_err().to_string();
    assert!(
        error.starts_with("job \"dd if=/dev/zero of=/dev/null\" makes system calls"),
        "{error}"
    );
}

#[test]
fn a_job_that_is_stopped_leaves_nothing_behind() {
    let mut setup = setup("6.18", "mq-deadline");
    let mut job = command("dd if=/dev/sda of=/dev/null bs=4k iflag=direct");
    job.duration = Some(Duration::from_micros(1050));
    setup.jobs.push(job);
    let (outcome, counts) = checked(setup);
    assert_eq!(outcome.jobs[0].exit, Exit::Stopped);
    // The read that was under way is waited for, as a process in state D is.
    assert_eq!(counts.bios, 11);
    assert_eq!(outcome.jobs[0].ended, Instant::from_nanos(1_100_000));
}

#[test]
fn what_is_appended_lies_behind_what_is_there() {
    let (status, messages) = run("dd if=/dev/zero of=/dev/sda bs=4k count=1 oflag=append,direct");
    assert_eq!((status, messages[0].as_str()), (1, NO_SPACE));
    let append = "dd if=/dev/zero of=/mnt/a bs=64k oflag=append conv=notrunc count=";
    for flags in ["", " oflag=direct,append"] {
        let lines = [
            "dd if=/dev/zero of=/mnt/a bs=64k count=4",
            &format!("{append}2{flags}"),
            &format!("{append}1{flags}"),
            "dd if=/mnt/a of=/dev/null bs=64k",
        ];
        let mut setup = setup("6.18", "mq-deadline");
        setup.mount = Some(machine::Mount::default());
        for (number, line) in lines.iter().enumerate() {
            let start = Instant::ZERO + Duration::from_secs(number as u64);
            setup.jobs.push(machine::Job { start, ..command(line) });
        }
        let (outcome, _) = checked(setup);
        assert_eq!(outcome.jobs[3].messages[0], "7+0 records in", "{flags}");
    }
}
