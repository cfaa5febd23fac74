//! How many tags a request may use (rules bfq-charge).

use super::Bfq;
use super::messages::Unlimited;
use super::wf2q::EntityId;
use crate::async_depth::AsyncDepth;
use block::kernel::ShallowDepth;
use block::tags::bits_per_word;
use block::{Bio, Cx, Op};

/// For what nobody waits for and for writes that somebody waits for: without and with raised
/// queues.
pub(super) type Depths = [[u32; 2]; 2];

impl Bfq {
    /// The depths follow the queue that it is attached to. Where they are parts of `async_depth`,
    /// the queue still has that of a queue without a scheduler, and gets BFQ's behind it.
    // Observed on 7.3.4: of a disk that takes 32, `none` has 32 requests and an `async_depth` of
    // 32. With BFQ it has 64 and 48, and the depths are 21, 32, 8, 16, parts of 32.
    pub(super) fn attach_depths(&mut self, cx: &Cx<'_>) {
        let requests = cx.limits().nr_requests;
        if self.rules.has_async_depth {
            self.depths = parts_of(cx.limits().facts.queue_depth.min(requests));
            self.async_depth = AsyncDepth::of((requests * 3 / 4).max(1).into(), requests.into());
        } else {
            self.adapt_depths(cx);
        }
    }

    /// The depths follow the number of requests. (Up to 6.17 the kernel tells of a change before it
    /// is made.)
    pub(super) fn adapt_depths(&mut self, cx: &Cx<'_>) {
        let requests = cx.limits().nr_requests;
        if self.rules.has_async_depth {
            if self.async_depth.follow(requests.into()) {
                self.depths = parts_of(self.async_depth.value() as u32);
            }
            return;
        }
        let multi = cx.kernel().multi.expect("a kernel with blk-mq");
        let all = match multi.shallow {
            ShallowDepth::WholeMap => requests,
            ShallowDepth::PerWord => bits_per_word(requests),
        };
        let part = |sixteenths: u32| (all * sixteenths / 16).max(1);
        self.depths = [[part(8), part(12)], [part(3), part(6)]];
    }

    /// Somebody sets the queue's `async_depth`.
    pub(super) fn set_async_depth(&mut self, value: i64) {
        self.async_depth.set(value);
        self.depths = parts_of(self.async_depth.value() as u32);
    }

    pub(super) fn depth_for(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        let sync = bio.is_sync();
        let is_sync_read = sync && bio.op == Op::Read;
        let all = match self.rules.messages.unlimited {
            Unlimited::Untold if is_sync_read => return None,
            Unlimited::Untold | Unlimited::Zero => 0,
            Unlimited::All => cx.limits().nr_requests,
        };
        let raised = usize::from(self.wr_busy > 0);
        let mut depth = if is_sync_read { 0 } else { self.depths[raised][usize::from(sync)] };
        if self.is_over_share(cx, bio, depth) {
            depth = 1;
        }
        let (raised, sync) = (self.wr_busy, u8::from(sync));
        let said = if depth == 0 { all } else { depth };
        self.message(
            cx,
            format_args!("[bfq_limit_depth] wr_busy {raised} sync {sync} depth {said}"),
        );
        (depth > 0).then_some(depth)
    }

    /// The queue of the bio, or a group it is in, has more requests than its share.
    fn is_over_share(&mut self, cx: &mut Cx<'_>, bio: &Bio, depth: u32) -> bool {
        if !self.rules.limits_shares {
            return false;
        }
        let bic = self.contexts.get(bio.origin.io_context);
        let Some(id) = (if bio.is_sync() { bic.sync } else { bic.asyncs }) else { return false };
        let requests = u64::from(cx.limits().nr_requests);
        let multi = cx.kernel().multi.expect("a kernel with blk-mq");
        let limit = match (depth, multi.shallow) {
            (0, _) => requests,
            (depth, ShallowDepth::WholeMap) => u64::from(depth),
            (depth, ShallowDepth::PerWord) => {
                requests * u64::from(depth) / u64::from(bits_per_word(requests as u32))
            }
        };
        let entity = self.queues[id].entity;
        if self.engine.lineage(entity).any(|entity| !self.engine[entity].is_counted) {
            return false;
        }
        match self.share(entity, limit, 0) {
            Ok(_) => false,
            Err(TooMany { allocated, limit, level }) => {
                self.say(
                    cx,
                    id,
                    format_args!(
                        "too many requests: allocated {allocated} limit {limit} level {level}"
                    ),
                );
                true
            }
        }
    }

    /// How many of `all` an entity may have, so many levels above the queue, unless it has so many
    /// already, or a group it is in.
    fn share(&self, entity: EntityId, all: u64, level: u32) -> Result<u64, TooMany> {
        let mut limit = match self.engine.parent(entity) {
            Some(above) => self.share(above, all, level + 1)?,
            None => all,
        };
        let it = &self.engine[entity];
        let weight = |class| self.engine.weights(entity, class);
        let weights = match it.stands_for {
            Some(_) => weight(it.class),
            None => {
                let classes = &super::Class::ALL[..=it.class as usize];
                classes.iter().fold(0, |sum, class| sum * 8 + weight(*class))
            }
        };
        let part = (limit * u64::from(it.weight) + weights / 2).checked_div(weights);
        limit = part.unwrap_or(limit);
        let allocated = it.allocated;
        if u64::from(allocated) >= limit {
            return Err(TooMany { allocated, limit, level });
        }
        Ok(limit)
    }
}

/// The depths as parts of an `async_depth`.
// Observed on 7.3.4 with 3, 40, 44, 57, 64, 100 and 114.
fn parts_of(all: u32) -> Depths {
    let part = |part: u32, of: u32| (all * part / of).max(1);
    [[part(2, 3), all], [part(1, 4), part(1, 2)]]
}

/// Somebody has his share of the requests.
struct TooMany {
    allocated: u32,
    limit: u64,
    level: u32,
}
