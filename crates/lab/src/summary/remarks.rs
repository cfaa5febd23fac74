//! Remarks on what a reader of a table would not see in it: who starves, and what was asked for
//! without effect.

use super::findings::Findings;
use super::{JobColumn, Line};
use crate::figure::{Figure, Point, What};
use crate::matrix::Report;
use crate::metrics::CallKind;
use crate::plan::{PlannedJob, Row};
use crate::quantity::{Kind, human};
use crate::result::{JobResult, RunResult};
use crate::world::World;
use base::{Duration, Instant};
use block::Ioprio;
use programs::Sleep;
use programs::fio::{Fio, Job};

/// Who waits less than this does not starve (assumed: a second is what people notice).
const STARVED: f64 = 1e9;
/// Nor does who waits for so many times what is usual for it or less, unless it always waits for so
/// long (assumed).
const UNUSUAL: f64 = 100.0;
/// Who waits for so large a part of the run starves whatever is usual for it (assumed).
const MOST_OF_THE_RUN: f64 = 0.5;
/// Rows are told of so many.
const MOST_ROWS: usize = 2;

impl Findings<'_> {
    /// Who waits for long while the others go on.
    pub(super) fn starved(&self) -> Vec<String> {
        let kinds = CallKind::ALL.into_iter();
        let pairs = self.summary.jobs.iter().flat_map(|job| kinds.clone().map(move |it| (job, it)));
        pairs.filter_map(|(job, kind)| self.starved_in(job, kind)).collect()
    }

    fn starved_in(&self, job: &JobColumn, kind: CallKind) -> Option<String> {
        let wait = |line: &Line| {
            let at = |what| line.get(&job.figure(what)).map(|it| it.mean);
            let point = |point| at(What::Call(kind, point));
            let (max, median) = (point(Point::Max)?, point(Point::Percentile(5000))?);
            let whole = line.get(&Figure { job: None, what: What::Elapsed })?.mean;
            let is_unusual = max > UNUSUAL * median || max > MOST_OF_THE_RUN * whole;
            let is_usual = median >= STARVED;
            (max >= STARVED && (is_unusual || is_usual) && self.others_go_on(line, job))
                .then_some((max, median))
        };
        let mut found: Vec<(&Line, (f64, f64))> =
            self.lines().filter_map(|line| Some((line, wait(line)?))).collect();
        found.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
        let each = found.iter().take(MOST_ROWS).map(|(line, (max, median))| {
            let [max, median] = [max, median].map(|it| human(*it, Kind::Time));
            format!(
                "{} {max} (half of them at most {median})",
                self.report.plan.row_title(line.row)
            )
        });
        let each: Vec<String> = each.collect();
        let more = match found.len() - each.len() {
            _ if each.is_empty() => return None,
            0 => String::new(),
            more => format!("; and {more} more rows"),
        };
        let (name, call) = (&job.name, kind.name());
        Some(format!("{name} starves: its slowest {call} takes, under {}{more}.", each.join("; ")))
    }

    /// Whether another job has more of the disk.
    fn others_go_on(&self, line: &Line, job: &JobColumn) -> bool {
        let shares = || self.summary.jobs.iter().zip(&line.shares);
        let most = shares().map(|(_, share)| *share).fold(0.0, f64::max);
        shares().any(|(it, share)| it == job && *share < most)
    }

    /// Which rows ended before their jobs.
    pub(super) fn cut_off(&self) -> Option<String> {
        let Report { plan, .. } = self.report;
        let limit = |row: usize| self.report.results_of(row).iter().find_map(|it| it.cut_off_after);
        let cut = (0..plan.rows.len()).filter(|row| limit(*row).is_some());
        let mut cut = cut.peekable();
        let first = *cut.peek()?;
        let calls = limit(first)?;
        let what = match plan.rows[first].world {
            World::Sim => "I/O calls",
            World::Linux => "commands of the disk",
        };
        let whole = Figure { job: None, what: What::Elapsed };
        let when = |row: usize| {
            let line = self.summary.lines.iter().find(|line| line.row == row)?;
            let elapsed = human(line.get(&whole)?.mean, Kind::Time);
            Some(format!("{} after {elapsed}", plan.row_title(row)))
        };
        let each: Vec<String> = cut.filter_map(when).collect();
        let more = match each.len().saturating_sub(MOST_ROWS) {
            0 => String::new(),
            more => format!(" and {more} more rows"),
        };
        let named = each[..each.len().min(MOST_ROWS)].join(", ");
        Some(format!(
            "The jobs are longer than the runs, which ended after {calls} {what}: \
             {named}{more}. --duration or --calls set another end, --calls=all none."
        ))
    }

    /// Which jobs do not run at the same time, though nobody said so.
    pub(super) fn apart(&self) -> Vec<String> {
        apart(self.first_runs())
    }

    /// Each row with its first run.
    fn first_runs(&self) -> impl Iterator<Item = (&Row, &RunResult)> {
        let rows = self.report.plan.rows.iter().enumerate();
        rows.filter_map(|(at, row)| Some((row, self.report.results_of(at).first()?)))
    }

    /// Which weights nobody takes notice of.
    fn idle_weights(&self) -> Vec<String> {
        let rows = &self.report.plan.rows;
        let mut all: Vec<(&str, &str, Vec<&str>)> = Vec::new();
        for row in rows {
            for (file, reason) in row.idle_weights() {
                match all.iter_mut().find(|it| it.0 == file) {
                    Some((_, _, names)) if names.contains(&row.spec.name) => {}
                    Some((_, _, names)) => names.push(row.spec.name),
                    None => all.push((file, reason, vec![row.spec.name])),
                }
            }
        }
        let sentence = |(file, reason, names): &(&str, &str, Vec<&str>)| {
            format!("{file} has no effect under {}: {reason}.", names.join(", "))
        };
        all.iter().map(sentence).collect()
    }

    /// Whose priority the scheduler would heed, but never sees, as the flusher writes for them.
    fn priorities_of_nobody(&self) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        for (row, run) in self.first_runs().filter(|(row, _)| row.spec.honours_ioprio()) {
            for planned in row.jobs.iter().filter(|it| has_ioprio(it)) {
                if leaves_all_to_flusher(planned, run) && !names.contains(&&*planned.job.name) {
                    names.push(&planned.job.name);
                }
            }
        }
        (!names.is_empty()).then(|| {
            format!(
                "The I/O priority of {} has no effect: the flusher writes what goes through the \
                 page cache, with its own. A job that writes directly or syncs writes itself.",
                names.join(", ")
            )
        })
    }

    /// What was asked for and has no effect.
    pub(super) fn without_effect(&self) -> Vec<String> {
        let rows = &self.report.plan.rows;
        let mut sentences = Vec::new();
        let ignores = |row: &&Row| !row.spec.honours_ioprio();
        let mut names: Vec<String> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let name = self.report.plan.row_name(index);
            if ignores(&row) && !names.contains(&name) {
                names.push(name);
            }
        }
        let asks = rows.first().is_some_and(|row| row.jobs.iter().any(has_ioprio));
        if asks && !names.is_empty() {
            sentences.push(format!(
                "I/O priorities (ionice, ioprio, fio's prio) have no effect under {}.",
                names.join(", ")
            ));
        }
        sentences.extend(self.priorities_of_nobody());
        let mut told: Vec<String> = self.idle_weights();
        for row in rows {
            for (name, value) in &row.unchanged {
                let (label, version) = (row.spec.name, row.spec.kernel_name());
                let sentence =
                    format!("{name}={value} changes nothing: {label}@{version} has it anyway.");
                if !told.contains(&sentence) {
                    told.push(sentence);
                }
            }
        }
        sentences.extend(told);
        sentences
    }
}

