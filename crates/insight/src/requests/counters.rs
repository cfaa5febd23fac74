//! In which state the queue spent its time so far, as counters that only grow.
//!
//! What a request spent in a state is the difference of a counter between two moments, so nobody
//! has to follow it while it waits.

use super::log::{Log, Stand};
use crate::life::Confidence;
use base::Instant;
use block::HoldReason;

/// Behind those of [`HoldReason::ALL`]: withheld for a reason that nobody knows.
pub(super) const UNKNOWN: usize = HoldReason::ALL.len();

/// Nanoseconds in each state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// The scheduler withheld requests, by reason.
    pub held: [u64; UNKNOWN + 1],
    /// Of that, what is a guess, by its confidence.
    pub guessed: [u64; 3],
    /// Nothing was withheld, and the device had no room.
    pub full: u64,
    /// Nothing was withheld, and the device had work and room for more.
    pub room: u64,
    /// Nothing was withheld, and the device had no work.
    pub idle: u64,
    /// The device had no room, whatever the scheduler did.
    pub no_room: u64,
    /// The device had a flush.
    pub flushing: u64,
}

impl Counters {
    /// The device worked and nothing was withheld.
    pub fn working(&self) -> u64 {
        self.full + self.room
    }

    /// What has been added since.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let mut held = self.held;
        held.iter_mut().zip(&earlier.held).for_each(|(it, before)| *it -= before);
        let mut guessed = self.guessed;
        guessed.iter_mut().zip(&earlier.guessed).for_each(|(it, before)| *it -= before);
        Counters {
            held,
            guessed,
            full: self.full - earlier.full,
            room: self.room - earlier.room,
            idle: self.idle - earlier.idle,
            no_room: self.no_room - earlier.no_room,
            flushing: self.flushing - earlier.flushing,
        }
    }
}

/// What is withheld, and how sure that is.
#[derive(Clone, Copy, Debug)]
struct Hold {
    reason: usize,
    guess: Option<Confidence>,
}

/// The state of the queue now, and how long it was in each.
#[derive(Debug, Default)]
pub(super) struct State {
    now: Instant,
    started: bool,
    pub counters: Counters,
    in_device: u32,
    flushes: u32,
    /// As many commands as the device takes, or as it was seen to have.
    depth: u32,
    depth_is_known: bool,
    hold: Option<Hold>,
    /// The states so far, where somebody wants them in order.
    pub log: Option<Log>,
}

impl State {
    /// A device that takes so many commands; if that is not known, it is the most it ever had.
    pub fn new(depth: Option<u32>) -> State {
        let (depth, depth_is_known) = (depth.unwrap_or(1).max(1), depth.is_some());
        State { depth, depth_is_known, ..State::default() }
    }

    /// Whether it is known how many commands the device takes.
    pub fn depth_is_known(&self) -> bool {
        self.depth_is_known
    }

    /// For how long others have gone before whoever waits: with the device at work, nothing
    /// withheld, and no room that is known of.
    pub fn others(&self) -> u64 {
        self.counters.full + if self.depth_is_known { 0 } else { self.counters.room }
    }

    /// The last moment that was seen.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Time passes in the state so far. A moment before the last one is taken for the last one.
    #[inline]
    pub fn pass(&mut self, at: Instant) {
        if at > self.now || !self.started {
            self.add_up(at);
        }
    }

    fn add_up(&mut self, at: Instant) {
        // Nothing is known of what was before the first event.
        let passed = if self.started { at.saturating_since(self.now).as_nanos() } else { 0 };
        let before = std::mem::replace(&mut self.now, at);
        self.started = true;
        let is_full = self.in_device >= self.depth;
        if let Some(log) = self.log.as_mut().filter(|_| passed > 0) {
            let held = self.hold.map(|hold| hold.reason);
            log.push(before, Stand { held, works: self.in_device > 0, is_full });
        }
        let counters = &mut self.counters;
        counters.no_room += if is_full { passed } else { 0 };
        counters.flushing += if self.flushes > 0 { passed } else { 0 };
        let Some(hold) = self.hold else {
            match self.in_device {
                0 => counters.idle += passed,
                _ if is_full => counters.full += passed,
                _ => counters.room += passed,
            }
            return;
        };
        counters.held[hold.reason] += passed;
        if let Some(confidence) = hold.guess {
            counters.guessed[confidence as usize] += passed;
        }
    }

    /// The scheduler withholds what it has.
    pub fn hold(&mut self, reason: Option<HoldReason>, guess: Option<Confidence>) {
        let reason = reason.map_or(UNKNOWN, |reason| reason as usize);
        self.hold = Some(Hold { reason, guess });
    }

    /// The scheduler has chosen something.
    pub fn release(&mut self) {
        self.hold = None;
    }

    /// The device was given a command.
    pub fn issue(&mut self, is_flush: bool) {
        self.in_device += 1;
        self.flushes += u32::from(is_flush);
        if !self.depth_is_known {
            self.depth = self.depth.max(self.in_device);
        }
    }

    /// It has one less.
    pub fn leave(&mut self, is_flush: bool) {
        self.in_device = self.in_device.saturating_sub(1);
        self.flushes = self.flushes.saturating_sub(u32::from(is_flush));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_full_when_it_has_what_it_takes_or_the_most_it_ever_had() {
        let at = Instant::from_nanos;
        let mut state = State::new(None);
        state.pass(at(10));
        state.issue(false);
        state.pass(at(11));
        state.issue(false);
        state.pass(at(13));
        state.leave(false);
        state.pass(at(17));
        assert_eq!((state.counters.full, state.counters.room, state.counters.idle), (3, 4, 0));
        let mut known = State::new(Some(2));
        known.pass(at(10));
        known.issue(false);
        known.pass(at(11));
        assert_eq!((known.counters.full, known.counters.room), (0, 1));
    }
}
