//! Queues in the order in which they are served: a list sorted by key, equal keys in order of
//! arrival.

use super::queue::QueueId;
use crate::think::ThinkTime;
use alloc::vec::Vec;

/// A service tree: the busy queues of one class and type in a group.
#[derive(Clone, Default)]
pub(super) struct ServiceTree {
    entries: Vec<(i64, QueueId)>,
    pub think: ThinkTime,
}

impl ServiceTree {
    pub fn insert(&mut self, key: i64, queue: QueueId) {
        let place = self.entries.partition_point(|entry| entry.0 <= key);
        self.entries.insert(place, (key, queue));
    }

    pub fn remove(&mut self, key: i64, queue: QueueId) {
        let start = self.entries.partition_point(|entry| entry.0 < key);
        let place = self.entries[start..].iter().position(|entry| entry.1 == queue);
        self.entries.remove(start + place.expect("the queue is in this tree"));
    }

    pub fn first(&self) -> Option<(i64, QueueId)> {
        self.entries.first().copied()
    }

    pub fn last(&self) -> Option<(i64, QueueId)> {
        self.entries.last().copied()
    }

    pub fn count(&self) -> u32 {
        self.entries.len() as u32
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, QueueId)> + '_ {
        self.entries.iter().copied()
    }
}
