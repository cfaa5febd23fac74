//! Decisions of our schedulers against recordings: of real kernels, where the directory is named by
//! `PATERNOSTER_ORACLE`, and of our own queues, which must agree with themselves.

mod floors;

use base::{Duration, Instant};
use conform::{Class, Conformity, Options, PartSize, conform, conform_recording};
use lab::plan::Plan;
use lab::recording::{Manifest, Recording};
use lab::{Experiment, matrix};
use linux::Directory;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use testing::needs::ORACLE;
use trace::blktrace::{Action, Payload, Record};

/// The recordings of real kernels whose scheduler is one of these.
fn recordings(schedulers: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let directories = |path: &Path| {
        let entries = std::fs::read_dir(path).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
        paths.retain(|path| path.is_dir());
        paths.sort();
        paths
    };
    for family in directories(&testing::needs::oracle()) {
        found.extend(directories(&family).into_iter().filter(|path| {
            let manifest = Manifest::beside(path).unwrap();
            let scheduler = manifest.and_then(|it| it.scheduler);
            scheduler.is_some_and(|name| schedulers.contains(&name.as_str()))
        }));
    }
    found
}

fn of(path: &Path) -> Conformity {
    conform(path, &Options::default()).unwrap()
}

/// Asserts that the recordings of a scheduler agree as is published, merges included.
fn assert_agrees(scheduler: &str, least_dispatches: u64, least_contested: u64) {
    let paths = recordings(&[scheduler]);
    let results: Vec<Conformity> = paths.iter().map(|path| of(path)).collect();
    floors::assert_above(&format!("{scheduler}@4.19"), &results);
    for result in &results {
        assert_eq!(result.merges_that_differ.total(), 0, "{}", result.trace);
    }
    let dispatches: u64 = results.iter().map(|it| it.dispatches).sum();
    let contested: u64 = results.iter().map(|it| it.contested).sum();
    assert!(dispatches >= least_dispatches, "{dispatches}");
    assert!(contested >= least_contested, "{contested}");
}

fn noop_decides_as_4_19() {
    assert_agrees("noop", 119_000, 1);
}

fn deadline_decides_as_4_19() {
    assert_agrees("deadline", 410_000, 14_000);
}

fn cfq_decides_and_speaks_as_4_19() {
    assert_decides_and_speaks("cfq", 150_000);
}

fn bfq_decides_and_speaks_as_4_19() {
    assert_decides_and_speaks("bfq", 48_000);
}

/// Asserts that the recordings of a scheduler that speaks agree as is published, messages included.
fn assert_decides_and_speaks(scheduler: &str, least_contested: u64) {
    let results: Vec<Conformity> = recordings(&[scheduler]).iter().map(|path| of(path)).collect();
    floors::assert_above(&format!("{scheduler}@4.19"), &results);
    let said = results.iter().filter_map(|it| it.messages.as_ref());
    let (both, all) =
        said.fold((0, 0), |sum, it| (sum.0 + it.both, sum.1 + it.kernel.max(it.ours)));
    assert!(both as f64 >= 0.97 * all as f64, "{both} of {all} messages");
    let contested: u64 = results.iter().map(|it| it.contested).sum();
    assert!(contested >= least_contested, "{contested}");
}

fn mq_deadline_decides_as_4_19() {
    assert_agrees("mq-deadline", 25_000, 0);
}

fn none_decides_as_4_19() {
    assert_agrees("none", 0, 0);
}

fn arrival_order_and_other_tunables_are_told_apart_from_the_kernel() {
    let paths = recordings(&["deadline"]);
    let find = |name: &str| paths.iter().find(|path| path.ends_with(name));
    let path = find("f-fast-deadline-seeky8-qd1").unwrap();
    assert!(of(path).null_agreement().unwrap() < 60.0);
    let path = find("f-hdd-deadline-async-vs-rand").unwrap();
    let settings = vec![("fifo_batch".to_string(), 15)];
    let other = conform(path, &Options { settings, ..Options::default() }).unwrap();
    assert!(other.agreed < other.contested, "{:?}", other.agreement());
    let difference = other.first_difference.expect("they differ");
    assert!(difference.ours.is_some() && difference.state.contains("batching"));
}

/// Where a load of our own runs.
const PLACE: &str = r#"
model = "MODEL"
host = "free"
kernel = "KERNEL"
seeds = [7]
schedulers = ["SCHEDULER"]
"#;

