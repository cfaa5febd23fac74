//! `paternoster explain`.

use crate::arguments::ExplainOptions;
use crate::events::{self, Requests};
use crate::load;
use crate::output::{Destination, check_that_they_differ, print};
use crate::progress;
use crate::terminal::style;
use insight::Life;
use insight::histogram::{Form, Layers, Service};
use insight::timeline::keeper::Keeper;
use lab::Error;
use lab::World;
use lab::experiment::input::{self, FileKind};
use lab::explain::account::{ACCEPTED_CALL, CallId};
use lab::explain::focus::Focus;
use lab::explain::{Explained, Options, explain as explain_plan, recorded};
use lab::plan::Plan;
use report::explain::histograms::{of_calls, of_requests};
use report::explain::recording::{self, Wanted};
use report::html::recording::page as page_of_recording;
use report::style::Style;
use std::path::Path;

/// Seeds with which a remedy is tried.
const TRIALS: usize = 2;
/// The option that says which calls are looked at.
const METRIC: &str = "--metric";
/// The option that names a call.
const CALL: &str = "--call";
/// So many of the slowest calls of each row are on a page.
const SLOWEST: usize = 5;

/// Says where the time of an experiment or of a recording went, why, and what to change.
pub fn explain(asked: &ExplainOptions) -> Result<bool, Error> {
    let input = asked.load.input.as_deref();
    if let Some(path) = input.filter(|path| is_recording(path, asked)) {
        return explain_recording(path, asked);
    }
    let plan = Plan::new(load::experiment(&asked.load)?)?;
    let (json, html) = outputs(asked)?;
    let events_to = events::asked(asked.events.as_ref())?;
    events_to.map_or(Ok(()), |it| events::check_plan(&plan, &plan.experiment.seeds[..1], it))?;
    let slowest = asked.slow.unwrap_or_default();
    let on_page = asked.slow.unwrap_or(SLOWEST);
    let kept = if html.is_some() { on_page } else { slowest };
    let focus = focus(&plan);
    let trials = asked.trials.unwrap_or(TRIALS);
    let otherwise = plan.metric.as_ref().map(Focus::of).filter(Focus::is_of_calls);
    let call = asked.call.as_ref().map(|it| CallId::parse(it, CALL)).transpose()?;
    let is_asked = focus.is_some();
    let options = Options { focus, is_asked, otherwise, slowest: kept, call, trials };
    let explained = progress::with_bar(|progress| explain_plan(&plan, options, progress))?;
    plan.check_metric(explained.iter().map(|it| &it.result))?;
    if let Some(text) =
        asked.call.as_ref().filter(|_| explained.iter().all(|it| it.picked.is_none()))
    {
        let slowest = explained.iter().flat_map(|it| it.slowest(1)).next();
        let such = slowest.map(|(caller, call)| {
            format!(", such as {} ({} of {})", CallId::of(call), caller.kind.name(), caller.job)
        });
        let accepted = format!("{ACCEPTED_CALL}{}", such.unwrap_or_default());
        return Err(Error::bad(CALL, format!("there is no call {text}"), accepted));
    }
    if let Some(file) = events_to {
        events::write(&plan, &plan.experiment.seeds[..1], file, true)?;
    }
    if let Some(destination) = &html {
        let recorded = lab::picture::explained(&plan, &explained, on_page)?;
        let page = report::html::explain::page(&plan, &explained, recorded, on_page);
        destination.write(&page.to_html())?;
    }
    let succeeded = explained.iter().all(|it| it.result.succeeded());
    if html == Some(Destination::Stdout) {
        return Ok(succeeded);
    }
    let style = style();
    let mut text = report::explain::text(&plan, &explained, slowest, &style);
    if let Some(form) = form(asked) {
        text.push_str(&histograms(&plan, &explained, form, &style)?);
    }
    let document = || report::json::to_text(&report::explain::document(&explained));
    write(json.as_ref(), document, || style.text(&text).into_owned())?;
    Ok(succeeded)
}

/// In what form histograms are wanted, if they are.
fn form(asked: &ExplainOptions) -> Option<Form> {
    asked.hist.as_ref().map(|form| match form.as_deref() {
        Some("bcc") => Form::Bcc,
        Some("json") => Form::Json,
        _ => Form::Bpftrace,
    })
}

