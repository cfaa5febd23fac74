//! Which of several requests that look the same was completed, where the disk's log tells.

use base::Instant;
use block::Op;
use lab::recording::DiskCommand;
use std::collections::{BTreeMap, VecDeque};

/// What a command looks like in a record: operation, first sector, sectors.
type Look = (Op, u64, u32);

/// When commands were accepted that are not completed yet, by what they look like, in the order in
/// which they will be.
#[derive(Clone, Debug, Default)]
pub(super) struct DiskLog(BTreeMap<Look, VecDeque<Instant>>);

impl DiskLog {
    /// Of those that are completed at `since` or later.
    pub fn of(commands: &[DiskCommand], since: Instant) -> DiskLog {
        let mut commands: Vec<_> = commands.iter().filter(|it| it.completed >= since).collect();
        commands.sort_by_key(|it| it.completed);
        let mut log = DiskLog::default();
        for it in commands {
            let look = (it.op, it.sector.0, it.sectors.0);
            log.0.entry(look).or_default().push_back(it.accepted);
        }
        log
    }

    /// A command of this look is completed: when it was accepted.
    pub fn complete(&mut self, op: Op, sector: u64, sectors: u32) -> Option<Instant> {
        self.0.get_mut(&(op, sector, sectors))?.pop_front()
    }
}
