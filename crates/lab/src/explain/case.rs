//! What detectors look at: a row of a plan, what came of it, and who called.

use super::account::{Caller, Part};
use super::finding::{Change, Finding, Remedy, Weight};
use crate::plan::Row;
use crate::quantity::{Kind, human};
use crate::result::RunResult;
use base::Duration;
use block::Shape;
use insight::Layer;

/// A part of somebody's time that is less than this is not worth a word.
const LEAST: f64 = 0.05;
/// From this part on it is a cause.
const CAUSE: f64 = 0.2;

/// A run that is to be explained.
pub struct Case<'a> {
    /// What was run.
    pub row: &'a Row,
    /// What came of it.
    pub result: &'a RunResult,
    /// Who called.
    pub callers: &'a [Caller],
}

impl<'a> Case<'a> {
    /// The scheduler's name in sysfs.
    pub fn scheduler(&self) -> &'static str {
        self.row.spec.name
    }

    /// The value of a tunable or a setting.
    pub fn value(&self, name: &str) -> Option<i64> {
        self.row.tunables.iter().find(|it| it.0 == name).map(|it| it.1)
    }

    /// Whether the kernel takes the disk for one that turns.
    pub fn turns(&self) -> bool {
        self.row.facts().rotational
    }

    /// Whether a task is the kernel's own.
    pub fn is_kernel(&self, name: &str) -> bool {
        !self.row.jobs.iter().any(|it| it.job.name == name)
    }

    /// Whether a task commits the journal or writes the log.
    pub fn is_journal(&self, name: &str) -> bool {
        name.starts_with("jbd2/") || name.starts_with("xfsaild/")
    }

    /// A finding about a caller, if the parts it is about are worth a word.
    pub fn finding(
        &self,
        name: &'static str,
        caller: &Caller,
        is_about: impl Fn(&Part) -> bool,
    ) -> Option<Finding> {
        let share = caller.share(&is_about);
        if share < LEAST {
            return None;
        }
        let parts: Vec<&Part> = caller.parts.iter().filter(|it| is_about(it)).collect();
        let cost = parts.iter().map(|it| it.time).fold(Duration::ZERO, |sum, it| sum + it);
        let worst = parts[0];
        let mut evidence = vec![
            format!(
                "{} of {} in {} {} calls of {}",
                time(cost),
                time(caller.total),
                caller.calls,
                caller.kind.name(),
                caller.job
            ),
            format!(
                "first at {} s; the longest in one call {}",
                seconds(worst.first.as_nanos()),
                time(worst.longest)
            ),
        ];
        evidence.extend(parts.iter().take(3).map(|it| line(it)));
        Some(Finding {
            name,
            weight: if share >= CAUSE { Weight::Cause } else { Weight::Note },
            title: String::new(),
            victim: caller.job.clone(),
            kind: caller.kind,
            culprit: worst.behind.clone().filter(|it| *it != caller.job),
            cost,
            share,
            evidence,
            mechanism: "",
            remedies: Vec::new(),
            first: (worst.first, worst.first_for),
            suspected: false,
        })
    }

    /// Schedulers that the kernel has besides, the plainest first.
    pub fn other_schedulers(&self, among: &[&'static str]) -> Vec<Remedy> {
        let kernel = self.row.spec.kernel;
        let has = |it: &&&str| sched::about_on(it, kernel).is_some() && **it != self.scheduler();
        let one = |name: &&'static str| {
            let command = format!("echo {name} > /sys/block/{}/queue/scheduler", crate::plan::DISK);
            Remedy::tried(command, Change::Scheduler(name.to_string()))
        };
        among.iter().filter(has).map(one).collect()
    }

    /// Tunables of the scheduler, those of them that it has.
    pub fn tunables(&self, values: &[(&'static str, i64)]) -> Option<Remedy> {
        let has = |name: &str| self.row.spec.tunable(name).is_some();
        let values: Vec<_> = values
            .iter()
            .copied()
            .filter(|it| has(it.0) && self.value(it.0) != Some(it.1))
            .collect();
        if values.is_empty() {
            return None;
        }
        let path = |name: &str| format!("/sys/block/{}/queue/iosched/{name}", crate::plan::DISK);
        let commands: Vec<String> =
            values.iter().map(|(name, value)| format!("echo {value} > {}", path(name))).collect();
        Some(Remedy::tried(commands.join("; "), Change::Tunables(values)))
    }

    /// The tunables of the scheduler that somebody has set, as they are by default.
    pub fn defaults(&self) -> Option<Remedy> {
        let spec = &self.row.spec;
        let names = spec.tunables.iter().filter_map(|(name, _)| spec.tunable(name));
        let values: Vec<_> = names.filter_map(|it| Some((it.name, it.default?))).collect();
        self.tunables(&values)
    }

    /// A setting of the queue or of memory.
    pub fn setting(&self, name: &'static str, value: i64) -> Option<Remedy> {
        if self.value(name) == Some(value) {
            return None;
        }
        let command = match name.starts_with("dirty_") {
            true => format!("sysctl vm.{name}={value}"),
            false => format!("echo {value} > /sys/block/{}/queue/{name}", crate::plan::DISK),
        };
        Some(Remedy::tried(command, Change::Setting(name, value)))
    }

    /// The kernel's schedulers that do nothing of their own, and those with deadlines.
    pub fn plain_schedulers(&self) -> Vec<Remedy> {
        match sched::shape_of(self.scheduler()) {
            Some(Shape::Single) => self.other_schedulers(&["deadline", "noop"]),
            _ => self.other_schedulers(&["mq-deadline", "none"]),
        }
    }

    /// Schedulers that share the disk out by weight.
    pub fn fair_schedulers(&self) -> Vec<Remedy> {
        self.other_schedulers(&["bfq", "cfq"])
    }
}

/// Whether time is spent waiting until the device gets a request.
pub fn waits(layer: Layer) -> bool {
    matches!(layer, Layer::Others | Layer::Full | Layer::Held(_) | Layer::Tag)
}

/// A time as people read it.
pub fn time(duration: Duration) -> String {
    human(duration.as_nanos() as f64, Kind::Time)
}

/// Seconds of a run, to the microsecond.
pub fn seconds(nanos: u64) -> String {
    format!("{:.6}", nanos as f64 / 1e9)
}

fn line(part: &Part) -> String {
    let behind = match (&part.behind, part.layer) {
        (Some(behind), Layer::Held(_)) => format!(", for {behind}"),
        (Some(behind), _) => format!(", behind {behind}"),
        (None, _) => String::new(),
    };
    format!("{}: {}{behind}, {} in {} calls", part.who, part.layer, time(part.time), part.calls)
}
