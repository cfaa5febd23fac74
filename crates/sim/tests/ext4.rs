//! ext4: who submits what when a program wants its data durable.

mod common;

use base::Bytes;
use block::{Flags, Op};
use common::{Submitted, checked, command, native, setup, submitted};
use sim::{Exit, Host, Mount, Setup};

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
        task.sleep(base::Duration::from_secs(20)).await;
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
