//! What is to be explained if not all calls are: those that make a figure what it is. Of a
//! percentile these are the calls that take as long or longer.

use super::account::Caller;
use super::actors::Actors;
use super::case::time;
use crate::error::Error;
use crate::figure::{Figure, Layer, Point, What};
use crate::metrics::CallKind;
use base::{Duration, Histogram};
use block::ContextId;
use std::collections::BTreeSet;

/// What a figure is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focus {
    name: String,
    job: Option<String>,
    kind: Option<CallKind>,
    point: Point,
}

/// Calls that are looked at, and no others.
#[derive(Clone, Debug)]
pub struct Only {
    tasks: BTreeSet<ContextId>,
    kind: Option<CallKind>,
    least: Duration,
}

impl Focus {
    /// The calls that a figure is of; `place` is where it was asked for.
    pub fn of(figure: &Figure, place: &str) -> Result<Focus, Error> {
        let (kind, point) = match figure.what {
            What::Call(kind, point) => (Some(kind), point),
            What::Layer(Layer::Syscall, point) => (None, point),
            What::Bandwidth(kind) | What::Iops(kind) => (kind, Point::Mean),
            _ => {
                let problem = format!("{figure} is not of calls");
                let accepted = "[JOB.]{read,write,sync,trim,syscall}_{p50,p99,…,mean,max}, \
                                [JOB.][read_|write_]{bw,iops}";
                return Err(Error::bad(place, problem, accepted));
            }
        };
        Ok(Focus { name: figure.to_string(), job: figure.job.clone(), kind, point })
    }

    /// The figure's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is of one job.
    pub fn names_a_job(&self) -> bool {
        self.job.is_some()
    }

    /// Whether some of somebody's calls are looked at.
    pub fn is_about(&self, job: &str, kind: CallKind) -> bool {
        self.job.as_ref().is_none_or(|it| it == job) && self.kind.is_none_or(|it| it == kind)
    }

    /// The calls that are looked at, of all that there are; nothing if there is none.
    pub fn only(&self, actors: &Actors, callers: &[Caller]) -> Option<Only> {
        let (mut times, mut tasks) = (Histogram::default(), BTreeSet::new());
        for it in callers.iter().filter(|it| self.is_about(&it.job, it.kind)) {
            it.by_layer.get(&None).into_iter().for_each(|all| times.merge(all.histogram()));
            tasks.extend(actors.tasks(&it.job));
        }
        let only = Only { tasks, kind: self.kind, least: self.least(&times) };
        (times.count() > 0).then_some(only)
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
        format!("There is no call that {} is of", self.name)
    }

    /// What is looked at, in a sentence.
    pub fn sentence(&self, looked_at: u64, all: u64, only: &Only) -> String {
        let least = time(only.least);
        match only.least.is_zero() {
            true => format!("Looked at for {}: {all} calls", self.name),
            false => format!(
                "Looked at for {}: {looked_at} of {all} calls, those of {least} and more",
                self.name
            ),
        }
    }
}

impl Only {
    /// Whether a call is one of them.
    pub fn has(&self, task: ContextId, kind: CallKind, took: Duration) -> bool {
        took >= self.least && self.kind.is_none_or(|it| it == kind) && self.tasks.contains(&task)
    }
}
