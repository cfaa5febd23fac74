//! When a recording shows that the scheduler withheld requests.
//!
//! A recording has no record for it. What it shows is a *gap*: the scheduler has requests, the
//! device has room, and nothing is issued. There is room if the device has fewer commands than it
//! had before. A gap that is longer than ten times what the host usually takes, and longer than
//! 100 us, is taken for withheld. The confidence is
//!
//! * high, if the device had nothing to do, and the scheduler had said that it waits;
//! * medium, if one of these is so;
//! * low, if none is.
//!
//! What the host usually takes is the median of the gaps below 1 ms so far: no scheduler waits
//! for so short a time on purpose, and no host takes longer as a rule.

use crate::life::Confidence;
use base::{Duration, Instant};
use block::HoldReason;

/// A gap longer than so many of the host's is none of it.
const TIMES: u64 = 10;
/// No gap below this is taken for withheld.
const LEAST: Duration = Duration::from_micros(100);
/// No gap above this counts for what the host usually takes.
const MOST: Duration = Duration::from_millis(1);
/// Bins of the gaps: eight for each doubling.
const BINS: usize = 8 * 20;

/// What was withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub reason: Option<HoldReason>,
    pub confidence: Confidence,
}

/// Judges gaps.
pub(super) struct Gaps {
    bins: [u32; BINS],
    count: u64,
    /// The scheduler has said that it waits, since the last issue.
    says: Option<HoldReason>,
}

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps { bins: [0; BINS], count: 0, says: None }
    }
}

impl Gaps {
    /// The scheduler says something.
    pub fn said(&mut self, text: &[u8]) {
        if let Some(waits) = meaning(text) {
            self.says = waits;
        }
    }

    /// A request is issued.
    pub fn issued(&mut self) {
        self.says = None;
    }

    /// A gap ends with an issue: whether requests were withheld in it. The
    /// device was idle, or had room at least.
    pub fn ends(&mut self, since: Instant, at: Instant, is_idle: bool) -> Option<Held> {
        let gap = at.saturating_since(since);
        let is_long = gap > LEAST && gap.as_nanos() > self.median() * TIMES;
        if gap < MOST {
            self.bins[bin_of(gap.as_nanos())] += 1;
            self.count += 1;
        }
        let confidence = match (is_idle, self.says.is_some()) {
            (true, true) => Confidence::High,
            (false, false) => Confidence::Low,
            _ => Confidence::Medium,
        };
        is_long.then_some(Held { reason: self.says, confidence })
    }

    /// What the host usually takes, in nanoseconds; zero while nothing is known.
    pub fn median(&self) -> u64 {
        let mut below = 0;
        let place = self.bins.iter().position(|count| {
            below += u64::from(*count);
            2 * below > self.count
        });
        place.map_or(0, lower_end)
    }
}

/// Eight bins for each doubling, by the three bits behind the highest.
fn bin_of(nanos: u64) -> usize {
    let power = nanos.max(8).ilog2();
    let rest = (nanos.max(8) >> (power - 3)) & 7;
    ((power as usize - 3) * 8 + rest as usize).min(BINS - 1)
}

fn lower_end(bin: usize) -> u64 {
    (8 + bin as u64 % 8) << (bin / 8)
}

/// Whether a scheduler says that it waits, and for what; or that it does not.
fn meaning(text: &[u8]) -> Option<Option<HoldReason>> {
    let (_, rest) = split_once(text, b' ')?;
    let rest = rest.trim_ascii_start();
    if rest.starts_with(b"arm_idle: ") {
        let group = rest.ends_with(b"group_idle: 1");
        let reason = if group { HoldReason::GroupIdles } else { HoldReason::ProcessIdles };
        return Some(Some(reason));
    }
    if rest.starts_with(b"idle timer fired")
        || rest.starts_with(b"select_queue: no queue returned")
        || rest.starts_with(b"may_budget_timeout: wait_request 1 ")
    {
        return Some(Some(HoldReason::ProcessIdles));
    }
    if rest.starts_with(b"Not idling") {
        return Some(None);
    }
    None
}

fn split_once(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == at)?;
    Some((&text[..place], &text[place + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cfq_and_bfq_say_is_understood() {
        use HoldReason::{GroupIdles, ProcessIdles};
        let said = |text: &str| meaning(text.as_bytes());
        assert_eq!(said("cfq13S  arm_idle: 8000000 group_idle: 0"), Some(Some(ProcessIdles)));
        assert_eq!(said("cfq67SN arm_idle: 8000000 group_idle: 1"), Some(Some(GroupIdles)));
        assert_eq!(said("cfq67SN Not idling. st->count:1"), Some(None));
        assert_eq!(said("cfq idle timer fired"), Some(Some(ProcessIdles)));
        assert_eq!(said("bfq select_queue: no queue returned"), Some(Some(ProcessIdles)));
        assert_eq!(said("cfq13S  insert_request"), None);
        assert_eq!(said(""), None);
    }

    #[test]
    fn a_gap_is_judged_by_the_hosts_own() {
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        let mut gaps = Gaps::default();
        for _ in 0..9 {
            assert_eq!(gaps.ends(at(0), at(20), true), None);
        }
        assert!((18_000..=20_000).contains(&gaps.median()), "{}", gaps.median());
        assert_eq!(gaps.ends(at(0), at(150), true), None);
        let medium = Held { reason: None, confidence: Confidence::Medium };
        assert_eq!(gaps.ends(at(0), at(250), true), Some(medium));
        gaps.said(b"cfq1S  arm_idle: 8000000 group_idle: 0");
        let reason = Some(HoldReason::ProcessIdles);
        assert_eq!(gaps.ends(at(0), at(8_000), true), Some(Held { reason, ..high() }));
        gaps.issued();
        assert_eq!(gaps.ends(at(0), at(8_000), true), Some(medium));
        let low = Held { confidence: Confidence::Low, ..medium };
        assert_eq!(gaps.ends(at(0), at(8_000), false), Some(low));
    }

    fn high() -> Held {
        Held { reason: None, confidence: Confidence::High }
    }

    #[test]
    fn a_bin_begins_with_its_lower_end() {
        for nanos in [8, 9, 15, 16, 17, 1000, 123_456, 999_999] {
            let bin = bin_of(nanos);
            assert!(lower_end(bin) <= nanos && (bin == BINS - 1 || nanos < lower_end(bin + 1)));
        }
    }
}
