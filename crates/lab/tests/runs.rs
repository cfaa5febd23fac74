//! Experiments from text to summary.

use base::Duration;
use lab::figure::Figure;
use lab::matrix::{Report, run};
use lab::metrics::CallKind;
use lab::plan::Plan;
use lab::summary::Summary;
use lab::{Error, Experiment};

fn plan(text: &str) -> Result<Plan, Error> {
    Plan::new(Experiment::parse("x.toml", text)?)
}

fn report(text: &str, threads: usize) -> Report {
    run(plan(text).unwrap(), None, threads, &|_| {}).unwrap()
}

const RANDOM: &str = r#"
schedulers = ["all"]
seeds = 2
[[job]]
name = "reader"
run = "fio --name=r --filename=/dev/sda --direct=1 --rw=randread --bs=4k --number_ios=40"
[[job]]
name = "writer"
run = """fio --name=w --filename=/dev/sda --direct=1 --rw=randwrite --bs=64k --number_ios={ios} \
         --ioengine=libaio --iodepth=8 --fsync=10"""
[axes]
ios = [20, 40]
"#;

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let marks = |threads| -> Vec<(String, u64, u64)> {
        let results = report(RANDOM, threads).results;
        results.iter().map(|it| (it.spec.label(), it.seed, it.fingerprint)).collect()
    };
    let one = marks(1);
    assert_eq!(one.len(), 8 * 2 * 2);
    assert_eq!(one, marks(3));
    assert!(one.iter().any(|it| it.1 == 2) && one[0].2 != one[1].2, "seeds differ");
}

#[test]
fn rows_are_points_of_the_axes_with_schedulers_within() {
    let plan = plan(&format!("{RANDOM}model = [\"null\", \"hdd-7200-sata\"]\n")).unwrap();
    assert_eq!(plan.runs(), 2 * 2 * 8 * 2);
    let row = |index: usize| {
        let row = &plan.rows[index];
        (row.axes[0].1.as_str(), row.model.name(), row.spec.name)
    };
    assert_eq!(row(0), ("20", "null", "noop"));
    assert_eq!(row(5), ("20", "null", "mq-deadline"));
    assert_eq!(row(6), ("20", "null", "kyber"));
    assert_eq!(row(7), ("20", "null", "bfq"));
    assert_eq!(row(8), ("20", "hdd-7200-sata", "noop"));
    assert_eq!(row(16), ("40", "null", "noop"));
}

#[test]
fn the_tick_of_the_kernel_is_a_setting_and_an_axis() {
    let job = "[[job]]\nname = \"a\"\nrun = \"dd if=/dev/sda of=/dev/null count=1\"\n";
    let schedulers = "schedulers = [\"cfq@2.6.28\", \"noop@4.19\"]\n";
    let rows = |text: &str| {
        let rows = plan(text).unwrap().rows;
        let tick = |row: &lab::plan::Row| (row.spec.kernel.version, row.spec.kernel.hz.get());
        let idle = rows
            .iter()
            .filter(|row| row.spec.name == "cfq")
            .map(|row| row.tunables.iter().find(|it| it.0 == "slice_idle").expect("CFQ waits").1);
        (rows.iter().map(|row| tick(row).1).collect::<Vec<_>>(), idle.collect::<Vec<i64>>())
    };
    // Each kernel has the tick of its time; what CFQ waits is whole ticks.
    assert_eq!(rows(&format!("{schedulers}{job}")), (vec![1000, 250], vec![8]));
    assert_eq!(rows(&format!("hz = 300\n{schedulers}{job}")), (vec![300, 300], vec![6]));
    let axis = format!("{schedulers}{job}[axes]\nhz = [100, 1000]\n");
    assert_eq!(rows(&axis), (vec![100, 100, 1000, 1000], vec![10, 8]));
    let refusal = |text: &str| plan(text).unwrap_err().to_string();
    let between = plan(&format!("kernel = \"6.6\"\n{job}")).unwrap();
    let note = "Kernel 6.6: rules of 6.1, not judged; the nearest judged kernel is 6.1.";
    assert!(between.notes().iter().any(|it| it == note), "{:?}", between.notes());
    let wrong = refusal(&format!("kernel = \"9\"\n{job}"));
    assert!(wrong.starts_with("x.toml:1: unknown kernel \"9\""), "{wrong}");
    let wrong = refusal(&format!("hz = 60\n{job}"));
    assert_eq!(wrong, "x.toml:1: hz: \"60\"; accepted: 100, 250, 300, 1000");
    let wrong = refusal(&format!("{job}[axes]\nhz = [\"fast\"]\n"));
    assert_eq!(wrong, "x.toml:5: hz: \"fast\"; accepted: 100, 250, 300, 1000");
    // The world linux has kernels of three ticks, and the simulator follows.
    let mut experiment = Experiment::parse("x.toml", &format!("hz = 300\n{job}")).unwrap();
    experiment.worlds = vec![lab::World::Sim, lab::World::Linux];
    let wrong = Plan::new(experiment).unwrap_err().to_string();
    assert_eq!(wrong, "x.toml:1: hz 300 in the world linux; accepted: 100, 250, 1000");
}

