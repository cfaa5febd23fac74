//! The free run: what the whole queue makes of the recorded bios, left to itself.
//!
//! Bios are submitted and plugs flushed when the kernel's tasks did; splitting, merging, plugging,
//! tags and the times of dispatches are ours. A command takes as long as the same command took the
//! recorded device, or, if there was none, as long as the one that the kernel issued in its place.

use crate::agreement::{common, numbered};
use crate::history::{Call, CallKind, History, Traced, What};
use crate::setup::Setup;
use crate::slots::Decision;
use base::{Duration, Instant, Sector, Sectors};
use block::{Command, CommandOp, ContextId, EventLog, Op, Output, PlugFlush, RequestQueue, Tag};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const INTERRUPT: ContextId = ContextId(0);
const WORKER: ContextId = ContextId(1);

/// By what a command is recognised.
type Key = (Op, Sector, Sectors);

/// Which of the kernel's decisions a free run takes in the same order.
pub fn agreement(
    history: &History,
    setup: &Setup,
    decisions: &[Decision],
    phase: Duration,
) -> Vec<bool> {
    let (kernel, services) = issues(history, setup.facts.queue_depth);
    let ours = Run::new(history, setup, phase, services).finish();
    let keys = kernel.iter().map(|rq| key_of(history, *rq));
    let whole = |keys: Vec<(Key, u32)>| keys.into_iter().map(|key| (0, key)).collect::<Vec<_>>();
    let agrees = common(&whole(numbered(keys)), &whole(numbered(ours)));
    let agreed: BTreeSet<Traced> =
        kernel.iter().zip(agrees).filter(|(_, agrees)| *agrees).map(|(rq, _)| *rq).collect();
    decisions.iter().map(|decision| agreed.contains(&decision.kernel)).collect()
}

fn key_of(history: &History, rq: Traced) -> Key {
    let life = &history.requests[rq];
    (life.bio.op, life.sector, life.sectors)
}

/// What the kernel issued, in the order of first issues, and how long the device took. The driver
/// of the single queue looks at one request more than the device takes (rule dispatch-list-3); that
/// one begins when another has finished.
fn issues(history: &History, depth: u32) -> (Vec<Traced>, Services) {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    let mut begun: BTreeMap<Traced, Instant> = BTreeMap::new();
    let mut waiting: VecDeque<Traced> = VecDeque::new();
    let mut taken: BTreeMap<Traced, Duration> = BTreeMap::new();
    for step in &history.steps {
        match step.what {
            What::Issue => {
                if seen.insert(step.rq) {
                    order.push(step.rq);
                }
                if begun.len() < depth as usize {
                    begun.insert(step.rq, step.at);
                } else {
                    waiting.push_back(step.rq);
                }
            }
            What::Complete | What::Requeue => {
                waiting.retain(|rq| *rq != step.rq);
                let since = begun.remove(&step.rq);
                if let (Some(since), What::Complete) = (since, step.what) {
                    taken.insert(step.rq, step.at.saturating_since(since));
                }
                if let (Some(_), Some(next)) = (since, waiting.pop_front()) {
                    begun.insert(next, step.at);
                }
            }
            _ => {}
        }
    }
    let mut services = Services::default();
    for rq in &order {
        let took = taken.get(rq).copied().unwrap_or_default();
        services.by_key.entry(key_of(history, *rq)).or_default().push_back(took);
        services.by_place.push(took);
    }
    (order, services)
}

/// How long the recorded device took.
#[derive(Default)]
struct Services {
    by_key: BTreeMap<Key, VecDeque<Duration>>,
    by_place: Vec<Duration>,
}

impl Services {
    fn of(&mut self, key: Key, place: usize) -> Duration {
        let same = self.by_key.get_mut(&key).and_then(VecDeque::pop_front);
        same.or(self.by_place.get(place).copied()).unwrap_or_default()
    }

    /// Flush commands leave no record; they take as long as the fastest one that does.
    fn of_flush(&self) -> Duration {
        self.by_place.iter().copied().filter(|took| !took.is_zero()).min().unwrap_or_default()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Complete(Tag),
    Run,
}

struct Run<'a> {
    calls: std::slice::Iter<'a, Call>,
    phase: Duration,
    queue: RequestQueue,
    services: Services,
    due: BTreeMap<(Instant, u64), Due>,
    number: u64,
    /// Tasks that hold requests back.
    plugged: BTreeSet<ContextId>,
    /// Calls of tasks that sleep in our queue and did not in the kernel's.
    deferred: BTreeMap<ContextId, VecDeque<Call>>,
    issued: Vec<Key>,
}

