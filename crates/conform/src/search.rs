//! What is not in a recording and must be found out: the phase of the tick, when the queue was run
//! without a trace, and in which word of a map a search begins that may begin anywhere.
//!
//! Of each that is taken which agrees with the kernel for longest. A phase is one number. A run or
//! a word is looked for only near a decision that differs without it, which is not judged.

use crate::agreement;
use crate::history::{History, Traced};
use crate::setup::Setup;
use crate::slots::{self, Assumed, Decision, Moment, Outcome, Until};
use base::Duration;
use std::collections::BTreeSet;

/// How many places within a tick are tried for its beginning.
const PHASES: u64 = 16;
/// And of a recording that lacks events.
const ROUGHLY: u64 = 4;

/// So many moments before a difference are tried, the last one first (assumed: a batch or two).
const TRIED: usize = 12;
/// A map of Kyber's tokens has so many words (rule tags-1).
const WORDS: u32 = 4;
/// After so many differences that no run explains, ours is another scheduler.
const UNEXPLAINED: usize = 6;
/// One of so many decisions at most may tell of runs (assumed: what needs more is no knowledge).
const TELLING: usize = 100;

/// The replay that agrees best.
pub struct Best {
    /// By how much ticks begin earlier.
    pub phase: Duration,
    /// What is assumed of runs that left no trace.
    pub assumed: Assumed,
    /// What came of it.
    pub outcome: Outcome,
    /// On which decisions both agree.
    pub agrees: Vec<bool>,
}

impl Best {
    /// Tries phases of the tick until one agrees in everything; then runs.
    pub fn of(history: &History, setup: &Setup) -> Best {
        let tick = setup.kernel.hz.tick();
        let step = if history.is_torn { (PHASES / ROUGHLY) as usize } else { 1 };
        let mut best: Option<Best> = None;
        for number in (0..phases(setup)).step_by(step) {
            let phase = match setup.ticks_begin_with_clock {
                true => before_ticks(tick),
                false => Duration::from_nanos(tick.as_nanos() * number / PHASES),
            };
            let one = Best::assuming(history, setup, phase, Assumed::default());
            if best.as_ref().is_none_or(|best| one.agreed(history) > best.agreed(history)) {
                best = Some(one);
            }
            if best.as_ref().is_some_and(|best| best.is_perfect(history)) {
                break;
            }
        }
        let best = best.expect("one was tried").with_runs(history, setup);
        if phases(setup) == 1 || best.phase.is_zero() || best.is_perfect(history) {
            return best;
        }
        // Where runs are missing, a wrong phase may agree better by chance.
        let first = Best::assuming(history, setup, Duration::ZERO, Assumed::default());
        let first = first.with_runs(history, setup);
        if first.agreed(history) >= best.agreed(history) { first } else { best }
    }

    fn assuming(history: &History, setup: &Setup, phase: Duration, assumed: Assumed) -> Best {
        let outcome = slots::replay(history, setup, phase, Until::End, &assumed);
        let agrees = if slots::follows(history, setup) {
            outcome.decisions.iter().map(Decision::agrees).collect()
        } else {
            agreement::common(&kernels(&outcome.decisions), &outcome.ours)
        };
        Best { phase, assumed, outcome, agrees }
    }

    fn agreed(&self, history: &History) -> usize {
        self.of_the_part(history).filter(|(_, agrees)| **agrees).count()
    }

    fn is_perfect(&self, history: &History) -> bool {
        self.agreed(history) == self.of_the_part(history).count()
    }

    /// Decisions that were not shown before, and whether both agree.
    fn of_the_part(&self, history: &History) -> impl Iterator<Item = (&Decision, &bool)> {
        let since = history.since;
        self.outcome.decisions.iter().zip(&self.agrees).filter(move |(it, _)| it.at >= since)
    }