/// Which jobs make their first call when another has made its last, each pair once.
pub fn apart<'r>(runs: impl Iterator<Item = (&'r Row, &'r RunResult)>) -> Vec<String> {
    let (mut pairs, mut told) = (Vec::new(), Vec::new());
    for (row, run) in runs {
        let late = row.jobs.iter().filter(|it| !is_delayed(it));
        for (late, early) in late.flat_map(|late| row.jobs.iter().map(move |it| (late, it))) {
            let pair = (&early.job.name, &late.job.name);
            let Some(gap) = gap(early, late, run).filter(|_| !pairs.contains(&pair)) else {
                continue;
            };
            pairs.push(pair);
            told.push(format!(
                "{} makes its first call {} after the last of {}: they do not run at the same \
                 time. Files can be made by setup, and start delays a job.",
                late.job.name,
                human(gap.as_nanos() as f64, Kind::Time),
                early.job.name
            ));
        }
    }
    told
}

/// From the last call of a job to the first of one that calls later.
fn gap(early: &PlannedJob, late: &PlannedJob, run: &RunResult) -> Option<Duration> {
    let ((_, last), (first, _)) = called(early, run).zip(called(late, run))?;
    (first > last).then(|| first.saturating_since(last))
}

/// From the first call of a job to its last.
fn called(planned: &PlannedJob, run: &RunResult) -> Option<(Instant, Instant)> {
    let names = planned.result_names();
    let all = names.iter().filter_map(|name| run.job(name)?.called);
    all.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

/// Whether a job writes and has sent the disk nothing itself.
fn leaves_all_to_flusher(planned: &PlannedJob, run: &RunResult) -> bool {
    let names = planned.result_names();
    let results: Vec<&JobResult> = names.iter().filter_map(|name| run.job(name)).collect();
    let writes = results.iter().any(|it| it.calls[CallKind::Write as usize].count > 0);
    writes && results.iter().all(|it| it.layers.device.count == 0)
}

/// Whether a job is told to begin later.
fn is_delayed(planned: &PlannedJob) -> bool {
    let waits = |it: &Job| !it.timing.start_delay.1.is_zero();
    let fio = planned.program.downcast::<Fio>();
    let parts = planned.program.parts();
    !planned.job.start.saturating_since(Instant::ZERO).is_zero()
        || parts.iter().any(|it| it.is::<Sleep>())
        || fio.is_some_and(|fio| fio.jobs().iter().any(waits))
}

/// Whether a job asks for a priority.
fn has_ioprio(planned: &PlannedJob) -> bool {
    let fio = planned.program.downcast::<Fio>();
    let of_fio = fio.is_some_and(|fio| fio.jobs().iter().any(|it| it.process.ioprio.is_some()));
    planned.job.ioprio != Ioprio::NONE || of_fio
}
