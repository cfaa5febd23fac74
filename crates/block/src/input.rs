//! The inputs of a queue, recorded so that a run can be replayed exactly.
//!
//! A queue is a function of its inputs. Whoever wants to repeat a run switches recording on, and
//! later applies the inputs in order to a queue that was set up the same way: every event comes out
//! the same.

use crate::bio::{Bio, CgroupId, ContextId, IoContextId};
use crate::command::Tag;
use crate::queue::{Attach, PlugFlush, RequestQueue};
use crate::scheduler::{Cgroup, IoContext};
use crate::segments::Segments;
use alloc::string::String;
use alloc::vec::Vec;
use base::Instant;

/// One call of a method of [`RequestQueue`] that changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// [`RequestQueue::define_io_context`].
    IoContext(IoContextId, IoContext),
    /// [`RequestQueue::exit_io_context`].
    Exit(Instant, ContextId, IoContextId),
    /// [`RequestQueue::define_cgroup`].
    Cgroup(CgroupId, Cgroup),
    /// [`RequestQueue::remove_cgroup`].
    RemoveCgroup(Instant, ContextId, CgroupId),
    /// [`RequestQueue::set`] that was accepted.
    Set(Instant, String, i64),
    /// [`RequestQueue::switch`], with the name of the scheduler (empty: none).
    Switch(Instant, ContextId, String),
    /// [`RequestQueue::start_plug`].
    StartPlug(ContextId),
    /// [`RequestQueue::submit_scattered`].
    Submit(Instant, Bio, Segments),
    /// [`RequestQueue::finish_plug`].
    FinishPlug(Instant, ContextId, u16, PlugFlush),
    /// [`RequestQueue::complete`].
    Complete(Instant, ContextId, u16, Tag),
    /// [`RequestQueue::run`].
    Run(Instant, ContextId, u16),
    /// [`RequestQueue::timer`].
    Timer(Instant, ContextId, u16),
    /// [`RequestQueue::requeue`].
    Requeue(Instant, ContextId, u16, Tag),
    /// [`RequestQueue::step`].
    Step(Instant, ContextId),
}

/// Applies recorded inputs to a queue that was made as the recorded one was. `build` makes a
/// scheduler by name, for switches. Outputs are discarded; events are left in the queue's log.
pub fn replay(queue: &mut RequestQueue, inputs: &[Input], build: &mut dyn FnMut(&str) -> Attach) {
    for input in inputs {
        apply(queue, input, build);
        while queue.pop_output().is_some() {}
    }
}

fn apply(queue: &mut RequestQueue, input: &Input, build: &mut dyn FnMut(&str) -> Attach) {
    match input {
        Input::IoContext(id, value) => queue.define_io_context(*id, *value),
        Input::Exit(now, context, id) => queue.exit_io_context(*now, *context, *id),
        Input::Cgroup(id, value) => queue.define_cgroup(*id, value.clone()),
        Input::RemoveCgroup(now, context, id) => queue.remove_cgroup(*now, *context, *id),
        Input::Set(now, name, value) => {
            queue.set(*now, name, *value).expect("a recorded setting was accepted once");
        }
        Input::Switch(now, context, name) => queue.switch(*now, *context, build(name)),
        Input::StartPlug(context) => queue.start_plug(*context),
        Input::Submit(now, bio, pieces) => queue.submit_scattered(*now, *bio, pieces.clone()),
        Input::FinishPlug(now, context, cpu, why) => queue.finish_plug(*now, *context, *cpu, *why),
        Input::Complete(now, context, cpu, tag) => queue.complete(*now, *context, *cpu, *tag),
        Input::Run(now, context, cpu) => queue.run(*now, *context, *cpu),
        Input::Timer(now, context, cpu) => queue.timer(*now, *context, *cpu),
        Input::Requeue(now, context, cpu, tag) => queue.requeue(*now, *context, *cpu, *tag),
        Input::Step(now, context) => {
            queue.step(*now, *context);
        }
    }
}

/// The recorder inside a queue.
#[derive(Default)]
pub(crate) struct Recorder {
    is_on: bool,
    inputs: Vec<Input>,
}

impl Recorder {
    /// Begins to keep inputs.
    pub fn start(&mut self) {
        *self = Recorder { is_on: true, inputs: Vec::new() };
    }

    /// Keeps an input, if recording.
    #[inline]
    pub fn push(&mut self, input: impl FnOnce() -> Input) {
        if self.is_on {
            self.keep(input());
        }
    }

    #[cold]
    fn keep(&mut self, input: Input) {
        self.inputs.push(input);
    }

    /// Ends recording and hands out what was kept.
    pub fn take(&mut self) -> Vec<Input> {
        core::mem::take(self).inputs
    }
}