#[test]
fn an_expectation_holds_for_every_tick() {
    let report = report(
        "schedulers = [\"noop@4.19\"]\nseeds = 1\n[[job]]\nname = \"a\"\n\
         run = \"dd if=/dev/sda of=/dev/null count=8 iflag=direct\"\n[axes]\nhz = [100, 250]\n\
         [expect]\n\"noop@4.19\" = { \"a.read_bw\" = \"> 1 kB/s\" }\n",
        1,
    );
    assert_eq!(Summary::of(&report).expected.len(), 2);
}

#[test]
fn what_jobs_and_disk_did_adds_up() {
    for result in report(RANDOM, 2).results {
        let disk = &result.disk;
        assert!(disk.busy + disk.idle >= result.elapsed, "{disk:?}");
        assert!(disk.held <= disk.idle, "{disk:?}");
        assert_eq!(disk.held, disk.held_by_reason.values().copied().sum::<Duration>());
        let bytes = |job: &str, kind| result.job(job).unwrap().call(kind).bytes;
        assert_eq!(bytes("reader", CallKind::Read), disk.read_bytes);
        assert_eq!(bytes("writer", CallKind::Write), disk.write_bytes);
        let reader = result.job("reader").unwrap();
        assert_eq!(reader.layers.syscall.count, 40);
        assert_eq!(reader.layers.device.count, 40);
        let parts = reader.layers.queue.mean + reader.layers.device.mean;
        assert!(parts <= reader.layers.syscall.mean, "{parts} of {}", reader.layers.syscall.mean);
    }
}

#[test]
fn a_summary_has_a_line_for_each_row_and_says_what_differs() {
    let report = report(RANDOM, 2);
    let summary = Summary::of(&report);
    assert_eq!(summary.lines.len(), 16);
    assert_eq!(summary.main.as_ref().unwrap().to_string(), "reader.read_p99");
    for line in &summary.lines {
        assert_eq!(line.get(summary.main.as_ref().unwrap()).unwrap().count, 2);
        assert!((line.shares.iter().sum::<f64>() - 100.0).abs() < 1e-6);
    }
    assert!(summary.findings.iter().any(|it| it.starts_with("ios=20: ")), "{:?}", summary.findings);
}

#[test]
fn nothing_is_said_of_what_takes_no_time() {
    let text = r#"
model = "null"
host = "free"
[[job]]
name = "dd"
run = "dd if=/dev/zero of=/dev/sda bs=4k count=100 oflag=direct"
"#;
    let report = report(text, 1);
    let summary = Summary::of(&report);
    assert!(report.is_free_of_chance());
    assert!(summary.findings.is_empty(), "{:?}", summary.findings);
    assert!(report.results.iter().all(|it| it.disk.held == Duration::ZERO));
}

