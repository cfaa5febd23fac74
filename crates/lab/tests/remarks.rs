//! What is remarked on beside the tables: who starves, what has no effect, what is assumed.

use lab::experiment::job::Work;
use lab::matrix::run;
use lab::metrics::CallKind;
use lab::plan::{CallLimit, MOST_CALLS, Plan};
use lab::summary::Summary;
use lab::{Experiment, JobSpec};

/// The remarks on jobs under schedulers, and the notes of their plan.
fn remarks(schedulers: &[&str], jobs: &[(&str, &str)]) -> (String, String) {
    let jobs = jobs
        .iter()
        .map(|(name, line)| JobSpec::new(*name, Work::Command(line.to_string()), "test"));
    let mut experiment = Experiment::of_jobs("", jobs.collect());
    experiment.seeds = vec![1];
    experiment.schedulers = schedulers.iter().map(|it| (it.to_string(), String::new())).collect();
    let report = run(Plan::new(experiment).unwrap(), None, 1, &|_| {}).unwrap();
    (Summary::of(&report).findings.join("\n"), report.plan.notes().join("\n"))
}

const DD: &str = "dd if=/dev/zero of=/dev/nvme0n1 count=3 oflag=direct";

#[test]
fn a_priority_that_nobody_honours_is_told_with_the_schedulers() {
    let (found, _) = remarks(&["none", "cfq"], &[("a", &format!("ionice -c3 {DD}"))]);
    assert!(found.contains("have no effect under none@6.18."), "{found}");
    let (found, _) = remarks(&["none", "cfq"], &[("a", DD)]);
    assert!(!found.contains("I/O priorities"), "{found}");
}

#[test]
fn a_priority_of_a_job_for_which_the_flusher_writes_is_told() {
    let said = |operands: &str| {
        let dd = format!("ionice -c2 -n7 dd if=/dev/zero of=/mnt/a bs=64k count=9 {operands}");
        let text = format!(
            "schedulers = [\"none\", \"bfq\"]\nseeds = 1\nfs = \"ext4\"\n\
             [[job]]\nname = \"copy\"\nrun = \"{dd}\"\n"
        );
        let plan = Plan::new(Experiment::parse("x.toml", &text).unwrap()).unwrap();
        let found = Summary::of(&run(plan, None, 1, &|_| {}).unwrap()).findings.join("\n");
        found.contains("The I/O priority of copy has no effect")
    };
    assert!(said(""));
    assert!(!said("oflag=direct") && !said("conv=fsync"));
}

#[test]
fn jobs_that_do_not_run_at_the_same_time_are_told() {
    let told = |late: &str| {
        let early = "fio --name=log --filename=/mnt/log --rw=write --size=1m";
        let text = format!(
            "schedulers = [\"none\", \"bfq\"]\nseeds = 1\nfs = \"ext4\"\n\
             [[job]]\nname = \"log\"\nrun = \"{early}\"\n[[job]]\nname = \"web\"\n{late}\n"
        );
        let plan = Plan::new(Experiment::parse("x.toml", &text).unwrap()).unwrap();
        let found = Summary::of(&run(plan, None, 1, &|_| {}).unwrap()).findings;
        found.iter().filter(|it| it.contains("at the same time")).count()
    };
    let web = "fio --name=web --filename=/mnt/web --rw=randread --bs=4k --number_ios=9";
    // A file that is to be read is made first, which takes longer than all that the other does.
    assert_eq!(told(&format!("run = \"{web} --size=512m\"")), 1);
    assert_eq!(told(&format!("run = \"{web} --size=512m\"\nstart = \"1 s\"")), 0);
    assert_eq!(told(&format!("run = \"{web} --size=512m --startdelay=1\"")), 0);
    assert_eq!(told("run = \"dd if=/dev/zero of=/mnt/web bs=4k count=9\""), 0);
}

#[test]
fn who_does_not_honour_weights_is_named_once_for_all_points_of_the_axes() {
    let text = "schedulers = [\"none\", \"mq-deadline\"]\nseeds = 1\n[[job]]\nname = \"a\"\n\
                cgroup = \"a\"\nweight = 200\nrun = \"dd if=/dev/zero of=/dev/sda count=1\"\n\
                [axes]\nnr_requests = [16, 31]\n";
    let experiment = Experiment::parse("x.toml", text).unwrap();
    let report = run(Plan::new(experiment).unwrap(), None, 1, &|_| {}).unwrap();
    let findings = Summary::of(&report).findings.join("\n");
    assert!(findings.contains("Weights: none, mq-deadline do not honour 200."), "{findings}");
}

#[test]
fn a_tunable_at_its_default_is_told() {
    let (found, _) = remarks(&["cfq:slice_idle=8", "cfq:slice_idle=7"], &[("a", DD)]);
    assert!(found.contains("slice_idle=8 changes nothing: cfq@4.19 has it anyway."), "{found}");
    assert!(!found.contains("slice_idle=7 changes"), "{found}");
}

#[test]
fn a_model_that_nobody_named_is_told_with_the_name_of_the_disk() {
    let (_, notes) = remarks(&["none"], &[("a", DD)]);
    assert!(notes.contains("/dev/nvme0n1 is assumed to be hdd-7200-sata."), "{notes}");
}

