//! Maps of files: which of their blocks are where on the disk.
//!
//! Whoever changes a map holds it, also while it waits for a part of it that is being logged. Others
//! who want to change it wait for that, and so go on later than who waited for the log (observed on
//! 6.12 where the worker converts blocks of a file that is being written).

use crate::task::Task;
use crate::world::{Wait, World};
use block::ContextId;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;

/// A map that somebody holds, or who was woken is about to.
#[derive(Debug, Default)]
pub(super) struct HeldMap {
    is_held: bool,
    waiting: VecDeque<ContextId>,
}

impl Task {
    /// Waits until nobody else holds the map of a file.
    pub(super) async fn hold_map(&self, file: usize) {
        let mut has_slept = false;
        poll_fn(|_| {
            let mut world = self.world();
            let is_held = |world: &mut World| {
                let map = world.fs().held_maps.entry(file).or_default();
                std::mem::replace(&mut map.is_held, true)
            };
            if !is_held(&mut world) {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if !is_held(&mut world) {
                return Poll::Ready(());
            }
            // Who was woken and found that somebody else was faster keeps the first place.
            let waiting = &mut world.fs().held_maps.entry(file).or_default().waiting;
            match std::mem::replace(&mut has_slept, true) {
                true => waiting.push_front(self.id()),
                false => waiting.push_back(self.id()),
            }
            self.wait(&mut world, Wait::Map)
        })
        .await;
    }

    /// Lets the next one hold the map.
    pub(super) fn release_map(&self, file: usize) {
        let mut world = self.world();
        let map = world.fs().held_maps.get_mut(&file).expect("the map is held");
        map.is_held = false;
        match map.waiting.pop_front() {
            Some(next) => world.wake_from(next),
            None => drop(world.fs().held_maps.remove(&file)),
        }
    }
}
