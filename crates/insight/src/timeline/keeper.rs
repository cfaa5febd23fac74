//! Which requests of a run are kept one by one, when there are too many for all: the first, those
//! around the slowest requests and calls, and some from all over the run.
//!
//! A run is cut into slices, each until so many requests or calls are done. A slice is kept or
//! dropped as a whole, so that what is shown of its time is complete.

use super::outline::Outline;
use super::{Arrow, CallBar, Held, Recorded};
use crate::life::Life;
use base::{Duration, Instant};

/// So many requests, or calls, end a slice.
const SLICE: usize = 2000;
/// So many slices are kept: half a million requests, and as many calls.
const MOST: usize = 250;
/// A fifth of them are the first ones.
const FIRST: usize = 5;
/// A quarter at most have the same distance.
const EVEN: usize = 4;

/// What was done between two times.
#[derive(Clone, Debug, Default)]
struct Slice {
    number: usize,
    from: Instant,
    to: Instant,
    /// How long the longest request or call took.
    longest: Duration,
    lives: Vec<Life>,
    /// Requests of the next slice that began in this one.
    begun: Vec<Life>,
    calls: Vec<CallBar>,
    arrows: Vec<Arrow>,
    held: Vec<Held>,
}

/// Keeps what a timeline shows.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// So many slices.
    most: usize,
    outline: Outline,
    open: Slice,
    kept: Vec<Slice>,
    has_dropped: bool,
    /// Slices whose number this divides are from all over the run.
    stride: usize,
}

impl Default for Keeper {
    fn default() -> Keeper {
        Keeper::with_room(MOST)
    }
}

impl Keeper {
    /// One that keeps so many slices of 2000 requests, or calls.
    pub fn with_room(most: usize) -> Keeper {
        Keeper {
            most,
            outline: Outline::default(),
            open: Slice::default(),
            kept: Vec::new(),
            has_dropped: false,
            stride: 1,
        }
    }

    /// A request is done. Requests come in the order in which they end.
    pub fn see(&mut self, life: &Life) {
        self.outline.see(life);
        let last = self.kept.last_mut().filter(|it| it.number + 1 == self.open.number);
        if let Some(last) = last.filter(|it| life.queued < it.to) {
            last.begun.push(life.clone());
        }
        self.open.longest = self.open.longest.max(life.end().saturating_since(life.queued));
        self.open.to = self.open.to.max(life.end());
        self.open.lives.push(life.clone());
        if self.open.lives.len() >= SLICE {
            self.close();
        }
    }

    /// A call has ended, with such steps from task to task.
    pub fn see_call(&mut self, call: CallBar, steps: impl IntoIterator<Item = Arrow>) {
        let took = call.to.saturating_since(call.from);
        self.open.longest = self.open.longest.max(took);
        // What it waited for is in slices before, as far as they are there.
        let during = self.kept.iter_mut().rev().take_while(|it| it.to > call.from);
        during.for_each(|it| it.longest = it.longest.max(took));
        self.open.to = self.open.to.max(call.to);
        self.open.calls.push(call);
        self.open.arrows.extend(steps);
        if self.open.calls.len() >= SLICE {
            self.close();
        }
    }

    /// The scheduler has withheld requests.
    pub fn see_held(&mut self, held: Held) {
        self.outline.see_held(&held);
        self.open.to = self.open.to.max(held.to);
        self.open.held.push(held);
        if self.open.held.len() >= SLICE {
            self.close();
        }
    }

    /// A slice is over, and another one may have to go.
    fn close(&mut self) {
        let (number, from) = (self.open.number + 1, self.open.to);
        let next = Slice { number, from, to: from, ..Slice::default() };
        self.kept.push(std::mem::replace(&mut self.open, next));
        if self.kept.len() <= self.most {
            return;
        }
        self.has_dropped = true;
        while self.kept.iter().filter(|it| self.is_even(it)).count()
            > self.most / FIRST + self.most / EVEN
        {
            self.stride *= 2;
        }
        // The last one stays until the next one is over, of which it needs what began in it.
        let others = self.kept[..self.most].iter().enumerate().filter(|(_, it)| !self.is_even(it));
        let dullest = others.min_by_key(|(_, it)| (it.longest, std::cmp::Reverse(it.number)));
        let (place, _) = dullest.expect("the first and the even ones are fewer");
        self.kept.remove(place);
    }

    /// Whether a slice is kept whatever is in it.
    fn is_even(&self, slice: &Slice) -> bool {
        slice.number < self.most / FIRST || slice.number.is_multiple_of(self.stride)
    }

    /// What there is at the end of the run.
    pub fn finish(mut self, end: Instant) -> Recorded {
        self.open.to = self.open.to.max(end);
        self.kept.push(self.open);
        let mut recorded = Recorded { end, ..Recorded::default() };
        if self.has_dropped {
            recorded.kept = spans(&self.kept);
            recorded.outline = Some(self.outline);
        }
        let mut slices = self.kept.into_iter().peekable();
        while let Some(slice) = slices.next() {
            recorded.lives.extend(slice.lives);
            recorded.calls.extend(slice.calls);
            recorded.arrows.extend(slice.arrows);
            recorded.held.extend(slice.held);
            if slices.peek().is_some_and(|next| next.number > slice.number + 1) {
                recorded.lives.extend(slice.begun);
            }
        }
        recorded
    }
}

/// The times of slices; of those that follow each other together.
fn spans(slices: &[Slice]) -> Vec<(Instant, Instant)> {
    let follow = slices.chunk_by(|one, other| one.number + 1 == other.number);
    follow.map(|it| (it[0].from, it[it.len() - 1].to)).collect()
}
