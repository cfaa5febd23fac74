//! Setup lines: what is done before the jobs leaves a state and nothing else.

mod common;

use common::{KERNEL, assert_same};
use lab::metrics::CallKind;
use lab::plan::Plan;
use lab::{Error, Experiment, matrix};
use testing::needs::{BUSYBOX, MKFS_EXT4, MKFS_XFS};

fn plan(text: &str) -> Result<Plan, Error> {
    Plan::new(Experiment::parse("test", text)?)
}

fn run(text: &str) -> Result<matrix::Report, Error> {
    matrix::run(plan(text)?, None, 1, &|_| ())
}

const READER: &str = r#"
    model = "vm-ssd-m4"
    schedulers = ["none"]
    seeds = 1
    fs = "ext4"
    [[job]]
    name = "reader"
    run = "dd if=/mnt/a of=/dev/null bs=64k"
"#;

fn prepared(lines: &str) -> String {
    format!("setup = {lines}\n{READER}")
}

const MADE: &str = r#""dd if=/dev/zero of=/mnt/a bs=64k count=32 conv=fsync""#;

fn a_file_that_setup_made_is_there_and_cached_unless_caches_are_dropped() {
    let read = |lines: &str| {
        let report = run(&prepared(lines)).unwrap();
        let result = &report.results[0];
        let job = result.job("reader").unwrap();
        assert_eq!(job.call(CallKind::Read).bytes.0, 2 << 20);
        (result.disk.reads, result.disk.writes, result.jobs.len())
    };
    assert_eq!(read(&format!("[{MADE}]")), (0, 0, 1));
    assert_eq!(read(&format!(r#"[{MADE}, "sync", "drop_caches"]"#)).1, 0);
    assert!(read(&format!(r#"[{MADE}, "sync", "drop_caches"]"#)).0 > 0);
}

fn nothing_of_what_setup_did_counts_and_time_begins_with_the_jobs() {
    let lines = format!(r#"[{MADE}, "sync", "sleep 100", "drop_caches"]"#);
    let report = run(&prepared(&lines)).unwrap();
    let result = &report.results[0];
    assert_eq!(result.disk.flushes + result.disk.writes, 0);
    assert!(result.elapsed.as_nanos() < 1_000_000_000, "{}", result.elapsed);
    assert_eq!(result.elapsed, result.disk.busy + result.disk.idle);
    assert_eq!(result.exits.len(), 1);
}

fn dd_does_not_count_what_was_before_it() {
    let report = run(&prepared(&format!(r#"[{MADE}, "sleep 100", "drop_caches"]"#))).unwrap();
    let dd = report.results[0].job("reader").unwrap();
    assert!(dd.runtime <= report.results[0].elapsed, "{}", dd.runtime);
}

fn what_does_nothing_on_a_fresh_machine_is_left_out() {
    let plan = plan(&prepared(r#"["drop_caches", "sync"]"#)).unwrap();
    assert!(plan.rows[0].preparation.is_empty());
}

fn a_line_of_setup_may_use_axes() {
    let text = prepared(r#"["dd if=/dev/zero of=/mnt/a bs={size} count=1"]"#);
    let plan = plan(&format!("{text}[axes]\nsize = [\"4k\", \"8k\"]")).unwrap();
    let line = plan.rows[1].preparation[0].line.as_deref();
    assert_eq!(line, Some("dd if=/dev/zero of=/mnt/a bs=8k count=1"));
    let last = prepared(&format!(r#"[{MADE}, "{{last}}"]"#));
    let report = run(&format!("{last}[axes]\nlast = [\"sync\", \"drop_caches\"]")).unwrap();
    assert_eq!(report.results[0].disk.reads, 0);
}

fn a_line_that_cannot_be_done_is_one_message() {
    let refusal = |lines: &str| run(&prepared(lines)).unwrap_err().to_string();
    assert!(refusal(r#"["mkfs /dev/sda"]"#).starts_with("test:1: mkfs: this program is not"));
    assert!(refusal(r#"["ionice -c3 sync && sync"]"#).contains("a prefix in a sequence"));
    assert!(refusal(r#"["nice sync", "drop_caches"]"#).contains("a prefix in setup (\"nice sync"));
    let failed = refusal(r#"["sync", "cp /mnt/none /mnt/b"]"#);
    assert!(failed.contains("setup \"cp /mnt/none /mnt/b\": cp: cannot "), "{failed}");
}

fn after_the_same_setup_jobs_do_the_same_as_on_the_kernel() {
    for (fs, line) in [
        ("ext4", "dd if=/dev/zero of=/mnt/a bs=64k count=160 conv=fsync && cp /mnt/a /mnt/b"),
        ("xfs", "dd if=/dev/zero of=/mnt/a bs=64k count=160; dd if=/mnt/a of=/mnt/b bs=64k"),
    ] {
        for rest in [r#""sync", "sleep 2", "drop_caches""#, r#""sync""#] {
            assert_same(&format!(
                r#"
                model = "vm-ssd-m4"
                fs = "{fs}"
                schedulers = ["mq-deadline"]
                setup = ["{line}", {rest}]
                [[job]]
                name = "dd"
                run = "dd if=/dev/zero of=/mnt/a bs=4k count=60 oflag=dsync conv=notrunc"
                "#
            ));
        }
    }
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [] => a_file_that_setup_made_is_there_and_cached_unless_caches_are_dropped,
            nothing_of_what_setup_did_counts_and_time_begins_with_the_jobs,
            dd_does_not_count_what_was_before_it,
            what_does_nothing_on_a_fresh_machine_is_left_out,
            a_line_of_setup_may_use_axes,
            a_line_that_cannot_be_done_is_one_message;
        [KERNEL, BUSYBOX, MKFS_EXT4, MKFS_XFS] =>
            after_the_same_setup_jobs_do_the_same_as_on_the_kernel,
    ])
}
