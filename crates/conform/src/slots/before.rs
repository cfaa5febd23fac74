//! What had happened before a recording began, as far as its messages tell.
//!
//! A scheduler that keeps queues for processes kept them before, too. A queue that is spoken of and
//! was not made within the recording existed already; its process is given one request that was
//! done a second before. A group of which nothing is expected, although its first queue is just
//! made, had requests before, far from each other in time. What else had happened is not known.

use super::Run;
use crate::messages::Said;
use crate::replica::Taken;
use base::{Duration, Instant, Sector, Sectors};
use block::scheduler::IoContext;
use block::{Bio, Flags, IoContextId, Op, Origin};
use std::collections::{BTreeMap, BTreeSet};

/// So long before the recording.
const BEFORE: Duration = Duration::from_secs(1);
/// One after another: longer than a process is waited for.
const APART: Duration = Duration::from_millis(20);
/// So many requests make the time between them count (rule cfq-insert-2).
const SAMPLES: u32 = 3;
/// The number of an io_context that no task has.
const VISITOR: u32 = 1;
/// How long each took.
const SERVICE: Duration = Duration::from_micros(100);

impl Run<'_> {
    /// Lets those processes have a queue that had one.
    pub(super) fn recall(&mut self) {
        let Some(first) = self.history.steps.first() else { return };
        let start = first.at + self.phase;
        let queues = existing(&self.history.messages);
        if start.as_nanos() < 2 * BEFORE.as_nanos() || queues.len() > 32 {
            return;
        }
        let mut number = 0;
        for (pid, noidle) in queues {
            let context = self.history.contexts.get(&pid);
            let Some(bio) = context.and_then(|it| self.one_before(IoContextId(it.0), noidle))
            else {
                continue;
            };
            self.serve(start - BEFORE + APART * number, &bio);
            number += 1;
        }
        for pid in hopeless(&self.history.messages) {
            let context = self.history.contexts.get(&pid);
            let bio = context.and_then(|it| self.one_before(IoContextId(it.0), false));
            let Some(bio) = bio else { continue };
            for _ in 0..SAMPLES {
                self.visit(start - BEFORE + APART * number, bio);
                number += 1;
            }
        }
        self.replica.take_events();
        self.replica.take_wants_run();
    }

    /// One request, from its arrival until nobody waits for another.
    fn serve(&mut self, now: Instant, bio: &Bio) {
        let id = self.replica.allocate(now, bio, None);
        self.replica.insert(now, id, false);
        if matches!(self.replica.choose(now), Taken::Chosen(chosen, _) if chosen == id) {
            self.replica.complete(now + SERVICE, id);
        }
        while self.replica.pass_time(now + APART - SERVICE).is_some() {}
    }

    /// A process that reads once, and exits.
    fn visit(&mut self, now: Instant, bio: Bio) {
        let io_context = IoContextId(VISITOR);
        let value = IoContext { tasks: 1, ..IoContext::default() };
        self.replica.queue().define_io_context(io_context, value);
        self.serve(now, &Bio { origin: Origin { io_context, ..bio.origin }, ..bio });
        self.replica.exit(now + APART - SERVICE, io_context);
    }

    /// A request before a process's first one; after a write that nothing follows a process is not
    /// waited for.
    fn one_before(&self, io_context: IoContextId, noidle: bool) -> Option<Bio> {
        let mut lives = self.history.requests.iter();
        let life = lives.find(|life| life.bio.origin.io_context == io_context)?;
        let (op, flags) = if noidle { (Op::Write, Flags::SYNC) } else { (Op::Read, Flags::NONE) };
        let sector = Sector(life.bio.sector.0.saturating_sub(8));
        Some(Bio { op, flags, sector, sectors: Sectors(8), ..life.bio })
    }
}

/// Synchronous queues that are spoken of before they are made, by the number of their task, and
/// whether they are among those that are not waited for.
fn existing(messages: &[Said]) -> BTreeMap<u32, bool> {
    let mut seen: BTreeMap<u32, Option<bool>> = BTreeMap::new();
    for said in messages {
        let named = said.text.strip_prefix("cfq").or_else(|| said.text.strip_prefix("bfq"));
        let Some((name, text)) = named.and_then(|it| it.split_once(' ')) else { continue };
        let Some((pid, kind)) = name.split_once('S') else { continue };
        if let Ok(pid) = pid.parse() {
            let text = text.trim_start();
            let is_made =
                ["alloced", "allocated"].contains(&text) || text.starts_with("new_ioprio ");
            seen.entry(pid).or_insert((!is_made).then_some(kind == "N"));
        }
    }
    seen.into_iter().filter_map(|(pid, noidle)| Some((pid, noidle?))).collect()
}

/// Tasks whose queue is made, and of which nothing is expected before their first request is done:
/// a queue that is alone in its tree is waited for unless the tree is known to take long.
fn hopeless(messages: &[Said]) -> Vec<u32> {
    let mut fresh: BTreeSet<u32> = BTreeSet::new();
    let mut found = Vec::new();
    for said in messages {
        let named = said.text.strip_prefix("cfq").and_then(|it| it.split_once(' '));
        let pid = named.and_then(|(name, _)| name.split('S').next()?.parse().ok());
        let (Some(pid), Some((_, text))) = (pid, named) else { continue };
        match text.trim_start() {
            "alloced" => {
                fresh.insert(pid);
            }
            "Not idling. st->count:1" if fresh.remove(&pid) => found.push(pid),
            text if text.starts_with("complete") => {
                fresh.remove(&pid);
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_not_made_existed() {
        let said = |text: &str| Said { at: Instant::ZERO, issues: 0, text: text.to_string() };
        let messages = [
            said("cfq7S  alloced"),
            said("cfq7S  insert_request"),
            said("cfq67SN insert_request"),
            said("cfq5S  add_to_rr"),
            said("cfq9A  insert_request"),
            said("cfq schedule dispatch"),
            said("bfq3S new_ioprio 4 new_weight 40"),
            said("bfq3S get_request P: bfqq P, 2"),
        ];
        assert_eq!(existing(&messages), BTreeMap::from([(67, true), (5, false)]));
        let hope = [said("cfq7S  alloced"), said("cfq7S  complete rqnoidle 0")];
        let late = said("cfq7SN Not idling. st->count:1");
        assert!(hopeless(&[&hope[..], std::slice::from_ref(&late)].concat()).is_empty());
        assert_eq!(hopeless(&[hope[0].clone(), late]), [7]);
    }
}
