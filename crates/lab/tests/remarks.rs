//! What is remarked on beside the tables: who starves, what has no effect, what is assumed.

use lab::experiment::job::Work;
use lab::matrix::run;
use lab::plan::Plan;
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
