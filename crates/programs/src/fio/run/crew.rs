//! What the processes of one run of fio know of each other.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use base::Instant;
use block::ContextId;

use super::super::job::{ExitWhat, Flow, Job};
use super::super::steady::Watch;
use guest::FioHabits;
use machine::task::Task;

/// Where a process is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It was not started.
    Waiting,
    /// It runs.
    Running,
    /// It ended with this status.
    Ended(i32),
}

/// The processes of one run.
pub(super) struct Crew {
    pub habits: FioHabits,
    main: ContextId,
    members: Vec<Member>,
    flows: RefCell<Vec<Tokens>>,
    /// Those over reporting groups, by their number.
    watches: RefCell<BTreeMap<u32, Rc<Watch>>>,
}

struct Member {
    state: Cell<State>,
    task: Cell<Option<ContextId>>,
    must_stop: Cell<bool>,
    does_io: bool,
    /// What it has done in its flow, if it takes part in one.
    tokens: Cell<Option<u64>>,
}

/// What the jobs of one flow have done.
struct Tokens {
    id: i64,
    /// The weights of the processes that take part.
    weight: u64,
    requests: u64,
    sleepers: Vec<ContextId>,
}

impl Crew {
    pub fn new(jobs: &[Job], main: ContextId, habits: FioHabits) -> Crew {
        let member = |job: &Job| Member {
            state: Cell::new(State::Waiting),
            task: Cell::new(None),
            must_stop: Cell::new(false),
            does_io: job.cpu.is_none(),
            tokens: Cell::new(None),
        };
        let members = jobs.iter().map(member).collect();
        let (flows, watches) = (RefCell::default(), RefCell::default());
        Crew { habits, main, members, flows, watches }
    }

    pub fn state(&self, number: usize) -> State {
        self.members[number].state.get()
    }

    /// Whether a process was not started.
    pub fn anybody_waits(&self) -> bool {
        self.members.iter().any(|it| it.state.get() == State::Waiting)
    }

    /// Whether nothing that a process waits for is missing, its delay aside.
    pub fn has_its_turn(&self, jobs: &[Job], number: usize) -> bool {
        let job = &jobs[number];
        let waits_for = |other: &Job| Some(&other.name) == job.wait_for.as_ref();
        let awaited = jobs.iter().filter(|other| other.number < job.number && waits_for(other));
        self.has_ended_before(jobs, job.stage) && self.have_ended(awaited)
    }

    /// Whether all processes of earlier stages have ended.
    pub fn has_ended_before(&self, jobs: &[Job], stage: u32) -> bool {
        self.have_ended(jobs.iter().filter(|other| other.stage < stage))
    }

    /// How many processes have ended.
    pub fn ended(&self) -> u32 {
        self.members.iter().filter(|it| it.has_ended()).count() as u32
    }

    /// The watch over the rate of a process that begins, which it may share with its group.
    pub fn watch(&self, job: &Job, now: Instant) -> Option<Rc<Watch>> {
        let new = || Rc::new(Watch::new(job.goal.steady.expect("it is to become steady"), now));
        job.goal.steady?;
        if !job.group_reporting {
            return Some(new());
        }
        Some(self.watches.borrow_mut().entry(job.group).or_insert_with(new).clone())
    }

    pub fn all_ended(&self) -> bool {
        self.members.iter().all(Member::has_ended)
    }

    pub fn any_failed(&self) -> bool {
        let failed = |it: &Member| matches!(it.state.get(), State::Ended(status) if status != 0);
        self.members.iter().any(failed)
    }

    /// Whether all processes that do I/O have ended.
    pub fn io_has_ended(&self) -> bool {
        self.members.iter().all(|it| !it.does_io || it.has_ended())
    }

    pub fn start(&self, number: usize, task: ContextId) {
        self.members[number].task.set(Some(task));
        self.members[number].state.set(State::Running);
    }

    /// Whether a process was told to stop.
    pub fn must_stop(&self, number: usize) -> bool {
        self.members[number].must_stop.get()
    }

    /// A process ends, and perhaps others with it.
    pub fn end(&self, task: &Task, jobs: &[Job], number: usize, status: i32) {
        let job = &jobs[number];
        self.leave_flow(task, job);
        self.members[number].state.set(State::Ended(status));
        for (other, member) in self.members.iter().enumerate() {
            let stops = match job.exit {
                None => false,
                Some(ExitWhat::Group) => jobs[other].group == job.group,
                Some(ExitWhat::Stonewall) => member.state.get() == State::Running,
                Some(ExitWhat::All) => true,
            };
            let is_last = !member.does_io && self.io_has_ended();
            if stops {
                self.stop(task, other);
            } else if is_last && let Some(other) = member.task.get() {
                task.notify(other);
            }
        }
        task.notify(self.main);
    }

    /// Tells a process to stop; one that was not started never will be.
    fn stop(&self, task: &Task, number: usize) {
        let member = &self.members[number];
        member.must_stop.set(true);
        match member.state.get() {
            State::Waiting => member.state.set(State::Ended(0)),
            State::Running => task.notify(member.task.get().expect("it runs in a task")),
            State::Ended(_) => {}
        }
    }

    fn have_ended<'a>(&self, mut jobs: impl Iterator<Item = &'a Job>) -> bool {
        jobs.all(|job| self.members[job.number as usize].has_ended())
    }

    /// A process takes part in a flow.
    pub fn enter_flow(&self, number: usize, flow: Flow) {
        self.members[number].tokens.set(Some(0));
        let mut flows = self.flows.borrow_mut();
        let weight = u64::from(flow.weight);
        match flows.iter_mut().find(|it| it.id == flow.id) {
            Some(tokens) => tokens.weight += weight,
            None => {
                flows.push(Tokens { id: flow.id, weight, requests: 0, sleepers: Vec::new() });
            }
        }
    }

    /// Whether a process has done more than its share; if so, it is told when another one has done
    /// something.
    pub fn is_ahead(&self, task: &Task, number: usize, flow: Flow) -> bool {
        let mut flows = self.flows.borrow_mut();
        let Some(tokens) = flows.iter_mut().find(|it| it.id == flow.id) else { return false };
        let own = u128::from(self.members[number].tokens.get().unwrap_or(0));
        let ahead =
            own * u128::from(tokens.weight) > u128::from(tokens.requests) * u128::from(flow.weight);
        if ahead && !tokens.sleepers.contains(&task.id()) {
            tokens.sleepers.push(task.id());
        }
        ahead
    }

    /// A process has done a request of a flow.
    pub fn count_flow(&self, task: &Task, number: usize, flow: Flow) {
        let own = &self.members[number].tokens;
        own.set(own.get().map(|own| own + 1));
        let mut flows = self.flows.borrow_mut();
        if let Some(tokens) = flows.iter_mut().find(|it| it.id == flow.id) {
            tokens.requests += 1;
            tokens.sleepers.drain(..).for_each(|sleeper| task.notify(sleeper));
        }
    }

    /// Those who go on share what is left.
    fn leave_flow(&self, task: &Task, job: &Job) {
        let own = self.members[job.number as usize].tokens.take();
        let (Some(flow), Some(own)) = (job.pace.flow, own) else { return };
        let mut flows = self.flows.borrow_mut();
        if let Some(tokens) = flows.iter_mut().find(|it| it.id == flow.id) {
            tokens.weight -= u64::from(flow.weight);
            tokens.requests -= own;
            tokens.sleepers.drain(..).for_each(|sleeper| task.notify(sleeper));
        }
    }
}

impl Member {
    fn has_ended(&self) -> bool {
        matches!(self.state.get(), State::Ended(_))
    }
}
