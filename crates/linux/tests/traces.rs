//! What the guest's kernel records agrees with what its disks saw.

mod common;

use base::Duration;
use block::{Ioprio, IoprioClass};
use common::{KERNEL, constant, finish, guest, machine, recording};
use linux::{Cgroup, Job, Recording, Script, Setting, Trace};
use testing::needs::{BUSYBOX, FIO};
use trace::blktrace::{Action, Payload, Reader, Record, runs};

fn reader(name: &str, skip: u32, start: u64, level: u8) -> Job {
    Job {
        name: name.into(),
        command: format!("dd if=/dev/vda of=/dev/null bs=4k count=50 skip={skip} iflag=direct"),
        start: Duration::from_millis(start),
        cgroup: Some("group/inner".into()),
        ioprio: Ioprio::new(IoprioClass::BestEffort, level),
        ..Job::default()
    }
}

fn script(scheduler: &str) -> Script {
    Script {
        settings: vec![Setting::queue(0, "scheduler", scheduler)],
        cgroups: vec![Cgroup { path: "group/inner".into(), settings: Vec::new() }],
        jobs: vec![reader("low", 0, 0, 6), reader("high", 100_000, 3, 1)],
        trace: Trace::Perturbing(Recording { priorities: true, ..recording() }),
        ..Script::default()
    }
}

fn every_issue_in_the_trace_is_a_command_in_the_log_at_the_same_time() {
    let machine = machine();
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let finished = finish(guest(machine, vec![constant(120, 64)], 1, script(scheduler)));
        assert_eq!(finished.lost_events, 0);
        let name = "/sys/block/vda/queue/scheduler";
        let chosen = &finished.queues[name];
        assert!(chosen == scheduler || chosen.contains(&format!("[{scheduler}]")), "{chosen}");
        let records: Result<Vec<Record>, _> = Reader::new(&finished.trace[..], "trace").collect();
        let records = records.unwrap();
        let issued: Vec<_> =
            records.iter().filter(|record| record.action == Action::Issue).collect();
        let served = finished.log.served.iter().filter(|one| one.accepted >= finished.begun);
        let served: Vec<_> = served.collect();
        assert_eq!((issued.len(), served.len()), (100, 100), "{scheduler}");
        for (record, served) in issued.iter().zip(&served) {
            assert_eq!(record.sector, served.sector);
            // The tracer's clock has steps of 256 ns, and the command comes after it.
            let later = served.accepted.since(record.time);
            assert!(later < Duration::from_micros(2), "{scheduler}: {later}");
            assert!(record.cgroup.is_some_and(|cgroup| cgroup != 1), "a cgroup of its own");
        }
        let first = served[0].accepted.since(finished.begun);
        assert!(first < Duration::from_micros(100), "jobs begin when they should: {first}");
    }
}

fn priorities_are_recorded_for_each_insertion_and_reach_the_disk() {
    let machine = machine();
    let finished = finish(guest(machine, vec![constant(120, 64)], 1, script("mq-deadline")));
    let count = |text: &str| finished.priorities.matches(text).count();
    assert_eq!((count(" be,0,6 "), count(" be,0,1 ")), (50, 50));
    let at = |level: u16| {
        let all = finished.log.served.iter();
        all.filter(|one| one.ioprio == 2 << 13 | level).count()
    };
    assert_eq!((at(6), at(1)), (50, 50));
}

fn messages_tell_when_the_queue_was_run() {
    let machine = machine();
    let recorded = Recording { runs: true, ..recording() };
    let script = Script { trace: Trace::Perturbing(recorded), ..script("mq-deadline") };
    let finished = finish(guest(machine, vec![constant(120, 64)], 1, script));
    let records = Reader::new(&finished.trace[..], "trace").collect::<Result<Vec<Record>, _>>();
    let records = records.unwrap();
    let begins = |record: &&Record| match &record.payload {
        Payload::Message(text) => text == runs::BEGINS.as_bytes(),
        _ => false,
    };
    // A worker that issues has begun to run the queue.
    let worker = records.iter().find(begins).expect("a worker ran the queue").pid;
    let issues = |record: &&Record| record.action == Action::Issue && record.pid == worker;
    let runs = records.iter().filter(begins).count();
    assert!(runs >= records.iter().filter(issues).count() / 64 && worker != 0);
    assert_eq!(records.iter().filter(|it| it.action == Action::Issue).count(), 100);
}

fn a_recording_without_room_tells_of_its_losses() {
    let machine = machine();
    let small = Recording { buffer: base::Bytes(16 << 10), ..recording() };
    let script = Script { trace: Trace::Free(small), ..script("bfq") };
    let finished = finish(guest(machine, vec![constant(120, 64)], 1, script));
    assert!(finished.lost_events > 0);
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO] => every_issue_in_the_trace_is_a_command_in_the_log_at_the_same_time,
            priorities_are_recorded_for_each_insertion_and_reach_the_disk,
            messages_tell_when_the_queue_was_run,
            a_recording_without_room_tells_of_its_losses,
    ])
}
