//! What a group has done in a direction of late, in slices of time, and how long a bio has to wait
//! for that (rules throttle-3 to throttle-5 and throttle-10).
//!
//! Times are the kernel's counter of ticks.

use super::io_max::Limit;
use super::message::{Said, Text};

/// How time is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Ticks a second.
    pub hz: u64,
    /// Ticks of a slice.
    pub slice: u64,
    /// Who waits for its turn does so for the time of one bio at least.
    pub waits_for_one: bool,
    /// What is carried over has no sign.
    pub carries_unsigned: bool,
}

impl Pace {
    fn rounded_up(self, ticks: u64) -> u64 {
        ticks.next_multiple_of(self.slice)
    }

    /// How much may be done in so many ticks; nothing if there is no number for it.
    fn try_in_ticks(self, rate: u64, ticks: u64) -> Option<i64> {
        let exact = u128::from(rate) * u128::from(ticks) / u128::from(self.hz);
        i64::try_from(exact).ok()
    }

    /// The same, or the largest number.
    fn in_ticks(self, rate: u64, ticks: u64) -> i64 {
        self.try_in_ticks(rate, ticks).unwrap_or(i64::MAX)
    }
}

/// What may still be done within a tick, in which time stands still for an account: whatever has
/// room needs no look at slices.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    tick: u64,
    bytes: i64,
    ios: i64,
}

/// When an account begins and ends, and what was done since it began. What was done may be negative
/// where an amount that was left is carried over that way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    start: u64,
    end: u64,
    bytes: i64,
    ios: i64,
    carried_bytes: i64,
    carried_ios: i64,
    room: Room,
}

impl Account {
    /// What was done: bytes and bios.
    pub fn done(&self) -> (i64, i64) {
        (self.bytes, self.ios)
    }

    /// When it began.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// What is carried over: bytes and bios.
    pub fn carried(&self) -> (i64, i64) {
        (self.carried_bytes, self.carried_ios)
    }

    /// A bio goes through if the last one did in the same tick and left room for it.
    #[inline]
    pub fn take_room(&mut self, now: u64, bytes: u64) -> bool {
        let Room { tick, bytes: most, ios } = self.room;
        if tick != now || ios <= 0 || most < bytes as i64 {
            return false;
        }
        (self.room.bytes, self.room.ios) = (most - bytes as i64, ios - 1);
        self.charge_bytes(bytes);
        self.charge_io();
        true
    }

    /// A bio whose bytes counted has gone through; what there is room for until the next tick.
    pub fn note_room(&mut self, now: u64, limit: Limit, keeps_one: bool, pace: Pace) {
        if !self.is_over(now) && self.settles(now, keeps_one, pace) > 0 {
            return;
        }
        let left =
            |allowed: i64, done: i64| if allowed > 0 { allowed.saturating_sub(done) } else { -1 };
        let bytes = limit.bps.map(|it| left(self.allowed_bytes(now, it, pace), self.bytes));
        let ios = limit.iops.map(|it| left(self.allowed_ios(now, it, pace), self.ios));
        let (bytes, ios) = (bytes.unwrap_or(i64::MAX), ios.unwrap_or(i64::MAX));
        self.room = Room { tick: now, bytes, ios };
    }

    /// Something else is to be done than to go through.
    pub fn forget_room(&mut self) {
        self.room = Room::default();
    }

    fn is_over(&self, now: u64) -> bool {
        !(self.start..=self.end).contains(&now)
    }

    /// Before it is looked at: a slice that is over begins anew if nothing waits, and another one
    /// goes on for a slice at least.
    pub fn refresh(&mut self, now: u64, is_empty: bool, pace: Pace, said: &mut Said) {
        if self.is_over(now) && is_empty {
            (self.carried_bytes, self.carried_ios) = (0, 0);
            self.restart(now, pace, said);
        } else {
            self.extend(now, now + pace.slice, pace, said);
        }
    }

    /// A new slice; what is carried over stays.
    pub fn restart(&mut self, now: u64, pace: Pace, said: &mut Said) {
        (self.bytes, self.ios) = (0, 0);
        (self.start, self.end) = (now, now + pace.slice);
        said.say(|| Text::NewSlice(self.start, self.end, now));
    }

    /// It goes on until then at least.
    pub fn extend(&mut self, now: u64, until: u64, pace: Pace, said: &mut Said) {
        if self.end < until {
            self.end = pace.rounded_up(until);
            said.say(|| Text::Extend(self.start, self.end, now));
        }
    }

    /// A child that has waited hands a bio up: if nothing was done here meanwhile, the time that
    /// the child has waited counts here, too.
    pub fn credit(&mut self, now: u64, since: u64, pace: Pace, said: &mut Said) {
        if !self.is_over(now) {
            return;
        }
        self.start = self.start.max(since);
        self.end = now + pace.slice;
        (self.bytes, self.ios, self.carried_bytes, self.carried_ios) = (0, 0, 0, 0);
        said.say(|| Text::Credit(self.start, self.end, now));
    }

    /// Bytes that may be done by the end of the slice that this tick is in.
    fn allowed_bytes(&self, now: u64, bps: u64, pace: Pace) -> i64 {
        let counted = pace.rounded_up((now - self.start).max(1));
        let allowed = pace.in_ticks(bps, counted).saturating_add(self.carried_bytes);
        if pace.carries_unsigned && allowed < 0 { i64::MAX } else { allowed }
    }

    /// The same of bios; the last tick of a slice is the next one's.
    fn allowed_ios(&self, now: u64, iops: u32, pace: Pace) -> i64 {
        let counted = pace.rounded_up(now - self.start + 1);
        let allowed = pace.in_ticks(u64::from(iops), counted).saturating_add(self.carried_ios);
        if pace.carries_unsigned && allowed < 0 { i64::from(u32::MAX) } else { allowed }
    }