/// More outstanding than tags.
const JOBS: &str = r#"
[[job]]
name = "load"
run = """fio --filename=/dev/sda --direct=1 --ioengine=libaio --runtime=1 --time_based
  --name=rr --rw=randread --bs=4k --iodepth=16 --numjobs=4
  --name=ww --rw=randwrite --bsrange=4k-32k --iodepth=32
  --name=seq --rw=write --bs=64k --iodepth=4"""
"#;

/// Tasks that differ in what schedulers look at: group, priority, io_context.
const ALL_KINDS: &str = r#"
[[cgroup]]
path = "one"
weight = 800

[[job]]
name = "load"
cgroup = "one"
run = """fio --filename=/dev/sda --direct=1 --ioengine=libaio --runtime=1 --time_based --rw=randrw
  --name=rt --prioclass=1 --prio=3 --bs=4k --rate_iops=50
  --name=be --prioclass=2 --prio=6 --bs=4k --iodepth=8
  --name=idle --prioclass=3 --bs=8k --iodepth=4"""

[[job]]
name = "turns"
run = "lg name=p,copies=3,file=/dev/sda,rw=read,bs=64k,size=1g,turn=1,share=0,ioc=1,dur=1000"
"#;

/// Records a load of our own.
fn record(directory: &Path, scheduler: &str, kernel: &str, model: &str) -> PathBuf {
    record_load(JOBS, directory, scheduler, kernel, model)
}

fn record_load(
    jobs: &str,
    directory: &Path,
    scheduler: &str,
    kernel: &str,
    model: &str,
) -> PathBuf {
    let place = PLACE.replace("SCHEDULER", scheduler).replace("KERNEL", kernel);
    let text = format!("{}{jobs}", place.replace("MODEL", model));
    let experiment = Experiment::parse("load.toml", &text).unwrap();
    let plan = Plan::new(experiment).unwrap();
    let name = lab::record::directory_name(&plan.rows[0], 7);
    matrix::run(plan, Some(directory), 1, &|_| ()).unwrap();
    directory.join(name)
}

/// A disk behind a driver that takes requests before it has tags for them.
fn virtio_disk(directory: &Path) -> String {
    let disk = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/hdd-7200-sata.toml");
    let text = std::fs::read_to_string(disk).unwrap();
    let path = directory.join("virtio-disk.toml");
    std::fs::write(&path, text.replace("value = \"sata\"", "value = \"virtio\"")).unwrap();
    path.display().to_string()
}

fn our_own_recordings_agree_in_everything() {
    let directory = Directory::make().unwrap();
    let virtio = virtio_disk(directory.path());
    for (scheduler, kernels) in [
        ("noop", &["2.6.28", "2.6.32", "4.10", "4.19"][..]),
        ("deadline", &["2.6.28", "2.6.32", "4.10", "4.19"]),
        ("mq-deadline", &["4.19", "5.2", "6.12", "6.18"]),
    ] {
        for kernel in kernels {
            for (number, model) in ["hdd-7200-sata", &virtio].into_iter().enumerate() {
                let into = directory.path().join(number.to_string());
                let result = of(&record(&into, scheduler, kernel, model));
                assert!(result.contested > 200, "{result:#?}");
                assert_eq!(result.agreed, result.contested, "{result:#?}");
                assert!(result.classes.is_empty(), "{result:#?}");
                assert_eq!(result.merges_that_differ.total(), 0, "{}", result.trace);
            }
        }
    }
}

fn our_own_recordings_say_who_the_tasks_were() {
    let directory = Directory::make().unwrap();
    for (scheduler, kernel) in [("cfq", "4.19"), ("cfq", "2.6.32"), ("mq-deadline", "6.12")] {
        let path = record_load(ALL_KINDS, directory.path(), scheduler, kernel, "hdd-7200-sata");
        let result = of(&path);
        assert!(result.contested > 100, "{result:#?}");
        assert_eq!(result.agreed, result.contested, "{result:#?}");
        let manifest = path.join("manifest.txt");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let about =
            |line: &&str| !["ioprio", "io_context", "cgroup"].iter().any(|it| line.starts_with(it));
        let less: Vec<&str> = text.lines().filter(about).collect();
        std::fs::write(&manifest, less.join("\n")).unwrap();
        let unsaid = of(&path);
        assert!(unsaid.agreed < unsaid.contested, "{unsaid:#?}");
    }
}

