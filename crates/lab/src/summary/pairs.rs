//! Why one scheduler is better than another: the same operations under both, and where the loser's
//! wait longer.
//!
//! Judged by a percentile, the operations are those of the loser that are nearest to it: so many
//! on either side as are half of what is above it, none of which takes twice or half as long. What
//! is far above could say something else than the percentile does. Judged by a mean or a rate, they
//! are all. An operation without a counterpart is left out and counted.

use super::JobColumn;
use crate::figure::{Figure, Layer, Point, What};
use crate::matrix::Report;
use crate::metrics::CallKind;
use crate::metrics::operations::{Operation, Operations, Place};
use crate::quantity::{Kind, human};

/// A place with less than this part of the difference is not told of (assumed).
const WORTH_A_WORD: f64 = 0.01;
/// A sentence has at most so many words.
const MOST_WORDS: usize = 25;

/// The operations of the best and the worst row, paired.
#[derive(Clone, Debug, Default)]
pub struct Paired {
    /// The row that is best, by its index in the plan.
    pub best: usize,
    /// The row that is worst.
    pub worst: usize,
    /// Which operations: those nearest to this point, or all.
    pub point: Option<Point>,
    /// What they are.
    pub call: Option<CallKind>,
    /// How many pairs there are, over all seeds.
    pub pairs: u64,
    /// How many of the worst's have no counterpart.
    pub unpaired: u64,
    /// How many operations only one of both has begun, whether or not they are at that point.
    pub left_out: u64,
    /// How many take the best at least as long as its own point.
    pub also_slow: u64,
    /// Whether they are a sample of all.
    pub sample: bool,
    /// The mean of the best's, by [`Place`], in nanoseconds.
    pub best_ns: [f64; Place::COUNT],
    /// The mean of the worst's.
    pub worst_ns: [f64; Place::COUNT],
}

impl Paired {
    /// The operations that a figure of a job is about, seed by seed; `None` where none is known.
    pub(super) fn of(
        figure: &Figure,
        job: &JobColumn,
        report: &Report,
        best: usize,
        worst: usize,
    ) -> Option<Paired> {
        let (call, point) = match figure.what {
            What::Call(kind, point) => (Some(kind), Some(point)),
            What::Layer(Layer::Syscall, point) => (None, Some(point)),
            What::Bandwidth(kind) | What::Iops(kind) => (kind, None),
            What::Elapsed => (None, None),
            What::Layer(..)
            | What::Throughput
            | What::Pass(_)
            | What::Commit(_)
            | What::Held
            | What::Busy
            | What::Sequential
            | What::Moved(_)
            | What::Written
            | What::AsyncWrites => return None,
        };
        let point = point.filter(|it| *it != Point::Mean);
        let mut paired = Paired { best, worst, point, call, ..Paired::default() };
        // Where nothing is left to chance one seed says it all.
        let seeds = if report.is_free_of_chance() { 1 } else { usize::MAX };
        let each = report.results_of(best).iter().zip(report.results_of(worst));
        for (ours, theirs) in each.take(seeds) {
            let (ours, theirs) = (ours.job(&job.name)?, theirs.job(&job.name)?);
            paired.add(&ours.operations, &theirs.operations);
        }
        let all = paired.pairs.max(1) as f64;
        paired.best_ns.iter_mut().chain(&mut paired.worst_ns).for_each(|it| *it /= all);
        (paired.pairs + paired.unpaired > 0).then_some(paired)
    }

    /// Adds the operations of one seed.
    fn add(&mut self, ours: &Operations, theirs: &Operations) {
        self.sample |= ours.is_sample() || theirs.is_sample();
        self.left_out += self.only_one_has(ours, theirs);
        let limit = ours.limit.min(theirs.limit);
        let (own, all) = (self.meant(ours, limit), self.meant(theirs, limit));
        let slow = match self.point {
            Some(Point::Over(bound)) => Some(bound),
            _ => own.get(self.place_of_point(own.len())).map(|it| it.total()),
        };
        for their in self.nearest(&all) {
            let Some(our) = ours.get(their.key) else {
                self.unpaired += 1;
                continue;
            };
            self.pairs += 1;
            self.also_slow += u64::from(slow.is_some_and(|slow| our.total() >= slow));
            for place in 0..Place::ALL.len() {
                self.best_ns[place] += our.parts[place].as_nanos() as f64;
                self.worst_ns[place] += their.parts[place].as_nanos() as f64;
            }
        }
    }

