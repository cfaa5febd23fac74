//! What the throttling tells of itself, as the kernel writes it into traces (rule throttle-14).

use super::io_max::{IoMax, Limit};
use crate::bio::{CgroupId, Direction};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Text {
    /// Start, end and now, as in the next two.
    NewSlice(u64, u64, u64),
    /// A slice becomes longer.
    Extend(u64, u64, u64),
    /// A slice of a parent begins where that of its child did.
    Credit(u64, u64, u64),
    /// Slices are settled.
    Trim { slices: u64, bytes: i64, ios: i64, start: u64, end: u64, now: u64 },
    /// A bio has to wait.
    Bio { done: (i64, i64), bytes: u64, limit: Limit, waiting: [u32; 2] },
    /// A timer is set.
    Timer { delay: u64, now: u64 },
    /// A round begins.
    Dispatch { waiting: [u32; 2] },
    /// It is over.
    Dispatched(u32),
    /// What is carried over to new limits: bytes and bios, of reads and of writes.
    Carry { amounts: [(i64, i64); 2], is_unsigned: bool },
    /// New limits.
    Limits(IoMax),
}

/// Collects messages, if anybody wants them.
#[derive(Default)]
pub(super) struct Said {
    wanted: bool,
    group: Option<CgroupId>,
    direction: Option<Direction>,
    messages: Vec<(Option<CgroupId>, String)>,
}

impl Said {
    /// From now on they are wanted, or not.
    pub fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// What follows is about this.
    pub fn about(&mut self, group: Option<CgroupId>, direction: Option<Direction>) {
        (self.group, self.direction) = (group, direction);
    }

    /// Says something.
    pub fn say(&mut self, text: impl FnOnce() -> Text) {
        if self.wanted {
            let text = in_words(text(), self.direction);
            self.messages.push((self.group, text));
        }
    }

    /// Whether anything was said since [`Said::take`].
    pub fn has_any(&self) -> bool {
        !self.messages.is_empty()
    }

    /// What was said since this was last asked.
    pub fn take(&mut self) -> Vec<(Option<CgroupId>, String)> {
        core::mem::take(&mut self.messages)
    }
}

fn in_words(text: Text, direction: Option<Direction>) -> String {
    let letter = match direction {
        Some(Direction::Read) => "[R] ",
        Some(Direction::Write) => "[W] ",
        None => "",
    };
    let words = match text {
        Text::NewSlice(start, end, now) => {
            format!("new slice start={start} end={end} jiffies={now}")
        }
        Text::Extend(start, end, now) => {
            format!("extend slice start={start} end={end} jiffies={now}")
        }
        Text::Credit(start, end, now) => {
            format!("new slice with credit start={start} end={end} jiffies={now}")
        }
        Text::Trim { slices, bytes, ios, start, end, now } => format!(
            "trim slice nr={slices} bytes={bytes} io={ios} start={start} end={end} jiffies={now}"
        ),
        Text::Bio { done, bytes, limit, waiting } => {
            let (bps, iops) = shown(limit);
            format!(
                "bio. bdisp={} sz={bytes} bps={bps} iodisp={} iops={iops} queued={}/{}",
                done.0 as u64, done.1 as u32, waiting[0], waiting[1]
            )
        }
        Text::Timer { delay, now } => format!("schedule timer. delay={delay} jiffies={now}"),
        Text::Dispatch { waiting } => format!(
            "dispatch nr_queued={} read={} write={}",
            waiting[0] + waiting[1],
            waiting[0],
            waiting[1]
        ),
        Text::Dispatched(bios) => format!("bios disp={bios}"),
        Text::Carry { amounts: [read, write], is_unsigned } => {
            let ios = |it: (i64, i64)| if is_unsigned { i64::from(it.1 as u32) } else { it.1 };
            let ios = (ios(read), ios(write));
            format!("tg_update_carryover: {} {} {} {}", read.0, write.0, ios.0, ios.1)
        }
        Text::Limits(limits) => {
            let ((rbps, riops), (wbps, wiops)) = (shown(limits.read), shown(limits.write));
            format!("limit change rbps={rbps} wbps={wbps} riops={riops} wiops={wiops}")
        }
    };
    format!("throtl {letter}{words}")
}

/// What is not limited is shown as the largest number.
fn shown(limit: Limit) -> (u64, u32) {
    (limit.bps.unwrap_or(u64::MAX), limit.iops.unwrap_or(u32::MAX))
}