#[test]
fn schedulers_that_have_nothing_to_choose_from_are_alike() {
    let text = r#"
schedulers = ["all"]
seeds = 1
[[job]]
name = "db"
run = "fio --name=x --filename=/dev/sda --direct=1 --rw=randread --bs=4k --number_ios=200"
"#;
    let summary = Summary::of(&report(text, 1));
    let said = &summary.findings[0];
    assert!(said.starts_with("No scheduler is measurably better for db read p99"), "{said}");
    assert!(said.contains("little waits here"), "{said}");
}

#[test]
fn a_job_in_the_background_ends_with_the_first() {
    let text = r#"
schedulers = ["none"]
seeds = 1
[[job]]
name = "front"
run = "dd if=/dev/zero of=/dev/sda bs=4k count=10 oflag=direct"
[[job]]
name = "back"
run = "dd if=/dev/sda of=/dev/null bs=4k iflag=direct"
background = true
"#;
    let report = report(text, 1);
    let result = &report.results[0];
    assert!(result.succeeded(), "{:?}", result.exits);
    assert!(result.job("back").unwrap().call(CallKind::Read).count > 0);
    let all = text.replace("count=10 oflag=direct\"", "count=10 oflag=direct\"\nbackground = true");
    assert!(plan(&all).unwrap_err().to_string().contains("all jobs are in the background"));
}

#[test]
fn what_was_set_aside_and_then_written_is_read_from_the_disk() {
    let text = r#"
schedulers = ["none@4.19", "none@5.2", "none@6.1", "none@6.12"]
seeds = 1
fs = "ext4"
setup = [
    "fio --name=a --filename=/mnt/a --rw=write --bs=64k --size=1m --end_fsync=1",
    "drop_caches",
]
[[job]]
name = "dd"
run = "dd if=/mnt/a of=/dev/null bs=64k"
"#;
    for result in report(text, 1).results {
        assert!(result.disk.commands > 0, "{}", result.spec.label());
    }
}

#[test]
fn an_expectation_is_checked_against_the_mean() {
    let text = |bound: &str| {
        format!(
            "model = \"null\"\nschedulers = [\"none\", \"noop\"]\nseeds = 2\n\
             [[job]]\nname = \"dd\"\n\
             run = \"dd if=/dev/zero of=/dev/sda bs=4k count=10 oflag=direct\"\n\
             [expect]\n\"none\" = {{ write_p99 = \"{bound}\" }}\n"
        )
    };
    for (bound, holds) in [("< 1 s", true), ("> 1 s", false)] {
        let summary = Summary::of(&report(&text(bound), 1));
        assert_eq!(summary.expected.len(), 1);
        assert_eq!(summary.expected[0].holds, holds);
    }
}