    /// The operations up to a scrambled name that are of the kind, the shortest first.
    fn meant<'o>(&self, all: &'o Operations, limit: u64) -> Vec<&'o Operation> {
        let is_meant = |it: &&Operation| self.call.is_none_or(|kind| kind == it.key.kind);
        let is_common = |it: &&Operation| limit == u64::MAX || it.key.scrambled() <= limit;
        let mut found: Vec<_> = all.kept.iter().filter(is_meant).filter(is_common).collect();
        found.sort_by_key(|it| it.total());
        found
    }

    /// Which of so many operations in order is at the point.
    fn place_of_point(&self, count: usize) -> usize {
        let hundredths = match self.point {
            Some(Point::Percentile(it)) => it as usize,
            _ => 10_000,
        };
        (count * hundredths).div_ceil(10_000).saturating_sub(1)
    }

    /// Of operations in order those nearest to the point, or all that are over the bound.
    fn nearest<'a, 'o>(&self, all: &'a [&'o Operation]) -> &'a [&'o Operation] {
        if self.point.is_none() || all.is_empty() {
            return all;
        }
        if let Some(Point::Over(bound)) = self.point {
            return &all[all.partition_point(|it| it.total() <= bound)..];
        }
        let place = self.place_of_point(all.len());
        let around = (all.len() - 1 - place) / 2;
        let point = all[place].total();
        let near = &all[place.saturating_sub(around)..=place + around];
        let from = near.partition_point(|it| it.total() * 2 < point);
        let to = near.partition_point(|it| it.total() <= point * 2);
        &near[from..to]
    }

    /// How many operations only one of two has begun.
    fn only_one_has(&self, ours: &Operations, theirs: &Operations) -> u64 {
        let tasks = ours.counts.len().max(theirs.counts.len());
        let count = |of: &Operations, task: usize, kind: CallKind| {
            of.counts.get(task).map_or(0, |it| it[kind as usize])
        };
        let kinds = CallKind::ALL.into_iter().filter(|it| self.call.is_none_or(|kind| kind == *it));
        let each = kinds.flat_map(|kind| (0..tasks).map(move |task| (task, kind)));
        each.map(|(task, kind)| count(ours, task, kind).abs_diff(count(theirs, task, kind))).sum()
    }

    /// What the worst takes longer than the best, by [`Place`], in nanoseconds.
    pub fn more_ns(&self) -> [f64; Place::COUNT] {
        std::array::from_fn(|place| self.worst_ns[place] - self.best_ns[place])
    }

    /// The same in words.
    pub(super) fn sentences(&self, best: &str, worst: &str) -> Vec<String> {
        let of = self.calls(self.pairs.max(self.unpaired));
        if self.pairs == 0 {
            return vec![format!("Nothing says why: {best} does not get as far as {of}.")];
        }
        let time = |nanos: f64| human(nanos, Kind::Time);
        let (ours, theirs): (f64, f64) = (self.best_ns.iter().sum(), self.worst_ns.iter().sum());
        let plural = self.pairs > 1;
        let (take, same) = if plural { ("take", "ones") } else { ("takes", "one") };
        let means = if plural { " (means)" } else { "" };
        let mut all = vec![format!(
            "Why: {of} {take} {} under {worst}, and the same {same} {} under {best}{means}.",
            time(theirs),
            time(ours)
        )];
        if theirs <= ours {
            all.push(match self.point {
                Some(_) => format!("So which ones are slow differs, and {best} has fewer of them."),
                None => "So how long each takes is not the reason.".to_string(),
            });
            return all;
        }
        all.extend(self.where_more(theirs - ours, best, worst));
        all.extend(self.also_slow(best));
        all.extend(self.without_counterpart(best, worst));
        all
    }

    /// `the 31 writes nearest to p99`.
    fn calls(&self, count: u64) -> String {
        let what = self.call.map_or("call", CallKind::name);
        let sampled = if self.sample { "sampled " } else { "" };
        match self.point {
            None if count == 1 => format!("the {sampled}{what}"),
            None => format!("{count} {sampled}{what}s"),
            Some(point @ Point::Over(_)) => {
                let plural = if count == 1 { "" } else { "s" };
                let bound = point.to_string().replace('_', " ");
                format!("the {count} {sampled}{what}{plural} {bound}")
            }
            Some(point) if count == 1 => format!("the {sampled}{what} at {point}"),
            Some(point) => format!("the {count} {sampled}{what}s nearest to {point}"),
        }
    }

    /// Where the worst loses, and where the best does.
    fn where_more(&self, difference: f64, best: &str, worst: &str) -> Vec<String> {
        let more = self.more_ns();
        let least = difference * WORTH_A_WORD;
        let of = |sign: f64| {
            let mut found: Vec<(Place, f64)> =
                Place::ALL.into_iter().zip(more.map(|it| it * sign)).collect();
            found.retain(|(_, nanos)| *nanos > 0.0 && *nanos >= least);
            found.sort_by(|a, b| b.1.total_cmp(&a.1));
            let each = found.into_iter();
            each.map(|(place, nanos)| format!("{} {}", human(nanos, Kind::Time), in_words(place)))
                .collect::<Vec<String>>()
        };
        let mut all = listed(&format!("Under {worst} they wait longer:"), &of(1.0));
        all.extend(listed(&format!("Under {best} they wait longer:"), &of(-1.0)));
        all
    }

    /// How many are slow under the best, too.
    fn also_slow(&self, best: &str) -> Option<String> {
        let point = self.point?;
        let (which, are) = match self.also_slow {
            0 if self.pairs == 1 => ("It".to_string(), "is not"),
            _ if self.pairs == 1 => ("It".to_string(), "is"),
            0 => ("None of them".to_string(), "is"),
            1 => ("One of them".to_string(), "is"),
            many => (format!("{many} of them"), "are"),
        };
        let slow = match point {
            Point::Over(_) => format!("that slow under {best}"),
            _ => format!("as slow as the {point} of {best}"),
        };
        Some(format!("{which} {are} {slow}."))
    }

    /// What is left out.
    fn without_counterpart(&self, best: &str, worst: &str) -> Option<String> {
        let what = self.call.map_or("call", CallKind::name);
        match self.point {
            Some(_) if self.unpaired > 0 => {
                let which = self.calls(self.pairs + self.unpaired);
                Some(format!("Of {which} {} have no counterpart under {best}.", self.unpaired))
            }
            None if self.left_out > 0 => {
                let plural = if self.left_out == 1 { "" } else { "s" };
                let left_out = self.left_out;
                Some(format!("Only one of {best} and {worst} has {left_out} more {what}{plural}."))
            }
            _ => None,
        }
    }
}