/// Histograms of the requests of each row, which runs again for that, and of its callers.
fn histograms(
    plan: &Plan,
    explained: &[Explained],
    form: Form,
    style: &Style,
) -> Result<String, Error> {
    let rows = plan.rows.iter().filter(|row| row.world == World::Sim);
    let mut out = String::new();
    for (row, it) in rows.zip(explained) {
        let (mut layers, mut service) = (Layers::default(), Service::default());
        let mut see = |life: &Life| {
            layers.see(life);
            service.see(life);
        };
        lab::events::of(plan, row, it.result.seed, &mut see, None)?;
        if explained.len() > 1 && form != Form::Json {
            out.push_str(&format!("\n{}\n", it.label()));
        }
        out.push_str(&of_requests(&layers, &service, form, style));
        it.callers.iter().for_each(|caller| out.push_str(&of_calls(caller, form, style)));
    }
    Ok(out)
}

/// The calls that are to be looked at, if not all: those that a figure is of which somebody asks
/// for. One that an experiment names is what its schedulers are judged by.
fn focus(plan: &Plan) -> Option<Focus> {
    let place = plan.experiment.metric.as_ref().map(|(_, place)| place.as_str());
    plan.metric.as_ref().filter(|_| place == Some(METRIC)).map(Focus::of)
}

/// Where JSON and the page are wanted, if they are.
fn outputs(asked: &ExplainOptions) -> Result<(Option<Destination>, Option<Destination>), Error> {
    let json = Destination::asked("--json", asked.json.as_ref())?;
    let html = Destination::asked("--html", asked.html.clone().map(Some).as_ref())?;
    let events = asked.events.clone().map(Destination::File);
    check_that_they_differ(&[
        ("--json", json.as_ref()),
        ("--html", html.as_ref()),
        ("--events", events.as_ref()),
    ])?;
    Ok((json, html))
}

/// Whether a path is that of a recording, and not of something that is to be run. Who names a
/// scheduler wants a replay.
fn is_recording(path: &Path, asked: &ExplainOptions) -> bool {
    let is_there = path.exists() || !trace::blktrace::recording_files(path).is_empty();
    let is_trace = is_there && input::kind_of(path).is_ok_and(|kind| kind == FileKind::Trace);
    let runs = !asked.load.job.is_empty() || !asked.load.command.is_empty();
    is_trace && !runs && asked.load.scheduler.is_empty()
}

fn explain_recording(path: &Path, asked: &ExplainOptions) -> Result<bool, Error> {
    if asked.call.is_some() {
        let accepted = "--slow N, which shows its slowest requests";
        return Err(Error::bad(CALL, "a recording has no calls", accepted));
    }
    if let Some(option) = asked.load.of_runs() {
        let problem = format!("{} is a recording, which is not run", path.display());
        return Err(Error::bad(option, problem, "--scheduler as well, which replays it"));
    }
    let (json, html) = outputs(asked)?;
    let mut shown = Keeper::default();
    let options = recorded::Options {
        slowest: asked.slow.unwrap_or_default(),
        device: asked.load.trace_device.clone(),
        format: load::trace_options(&asked.load)?.reading.format,
    };
    let events_to = events::asked(asked.events.as_ref())?;
    let mut requests = events_to.map(|file| Requests::create(file)).transpose()?;
    let explained = recorded::explain(path, &options, &mut |life| {
        if let Some(requests) = &mut requests {
            requests.add(life);
        }
        if html.is_some() {
            shown.see(life);
        }
    })?;
    requests.map_or(Ok(()), Requests::finish)?;
    if let Some(destination) = &html {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let page = page_of_recording(&name, &explained, shown, asked.slow.unwrap_or(SLOWEST));
        destination.write(&page.to_html())?;
    }
    if html == Some(Destination::Stdout) {
        return Ok(true);
    }
    let wanted = Wanted { slow: options.slowest, histograms: form(asked) };
    let style = style();
    let text = || style.text(&recording::text(&explained, wanted, &style)).into_owned();
    let document = || report::json::to_text(&recording::document(&explained));
    write(json.as_ref(), document, text)
}

/// Writes JSON to where it is wanted, and the text unless both would go to the same place.
fn write(
    json: Option<&Destination>,
    document: impl Fn() -> String,
    text: impl Fn() -> String,
) -> Result<bool, Error> {
    if json == Some(&Destination::Stdout) {
        return print(document().as_bytes()).map(|()| true);
    }
    print(text().as_bytes())?;
    json.map_or(Ok(()), |destination| destination.write(&document())).map(|()| true)
}