fn a_tunable_that_was_not_told_is_noticed_and_explained() {
    let directory = Directory::make().unwrap();
    let path = record(directory.path(), "deadline:fifo_batch=4", "4.19", "hdd-7200-sata");
    let settings = vec![("fifo_batch".to_string(), 16)];
    let result = conform(&path, &Options { settings, ..Options::default() }).unwrap();
    assert!(result.agreement().unwrap() < 95.0, "{:?}", result.agreement());
    let differences: u64 = result.classes.values().sum();
    assert!(differences >= result.contested - result.agreed);
    let difference = result.first_difference.expect("they differ");
    assert_eq!(difference.class.name(), "batch_boundary");
    assert!(difference.state.contains("batching"), "{}", difference.state);
}

fn a_recording_that_is_cut_agrees_as_far_as_it_goes() {
    let directory = Directory::make().unwrap();
    let path = record(directory.path(), "deadline", "4.19", "hdd-7200-sata");
    let mut recording = Recording::read(&path, None).unwrap();
    recording.records.truncate(recording.records.len() / 3);
    let result = conform_recording(&recording, &Options::default()).unwrap();
    assert!(result.contested > 50, "{result:#?}");
    assert_eq!(result.agreed, result.contested, "{result:#?}");
}

/// Of which nothing waits for long.
const LIGHT: &str = r#"
[[job]]
name = "load"
run = """fio --filename=/dev/sda --direct=1 --ioengine=libaio --runtime=4 --time_based
  --name=rr --rw=randread --bs=4k --iodepth=4
  --name=ww --rw=randwrite --bsrange=4k-32k --iodepth=4"""
"#;

/// What is known of a scheduler of deadlines is soon known again; CFQ remembers more.
fn a_long_recording_is_judged_in_parts_as_in_one() {
    let directory = Directory::make().unwrap();
    let part = PartSize { most: 900, again: 300 };
    let in_parts = Options { part, ..Options::default() };
    for (scheduler, kernel) in [("deadline", "4.19"), ("mq-deadline", "6.12"), ("noop", "4.19")] {
        let path = record_load(LIGHT, directory.path(), scheduler, kernel, "hdd-7200-sata");
        let (whole, parts) = (of(&path), conform(&path, &in_parts).unwrap());
        let counts = |it: &Conformity| (it.dispatches, it.contested, it.agreed, it.excluded);
        assert_eq!(counts(&whole), counts(&parts), "{scheduler}: {parts:#?}");
        let is_said = |it: &String| it.starts_with("is so long that it was judged in ");
        assert!(parts.remarks.iter().any(is_said) && !whole.remarks.iter().any(is_said));
    }
    let path = record_load(LIGHT, directory.path(), "cfq", "4.19", "hdd-7200-sata");
    let (whole, parts) = (of(&path), conform(&path, &in_parts).unwrap());
    assert!(whole.dispatches.abs_diff(parts.dispatches) < whole.dispatches / 100, "{parts:#?}");
    assert!(parts.agreement().unwrap() > 95.0, "{parts:#?}");
}

/// Two that take turns.
const TURNS: &str = r#"
[[job]]
name = "load"
run = """fio --filename=/dev/sda --direct=1 --ioengine=libaio --runtime=1 --time_based
  --name=load --rw=randread --bs=4k --iodepth=4 --numjobs=2"""
"#;

/// When the time of the first turn began to run, and when the turn was over.
fn first_turn(records: &[Record]) -> (Instant, Instant) {
    let says = |record: &&Record, words: &str| match &record.payload {
        Payload::Message(text) => String::from_utf8_lossy(text).contains(words),
        _ => false,
    };
    let began = records.iter().find(|it| says(it, "set_slice=")).expect("a turn").time;
    let mut after = records.iter().filter(|it| it.time > began);
    (began, after.find(|it| says(it, "slice expired")).expect("its end").time)
}

fn a_decision_that_hangs_on_a_microsecond_has_no_consequences() {
    let directory = Directory::make().unwrap();
    let path = record_load(TURNS, directory.path(), "cfq", "4.19", "recorded-fast-qd1");
    let mut recording = Recording::read(&path, None).unwrap();
    let (began, ended) = first_turn(&recording.records);
    recording.records.retain(|it| it.time < ended + Duration::from_millis(50));
    let with = |slice: u64| {
        let settings = vec![("slice_sync_us".to_string(), slice as i64)];
        conform_recording(&recording, &Options { settings, ..Options::default() }).unwrap()
    };
    // By less than a microsecond, the turn is not over yet: ours goes on from there.
    let lasted = ended.since(began).as_micros();
    let close = with(lasted + 1);
    assert_eq!(close.classes, BTreeMap::from([(Class::Clock, 1)]), "{close:#?}");
    assert_eq!(close.agreed, close.contested - 1);
    // By more, what follows is a consequence.
    let far = with(lasted + 3);
    assert!(!far.classes.contains_key(&Class::Clock), "{far:#?}");
    assert!(far.agreed < close.agreed, "{far:#?}");
}

