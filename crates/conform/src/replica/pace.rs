//! How time passed within the kernel's hooks.
//!
//! A recording has one time for what happened to a request, and a kernel's scheduler looks at its
//! clock more than once while it deals with that. Where it wrote messages on the way, their times
//! tell when; a scheduler of ours that says the same lets its clock go to that moment.
//!
//! The times below were fitted to what CFQ said in the recordings of 4.19.79, which were made in an
//! emulated machine (`docs/conform.md`). Another machine speaks faster or slower: they say nothing
//! about it.

use base::{Duration, Instant};
use block::HookClock;
use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

/// What is said longer after an event than this is not about it (fitted: a hook is over by then).
const WITHIN: Duration = Duration::from_micros(100);
/// How long it takes to say something; its time is that of the end (fitted: what passes
/// between an insertion and what is said first about it).
const SAYING: Duration = Duration::from_nanos(1_100);
/// A hook begins to say something so soon after its event, or says nothing (fitted: 4 us).
const BEGINS: Duration = Duration::from_micros(12);
/// So many letters tell two messages apart (fitted: to the words of CFQ).
const TELLING: usize = 20;

/// What a kernel's scheduler said, and when.
#[derive(Default)]
pub struct Pace {
    said: Vec<(Instant, String)>,
    /// How many of them are over.
    over: usize,
    until: Option<Instant>,
}

/// A pace that the replica and the log of its queue share.
#[derive(Clone, Default)]
pub struct SharedPace(Rc<RefCell<Pace>>);

impl SharedPace {
    pub fn replace(&self, pace: Pace) {
        self.0.replace(pace);
    }

    pub fn borrow(&self) -> Ref<'_, Pace> {
        self.0.borrow()
    }

    pub fn borrow_mut(&self) -> RefMut<'_, Pace> {
        self.0.borrow_mut()
    }
}

impl HookClock for SharedPace {
    fn said(&mut self, now: Instant, text: &str) -> Instant {
        self.borrow_mut().said(now, text).map_or(now, |then| now.max(then))
    }
}

impl Pace {
    pub fn new(said: impl IntoIterator<Item = (Instant, String)>) -> Pace {
        Pace { said: said.into_iter().collect(), ..Pace::default() }
    }

    /// How far it has come.
    pub fn place(&self) -> usize {
        self.over
    }

    /// It goes on from there.
    pub fn go_back(&mut self, place: usize) {
        self.over = place;
    }

    fn rest(&self) -> &[(Instant, String)] {
        &self.said[self.over..]
    }

    /// What is said at this moment or later is about something else.
    pub fn limit(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// When what led to an event at `now` began to be said, if that was after `last`.
    pub fn beginning(&mut self, last: Instant, now: Instant) -> Option<Instant> {
        while self.rest().first().is_some_and(|(at, _)| *at <= last || *at + WITHIN < now) {
            self.over += 1;
        }
        let at = self.rest().first().map(|(at, _)| *at).filter(|at| *at < now)?;
        Some(before_saying(at).max(last))
    }

    /// When something is begun to be said about an event that was at `now`.
    pub fn after(&self, now: Instant) -> Option<Instant> {
        let next = self.next_after(now).filter(|next| *next < now + BEGINS)?;
        Some(before_saying(next).max(now))
    }

    /// When something is said next.
    pub fn next_after(&self, now: Instant) -> Option<Instant> {
        let next = self.rest().iter().map(|(at, _)| *at).find(|at| *at >= now)?;
        self.until.is_none_or(|until| next < until).then_some(next)
    }

    /// When the kernel had said what is said now.
    pub fn said(&mut self, now: Instant, text: &str) -> Option<Instant> {
        while self.rest().first().is_some_and(|(at, _)| *at + WITHIN < now) {
            self.over += 1;
        }
        let is_near = |at: Instant| at < now + WITHIN && self.until.is_none_or(|until| at < until);
        let near = self.rest().iter().take_while(|(at, _)| is_near(*at));
        let place = near.map(|(_, said)| said).position(|said| is_same(said, text))?;
        self.over += place + 1;
        Some(self.said[self.over - 1].0)
    }
}

fn before_saying(at: Instant) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(SAYING.as_nanos()))
}

/// Whether two messages say the same, but for numbers.
fn is_same(one: &str, other: &str) -> bool {
    telling(one).eq(telling(other))
}

fn telling(text: &str) -> impl Iterator<Item = u8> + '_ {
    text.bytes().filter(|it| !it.is_ascii_digit() && *it != b'-').take(TELLING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn the_clock_goes_to_where_the_same_was_said() {
        let said = [(2, "cfq5S  insert_request"), (3, "cfq5S  add_to_rr"), (5, "cfq idle")];
        let mut pace = Pace::new(said.map(|(micros, text)| (at(micros), String::from(text))));
        assert_eq!(pace.beginning(at(1), at(3)), Some(at(1)), "not before the last");
        assert_eq!(pace.after(at(1)), Some(at(1)), "not before the event");
        assert_eq!(pace.said(at(1), "cfq2S  add_to_rr"), Some(at(3)));
        assert_eq!(pace.said(at(3), "cfq2S  insert_request"), None, "that was before");
        pace.limit(Some(at(5)));
        assert_eq!(pace.said(at(3), "cfq idle"), None);
        pace.limit(None);
        assert_eq!(pace.said(at(3), "cfq idle"), Some(at(5)));
    }
}
