//! XFS: who submits what when a program wants its data durable.

mod common;

use block::{Flags, Op};
use common::{Submitted, command, native, submitted};
use machine::Format;
use machine::{Job, Mount};

const APPEND: &str = "dd if=/dev/zero of=/mnt/f bs=512 count=20 oflag=dsync";

fn writes(kernel: &str, scheduler: &str, jobs: Vec<Job>) -> Vec<Submitted> {
    let mount = Mount { format: Format::Xfs, ..Mount::default() };
    let bios = submitted(kernel, scheduler, jobs, mount);
    bios.into_iter().filter(|it| it.op == Op::Write).collect()
}

#[test]
fn each_durable_write_is_one_data_write_and_one_log_write_both_by_dd() {
    for (kernel, scheduler) in [("4.19", "noop"), ("6.12", "none"), ("6.18", "mq-deadline")] {
        let writes = writes(kernel, scheduler, vec![command(APPEND)]);
        assert!(writes.iter().all(|it| it.task == APPEND), "{kernel}");
        let is_log = |flags: Flags| flags.intersects(Flags::META);
        let log = || writes.iter().filter(|it| is_log(it.flags));
        assert_eq!((writes.len(), log().count()), (40, 20), "{kernel}");
        assert!(log().all(|it| {
            it.flags.intersects(Flags::PREFLUSH)
                && it.flags.intersects(Flags::FUA)
                && it.flags.intersects(Flags::IDLE) == (kernel != "4.19")
        }));
        // A new file; two more blocks; a size each time. On 4.19 a block needs no conversion.
        let sectors: u32 = log().map(|it| it.sectors).sum();
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
    let order: Vec<(&str, u32)> = writes.iter().map(|it| (it.task.as_str(), it.sectors)).collect();
    let (flusher, worker, placer) = ("kworker/u4:1", "kworker/0:2", "xfsaild/vda");
    assert_eq!(order[..2], [(flusher, 512), (worker, 5)]);
    // Free space and inodes; four trees; the inodes themselves.
    let sectors: u32 = order[2..].iter().map(|it| it.1).sum();
    assert!(order[2..].iter().all(|it| it.0 == placer), "{order:?}");
    assert_eq!(sectors, 2 + 4 * 8 + 32);
    assert!(writes[0].flags.intersects(Flags::BACKGROUND));
}