    /// Looks for runs that explain what differs.
    fn with_runs(self, history: &History, setup: &Setup) -> Best {
        if self.outcome.moments.is_empty() || slots::follows(history, setup) {
            return self;
        }
        let search = Search { history, setup, phase: self.phase };
        let (assumed, told) = search.runs(self.outcome.decisions.len() / TELLING);
        if assumed.is_empty() {
            return self;
        }
        let mut other = Best::assuming(history, setup, self.phase, assumed);
        if other.agreed(history) <= self.agreed(history) {
            return self;
        }
        for number in told {
            let decision = &mut other.outcome.decisions[number];
            if decision.agrees() {
                (decision.told, decision.contested) = (true, false);
            }
        }
        other
    }
}

/// How many phases of the tick there may be.
fn phases(setup: &Setup) -> u64 {
    let is_open = setup.counts_ticks() && !setup.ticks_begin_with_clock;
    if is_open { PHASES } else { 1 }
}

/// Where ticks begin with the clock, a record takes time and bears that of its end (traced on
/// 6.12.117: what comes first after a tick has the time of one record). So what bears just the time
/// of a tick was before it. With this phase it is.
fn before_ticks(tick: Duration) -> Duration {
    Duration::from_nanos(tick.as_nanos() - 1)
}

/// The kernel's orders, by busy period.
pub fn kernels(decisions: &[Decision]) -> Vec<(u32, Traced)> {
    decisions.iter().map(|decision| (decision.period, decision.kernel)).collect()
}

/// Looks for runs that left no trace.
struct Search<'a> {
    history: &'a History,
    setup: &'a Setup,
    phase: Duration,
}

impl Search<'_> {
    /// Goes from difference to difference: what is to be assumed, and the numbers of the decisions
    /// that told.
    fn runs(&self, most: usize) -> (Assumed, BTreeSet<usize>) {
        let (mut assumed, mut told) = (Assumed::default(), BTreeSet::new());
        let (mut since, mut unexplained) = (0, 0);
        while told.len() < most && unexplained < UNEXPLAINED {
            let outcome = self.up_to_difference(since, &assumed);
            let Some(parted) = outcome.parted else { break };
            match self.explanation(&outcome, (since, parted), &assumed) {
                Some(found) => {
                    assumed = found;
                    let last = outcome.decisions.len().saturating_sub(1);
                    let is_choice = outcome.decisions.last().is_some_and(|it| !it.agrees());
                    told.extend(is_choice.then_some(last));
                }
                None => {
                    unexplained += 1;
                    since = parted + 1;
                }
            }
        }
        (assumed, told)
    }

    /// Of the runs that may have been or not just before a difference, the one with which both
    /// agree for longest.
    fn explanation(
        &self,
        outcome: &Outcome,
        (since, parted): (usize, usize),
        assumed: &Assumed,
    ) -> Option<Assumed> {
        let mut best = (parted, None);
        for other in alternatives(&outcome.moments, assumed) {
            let reached = self.up_to_difference(since, &other).parted;
            let reached_step = reached.unwrap_or(usize::MAX);
            if reached_step > best.0 {
                best = (reached_step, Some(other));
            }
            if reached.is_none() {
                break;
            }
        }
        best.1
    }

    fn up_to_difference(&self, since: usize, assumed: &Assumed) -> Outcome {
        slots::replay(self.history, self.setup, self.phase, Until::Parted(since), assumed)
    }
}

/// What else may be assumed of the last moments: of a search for a token that it begins in another
/// word than the first, of each run that it was or was not, of a worker that it has the core sooner
/// or later from then on, and of the last time that a scheduler withheld that it was asked once or
/// twice more. More often says nothing new where reads go before waiting writes twice, as is usual:
/// the third time counts from the start again (rule deadline-6).
fn alternatives(moments: &[Moment], assumed: &Assumed) -> Vec<Assumed> {
    let mut others = other_words(moments, assumed);
    let mut has_hold = false;
    let is_turn = |it: &&Moment| matches!(it, Moment::Turn(..));
    for moment in moments.iter().rev().filter(is_turn).take(TRIED) {
        if let Moment::Turn(step, first) = *moment
            && !assumed.goes_first.contains_key(&step)
        {
            let mut other = assumed.clone();
            other.goes_first.insert(step, !first);
            others.push(other);
        }
    }
    let is_run = |it: &&Moment| matches!(it, Moment::Run(..) | Moment::Hold(_));
    for moment in moments.iter().rev().filter(is_run).take(TRIED) {
        match *moment {
            Moment::Turn(..) | Moment::Search(..) => {}
            Moment::Run(step, _) if assumed.runs.contains_key(&step) => {}
            Moment::Run(step, ran) => {
                let mut other = assumed.clone();
                other.runs.insert(step, !ran);
                others.push(other);
            }
            Moment::Hold(step) if !has_hold && !assumed.more.contains_key(&step) => {
                has_hold = true;
                for more in 1..=2 {
                    let mut other = assumed.clone();
                    other.more.insert(step, more);
                    others.push(other);
                }
            }
            Moment::Hold(_) => {}
        }
    }
    others
}

