//! Ticks, in which the page cache and file systems count time.

use super::World;
use base::Instant;

const SECOND: u64 = 1_000_000_000;

impl World {
    /// Ticks since time zero.
    pub fn tick(&self) -> u64 {
        self.clock.now().as_nanos() / (SECOND / self.hz())
    }

    /// A task has made so many pages dirty that it begins to pause; the block layer hears of it.
    pub fn note_dirty_pause(&mut self) {
        let now = self.clock.now();
        self.storage.queue_mut().note_dirty_pause(now);
    }

    /// When a sleep of so many ticks ends.
    pub fn at_tick(&self, ticks: u64) -> Instant {
        // A tick that has begun does not count. // observed on 6.12
        self.start_of_tick(self.tick() + ticks + 1)
    }

    /// When a tick begins.
    pub fn start_of_tick(&self, tick: u64) -> Instant {
        Instant::from_nanos(tick * SECOND / self.hz())
    }

    /// The tick that comes so many ticks after the boot, if it is to come; none for zero, which
    /// stands for never.
    pub fn tick_of_boot(&self, ticks: u64) -> Option<u64> {
        let tick = ticks.checked_sub(self.storage.cache().wheel().booted());
        tick.filter(|_| ticks > 0)
    }

    fn hz(&self) -> u64 {
        u64::from(self.storage.cache().hz().get())
    }
}