    /// Ticks that a bio of so many bytes waits for, by bytes.
    pub fn wait_for_bytes(&self, now: u64, bps: Option<u64>, bytes: u64, pace: Pace) -> u64 {
        let Some(bps) = bps else { return 0 };
        let allowed = self.allowed_bytes(now, bps, pace);
        let wanted = self.bytes.saturating_add(bytes as i64);
        if allowed > 0 && wanted <= allowed {
            return 0;
        }
        let elapsed = now - self.start;
        let counted = pace.rounded_up(elapsed.max(1));
        let more = i128::from(wanted) - i128::from(allowed);
        let ticks = more.max(0) as u128 * u128::from(pace.hz) / u128::from(bps);
        u64::try_from(ticks).unwrap_or(u64::MAX / 2).clamp(1, u64::MAX / 2) + (counted - elapsed)
    }

    /// The same by their number.
    pub fn wait_for_ios(&self, now: u64, iops: Option<u32>, pace: Pace) -> u64 {
        let Some(iops) = iops else { return 0 };
        let allowed = self.allowed_ios(now, iops, pace);
        if allowed > 0 && self.ios < allowed {
            return 0;
        }
        let elapsed = now - self.start;
        let counted = pace.rounded_up(elapsed + 1);
        let whole = if pace.waits_for_one { pace.hz / u64::from(iops) + 1 } else { 0 };
        whole.max(counted - elapsed)
    }

    /// Bytes go through.
    pub fn charge_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes as i64);
    }

    /// A bio goes through.
    pub fn charge_io(&mut self) {
        self.ios += 1;
    }

    /// What must not wait goes through although it should, and is made up for later.
    pub fn borrow(&mut self, bytes: u64) {
        self.carried_bytes -= bytes as i64;
        self.carried_ios -= 1;
    }

    /// Ticks of whole slices that are over and could be settled.
    fn settles(&self, now: u64, keeps_one: bool, pace: Pace) -> u64 {
        let since = (now - self.start) / pace.slice * pace.slice;
        if keeps_one { since.saturating_sub(pace.slice) } else { since }
    }

    /// Whole slices that are over are settled. `keeps_one`: the last of them is not yet, and what
    /// is not limited is not counted.
    pub fn trim(&mut self, now: u64, limit: Limit, keeps_one: bool, pace: Pace, said: &mut Said) {
        if self.is_over(now) {
            return;
        }
        self.end = pace.rounded_up(now + pace.slice);
        let elapsed = self.settles(now, keeps_one, pace);
        if elapsed == 0 {
            return;
        }
        let (bytes, ios) = match keeps_one {
            true => self.settled_at_most(limit, elapsed, pace),
            false => self.allowed_in(limit, elapsed, pace),
        };
        if bytes <= 0 && ios <= 0 {
            return;
        }
        let less = |done: i64, settled: i64| match keeps_one {
            true => done - settled,
            false => done.saturating_sub(settled).max(0),
        };
        (self.bytes, self.ios) = (less(self.bytes, bytes), less(self.ios, ios));
        (self.carried_bytes, self.carried_ios) = (0, 0);
        self.start += elapsed;
        let slices = elapsed / pace.slice;
        said.say(|| Text::Trim { slices, bytes, ios, start: self.start, end: self.end, now });
    }

    /// What was allowed in so many ticks, as the largest numbers if it is not limited: bytes, bios.
    /// Numbers beyond what the kernel counts with are negative. Observed on 6.12.117: bytes=-1, and
    /// bdisp=65537 then; a group without any limit is not settled then.
    fn allowed_in(&self, limit: Limit, ticks: u64, pace: Pace) -> (i64, i64) {
        let (bps, iops) = (limit.bps.unwrap_or(u64::MAX), limit.iops.unwrap_or(u32::MAX));
        let bytes = pace.try_in_ticks(bps, ticks).unwrap_or(-1);
        let ios = pace.in_ticks(u64::from(iops), ticks).min(i64::from(u32::MAX)) as i32;
        let (carried_bytes, carried_ios) = self.carried();
        (bytes.saturating_add(carried_bytes), i64::from(ios) + carried_ios)
    }

    /// The same, but no more than was done. Where less than one was allowed all is settled that was
    /// done. Observed on 7.3.4: with wiops=7 every trim takes all (io=2).
    fn settled_at_most(&self, limit: Limit, ticks: u64, pace: Pace) -> (i64, i64) {
        let settled = |rate: Option<u64>, done: i64| match rate.map(|it| pace.in_ticks(it, ticks)) {
            None => 0,
            Some(0) => done,
            Some(most) => most.min(done),
        };
        (settled(limit.bps, self.bytes), settled(limit.iops.map(u64::from), self.ios))
    }

    /// What might have been done by now and was not, or was done too much: bytes and bios.
    pub fn left(&self, now: u64, limit: Limit, pace: Pace) -> (i64, i64) {
        let elapsed = now - self.start;
        let bytes = limit.bps.map_or(0, |it| pace.in_ticks(it, elapsed) - self.bytes);
        let ios = limit.iops.map_or(0, |it| pace.in_ticks(u64::from(it), elapsed) - self.ios);
        (bytes, ios)
    }

    /// That is carried over apart.
    pub fn carry(&mut self, (bytes, ios): (i64, i64)) {
        self.carried_bytes += bytes;
        self.carried_ios += ios;
    }

    /// A new slice in which so much is left from before.
    pub fn begin_with(&mut self, (bytes, ios): (i64, i64)) {
        (self.bytes, self.ios) = (-bytes, -ios);
    }
}
