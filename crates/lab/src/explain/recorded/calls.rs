//! Requests as calls: each is a call of the task that made it, and its layers are the path.

use super::turns::{Pair, Watch};
use crate::metrics::CallKind;
use base::Duration;
use block::{Action, ContextId, Event, Op, Syscall};
use insight::{Call, Confidence, Layer, Life, Segment};
use std::collections::BTreeMap;

/// Who makes requests of which kind.
pub(super) type Of = (ContextId, CallKind);

/// What is known of the requests of a task, of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kinds {
    pub bytes: u64,
    /// Those for which nobody waits, and the others.
    pub background: u64,
    pub foreground: u64,
    /// Time for which they were withheld, by how sure that is.
    pub guesses: [Duration; 3],
}

/// Turns lives into calls, and remembers what calls do not say.
#[derive(Default)]
pub(super) struct Requests {
    watch: Watch,
    kinds: BTreeMap<Of, Kinds>,
    flushes: u64,
    count: u64,
}

impl Requests {
    pub fn see(&mut self, event: &Event) {
        self.watch.see(event);
        let is_flush = matches!(event.action, Action::Issue) && event.sectors.is_zero();
        self.flushes += u64::from(is_flush);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Commands that had the device write out its cache.
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// Who made requests.
    pub fn tasks(&self) -> impl Iterator<Item = ContextId> + '_ {
        self.kinds.keys().map(|it| it.0)
    }

    pub fn kinds(&self) -> impl Iterator<Item = (&Of, &Kinds)> {
        self.kinds.iter()
    }

    /// Who waited behind whom while the disk was kept idle.
    pub fn into_pairs(self) -> BTreeMap<(ContextId, ContextId), Pair> {
        self.watch.finish()
    }

    /// A request is done.
    pub fn end(&mut self, life: &Life) -> Call {
        let behind = self.watch.end(life);
        let call = call_of(life, behind, self.count);
        self.count += 1;
        let kinds = self.kinds.entry((life.context, CallKind::of(call.call))).or_default();
        kinds.bytes += life.sectors.bytes().0;
        match block::is_sync(life.op, life.flags) {
            true => kinds.foreground += 1,
            false => kinds.background += 1,
        }
        let guess = life.guess.unwrap_or(Confidence::Low);
        for (layer, time) in life.layers.iter().filter(|it| it.0.is_held()) {
            // The weakest guess of a request may be of another layer; of this one it is known.
            let has_reason = matches!(layer, Layer::Held(_));
            let guess = if has_reason { guess.max(Confidence::Medium) } else { guess };
            kinds.guesses[guess as usize] += *time;
        }
        call
    }
}

/// For how long a request was withheld.
pub(super) fn withheld(life: &Life) -> Duration {
    life.layers.iter().filter(|it| it.0.is_held()).map(|it| it.1).sum()
}

fn call_of(life: &Life, behind: Option<ContextId>, token: u64) -> Call {
    let call = match life.op {
        _ if life.sectors.is_zero() => Syscall::Sync,
        Op::Read => Syscall::Read,
        Op::Write => Syscall::Write,
        Op::Discard => Syscall::Discard,
    };
    Call {
        task: life.context,
        call,
        token,
        entered: life.queued,
        ended: life.end(),
        is_unfinished: false,
        path: path_of(life, behind),
        commits: Vec::new(),
        pages: Vec::new(),
    }
}

/// The layers one after the other, which is their order but where a request was in one twice.
fn path_of(life: &Life, behind: Option<ContextId>) -> Vec<Segment> {
    let (mut path, mut from) = (Vec::with_capacity(life.layers.len() + 3), life.queued);
    let mut add = |layer: Layer, time: Duration, behind: Option<ContextId>| {
        if !time.is_zero() {
            let piece = Segment::of(life.context, layer, [from, from + time]);
            path.push(Segment { behind, is_read: life.op == Op::Read, ..piece });
            from += time;
        }
    };
    for (layer, time) in life.layers.iter().copied() {
        match layer {
            Layer::Others => {
                let mut left = time;
                for (who, part) in &life.others {
                    let part = (*part).min(left);
                    add(layer, part, Some(*who));
                    left = left.saturating_sub(part);
                }
                add(layer, left, None);
            }
            _ if layer.is_held() => add(layer, time, behind),
            _ => add(layer, time, None),
        }
    }
    path
}