/// Sentences that list things, none of them too long.
fn listed(start: &str, things: &[String]) -> Vec<String> {
    let words = |text: &str| text.split_whitespace().count();
    let mut all: Vec<String> = Vec::new();
    for thing in things {
        match all.last_mut() {
            Some(last) if words(last) + words(thing) <= MOST_WORDS => {
                last.push_str(", ");
                last.push_str(thing);
            }
            None => all.push(format!("{start} {thing}")),
            Some(_) => all.push(format!("Besides: {thing}")),
        }
    }
    all.iter_mut().for_each(|it| it.push('.'));
    all
}

/// Where an operation waits.
fn in_words(place: Place) -> &'static str {
    match place {
        Place::Device => "in the device",
        Place::Tag => "for a free request",
        Place::Throttle => "for leave to write back",
        Place::Limits => "for limits of its control group",
        Place::Scheduler => "in the queue",
        Place::OthersDevice => "for the journal or writeback in the device",
        Place::OthersScheduler => "for the journal or writeback in the queue",
        Place::Nowhere => "in no layer (cores, page cache, locks)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::operations::Key;
    use base::Duration;

    /// Operations that take so many microseconds at each place.
    fn operations(each: impl IntoIterator<Item = [u64; Place::COUNT]>) -> Operations {
        let kept = each.into_iter().enumerate().map(|(number, parts)| {
            let key = Key { task: 0, kind: CallKind::Read, number: number as u64 };
            Operation { key, parts: parts.map(Duration::from_micros) }
        });
        let kept: Vec<Operation> = kept.collect();
        let counts = vec![[kept.len() as u64, 0, 0, 0]];
        Operations { kept, counts, limit: u64::MAX }
    }

    fn paired(point: Option<Point>, ours: &Operations, theirs: &Operations) -> Paired {
        let mut paired = Paired { point, call: Some(CallKind::Read), ..Paired::default() };
        paired.add(ours, theirs);
        paired
    }

    const P99: Option<Point> = Some(Point::Percentile(9900));

    #[test]
    fn a_percentile_is_told_by_what_is_near_it_and_not_by_what_is_far_above() {
        let ours = operations((0..1000).map(|_| [5, 0, 0, 0, 0, 0, 0, 0]));
        // Three of a thousand take a second; of the p99 they say nothing.
        let theirs = operations((0..1000).map(|it| {
            if it < 3 { [1_000_000, 0, 0, 0, 0, 0, 0, 0] } else { [0, 0, 0, 0, it, 0, 0, 0] }
        }));
        let paired = paired(P99, &ours, &theirs);
        assert_eq!((paired.pairs, paired.unpaired, paired.left_out), (11, 0, 0));
        let means = paired.worst_ns.map(|it| it / 11e3);
        assert_eq!(means, [0.0, 0.0, 0.0, 0.0, 992.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn what_only_one_has_is_counted() {
        let ours = operations((0..10).map(|_| [5, 0, 0, 0, 0, 0, 0, 0]));
        let theirs = operations((0..7).map(|_| [9, 0, 0, 0, 0, 0, 0, 0]));
        let all = paired(None, &ours, &theirs);
        assert_eq!((all.pairs, all.unpaired, all.left_out), (7, 0, 3));
        let all = paired(None, &theirs, &ours);
        assert_eq!((all.pairs, all.unpaired, all.left_out), (7, 3, 3));
    }

    #[test]
    fn what_contradicts_the_verdict_is_not_told_as_its_reason() {
        let (long, short) = ([9, 0, 0, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0, 0, 0]);
        let paired = paired(P99, &operations([long]), &operations([short]));
        let said = paired.sentences("cfq", "none").join(" ");
        assert!(!said.contains("longer"), "{said}");
    }

    #[test]
    fn no_sentence_is_longer_than_people_read() {
        let places: [[u64; Place::COUNT]; 3] =
            [[9; Place::COUNT], [900, 9, 0, 0, 900, 9, 900, 9], [1, 1, 0, 0, 900, 900, 900, 900]];
        let less = operations((0..2000).map(|_| [500, 5, 0, 0, 5, 500, 5, 5]));
        for (point, parts) in [None, P99].into_iter().flat_map(|it| places.map(|at| (it, at))) {
            for more in [1, 2, 2500] {
                let more = operations((0..more).map(|_| parts.map(|it| it * 2)));
                let mut paired = paired(point, &less, &more);
                paired.sample = true;
                for sentence in paired.sentences("mq-deadline@6.18", "none@6.18") {
                    let words = sentence.split_whitespace().count();
                    assert!(words <= MOST_WORDS, "{words}: {sentence}");
                }
            }
        }
    }
}
