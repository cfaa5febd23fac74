//! The tasks of XFS: the worker that forces the log twice a minute, the one that takes away what
//! has no name any more, and the one that writes metadata to their places, `xfsaild/vda` (rules
//! xfs-ail-1 to xfs-ail-3); and the one that fills log buffers.

use crate::filesystem::FileIo;
use crate::task::Task;
use base::Instant;
use block::{Flags, Op};

/// The worker that takes away what has no name any more, a tick after it has lost it
/// (observed on 6.12).
pub(crate) async fn take_away(task: Task) -> i32 {
    loop {
        task.notified().await;
        let at = {
            let world = task.world();
            world.start_of_tick(world.tick() + 1)
        };
        task.sleep_until(at).await;
        FileIo::of(&task).on_xfs().take_unlinked_away().await;
    }
}

/// The worker that puts checkpoints into log buffers when somebody waits for that. Whoever else may
/// run goes first (observed on 6.12: two dd with O_SYNC).
pub(crate) async fn push(task: Task) -> i32 {
    loop {
        task.notified().await;
        let waiting = task.xfs().log.push_all();
        let mut world = task.world();
        waiting.into_iter().for_each(|it| world.wake_from(it));
    }
}

/// The worker that forces the log.
pub(crate) async fn force(task: Task) -> i32 {
    let mut since = None;
    loop {
        // It comes for the first time when it is due.
        let (tick, at) = task.world().next_force(since);
        since = Some(tick);
        task.notified_until(at).await;
        let covers = task.xfs().cover();
        // Observed on 6.12: what is changed goes to its place later; if nothing is logged, then
        // what is about to be. The log is on its way before anything goes to its place, but
        // nobody waits for it (traced on 6.1 and 7.3).
        task.xfs().place_all();
        let files = FileIo::of(&task).on_xfs();
        match covers {
            true => files.force_all().await,
            false => files.force_all_and(&|| wake_placer(&task)).await,
        }
        wake_placer(&task);
    }
}

/// The task that writes metadata to their places. While something is in the log it looks again and
/// again whether it is time for that (rule xfs-ail-4).
pub(crate) async fn place(task: Task) -> i32 {
    loop {
        let rests = task.xfs().placer_sleeps();
        match rests {
            true => task.notified().await,
            false => {
                let at = next_look(&task);
                task.notified_until(at).await;
            }
        }
        let found = task.xfs().take_to_place();
        let Some((items, places)) = found.filter(|(_, places)| !places.is_empty()) else {
            continue;
        };
        task.move_metadata(Op::Write, &places, Flags::META).await;
        task.xfs().placed(items);
    }
}

/// When that task looks again.
// Observed on 6.12.117: timer_start of process_timeout by xfsaild, 13 ticks at HZ 250.
fn next_look(task: &Task) -> Instant {
    const PAUSE_MS: u64 = 50;
    let mut world = task.world();
    let wheel = world.storage().cache().wheel();
    world.start_of_tick(wheel.after(world.tick(), wheel.hz().jiffies_from_millis(PAUSE_MS).0))
}

/// Wakes that task, if there is a reason.
fn wake_placer(task: &Task) {
    let effects = task.storage().wake_placer();
    task.apply(effects);
}
