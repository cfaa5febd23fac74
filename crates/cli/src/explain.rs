//! `paternoster explain`.

use crate::arguments::ExplainOptions;
use crate::load;
use crate::output::{Destination, print};
use crate::terminal::style;
use lab::Error;
use lab::explain::{Options, explain as explain_plan};
use lab::plan::Plan;

/// Seeds with which a remedy is tried.
const TRIALS: usize = 2;

/// Says where the time of an experiment goes, why, and what to change.
pub fn explain(asked: &ExplainOptions) -> Result<bool, Error> {
    let plan = Plan::new(load::experiment(&asked.load)?)?;
    let json = Destination::asked("--json", asked.json.as_ref())?;
    let options =
        Options { slowest: asked.slow.unwrap_or_default(), trials: asked.trials.unwrap_or(TRIALS) };
    let explained = explain_plan(&plan, options)?;
    let document = || report::json::to_text(&report::explain::document(&explained));
    if json == Some(Destination::Stdout) {
        return print(document().as_bytes()).map(|()| true);
    }
    let style = style();
    let text = report::explain::text(&plan, &explained, options.slowest, &style);
    print(style.text(&text).as_bytes())?;
    json.map_or(Ok(()), |destination| destination.write(&document())).map(|()| true)
}
