//! What a recorded CFQ said, and what that tells of its state.
//!
//! Somebody follows a recording that lacks events. So ours charges other turns than the kernel did,
//! and sees other processes share a queue. The kernel's messages tell both: how much a group has
//! been served, and which queue a request came to. A queue's name tells whether it is waited for.

use super::binding::Bound;
use super::queue::{Class, QueueId};
use super::{Cfq, GroupId, Queue};
use block::{ContextId, Cx, RequestId};

/// What was heard so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// The virtual time of a group, and of the least: whose it is, is said next.
    served: Option<(u64, u64)>,
    /// By how much the kernel's virtual times are ahead of ours.
    ahead: Option<u64>,
    /// A process is about to leave this queue, which others share.
    left: Option<QueueId>,
    /// This queue preempts, which was not heard yet, and where it stood before.
    pub preempted: Option<(QueueId, i64)>,
    /// Whom ours chose last hangs on what was wrong before.
    pub in_doubt: bool,
    /// Anything was heard at all.
    anything: bool,
}

/// The queue that a message names.
struct Named {
    owner: ContextId,
    sync: bool,
    noidle: bool,
}

impl Cfq {
    /// Takes over what a message tells; `rq` is the request it is about, if it is about one that is
    /// bound and not queued yet.
    pub(super) fn take_over(&mut self, cx: &mut Cx<'_>, said: &str, rq: Option<RequestId>) {
        self.heard.anything = true;
        if let Some(served) = served_in(said) {
            self.heard.served = Some(served);
            return;
        }
        let served = self.heard.served.take();
        let Some((named, text)) = named_in(said) else { return };
        if let Some(rq) = rq.filter(|_| named.sync) {
            self.rebind(cx, rq, named.owner);
        }
        let Some(id) = self.queue_named(&named) else { return };
        if !text.ends_with("alloced") {
            self.heard.left = Some(id).filter(|_| text.ends_with("breaking apart cfqq"));
        }
        self.confirm(id, text);
        let queue = &mut self.queues[id];
        if queue.sync && queue.class != Class::Idle {
            queue.idle_window = !named.noidle;
        }
        if let Some((vdisktime, least)) = served.filter(|_| text.contains("sl_used=")) {
            self.place_group(self.queues[id].group, vdisktime, least);
        }
    }

    /// Whether a process leaves a queue that it shares before its next request: what was heard of
    /// that goes before what ours would do.
    pub(super) fn leaves(&mut self, id: QueueId) -> bool {
        if self.heard.anything {
            return self.heard.left.take() == Some(id);
        }
        let queue = &self.queues[id];
        queue.coop && queue.split_coop
    }

    /// This queue has the turn in the kernel. If it is not the first of its tree, the one that is
    /// stands elsewhere there.
    pub(super) fn doubt_first(&mut self, id: QueueId) {
        let (class, kind) = self.queues[id].tree();
        let first = self.group(self.queues[id].group).tree(class, kind).first();
        if let Some((_, first)) = first.filter(|it| it.1 != id) {
            self.queues[first].unsure = true;
        }
    }

    /// A queue that preempts, as was not heard before the next turn began, stands where it stood.
    fn confirm(&mut self, id: QueueId, text: &str) {
        let Some((preempts, key)) = self.heard.preempted else { return };
        if text.ends_with("preempt") && id == preempts {
            self.heard.preempted = None;
        } else if text.contains("set_active") {
            self.heard.preempted = None;
            let waits = self.queues.get(preempts).is_some() && self.active != Some(preempts);
            if waits && id != preempts {
                self.move_queue(preempts, key);
            }
        }
    }

    fn place_group(&mut self, group: GroupId, vdisktime: u64, least: u64) {
        let own = self.group_tree.least();
        let ahead = *self.heard.ahead.get_or_insert(least.wrapping_sub(own));
        self.move_group(group, vdisktime.wrapping_sub(ahead), least.wrapping_sub(ahead));
    }

    /// Of several of that name, one that does not merge into another.
    fn queue_named(&self, named: &Named) -> Option<QueueId> {
        let is_it = |queue: &Queue| queue.pid == named.owner && queue.sync == named.sync;
        let all = self.queues.iter().filter(|(_, queue)| is_it(queue) && queue.refs > 0);
        all.max_by_key(|(_, queue)| queue.merges_into.is_none()).map(|(id, _)| id)
    }

    /// A request came to the queue of another, with whom its own process shares it from now on; or
    /// it came to its own, and no longer shares one.
    fn rebind(&mut self, cx: &mut Cx<'_>, rq: RequestId, owner: ContextId) {
        let (bound, origin) = (self.bound[rq], cx.request(rq).origin);
        let from = bound.queue;
        if !self.queues[from].sync || self.queues[from].pid == owner {
            return;
        }
        let named = Named { owner, sync: true, noidle: false };
        let into = match self.queue_named(&named) {
            Some(into) => into,
            None if owner == origin.context => {
                let group = self.queues[from].group;
                self.new_queue(cx, bound.io_context, group, owner, true)
            }
            None => return,
        };
        let is_shared = owner != origin.context;
        let target = &mut self.queues[into];
        target.coop |= is_shared;
        target.allocated += 1;
        target.refs += 1;
        self.queues[from].allocated -= 1;
        self.bound.set(rq, Bound { queue: into, ..bound });
        if let Some(process) = self.contexts.get_mut(bound.io_context) {
            let held = process.queues[usize::from(true)].replace(into);
            self.gain_process(into);
            if let Some(held) = held {
                self.put_merge_chain(cx, held);
                self.put_queue(cx, held);
            }
        }
        self.put_queue(cx, from);
    }
}

impl Cfq {
    /// One more process refers to a queue, and to those it merges into.
    fn gain_process(&mut self, id: QueueId) {
        let mut at = Some(id);
        while let Some(id) = at {
            self.queues[id].refs += 1;
            at = self.queues[id].merges_into;
        }
    }
}

/// The virtual times of a group that has been charged, and of the least.
fn served_in(said: &str) -> Option<(u64, u64)> {
    if said.starts_with("cfq") {
        // Of a queue; most are.
        return None;
    }
    let (_, times) = said.split_once("served: vt=")?;
    let (vdisktime, least) = times.split_once(" min_vt=")?;
    Some((vdisktime.parse().ok()?, least.trim().parse().ok()?))
}

/// The queue that a message is about, and what is said of it.
fn named_in(said: &str) -> Option<(Named, &str)> {
    let (name, text) = said.strip_prefix("cfq")?.split_once(' ')?;
    let kinds = name.trim_start_matches(|it: char| it.is_ascii_digit());
    let owner = ContextId(name[..name.len() - kinds.len()].parse().ok()?);
    let named = Named { owner, sync: kinds.starts_with('S'), noidle: kinds.ends_with('N') };
    Some((named, text))
}
