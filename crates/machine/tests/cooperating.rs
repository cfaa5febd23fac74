//! Programs whose processes or threads read one stream together: dump and sysbench, as the block
//! layer and whoever reads the messages see them.

mod common;

use block::{Action, Event, IoContextId, Op};
use common::{checked, command, setup};
use machine::{Exit, Host, Observer, Outcome, TaskInfo};
use std::collections::{BTreeMap, BTreeSet};

/// Keeps every bio that is queued, and who there is.
#[derive(Default)]
struct Seen {
    bios: Vec<Event>,
    tasks: Vec<(String, IoContextId)>,
}

impl Observer for Seen {
    fn meet(&mut self, who: &TaskInfo) {
        self.tasks.push((who.name.clone(), who.io_context));
    }

    fn see(&mut self, event: &Event) {
        if event.action == Action::Queue {
            self.bios.push(event.clone());
        }
    }
}

fn run(kernel: &str, scheduler: &str, line: &str) -> (Seen, Outcome) {
    let mut setup = setup(kernel, scheduler);
    setup.jobs.push(command(line));
    let mut seen = Seen::default();
    let outcome = machine::run(setup, &mut seen).expect("a setup that runs");
    (seen, outcome)
}

/// The sectors that were asked for, and how often each page was.
fn pages(seen: &Seen) -> BTreeMap<u64, u32> {
    let mut pages = BTreeMap::new();
    for bio in &seen.bios {
        let first = bio.sector.0 / 8;
        for page in first..first + u64::from(bio.sectors.0 / 8) {
            *pages.entry(page).or_default() += 1;
        }
    }
    pages
}

fn io_contexts(seen: &Seen, name: &str) -> usize {
    let of_name = seen.tasks.iter().filter(|(task, _)| task == name);
    of_name.map(|(_, io_context)| *io_context).collect::<BTreeSet<_>>().len()
}

#[test]
fn dump_reads_every_block_once_with_a_master_and_three_slaves() {
    let line = "dump -0uf /dev/null /dev/sda --population=3x100K,20x9K";
    let (seen, outcome) = run("2.6.28", "cfq", line);
    assert_eq!(outcome.jobs[0].exit, Exit::Status(0), "{:?}", outcome.jobs[0].messages);
    assert_eq!(seen.tasks.iter().filter(|(name, _)| name == "dump").count(), 4);
    assert_eq!(io_contexts(&seen, "dump"), 4);
    let pages = pages(&seen);
    // 25 blocks and one that maps them, three blocks each; behind 512 blocks of inodes.
    assert!((512..512 + 3 * 26 + 20 * 3).all(|page| pages.get(&page) == Some(&1)));
    assert!(pages.contains_key(&0), "the first block of inodes");
    let said = &outcome.jobs[0].messages;
    // 100 KiB and a header, 9 KiB and a header.
    assert!(said[0].contains(&format!("{} blocks on 1 volume", 3 * 101 + 20 * 10)), "{said:?}");
}

#[test]
fn processes_of_dump_share_an_io_context_with_clone_io() {
    let line = "dump -0uf /dev/null /dev/sda --population=2x1M --clone-io";
    let (seen, _) = run("2.6.28", "cfq", line);
    assert_eq!(io_contexts(&seen, "dump"), 1);
}

#[test]
fn several_processes_of_dump_read_one_file() {
    let (seen, _) = run("2.6.28", "noop", "dump -0uf /dev/null /dev/sda --population=1x4M");
    let readers: BTreeSet<u32> = seen.bios.iter().map(|bio| bio.context.0).collect();
    assert!(readers.len() >= 3, "{readers:?}");
}

#[test]
fn what_dump_cannot_read_ends_it() {
    let (_, outcome) = run("2.6.28", "noop", "dump -0uf /dev/null /dev/sda --population=3x1G");
    assert_eq!(outcome.jobs[0].exit, Exit::Status(3));
    assert!(outcome.jobs[0].messages[0].contains("does not fit"));
}

#[test]
fn threads_of_sysbench_pass_once_over_all_files_in_windows_that_end_with_them() {
    let line = "sysbench --test=fileio --file-test-mode=seqrd --num-threads=3 --file-num=2 \
                --file-total-size=1M run";
    let (seen, outcome) = run("2.6.28", "cfq", line);
    let pages = pages(&seen);
    assert_eq!(pages.len(), 256);
    assert!(pages.values().all(|times| *times == 1));
    // A window is a bio, and none goes from one file into the other.
    assert_eq!((seen.bios[0].sector.0, seen.bios[0].sectors.0), (0, 64));
    let crosses =
        |bio: &Event| bio.sector.0 < 1024 && bio.sector.0 + u64::from(bio.sectors.0) > 1024;
    assert!(!seen.bios.iter().any(crosses));
    assert_eq!(io_contexts(&seen, "sysbench"), 3);
    let said = &outcome.jobs[0].messages;
    assert_eq!(said[0], "Operations performed:  64 Read, 0 Write, 0 Other = 64 Total");
}

#[test]
fn random_modes_of_sysbench_do_so_many_requests_and_sync_as_asked() {
    let line = "sysbench --test=fileio --file-test-mode=rndrw --max-requests=250 --file-num=4 \
                --file-total-size=16M --file-extra-flags=direct run";
    let (seen, outcome) = run("2.6.28", "deadline", line);
    let is_write = |bio: &&Event| bio.op == Op::Write && bio.sectors.0 > 0;
    let writes = seen.bios.iter().filter(is_write).count();
    // Three reads for two writes.
    assert_eq!((seen.bios.iter().filter(|bio| bio.op == Op::Read).count(), writes), (150, 100));
    // Four files after 100 and after 200 requests, and at the end.
    let said = &outcome.jobs[0].messages;
    assert_eq!(said[0], "Operations performed:  150 Read, 100 Write, 12 Other = 262 Total");
}

#[test]
fn sysbench_of_1_0_ends_with_its_time_and_says_so_in_its_way() {
    let line = "sysbench fileio --file-test-mode=rndwr --threads=2 --time=1 --file-num=2 \
                --file-total-size=8M --file-fsync-freq=0 --file-extra-flags=direct run";
    let (_, outcome) = run("6.18", "none", line);
    let ended = outcome.jobs[0].ended;
    assert!((1_000..1_010).contains(&(ended.as_nanos() / 1_000_000)), "{ended}");
    assert!(outcome.jobs[0].messages.iter().any(|line| line.starts_with("    written, MiB/s:")));
}

#[test]
fn every_mode_of_sysbench_keeps_the_rules_of_the_block_layer() {
    for mode in ["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] {
        for scheduler in ["anticipatory", "cfq"] {
            let line = format!(
                "sysbench --test=fileio --file-test-mode={mode} --num-threads=4 --file-num=4 \
                 --file-total-size=4M --max-requests=300 --file-fsync-all=on run"
            );
            let mut setup = setup("2.6.32", scheduler);
            setup.host = Host::named("host-2009").expect("it is built in");
            setup.jobs.push(command(&line));
            let (outcome, counts) = checked(setup);
            assert_eq!(outcome.jobs[0].exit, Exit::Status(0), "{mode}");
            assert!(counts.bios > 0);
        }
    }
}
