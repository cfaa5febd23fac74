//! XFS: who submits what when a program wants its data durable.

mod common;

use block::{Action, Event, Flags, Op};
use common::{command, native, setup};
use sim::filesystem::Format;
use sim::{Job, Mount, Observer, Who, run};
use std::collections::BTreeMap;

/// Bios: by which task, what, sectors, flags.
#[derive(Default)]
struct Bios {
    names: BTreeMap<u32, String>,
    bios: Vec<(String, Op, u32, Flags)>,
}

impl Observer for Bios {
    fn meet(&mut self, who: &Who) {
        self.names.insert(who.context.0, who.name.clone());
    }

    fn see(&mut self, event: &Event) {
        if event.action == Action::Queue {
            let name = self.names[&event.context.0].clone();
            self.bios.push((name, event.op, event.sectors.0, event.flags));
        }
    }
}

fn writes(kernel: &str, scheduler: &str, jobs: Vec<Job>) -> Vec<(String, Op, u32, Flags)> {
    let mount = Mount { format: Format::Xfs, ..Mount::default() };
    let mut bios = Bios::default();
    run(sim::Setup { jobs, mount: Some(mount), ..setup(kernel, scheduler) }, &mut bios).unwrap();
    bios.bios.into_iter().filter(|it| it.1 == Op::Write).collect()
}

const APPEND: &str = "dd if=/dev/zero of=/mnt/f bs=512 count=20 oflag=dsync";

#[test]
fn each_durable_write_is_one_data_write_and_one_log_write_both_by_dd() {
    for (kernel, scheduler) in [("4.19", "noop"), ("6.12", "none"), ("6.18", "mq-deadline")] {
        let writes = writes(kernel, scheduler, vec![command(APPEND)]);
        assert!(writes.iter().all(|it| it.0 == APPEND), "{kernel}");
        let is_log = |flags: Flags| flags.intersects(Flags::META);
        let log = || writes.iter().filter(|it| is_log(it.3));
        assert_eq!((writes.len(), log().count()), (40, 20), "{kernel}");
        assert!(log().all(|it| {
            it.3.intersects(Flags::PREFLUSH)
                && it.3.intersects(Flags::FUA)
                && it.3.intersects(Flags::IDLE) == (kernel != "4.19")
        }));
        // A new file; two more blocks; a size each time. On 4.19 a block needs no conversion.
        let sectors: u32 = log().map(|it| it.2).sum();
        assert_eq!(sectors, 5 + 2 * 3 + 17 * 2, "{kernel}");
    }
}

#[test]
fn what_nobody_syncs_is_written_by_the_flusher_logged_by_a_worker_and_put_in_its_place() {
    let waits = native("waits", |task| async move {
        task.sleep(base::Duration::from_secs(40)).await;
        0
    });
    let jobs = vec![command("dd if=/dev/zero of=/mnt/f bs=64k count=4"), waits];
    let writes = writes("6.12", "none", jobs);
    let order: Vec<(&str, u32)> = writes.iter().map(|it| (it.0.as_str(), it.2)).collect();
    let (flusher, worker, placer) = ("kworker/u4:1", "kworker/0:2", "xfsaild/vda");
    assert_eq!(order[..2], [(flusher, 512), (worker, 5)]);
    // Free space and inodes; four trees; the inodes themselves.
    let sectors: u32 = order[2..].iter().map(|it| it.1).sum();
    assert!(order[2..].iter().all(|it| it.0 == placer), "{order:?}");
    assert_eq!(sectors, 2 + 4 * 8 + 32);
    assert!(writes[0].3.intersects(Flags::BACKGROUND));
}
