//! Who computes next: the fair queue of tasks of kernels from 6.6 on, for one core.
//!
//! Earliest eligible virtual deadline first (Stoica and Abdel-Wahab, 1995): a task's virtual time
//! moves on with its computing, divided by its weight. It may compute while it has had no more than
//! its share (is eligible); of those that may, the one goes first whose slice would be over first.
//! What a task missed or took too much when it fell asleep (its lag) counts when it wakes, unless
//! nobody competed for the core meanwhile.
//!
//! Why the simulator cares: the clock behind it is coarse where time stands still while code runs.
//! A task is charged a whole step when the step ends under it, and everybody else nothing; after
//! that the order in which tasks go changes for good.
//!
// Divergence: one queue for one core, no groups of tasks (the controller cpu is not modelled).

use super::steps::Steps;
use base::{Duration, Instant};
use block::ContextId;

/// The weight of nice 0 (each nice level is a quarter more: sched-nice-design).
const WEIGHT: f64 = 1024.0;
/// What a task may compute before another one is considered, in nanoseconds: the base slice of 6.12
/// on one core (assumed: it cannot be read there, and matters only in that a step exceeds it).
const SLICE: i64 = 750_000;

/// The thread that does work the kernel has put off (ksoftirqd/0); what it does takes no time. The
/// interrupts of the core have this number, and are no task.
const DEFERRED: ContextId = ContextId(0);

/// The tasks that are runnable, and those that sleep although they owe time.
pub(crate) struct Eevdf {
    steps: Steps,
    /// By number; `None` for one that has not woken yet.
    tasks: Vec<Option<Runner>>,
    running: Option<ContextId>,
    must_switch: bool,
    /// Where a task is placed that wakes when nobody is runnable.
    floor: i64,
    arrivals: u64,
}

/// What is known of a task. Times are virtual nanoseconds.
#[derive(Clone, Copy)]
struct Runner {
    weight: i64,
    place: Place,
    /// Its virtual time.
    at: i64,
    /// When its slice is over.
    deadline: i64,
    /// How much it had missed when it fell asleep.
    lag: i64,
    /// Its slice has not been renewed since it got the core.
    is_protected: bool,
    /// Its number among those with the same deadline.
    arrival: u64,
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It sleeps.
    Away,
    /// It is runnable, or running.
    Queued,
    /// It sleeps and stays in the queue until it is eligible, because it owes time.
    Indebted,
}

impl Eevdf {
    /// An empty queue that charges computing in steps.
    pub fn new(step: Duration) -> Eevdf {
        Eevdf {
            steps: Steps::of(step),
            tasks: Vec::new(),
            running: None,
            must_switch: false,
            floor: 0,
            arrivals: 0,
        }
    }

    /// When the step that has begun is over.
    pub fn step_end(&self, now: Instant) -> Instant {
        self.steps.end(now)
    }

    /// Whether the running task is to leave the core when it is not in the kernel.
    pub fn must_switch(&self) -> bool {
        self.must_switch
    }

    /// Charges the running task with the steps that ended.
    pub fn account(&mut self, now: Instant) {
        let time = self.steps.charge(now);
        let Some(running) = self.running.filter(|_| time > 0) else { return };
        let others = self.queued().count() > 1;
        let task = self.task(running);
        task.at += time * WEIGHT as i64 / task.weight;
        if task.at >= task.deadline {
            task.deadline = task.at + task.slice();
            task.is_protected = false;
            self.must_switch |= others;
        }
        self.raise_floor();
    }

    /// A task wakes, or `begins`: those of the kernel have slept since it was booted.
    // Observed on 6.12.117, sched_switch: jbd2, woken by one dd, computes after another that woke
    // before it.
    pub fn wake(&mut self, now: Instant, context: ContextId, nice: i8, begins: bool) {
        self.account(now);
        let number = context.0 as usize;
        self.tasks.resize(self.tasks.len().max(number + 1), None);
        let is_new = begins && self.tasks[number].is_none();
        self.tasks[number].get_or_insert_with(|| Runner::new(nice));
        match self.task(context).place {
            Place::Queued => panic!("task {} wakes and does not sleep", context.0),
            Place::Away => self.enqueue(context, is_new),
            Place::Indebted => {
                self.task(context).place = Place::Queued;
                let lag = self.lag(context);
                if lag > 0 {
                    self.task(context).place = Place::Away;
                    self.task(context).lag = 0;
                    self.enqueue(context, false);
                }
            }
        }
        if self.running.is_some() && self.first() == Some(context) {
            self.must_switch = true;
        }
    }

    /// The running task falls asleep, or exits.
    pub fn sleep(&mut self, now: Instant, exits: bool) {
        self.account(now);
        let context = self.running.expect("only who runs falls asleep");
        let lag = self.lag(context);
        let owes = !exits && !self.is_eligible(context);
        self.put_back();
        let task = self.task(context);
        task.lag = lag;
        task.place = if owes { Place::Indebted } else { Place::Away };
    }

