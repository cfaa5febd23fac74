//! Prices: what the pieces of block-layer work cost a core, by host and by scheduler.
//!
//! A piece has a part outside the scheduler's lock and one under it; who pays, and when, is in
//! `paying`.

use crate::host::{Costs, EventCost, Host};
use base::{Duration, Sectors};
use block::{Attach, Facts, Shape, SharedLock, Work, Works};

/// What pieces of work cost under the scheduler that is attached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    pub costs: Costs,
    /// An event of the scheduler.
    scheduler: EventCost,
    /// Whether there is a lock that all cores share.
    has_lock: bool,
    /// Whether a completion takes it.
    locks_completions: bool,
    /// Whether there is one queue with a lock of its own.
    is_single: bool,
    /// Whether nothing costs anything.
    pub free: bool,
    /// Pieces of work that cost nothing and need no lock.
    pub along: Works,
}

impl Prices {
    /// Prices on a host, under what is attached to the queue.
    pub fn new(host: &Host, attach: &Attach) -> Prices {
        let about = attach.scheduler.as_ref().map(|scheduler| scheduler.about());
        let is_single = attach.shape == Shape::Single;
        let lock = match about {
            _ if is_single => SharedLock::All,
            Some(about) => about.lock,
            None => SharedLock::Unused,
        };
        let prices = Prices {
            costs: host.costs,
            scheduler: host.scheduler_event(about.map_or("none", |about| about.name)),
            has_lock: lock != SharedLock::Unused,
            locks_completions: lock == SharedLock::All,
            is_single,
            free: host.is_free(),
            along: Works::NONE,
        };
        let along = Work::ALL.into_iter().filter(|work| prices.is_along(*work));
        Prices { along: along.fold(Works::NONE, Works::with), ..prices }
    }

    /// Whether a piece of work costs nothing and needs no lock.
    fn is_along(&self, work: Work) -> bool {
        let Costs { request, kernel_clock, message, .. } = self.costs;
        let looks = matches!(work, Work::Bio | Work::Issue | Work::Allocate);
        self.free
            || message.is_zero()
                && self.unlocked(work).is_zero()
                && self.event(work, || 1).is_none()
                && !self.is_locked(work, || 1)
                && (!looks || kernel_clock.is_zero())
                && (work != Work::Allocate || request.is_zero())
    }

    /// The cost of a piece of work outside the lock.
    pub fn unlocked(&self, work: Work) -> Duration {
        match work {
            Work::Bio => self.costs.bio,
            Work::Issue => self.costs.driver,
            Work::Complete => self.costs.completion,
            // Paid afterwards: only then is it known whether the task slept instead.
            Work::Allocate => Duration::ZERO,
            Work::Insert | Work::Dispatch | Work::Deliver | Work::Housekeeping => Duration::ZERO,
        }
    }

    /// The scheduler's part of a piece of work, if it has one that costs something. To ask a
    /// scheduler that holds nothing is free.
    pub fn event(&self, work: Work, queued: impl FnOnce() -> u32) -> Option<EventCost> {
        let is_one = match work {
            Work::Insert | Work::Complete => true,
            Work::Dispatch => queued() > 0,
            _ => false,
        };
        (is_one && self.scheduler != EventCost::default()).then_some(self.scheduler)
    }

    /// What moving the data of a command costs.
    pub fn transfer(&self, sectors: Sectors) -> Duration {
        self.costs.transfer * u64::from(sectors.0) / u64::from(Facts::PAGE.0)
    }

    /// Whether a piece of work takes the lock. Whether a scheduler of blk-mq holds anything is seen
    /// without it.
    pub fn is_locked(&self, work: Work, queued: impl FnOnce() -> u32) -> bool {
        self.has_lock
            && match work {
                Work::Complete => self.locks_completions,
                Work::Dispatch => self.is_single || queued() > 0,
                _ => work.takes_lock(),
            }
    }
}
