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

/// So many of the slowest calls of each row are on a page.
const SLOWEST: usize = 5;

/// Says where the time of an experiment goes, why, and what to change.
pub fn explain(asked: &ExplainOptions) -> Result<bool, Error> {
    let plan = Plan::new(load::experiment(&asked.load)?)?;
    let json = Destination::asked("--json", asked.json.as_ref())?;
    let html = Destination::asked("--html", asked.html.clone().map(Some).as_ref())?;
    if html.is_some() && html == json {
        return Err(Error::bad(
            "--html",
            "it goes where --json goes",
            "another file for one of them",
        ));
    }
    let slowest = asked.slow.unwrap_or_default();
    let on_page = if asked.slow.is_some() { slowest } else { SLOWEST };
    let kept = if html.is_some() { on_page } else { slowest };
    let options = Options { slowest: kept, trials: asked.trials.unwrap_or(TRIALS) };
    let explained = explain_plan(&plan, options)?;
    if let Some(destination) = &html {
        let recorded = lab::picture::explained(&plan, &explained, on_page)?;
        let page = report::html::explain::page(&plan, &explained, recorded, on_page);
        destination.write(&page.to_html())?;
    }
    if html == Some(Destination::Stdout) {
        return Ok(true);
    }
    let document = || report::json::to_text(&report::explain::document(&explained));
    if json == Some(Destination::Stdout) {
        return print(document().as_bytes()).map(|()| true);
    }
    let style = style();
    let text = report::explain::text(&plan, &explained, slowest, &style);
    print(style.text(&text).as_bytes())?;
    json.map_or(Ok(()), |destination| destination.write(&document())).map(|()| true)
}
