//! Cores: who runs where, for how long, and who waits for whom.
//!
//! A core is owned by one task at a time. Where computing is accounted for in steps, who is next is
//! decided in `eevdf` or `fair`. Elsewhere runnable tasks without a core wait in one queue, first
//! come, first served, and take the first core that their affinity allows; a task that has computed
//! for a whole time slice while others wait goes to the end of that queue. The worker that runs the
//! queue of the disk is urgent, as the kernel's is: it goes before others that wait, and before one
//! that was woken by the same interrupt and has not begun. Interrupts run on a core ahead of its
//! task (`interrupts`), whose work is suspended meanwhile; they wait while the task holds the
//! scheduler's lock or spins for it, because it does so with interrupts disabled.
//!
//! The scheduler's lock is handed over first come, first served; who waits for it spins, and so
//! occupies its core. An interrupt may spin too: its holder is then on another core.
//!
//! Cores know nothing of what is computed: they are told what a piece of work is, say whether it
//! can be done now, and charge for it.
//!
// Divergence: where tasks take turns, a woken task never preempts one that runs, nice values do not
// weigh computing time, and there is one queue of runnable tasks instead of one for each core.

mod eevdf;
mod fair;
mod interrupts;
mod paying;
mod placing;
mod pool;
mod prices;
mod sharing;
mod stepped;
mod steps;

pub(crate) use interrupts::Cause;
pub(crate) use paying::{Charge, Pays};
pub(crate) use pool::Pool;
pub(crate) use prices::Prices;

use crate::clock::Clock;
use crate::core_set::CoreSet;
use crate::host::{Costs, Host};
use crate::observe::CoreUse;
use base::{Duration, Instant, Rng, Ticket};
use block::ContextId;
use block::kernel::Sharing;
use paying::{Latest, Lock, Paid};
use std::collections::VecDeque;
use stepped::Stepped;

/// The cores of a machine and who computes on them.
pub(crate) struct Cpus {
    cores: Vec<Core>,
    /// By number: first the interrupts of each core, then tasks.
    contexts: Vec<Computing>,
    /// Contexts that have something to do.
    ready: VecDeque<ContextId>,
    run_queue: RunQueue,
    /// Workers of no core, where computing is accounted for in steps.
    pool: Pool,
    lock: Lock,
    /// The core that had the scheduler's latest events.
    latest: Latest,
    prices: Prices,
    time_slice: Duration,
    /// Where tasks take turns on one core, who has had least of it goes first.
    shares_fairly: bool,
    /// What the task that has had least of the core has had.
    least_served: Duration,
    /// How much longer switches to tasks take.
    switches: Rng,
    /// Who got a core or lost it since somebody asked, if anybody asks.
    moves: Option<Vec<Move>>,
}

/// When a task got a core or lost it, and in which of the two states it is since.
pub(crate) type Move = (Instant, ContextId, State);

/// A core.
#[derive(Default)]
struct Core {
    /// What it did so far.
    used: CoreUse,
    /// Since when it spins.
    spins_since: Option<Instant>,
    /// The task that owns it.
    owner: Option<ContextId>,
    /// Since when.
    slice_start: Instant,
    /// How often nobody was left to run on it.
    idled: u32,
    /// How often that was when it had the scheduler's latest events.
    latest: Latest,
    /// It has done something since.
    has_begun: bool,
    /// It is to leave it to somebody who has had less.
    yields: bool,
    /// What it is busy with until when.
    charge: Option<(Ticket, Charge)>,
    /// Whether interrupt code runs.
    in_interrupt: bool,
    /// A driver moves the data of a command, with interrupts disabled.
    moves_data: bool,
    /// What its task was busy with when the interrupt came, and how much of it is left.
    suspended: Option<Charge>,
    /// Why it is interrupted, or will be.
    pending: VecDeque<Cause>,
}

/// A context as cores know it: a task, or the interrupts of a core.
struct Computing {
    core: u16,
    state: State,
    nice: i8,
    affinity: Option<CoreSet>,
    /// It runs a program, which may lose its core outside system calls.
    is_program: bool,
    /// It was started while the others run. Tasks of the kernel have mostly been there since boot.
    is_started: bool,
    /// It is in a system call that ends before anything else happens to the task.
    in_call: bool,
    /// It does not wait until others have had their turn.
    is_urgent: bool,
    /// It is in the list of ready contexts.
    is_ready: bool,
    /// Computing that is not done.
    debt: Duration,
    /// It computes until then at the latest, whoever has had its core meanwhile.
    looks_until: Option<Instant>,
    /// How much it has had of its core, for who goes first.
    served: Duration,
    /// How much of the next piece of block-layer work is paid for.
    paid: Paid,
    spins: bool,
}

/// Who comes to compute.
pub(crate) struct Newcomer {
    /// Its nice value.
    pub nice: i8,
    /// The cores it may use; all if not given.
    pub affinity: Option<CoreSet>,
    /// It runs a program, which may lose its core outside system calls.
    pub is_program: bool,
}

/// Tasks that wait for a core, and who of them is next.
enum RunQueue {
    /// First come, first served.
    InTurn(VecDeque<ContextId>),
    /// As the kernel shares one core among them.
    Stepped(Stepped),
}

/// Whether a context can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It owns a core (interrupts: it is not idle or may be at any time).
    Running,
    /// It waits for a core.
    Runnable,
    /// It sleeps.
    Blocked,
    /// It has exited.
    Gone,
}