impl<'a> Run<'a> {
    fn new(history: &'a History, setup: &Setup, phase: Duration, services: Services) -> Run<'a> {
        Run {
            calls: history.calls.iter(),
            phase,
            queue: setup.queue(history, EventLog::off()),
            services,
            due: BTreeMap::new(),
            number: 0,
            plugged: BTreeSet::new(),
            deferred: BTreeMap::new(),
            issued: Vec::new(),
        }
    }

    fn finish(mut self) -> Vec<Key> {
        while self.turn() {}
        self.issued
    }

    /// The next thing that happens; false when nothing does any more.
    fn turn(&mut self) -> bool {
        let call = self.calls.as_slice().first().copied();
        let call_at = call.map(|call| call.at + self.phase);
        let due = self.due.first_key_value();
        let due_at = due.map(|((at, _), _)| *at);
        // A worker gets a core when the tasks of the same instant are done with it.
        let waits = due.is_some_and(|(_, due)| *due == Due::Run);
        let timer_at = self.queue.next_timer();
        let Some(now) = [call_at, due_at, timer_at].into_iter().flatten().min() else {
            return false;
        };
        if due_at == Some(now) && !(waits && call_at == Some(now)) {
            let (_, due) = self.due.pop_first().expect("something is due");
            self.happen(now, due);
        } else if timer_at == Some(now) {
            self.queue.timer(now, INTERRUPT, 0);
            self.queue.finish(now, INTERRUPT);
        } else if let Some(call) = call {
            self.calls.next();
            self.call(now, call);
        }
        self.act(now);
        true
    }

    fn happen(&mut self, now: Instant, due: Due) {
        let context = match due {
            Due::Complete(tag) => {
                self.queue.complete(now, INTERRUPT, 0, tag);
                INTERRUPT
            }
            Due::Run => {
                self.queue.run(now, WORKER, 0);
                WORKER
            }
        };
        self.queue.finish(now, context);
    }

    fn call(&mut self, now: Instant, call: Call) {
        let context = call.origin.context;
        if let Some(deferred) = self.deferred.get_mut(&context) {
            deferred.push_back(call);
            return;
        }
        match call.what {
            CallKind::Submit { bio, plugged } => {
                if plugged && self.plugged.insert(context) {
                    self.queue.start_plug(context);
                }
                self.queue.submit(now, bio);
            }
            CallKind::Flush { blocks } => {
                let why = if blocks { PlugFlush::Blocks } else { PlugFlush::Explicit };
                let was_plugged = self.plugged.contains(&context);
                if was_plugged {
                    self.queue.finish_plug(now, context, call.origin.cpu, why);
                }
                if !blocks {
                    self.plugged.remove(&context);
                }
            }
        }
        self.go_on(now, context);
    }

    fn go_on(&mut self, now: Instant, context: ContextId) {
        if !self.queue.finish(now, context) {
            self.deferred.entry(context).or_default();
        }
    }

    /// Does what the queue wants done.
    fn act(&mut self, now: Instant) {
        while let Some(output) = self.queue.pop_output() {
            match output {
                Output::Issue(command) => self.issue(now, &command),
                Output::RunWorker { after } => self.add(now + after, Due::Run),
                Output::Wake(context) => self.wake(now, context),
                Output::BioDone { .. } | Output::WouldBlock { .. } | Output::Release => {}
            }
        }
    }

    fn wake(&mut self, now: Instant, context: ContextId) {
        let mut late = self.deferred.remove(&context).unwrap_or_default();
        self.go_on(now, context);
        while let Some(call) = late.pop_front() {
            if let Some(deferred) = self.deferred.get_mut(&context) {
                deferred.push_back(call);
            } else {
                self.call(now, call);
            }
        }
    }

    fn issue(&mut self, now: Instant, command: &Command) {
        let op = match command.op {
            CommandOp::Read => Op::Read,
            CommandOp::Write => Op::Write,
            CommandOp::Discard => Op::Discard,
            CommandOp::Flush => {
                let took = self.services.of_flush();
                self.add(now + took, Due::Complete(command.tag));
                return;
            }
        };
        let key = (op, command.sector, command.sectors);
        let took = self.services.of(key, self.issued.len());
        self.issued.push(key);
        self.add(now + took, Due::Complete(command.tag));
    }

    fn add(&mut self, at: Instant, due: Due) {
        self.number += 1;
        self.due.insert((at, self.number), due);
    }
}
