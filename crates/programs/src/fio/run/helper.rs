//! The thread of fio that keeps its figures: it wakes now and then, and what it does delays others.
//!
//! It has two things to do at regular times: one four times a second, and one twice, from when
//! nobody waits any more for a later stage. It counts in whole milliseconds from its own start.
//!
//! When, and what it costs, is one of the habits of fio ([`HelperHabits`]).

use std::cell::Cell;
use std::rc::Rc;

use base::{Duration, Instant};
use block::ContextId;

use guest::HelperHabits;
use machine::task::{IoContextOf, Task};

/// The thread, as the main process knows it.
pub(super) struct Helper {
    id: ContextId,
    /// Since when nobody waits for a later stage.
    samples_since: Rc<Cell<Option<Instant>>>,
}

impl Helper {
    /// Starts it for so many processes.
    pub async fn start(task: &Task, habits: HelperHabits, processes: u32) -> Helper {
        let main = task.id();
        let samples_since = Rc::new(Cell::new(None));
        let since = samples_since.clone();
        let id = task.spawn("fio helper", IoContextOf::Itself, move |task| async move {
            task.look_for_files(1).await;
            task.notify(main);
            run(&task, &habits, processes, &since).await;
            0
        });
        task.notified().await;
        Helper { id, samples_since }
    }

    /// The last processes are let go.
    pub fn all_have_begun(&self, now: Instant) {
        if self.samples_since.get().is_none() {
            self.samples_since.set(Some(now));
        }
    }

    /// It is no longer needed.
    pub async fn end(&self, task: &Task) {
        task.notify(self.id);
        task.join(self.id).await;
    }
}

async fn run(task: &Task, habits: &HelperHabits, processes: u32, since: &Cell<Option<Instant>>) {
    let started = task.clock();
    let mut next = started + Duration::from_millis(habits.first);
    while !task.notified_until_sharp(next).await {
        task.look_at_clock(habits.looks + habits.looks_per_process * processes).await;
        task.look_for_files(1).await;
        next = due(started, task.clock(), since.get(), habits);
    }
}

/// When there is something to do again.
fn due(started: Instant, now: Instant, since: Option<Instant>, habits: &HelperHabits) -> Instant {
    let whole = |at: Instant| at.since(started).as_nanos() / 1_000_000;
    let passed = whole(now);
    let after = |(first, period): (u64, u64)| {
        let times = (passed + 1).saturating_sub(first).div_ceil(period).max(1);
        first + times * period
    };
    let often = after(habits.often);
    // A millisecond that has begun counts.
    let seldom = since.map(|since| after((whole(since) + 1, habits.seldom)));
    now + Duration::from_millis(seldom.map_or(often, |it| it.min(often)) - passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many milliseconds pass between its looks, when the last processes begin after so long.
    fn steps(begin: u64, count: usize) -> Vec<u64> {
        let started = Instant::from_nanos(65_910_528);
        let since = started + Duration::from_micros(begin * 1_000 + 60);
        let habits = guest::Profile::uml().habits.fio.helper;
        let mut now = started + Duration::from_millis(habits.first);
        let mut steps = Vec::new();
        for _ in 0..count {
            now += Duration::from_nanos(2_280);
            let since = Some(since).filter(|since| *since <= now);
            let next = due(started, now, since, &habits);
            steps.push(next.since(now).as_nanos() / 1_000_000);
            now = next;
        }
        steps
    }

    #[test]
    fn it_wakes_when_either_of_two_things_is_due() {
        assert_eq!(steps(100, 9), [249, 102, 148, 250, 102, 148, 250, 102, 148]);
    }

    #[test]
    fn it_samples_when_nobody_waits_for_a_later_stage() {
        assert_eq!(steps(1_800, 11), [249, 250, 250, 250, 250, 250, 250, 250, 52, 198, 250]);
    }
}
