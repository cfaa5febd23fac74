//! Text, JSON and CSV say the same of random experiments, and no part exceeds its whole.

use lab::figure::{Figure, Point, What};
use lab::matrix::{Report, run};
use lab::metrics::{CallKind, Latency};
use lab::plan::Plan;
use lab::statistics::Estimate;
use lab::summary::Summary;
use lab::{Experiment, JobSpec, Work};
use proptest::prelude::*;
use report::Style;
use std::time::Duration;

fn job(name: &'static str) -> impl Strategy<Value = JobSpec> {
    let kinds = prop::sample::select(vec!["randread", "randwrite", "randrw", "read", "write"]);
    let sizes = prop::sample::select(vec!["4k", "64k"]);
    (kinds, sizes, 1..9_u32, 0..5_u32, any::<bool>()).prop_map(
        move |(rw, bs, depth, fsync, direct)| {
            let line = format!(
                "fio --name={name} --filename=/dev/sda --rw={rw} --bs={bs} --direct={} --size=16m \
                 --ioengine=libaio --iodepth={depth} --number_ios=40 --fsync={fsync}",
                u8::from(direct)
            );
            JobSpec::new(name, Work::Command(line), "test")
        },
    )
}

fn experiment() -> impl Strategy<Value = Experiment> {
    let models = prop::sample::select(vec!["hdd-7200-sata", "ssd-sata-m4", "nvme-980pro"]);
    (job("a"), job("b"), models, 1..4_u64).prop_map(|(a, b, model, seeds)| {
        let mut experiment = Experiment::of_jobs("", vec![a, b]);
        experiment.model = model.to_string();
        experiment.seeds = (1..=seeds).collect();
        experiment.schedulers = ["none", "cfq"].map(|it| (it.to_string(), String::new())).to_vec();
        experiment
    })
}

/// The points of a distribution are in order, and its extremes bound them.
fn assert_in_order(latency: &Latency) {
    let points: Vec<_> = latency.percentiles.iter().map(|it| it.1).collect();
    assert!(points.windows(2).all(|pair| pair[0] <= pair[1]), "{latency:?}");
    assert!(points.iter().all(|it| (latency.min..=latency.max).contains(it)), "{latency:?}");
    assert!(latency.mean <= latency.max);
}

fn assert_consistent(report: &Report, summary: &Summary) {
    for result in &report.results {
        let disk = &result.disk;
        assert!(disk.held <= disk.idle && disk.busy + disk.idle >= result.elapsed);
        assert!(disk.held_for.iter().all(|it| it.time <= disk.held), "{disk:?}");
        for job in &result.jobs {
            CallKind::ALL.iter().for_each(|kind| assert_in_order(&job.call(*kind).lat));
            let layers = &job.layers;
            [&layers.syscall, &layers.queue, &layers.device].into_iter().for_each(assert_in_order);
        }
    }
    for line in &summary.lines {
        let all: f64 = line.shares.iter().sum();
        assert!((all - 100.0).abs() < 1e-6 || all == 0.0, "{:?}", line.shares);
        for job in &summary.jobs {
            let rate = |kind| line.get(&job.figure(What::Bandwidth(kind))).map(|it| it.mean);
            let parts = [CallKind::Read, CallKind::Write, CallKind::Trim].map(Some).map(rate);
            let parts: f64 = parts.into_iter().flatten().sum();
            assert!((rate(None).unwrap_or(0.0) - parts).abs() <= parts * 1e-9);
        }
    }
}

