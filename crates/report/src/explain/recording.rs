//! What a recording says of where time went: layers by task, the tables of `btt` and `iostat`,
//! findings, histograms, slow requests.

use super::histograms::of_requests;
use super::{FINDINGS, caller_line, finding_text, paragraph, time};
use crate::style::{Paint, Style};
use base::{Duration, Instant};
use insight::Life;
use insight::histogram::Form;
use insight::intervals::{Interval, Intervals, Kind};
use lab::explain::finding::Change;
use lab::explain::recorded::Explained;
use serde_json::{Value, json};

/// So many callers are shown.
const CALLERS: usize = 12;
/// And so many lines of what the device did.
const LINES: usize = 20;

/// So many schedulers are named for a replay.
const REPLAYED: usize = 3;

/// What is wanted besides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// So many of the slowest requests, one by one.
    pub slow: usize,
    /// Histograms of the layers.
    pub histograms: Option<Form>,
}

/// All that is said about a recording.
pub fn text(it: &Explained, wanted: Wanted, style: &Style) -> String {
    let mut out = format!("{}\n", style.painted(&it.path, Some(Paint::Heading)));
    for line in about(it) {
        out.push_str(&paragraph(&line, style, "  ", "    "));
    }
    out.push_str(&heading("Where the time of requests went, by task", style));
    for caller in it.callers.iter().take(CALLERS) {
        out.push_str(&paragraph(&caller_line(caller, "requests"), style, "  ", "    "));
    }
    let more = it.callers.len().saturating_sub(CALLERS);
    if more > 0 {
        out.push_str(&format!("  {more} more in --json.\n"));
    }
    for (number, finding) in it.findings.iter().take(FINDINGS).enumerate() {
        out.push('\n');
        out.push_str(&finding_text(finding, &it.findings[..number], style));
    }
    if let Some(hint) = replaying(it) {
        out.push('\n');
        out.push_str(&paragraph(&hint, style, "  ", "  "));
    }
    if it.findings.is_empty() {
        out.push_str("\n  Nothing takes a noteworthy part of anybody's time.\n");
    }
    out.push_str(&heading("Phases, as btt has them", style));
    out.push_str(&format!("{}", it.phases));
    out.push_str(&heading("The device, as iostat -x has it", style));
    out.push_str(&device(&it.intervals.in_at_most(LINES)));
    if let Some(form) = wanted.histograms {
        out.push_str(&of_requests(&it.layers, &it.service, form, style));
    }
    it.slowest.iter().take(wanted.slow).for_each(|life| out.push_str(&slow(it, life, style)));
    out
}

fn heading(text: &str, style: &Style) -> String {
    format!("\n{}\n", style.painted(text, Some(Paint::Heading)))
}

/// How changes can be tried that are advised, if there are any.
fn replaying(it: &Explained) -> Option<String> {
    let remedies = || it.findings.iter().flat_map(|it| &it.remedies);
    remedies().find(|it| it.change.is_some())?;
    let others = remedies().filter_map(|it| match &it.change {
        Some(Change::Scheduler(name)) => Some(name.as_str()),
        _ => None,
    });
    let mut schedulers: Vec<&str> = it.known.scheduler.as_deref().into_iter().collect();
    for name in others {
        if !schedulers.contains(&name) {
            schedulers.push(name);
        }
    }
    let kernel = it.kernel.as_ref().map_or(String::new(), |it| format!(" --kernel {it}"));
    let schedulers = match schedulers.len() {
        0 => "NAME".to_string(),
        _ => schedulers[..schedulers.len().min(REPLAYED)].join(","),
    };
    Some(format!(
        "A recording does not tell what a change would have done. This replays what its tasks \
         asked for on a model of the disk: paternoster compare {} -s {schedulers}{kernel} \
         --model MODEL (paternoster list models)",
        it.path
    ))
}

