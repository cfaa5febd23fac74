//! `explain` finds what is wrong, and nothing where nothing is.

use base::{Duration, Instant};
use block::{CommitPhase, ContextId, Stage, Syscall};
use insight::{Call, Layer, Segment};
use lab::Experiment;
use lab::explain::account::Account;
use lab::explain::finding::Finding;
use lab::explain::focus::Focus;
use lab::explain::{Explained, Options, explain, explain_row, label_of};
use lab::metrics::CallKind;
use lab::parallel;
use lab::plan::Plan;
use std::path::{Path, PathBuf};

fn below(directory: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
    let entries = std::fs::read_dir(root).unwrap().map(|it| it.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|it| it.extension().is_some_and(|it| it == "toml")).collect();
    files.sort();
    files
}

fn plan_of(path: &Path) -> (Plan, String) {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    (Plan::new(Experiment::parse(&name, &text).unwrap()).unwrap(), text)
}

/// What a line such as `# cause = "idling"` says.
fn said<'a>(text: &'a str, key: &str) -> &'a str {
    let start = format!("# {key} = \"");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.and_then(|it| it.strip_suffix('"')).unwrap_or_else(|| panic!("no {key}"))
}

/// What the command asks for.
fn asked(plan: &Plan, trials: usize) -> Options {
    let otherwise = plan.metric.as_ref().map(Focus::of).filter(Focus::is_of_calls);
    Options { trials, otherwise, ..Options::default() }
}

/// Explains the row that is called so.
fn row_called(plan: &Plan, label: &str, trials: usize) -> Explained {
    let row = plan.rows.iter().find(|it| label_of(&it.spec, &it.axes) == label);
    let row = row.unwrap_or_else(|| panic!("no row {label}"));
    explain_row(plan, row, asked(plan, trials)).unwrap()
}

fn causes(it: &Explained) -> Vec<&Finding> {
    it.findings.iter().filter(|it| it.is_cause()).collect()
}

/// The first cause of a row of an experiment.
fn first_cause(file: &str, label: &str) -> (&'static str, Option<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(file);
    let (plan, _) = plan_of(&path);
    let explained = row_called(&plan, label, 0);
    causes(&explained).first().map_or(("nothing", None), |it| (it.name, it.culprit.clone()))
}

/// Without optimisation every third file is looked at, which takes long enough.
const EVERY: usize = if cfg!(debug_assertions) { 3 } else { 1 };

/// The files of a directory that are looked at.
fn some_below(directory: &str) -> Vec<PathBuf> {
    below(directory).into_iter().step_by(EVERY).collect()
}

/// What is wrong with files, each looked at once.
fn wrong(files: &[PathBuf], look_at: impl Fn(&Path) -> Option<String> + Sync) -> Vec<String> {
    let look = |path: &PathBuf| Ok(look_at(path).map(|it| format!("{}: {it}", path.display())));
    let all = parallel::each(files, parallel::threads(), look, || ()).unwrap();
    all.into_iter().flatten().collect()
}

#[test]
fn the_cause_of_each_complaint_is_found_first() {
    let missed = wrong(&some_below("experiments/threads"), |path| {
        let (plan, text) = plan_of(path);
        let (cause, under) = (said(&text, "cause"), said(&text, "under"));
        let first = |trials| {
            let explained = row_called(&plan, under, trials);
            causes(&explained).first().map_or("nothing", |it| it.name)
        };
        // What is only suspected is a cause when a change helps.
        let found = [0, 1].into_iter().map(first).find(|it| *it == cause);
        found.is_none().then(|| format!("{cause} is not first"))
    });
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn what_strangers_made_up_is_found_first() {
    let missed = wrong(&some_below("fidelity/composed"), |path| {
        let (plan, text) = plan_of(path);
        // Some say in words what is wrong.
        if !text.starts_with("# cause") {
            return None;
        }
        let explained = explain_row(&plan, &plan.rows[0], asked(&plan, 1)).unwrap();
        let first = causes(&explained).first().map_or(("nothing", ""), |it| (it.name, &it.victim));
        (first != (said(&text, "cause"), said(&text, "victim"))).then(|| format!("{first:?}"))
    });
    assert!(missed.is_empty(), "{missed:#?}");
}

/// What all lines such as `# not = "idling"` say.
fn all_said<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let start = format!("# {key} = \"");
    let ends = |line: &'a str| line.strip_prefix(&start)?.strip_suffix('"');
    text.lines().filter_map(ends).collect()
}

