//! The example job files at work: on a model of a hard disk, and on a disk that takes 100 us for
//! everything, for the table of the chapter.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Instant;
use block::{Action, Attach, Event, Kernel, Syscall};
use device::{Device, Model};

use machine::{Checker, Exit, Host, Mount, Observer, Outcome, Setup, Several};
use programs::fio::{Fio, Job};

use super::{FIO_EXAMPLES, examples, parse_example, parse_on_ext4};

/// The tests of this file.
pub(super) fn tests() -> Vec<testing::Test> {
    testing::tests![
        [FIO_EXAMPLES] => every_example_that_can_be_run_runs_on_a_hard_disk,
            every_example_with_files_runs_on_ext4_or_says_why_not,
    ]
}

/// Counts the ends of system calls by kind.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, u64>);

impl Observer for Counts {
    fn see(&mut self, event: &Event) {
        let Action::SyscallExit { call, .. } = event.action else { return };
        let kind = match call {
            Syscall::Read | Syscall::AsyncRead => "reads",
            Syscall::Write | Syscall::AsyncWrite => "writes",
            Syscall::Discard => "trims",
            Syscall::Sync => "flushes",
        };
        *self.0.entry(kind).or_default() += 1;
    }
}

/// Runs jobs for so many milliseconds at most, under a checker of conservation; on ext4 if there is
/// a directory where it is mounted.
fn run(
    jobs: &[Job],
    point: Option<&str>,
    device: Box<dyn Device>,
    host: &str,
    millis: u64,
) -> (Outcome, Counts) {
    let kernel = Kernel::named("6.18").expect("a kernel");
    let scheduler = sched::build("mq-deadline", kernel).expect("a scheduler of it");
    let mount = point.map(|it| Mount { point: it.to_owned(), ..Mount::default() });
    let job = machine::Job::new(
        "fio",
        Arc::new(Fio::new(jobs.to_vec(), guest::Profile::uml().habits.fio)),
    );
    let host = Host::named(host).expect("a host");
    let setup = Setup::new(kernel, Attach::of(scheduler), device, host, vec![job]);
    let until = Some(Instant::from_nanos(millis * 1_000_000));
    let setup = Setup { mount, until, events: true, ..setup };
    let mut checker = Checker::new(setup.device.facts(), setup.attach.shape);
    let mut counts = Counts::default();
    let mut observers = Several(vec![&mut checker, &mut counts]);
    let outcome = machine::run(setup, &mut observers).expect("a setup that runs");
    if outcome.jobs[0].exit != Exit::CutOff {
        checker.finish();
    }
    (outcome, counts)
}

/// What jobs do in their first 100 ms on a disk that takes 100 us for everything, or in the first
/// two seconds on ext4 there, as most of them make their files before.
pub(super) fn at_first(jobs: &[Job], point: Option<&str>) -> String {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/null.toml");
    let text = std::fs::read_to_string(directory).expect("the model of a disk that takes no time");
    let text = text.replace("value = 0, unit = \"ns\"", "value = 100000, unit = \"ns\"");
    let text = text.replace("discard         = { value = false", "discard = { value = true");
    let disk = Model::from_text("steady", &text).expect("a model");
    let (host, millis) = if point.is_some() { ("host-2009", 2_000) } else { ("free", 100) };
    let (outcome, counts) = run(jobs, point, disk.build(1), host, millis);
    let counts: Vec<String> = counts.0.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let counts = if counts.is_empty() { "no calls".to_owned() } else { counts.join(", ") };
    let job = &outcome.jobs[0];
    match job.exit {
        Exit::Status(0) => format!("{counts}; over after {}", outcome.elapsed),
        Exit::CutOff => counts,
        _ => format!("fails: {}", job.messages.join("; ")),
    }
}

fn every_example_that_can_be_run_runs_on_a_hard_disk() {
    let examples = examples();
    let mut ran = 0;
    for (name, text) in &examples {
        let Ok(jobs) = parse_example(name, text) else { continue };
        let disk = Model::builtin("hdd-7200-sata").expect("a built-in model").build(1);
        let (outcome, _) = run(&jobs, None, disk, "host-2009", 1_000);
        let job = &outcome.jobs[0];
        if !matches!(job.exit, Exit::Status(status) if status != 0) {
            ran += 1;
            continue;
        }
        // Two want a file that exists, or a larger disk; others trim.
        let expected =
            ["does not exist", "there is no room for a block", "Operation not supported"];
        let is_expected = expected.iter().any(|known| job.messages[0].contains(known));
        assert!(is_expected, "{name}: {:?}", job.messages);
    }
    assert!(ran >= 39, "only {ran} of {}", examples.len());
}

fn every_example_with_files_runs_on_ext4_or_says_why_not() {
    let examples = examples();
    let mut ran = 0;
    for (name, text) in &examples {
        let (point, jobs) = parse_on_ext4(name, text);
        let Ok(jobs) = jobs else { continue };
        // Those that change names and room, which are no calls, are run for the table.
        let changes_names = jobs.iter().any(|job| job.engine.needs_files());
        if !jobs.iter().any(Job::has_files) || changes_names {
            continue;
        }
        let disk = Model::builtin("nvme-980pro").expect("a built-in model").build(1);
        let (outcome, counts) = run(&jobs, Some(&point), disk, "host-2009", 2_000);
        let job = &outcome.jobs[0];
        if !matches!(job.exit, Exit::Status(status) if status != 0) {
            assert!(!counts.0.is_empty(), "{name}: no calls");
            ran += 1;
            continue;
        }
        // As with fio: two want a file that exists, one trims a file, and one reads what was
        // filled.
        let expected = ["does not exist", "Inappropriate ioctl", "No such file"];
        let is_expected = expected.iter().any(|known| job.messages[0].contains(known));
        assert!(is_expected, "{name}: {:?}", job.messages);
    }
    assert!(ran >= 18, "only {ran} of {}", examples.len());
}