#[test]
fn who_waits_for_seconds_beside_others_starves() {
    let fio = |name: &str, rest: &str| {
        format!("fio --name={name} --filename=/dev/sda --direct=1 --runtime=9 --time_based {rest}")
    };
    let db = fio("db", "--rw=randread --bs=4k");
    let stream = "--rw=read --bs=128k --ioengine=libaio --iodepth=2 --offset=100g --size=100g";
    let (found, _) = remarks(&["none"], &[("db", &db), ("bulk", &fio("bulk", stream))]);
    assert!(found.contains("db starves: its slowest read takes, under none"), "{found}");
    let (found, _) = remarks(&["none"], &[("db", &db)]);
    assert!(!found.contains("starves"), "{found}");
}

#[test]
fn what_too_few_seeds_do_not_say_is_not_said() {
    let compare = |schedulers: &[&str], seeds| {
        let job = |name: &str, rest: &str| {
            let line = format!("fio --name={name} --filename=/dev/sda --direct=1 {rest}");
            JobSpec::new(name, Work::Command(line), "test")
        };
        let writer = "--rw=randwrite --bs=64k --ioengine=libaio --iodepth=16 --number_ios=300";
        let jobs = vec![job("db", "--rw=randread --bs=4k --number_ios=100"), job("w", writer)];
        let mut experiment = Experiment::of_jobs("", jobs);
        experiment.seeds = (1..=seeds).collect();
        let named = schedulers.iter().map(|it| (it.to_string(), String::new()));
        experiment.schedulers = named.collect();
        Summary::of(&run(Plan::new(experiment).unwrap(), None, 1, &|_| {}).unwrap()).findings
    };
    let few = compare(&["noop", "cfq", "anticipatory"], 2).join(" ");
    assert!(few.contains("Too few seeds to say whether anticipatory@2.6.32 is worse"), "{few}");
    assert!(!few.contains("alike anticipatory"), "{few}");
    let one = compare(&["noop", "cfq"], 1).join(" ");
    assert!(one.contains("One seed does not say what is chance."), "{one}");
}

/// The limit of calls that ended a run of a job, how many calls there were, and what is said.
fn cut_off(calls: CallLimit, line: &str) -> (Option<u64>, u64, String) {
    let job = JobSpec::new("a", Work::Command(line.to_string()), "test");
    let mut experiment = Experiment::of_jobs("", vec![job]);
    experiment.seeds = vec![1];
    experiment.calls = calls;
    experiment.schedulers = vec![("none".to_string(), String::new())];
    let report = run(Plan::new(experiment).unwrap(), None, 1, &|_| {}).unwrap();
    let result = &report.results[0];
    let job = &result.jobs[0];
    let calls = [CallKind::Read, CallKind::Write].map(|kind| job.call(kind));
    let calls = calls.iter().map(|it| it.count + it.unfinished).sum();
    (result.cut_off_after, calls, Summary::of(&report).findings.join("\n"))
}

#[test]
fn a_run_ends_after_its_limit_of_calls_and_says_so() {
    let job = "fio --name=a --filename=/dev/sda --rw=randread --direct=1 --iodepth=4 \
               --ioengine=libaio --size=1g";
    let (limit, calls, found) = cut_off(CallLimit::AtMost(100), job);
    assert_eq!((limit, calls), (Some(100), 100));
    let ended = "The jobs are longer than the runs, which ended after 100 I/O calls: none after ";
    assert!(found.contains(ended) && found.contains("--calls=all"), "{found}");
    let short = format!("{job} --number_ios=90");
    assert_eq!(cut_off(CallLimit::AtMost(100), &short), (None, 90, String::new()));
    assert_eq!(cut_off(CallLimit::All, &short).0, None);
}

#[test]
fn calls_that_come_to_no_disk_count_as_well() {
    for line in [
        "dd if=/dev/zero of=/dev/null bs=4k",
        "fio --name=a --filename=/dev/zero --rw=randread --size=100t",
        "fio --name=a --ioengine=null --rw=randread --size=100t",
    ] {
        assert_eq!(cut_off(CallLimit::AtMost(10_000), line).0, Some(10_000), "{line}");
    }
}

#[test]
fn a_run_is_limited_by_calls_where_nobody_limits_its_time() {
    let job = "fio --name=a --filename=/dev/sda --rw=randread --direct=1";
    let limit = |line: &str, background: Option<&str>| {
        let job = |(name, line): (&str, &str)| {
            let spec = JobSpec::new(name, Work::Command(line.to_string()), "test");
            JobSpec { background: name == "b", ..spec }
        };
        let jobs = [("a", line)].into_iter().chain(background.map(|it| ("b", it)));
        let experiment = Experiment::of_jobs("", jobs.map(job).collect());
        Plan::new(experiment).unwrap().rows[0].most_calls
    };
    assert_eq!(limit(job, None), Some(MOST_CALLS));
    assert_eq!(limit("dd if=/dev/sda of=/dev/null", None), Some(MOST_CALLS));
    let timed = format!("{job} --runtime=10 --time_based");
    assert_eq!(limit(&timed, None), None);
    assert_eq!(limit(&timed, Some("dd if=/dev/sda of=/dev/null")), None);
    assert_eq!(limit(&format!("timeout 10 {job}"), None), None);
}
