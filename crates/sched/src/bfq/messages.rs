//! What BFQ says in blktrace, and what differs there between kernels.

use super::Bfq;
use super::queue::QueueId;
use block::{CgroupId, Cx};
use core::fmt;

/// What differs between kernels in what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Messages {
    /// Which priority a new queue has (5.15 and later).
    pub tells_priority: bool,
    /// After each arrival, whether the queue thinks long and jumps about (4.19).
    pub tells_statistics: bool,
    /// A queue that its process gets is told of (up to 5.4).
    pub tells_queue: bool,
    /// And that one is about to be parted (up to 5.4).
    pub tells_parting: bool,
    /// A queue that several share has no number (5.2 and later; A.3b-6).
    pub names_shared: bool,
    /// What is told of the depth of what is not limited.
    pub unlimited: Unlimited,
}

/// The depth that stands for all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unlimited {
    /// Only limits are told.
    Untold,
    /// Observed on 6.1.192.
    Zero,
    /// `nr_requests`; observed on 6.12.117.
    All,
}

impl Messages {
    /// 6.12 and later.
    pub const REFERENCE: Messages = Messages {
        tells_priority: true,
        tells_statistics: false,
        tells_queue: false,
        tells_parting: false,
        names_shared: true,
        unlimited: Unlimited::All,
    };
    pub const IN_6_1: Messages = Messages { unlimited: Unlimited::Zero, ..Messages::REFERENCE };
    /// After the changes of March 2019. assumed: as 5.4
    pub const IN_5_2: Messages = Messages {
        tells_priority: false,
        tells_queue: true,
        tells_parting: true,
        unlimited: Unlimited::Untold,
        ..Messages::REFERENCE
    };
    /// And before. assumed: as 5.4
    pub const IN_5_1: Messages = Messages { names_shared: false, ..Messages::IN_5_2 };
    /// Observed on 4.19.79.
    pub const IN_4_19: Messages = Messages { tells_statistics: true, ..Messages::IN_5_1 };
}

impl Bfq {
    /// A message about a queue.
    #[inline]
    pub(super) fn say(&self, cx: &mut Cx<'_>, id: QueueId, text: fmt::Arguments<'_>) {
        if cx.wants_messages() {
            let queue = &self.queues[id];
            let cgroup = CgroupId(self.engine[queue.entity].group);
            cx.group_message(cgroup, format_args!("{} {text}", queue.name()));
        }
    }

    /// A message about the disk.
    #[inline]
    pub(super) fn message(&self, cx: &mut Cx<'_>, text: fmt::Arguments<'_>) {
        cx.message(format_args!("bfq {text}"));
    }
}
