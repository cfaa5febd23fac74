//! What ends the sleeps of tasks.
//!
//! A program's sleep may be longer than asked by the slack of the timer. Where the clock is as fine
//! as time, the timer fires when the first sleep must end, and ends all that may end by then: so
//! tasks that pause for as long as each other fall into step. Where the clock counts in steps, the
//! timer says when it fires.

use super::{AgendaItem, Clock};
use base::{Instant, Ticket};
use block::ContextId;
use std::collections::BTreeSet;

/// What ends the sleep of one context.
#[derive(Clone, Copy)]
struct Alarm {
    /// What is scheduled, and when the sleep is over at the latest.
    set: Option<(Ticket, Instant)>,
    /// From when on the timer may end the sleep, if it fires then for somebody else.
    may_wake: Instant,
    /// The sleep has no slack: it does not end before the clock says so.
    is_sharp: bool,
}

impl Alarm {
    const NONE: Alarm = Alarm { set: None, may_wake: Instant::FAR_FUTURE, is_sharp: false };
}

/// The alarms of all contexts, in order: a recording may have a hundred thousand that sleep.
#[derive(Default)]
pub(super) struct Alarms {
    of: Vec<Alarm>,
    /// Those that are set, by when they are due at the latest.
    due: BTreeSet<(Instant, ContextId)>,
    /// The same by from when on another's timer may end the sleep.
    may_wake: BTreeSet<(Instant, ContextId)>,
}

impl Alarms {
    /// When sleeps end.
    pub fn ends(&self) -> impl Iterator<Item = Instant> + '_ {
        self.due.iter().map(|it| it.0)
    }

    fn get(&self, context: ContextId) -> Alarm {
        self.of.get(context.0 as usize).copied().unwrap_or(Alarm::NONE)
    }

    fn change(&mut self, context: ContextId, change: impl FnOnce(&mut Alarm)) {
        let number = context.0 as usize;
        if number >= self.of.len() {
            self.of.resize(number + 1, Alarm::NONE);
        }
        let alarm = &mut self.of[number];
        if let Some((_, until)) = alarm.set {
            self.due.remove(&(until, context));
            self.may_wake.remove(&(alarm.may_wake, context));
        }
        change(alarm);
        if let Some((_, until)) = alarm.set {
            self.due.insert((until, context));
            self.may_wake.insert((alarm.may_wake, context));
        }
    }
}

impl Clock {
    /// Whether something is set to end the sleep of a context.
    pub fn has_alarm(&self, context: ContextId) -> bool {
        self.alarms.get(context).set.is_some()
    }

    /// Sees to it that something wakes a context at a point in time.
    pub fn set_alarm(&mut self, context: ContextId, at: Instant) {
        self.schedule_alarm(context, at, at);
    }

    /// The running task wants to sleep until `at`, or until an earlier point in time if a timer
    /// fires then.
    pub fn sleep(&mut self, context: ContextId, first: Instant, at: Instant) {
        if self.has_alarm(context) {
            return;
        }
        if self.timer.is_coarse() {
            let next = self.next_alarm();
            self.timer.sleep(self.now, at, next);
        }
        self.schedule_alarm(context, first, at);
    }

    /// From when on the timer may end the sleep of a context, if it fires for somebody else.
    pub fn may_wake(&mut self, context: ContextId, from: Instant) {
        self.alarms.change(context, |it| it.may_wake = from);
    }

    /// Whether the sleeps of a context have no slack.
    pub fn be_sharp(&mut self, context: ContextId, is_sharp: bool) {
        self.alarms.change(context, |it| it.is_sharp = is_sharp);
    }

    /// Nothing is to end the sleep of a context any more.
    pub fn cancel_alarm(&mut self, context: ContextId) {
        if let Some((ticket, _)) = self.alarms.get(context).set {
            self.agenda.cancel(ticket);
            self.alarms.change(context, |it| it.set = None);
        }
    }

