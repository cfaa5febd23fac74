//! ext4: who submits what when a program wants its data durable.

mod common;

use base::{Bytes, Duration, Instant};
use block::{Flags, Op};
use common::{Steady, Submitted, checked, command, native, setup, submitted, submitted_in};
use machine::calls::Creation;
use machine::task::OpenFlags;
use machine::{Exit, Host, Job, Mount, Setup};

const APPEND: &str = "dd if=/dev/zero of=/mnt/f bs=512 count=20 oflag=dsync";

fn append(kernel: &str, scheduler: &str, mount: Mount) -> Vec<Submitted> {
    submitted(kernel, scheduler, vec![command(APPEND)], mount)
}

#[test]
fn each_durable_write_is_one_data_write_by_dd_and_one_commit_by_the_journal() {
    for (kernel, scheduler) in [("4.19", "noop"), ("6.12", "none"), ("6.18", "mq-deadline")] {
        let bios = append(kernel, scheduler, Mount::default());
        let is_by = |name| move |it: &&Submitted| it.task == name && it.op == Op::Write;
        let by = |name: &'static str| bios.iter().filter(is_by(name));
        assert_eq!(by(APPEND).count(), 20, "{kernel}");
        assert!(by(APPEND).all(|it| it.sectors == 8 && it.flags == Flags::SYNC), "{kernel}");
        let durable = Flags::PREFLUSH.with(Flags::FUA);
        let seals = by("jbd2/vda-8").filter(|it| it.flags.intersects(durable)).count();
        assert_eq!(seals, 20, "{kernel}");
        // The superblock; six blocks for a new file, three for a new block, one for a new size; a
        // descriptor and a commit block each.
        assert_eq!(by("jbd2/vda-8").count(), 1 + (6 + 2) + 2 * (3 + 2) + 17 * (1 + 2), "{kernel}");
    }
}

#[test]
fn only_recent_kernels_mark_the_journal_as_metadata() {
    let meta = |kernel, scheduler| {
        let bios = append(kernel, scheduler, Mount::default());
        let mut journal = bios.into_iter().filter(|it| it.task.starts_with("jbd2"));
        journal.all(|it| it.flags.intersects(Flags::META) && it.flags.intersects(Flags::IDLE))
    };
    assert!(meta("6.12", "none"));
    assert!(!meta("4.19", "noop"));
}

#[test]
fn without_barriers_nothing_is_flushed() {
    let mount = Mount { barrier: false, ..Mount::default() };
    let bios = append("6.12", "none", mount);
    assert!(bios.iter().all(|it| !it.flags.intersects(Flags::PREFLUSH.with(Flags::FUA))));
}

#[test]
fn data_that_nobody_syncs_are_written_by_the_flusher_and_committed_after_seconds() {
    let waits = native("waits", |task| async move {
        task.sleep(Duration::from_secs(20)).await;
        0
    });
    let jobs = vec![command("dd if=/dev/zero of=/mnt/f bs=64k count=4"), waits];
    let bios = submitted("6.12", "none", jobs, Mount::default());
    let writes: Vec<_> = bios.iter().filter(|it| it.op == Op::Write).collect();
    assert!(writes.iter().all(|it| !it.task.starts_with("dd")));
    let is_data = |it: &&&Submitted| it.task.starts_with("kworker") && it.flags == Flags::NONE;
    let data = writes.iter().filter(is_data);
    assert_eq!(data.map(|it| it.sectors).sum::<u32>(), 4 * 128);
    assert!(writes.iter().any(|it| it.task == "jbd2/vda-8"));
}

#[test]
fn a_run_ends_when_what_the_flusher_has_begun_is_done() {
    // More than may be dirty, and nobody waits for it.
    let job = command("dd if=/dev/zero of=/mnt/f bs=64k count=1500");
    let host = Host::named("guest").expect("a host");
    let (mount, memory) = (Some(Mount::default()), Bytes(192 << 20));
    let setup = Setup { jobs: vec![job], mount, memory, host, ..setup("6.12", "none") };
    let (outcome, _) = checked(setup);
    assert!(outcome.jobs.iter().all(|job| job.exit == Exit::Status(0)));
}

/// When `sync` has ended that began so long after a writer with much to write. The disk takes a
/// tenth of a second for all of it, two commands at a time.
fn sync_besides_the_flusher(begins: Duration) -> Duration {
    let job = |line: &str, start| Job { start, ..command(line) };
    let writer = "dd if=/dev/zero of=/mnt/f bs=1M count=80";
    let start = Instant::ZERO + begins;
    let jobs = vec![job(writer, Instant::ZERO), job("sync", start)];
    let device = Box::new(Steady::new(Duration::from_millis(3), 1));
    let mount = Some(Mount::default());
    let mut setup = Setup { jobs, mount, device, ..setup("4.19", "noop") };
    setup.settings =
        [("nr_requests", 4), ("dirty_background_bytes", 4096), ("dirty_bytes", 1 << 30)]
            .map(|(name, value)| (name.to_string(), value))
            .to_vec();
    let (outcome, _) = checked(setup);
    outcome.jobs[1].ended.since(start)
}

#[test]
fn a_sync_that_comes_while_the_flusher_works_does_not_wait_for_its_next_round() {
    for begins in [1, 20, 50, 80, 100, 120].map(Duration::from_millis) {
        let took = sync_besides_the_flusher(begins);
        assert!(took < Duration::from_secs(1), "began after {begins}, took {took}");
    }
}