/// The parts of a reason are its whole, and it does not speak against the verdict: where one is
/// said to be better, neither chance nor the same operations deny it.
fn assert_verdict(report: &Report, summary: &Summary) {
    let main = summary.main.as_ref().expect("there are jobs");
    for paired in &summary.pairs {
        let [best, worst] = [paired.best, paired.worst].map(|row| {
            let line = summary.lines.iter().find(|line| line.row == row);
            *line.and_then(|line| line.get(main)).expect("what is judged")
        });
        let is_better = match main.what.less_is_better() {
            true => best.mean <= worst.mean,
            false => best.mean >= worst.mean,
        };
        assert!(is_better, "{best:?} {worst:?}");
        let sum = |parts: [f64; _]| parts.iter().sum::<f64>();
        let more = sum(paired.worst_ns) - sum(paired.best_ns);
        assert!((sum(paired.more_ns()) - more).abs() <= 1.0);
        let text = summary.findings.join(" ");
        let (from, to) = (paired.worst, paired.best);
        let (from, to) = (report.plan.row_name(from), report.plan.row_name(to));
        let explains = format!("Under {from} they wait longer:");
        assert!(more > 0.0 || !text.contains(&explains), "{to}: {text}");
    }
    let is_verdict = summary.findings.iter().any(|it| it.starts_with("Best for"));
    let [one, other] = [0, 1].map(|row| summary.lines[row].get(main).copied());
    if let (true, Some(one), Some(other)) = (is_verdict, one, other) {
        let values = |row| {
            let results = report.results_of(row).iter();
            results.map(|it| main.value(it)).collect::<Option<Vec<f64>>>().expect("as above")
        };
        // Pairs of seeds tell what both runs share from what the schedulers do.
        let difference = Estimate::of_difference(&values(0), &values(1)).expect("as many of both");
        assert!(difference.differs_from_zero(), "{one:?} {other:?} {difference:?}");
    }
}

/// Each instant of an operation counts once.
fn assert_operations(report: &Report) {
    for job in report.results.iter().flat_map(|result| &result.jobs) {
        for operation in &job.operations.kept {
            let latency = &job.call(operation.key.kind).lat;
            assert!(operation.total() <= latency.max, "{operation:?} {latency:?}");
        }
    }
}

fn assert_alike(report: &Report, summary: &Summary) {
    let json = report::json::compare(report, summary);
    let csv = report::csv::compare(report, summary);
    let text = report::text::compare(report, summary, Duration::ZERO, &Style::UNBROKEN);
    let figures: usize = summary.lines.iter().map(|line| line.figures.len()).sum();
    assert_eq!(csv.lines().count(), 1 + figures);
    let main = summary.main.as_ref().expect("there are jobs");
    assert_eq!(json["judged_by"], main.to_string());
    for (index, line) in summary.lines.iter().enumerate() {
        let label = report.plan.rows[line.row].spec.label();
        for (figure, estimate) in &line.figures {
            let in_json = &json["summary"][index]["figures"][figure.to_string()];
            assert_eq!(in_json["mean"].as_f64(), Some(estimate.mean));
            let start = format!(",{label},{figure},{},", estimate.mean);
            assert!(csv.lines().any(|it| it.contains(&start)), "{start} in {csv}");
        }
        let Some(judged) = line.get(main) else { continue };
        let max = main.what.at(Point::Max);
        let max = line.get(&Figure { what: max, ..main.clone() }).expect("as the others");
        assert!(judged.mean <= max.mean);
        let name = report.plan.row_name(line.row);
        let shown = judged.human_spread(main.what.kind());
        let row = text.lines().find(|it| it.starts_with(&name)).expect("a row for each");
        assert!(row.contains(&shown), "{shown} in {row}");
    }
    summary.findings.iter().for_each(|it| assert!(text.contains(it.as_str()), "{it}"));
}

/// How many experiments: few, or as many as `PATERNOSTER_ANSWERS` says.
fn cases() -> u32 {
    let asked = std::env::var("PATERNOSTER_ANSWERS");
    asked.map_or(24, |it| it.parse().expect("PATERNOSTER_ANSWERS is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn text_json_and_csv_agree_and_parts_add_up(experiment in experiment()) {
        let report = run(Plan::new(experiment).unwrap(), None, 1, &|_| {}).unwrap();
        let summary = Summary::of(&report);
        assert_consistent(&report, &summary);
        assert_verdict(&report, &summary);
        assert_operations(&report);
        assert_alike(&report, &summary);
    }
}
