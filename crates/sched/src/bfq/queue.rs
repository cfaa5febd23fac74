//! A queue: the requests of one process that it waits for, or those of one priority in a group
//! that nobody waits for.

use super::LONG_AGO;
use super::wf2q::EntityId;
use crate::think::ThinkTime;
use alloc::vec::Vec;
use base::{Id, List, Sector, SectorSet};
use block::{ContextId, IoContextId, Request, RequestId};
use core::fmt;

/// Handle of a queue.
pub(super) type QueueId = Id<Queue>;

/// A queue of requests. Times are jiffies where nothing else is said.
#[derive(Clone)]
pub(super) struct Queue {
    pub entity: EntityId,
    /// Who made it, or took it over last; none while several processes share it.
    pub pid: Option<ContextId>,
    /// Who made it, or used it alone last.
    pub who: ContextId,
    /// The io_context it belongs to alone.
    pub owner: Option<IoContextId>,
    pub sync: bool,
    pub level: u8,
    /// Processes, requests, the engine, its weight, and queues that merge into it.
    pub refs: u32,
    /// Of these, contexts that may merge into it when it has proved stable.
    pub stable_refs: u32,
    pub is_busy: bool,
    /// Its group counts it among those with requests that are not done.
    pub is_pending: bool,
    pub just_created: bool,
    pub wait_request: bool,
    /// What is left of its budget may be used if it has requests again soon.
    pub keeps_budget: bool,
    pub fifo_checked: bool,
    pub has_short_think: bool,
    pub io_bound: bool,
    pub in_large_burst: bool,
    /// What it is raised for as real time is worked out at its last completion.
    pub softrt_update: bool,
    pub coop: bool,
    pub split_coop: bool,
    pub sorted: SectorSet<Request>,
    pub fifo: List<Request>,
    pub next: Option<RequestId>,
    /// Requests in it: asynchronous and synchronous ones.
    pub queued: [u32; 2],
    /// Requests that left it and are not done.
    pub dispatched: u32,
    /// Sectors it will be given next time.
    pub max_budget: u64,
    pub budget_timeout: i64,
    pub wr_cur_max_time: i64,
    pub last_wr_start_finish: i64,
    pub wr_start_at_switch_to_srt: i64,
    pub soft_rt_next_start: i64,
    pub last_idle_bklogged: i64,
    pub service_from_backlogged: u64,
    pub service_from_wr: u64,
    pub think: ThinkTime,
    /// A bit for each of its last requests: whether it was far from the one before.
    pub seek_history: u32,
    pub last_request_end: Sector,
    pub inject: Injection,
    /// Sectors of others that were injected in this service.
    pub injected: u64,
    /// Arrivals in time, one after another, while it is not bound by I/O.
    pub in_time: u32,
    pub wakers: Wakers,
    pub creation_time: i64,
    pub split_time: i64,
    pub first_io_time: i64,
    /// Nanoseconds.
    pub io_start: i64,
    /// Nanoseconds.
    pub idle_total: u64,
    /// The queue that its processes will use from now on.
    pub merges_into: Option<QueueId>,
    /// It stands among queues of its group by where it goes on.
    pub has_place: bool,
    /// It is in the list of a burst.
    pub in_burst_list: bool,
}

/// How many requests of others may be injected while a queue is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Injection {
    pub limit: u32,
    /// Nanoseconds from arrival to completion when nothing was injected; zero: not known.
    pub last_serv_time: i64,
    /// Jiffies.
    pub decrease_time: i64,
}

/// Whose completions make a queue send its next request.
#[derive(Clone, Debug, Default)]
pub(super) struct Wakers {
    pub waker: Option<QueueId>,
    /// The slot of a queue. The kernel compares addresses, and the queue that is made next has the
    /// address of the one that went last. (Observed on 7.3.4.)
    pub tentative: Option<usize>,
    pub detections: u32,
    /// Nanoseconds.
    pub since: i64,
    /// Those it wakes itself, the last one first.
    pub woken: Vec<QueueId>,
}

/// When a queue comes into being, and with what.
#[derive(Clone, Copy)]
pub(super) struct Born {
    pub jiffies: i64,
    pub nanos: i64,
    pub level: u8,
    pub max_budget: u64,
}

impl Queue {
    /// A queue that nobody refers to yet.
    pub fn new(entity: EntityId, pid: ContextId, sync: bool, born: Born) -> Queue {
        Queue {
            entity,
            pid: Some(pid),
            who: pid,
            owner: None,
            sync,
            level: born.level,
            refs: 0,
            stable_refs: 0,
            is_busy: false,
            is_pending: false,
            just_created: sync,
            wait_request: false,
            keeps_budget: false,
            fifo_checked: false,
            // Observed on 6.12.117: its class is not known yet, so it holds for the idle one, too.
            has_short_think: sync,
            io_bound: sync,
            in_large_burst: false,
            softrt_update: false,
            coop: false,
            split_coop: false,
            sorted: SectorSet::default(),
            fifo: List::new(),
            next: None,
            queued: [0; 2],
            dispatched: 0,
            max_budget: born.max_budget,
            budget_timeout: LONG_AGO,
            wr_cur_max_time: 0,
            last_wr_start_finish: born.jiffies,
            wr_start_at_switch_to_srt: LONG_AGO,
            soft_rt_next_start: born.jiffies,
            last_idle_bklogged: LONG_AGO,
            service_from_backlogged: 0,
            service_from_wr: 0,
            think: ThinkTime::since(born.nanos + 1),
            seek_history: 1,
            last_request_end: Sector(0),
            inject: Injection { limit: 0, last_serv_time: 0, decrease_time: born.jiffies },
            injected: 0,
            in_time: 0,
            wakers: Wakers::default(),
            creation_time: born.jiffies,
            split_time: LONG_AGO,
            first_io_time: LONG_AGO,
            io_start: born.nanos,
            idle_total: 0,
            merges_into: None,
            has_place: false,
            in_burst_list: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// More than 19 of the last 32 requests were far from the one before.
    pub fn is_seeky(&self) -> bool {
        self.seek_history.count_ones() > 19
    }

    pub fn is_totally_seeky(&self) -> bool {
        self.seek_history == u32::MAX
    }

    /// How it is called in messages.
    pub fn name(&self) -> QueueName {
        QueueName { pid: self.pid, sync: self.sync }
    }
}

/// The name of a queue in messages.
#[derive(Clone, Copy)]
pub(super) struct QueueName {
    pid: Option<ContextId>,
    sync: bool,
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sync = if self.sync { 'S' } else { 'A' };
        match self.pid {
            Some(pid) => write!(f, "bfq{}{sync}", pid.0),
            None => write!(f, "bfqSHARED-{sync}"),
        }
    }
}