impl Cpus {
    /// Idle cores of a host. Where it accounts for computing in steps, tasks do not take turns.
    pub fn new(host: &Host, prices: Prices, sharing: Sharing, seed: u64) -> Cpus {
        let interrupts = |core| Computing {
            state: State::Running,
            ..Computing::new(core, Newcomer { nice: 0, affinity: None, is_program: false })
        };
        let run_queue = match host.machine.accounting {
            step if step.is_zero() => RunQueue::InTurn(VecDeque::new()),
            step => RunQueue::Stepped(Stepped::new(sharing, step)),
        };
        let takes_turns = matches!(run_queue, RunQueue::InTurn(_));
        Cpus {
            cores: (0..host.machine.cores).map(|_| Core::default()).collect(),
            contexts: (0..host.machine.cores).map(interrupts).collect(),
            ready: VecDeque::new(),
            run_queue,
            pool: Pool::default(),
            lock: Lock::default(),
            latest: Latest::default(),
            prices,
            time_slice: host.machine.time_slice,
            shares_fairly: takes_turns
                && host.machine.cores == 1
                && host.machine.clock_step.is_zero(),
            least_served: Duration::ZERO,
            switches: Rng::stream(seed, "host/switch"),
            moves: None,
        }
    }

    /// From now on it is remembered who gets a core and who loses it.
    pub fn remember_moves(&mut self) {
        self.moves.get_or_insert_default();
    }

    /// Who got a core or lost it since this was last asked.
    pub fn take_moves(&mut self) -> Vec<Move> {
        self.moves.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A task comes into being; it sleeps.
    pub fn admit(&mut self, newcomer: Newcomer) -> ContextId {
        let context = ContextId(self.contexts.len() as u32);
        let core = (self.contexts.len() % self.cores.len()) as u16;
        self.contexts.push(Computing::new(core, newcomer));
        context
    }

    /// How many cores there are.
    pub fn count(&self) -> u16 {
        self.cores.len() as u16
    }

    /// What each core did so far.
    pub fn used(&self) -> Vec<CoreUse> {
        self.cores.iter().map(|core| core.used).collect()
    }

    /// What pieces of work cost.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// What computing costs here.
    pub fn costs(&self) -> Costs {
        self.prices.costs
    }

    /// The core of a context: that on which it runs, or ran last.
    pub fn core_of(&self, context: ContextId) -> u16 {
        self.of(context).core
    }

    /// Whether a context can go on.
    pub fn state(&self, context: ContextId) -> State {
        self.of(context).state
    }

    /// The nice value of a task.
    pub fn nice(&self, context: ContextId) -> i8 {
        self.of(context).nice
    }

    /// A task is to have another nice value.
    pub fn set_nice(&mut self, context: ContextId, nice: i8) {
        self.of_mut(context).nice = nice;
    }

    /// The cores that a task may use, if not all.
    pub fn affinity(&self, context: ContextId) -> Option<&CoreSet> {
        self.of(context).affinity.as_ref()
    }

    /// A task may use these cores, or all, from the next time it is placed on one.
    pub fn set_affinity(&mut self, context: ContextId, affinity: Option<CoreSet>) {
        self.of_mut(context).affinity = affinity;
    }

    /// A task does not wait from now on until others have had their turn.
    pub fn make_urgent(&mut self, context: ContextId) {
        self.of_mut(context).is_urgent = true;
    }

    /// A task enters a system call, or leaves it.
    pub fn set_in_call(&mut self, context: ContextId, in_call: bool) {
        self.of_mut(context).in_call = in_call;
    }

    /// Whether a task is in a system call.
    pub fn is_in_call(&self, context: ContextId) -> bool {
        self.of(context).in_call
    }

    /// Whether the context is that of a core's interrupts.
    pub fn is_interrupt(&self, context: ContextId) -> bool {
        context.0 < self.cores.len() as u32
    }

    /// The next context that has something to do.
    pub fn next_ready(&mut self) -> Option<ContextId> {
        let context = self.ready.pop_front()?;
        self.of_mut(context).is_ready = false;
        Some(context)
    }

    /// The context has something to do when its turn comes.
    pub fn make_ready(&mut self, context: ContextId) {
        let computing = &mut self.contexts[context.0 as usize];
        if !computing.is_ready {
            computing.is_ready = true;
            self.ready.push_back(context);
        }
    }

    /// Whether nobody has something to do.
    pub fn nobody_is_ready(&self) -> bool {
        self.ready.is_empty()
    }

    /// Whether a task can go on now or pay what it owes. Not if its core is busy, or if it has to
    /// leave it to others.
    pub fn goes_on(&mut self, clock: &mut Clock, context: ContextId) -> bool {
        let Computing { state, core, .. } = *self.of(context);
        let core = usize::from(core);
        let busy = self.cores[core].in_interrupt || self.cores[core].charge.is_some();
        if state != State::Running || busy || self.must_leave(clock, context, core) {
            return false;
        }
        self.cores[core].has_begun = true;
        true
    }

    fn of(&self, context: ContextId) -> &Computing {
        &self.contexts[context.0 as usize]
    }

    fn of_mut(&mut self, context: ContextId) -> &mut Computing {
        &mut self.contexts[context.0 as usize]
    }
}

impl Computing {
    fn new(core: u16, newcomer: Newcomer) -> Computing {
        Computing {
            core,
            state: State::Blocked,
            nice: newcomer.nice,
            affinity: newcomer.affinity,
            is_program: newcomer.is_program,
            is_started: newcomer.is_program,
            in_call: false,
            is_urgent: false,
            is_ready: false,
            debt: Duration::ZERO,
            looks_until: None,
            served: Duration::ZERO,
            paid: Paid::Nothing,
            spins: false,
        }
    }

    /// Its nice value as far as computing goes.
    fn cpu_nice(&self) -> i8 {
        if self.is_urgent { -20 } else { self.nice }
    }

    /// Whether a task could be made to leave its core. In the kernel it is not.
    fn is_in_user_mode(&self) -> bool {
        self.is_program && !self.in_call
    }
}
