//! How tokens follow means of latency (rule kyber-15; kernels up to 4.19).
//!
//! While nothing is wrong nothing is measured. A request that the device had longer than its target
//! begins a window; at its end the mean latencies of reads and of synchronous writes are compared,
//! and the one that is worse off gets more of the device.

use super::rules::MOST_DOMAINS;

/// Windows in milliseconds: the first, and those that follow while something is to be put right.
pub(super) const FIRST_WINDOW_MS: u64 = 10;
pub(super) const NEXT_WINDOW_MS: u64 = 100;

const READ: usize = 0;
const SYNC_WRITE: usize = 1;
const OTHER: usize = 2;

/// How a domain's mean compares with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    /// At least twice the target.
    Awful,
    Bad,
    /// Nothing was done.
    Unknown,
    Good,
    /// At most half the target.
    Great,
}

impl Status {
    fn is_bad(self) -> bool {
        self < Status::Unknown
    }

    fn is_good(self) -> bool {
        self > Status::Unknown
    }
}

/// Latencies of the device within the window.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: u64,
    samples: u64,
}

impl Mean {
    fn status(self, target: u64) -> Status {
        match self.sum.checked_div(self.samples) {
            None => Status::Unknown,
            Some(mean) if mean >= target.saturating_mul(2) => Status::Awful,
            Some(mean) if mean > target => Status::Bad,
            Some(mean) if mean <= target / 2 => Status::Great,
            Some(_) => Status::Good,
        }
    }
}

/// Means of all domains.
#[derive(Clone, Debug, Default)]
pub(super) struct Means {
    means: [Mean; MOST_DOMAINS],
}

impl Means {
    /// The device had a request for so many nanoseconds, within a window.
    pub fn add(&mut self, domain: usize, io: u64) {
        self.means[domain].sum = self.means[domain].sum.saturating_add(io);
        self.means[domain].samples += 1;
    }

    /// A window ends: what the domains have from then on, and whether another one begins.
    pub fn adjust(
        &mut self,
        targets: &[u64; MOST_DOMAINS],
        most: &[u32; 3],
        depths: &mut [u32; 3],
    ) -> bool {
        let means = core::mem::take(&mut self.means);
        let [read, write] = [READ, SYNC_WRITE].map(|it| means[it].status(targets[it]));
        depths[READ] = of_rivals(depths[READ], read, write).clamp(1, most[READ]);
        depths[SYNC_WRITE] = of_rivals(depths[SYNC_WRITE], write, read).clamp(1, most[SYNC_WRITE]);
        let had_others = means[OTHER].samples > 0;
        depths[OTHER] = of_others(depths[OTHER], read, write, had_others).clamp(1, most[OTHER]);
        read.is_bad() || write.is_bad() || depths[OTHER] < most[OTHER]
    }
}

/// The tokens of reads or synchronous writes: who is worse off than the other gets more.
fn of_rivals(depth: u32, own: Status, other: Status) -> u32 {
    let both_good = own.is_good() && other.is_good();
    let both_bad = own.is_bad() && other.is_bad();
    if own == Status::Unknown || both_good || both_bad {
        return depth;
    }
    match (own, other) {
        (_, Status::Unknown) => depth + 1,
        (Status::Good, Status::Awful) => less(depth, 4),
        (Status::Good, _) => less(depth, 8),
        (Status::Great, Status::Awful) => less(depth, 2),
        (Status::Great, _) => less(depth, 4),
        (Status::Awful, Status::Great) => depth + 2,
        _ => depth + 1,
    }
}

/// The tokens of everything else.
fn of_others(depth: u32, read: Status, write: Status, had_others: bool) -> u32 {
    let status = match (read, write) {
        (Status::Unknown, Status::Unknown) => return depth + 2,
        _ if !had_others => return depth,
        (Status::Unknown, known) | (known, Status::Unknown) => known,
        (read, write) => read.max(write),
    };
    match status {
        Status::Great => depth + 2,
        Status::Good => depth + 1,
        Status::Bad => less(depth, 4),
        Status::Awful => less(depth, 2),
        Status::Unknown => depth,
    }
}

/// Less by a part, and by one at least.
fn less(depth: u32, part: u32) -> u32 {
    depth - (depth / part).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::{Awful, Bad, Good, Great, Unknown};

    #[test]
    fn a_mean_is_judged_by_its_target() {
        let status = |sum, samples| Mean { sum, samples }.status(100);
        let all = [status(0, 0), status(100, 2), status(51, 1), status(100, 1), status(101, 1)];
        assert_eq!(all, [Unknown, Great, Good, Good, Bad]);
        assert_eq!([status(199, 1), status(200, 1)], [Bad, Awful]);
    }

    #[test]
    fn who_is_better_off_gives_tokens_up() {
        let of = |own, other| of_rivals(64, own, other);
        assert_eq!([of(Good, Bad), of(Good, Awful)], [56, 48]);
        assert_eq!([of(Great, Bad), of(Great, Awful)], [48, 32]);
        assert_eq!([of(Bad, Good), of(Awful, Good), of(Awful, Great)], [65, 65, 66]);
        assert_eq!([of(Unknown, Awful), of(Good, Great), of(Bad, Awful)], [64; 3]);
        assert_eq!([of(Awful, Unknown), of(Great, Unknown)], [65; 2]);
        assert_eq!(of_rivals(1, Great, Awful), 0);
    }

    #[test]
    fn everything_else_has_what_the_better_of_both_allows() {
        let of = |read, write| of_others(32, read, write, true);
        assert_eq!([of(Great, Awful), of(Bad, Good), of(Unknown, Bad)], [34, 33, 24]);
        assert_eq!([of(Awful, Awful), of(Unknown, Unknown)], [16, 34]);
        assert_eq!(of_others(32, Awful, Bad, false), 32);
    }
}
