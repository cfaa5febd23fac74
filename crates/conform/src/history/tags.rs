//! Tasks that sleep for a tag.
//!
//! No record tells that a task sleeps. But when somebody else does something between its bio and
//! the request for it, it has slept, and it runs the queue before it does. What the task does
//! itself in between, and what interrupts it, is no sleep.

use super::{Historian, Task};
use base::{Instant, Sectors};
use trace::blktrace::{Action, Payload, Record};

impl Historian<'_> {
    /// The task of a record is awake, and its bio has no request yet.
    pub(super) fn is_awake(&mut self, record: &Record) {
        let awake = (record.time, self.records, self.history.steps.len());
        self.task(record).awake = awake;
    }

    /// A completion interrupts a task: nobody else has had the core.
    pub(super) fn interrupted(&mut self, record: &Record) {
        if let Some(task) = self.tasks.get_mut(&record.pid).filter(|task| task.bio.is_some()) {
            task.awake.1 += 1;
        }
    }

    /// A bio is split before it gets a tag. What is behind is a bio of its own, which no record
    /// announces.
    pub(super) fn split(&mut self, record: &Record) {
        let Payload::Split(second) = record.payload else { return };
        let task = self.task(record);
        task.split = Some(record.sector);
        if let Some((op, first, sectors)) = task.bio.filter(|bio| bio.1 < second) {
            let length = Sectors(u32::try_from(second.0 - first.0).unwrap_or(u32::MAX));
            if length < sectors {
                task.bio = Some((op, first, length));
                task.rest = Some((op, second, Sectors(sectors.0 - length.0)));
            }
        }
        self.is_awake(record);
    }

    /// Something has become of a task's bio. What was split off it is next.
    pub(super) fn takes_up_rest(&mut self, record: &Record) {
        let task = self.task(record);
        task.bio = task.rest.take();
        task.is_rest = task.bio.is_some();
        self.is_awake(record);
    }

    /// Before the rest of a bio comes, its task inserts the first part, or puts it to what it
    /// holds. It may have to flush that.
    pub(super) fn ends_first_part(&mut self, record: &Record) {
        let number = self.records;
        let is_awake = |task: &&Task| task.is_rest && !task.sleeps;
        let Some(task) = self.tasks.get(&record.pid).filter(is_awake) else { return };
        let ends = match record.action {
            Action::Plug | Action::Unplug => true,
            Action::Insert => task.runs || task.awake.1 + 1 == number,
            Action::BackMerge | Action::Issue => task.runs || task.awake.1 == number,
            _ => task.awake.1 == number,
        };
        if ends {
            self.is_awake(record);
        }
    }

    /// Whether a task slept before it got this request: since when, and before which step.
    pub(super) fn has_slept(&mut self, record: &Record) -> Option<(Instant, usize)> {
        let (records, era, tells_runs) = (self.records, self.era, self.history.tells_runs);
        let task = self.task(record);
        let (at, number, before) = task.awake;
        let sleeps = std::mem::take(&mut task.sleeps);
        let slept = if tells_runs { sleeps } else { number + 1 < records && era.joins_are_traced };
        (task.bio.take().is_some() && slept).then_some((at, before))
    }
}

#[cfg(test)]
mod tests {
    use super::super::What;
    use super::super::made_up::{event, history};
    use base::Sector;
    use trace::blktrace::Action::{self, GetRequest, Insert, Issue, Plug, Queue, Split, Unplug};
    use trace::blktrace::{Payload, Record};

    /// Before how many steps tasks slept for a tag; all is done by one.
    fn sleeps(events: &[(Action, u64, u32)]) -> Vec<usize> {
        let record = |&(action, sector, sectors): &(Action, u64, u32)| {
            let payload = match action {
                Split => Payload::Split(Sector(sector + u64::from(sectors))),
                Unplug => Payload::Unplug(1),
                _ => Payload::None,
            };
            Record { payload, ..event(action, sector, sectors) }
        };
        let history = history(events.iter().map(record));
        let steps = history.steps.iter().enumerate();
        steps.filter(|(_, step)| matches!(step.what, What::Starve)).map(|it| it.0).collect()
    }

    /// Three parts, inserted one by one.
    const PARTS: [(Action, u64, u32); 9] = [
        (Queue, 0, 24),
        (Split, 0, 8),
        (GetRequest, 0, 8),
        (Insert, 0, 8),
        (Split, 8, 8),
        (GetRequest, 8, 8),
        (Insert, 8, 8),
        (GetRequest, 16, 8),
        (Insert, 16, 8),
    ];

    #[test]
    fn a_task_that_splits_its_bio_does_not_sleep() {
        assert!(sleeps(&PARTS).is_empty());
        let held = [&PARTS[..3], &[(Plug, 0, 0)], &PARTS[4..6], &[(Unplug, 0, 0)]].concat();
        let flushed = [(Insert, 0, 8), (Insert, 8, 8), (Issue, 0, 8)];
        let flushes = [&held[..], &flushed, &[PARTS[7]]].concat();
        assert!(sleeps(&flushes).is_empty(), "a plug that is full is flushed first");
    }

    #[test]
    fn a_task_may_sleep_before_each_part_of_a_bio() {
        let issue = [(Issue, 0, 8)];
        let second = [&PARTS[..5], &issue, &PARTS[5..]].concat();
        assert_eq!(sleeps(&second).len(), 1);
        let last = [&PARTS[..7], &issue, &PARTS[7..]].concat();
        assert_eq!(sleeps(&last), [4], "before it runs the queue, behind what it inserted");
    }
}