    /// The time of an alarm has come, or that of a tick shortly before; whether the sleep ends at
    /// once. Otherwise the timer is to fire for it. A tick comes at its time too if another `timer`
    /// of the kernel was set to that.
    pub fn alarm_comes(&mut self, context: ContextId, timer: bool) -> bool {
        let Some((_, until)) = self.alarms.get(context).set else { return false };
        if !self.timer.is_coarse() {
            self.alarms.change(context, |it| it.set = None);
            return true;
        }
        let is_early = self.now < until;
        let ticket = if is_early && !timer && !self.timer.ticks(self.now) {
            self.agenda.schedule(until, AgendaItem::Alarm(context))
        } else {
            let fires = self.timer.fires(self.now);
            self.agenda.schedule(fires, AgendaItem::Fires(context))
        };
        self.alarms.change(context, |it| it.set = Some((ticket, until)));
        false
    }

    /// The timer has fired for a context; whether its sleep ends. A sleep without slack does not
    /// when the clock, which is behind, says that it is too early: the timer is set once more, if
    /// it ever is.
    pub fn alarm_fires(&mut self, context: ContextId) -> bool {
        let alarm = self.alarms.get(context);
        let may_be_early = alarm.is_sharp && !self.timer.works() && !self.fires_again.is_zero();
        let too_early = |until: &Instant| may_be_early && self.read() < *until;
        let again = alarm.set.map(|it| it.1).filter(too_early);
        let set = again.map(|until| {
            let fires = self.now + self.fires_again;
            (self.agenda.schedule(fires, AgendaItem::Fires(context)), until)
        });
        self.alarms.change(context, |it| it.set = set);
        set.is_none()
    }

    /// Takes the alarms away of those whose sleeps may have ended by now, in the order in which
    /// they had to.
    pub fn end_other_sleeps(&mut self) -> Vec<ContextId> {
        let may_end = self.alarms.may_wake.range(..=(self.now, ContextId(u32::MAX)));
        let of = may_end.filter_map(|(_, it)| Some((self.alarms.get(*it).set?.1, *it)));
        let mut sleepers: Vec<(Instant, ContextId)> = of.collect();
        sleepers.sort();
        for (_, sleeper) in &sleepers {
            self.cancel_alarm(*sleeper);
        }
        sleepers.into_iter().map(|(_, sleeper)| sleeper).collect()
    }

    /// When the first alarm is due.
    pub fn next_alarm(&self) -> Instant {
        self.alarms.due.first().map_or(Instant::FAR_FUTURE, |it| it.0)
    }

    fn schedule_alarm(&mut self, context: ContextId, first: Instant, at: Instant) {
        let ticket = self.agenda.schedule(first, AgendaItem::Alarm(context));
        self.alarms.change(context, |it| it.set = Some((ticket, at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Duration;

    const SLEEPER: ContextId = ContextId(7);

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// A clock at rest whose timer fires 10 ns late for a sleep that ends amid a step.
    fn fired(is_sharp: bool, fires_again: u64) -> Clock {
        let (step, tick) = (Duration::from_nanos(256), Duration::from_millis(4));
        let mut clock = Clock::new(step, tick, Duration::from_nanos(fires_again), None);
        clock.advance(at(256 * 10 + 9));
        clock.be_sharp(SLEEPER, is_sharp);
        let until = at(256 * 400 + 64);
        clock.sleep(SLEEPER, until, until);
        clock.advance(until);
        assert!(matches!(clock.pop_due(), Some(AgendaItem::Alarm(SLEEPER))));
        assert!(!clock.alarm_comes(SLEEPER, false));
        clock.advance(until + Duration::from_nanos(10));
        assert!(matches!(clock.pop_due(), Some(AgendaItem::Fires(SLEEPER))));
        clock
    }

    #[test]
    fn a_sleep_without_slack_does_not_end_before_the_clock_says_so() {
        let mut clock = fired(true, 501);
        assert!(clock.read() < at(256 * 400 + 64));
        assert!(!clock.alarm_fires(SLEEPER));
        assert!(clock.has_alarm(SLEEPER));
        clock.advance(at(256 * 400 + 74 + 501));
        assert!(matches!(clock.pop_due(), Some(AgendaItem::Fires(SLEEPER))));
        assert!(clock.alarm_fires(SLEEPER));
        assert!(!clock.has_alarm(SLEEPER));
    }

    #[test]
    fn a_sleep_with_slack_ends_when_the_timer_fires() {
        assert!(fired(false, 501).alarm_fires(SLEEPER));
    }

    #[test]
    fn where_the_timer_never_fires_again_every_sleep_ends_when_it_fires() {
        assert!(fired(true, 0).alarm_fires(SLEEPER));
    }
}
