//! What ends the sleeps of tasks.
//!
//! A program's sleep may be longer than asked by the slack of the timer. Where the clock is as fine
//! as time, the timer fires when the first sleep must end, and ends all that may end by then: so
//! tasks that pause for as long as each other fall into step. Where the clock counts in steps,
//! `clock` says when it fires.

use crate::clock::AgendaItem;
use crate::cores::Cause;
use crate::world::{Wait, World};
use base::Instant;
use block::ContextId;

impl World {
    /// The time of an alarm has come, or that of a tick shortly before.
    pub fn alarm(&mut self, context: ContextId) {
        let Some((_, until)) = self.context(context).alarm else { return };
        if !self.clock.is_coarse() {
            self.context(context).alarm = None;
            self.wake_sleeper(context);
            return self.end_other_sleeps();
        }
        let is_early = self.clock.now() < until;
        let ticket = if is_early && !self.clock.ticks() {
            self.clock.schedule(until, AgendaItem::Alarm(context))
        } else {
            let fires = self.clock.fires();
            self.clock.schedule(fires, AgendaItem::Fires(context))
        };
        self.context(context).alarm = Some((ticket, until));
    }

    /// The timer of a core whose clock counts in steps has fired for a task.
    pub fn alarm_fires(&mut self, context: ContextId) {
        self.context(context).alarm = None;
        self.interrupt(0, Cause::Alarm(context));
    }

    /// Ends the sleeps that may have ended by now, in the order in which they had to.
    fn end_other_sleeps(&mut self) {
        let now = self.clock.now();
        let may_end = self.contexts.iter().enumerate().filter(|(_, it)| it.may_wake <= now);
        let of = may_end.filter_map(|(number, it)| Some((it.alarm?.1, ContextId(number as u32))));
        let mut sleepers: Vec<(Instant, ContextId)> = of.collect();
        sleepers.sort();
        for (_, sleeper) in sleepers {
            if let Some((ticket, _)) = self.context(sleeper).alarm.take() {
                self.clock.cancel(ticket);
            }
            self.wake_sleeper(sleeper);
        }
    }

    /// A task has slept for as long as it wanted to at most.
    pub fn wake_sleeper(&mut self, context: ContextId) {
        if !matches!(self.context(context).wait, Wait::Nothing) {
            self.wake_from(context);
        }
    }

    /// When the first alarm is due.
    pub fn next_alarm(&self) -> Instant {
        let alarms = self.contexts.iter().filter_map(|it| Some(it.alarm?.1));
        alarms.min().unwrap_or(Instant::FAR_FUTURE)
    }
}
