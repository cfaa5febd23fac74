//! `explain` of recordings: what the simulator recorded names its cause, and what is damaged is
//! refused.

use lab::explain::finding::Finding;
use lab::explain::recorded::{Explained, Options, explain};
use lab::plan::Plan;
use lab::worlds::Worlds;
use lab::{Error, Experiment, record};
use linux::Directory;
use std::path::Path;

/// Records the row of an experiment that is called so, and explains the recording.
fn recorded(file: &str, scheduler: &str, axis: &str) -> Explained {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(file);
    let mut experiment = Experiment::load(&path).unwrap();
    experiment.schedulers = vec![(scheduler.to_string(), "a test".to_string())];
    experiment.expect.clear();
    let plan = Plan::new(experiment).unwrap();
    let has = |value: &str| axis.split(", ").all(|it| value.contains(it));
    let values = |it: &lab::plan::Row| {
        let all = it.axes.iter().map(|(name, value)| format!("{name}={value} "));
        all.collect::<String>()
    };
    let row = plan.rows.iter().find(|row| has(&values(row))).expect("a row");
    let directory = Directory::make().unwrap();
    Worlds::of(&plan).unwrap().run(row, 1, Some(directory.path())).unwrap();
    let recording = directory.path().join(record::recording_name(row, 1));
    explain(&recording, &Options { slowest: 3, ..Options::default() }, &mut |_| {}).unwrap()
}

fn causes(it: &Explained) -> Vec<&Finding> {
    it.findings.iter().filter(|it| it.is_cause()).collect()
}

#[test]
fn a_recording_of_tasks_that_wait_for_each_other_says_so() {
    let it = recorded("journal-pingpong.toml", "cfq@4.19", "write through");
    let first = causes(&it)[0];
    assert_eq!(first.name, "dependent-tasks-apart");
    assert_eq!((first.victim.as_str(), first.culprit.as_deref()), ("dd", Some("jbd2/sda-8")));
    assert_eq!(first.confidence, Some(insight::Confidence::High));
    assert_eq!(it.slowest.len(), 3);
    assert!(it.slowest[0].total() >= it.slowest[1].total());
    for caller in &it.callers {
        let parts: base::Duration = caller.parts.iter().map(|it| it.time).sum();
        assert_eq!(parts, caller.total, "{}", caller.job);
    }
}

#[test]
fn a_recording_of_tasks_that_work_on_one_stream_says_so() {
    let it = recorded("dump-cooperation.toml", "cfq@2.6.28", "hz=1000, clone_io=off");
    assert_eq!(causes(&it)[0].name, "cooperating-tasks-apart", "{:#?}", it.findings);
    assert!(causes(&it)[0].confidence >= Some(insight::Confidence::Medium));
}

#[test]
fn recordings_of_plain_schedulers_name_no_cause() {
    for scheduler in ["noop@4.19", "deadline@4.19"] {
        let it = recorded("journal-pingpong.toml", scheduler, "write through");
        assert!(causes(&it).is_empty(), "{scheduler}: {:#?}", it.findings);
    }
    for (scheduler, shares) in
        [("noop@2.6.28", "off"), ("deadline@2.6.28", "off"), ("cfq@2.6.28", "on")]
    {
        let axes = format!("hz=1000, clone_io={shares}");
        let it = recorded("dump-cooperation.toml", scheduler, &axes);
        assert!(causes(&it).is_empty(), "{scheduler} {shares}: {:#?}", it.findings);
    }
}

/// What is said of a file with this content.
fn refusal(name: &str, content: &[u8], options: &Options) -> String {
    let directory = Directory::make().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    match explain(&path, options, &mut |_| {}) {
        Ok(_) => panic!("{name} was taken"),
        Err(error) => {
            assert!(error.is_bad_input(), "{error}");
            assert!(matches!(error, Error::Bad { .. } | Error::Trace(_)), "{error}");
            error.to_string()
        }
    }
}

/// A recording of some reads, one after the other.
fn some_reads() -> Vec<u8> {
    use trace::blktrace::{Action, Categories, DevT, Layout, Record};
    let mut bytes = Vec::new();
    for number in 0..20u32 {
        let actions = [Action::Queue, Action::GetRequest, Action::Insert, Action::Issue];
        let actions = actions.into_iter().chain([Action::Complete]);
        for (step, action) in actions.enumerate() {
            let at = u64::from(number) * 10_000_000 + step as u64 * 1_000;
            let event = Record::event(action, base::Instant::from_nanos(at));
            let sector = base::Sector(u64::from(number) * 8);
            let sequence = number * 5 + step as u32;
            let device = DevT::new(8, 0);
            let record = Record { sequence, device, pid: 7, sector, bytes: 4096, ..event };
            Layout::V7_LITTLE.encode(&record.with(Categories::READ), &mut bytes);
        }
    }
    bytes
}

#[test]
fn what_is_no_recording_is_refused_with_what_is_accepted() {
    let plain = Options::default();
    let empty = refusal("sda.blktrace.0", b"", &plain);
    assert!(empty.contains("sda.blktrace.0"), "{empty}");
    let foreign = refusal("x.log", b"fio version 2 iolog\n/dev/sda add\n", &plain);
    assert!(foreign.contains("has no events of requests; accepted: "), "{foreign}");
    let noise = refusal("x.bin", &[0x5a; 4096], &plain);
    assert!(noise.contains("accepted: "), "{noise}");
    let mut damaged = some_reads();
    let middle = damaged.len() / 2 / 48 * 48;
    damaged[middle..middle + 8].fill(0xee);
    let damaged = refusal("sda.blktrace.0", &damaged, &plain);
    assert!(damaged.contains(" at byte "), "{damaged}");
    let short = refusal("sda.blktrace.0", &some_reads()[..100], &plain);
    assert!(short.contains("no request in it is done"), "{short}");
    let device = |name: &str| Options { device: Some(name.to_string()), ..Options::default() };
    let other = refusal("sda.blktrace.0", &some_reads(), &device("8,16"));
    assert!(
        other.contains("no device 8,16 in it; accepted: --trace-device with one of 8,0"),
        "{other}"
    );
    let wrong = refusal("sda.blktrace.0", &some_reads(), &device("sda"));
    assert!(wrong.contains("--trace-device: \"sda\"; accepted: MAJOR,MINOR"), "{wrong}");
}

#[test]
fn a_recording_that_ends_within_a_record_is_read_with_a_remark() {
    let directory = Directory::make().unwrap();
    let path = directory.path().join("sda.blktrace.0");
    let bytes = some_reads();
    std::fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let it = explain(&path, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!((it.requests, it.remarks.len()), (19, 1), "{:?}", it.remarks);
}