/// The same of searches for tokens alone.
fn other_words(moments: &[Moment], assumed: &Assumed) -> Vec<Assumed> {
    let searches = moments.iter().rev().filter_map(|moment| match moment {
        Moment::Search(step, domain) => Some((*step, domain.clone())),
        _ => None,
    });
    let open = searches.filter(|search| !assumed.words.contains_key(search)).take(TRIED);
    open.flat_map(|search| {
        (1..WORDS).map(move |word| {
            let mut other = assumed.clone();
            other.words.insert(search.clone(), word);
            other
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Options;
    use lab::recording::manifest::Manifest;

    #[test]
    fn the_phase_of_a_tick_that_is_known_is_not_looked_for() {
        let phases = |text| {
            let manifest = Manifest::parse(text, "m").unwrap();
            phases(&Setup::new(&manifest, &Options::default(), "m").unwrap())
        };
        assert_eq!(phases("kernel: 6.12\nqueue/scheduler: [mq-deadline]\n"), PHASES);
        let known = "kernel: 6.12\nqueue/scheduler: [mq-deadline]\nticks: begin with the clock\n";
        assert_eq!(phases(known), 1);
    }

    #[test]
    fn what_bears_the_time_of_a_tick_was_before_it() {
        let tick = Duration::from_millis(4);
        let number = |nanos| {
            let at = base::Instant::from_nanos(nanos) + before_ticks(tick);
            at.as_nanos() / tick.as_nanos()
        };
        assert_eq!(number(4_000_000), number(3_999_744));
        assert_eq!(number(4_000_256), number(4_000_000) + 1);
    }

    #[test]
    fn what_is_near_and_was_not_assumed_yet_may_be_otherwise() {
        let mut known = Assumed::default();
        known.runs.insert(7, true);
        let holds = [Moment::Hold(5), Moment::Run(6, true), Moment::Run(7, true), Moment::Hold(8)];
        let others = alternatives(&holds, &known);
        let more: Vec<_> = others.iter().filter_map(|it| it.more.get(&8).copied()).collect();
        assert_eq!(more, [1, 2], "only the last time that it withheld");
        assert!(others.iter().all(|it| !it.more.contains_key(&5) && it.runs[&7]));
        assert_eq!(others.iter().filter(|it| it.runs.get(&6) == Some(&false)).count(), 1);
        assert_eq!(others.len(), 3);
        let many: Vec<Moment> = (0..100).map(|step| Moment::Run(step, false)).collect();
        assert_eq!(alternatives(&many, &Assumed::default()).len(), TRIED);
        let turns = [Moment::Turn(4, false), Moment::Turn(9, true)];
        let others = alternatives(&turns, &Assumed::default());
        let turned: Vec<_> = others.iter().flat_map(|it| &it.goes_first).collect();
        assert_eq!(turned, [(&9, &false), (&4, &true)]);
        let searches = [Moment::Search(4, "READ".into()), Moment::Search(9, "READ".into())];
        known.words.insert((9, "READ".into()), 1);
        let others = alternatives(&searches, &known);
        let words = others.iter().map(|it| it.words[&(4, "READ".to_string())]);
        assert_eq!(words.collect::<Vec<_>>(), [1, 2, 3]);
    }
}