#[test]
fn what_is_wrong_is_found_before_anything_runs() {
    let refusal = |text: &str| plan(text).unwrap_err().to_string();
    let job = "[[job]]\nname = \"a\"\nrun = \"dd if=/dev/zero of=/dev/sda count=1\"\n";
    let model = refusal(&format!("model = \"hdd\"\n{job}"));
    assert!(model.starts_with("x.toml:1: unknown model \"hdd\""), "{model}");
    assert!(model.contains("; accepted: a TOML file, or cheetah9lp, "), "{model}");
    let model = refusal(&format!("{job}[axes]\nmodel = [\"null\", \"./none.toml\"]\n"));
    assert!(model.starts_with("x.toml:5: ./none.toml: cannot be read: "), "{model}");
    let host = refusal(&format!("host = \"vm-2018\"\n{job}"));
    assert!(host.starts_with("x.toml:1: unknown host \"vm-2018\"; nearest: "), "{host}");
    let point = refusal(&format!("mount_point = \"/data\"\n{job}"));
    assert!(point.starts_with("x.toml:1: mount_point \"/data\" of a disk without"), "{point}");
    let varied = refusal(&format!("{job}[axes]\nmemory = [\"1 GiB\"]\n"));
    assert!(varied.starts_with("x.toml:5: memory cannot be varied; accepted: "), "{varied}");
    let nothing = refusal(&job.replace("dd if=/dev/zero of=/dev/sda count=1", ""));
    assert!(nothing.starts_with("x.toml:3: there is no command; accepted: "), "{nothing}");
    let twice =
        refusal(&format!("schedulers = [\"kyber:read_lat_nsec=1,read_lat_nsec=2\"]\n{job}"));
    assert!(twice.contains("read_lat_nsec stands twice"), "{twice}");
    let group = refusal(&format!("{job}cgroup = \"a/{{b}}\"\n[axes]\nb = [\"..\"]\n"));
    assert!(group.starts_with("x.toml:3: control group \"a/..\"; accepted: names"), "{group}");
    let axis = refusal(&format!("{job}[axes]\nspeed = [1]\n"));
    assert!(axis.starts_with("x.toml:5: \"speed\" changes nothing"), "{axis}");
    let used = refusal(&job.replace("count=1", "count={n}"));
    assert!(used.starts_with("x.toml:3: no axis \"n\""), "{used}");
    let setting = refusal(&format!("{job}[settings]\nnr_requets = 1\n"));
    assert!(setting.contains("x.toml:5: ") && setting.contains("nr_requests"), "{setting}");
    let limit = refusal(&format!("{job}[settings]\nnr_requests = 64\n"));
    assert!(limit.contains("nr_requests=64 of none on hdd-7200-sata is out of range"), "{limit}");
    let copy = job.replace("dd if=/dev/zero of=/dev/sda count=1", "sync; cp /mnt/a /mnt/b");
    let shared = refusal(&format!("fs = \"xfs\"\n{copy}"));
    assert!(shared.starts_with("x.toml:4: cp shares the blocks of the source on xfs"), "{shared}");
    assert!(plan(&format!("fs = \"ext4\"\n{copy}")).is_ok());
}

#[test]
fn a_job_that_reads_and_writes_nothing_has_no_share_of_what_others_do() {
    let text = r#"
        schedulers = ["none"]
        seeds = 1
        [[job]]
        name = "idle"
        run = "sleep 1"
        [[job]]
        name = "reader"
        run = "dd if=/dev/sda of=/dev/null bs=4k count=100 iflag=direct"
    "#;
    let report = report(text, 1);
    let summary = Summary::of(&report);
    let jobs: Vec<String> = summary.jobs.iter().map(|job| job.name.clone()).collect();
    let value = |name: &str| Figure::parse(name, &jobs, "x:1").unwrap().value(&report.results[0]);
    assert_eq!(value("idle.bw"), None);
    assert!(value("reader.bw").is_some() && value("idle.held").is_some());
    assert_eq!(summary.lines[0].shares, [0.0, 100.0]);
}

#[test]
fn what_takes_longer_than_a_bound_is_a_figure_to_judge_by() {
    let text = r#"
        schedulers = ["none", "mq-deadline"]
        seeds = 2
        metric = "reader.read_over_200ms"
        [[job]]
        name = "reader"
        run = "dd if=/dev/sda of=/dev/null bs=4k count=20 iflag=direct"
        [expect]
        "none" = { "reader.read_over_1us" = "> 99 %", "reader.syscall_over_200ms" = "< 1 %" }
    "#;
    let report = report(text, 1);
    let summary = Summary::of(&report);
    assert_eq!(summary.main.as_ref().unwrap().to_string(), "reader.read_over_200ms");
    assert!(summary.lines.iter().all(|it| it.get(summary.main.as_ref().unwrap()).is_some()));
    assert!(summary.expected.iter().all(|it| it.holds) && summary.expected.len() == 2);
    // None of both is late: they are alike, and no seed is missing to say so.
    let said = summary.findings.join(" ");
    assert!(
        said.contains("No scheduler is measurably better for reader read over 200ms"),
        "{said}"
    );
    assert!(!said.contains("Too few seeds"), "{said}");
}