/// What it is, and what is missing.
fn about(it: &Explained) -> Vec<String> {
    let known = &it.known;
    let seconds = known.elapsed.as_nanos() as f64 / 1e9;
    let mut first = format!(
        "{} records, {} requests, device {}, {seconds:.3} s",
        it.records, it.requests, it.device
    );
    if let Some(kernel) = &it.kernel {
        first.push_str(&format!(", kernel {kernel}"));
    }
    if let Some(scheduler) = &known.scheduler {
        let how = if known.by_messages { " (by its messages)" } else { "" };
        first.push_str(&format!(", scheduler {scheduler}{how}"));
    }
    let mut lines = vec![first];
    lines.extend(it.remarks.iter().cloned());
    let misfits = &it.misfits;
    let counts = [
        (misfits.completions, "completions of what nobody was seen to issue"),
        (misfits.lost, "requests of which nothing was heard again"),
        (it.unfinished as u64, "requests under way at the end"),
    ];
    let told = counts.iter().filter(|it| it.0 > 0).map(|(count, what)| format!("{count} {what}"));
    lines.extend(told);
    lines
}

/// The requests of a kind in an interval.
type Of = fn(&Interval) -> &Kind;

/// The columns of `iostat -x` of the kinds that there are, a line for each interval.
fn device(intervals: &Intervals) -> String {
    let kinds: [(&str, Of); 4] = [
        ("r", |it| &it.reads),
        ("w", |it| &it.writes),
        ("d", |it| &it.discards),
        ("f", |it| &it.flushes),
    ];
    let is_there = |of: &Of| intervals.all().iter().any(|it| of(it).requests > 0);
    let kinds: Vec<_> = kinds.iter().filter(|it| is_there(&it.1)).collect();
    let mut out = format!("{:>9}", "time");
    for (name, _) in &kinds {
        out.push_str(&format!("{:>9}", format!("{name}/s")));
        if *name != "f" {
            let (rate, merges) = (format!("{name}kB/s"), format!("{name}rqm/s"));
            out.push_str(&format!("{rate:>10}{merges:>8}"));
        }
        out.push_str(&format!("{:>9}", format!("{name}_await")));
        if *name != "f" {
            out.push_str(&format!("{:>10}", format!("{name}areq-sz")));
        }
    }
    out.push_str(&format!("{:>8}{:>8}\n", "aqu-sz", "%util"));
    let seconds = intervals.every().as_nanos() as f64 / 1e9;
    for (number, interval) in intervals.all().iter().enumerate() {
        out.push_str(&format!("{:>9.3}", number as f64 * seconds));
        for (name, of) in &kinds {
            out.push_str(&cells(of(interval), name, seconds));
        }
        let queue = interval.queue_time as f64 / 1e9 / seconds;
        let busy = interval.busy.as_nanos() as f64 / 1e7 / seconds;
        out.push_str(&format!("{queue:>8.2}{busy:>8.2}\n"));
    }
    out
}