#[test]
fn what_is_not_so_is_not_said() {
    let files = [some_below("fidelity/composed"), some_below("fidelity/healthy")].concat();
    let wrong = wrong(&files, |path| {
        let (plan, text) = plan_of(path);
        let (says, not) = (all_said(&text, "says"), all_said(&text, "not"));
        if says.is_empty() && not.is_empty() {
            return None;
        }
        let found = row_called(&plan, &label_of(&plan.rows[0].spec, &[]), 0).findings;
        let line = |it: &Finding| format!("{} of {}: {}", it.name, it.victim, it.title);
        let lines: Vec<String> = found.iter().map(line).collect();
        let is_said = |it: &&&str| lines.iter().any(|line| line.contains(**it));
        let missing = says.iter().filter(|it| !is_said(it));
        let wrong: Vec<_> = missing.chain(not.iter().filter(is_said)).collect();
        (!wrong.is_empty()).then(|| format!("{wrong:?} in {lines:#?}"))
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn who_calls_without_a_pause_is_told_that_the_device_could_serve_more() {
    let titles = |more: &str| {
        let text = format!(
            r#"
            model = "nvme-980pro"
            schedulers = ["none"]
            seeds = 1
            [[job]]
            name = "db"
            run = "fio --name=db --direct=1 --rw=randread --bs=4k --size=1g --number_ios=500 {more}"
            "#
        );
        let plan = Plan::new(Experiment::parse("alone", &text).unwrap()).unwrap();
        let found = explain_row(&plan, &plan.rows[0], Options::default()).unwrap().findings;
        found.into_iter().map(|it| it.title).collect::<Vec<_>>()
    };
    let is_told = |more| titles(more).iter().any(|it| it.contains("one read under way at a time"));
    assert!(is_told(""));
    assert!(!is_told("--thinktime=1ms") && !is_told("--rate_iops=2000"));
}

#[test]
fn a_setting_costs_what_its_default_spares() {
    let path = below("fidelity/composed").into_iter().find(|it| it.ends_with("long-turns.toml"));
    let (plan, _) = plan_of(&path.unwrap());
    let explained = explain_row(&plan, &plan.rows[0], asked(&plan, 1)).unwrap();
    let setting = explained.findings.iter().find(|it| it.is_setting()).unwrap();
    let times = setting.remedies[0].gain.as_ref().unwrap().times[0];
    let spared = 1.0 - 1.0 / times;
    assert!(times > 2.0 && setting.share <= spared, "{} of {spared}", setting.share);
    assert!(setting.share > 0.8 * spared, "{} of {spared}", setting.share);
}

const TWO_SECTIONS: &str = r#"
    model = "hdd-7200-sata"
    schedulers = ["mq-deadline"]
    seeds = 1
    metric = "METRIC"
    [[job]]
    name = "both"
    run = """fio --filename=/dev/sda --direct=1 --bs=4k --size=1g --time_based --runtime=1 \
             --name=rand --rw=randread --name=seq --rw=write --ioengine=libaio --iodepth=8"""
"#;

fn two_sections(metric: &str) -> Plan {
    let text = TWO_SECTIONS.replace("METRIC", metric);
    Plan::new(Experiment::parse("two", &text).unwrap()).unwrap()
}

#[test]
fn sections_of_a_job_are_told_apart() {
    let plan = two_sections("both/rand.read_p99");
    let explained = explain_row(&plan, &plan.rows[0], Options::default()).unwrap();
    let mut names: Vec<&str> = explained.callers.iter().map(|it| it.job.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["both/rand", "both/seq"]);
    let found = explained.findings.iter().find(|it| it.victim == "both/rand").unwrap();
    assert_eq!((found.name, found.culprit.as_deref()), ("device-shared", Some("both/seq")));
}

#[test]
fn the_calls_that_a_figure_is_of_are_looked_at_alone() {
    let plan = two_sections("both/rand.read_p90");
    let all = explain_row(&plan, &plan.rows[0], Options::default()).unwrap();
    let reads = all.callers.iter().find(|it| it.job == "both/rand").unwrap();
    let focus = plan.metric.as_ref().map(Focus::of);
    let options = Options { focus, is_asked: true, ..Options::default() };
    let few = explain_row(&plan, &plan.rows[0], options).unwrap();
    let [slow] = few.callers.as_slice() else { panic!("{:?}", few.callers) };
    assert_eq!((slow.job.as_str(), slow.longest), ("both/rand", reads.longest));
    assert!(slow.calls * 5 < reads.calls && slow.calls > 0, "{} of {}", slow.calls, reads.calls);
    assert!(slow.mean() > reads.mean());
    assert!(few.findings.iter().all(|it| it.victim == "both/rand"));
    // What a finding costs is told of the figure, and who asks wants to hear of what is rare.
    let of: Vec<_> = few.findings.iter().map(|it| it.of_figure.as_ref().unwrap()).collect();
    assert!(of.iter().all(|it| it.name == "both/rand.read_p90" && it.share <= 1.0));
    assert!(of.is_sorted_by(|one, other| one.share >= other.share), "{of:#?}");
    assert!(few.has_cause() && few.ranked_otherwise(&plan).is_none());
    assert!(all.ranked_otherwise(&plan).unwrap().contains("--metric both/rand.read_p90"));
    assert!(all.findings.iter().all(|it| it.of_figure.is_none()));
}

#[test]
fn a_depth_is_set_where_it_can_be_typed() {
    let commands = |model: &str, virtio: &str| -> String {
        let text = format!(
            r#"
            model = "{model}"
            schedulers = ["none"]
            seeds = 1
            {virtio}
            [[job]]
            name = "db"
            run = """fio --name=db --filename=/dev/sda --rw=randread --bs=4k --direct=1 \
                     --ioengine=libaio --iodepth=16 --size=1g --number_ios=500"""
            "#
        );
        let plan = Plan::new(Experiment::parse("depth", &text).unwrap()).unwrap();
        let explained = explain_row(&plan, &plan.rows[0], Options::default()).unwrap();
        let found = explained.findings.iter().find(|it| it.name == "queue-depth");
        let remedies = found.iter().flat_map(|it| it.remedies.iter());
        remedies.map(|it| it.command.clone()).collect::<Vec<_>>().join("; ")
    };
    let one = "transport = \"virtio\"\nqueue_depth = 1";
    let host = "set 32 commands at a time on the host: a guest has no file for it";
    assert_eq!(commands("nvme-980pro", one), host);
    let echo = "echo 32 > /sys/block/sda/device/queue_depth; behind virtio, ";
    assert_eq!(commands("ssd-sata-m4", one), format!("{echo}{host}"));
    assert_eq!(commands("ssd-sata-m4", ""), "");
}

#[test]
fn direct_writes_that_make_a_file_longer_are_seen_to_go_one_by_one() {
    let first = |fs: &str, depth: u32, more: &str, trials: usize| {
        let text = format!(
            r#"
            model = "hdd-7200-sata"
            fs = "{fs}"
            schedulers = ["none"]
            seeds = 1
            [[job]]
            name = "log"
            run = """fio --name=log --filename=/mnt/log --rw=write --bs=4k --direct=1 \
                     --ioengine=libaio --iodepth={depth} --size=4m {more}"""
            "#
        );
        let plan = Plan::new(Experiment::parse("log", &text).unwrap()).unwrap();
        let options = Options { trials, ..Options::default() };
        let explained = explain_row(&plan, &plan.rows[0], options).unwrap();
        let causes = causes(&explained);
        causes.first().map(|it| (it.name, it.remedies[0].gain.as_ref().unwrap().times[0]))
    };
    for fs in ["ext4", "xfs"] {
        let (name, times) = first(fs, 2, "--fallocate=none", 1).unwrap();
        assert!(name == "one-by-one" && times > 1.8, "{fs}: {name}, {times}");
        // It is a guess until it is tried, and nothing where the file has its size.
        assert_eq!(first(fs, 2, "--fallocate=none", 0), None);
        assert_eq!(first(fs, 2, "", 1), None);
        assert_eq!(first(fs, 1, "--fallocate=none", 1), None);
        assert_eq!(first(fs, 8, "--overwrite=1", 1), None);
    }
    let (name, times) = first("ext4", 8, "--fallocate=none", 1).unwrap();
    assert!(name == "one-by-one" && times > 4.0, "{name}, {times}");
}

#[test]
fn the_device_is_not_to_blame_where_a_cause_is_found() {
    let text = r#"
        model = "hdd-7200-sata"
        fs = "ext4"
        schedulers = ["none"]
        seeds = 1
        [[job]]
        name = "db"
        run = "fio --name=db --filename=/mnt/db --rw=write --bs=4k --size=4m --fsync=1"
    "#;
    let plan = Plan::new(Experiment::parse("db", text).unwrap()).unwrap();
    let found = explain_row(&plan, &plan.rows[0], asked(&plan, 1)).unwrap().findings;
    let names: Vec<_> = found.iter().map(|it| (it.name, it.is_cause(), it.kind)).collect();
    assert_eq!(names[0], ("flushes", true, CallKind::Sync), "{names:?}");
    assert!(!names.contains(&("device-bound", false, CallKind::Sync)), "{names:?}");
}

#[test]
fn a_call_that_takes_very_long_makes_a_percentile_no_worse() {
    let alike = |path: &[(Layer, u64)]| {
        let (mut from, mut segments) = (Instant::ZERO, Vec::new());
        for (layer, millis) in path {
            let to = from + Duration::from_millis(*millis);
            segments.push(segment(*layer, from, to));
            from = to;
        }
        call(segments, from)
    };
    let mut account = Account::new(0);
    for _ in 0..9 {
        account.add(alike(&[(Layer::Others, 15), (Layer::Device, 5)]));
    }
    account.add(alike(&[(Layer::Tag, 990), (Layer::Device, 10)]));
    let callers = account.finish(|_| "db".to_string());
    let of = |layer| callers[0].parts.iter().find(|it| it.layer == layer).unwrap();
    assert!(of(Layer::Tag).time > of(Layer::Others).time);
    assert!((of(Layer::Others).alike - 6.75).abs() < 1e-9, "{}", of(Layer::Others).alike);
    assert!((of(Layer::Tag).alike - 0.99).abs() < 1e-9, "{}", of(Layer::Tag).alike);
}

/// A call that waits in the drive behind two tasks of one job, each for as many milliseconds.
fn shared_call(millis: u64, is_beside_sync: bool) -> Call {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let piece = |behind, from, to, is_beside_sync| Segment {
        behind: Some(ContextId(behind)),
        is_beside_sync,
        ..segment(Layer::Shared, at(from), at(to))
    };
    let path = vec![piece(2, 0, millis, false), piece(3, millis, 2 * millis, is_beside_sync)];
    call(path, at(2 * millis))
}

fn job_of(task: ContextId) -> String {
    if task == ContextId(1) { "db" } else { "flood" }.to_string()
}

#[test]
fn what_several_tasks_of_a_job_cost_one_call_is_added_up() {
    let mut account = Account::new(0);
    [5, 7, 6].into_iter().for_each(|millis| account.add(shared_call(millis, false)));
    let callers = account.finish(job_of);
    let slowest = &callers[0].parts_of_slowest;
    let longest: Vec<_> = slowest.iter().map(|parts| (parts.len(), parts[0].longest)).collect();
    assert_eq!(longest, [14, 12, 10].map(|millis| (1, Duration::from_millis(millis))));
}

#[test]
fn of_a_wait_behind_writeback_only_what_is_beside_a_sync_is_the_syncs() {
    let mut account = Account::new(0);
    account.add(shared_call(5, false));
    account.add(shared_call(7, true));
    let callers = account.finish(job_of);
    let beside = callers[0].while_others_sync();
    let [part] = beside.parts.as_slice() else { panic!("{:?}", beside.parts) };
    let seven = Duration::from_millis(7);
    assert_eq!((part.time, part.longest, part.calls), (seven, seven, 1));
    assert_eq!((part.first, beside.total), (Instant::ZERO + seven, callers[0].total));
}

#[test]
fn a_request_is_passed_over_while_the_drive_lets_it_wait_and_not_while_it_flushes() {
    let passed_over = |stages: [Option<Stage>; 3]| {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let piece = |layer, number: u64, stage| Segment {
            stage,
            ..segment(layer, at(100 * number), at(100 * number + 100))
        };
        let [one, two, three] = stages;
        let path = vec![
            piece(Layer::Shared, 0, one),
            piece(Layer::Device, 1, two),
            piece(Layer::Shared, 2, three),
        ];
        let mut account = Account::new(0);
        account.add(call(path, at(300)));
        let parts = &account.finish(job_of)[0].parts;
        parts.iter().map(|it| it.passed_over.as_millis()).max().unwrap()
    };
    let (queue, flush) = (Some(Stage::Queue), Some(Stage::BehindFlush));
    assert_eq!(passed_over([queue, queue, queue]), 300);
    assert_eq!(passed_over([queue, flush, queue]), 100);
    assert_eq!(passed_over([queue, queue, Some(Stage::Seek)]), 200);
    assert_eq!(passed_over([flush; 3]), 0);
    assert_eq!(passed_over([None; 3]), 300);
}

fn segment(layer: Layer, from: Instant, to: Instant) -> Segment {
    Segment { is_read: true, ..Segment::of(ContextId(1), layer, [from, to]) }
}

fn call(path: Vec<Segment>, ended: Instant) -> Call {
    let (task, call, token) = (ContextId(1), Syscall::Read, 0);
    let (entered, is_unfinished) = (Instant::ZERO, false);
    let (commits, pages) = (Vec::new(), Vec::new());
    Call { task, call, token, entered, ended, is_unfinished, path, commits, pages }
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let (mut runs, mut wrong) = (0, Vec::new());
    for path in below("fidelity/healthy") {
        let (plan, _) = plan_of(&path);
        for it in explain(&plan, Options::default(), &|_, _| ()).unwrap() {
            runs += 1;
            let found = causes(&it).iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
            if !found.is_empty() {
                wrong.push(format!("{} {}: {found}", path.display(), it.label()));
            }
        }
    }
    assert!(runs >= 100, "{runs}");
    assert!(wrong.len() * 50 <= runs, "{wrong:#?}");
}

#[test]
fn founding_reports_have_their_causes() {
    let of = |file, label| first_cause(file, label);
    let journal = of("journal-pingpong.toml", "cfq@4.19 · write_cache=write through");
    assert_eq!(journal, ("dependent-tasks-apart", Some("jbd2/sda-8".to_string())));
    let plain = of("journal-pingpong.toml", "deadline@4.19 · write_cache=write through");
    assert_eq!(plain.0, "nothing");
    let dump = of("dump-cooperation.toml", "cfq@2.6.28 · hz=1000, clone_io=off");
    assert_eq!(dump.0, "cooperating-tasks-apart");
    let shared = of("dump-cooperation.toml", "cfq@2.6.28 · hz=1000, clone_io=on");
    assert_eq!(shared.0, "nothing");
}

#[test]
fn who_forces_the_log_of_xfs_and_whose_changes_go_with_it_is_told() {
    let text = "model = \"ssd-sata-m4\"\nfs = \"xfs\"\nschedulers = [\"none@6.12\"]\nseeds = 1\n\
                [[job]]\nname = \"log\"\n\
                run = \"fio --name=log --rw=write --bs=4k --size=400k --fsync=1\"\n\
                [[job]]\nname = \"names\"\n\
                run = \"fio --name=names --nrfiles=200 --rw=write --bs=4k --filesize=4k\"\n";
    let plan = Plan::new(Experiment::parse("test", text).unwrap()).unwrap();
    let explained = explain_row(&plan, &plan.rows[0], asked(&plan, 0)).unwrap();
    let syncs = explained.callers.iter().find(|it| it.job == "log" && it.kind == CallKind::Sync);
    let syncs = syncs.unwrap();
    assert_eq!(syncs.commits.asked_by.get(&Some("log".to_string())), Some(&syncs.calls));
    assert!(syncs.commits.handles.contains_key("names"), "{:?}", syncs.commits);
    let written = syncs.commits.phases[&CommitPhase::LogWrite];
    assert!(written * 2 > syncs.total, "{written:?} of {:?}", syncs.total);
}

#[test]
fn what_is_advised_is_said_in_numbers_and_tried() {
    let best = |finding: &str, advice: &str, head: &str, jobs: [(&str, &str); 2]| -> f64 {
        let job = |(name, line): (&str, &str)| {
            let common = "--name=it --filename=/dev/sda --runtime=12 --time_based";
            format!("[[job]]\nname = \"{name}\"\n{}", line.replace("FIO", common))
        };
        let text = format!("seeds = 1\n{head}\n{}\n{}", job(jobs[0]), job(jobs[1]));
        let plan = Plan::new(Experiment::parse("advice", &text).unwrap()).unwrap();
        let options = Options { trials: 1, ..Options::default() };
        let explained = explain_row(&plan, &plan.rows[0], options).unwrap();
        let found = explained.findings.iter().find(|it| it.name == finding).unwrap();
        let remedy = found.remedies.iter().find(|it| it.command.contains(advice));
        remedy.unwrap_or_else(|| panic!("{found:?}")).gain.as_ref().unwrap().times[0]
    };
    let aging = best(
        "idle-class",
        "echo 1000 > /sys/block/sda/queue/iosched/prio_aging_expire",
        "model = \"hdd-7200-sata\"\nschedulers = [\"mq-deadline@6.18\"]",
        [
            ("backup", "ioprio = \"idle\"\nrun = \"fio FIO --rw=read --bs=256k --offset=500g\""),
            (
                "web",
                "run = \"fio FIO --direct=1 --rw=randread --bs=16k --ioengine=libaio --iodepth=4\"",
            ),
        ],
    );
    assert!(aging > 5.0, "{aging}");
    let limit = best(
        "device-shared",
        "limit scan to half of what it does now (io.max rbps=",
        "model = \"cloud-gp3\"\nschedulers = [\"none@6.12\"]",
        [
            ("log", "run = \"fio FIO --direct=1 --rw=randwrite --bs=8k --thinktime=10ms\""),
            (
                "scan",
                "run = \"fio FIO --direct=1 --rw=randread --bs=8k --ioengine=libaio --iodepth=64\"",
            ),
        ],
    );
    assert!(limit > 10.0, "{limit}");
}
