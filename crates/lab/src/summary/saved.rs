//! Results that were saved as JSON, for later ones to be held against.

use super::{ALIKE, Line, Summary};
use crate::error::Error;
use crate::matrix::Report;
use crate::plan::Row;
use crate::quantity::human;
use crate::statistics::Estimate;
use serde_json::Value;
use std::path::Path;

/// What was saved of the rows of a comparison.
#[derive(Debug)]
pub struct Saved {
    place: String,
    lines: Vec<Value>,
    /// The names of jobs in its results.
    jobs: Vec<String>,
    experiment: Value,
}

/// What came of holding results against saved ones, in sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// What is worse, or is missing now.
    pub failures: Vec<String>,
    /// What only one of both has without being missed.
    pub notes: Vec<String>,
}

/// What may differ between experiments whose rows are compared: how they are told, and what is of
/// single rows.
const MAY_DIFFER: [&str; 8] =
    ["title", "story", "origin", "schedulers", "axes", "seeds", "expect", "metric"];

/// What names the kernel, of an experiment and as an axis.
const KERNEL: &str = "kernel";

/// Two kernels whose rows are held against each other: the saved results have the one and no
/// other, and those of now the other and no other.
#[derive(Debug)]
struct Across {
    saved: String,
    now: String,
}

impl Across {
    fn of(saved: &Saved, report: &Report) -> Option<Across> {
        let only = |all: Vec<String>| <[String; 1]>::try_from(all).ok().map(|[it]| it);
        let saved = saved.lines.iter().filter_map(|line| line[KERNEL].as_str());
        let now: Vec<String> = report.plan.rows.iter().map(|it| it.spec.kernel_name()).collect();
        let saved = only(names(saved))?;
        let now = only(names(now.iter().map(String::as_str)))?;
        (saved != now).then_some(Across { saved, now })
    }
}

impl Saved {
    /// Reads what `--json` wrote.
    pub fn load(path: &Path) -> Result<Saved, Error> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|it| Error::unreadable(path, it))?;
        let document: Option<Value> = serde_json::from_str(&text).ok();
        let part = |name: &str| document.as_ref().and_then(|it| it.get(name)).cloned();
        let lines = part("summary").and_then(|it| it.as_array().cloned());
        let experiment = part("experiment").unwrap_or_default();
        let accepted = "a file that compare --json wrote";
        let results = part("results").and_then(|it| it.as_array().cloned()).unwrap_or_default();
        let jobs = results.iter().filter_map(|it| it["jobs"].as_array()).flatten();
        let jobs = names(jobs.filter_map(|it| it["jobname"].as_str()));
        match lines {
            Some(lines) => Ok(Saved { place, lines, jobs, experiment }),
            None => Err(Error::bad(place, "no results are in it", accepted)),
        }
    }

    /// What came out worse than it was saved, by the judged figure of each row that both have, and
    /// which rows and jobs only one of both has. A row that was saved has to be there now, unless
    /// the user chose other schedulers. One kernel may be held against another; that is said.
    /// Refused when they have no row in common.
    pub fn hold(&self, report: &Report, summary: &Summary, chosen: bool) -> Result<Held, Error> {
        let Some(main) = &summary.main else { return Ok(Held::default()) };
        let across = Across::of(self, report);
        self.check_experiment(&report.plan.experiment.to_json(), across.is_some())?;
        let (mut held, mut compared) = (Held::default(), 0);
        held.notes.extend(across.iter().map(|Across { saved, now }| {
            format!("kernel {saved} was saved, and kernel {now} is held against it")
        }));
        let mut found = vec![false; self.lines.len()];
        for line in &summary.lines {
            let title = report.plan.row_title(line.row);
            let place = self.lines.iter().position(|it| is_same(it, line, report, &across));
            let Some(place) = place else {
                held.notes.push(format!("{title} was not saved"));
                continue;
            };
            found[place] = true;
            let figure = &self.lines[place]["figures"][main.to_string()];
            let mean_and_width =
                || Some((figure["mean"].as_f64()?, figure["half_width_95"].as_f64()?));
            let Some(saved) = mean_and_width() else { continue };
            let Some(now) = line.get(main) else {
                held.failures.push(format!("{title} has no {main} now"));
                continue;
            };
            compared += 1;
            if is_worse(saved, now, main.what.less_is_better()) {
                let kind = main.what.kind();
                let (now, saved) = (now.human(kind), human(saved.0, kind));
                held.failures.push(format!("{title}: {main} is {now}; {saved} was saved"));
            }
        }
        let problem = || format!("it has {main} of no row that was run");
        let accepted = "results of the same schedulers and axes, judged alike";
        if compared == 0 {
            return Err(Error::bad(&self.place, problem(), accepted));
        }
        self.missing_rows(&found, report, (chosen, &across), &mut held);
        self.other_jobs(report, &mut held);
        Ok(held)
    }

    /// Rows that were saved and are not there now.
    fn missing_rows(
        &self,
        found: &[bool],
        report: &Report,
        (chosen, across): (bool, &Option<Across>),
        held: &mut Held,
    ) {
        let is_run = |line| report.plan.rows.iter().any(|row| is_alike(line, row, across));
        for (line, _) in self.lines.iter().zip(found).filter(|(_, found)| !**found) {
            let label = line["label"].as_str().unwrap_or_default();
            let axes = line["axes"].as_object().into_iter().flatten().map(|(name, value)| {
                format!("{name}={} ", value.as_str().map_or(value.to_string(), str::to_string))
            });
            let title = axes.collect::<String>() + label;
            match chosen && !is_run(line) {
                true => held.notes.push(format!("{title} was saved, and is not asked for")),
                false => held.failures.push(format!("{title} was saved, and was not run")),
            }
        }
    }

    /// Jobs that only one of both has.
    fn other_jobs(&self, report: &Report, held: &mut Held) {
        let now = report.results.iter().flat_map(|result| &result.jobs);
        let now = names(now.map(|job| job.name.as_str()));
        let missing = self.jobs.iter().filter(|it| !now.contains(it));
        held.failures.extend(missing.map(|it| format!("job {it} was saved, and is not there now")));
        let new = now.iter().filter(|it| !self.jobs.contains(it));
        held.notes.extend(new.map(|it| format!("job {it} was not saved")));
    }

    /// Both must be results of the same disk, file system, host, jobs and settings, and of the same
    /// kernels unless one is held against another.
    fn check_experiment(&self, now: &Value, is_across: bool) -> Result<(), Error> {
        let Some(keys) = now.as_object() else { return Ok(()) };
        let may_differ = |key: &str| MAY_DIFFER.contains(&key) || is_across && key == KERNEL;
        let mut other = keys.iter().filter(|(key, _)| !may_differ(key));
        let is_other = |(key, value): &(&String, &Value)| self.experiment[key.as_str()] != **value;
        let Some((key, value)) = other.find(is_other) else { return Ok(()) };
        let saved = &self.experiment[key.as_str()];
        let problem = format!("its {key} is {saved}, and {value} was run");
        let accepted = match key.as_str() {
            KERNEL => "results of the same kernels, or of one kernel where one is run",
            _ => "results of the same experiment",
        };
        Err(Error::bad(&self.place, problem, accepted))
    }
}

