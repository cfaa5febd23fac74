//! ext4: who submits what when a program wants its data durable.

mod common;

use block::{Action, Event, Flags, Op};
use common::{command, native, setup};
use sim::{Job, Mount, Observer, Who, run};
use std::collections::BTreeMap;

/// Bios by task: what, sector, sectors, flags.
#[derive(Default)]
struct Bios {
    names: BTreeMap<u32, String>,
    bios: Vec<(String, Op, u64, u32, Flags)>,
}

impl Observer for Bios {
    fn meet(&mut self, who: &Who) {
        self.names.insert(who.context.0, who.name.clone());
    }

    fn see(&mut self, event: &Event) {
        if event.action == Action::Queue {
            let name = self.names[&event.context.0].clone();
            self.bios.push((name, event.op, event.sector.0, event.sectors.0, event.flags));
        }
    }
}

fn bios_of(kernel: &str, scheduler: &str, jobs: Vec<Job>, mount: Mount) -> Bios {
    let mut bios = Bios::default();
    run(sim::Setup { jobs, mount: Some(mount), ..setup(kernel, scheduler) }, &mut bios).unwrap();
    bios
}

fn append(kernel: &str, scheduler: &str, mount: Mount) -> Vec<(String, Op, u64, u32, Flags)> {
    bios_of(kernel, scheduler, vec![command(APPEND)], mount).bios
}

const APPEND: &str = "dd if=/dev/zero of=/mnt/f bs=512 count=20 oflag=dsync";

#[test]
fn each_durable_write_is_one_data_write_by_dd_and_one_commit_by_the_journal() {
    for (kernel, scheduler) in [("4.19", "noop"), ("6.12", "none"), ("6.18", "mq-deadline")] {
        let bios = append(kernel, scheduler, Mount::default());
        let by =
            |name: &'static str| bios.iter().filter(move |it| it.0 == name && it.1 == Op::Write);
        assert_eq!(by(APPEND).count(), 20, "{kernel}");
        assert!(by(APPEND).all(|it| it.3 == 8 && it.4 == Flags::SYNC), "{kernel}");
        let durable = Flags::PREFLUSH.with(Flags::FUA);
        let seals = by("jbd2/vda-8").filter(|it| it.4.intersects(durable)).count();
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
        let mut journal = bios.into_iter().filter(|it| it.0.starts_with("jbd2"));
        journal.all(|it| it.4.intersects(Flags::META) && it.4.intersects(Flags::IDLE))
    };
    assert!(meta("6.12", "none"));
    assert!(!meta("4.19", "noop"));
}

#[test]
fn without_barriers_nothing_is_flushed() {
    let mount = Mount { barrier: false, ..Mount::default() };
    let bios = append("6.12", "none", mount);
    assert!(bios.iter().all(|it| !it.4.intersects(Flags::PREFLUSH.with(Flags::FUA))));
}

#[test]
fn data_that_nobody_syncs_are_written_by_the_flusher_and_committed_after_seconds() {
    let waits = native("waits", |task| async move {
        task.sleep(base::Duration::from_secs(20)).await;
        0
    });
    let jobs = vec![command("dd if=/dev/zero of=/mnt/f bs=64k count=4"), waits];
    let bios = bios_of("6.12", "none", jobs, Mount::default());
    let writes: Vec<_> = bios.bios.iter().filter(|it| it.1 == Op::Write).collect();
    assert!(writes.iter().all(|it| !it.0.starts_with("dd")));
    let data = writes.iter().filter(|it| it.0.starts_with("kworker") && it.4 == Flags::NONE);
    assert_eq!(data.map(|it| it.3).sum::<u32>(), 4 * 128);
    assert!(writes.iter().any(|it| it.0 == "jbd2/vda-8"));
}
