//! Results that were saved as JSON, for later ones to be held against.

use super::{ALIKE, Summary};
use crate::error::Error;
use crate::matrix::Report;
use crate::quantity::human;
use crate::statistics::Estimate;
use serde_json::Value;
use std::path::Path;

/// What was saved of the rows of a comparison.
#[derive(Debug)]
pub struct Saved {
    place: String,
    lines: Vec<Value>,
    experiment: Value,
}

/// What may differ between experiments whose rows are compared: how they are told, and what is of
/// single rows.
const MAY_DIFFER: [&str; 8] =
    ["title", "story", "origin", "schedulers", "axes", "seeds", "expect", "metric"];

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
        match lines {
            Some(lines) => Ok(Saved { place, lines, experiment }),
            None => Err(Error::bad(place, "no results are in it", accepted)),
        }
    }

    /// What came out worse than it was saved, in sentences: the judged figure of each row that both
    /// have. Refused when they have none in common.
    pub fn worse(&self, report: &Report, summary: &Summary) -> Result<Vec<String>, Error> {
        let Some(main) = &summary.main else { return Ok(Vec::new()) };
        self.check_experiment(&report.plan.experiment.to_json())?;
        let (mut worse, mut compared) = (Vec::new(), 0);
        for line in &summary.lines {
            let row = &report.plan.rows[line.row];
            let is_same = |it: &&Value| {
                let axis = |(name, value): &(String, String)| match &it["axes"][name] {
                    Value::String(text) => text == value,
                    other => other.as_i64().is_some_and(|it| value.parse() == Ok(it)),
                };
                let (world, label) = (row.world.to_string(), row.spec.label());
                it["world"] == *world && it["label"] == *label && line.axes.iter().all(axis)
            };
            let saved = self.lines.iter().find(is_same).and_then(|it| {
                let figure = &it["figures"][main.to_string()];
                Some((figure["mean"].as_f64()?, figure["half_width_95"].as_f64()?))
            });
            let (Some(saved), Some(now)) = (saved, line.get(main)) else { continue };
            compared += 1;
            if is_worse(saved, now, main.what.less_is_better()) {
                let kind = main.what.kind();
                let title = report.plan.row_title(line.row);
                let (now, saved) = (now.human(kind), human(saved.0, kind));
                worse.push(format!("{title}: {main} is {now}; {saved} was saved"));
            }
        }
        let problem = || format!("it has {main} of no row that was run");
        let accepted = "results of the same schedulers and axes, judged alike";
        match compared {
            0 => Err(Error::bad(&self.place, problem(), accepted)),
            _ => Ok(worse),
        }
    }

    /// Both must be results of the same disk, file system, host, jobs and settings.
    fn check_experiment(&self, now: &Value) -> Result<(), Error> {
        let Some(keys) = now.as_object() else { return Ok(()) };
        let mut other = keys.iter().filter(|(key, _)| !MAY_DIFFER.contains(&key.as_str()));
        let is_other = |(key, value): &(&String, &Value)| self.experiment[key.as_str()] != **value;
        let Some((key, value)) = other.find(is_other) else { return Ok(()) };
        let saved = &self.experiment[key.as_str()];
        let problem = format!("its {key} is {saved}, and {value} was run");
        Err(Error::bad(&self.place, problem, "results of the same experiment"))
    }
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
            experiment: serde_json::json!({"model": model, "title": "a"}),
        };
        let now = serde_json::json!({"model": "null", "title": "b"});
        assert!(saved("null").check_experiment(&now).is_ok());
        let refused = saved("vm-disk").check_experiment(&now).unwrap_err().to_string();
        assert!(refused.contains("its model is \"vm-disk\", and \"null\" was run"), "{refused}");
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
