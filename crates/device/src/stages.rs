//! What a device does for each command that it has, if somebody wants to know.

use base::Instant;
use block::command::{Stage, Tag};

/// What is done for commands, by tag, each since when.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    of: Option<Vec<Vec<(Instant, Stage)>>>,
}

impl Stages {
    /// From now on they are kept.
    pub fn keep(&mut self) {
        self.of.get_or_insert_default();
    }

    /// From a time on a command is in a stage. What was to come at that time or later does not.
    pub fn enter(&mut self, at: Instant, Tag(tag): Tag, stage: Stage) {
        let Some(all) = &mut self.of else { return };
        if all.len() <= tag as usize {
            all.resize(tag as usize + 1, Vec::new());
        }
        let of = &mut all[tag as usize];
        of.truncate(of.partition_point(|(since, _)| *since < at));
        if of.last().is_none_or(|(_, last)| *last != stage) {
            of.push((at, stage));
        }
    }

    /// From a time on a command is in the stages of another device, in which it has another tag.
    pub fn enter_all(&mut self, tag: Tag, stages: &[(Instant, Stage)]) {
        stages.iter().for_each(|(at, stage)| self.enter(*at, tag, *stage));
    }

    /// What was done for a command that is finished.
    pub fn take(&mut self, Tag(tag): Tag) -> Box<[(Instant, Stage)]> {
        let of = self.of.as_mut().and_then(|all| all.get_mut(tag as usize));
        of.map(std::mem::take).unwrap_or_default().into_boxed_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag(3);

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn what_comes_in_between_replaces_what_was_to_come() {
        let mut stages = Stages::default();
        stages.keep();
        let foreseen = [(10, Stage::Seek), (20, Stage::Rotation), (30, Stage::Media)];
        foreseen.iter().for_each(|(nanos, stage)| stages.enter(at(*nanos), TAG, *stage));
        stages.enter(at(20), TAG, Stage::Queue);
        assert_eq!(*stages.take(TAG), [(at(10), Stage::Seek), (at(20), Stage::Queue)]);
        assert!(stages.take(TAG).is_empty(), "taken once");
    }

    #[test]
    fn nothing_is_kept_that_nobody_wants() {
        let mut stages = Stages::default();
        stages.enter(at(10), TAG, Stage::Seek);
        assert!(stages.take(TAG).is_empty());
    }
}
