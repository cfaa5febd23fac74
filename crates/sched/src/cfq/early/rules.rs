//! What differs between 2.6.28 and 2.6.32, as *Kernels* in `docs/rules/cfq-early.md` says.

use block::{Kernel, Version};

/// The rules of one kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// A call lets rounds of several requests of several queues go; else one request.
    pub dispatches_rounds: bool,
    /// What was left of a turn that was ended counts against the next one; else for it.
    pub adds_residual: bool,
    /// Whoever ends another's turn gets the key zero; else a second before the first.
    pub front_is_zero: bool,
    /// Seeks are those of an io_context, the first one from sector 0; else of a queue.
    pub seeks_by_context: bool,
    /// Real time ends the turns of others when it arrives.
    pub real_time_preempts: bool,
    /// Queues that go on close to each other are found, and merged.
    pub finds_cooperators: bool,
    /// A queue that is waited for goes on at once, whatever it gets.
    pub small_goes_at_once: bool,
    /// A plain read that has to be allocated is looked for among asynchronous queues.
    pub may_queue_by_flag: bool,
    /// Asynchronous requests are let go few at a time, and drained before somebody is waited for.
    pub throttles_async: bool,
    /// Nobody is waited for who thinks longer than the rest of the turn.
    pub minds_rest_of_turn: bool,
    /// Asynchronous requests can be held back for a while after synchronous ones.
    pub has_low_latency: bool,
}

impl Rules {
    pub fn of(kernel: &Kernel) -> Rules {
        let is_first = kernel.version < Version::V2_6_32;
        Rules {
            dispatches_rounds: is_first,
            adds_residual: is_first,
            front_is_zero: is_first,
            seeks_by_context: is_first,
            real_time_preempts: !is_first,
            finds_cooperators: !is_first,
            small_goes_at_once: is_first,
            may_queue_by_flag: is_first,
            throttles_async: !is_first,
            minds_rest_of_turn: !is_first,
            has_low_latency: !is_first,
        }
    }
}
