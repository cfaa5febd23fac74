//! Recorded inputs, applied to a queue again.

use super::{Attach, RequestQueue};
use crate::input::Input;

impl RequestQueue {
    /// Applies recorded inputs to a queue that was made as the recorded one was. `build` makes a
    /// scheduler by name, for switches. Outputs are discarded; events are left in the queue's log.
    pub fn replay(&mut self, inputs: &[Input], build: &mut dyn FnMut(&str) -> Attach) {
        for input in inputs {
            self.apply(input, build);
            while self.pop_output().is_some() {}
        }
    }

    fn apply(&mut self, input: &Input, build: &mut dyn FnMut(&str) -> Attach) {
        match input {
            Input::IoContext(id, value) => self.define_io_context(*id, *value),
            Input::Exit(now, context, id) => self.exit_io_context(*now, *context, *id),
            Input::Cgroup(id, value) => self.define_cgroup(*id, value.clone()),
            Input::RemoveCgroup(now, context, id) => self.remove_cgroup(*now, *context, *id),
            Input::Mount(now) => self.note_mount(*now),
            Input::PrepareLimits(uptime, hierarchy) => self.prepare_limits(*uptime, *hierarchy),
            Input::LimitCgroup(now, id, limits) => self.limit_cgroup(*now, *id, *limits),
            Input::BeginRelease => self.begin_release(),
            Input::Release(now, by) => {
                self.release(*now, *by);
            }
            Input::Set(now, name, value) => {
                self.set(*now, name, *value).expect("a recorded setting was accepted once");
            }
            Input::Switch(now, context, name) => self.switch(*now, *context, build(name)),
            Input::DirtyPause(now) => self.note_dirty_pause(*now),
            Input::ThrottleByDefault(now) => self.throttle_by_default(*now),
            Input::StartPlug(context) => self.start_plug(*context),
            Input::Submit(now, bio, segments) => {
                self.submit_scattered(*now, *bio, segments.clone());
            }
            Input::FinishPlug(now, context, cpu, why) => {
                self.finish_plug(*now, *context, *cpu, *why);
            }
            Input::Complete(now, context, cpu, tag) => self.complete(*now, *context, *cpu, *tag),
            Input::Run(now, context, cpu) => self.run(*now, *context, *cpu),
            Input::LeaveRun(context) => self.leave_run(*context),
            Input::Timer(now, context, cpu) => self.timer(*now, *context, *cpu),
            Input::Requeue(now, context, cpu, tag) => self.requeue(*now, *context, *cpu, *tag),
            Input::Step(now, context) => {
                self.step(*now, *context);
            }
        }
    }
}
