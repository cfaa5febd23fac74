//! The thread of fio that keeps its figures: it wakes now and then, and what it does delays others.
//!
//! It has two things to do at regular times: one four times a second, one twice, from shortly after
//! the processes were let go. It counts in whole milliseconds from its own start.
//!
//! When, and what it costs, is one of the habits of fio ([`HelperHabits`]).

use base::{Duration, Instant};
use block::ContextId;

use guest::HelperHabits;
use machine::task::{IoContextOf, Task};

/// Starts it; the answer is whom to tell when all is done.
pub(super) async fn start(task: &Task, habits: HelperHabits) -> ContextId {
    let main = task.id();
    let helper = task.spawn("fio helper", IoContextOf::Itself, |task| async move {
        task.look_for_files(1).await;
        task.notify(main);
        run(&task, &habits).await;
        0
    });
    task.notified().await;
    helper
}

async fn run(task: &Task, habits: &HelperHabits) {
    let started = task.clock();
    let mut next = started + Duration::from_millis(habits.first);
    while !task.notified_until(next).await {
        task.look_at_clock(habits.looks).await;
        task.look_for_files(1).await;
        next = due(started, task.clock(), habits);
    }
}

/// When there is something to do again.
fn due(started: Instant, now: Instant, habits: &HelperHabits) -> Instant {
    let passed = now.since(started).as_nanos() / 1_000_000;
    let after = |(first, period): (u64, u64)| {
        let times = (passed + 1).saturating_sub(first).div_ceil(period).max(1);
        first + times * period
    };
    now + Duration::from_millis(after(habits.often).min(after(habits.seldom)) - passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_wakes_when_either_of_two_things_is_due() {
        let started = Instant::from_nanos(65_910_528);
        let habits = guest::Profile::uml().habits.fio.helper;
        let mut now = started + Duration::from_millis(habits.first);
        let mut steps = Vec::new();
        for _ in 0..9 {
            now += Duration::from_nanos(2_280);
            let next = due(started, now, &habits);
            steps.push(next.since(now).as_nanos() / 1_000_000);
            now = next;
        }
        assert_eq!(steps, [249, 102, 148, 250, 102, 148, 250, 102, 148]);
    }
}