    /// The running task leaves the core and stays runnable.
    pub fn put_back(&mut self) {
        if let Some(context) = self.running.take() {
            self.arrivals += 1;
            self.task(context).arrival = self.arrivals;
        }
    }

    /// The running task puts work off: the thread that does it wakes, if it does not wait for the
    /// core already.
    // Observed on 6.12.117, sched_waking and sched_switch: fio, which has just begun, wakes
    // ksoftirqd/0 and goes on until the tick; then dd, which began with it, and then the thread.
    pub fn disturb(&mut self, now: Instant) {
        let sleeps = |it: &Runner| it.place != Place::Queued;
        if self.tasks.first().and_then(Option::as_ref).is_none_or(sleeps) {
            self.wake(now, DEFERRED, 0, false);
        }
    }

    /// Gives the core to whoever is first.
    pub fn pick(&mut self, now: Instant) -> Option<ContextId> {
        self.account(now);
        self.must_switch = false;
        while let Some(first) = self.first() {
            let lag = self.lag(first).min(0);
            let task = self.task(first);
            if task.place == Place::Indebted {
                (task.lag, task.place) = (lag, Place::Away);
                continue;
            }
            task.is_protected = true;
            self.put_back();
            self.running = Some(first);
            if first != DEFERRED {
                return Some(first);
            }
            self.sleep(now, false);
        }
        None
    }

    fn enqueue(&mut self, context: ContextId, is_new: bool) {
        let load: i64 = self.queued().map(|(_, it)| it.weight).sum();
        let average = self.average();
        self.arrivals += 1;
        let arrival = self.arrivals;
        let task = self.task(context);
        let lag = if load == 0 { 0 } else { task.lag * (load + task.weight) / load };
        task.at = average - lag;
        // A new task is tried for half a slice.
        task.deadline = task.at + if is_new { task.slice() / 2 } else { task.slice() };
        (task.place, task.arrival) = (Place::Queued, arrival);
    }

    /// Who goes first: the running task if its slice is its own, else the earliest deadline.
    fn first(&self) -> Option<ContextId> {
        let (sum, load) = self.sum();
        let eligible = self.queued().filter(|(_, it)| sum >= i128::from(it.at) * load);
        let is_running = |it: &(ContextId, &Runner)| Some(it.0) == self.running;
        if let Some((running, _)) = eligible.clone().find(|it| is_running(it) && it.1.is_protected)
        {
            return Some(running);
        }
        // Of those with the same deadline the running task is last.
        let key = |it: &(ContextId, &Runner)| (it.1.deadline, is_running(it), it.1.arrival);
        eligible.min_by_key(key).map(|(first, _)| first)
    }

    /// What a task has missed, within what counts.
    fn lag(&self, context: ContextId) -> i64 {
        let task = self.runner(context);
        let most = (2 * SLICE).max(self.steps.nanos()) * WEIGHT as i64 / task.weight;
        (self.average() - task.at).clamp(-most, most)
    }

    fn is_eligible(&self, context: ContextId) -> bool {
        let (sum, load) = self.sum();
        sum >= i128::from(self.runner(context).at) * load
    }

    /// The virtual time at which everybody would have had their share.
    fn average(&self) -> i64 {
        let (sum, load) = self.sum();
        if load == 0 { self.floor } else { sum.div_euclid(load) as i64 }
    }

    fn sum(&self) -> (i128, i128) {
        let weighed = |(_, it): (ContextId, &Runner)| {
            (i128::from(it.weight) * i128::from(it.at), i128::from(it.weight))
        };
        self.queued().map(weighed).fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1))
    }

    fn raise_floor(&mut self) {
        if let Some(lowest) = self.queued().map(|(_, it)| it.at).min() {
            self.floor = self.floor.max(lowest);
        }
    }

    fn queued(&self) -> impl Iterator<Item = (ContextId, &Runner)> + Clone {
        let all = self.tasks.iter().enumerate();
        let known = all.filter_map(|(number, it)| Some((ContextId(number as u32), it.as_ref()?)));
        known.filter(|(_, it)| it.place != Place::Away)
    }

    fn runner(&self, context: ContextId) -> &Runner {
        self.tasks[context.0 as usize].as_ref().expect("it has woken once")
    }

    fn task(&mut self, context: ContextId) -> &mut Runner {
        self.tasks[context.0 as usize].as_mut().expect("it has woken once")
    }
}

impl Runner {
    fn new(nice: i8) -> Runner {
        Runner {
            weight: libm::round(WEIGHT * libm::pow(1.25, -f64::from(nice))) as i64,
            place: Place::Away,
            at: 0,
            deadline: 0,
            lag: 0,
            is_protected: false,
            arrival: 0,
        }
    }

