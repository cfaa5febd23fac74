//! Messages that tell when a kernel ran its queue.
//!
//! A run of the queue that issues nothing leaves no record, although the scheduler was asked. Three
//! events of a kernel with blk-mq tell of runs. Recordings of the linux world have them as
//! messages, of the task that each is of, in their place among the records.

/// The function that a worker runs the queue with, as /proc/kallsyms names it.
pub const FUNCTION: &str = "blk_mq_run_work_fn";

/// A worker will run the queue: `workqueue_queue_work` of that function.
pub const WANTED: &str = "workqueue_queue_work: blk_mq_run_work_fn";
/// A worker begins to run it: `workqueue_execute_start` of that function.
pub const BEGINS: &str = "workqueue_execute_start: blk_mq_run_work_fn";
/// A task leaves its core to sleep uninterruptibly: `sched_switch` with that state. It does while
/// it waits for a tag, and runs the queue before.
pub const SLEEPS: &str = "sched_switch: prev_state=D";

/// The events of tracefs that are recorded so, with the message of each, and which of them are
/// meant.
pub const EVENTS: [(&str, &str, Only); 3] = [
    ("workqueue/workqueue_queue_work", WANTED, Only::Function),
    ("workqueue/workqueue_execute_start", BEGINS, Only::Function),
    ("sched/sched_switch", SLEEPS, Only::Sleeps),
];

/// Which events of a kind are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Those of [`FUNCTION`].
    Function,
    /// Those of a task that sleeps uninterruptibly.
    Sleeps,
}

/// Whether a message is one of these.
pub fn tells(message: &[u8]) -> bool {
    EVENTS.iter().any(|(_, says, _)| says.as_bytes() == message)
}
