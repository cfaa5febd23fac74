//! The system calls of a run, each from its entry to its end.

use base::Instant;
use block::{Action, ContextId, Event, Op, Syscall};
use machine::{Checker, Observer, Outcome, Setup, TaskInfo};
use std::collections::BTreeMap;

/// One system call, from its entry to its end.
#[derive(Clone, Debug)]
pub struct Call {
    pub task: String,
    pub call: Syscall,
    pub op: Op,
    /// In bytes.
    pub offset: u64,
    pub length: u64,
    pub entered: Instant,
    pub ended: Instant,
}

/// Keeps all system calls.
#[derive(Default)]
pub struct Seen {
    task_infos: BTreeMap<ContextId, TaskInfo>,
    pub calls: Vec<Call>,
    in_flight: usize,
    pub most_in_flight: usize,
}

impl Observer for Seen {
    fn meet(&mut self, who: &TaskInfo) {
        self.task_infos.insert(who.context, who.clone());
    }

    fn see(&mut self, event: &Event) {
        match event.action {
            Action::SyscallEnter(_) => {
                self.in_flight += 1;
                self.most_in_flight = self.most_in_flight.max(self.in_flight);
            }
            Action::SyscallExit { call, entered, .. } => {
                self.in_flight -= 1;
                self.calls.push(Call {
                    task: self.task_infos[&event.context].name.clone(),
                    call,
                    op: event.op,
                    offset: event.sector.bytes().0,
                    length: event.sectors.bytes().0,
                    entered,
                    ended: event.at,
                });
            }
            _ => {}
        }
    }
}

impl Seen {
    pub fn of<'a>(&'a self, task: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(move |call| call.task == task)
    }

    pub fn count(&self, op: Op) -> u64 {
        self.moving(op).count() as u64
    }

    pub fn bytes(&self, op: Op) -> u64 {
        self.moving(op).map(|call| call.length).sum()
    }

    pub fn moving(&self, op: Op) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(move |call| call.op == op && call.call != Syscall::Sync)
    }

    pub fn flushes(&self) -> usize {
        self.calls.iter().filter(|call| call.call == Syscall::Sync).count()
    }

    pub fn offsets(&self) -> Vec<u64> {
        let mut calls: Vec<&Call> = self.calls.iter().collect();
        calls.sort_by_key(|call| call.entered);
        calls.iter().map(|call| call.offset).collect()
    }

    /// From the first entry to the last end.
    pub fn span(&self, task: &str) -> (Instant, Instant) {
        let first = self.of(task).map(|call| call.entered).min();
        let last = self.of(task).map(|call| call.ended).max();
        (first.expect("it made a call"), last.expect("it made a call"))
    }
}

/// Runs a setup under a checker of conservation.
pub fn observe(setup: Setup) -> (Outcome, Seen) {
    let mut checker = Checker::new(setup.device.facts(), setup.attach.shape);
    let mut seen = Seen::default();
    let is_cut = setup.until.is_some();
    let mut several = machine::Several(vec![&mut checker, &mut seen]);
    let outcome = machine::run(setup, &mut several).expect("a setup that runs");
    if !is_cut {
        checker.finish();
    }
    (outcome, seen)
}
