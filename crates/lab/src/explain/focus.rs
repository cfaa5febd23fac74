//! What is to be explained if not all calls are: those that make a figure what it is. Of a
//! percentile these are the calls that take as long or longer.

use super::account::Caller;
use super::actors::Actors;
use super::case::time;
use crate::RunResult;
use crate::figure::{Figure, Layer, Point, What};
use crate::metrics::CallKind;
use base::{Duration, Histogram};
use block::ContextId;
use std::collections::BTreeSet;

/// What a figure is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focus {
    figure: Figure,
    kinds: &'static [CallKind],
    point: Point,
    is_of_calls: bool,
}

/// Calls that are looked at, and no others.
#[derive(Clone, Debug)]
pub struct Only {
    tasks: BTreeSet<ContextId>,
    kinds: &'static [CallKind],
    least: Duration,
    /// What they make, if they all count alike.
    makes: Option<Makes>,
}

/// A figure that single calls make, each as much as another: a percentile, the longest, or how many
/// take too long.
#[derive(Clone, Debug)]
pub struct Makes {
    /// Its name.
    pub name: String,
    /// What it is, if that is a time.
    pub value: Option<Duration>,
}

/// All kinds of calls.
static ALL: [CallKind; 4] = CallKind::ALL;
/// Those by which a log is written.
static OF_LOGS: [CallKind; 2] = [CallKind::Write, CallKind::Sync];

impl Focus {
    /// The calls that a figure is of, or else those that are behind it.
    pub fn of(figure: &Figure) -> Focus {
        let (kinds, point) = match figure.what {
            What::Call(kind, point) => (of_kind(Some(kind)), point),
            What::Bandwidth(kind) | What::Iops(kind) => (of_kind(kind), Point::Mean),
            What::Commit(point) => (&OF_LOGS[..], point),
            What::Layer(_, point) => (&ALL[..], point),
            _ => (&ALL[..], Point::Mean),
        };
        let is_of_calls = matches!(
            figure.what,
            What::Call(..) | What::Bandwidth(_) | What::Iops(_) | What::Layer(Layer::Syscall, _)
        );
        Focus { figure: figure.clone(), kinds, point, is_of_calls }
    }

    /// Whether the figure is one of these calls, rather than one that they are behind.
    pub fn is_of_calls(&self) -> bool {
        self.is_of_calls
    }

    /// The figure's name.
    pub fn name(&self) -> String {
        self.figure.to_string()
    }

    /// Whether it is of one job.
    pub fn names_a_job(&self) -> bool {
        self.figure.job.is_some()
    }

    /// Whether there is such a figure in a run.
    pub fn is_in(&self, result: &RunResult) -> bool {
        self.is_of_calls || self.figure.value(result).is_some()
    }

    /// Whether some of somebody's calls are looked at.
    pub fn is_about(&self, job: &str, kind: CallKind) -> bool {
        self.figure.job.as_ref().is_none_or(|it| it == job) && self.kinds.contains(&kind)
    }

    /// The calls that are looked at, of all that there are; nothing if there is none.
    pub fn only(&self, actors: &Actors, callers: &[Caller]) -> Option<Only> {
        let (mut times, mut tasks) = (Histogram::default(), BTreeSet::new());
        for it in callers.iter().filter(|it| self.is_about(&it.job, it.kind)) {
            it.by_layer.get(&None).into_iter().for_each(|all| times.merge(all.histogram()));
            tasks.extend(actors.tasks(&it.job));
        }
        let makes = self.makes(&times);
        let only = Only { tasks, kinds: self.kinds, least: self.least(&times), makes };
        (times.count() > 0).then_some(only)
    }

    /// The figure, if single calls make it.
    fn makes(&self, times: &Histogram) -> Option<Makes> {
        let value = match self.point {
            Point::Mean => return None,
            Point::Over(_) => None,
            Point::Max => Some(times.max()),
            Point::Percentile(hundredths) => Some(times.quantile(hundredths, 10_000)),
        };
        self.is_of_calls.then(|| Makes { name: self.name(), value })
    }

    /// Whether all calls make the figure, as they do a mean.
    pub fn is_of_all(&self) -> bool {
        self.point == Point::Mean
    }

    /// What calls take at least that are looked at.
    fn least(&self, times: &Histogram) -> Duration {
        match self.point {
            Point::Mean => Duration::ZERO,
            Point::Over(bound) => bound,
            Point::Max => times.max(),
            // A histogram knows times within 1/128.
            Point::Percentile(hundredths) => {
                let about = times.quantile(hundredths, 10_000).as_nanos();
                Duration::from_nanos(about - about / 64)
            }
        }
    }

    /// The figure of a caller; that of all calls that take too long is their mean.
    pub fn value(&self, caller: &Caller) -> Duration {
        match self.point {
            Point::Mean | Point::Over(_) => caller.mean(),
            Point::Max => caller.longest,
            Point::Percentile(hundredths) => {
                let times = caller.by_layer.get(&None);
                times.map_or(Duration::ZERO, |it| it.histogram().quantile(hundredths, 10_000))
            }
        }
    }

    /// What is said where there is no such call.
    pub fn nothing(&self) -> String {
        format!("There is no call that {} is of", self.figure)
    }

    /// What is looked at, in a sentence.
    pub fn sentence(&self, looked_at: u64, all: u64, only: &Only) -> String {
        let (name, least) = (&self.figure, time(only.least));
        // Only such calls make the figure what it is; others have a part in it.
        let calls = if self.is_of_calls { "calls" } else { "calls that have a part in it" };
        let ranked = match only.makes {
            Some(_) => "Each counts alike, and findings are ranked by their share of it",
            None => "Findings are ranked by the time that they cost all of these",
        };
        let few = match only.least.is_zero() {
            true => format!("{all} {calls}"),
            false => format!("{looked_at} of {all} {calls}, those of {least} and more"),
        };
        format!("Looked at for {name}: {few}. {ranked}")
    }
}

impl Only {
    /// The figure that these calls make, each as much as another, if it is such a one.
    pub fn makes(&self) -> Option<&Makes> {
        self.makes.as_ref()
    }

    /// Whether a call is one of them.
    pub fn has(&self, task: ContextId, kind: CallKind, took: Duration) -> bool {
        took >= self.least && self.kinds.contains(&kind) && self.tasks.contains(&task)
    }
}

/// The kind alone, or all.
fn of_kind(kind: Option<CallKind>) -> &'static [CallKind] {
    let place = kind.and_then(|kind| ALL.iter().position(|it| *it == kind));
    place.map_or(&ALL, |place| &ALL[place..=place])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::METRICS;

    #[test]
    fn every_figure_has_calls_behind_it() {
        let figure = |text: &str| Figure::parse(text, &["log".to_string()], "x:1");
        for row in METRICS.iter() {
            let names = ["", "_p99", "_max"].map(|point| format!("{}{point}", row.name));
            let known: Vec<Figure> = names.iter().filter_map(|it| figure(it).ok()).collect();
            assert!(!known.is_empty(), "{}", row.name);
            assert!(known.iter().all(|it| !Focus::of(it).kinds.is_empty()));
        }
        let of = |text: &str| Focus::of(&figure(text).unwrap());
        let commit = of("log.commit_p99");
        assert!(commit.is_about("log", CallKind::Sync) && !commit.is_about("log", CallKind::Read));
        assert!(!commit.is_about("other", CallKind::Sync) && !commit.is_of_calls());
        assert!(of("log.sync_p99").is_of_calls());
        assert!(of("held").is_about("anybody", CallKind::Trim));
    }
}