    /// A slice in its virtual time.
    fn slice(&self) -> i64 {
        SLICE * WEIGHT as i64 / self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 4_000_000;
    const FIRST: ContextId = ContextId(1);
    const SECOND: ContextId = ContextId(2);
    const URGENT: ContextId = ContextId(3);

    /// Within step `step`.
    fn at(step: u64) -> Instant {
        Instant::from_nanos(step * STEP + 1)
    }

    fn queue() -> Eevdf {
        Eevdf::new(Duration::from_nanos(STEP))
    }

    #[test]
    fn who_wakes_first_goes_first_among_equals() {
        let mut queue = queue();
        queue.wake(at(0), SECOND, 0, true);
        queue.wake(at(0), FIRST, 0, true);
        assert_eq!(queue.pick(at(0)), Some(SECOND));
        queue.sleep(at(0), false);
        assert_eq!(queue.pick(at(0)), Some(FIRST));
        queue.sleep(at(0), false);
        assert_eq!(queue.pick(at(0)), None);
    }

    #[test]
    fn a_new_task_goes_first_and_one_of_the_kernel_in_its_turn() {
        for (begins, next) in [(true, SECOND), (false, FIRST)] {
            let mut queue = queue();
            queue.wake(at(0), FIRST, 0, false);
            queue.wake(at(0), SECOND, 0, begins);
            assert_eq!(queue.pick(at(0)), Some(next));
        }
    }

    #[test]
    fn an_urgent_task_goes_before_those_that_wait_and_does_not_stop_the_one_that_runs() {
        let mut queue = queue();
        queue.wake(at(0), FIRST, 0, true);
        assert_eq!(queue.pick(at(0)), Some(FIRST));
        queue.wake(at(0), SECOND, 0, true);
        queue.wake(at(0), URGENT, -20, true);
        assert!(!queue.must_switch());
        queue.sleep(at(0), false);
        assert_eq!(queue.pick(at(0)), Some(URGENT));
    }

    #[test]
    fn who_runs_when_a_step_ends_lets_others_go_first() {
        let mut queue = queue();
        queue.wake(at(0), FIRST, 0, true);
        queue.wake(at(0), SECOND, 0, true);
        assert_eq!(queue.pick(at(0)), Some(FIRST));
        queue.account(at(1));
        assert!(queue.must_switch());
        assert_eq!(queue.pick(at(1)), Some(SECOND));
        // It has missed a step: it may sleep and still goes first when it is back.
        queue.sleep(at(1), false);
        assert_eq!(queue.pick(at(1)), Some(FIRST));
        queue.wake(at(1), SECOND, 0, true);
        assert!(queue.must_switch());
    }

    #[test]
    fn who_owes_time_stays_behind_after_a_sleep() {
        let mut queue = queue();
        queue.wake(at(0), FIRST, 0, true);
        queue.wake(at(0), SECOND, 0, true);
        assert_eq!(queue.pick(at(0)), Some(FIRST));
        queue.sleep(at(1), false);
        assert_eq!(queue.pick(at(1)), Some(SECOND));
        queue.wake(at(1), FIRST, 0, true);
        assert!(!queue.must_switch());
        queue.put_back();
        assert_eq!(queue.pick(at(1)), Some(SECOND));
    }

    #[test]
    fn nothing_is_owed_or_missed_by_a_task_that_wakes_alone() {
        let mut queue = queue();
        for (task, until) in [(SECOND, 1), (FIRST, 3)] {
            queue.wake(at(until - 1), task, 0, true);
            assert_eq!(queue.pick(at(until - 1)), Some(task));
            queue.sleep(at(until), false);
        }
        queue.wake(at(3), FIRST, 0, true);
        queue.wake(at(3), SECOND, 0, true);
        assert_eq!(queue.pick(at(3)), Some(FIRST));
    }

    #[test]
    fn work_that_was_put_off_waits_for_the_core_and_stops_who_runs_when_it_has_missed_a_step() {
        let mut queue = queue();
        queue.wake(at(0), FIRST, 0, true);
        assert_eq!(queue.pick(at(0)), Some(FIRST));
        queue.disturb(at(0));
        assert!(!queue.must_switch());
        queue.account(at(1));
        // The thread goes first and is done at once.
        assert_eq!(queue.pick(at(1)), Some(FIRST));
        queue.disturb(at(1));
        assert!(queue.must_switch());
        assert_eq!(queue.pick(at(1)), Some(FIRST));
    }

    #[test]
    fn computing_is_shared_by_weight() {
        let mut queue = queue();
        queue.wake(at(0), FIRST, 0, true);
        queue.wake(at(0), SECOND, -5, true);
        let mut steps = [0u32; 3];
        for step in 1..=4_000 {
            let running = queue.pick(at(step - 1)).expect("both are runnable");
            steps[running.0 as usize] += 1;
            queue.account(at(step));
        }
        // 1.25^5 = 3.05 times as much, to within a step each.
        assert!((2_990..=3_030).contains(&steps[2]), "{steps:?}");
    }
}
