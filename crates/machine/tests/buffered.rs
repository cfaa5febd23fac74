//! Reads and writes through the page cache, as the block layer sees them.

mod common;

use base::{Duration, Instant};
use block::{Action, Event, Flags, Op};
use common::{checked, command, native, setup};
use machine::calls::Creation;
use machine::task::{IoContextOf, OpenFlags, Task};
use machine::{Exit, Host, Mount, Observer, Outcome, Setup, TaskInfo};
use std::ops::Range;

/// Keeps every bio that is queued.
#[derive(Default)]
struct Queued(Vec<Event>);

impl Observer for Queued {
    fn meet(&mut self, _who: &TaskInfo) {}

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
    let outcome = machine::run(setup, &mut queued).expect("a setup that runs");
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

/// Rule direct-io-9, in the order in which 6.12 sent commands to vm-disk: the direct writer comes
/// to its second block when the other one has pages of it under way, and so writes them through
/// the page cache; for the third it first writes the page that is dirty there.
#[test]
fn a_direct_write_goes_through_the_page_cache_where_pages_do_not_go() {
    let direct = "dd if=/dev/zero of=/dev/sda bs=16k count=3 oflag=direct";
    let cached = "dd if=/dev/zero of=/dev/sda bs=3k count=14 conv=notrunc";
    let (events, _) = queued("6.12", "none", &[direct, cached]);
    let pages: Vec<(Op, u64)> = events.iter().map(|it| (it.op, it.sector.0 / 8)).collect();
    let reads = |pages: Range<u64>| pages.map(|page| (Op::Read, page)).collect::<Vec<_>>();
    let writes = |pages: Range<u64>| pages.map(|page| (Op::Write, page)).collect::<Vec<_>>();
    assert_eq!((pages[0], events[0].sectors.0), ((Op::Write, 0), 32));
    let behind = [reads(0..9), writes(4..8), reads(9..10), writes(8..9), reads(10..11)];
    assert_eq!(pages[1..], [behind.concat(), writes(8..12), writes(0..4)].concat());
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

/// What is queued for writing: flags, first page (or none for a flush) and number of bios, for
/// bios that follow each other.
fn written(events: &[Event]) -> Vec<(Flags, Option<u64>, u64)> {
    let mut runs: Vec<(Flags, Option<u64>, u64)> = Vec::new();
    for event in events.iter().filter(|it| it.op == Op::Write) {
        let page = (event.sectors.0 > 0).then_some(event.sector.0 / 8);
        match runs.last_mut() {
            Some((flags, Some(first), bios))
                if *flags == event.flags && page == Some(*first + *bios) =>
            {
                *bios += 1;
            }
            _ => runs.push((event.flags, page, 1)),
        }
    }
    runs
}

#[test]
fn fsync_writes_each_page_as_a_bio_and_then_flushes() {
    let (events, _) =
        queued("6.12", "none", &["dd if=/dev/zero of=/dev/sda bs=4k count=50 conv=fsync"]);
    let flush = Flags::SYNC.with(Flags::PREFLUSH);
    assert_eq!(written(&events), [(Flags::SYNC, Some(0), 50), (flush, None, 1)]);
}

#[test]
fn a_part_of_a_page_is_written_after_the_page_was_read() {
    let line = "dd if=/dev/zero of=/dev/sda bs=512 count=2 oflag=dsync";
    let (events, _) = queued("6.12", "none", &[line]);
    let reads: Vec<_> = events.iter().filter(|it| it.op == Op::Read).collect();
    assert_eq!((reads.len(), reads[0].sectors.0, reads[0].flags), (1, 8, Flags::NONE));
    let flush = (Flags::SYNC.with(Flags::PREFLUSH), None, 1);
    let write = (Flags::SYNC, Some(0), 1);
    assert_eq!(written(&events), [write, flush, write, flush]);
}

#[test]
fn the_last_one_who_closes_the_disk_writes_what_is_dirty_and_does_not_flush() {
    let (events, _) = queued("6.12", "none", &["dd if=/dev/zero of=/dev/sda bs=64k count=2"]);
    assert_eq!(written(&events), [(Flags::SYNC, Some(0), 32)]);
}

/// When the flusher wrote what a task wrote that sleeps then, and what it queued.
fn flushed(writes: &'static [(u64, u64)]) -> Vec<(u64, Flags, u64)> {
    let mut setup = setup("6.12", "none");
    setup.jobs.push(native("writer", move |task| async move {
        let disk = task.open("/dev/sda", OpenFlags::default()).expect("the disk");
        for &(second, offset) in writes {
            task.sleep_until(base::Instant::ZERO + Duration::from_secs(second)).await;
            task.pwrite(&disk, offset, 4096).await.expect("a page");
        }
        task.sleep(Duration::from_secs(60)).await;
        0
    }));
    let mut queued = Queued::default();
    machine::run(setup, &mut queued).expect("a setup that runs");
    let seconds = |it: &Event| it.at.as_nanos() / 1_000_000_000;
    queued.0.iter().map(|it| (seconds(it), it.flags, it.sector.0 / 8)).collect()
}

#[test]
fn what_has_been_dirty_for_half_a_minute_is_written_in_the_background() {
    // Observed: what is dirtied first of all is written after five seconds.
    let expected = [(5, Flags::BACKGROUND, 0), (50, Flags::BACKGROUND, 1)];
    assert_eq!(flushed(&[(0, 0), (20, 4096)]), expected);
}

#[test]
fn who_writes_faster_than_the_disk_is_made_to_pause() {
    let mut setup = setup("6.12", "mq-deadline");
    setup.memory = base::Bytes(128 << 20);
    setup.jobs.push(command("dd if=/dev/zero of=/dev/sda bs=64k count=3200"));
    let mut queued = Queued::default();
    let outcome = machine::run(setup, &mut queued).expect("a setup that runs");
    let by_flusher = queued.0.iter().filter(|it| it.flags == Flags::BACKGROUND).count();
    assert_eq!(queued.0.len(), 51_200);
    assert!(by_flusher > 30_000, "{by_flusher}");
    // 400 commands of 512 KiB at 100 us each, one for each of 32 tags at once, are no hurry; a
    // writer pauses a few ticks at a time nevertheless.
    assert!(outcome.elapsed > Duration::from_millis(12), "{:?}", outcome.elapsed);
}

#[test]
fn a_file_in_the_memory_of_a_program_is_read_around_what_it_touches() {
    let fio = |rest: &str| {
        let line = format!("fio --name=x --filename=/dev/sda --ioengine=mmap --bs=4k {rest}");
        windows("6.12", "none", &line)
    };
    // As on 6.12 in the world linux, without its first window's mark being touched twice.
    let in_order = fio("--rw=read --size=512k --fadvise_hint=0");
    assert_eq!(in_order, [(0, 32), (32, 32), (64, 32), (96, 32), (128, 32)]);
    assert_eq!(fio("--rw=read --size=512k")[..2], [(0, 64), (64, 64)]);
}

#[test]
fn pages_written_through_memory_are_read_first_and_written_when_they_are_synced() {
    let line = "fio --name=x --filename=/dev/sda --ioengine=mmap --bs=4k --size=64k --rw=write \
                --fsync=16 --loops=2";
    let (events, _) = queued("6.12", "none", &[line]);
    let is_read = |it: &&Event| it.op == Op::Read;
    assert_eq!(events.iter().filter(is_read).count(), 1);
    let pages = events.iter().filter(|it| it.op == Op::Write && it.sectors.0 > 0);
    let pages: Vec<u64> = pages.map(|it| it.sector.0 / 8).collect();
    // What was written is clean, and so written again when it was touched again.
    assert_eq!(pages, (0..16).chain(0..16).collect::<Vec<u64>>());
}

#[test]
fn threads_of_sysbench_that_map_their_files_sync_them_as_a_whole() {
    let line = "sysbench fileio --file-num=2 --file-total-size=2M --file-io-mode=mmap \
                --file-test-mode=rndwr --events=40 --file-fsync-freq=10 run";
    let (events, _) = queued("6.12", "none", &[line]);
    let flushes = events.iter().filter(|it| it.sectors.0 == 0).count();
    assert!((4..=8).contains(&flushes), "{flushes}");
    assert!(events.iter().any(|it| it.op == Op::Write && it.flags.intersects(Flags::SYNC)));
}

#[test]
fn who_drops_what_others_are_about_to_write_does_not_take_it_from_them() {
    for (kernel, scheduler) in [("2.6.32", "cfq"), ("6.12", "none")] {
        let mut setup = setup(kernel, scheduler);
        setup.settings = vec![("read_ahead_kb".to_string(), 0)];
        setup.host = Host::named("host-2020").unwrap();
        let line = "fio --name=x --filename=/dev/sda --rw=rw --bs=1m --size=1m --numjobs=4 \
                    --loops=2";
        setup.jobs.push(command(line));
        let (outcome, _) = checked(setup);
        assert!(outcome.jobs.iter().all(|job| job.exit == Exit::Status(0)), "{scheduler}@{kernel}");
    }
}

#[test]
fn who_waits_for_a_page_of_a_hole_goes_on_when_another_has_it() {
    let mut setup = setup("6.12", "none");
    setup.host = Host::named("icount").unwrap();
    setup.host.machine.cores = 2;
    setup.mount = Some(Mount::default());
    setup.jobs.push(native("holes", |task| async move {
        let making = Creation { creates: true, truncates: true, writes: true };
        let file = task.open_file("/mnt/f", OpenFlags::default(), making).await.unwrap();
        task.truncate(&file, 1 << 20).await.unwrap();
        let read = |task: Task| async move {
            let file = task.open_file("/mnt/f", OpenFlags::default(), Creation::READ).await;
            i32::from(task.pread(&file.unwrap(), 0, 1 << 20).await != Ok(1 << 20))
        };
        let readers = [(), ()].map(|()| task.spawn("reader", IoContextOf::Itself, read));
        let statuses = [task.join(readers[0]).await, task.join(readers[1]).await];
        statuses.iter().sum()
    }));
    let (outcome, _) = checked(setup);
    assert!(outcome.jobs.iter().all(|job| job.exit == Exit::Status(0)));
}

#[test]
fn calls_that_move_much_in_no_time_are_found_to_be_endless_as_soon_as_those_that_move_little() {
    let mut setup = setup("6.12", "none");
    setup.jobs.push(native("reads", |task| async move {
        let disk = task.open("/dev/sda", OpenFlags::default()).unwrap();
        while task.pread(&disk, 0, 1 << 20).await == Ok(1 << 20) {}
        1
    }));
    let began = std::time::Instant::now();
    let error = machine::run(setup, &mut machine::Nobody).unwrap_err().to_string();
    assert!(error.starts_with("job \"reads\" makes system calls"), "{error}");
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn a_dd_that_does_not_write_from_the_start_waits_for_who_writes_the_disk() {
    // The first one reads what it writes a part of, and writes that part, again and again.
    let first_read_of_the_second = |kernel: &str| {
        let lines = [
            "dd if=/dev/zero of=/dev/sda bs=3k count=200 seek=1000",
            "dd if=/dev/zero of=/dev/sda bs=512 count=1 seek=800000",
        ];
        let host = Host::named("guest").expect("a host").with_kernel(kernel);
        let mut setup = Setup { host, ..setup(kernel, "none") };
        setup.jobs.extend(lines.iter().map(|line| command(line)));
        let mut queued = Queued::default();
        machine::run(setup, &mut queued).expect("a setup that runs");
        let found = queued.0.iter().find(|it| it.sector.0 == 800_000).expect("it reads");
        found.at.since(Instant::ZERO)
    };
    // In vain it waits for a tick and more, and then nobody may be faster.
    let ticks = Duration::from_millis(4)..Duration::from_millis(13);
    for kernel in ["6.12", "7.3"] {
        let read = first_read_of_the_second(kernel);
        assert!(ticks.contains(&read), "{kernel}: {read}");
    }
    assert!(first_read_of_the_second("6.1") < Duration::from_millis(1));
}