fn a_bio_that_got_no_request_may_come_from_any_core() {
    let directory = Directory::make().unwrap();
    for (scheduler, kernel) in [("deadline", "4.19"), ("mq-deadline", "6.12")] {
        let path = record(directory.path(), scheduler, kernel, "hdd-7200-sata");
        let mut recording = Recording::read(&path, None).unwrap();
        let is_queued = |it: &&Record| it.action == Action::Queue;
        let last = recording.records.last().unwrap().time;
        for cpu in [7, 65_535, u32::MAX] {
            let first = recording.records.iter().find(is_queued).unwrap().clone();
            recording.records.push(Record { time: last, cpu, pid: 9_000, ..first });
        }
        let result = conform_recording(&recording, &Options::default()).unwrap();
        assert!(result.contested > 50, "{result:#?}");
    }
}

fn a_recording_that_begins_in_the_middle_is_judged_from_a_quiet_moment_on() {
    let paths = recordings(&["deadline"]);
    let path = paths.iter().find(|it| it.ends_with("h-hdd-qd1-deadline-seq8")).unwrap();
    let mut recording = Recording::read(path, None).unwrap();
    recording.records.drain(..1_003);
    let result = conform_recording(&recording, &Options::default()).unwrap();
    assert!(result.remarks.iter().any(|it| it.contains("fit no request")), "{result:#?}");
    assert!(result.agreement().is_none_or(|it| it > 90.0), "{result:#?}");
}

fn a_side_file_that_is_missed_is_named_with_what_it_would_have_told() {
    let directory = Directory::make().unwrap();
    let path = record(directory.path(), "noop", "4.19", "hdd-7200-sata");
    let missed = |path: &Path| -> Vec<&str> {
        let options = Options { scheduler: Some("noop@4.19".into()), ..Options::default() };
        conform(path, &options).unwrap().absent.iter().map(|it| it.file).collect()
    };
    assert!(missed(&path).is_empty());
    let manifest = path.join("manifest.txt");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}command: lg name=a,prio=2:7\n")).unwrap();
    assert_eq!(missed(&path), ["result.txt"]);
    std::fs::write(path.join("result.txt"), "a 7 read\n").unwrap();
    std::fs::write(path.join("disk.txt"), "").unwrap();
    std::fs::remove_file(&manifest).unwrap();
    assert_eq!(missed(&path), ["priorities.txt", "manifest.txt"]);
}

fn what_cannot_be_known_is_asked_for() {
    let directory = Directory::make().unwrap();
    let refusal = |options: &Options, path: &Path| conform(path, options).unwrap_err().to_string();
    let none = refusal(&Options::default(), directory.path());
    assert!(none.contains("no recording in it; accepted: a blktrace file"), "{none}");
    let path = record(directory.path(), "noop", "4.19", "hdd-7200-sata");
    std::fs::remove_file(path.join("manifest.txt")).unwrap();
    let unsaid = refusal(&Options::default(), &path);
    assert!(unsaid.contains("nothing says which scheduler was recorded"), "{unsaid}");
    let said = Options { scheduler: Some("noop".into()), ..Options::default() };
    assert_eq!(conform(&path, &said).unwrap().scheduler, "noop");
    let device = Options { device: Some("9,0".into()), ..said };
    assert!(refusal(&device, &path).contains("no device 9,0 in it"));
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [ORACLE] => noop_decides_as_4_19,
            deadline_decides_as_4_19,
            cfq_decides_and_speaks_as_4_19,
            bfq_decides_and_speaks_as_4_19,
            mq_deadline_decides_as_4_19,
            none_decides_as_4_19,
            arrival_order_and_other_tunables_are_told_apart_from_the_kernel,
            a_recording_that_begins_in_the_middle_is_judged_from_a_quiet_moment_on;
        [] => our_own_recordings_agree_in_everything,
            our_own_recordings_say_who_the_tasks_were,
            a_tunable_that_was_not_told_is_noticed_and_explained,
            a_recording_that_is_cut_agrees_as_far_as_it_goes,
            a_long_recording_is_judged_in_parts_as_in_one,
            a_bio_that_got_no_request_may_come_from_any_core,
            a_side_file_that_is_missed_is_named_with_what_it_would_have_told,
            what_cannot_be_known_is_asked_for,
            a_decision_that_hangs_on_a_microsecond_has_no_consequences,
    ])
}