#[test]
fn a_disk_moves_what_it_reads_and_writes() {
    for result in report(RANDOM, 2).results {
        let value = |name: &str| Figure::parse(name, &[], "x:1").unwrap().value(&result).unwrap();
        let seconds = result.elapsed.as_nanos() as f64 / 1e9;
        let bytes = result.disk.read_bytes.0 + result.disk.write_bytes.0;
        assert!((value("disk_bw") * seconds - bytes as f64).abs() < 1.0);
        assert!((value("disk_read_bw") + value("disk_write_bw") - value("disk_bw")).abs() < 1.0);
        assert!(value("disk_write_bw") > 0.0);
    }
}

#[test]
fn rows_whose_values_read_alike_in_a_path_have_directories_of_their_own() {
    let job = "[[job]]\nname = \"a\"\nrun = \"fio --name=x --size=4k --description={n}\"\n";
    let mut experiment = Experiment::parse("x.toml", job).unwrap();
    experiment.axes = vec![lab::Axis::parse("n=/dev/a/b,/dev/a_b,/dev/a:b,_dev_a_b-2").unwrap()];
    let rows = Plan::new(experiment).unwrap().rows;
    let names: std::collections::BTreeSet<&str> =
        rows.iter().map(|row| row.directory.as_str()).collect();
    assert_eq!((names.len(), rows.len()), (8, 8), "{names:?}");
}

#[test]
fn more_runs_than_there_is_memory_for_are_refused() {
    let job = "[[job]]\nname = \"a\"\nrun = \"dd of=/dev/sda count=1{a}{b}{c}\"\n";
    let mut experiment = Experiment::parse("x.toml", job).unwrap();
    experiment.seeds = (1..=3_000_000).collect();
    let refused = Plan::new(experiment.clone()).unwrap_err().to_string();
    assert!(refused.starts_with("x.toml: ") && refused.contains("; accepted: at most 100000"));
    let values: Vec<String> = (0..100).map(|it| it.to_string()).collect();
    let axes = ["a", "b", "c"].map(|name| format!("{name}={}", values.join(",")));
    experiment.seeds = vec![1];
    experiment.axes = axes.iter().map(|axis| lab::Axis::parse(axis).unwrap()).collect();
    assert!(Plan::new(experiment).unwrap_err().to_string().contains("runs are too many"));
}

#[test]
fn processes_contend_for_the_lock_of_a_scheduler_as_published() {
    let experiment = include_str!("../../../experiments/nvme-scaling.toml");
    let rows = experiment.split("# The published rows").next().unwrap();
    let text =
        rows.replace("50ms", "5ms").replace("[\"1\", \"2\", \"3\", \"4\", \"5\", \"6\", ", "[");
    let report = report(&format!("seeds = 1\n{text}"), 2);
    let iops = |row: usize| report.results[row].jobs[0].call(CallKind::Read).iops;
    assert_eq!(report.plan.rows[3].axes[0].1, "10");
    // Published on ten cores: 776,000 and 470,000. The host's costs are those of one process.
    assert!((660_000.0..890_000.0).contains(&iops(2)), "none: {}", iops(2));
    assert!((400_000.0..540_000.0).contains(&iops(3)), "mq-deadline: {}", iops(3));
}

#[test]
fn a_mistake_of_the_simulator_is_told_with_what_ran() {
    let text = "model = \"nvme-plp\"\nschedulers = [\"none@6.12\"]\nseeds = 1\n[[job]]\n\
                name = \"a\"\nrun = \"dd if=/dev/sda of=/dev/null count=1\"\n";
    let mut plan = plan(text).unwrap();
    let broken = machine::Native::new("broken", |task| async move {
        assert!(task.job().is_none(), "it is a job");
        0
    });
    plan.rows[0].jobs = vec![lab::plan::PlannedJob::new("broken", broken)];
    let error = run(plan, None, 2, &|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("none@6.12, seed 1: the simulator broke off"), "{error}");
    assert!(!error.is_bad_input());
}
