//! What the schedulers make of whole loads: readers and writers that react to what is done, on
//! disks that take their time.
//!
//! Their rules are judged by recordings of real kernels, by scripts and by naive twins. This test
//! holds what they do together. The story of each load on each kernel (who leaves when, what is
//! withheld, all messages and timers) is one line of a text beside it, with a fingerprint at the
//! end.
//! `UPDATE_EXPECT=1` writes the lines anew; a line that changes wants a reason.

mod drawn;
#[path = "../harness/mod.rs"]
mod harness;
mod kinds;
mod processes;
mod tasks;
mod writeback;

use block::{Kernel, Version};
use expect_test::expect_file;
use harness::load::Load;
use sched::{Backport, Entry};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A load on a kernel, with changes of later ones.
struct Place<'l> {
    load: &'l Load,
    kernel: &'static Kernel,
    given: &'static [&'static str],
}

/// Changes of later kernels that can be given together; the last are in none of the kernels.
const GIVEN: [&[&str]; 3] = [
    &[],
    &["inject-by-service-time", "idle-raised-20ms", "no-bursts-while-busy", "seeky-not-real-time"],
    &[
        "inject-by-service-time-5.3",
        "no-merge-on-flash",
        "no-idling-for-lightest",
        "seeky-not-real-time-5.2-rc",
    ],
];

impl Place<'_> {
    /// Every load on every kernel that has a scheduler, and with what it can be given there.
    fn all<'l>(entry: &'static Entry, loads: &'l [Load]) -> Vec<Place<'l>> {
        let mut places = Vec::new();
        for load in loads {
            for kernel in sched::kernels(entry.name) {
                for given in GIVEN {
                    let can_be = |it: &Backport| it.on.contains(&kernel.version);
                    let has = backports(entry, given).filter(|it| can_be(it)).count();
                    if has == given.len() {
                        places.push(Place { load, kernel, given });
                    }
                }
            }
        }
        places
    }

    fn line(&self, entry: &'static Entry) -> String {
        let Place { load, kernel, given } = self;
        let more = match given.first() {
            Some(first) => format!("+{first}"),
            None => String::new(),
        };
        let (version, given): (_, Vec<_>) =
            (kernel.version.to_string() + &more, backports(entry, given).collect());
        format!("{:20} {version:30} {}", load.name, load.run(entry, kernel, &given))
    }
}

fn backports(
    entry: &'static Entry,
    names: &'static [&'static str],
) -> impl Iterator<Item = &'static Backport> {
    entry.backports().iter().filter(|it| names.contains(&it.name))
}

/// Every load on every kernel that has a scheduler does as its line says. Who differs ends it all,
/// unless the lines are written anew.
fn check(file: &str, name: &'static str, loads: &[Load]) {
    let entry = sched::LIST.iter().find(|entry| entry.name == name).expect("there is one");
    let places = Place::all(entry, loads);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/loads/{file}.txt"));
    let is_written = std::env::var_os("UPDATE_EXPECT").is_some();
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let written: Vec<&str> = text.lines().collect();
    let (next, differs) = (AtomicUsize::new(0), AtomicBool::new(false));
    let lines: Vec<OnceLock<String>> = places.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        while !differs.load(Ordering::Relaxed)
            && let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(place) = places.get(at)
        {
            let line = place.line(entry);
            if !is_written && written.get(at) != Some(&line.as_str()) {
                differs.store(true, Ordering::Relaxed);
                panic!("\nexpected {}\nbut is   {line}", written.get(at).unwrap_or(&"nothing"));
            }
            lines[at].set(line).expect("each is done once");
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let lines: Vec<&str> = lines.iter().map(|line| line.get().expect("done").as_str()).collect();
    expect_file![path].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn bfq_does_as_written() {
    check("bfq", "bfq", &processes::of_processes());
}

#[test]
fn kyber_does_as_written() {
    check("kyber", "kyber", &kinds::of_kinds());
}

#[test]
fn kyber_does_as_its_naive_twin() {
    let kernels: Vec<_> = sched::kernels("kyber").collect();
    let loads = kinds::of_kinds().into_iter().filter(|load| load.table.hctxs == 1);
    loads.zip(kernels.into_iter().cycle()).for_each(|(load, on)| load.run_beside_twin("kyber", on));
}

#[test]
fn bfq_does_as_its_naive_twin() {
    let kernels = sched::kernels("bfq").filter(|kernel| kernel.version >= Version::V6_1);
    let kernels: Vec<_> = kernels.collect();
    let loads = (1..=drawn::MIXTURES).map(drawn::apart);
    loads.zip(kernels.into_iter().cycle()).for_each(|(load, on)| load.run_beside_twin("bfq", on));
}

#[test]
fn writes_are_throttled_as_written() {
    for name in ["deadline", "cfq", "mq-deadline", "bfq"] {
        check(&format!("writeback_{name}"), name, &writeback::of_writeback());
    }
}
