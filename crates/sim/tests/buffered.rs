//! Reads through the page cache, as the block layer sees them.

mod common;

use base::Duration;
use block::{Action, Event, Flags, Op};
use common::{checked, command, native, setup};
use sim::task::OpenFlags;
use sim::{Observer, Outcome, Who};

/// Keeps every bio that is queued.
#[derive(Default)]
struct Queued(Vec<Event>);

impl Observer for Queued {
    fn meet(&mut self, _who: &Who) {}

    fn see(&mut self, event: &Event) {
        if event.action == Action::Queue {
            self.0.push(event.clone());
        }
    }
}

fn queued(kernel: &str, scheduler: &str, lines: &[&str]) -> (Vec<Event>, Outcome) {
    let mut setup = setup(kernel, scheduler);
    setup.jobs.extend(lines.iter().map(|line| command(line)));
    let mut queued = Queued::default();
    let outcome = sim::run(setup, &mut queued).expect("a setup that runs");
    (queued.0, outcome)
}

/// The windows in pages.
fn windows(kernel: &str, scheduler: &str, line: &str) -> Vec<(u64, u32)> {
    let (events, _) = queued(kernel, scheduler, &[line]);
    assert!(events.iter().all(|it| it.op == Op::Read && it.flags == Flags::RAHEAD));
    events.iter().map(|it| (it.sector.0 / 8, it.sectors.0 / 8)).collect()
}

#[test]
fn dd_reads_the_disk_in_the_windows_that_were_recorded() {
    let line = "dd if=/dev/sda of=/dev/null bs=4k count=70";
    let expected = [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32), (92, 32)];
    assert_eq!(windows("4.19", "mq-deadline", line), expected);
    assert_eq!(windows("6.12", "mq-deadline", line), expected);
    let expected =
        [(0, 4), (4, 8), (12, 4), (16, 8), (24, 8), (32, 16), (48, 16), (64, 32), (96, 32)];
    assert_eq!(windows("6.18", "mq-deadline", line), expected);
}

#[test]
fn dd_reads_from_the_middle_of_the_disk_in_the_windows_that_were_recorded() {
    let line = "dd if=/dev/sda of=/dev/null bs=4k count=40 skip=1000";
    let expected = [(1000, 1), (1001, 4), (1005, 8), (1013, 16), (1029, 32), (1061, 32)];
    assert_eq!(windows("4.19", "none", line), expected);
    assert_eq!(windows("6.12", "none", line), expected);
    let expected = [(1000, 1), (1001, 4), (1005, 7), (1012, 12), (1024, 24), (1048, 8)];
    assert_eq!(windows("6.18", "none", line)[..6], expected);
}

#[test]
fn windows_end_where_the_disk_does() {
    let line = "dd if=/dev/sda of=/dev/null bs=64k skip=16382";
    let read = windows("6.18", "none", line);
    assert_eq!(read.iter().map(|it| it.1).sum::<u32>(), 32);
    assert_eq!(read.last().map(|it| it.0 + u64::from(it.1)), Some((1 << 30) / 4096));
}

#[test]
fn in_2_6_28_every_page_is_an_ordinary_read() {
    let line = "dd if=/dev/sda of=/dev/null bs=16k count=2";
    let (events, _) = queued("2.6.28", "noop", &[line]);
    assert!(events.iter().all(|it| it.sectors.0 == 8 && it.flags == Flags::NONE));
    // Windows 0+8 and, at the mark on page 4, 8+16.
    assert_eq!(events.len(), 8 + 16);
}

#[test]
fn the_next_window_is_under_way_before_the_reader_waits_for_this_one() {
    let (events, _) = queued("4.19", "none", &["dd if=/dev/sda of=/dev/null bs=4k count=70"]);
    let times: Vec<u64> = events.iter().map(|it| it.at.as_nanos() / 1000).collect();
    // A window takes 100 us, copying nothing: 12+16 is asked for when 4+8 is, on its first page.
    assert_eq!(times, [0, 100, 100, 200, 200, 300]);
}

#[test]
fn what_was_read_is_not_read_again_until_it_is_written_over() {
    assert_eq!(reread(false), 1);
    assert_eq!(reread(true), 3);
}

/// Reads a page twice, and perhaps writes it in between; the number of bios.
fn reread(writes: bool) -> u64 {
    let mut setup = setup("6.18", "none");
    setup.jobs.push(native("reader", move |task| async move {
        let disk = task.open("/dev/sda", OpenFlags::default()).expect("the disk");
        let direct = task.open("/dev/sda", OpenFlags::direct()).expect("the disk");
        task.pread(&disk, 1 << 20, 4096).await.expect("a page");
        if writes {
            task.pwrite(&direct, 1 << 20, 4096).await.expect("a page");
        }
        task.pread(&disk, 1 << 20, 4096).await.expect("a page");
        0
    }));
    checked(setup).1.bios
}

#[test]
fn two_readers_of_the_same_pages_wait_for_the_same_read() {
    let line = "dd if=/dev/sda of=/dev/null bs=4k count=1";
    let (events, outcome) = queued("6.18", "none", &[line, line]);
    assert_eq!(events.len(), 1);
    assert_eq!(outcome.elapsed, Duration::from_micros(100));
}

#[test]
fn a_reader_who_is_stopped_leaves_nothing_behind() {
    let mut setup = setup("6.18", "mq-deadline");
    let mut job = command("dd if=/dev/sda of=/dev/null bs=4k");
    job.duration = Some(Duration::from_micros(1050));
    setup.jobs.push(job);
    checked(setup);
}