/// Whether a saved row is the one of a line.
fn is_same(saved: &Value, line: &Line, report: &Report, across: &Option<Across>) -> bool {
    let row = &report.plan.rows[line.row];
    let is_compared = |name: &str| across.is_none() || name != KERNEL;
    let axis = |(name, value): &(String, String)| match &saved["axes"][name] {
        Value::String(text) => text == value,
        other => other.as_i64().is_some_and(|it| value.parse() == Ok(it)),
    };
    let mut own = line.axes.iter().filter(|(name, _)| is_compared(name));
    let axes = saved["axes"].as_object().into_iter().flatten();
    saved["world"] == *row.world.to_string()
        && is_alike(saved, row, across)
        && axes.filter(|(name, _)| is_compared(name)).count() == own.clone().count()
        && own.all(axis)
}

/// Whether a saved row has the scheduler of a row, with the same tunables and on the same kernel,
/// unless one kernel is held against another.
fn is_alike(saved: &Value, row: &Row, across: &Option<Across>) -> bool {
    let label = saved["label"].as_str().unwrap_or_default();
    match across {
        None => label == row.spec.label(),
        Some(across) => label.replacen(&format!("@{}", across.saved), "", 1) == row.spec.short(),
    }
}

/// Each name once.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if names.iter().all(|it| it != name) {
            names.push(name.to_string());
        }
    }
    names
}

/// Whether a figure is worse by more than what both leave to chance.
fn is_worse((saved, half_width): (f64, f64), now: &Estimate, less_is_better: bool) -> bool {
    let more = now.mean - saved;
    let loss = if less_is_better { more } else { -more };
    loss > ALIKE * saved.abs() && loss > half_width + now.half_width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_another_experiment_are_refused() {
        let saved = |model: &str| Saved {
            place: "x.json".to_string(),
            lines: Vec::new(),
            jobs: Vec::new(),
            experiment: serde_json::json!({"model": model, "title": "a"}),
        };
        let now = serde_json::json!({"model": "null", "title": "b"});
        assert!(saved("null").check_experiment(&now, false).is_ok());
        let refused = saved("vm-disk").check_experiment(&now, false).unwrap_err().to_string();
        assert!(refused.contains("its model is \"vm-disk\", and \"null\" was run"), "{refused}");
        let now = serde_json::json!({"model": "null", "kernel": "6.12"});
        assert!(saved("null").check_experiment(&now, true).is_ok(), "one kernel for another");
        let refused = saved("null").check_experiment(&now, false).unwrap_err().to_string();
        assert!(refused.contains("or of one kernel where one is run"), "{refused}");
    }

    #[test]
    fn a_loss_counts_if_it_is_larger_than_chance() {
        let now = |mean: f64, half_width| Estimate { mean, half_width, ..Estimate::default() };
        assert!(is_worse((100.0, 1.0), &now(110.0, 1.0), true));
        assert!(!is_worse((100.0, 1.0), &now(110.0, 1.0), false));
        assert!(is_worse((100.0, 1.0), &now(90.0, 1.0), false));
        assert!(!is_worse((100.0, 9.0), &now(110.0, 2.0), true), "chance");
        assert!(!is_worse((100.0, 0.0), &now(102.0, 0.0), true), "a bin");
    }
}
