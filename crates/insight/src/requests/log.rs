//! The states of the queue, one after the other, for whoever wants the parts of a request's time in
//! the order in which they happened.

use base::Instant;
use std::collections::VecDeque;

/// So many states are remembered. Of who waits for longer only the sums are known.
const REMEMBERED: usize = 1 << 20;

/// A state of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stand {
    /// Why the scheduler withholds what it has, by number, if it does.
    pub held: Option<usize>,
    /// The device has commands.
    pub works: bool,
    /// And has no room for more.
    pub is_full: bool,
}

/// Intervals, and what the queue did in each.
pub(super) type Stands = Vec<(Instant, Instant, Stand)>;

/// States, each with its beginning.
#[derive(Debug, Default)]
pub(super) struct Log {
    stands: VecDeque<(Instant, Stand)>,
}

impl Log {
    /// From a time on it stands like this.
    pub fn push(&mut self, since: Instant, stand: Stand) {
        if self.stands.back().is_some_and(|last| last.1 == stand) {
            return;
        }
        if self.stands.len() == REMEMBERED {
            self.stands.pop_front();
        }
        self.stands.push_back((since, stand));
    }

    /// Nobody waits: what was before the last state matters no more.
    pub fn forget(&mut self) {
        let last = self.stands.pop_back();
        self.stands.clear();
        self.stands.extend(last);
    }

    /// The states between two times, if all of them are remembered.
    pub fn between(&self, from: Instant, to: Instant) -> Stands {
        let first = self.stands.partition_point(|it| it.0 <= from);
        let Some(first) = first.checked_sub(1) else { return Vec::new() };
        let ends = self.stands.range(first + 1..).map(|it| it.0).chain([to]);
        let all = self.stands.range(first..).zip(ends);
        let all = all.take_while(|((since, _), _)| *since < to);
        all.map(|((since, stand), end)| ((*since).max(from), end.min(to), *stand)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_each_other_without_a_gap() {
        let at = Instant::from_nanos;
        let stand = |is_full| Stand { held: None, works: true, is_full };
        let mut log = Log::default();
        log.push(at(10), stand(false));
        log.push(at(20), stand(false));
        log.push(at(30), stand(true));
        let both = [(at(15), at(30), stand(false)), (at(30), at(40), stand(true))];
        assert_eq!(log.between(at(15), at(40)), both);
        assert_eq!(log.between(at(5), at(40)), [], "something was before");
        log.forget();
        assert_eq!(log.between(at(31), at(40)), [(at(31), at(40), stand(true))]);
    }
}