/// How many of the flusher's bios of data carry SYNC and how many do not, when `sync` comes after a
/// file of 80 MiB. A visit takes 52 MiB.
fn flags_of_data(kernel: &str, much: i64) -> (usize, usize) {
    let writer = "dd if=/dev/zero of=/mnt/f bs=1M count=80";
    let start = Instant::ZERO + Duration::from_millis(25);
    let jobs = vec![command(writer), Job { start, ..command("sync") }];
    let host = Host::named("guest").expect("a host").with_kernel(kernel);
    let device = Box::new(Steady::new(Duration::from_millis(3), 1));
    let mount = Some(Mount::default());
    let mut setup = Setup { jobs, mount, device, host, ..setup(kernel, "none") };
    setup.settings = [("dirty_background_bytes", much), ("dirty_bytes", 1 << 30)]
        .map(|(name, value)| (name.to_string(), value))
        .to_vec();
    let mut bios = submitted_in(setup);
    bios.retain(|it| it.op == Op::Write && it.task.starts_with("kworker/u"));
    bios.retain(|it| !it.flags.intersects(Flags::META));
    let waited_for = bios.iter().filter(|it| it.flags.intersects(Flags::SYNC)).count();
    (waited_for, bios.len() - waited_for)
}

#[test]
fn a_flusher_writes_what_sync_waits_for_first_unless_it_wakes_while_sync_sleeps() {
    // Asleep: on 6.12 it comes to visits first, which do not carry SYNC.
    assert!(matches!(flags_of_data("6.12", 1 << 30), (0, 1..)));
    assert!(matches!(flags_of_data("6.1", 1 << 30), (1.., 0)));
    // At work, it ends with the visit.
    for kernel in ["6.1", "6.12"] {
        let (waited_for, others) = flags_of_data(kernel, 4096);
        assert!(waited_for > 0 && others > 0, "{kernel}: {waited_for}, {others}");
    }
}

#[test]
fn of_no_bytes_there_is_nothing_to_forget() {
    // As when a job makes a file that is longer already.
    let forgets = native("forgets", |task| async move {
        let making = Creation { creates: true, truncates: true, writes: true };
        let file = task.open_file("/mnt/f", OpenFlags::default(), making).await.unwrap();
        task.pwrite(&file, 0, 1 << 20).await.unwrap();
        let (there, wanted) = (1 << 20, 4096);
        task.forget(&file, there..wanted).await;
        0
    });
    let setup =
        Setup { jobs: vec![forgets], mount: Some(Mount::default()), ..setup("4.10", "noop") };
    let (outcome, _) = checked(setup);
    assert_eq!(outcome.jobs[0].exit, Exit::Status(0));
}

/// Data of a file in the order in which tasks submit them, when much is dirty.
fn data_of(job: Job, device: Steady, settings: [(&str, i64); 2]) -> Vec<Submitted> {
    let host = Host::named("guest").expect("a host").with_kernel("6.12");
    let (mount, device) = (Some(Mount::default()), Box::new(device));
    let mut setup = Setup { jobs: vec![job], mount, device, host, ..setup("6.12", "none") };
    setup.settings = settings.map(|(name, value)| (name.to_string(), value)).to_vec();
    let mut bios = submitted_in(setup);
    bios.retain(|it| it.op == Op::Write && !it.flags.intersects(Flags::META));
    bios
}

#[test]
fn the_flusher_goes_around_a_file_that_is_written_at_random() {
    let writer = native("writer", |task| async move {
        let opened = task.open_file("/mnt/f", OpenFlags::default(), Creation::WRITE).await;
        let file = opened.expect("a new file");
        let mut rng = task.rng("places");
        for _ in 0..12_000 {
            let page = rng.below(128 << 8);
            task.pwrite(&file, page * 4096, 4096).await.expect("there is room");
        }
        0
    });
    let device = Steady::new(Duration::from_micros(300), 1);
    let much = [("dirty_background_bytes", 4 << 20), ("dirty_bytes", 16 << 20)];
    let mut bios = data_of(writer, device, much);
    bios.retain(|it| it.task.starts_with("kworker/u"));
    let is_wrap = |pair: &[Submitted]| pair[1].sector + (32 << 11) < pair[0].sector;
    let (wraps, all) = (bios.windows(2).filter(|pair| is_wrap(pair)).count(), bios.len());
    // Once around, it comes to what was written meanwhile, which is some thousand pages.
    assert!(all > 5000 && wraps < all / 1500, "{wraps} times around for {all} bios");
}

#[test]
fn the_flusher_does_not_overtake_fsync_in_a_file() {
    let line = "dd if=/dev/zero of=/mnt/f bs=1M count=60 conv=fsync";
    let device = Steady::new(Duration::from_millis(1), 2);
    let much = [("dirty_background_bytes", 56 << 20), ("dirty_bytes", 1 << 30)];
    let bios = data_of(command(line), device, much);
    let by = |name: &str| bios.iter().filter(|it| it.task.starts_with(name)).count();
    assert!(by("kworker/u") > 1 && by("dd") > 1, "both write");
    assert!(bios.is_sorted_by_key(|it| it.sector), "one after the other");
}