fn cells(kind: &Kind, name: &str, seconds: f64) -> String {
    let rate = |count: u64| count as f64 / seconds;
    let requests = rate(kind.requests);
    if name == "f" {
        return format!("{requests:>9.1}{:>9.2}", kind.r#await());
    }
    let (bytes, merges) = (rate(kind.sectors) / 2.0, rate(kind.merges));
    let (waited, size) = (kind.r#await(), kind.mean_size());
    format!("{requests:>9.1}{bytes:>10.1}{merges:>8.1}{waited:>9.2}{size:>10.1}")
}

fn span(time_span: Duration) -> String {
    time(time_span.as_nanos())
}

/// A request step by step, and its layers.
fn slow(it: &Explained, life: &Life, style: &Style) -> String {
    let title = format!(
        "  {} {} {} + {} at {:.6} s took {}",
        it.name(life.context),
        life.kind(),
        life.sector.0,
        life.sectors.0,
        life.queued.saturating_since(it.span.0).as_nanos() as f64 / 1e9,
        span(life.end().saturating_since(life.queued))
    );
    let mut out = format!("\n{}\n", style.painted(&title, Some(Paint::Heading)));
    let after = |at: Instant| span(at.saturating_since(life.queued));
    let steps = steps(life);
    let steps: Vec<String> =
        steps.iter().map(|(name, at)| format!("{name} +{}", after(*at))).collect();
    out.push_str(&paragraph(&steps.join(" · "), style, "    ", "      "));
    for (layer, spent) in &life.layers {
        out.push_str(&format!("    {:>10}  {layer}\n", span(*spent)));
        if *layer == insight::Layer::Others {
            for (who, part) in &life.others {
                let name = it.name(*who);
                out.push_str(&format!("    {:>10}    behind {name}\n", span(*part)));
            }
        }
    }
    if let Some(guess) = life.guess {
        let name = guess.name();
        out.push_str(&format!("    that it was withheld is inferred, confidence {name}\n"));
    }
    out
}

/// The steps that are known, with the letters of blktrace.
fn steps(life: &Life) -> Vec<(&'static str, Instant)> {
    let mut steps = vec![("Q", life.queued), ("G", life.allocated)];
    steps.extend(life.inserted.map(|at| ("I", at)));
    steps.extend([("D", life.issued), ("C", life.completed)]);
    steps
}

/// The same as JSON.
pub fn document(it: &Explained) -> Value {
    let phases: Vec<Value> = it
        .phases
        .rows()
        .iter()
        .map(|(name, spread)| {
            json!({
                "phase": name, "count": spread.count, "min_ns": spread.min.as_nanos(),
                "mean_ns": spread.mean() as u64, "max_ns": spread.max.as_nanos(),
            })
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "recording": it.path,
        "records": it.records,
        "requests": it.requests,
        "unfinished": it.unfinished,
        "device": it.device,
        "first_ns": it.span.0.as_nanos(),
        "elapsed_ns": it.known.elapsed.as_nanos(),
        "kernel": it.kernel,
        "scheduler": it.known.scheduler,
        "remarks": it.remarks,
        "callers": it.callers,
        "findings": it.findings,
        "phases": phases,
        "intervals": intervals_json(&it.intervals.in_at_most(LINES)),
        "layers": it.layers,
        "service": it.service,
        "slowest": it.slowest.iter().map(|life| life_json(it, life)).collect::<Vec<_>>(),
    })
}

fn intervals_json(intervals: &Intervals) -> Value {
    let kind = |kind: &Kind| {
        json!({
            "requests": kind.requests, "merges": kind.merges, "sectors": kind.sectors,
            "time_ns": kind.time.as_nanos(),
        })
    };
    let one = |it: &Interval| {
        json!({
            "reads": kind(&it.reads), "writes": kind(&it.writes), "discards": kind(&it.discards),
            "flushes": kind(&it.flushes), "busy_ns": it.busy.as_nanos(),
        })
    };
    let all: Vec<Value> = intervals.all().iter().map(one).collect();
    json!({ "every_ns": intervals.every().as_nanos(), "all": all })
}

fn life_json(it: &Explained, life: &Life) -> Value {
    let layers: serde_json::Map<String, Value> = life
        .layers
        .iter()
        .map(|(layer, time)| (layer.name().into(), time.as_nanos().into()))
        .collect();
    let others: serde_json::Map<String, Value> =
        life.others.iter().map(|(who, time)| (it.name(*who), time.as_nanos().into())).collect();
    let steps: serde_json::Map<String, Value> =
        steps(life).iter().map(|(name, at)| ((*name).into(), at.as_nanos().into())).collect();
    json!({
        "task": it.name(life.context), "op": life.kind(), "sector": life.sector.0,
        "sectors": life.sectors.0, "steps_ns": steps, "layers_ns": layers, "others_ns": others,
        "guess": life.guess.map(insight::Confidence::name),
    })
}
