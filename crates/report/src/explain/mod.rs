//! Where the time went, for a terminal: who called, the layers of that, findings, slow calls.

pub mod histograms;
pub mod recording;

use crate::grid::wrap;
use crate::style::{Paint, Style};
use base::{Duration, Instant};
use block::{CommitPhase, Committed, Stage};
use insight::{Call, Segment};
use lab::World;
use lab::explain::account::{CallId, Caller, Commits, Part};
use lab::explain::finding::{Finding, Gain, Metric, OfFigure, Remedy, possessive};
use lab::explain::{Explained, label_of};
use lab::metrics::CallKind;
use lab::plan::{Plan, Row};
use lab::quantity::{Kind, human};
use lab::summary::remarks::apart;
use serde_json::{Value, json};

/// So many parts of a caller's time are shown.
const PARTS: usize = 6;
/// Parts with less of the time are not.
const LEAST: f64 = 0.01;
/// So many stages of the device and phases of commits are.
const STAGES: usize = 4;
/// So many tasks are named that have handles in a commit.
const MEMBERS: usize = 5;
/// So many of those are named of whom the same is so.
const MOST_OTHERS: usize = 4;
/// How far what belongs to a finding stands in.
const INDENT: &str = "     ";
/// And the lines that follow the first of such a paragraph.
const HANGING: &str = "       ";
/// So many pieces of a slow call are.
const PIECES: usize = 20;
/// So many findings are shown.
const FINDINGS: usize = 6;

/// All that is said about a plan's rows.
pub fn text(plan: &Plan, explained: &[Explained], slow: usize, style: &Style) -> String {
    let mut out = String::new();
    if !plan.experiment.title.is_empty() {
        out.push_str(&wrap(&plan.experiment.title, style, ""));
    }
    for it in explained {
        out.push('\n');
        out.push_str(&row(it, slow, style));
    }
    let ranked = explained.iter().find_map(|it| it.ranked_otherwise(plan));
    let named = |it: &Explained| {
        let is_it =
            |row: &&Row| row.world == World::Sim && it.label() == label_of(&row.spec, &row.axes);
        plan.rows.iter().find(is_it)
    };
    let apart = apart(explained.iter().filter_map(|it| Some((named(it)?, &it.result))));
    let notes: Vec<String> =
        apart.into_iter().chain(plan.notes()).chain(ranked.map(|it| it + ".")).collect();
    if !notes.is_empty() {
        out.push('\n');
    }
    notes.iter().for_each(|note| out.push_str(&paragraph(note, style, "", "  ")));
    out
}

/// The same as JSON.
pub fn document(explained: &[Explained]) -> Value {
    let row = |it: &Explained| {
        json!({
            "scheduler": it.result.spec.label(),
            "axes": it.result.axes.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "model": it.result.model,
            "seed": it.result.seed,
            "elapsed_ns": it.result.elapsed.as_nanos(),
            "looked_at": it.looked_at,
            "failures": it.result.failures().collect::<Vec<_>>(),
            "callers": it.callers,
            "findings": it.findings,
            "slowest": it.callers.iter().flat_map(|caller| slowest_json(it, caller))
                .collect::<Vec<_>>(),
        })
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "results": explained.iter().map(row).collect::<Vec<_>>(),
    })
}

fn slowest_json(it: &Explained, caller: &Caller) -> Vec<Value> {
    let name = |context| it.actors.name(context);
    let commit = |commit: &Committed| {
        let handles = commit.handles.iter();
        let handles = handles.map(|(who, count)| (name(*who).to_string(), json!(count)));
        json!({
            "transaction": commit.transaction, "asked_by": commit.asked_by.map(name),
            "handles": handles.collect::<serde_json::Map<_, _>>(),
        })
    };
    let call = |call: &Call| {
        let path: Vec<Value> = call
            .path
            .iter()
            .map(|piece| {
                json!({
                    "from_ns": piece.from.as_nanos(), "to_ns": piece.to.as_nanos(),
                    "who": name(piece.who), "layer": piece.layer.name(),
                    "behind": piece.behind.map(name),
                    "commit": piece.commit.map(CommitPhase::name),
                    "stage": piece.stage.map(Stage::name),
                })
            })
            .collect();
        json!({
            "job": caller.job, "kind": caller.kind.name(), "entered_ns": call.entered.as_nanos(),
            "took_ns": call.took().as_nanos(), "path": path,
            "commits": call.commits.iter().map(commit).collect::<Vec<_>>(),
        })
    };
    caller.slowest.iter().map(call).collect()
}

fn row(it: &Explained, slow: usize, style: &Style) -> String {
    let result = &it.result;
    let title = format!(
        "{} · model {} · {} · host {} · seed {}",
        it.label(),
        result.model,
        result.fs,
        result.host,
        result.seed
    );
    let mut out = format!("{}\n", style.painted(&title, Some(Paint::Heading)));
    if let Some(sentence) = &it.looked_at {
        out.push_str(&paragraph(&format!("{sentence}."), style, "  ", "    "));
    }
    for failure in result.failures() {
        out.push_str(&paragraph(&format!("{failure}."), style, "  ", "    "));
    }
    for caller in &it.callers {
        out.push_str(&paragraph(&caller_line(caller, "calls"), style, "  ", "    "));
        if let Some(line) = commits_line(caller) {
            out.push_str(&paragraph(&line, style, "    ", "      "));
        }
    }
    for (number, finding) in it.findings.iter().take(FINDINGS).enumerate() {
        out.push('\n');
        out.push_str(&finding_text(finding, &it.findings[..number], style));
    }
    let more = it.findings.len().saturating_sub(FINDINGS);
    if more > 0 {
        out.push_str(&format!("\n  {more} more in --json.\n"));
    }
    if it.findings.is_empty() {
        out.push_str("\n  Nothing takes a noteworthy part of anybody's time.\n");
    }
    if slow > 0 {
        out.push_str(&slow_calls(it, slow, style));
    }
    if let Some(call) = &it.picked {
        let (kind, who) = (CallKind::of(call.call).name(), it.actors.name(call.task));
        let title = format!("  {}", call_title(kind, who, call, Instant::ZERO));
        out.push_str(&call_text(it, &title, call, style));
    }
    out
}

/// A text in lines, the first of which stands in as far as `first`, the others as `rest`.
fn paragraph(text: &str, style: &Style, first: &str, rest: &str) -> String {
    let narrower = Style { width: style.width.saturating_sub(first.len()), ..*style };
    format!("{first}{}", wrap(text, &narrower, rest))
}

fn caller_line(caller: &Caller, unit: &str) -> String {
    let shown = |it: &&Part| share(it, caller) >= LEAST;
    let parts = caller.parts.iter().filter(shown).take(PARTS);
    let parts: Vec<String> = parts.map(|it| part_words(it, caller)).collect();
    let unfinished = match caller.unfinished {
        0 => String::new(),
        many => format!(", {many} not ended"),
    };
    let unit = if caller.calls == 1 { unit.trim_end_matches('s') } else { unit };
    format!(
        "{} {}: {} {unit}{unfinished}, mean {}, median {}, longest {}: {}",
        caller.job,
        caller.kind.name(),
        caller.calls,
        time(caller.mean().as_nanos()),
        time(caller.median.as_nanos()),
        time(caller.longest.as_nanos()),
        parts.join(" · ")
    )
}

/// The part of a caller's time, from 0 to 1.
pub(crate) fn share(part: &Part, caller: &Caller) -> f64 {
    part.time.as_nanos() as f64 / caller.total.as_nanos().max(1) as f64
}

/// A part in words.
pub(crate) fn part_words(part: &Part, caller: &Caller) -> String {
    let whose = if part.who == caller.job { String::new() } else { format!(" of {}", part.who) };
    let behind = part.behind.as_ref().map(|it| format!(" behind {it}")).unwrap_or_default();
    let stages = largest(part.stages.iter().map(|(it, time)| (it.name(), *time)), part.time);
    let stages = match stages.len() {
        0 | 1 => String::new(),
        _ => format!(" ({})", stages.join(", ")),
    };
    format!("{:.1} % {}{whose}{behind}{stages}", 100.0 * share(part, caller), part.layer)
}

/// The largest of these times, each with its part of a whole.
fn largest<'a>(times: impl Iterator<Item = (&'a str, Duration)>, whole: Duration) -> Vec<String> {
    let mut times: Vec<(&str, Duration)> = times.collect();
    times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let share = |time: Duration| time.as_nanos() as f64 / whole.as_nanos().max(1) as f64;
    let shown = times.into_iter().take(STAGES).filter(|(_, time)| share(*time) >= LEAST);
    shown.map(|(name, time)| format!("{name} {:.0} %", 100.0 * share(time))).collect()
}

/// The commits that a caller waited for: their phases, and who was in them.
fn commits_line(caller: &Caller) -> Option<String> {
    let Commits { phases, asked_by, handles } = &caller.commits;
    let phases = largest(phases.iter().map(|(it, time)| (it.name(), *time)), caller.total);
    if phases.is_empty() {
        return None;
    }
    let first = |counts: Vec<(String, u64)>| {
        let mut counts = counts;
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let shown = counts.into_iter().take(MEMBERS).map(|(who, count)| format!("{who} {count}"));
        shown.collect::<Vec<_>>().join(", ")
    };
    let age = |who: &Option<String>| who.clone().unwrap_or_else(|| "their age".to_string());
    Some(format!(
        "of that in commits of the journal: {}; asked for by {}; handles of {}",
        phases.join(", "),
        first(asked_by.iter().map(|(who, count)| (age(who), *count)).collect()),
        first(handles.iter().map(|(who, count)| (who.clone(), *count)).collect())
    ))
}

/// What was found, in a line.
pub(crate) fn title_of(it: &Finding) -> String {
    let weight = if it.is_cause() { "" } else { "note: " };
    format!("{weight}{} [{}]", it.title, it.name)
}

/// Who lost how much, or what a figure has of it.
pub(crate) fn cost(it: &Finding) -> String {
    if let Some(of) = &it.of_figure {
        return cost_of(of, it);
    }
    format!(
        "{} of {} {}s, {:.0} % of their time",
        time(it.cost.as_nanos()),
        possessive(&it.victim),
        it.kind.name(),
        100.0 * it.share
    )
}

/// What it has of a figure.
fn cost_of(of: &OfFigure, it: &Finding) -> String {
    let (all, share) = (time(it.cost.as_nanos()), 100.0 * of.share);
    let calls = format!("the {}s looked at", it.kind.name());
    match of.value.map(Duration::as_nanos) {
        Some(value) => format!(
            "{} of the {} of {} ({share:.0} %), {all} in {calls}",
            time((value as f64 * of.share) as u64),
            time(value),
            of.name
        ),
        None => format!("{share:.0} % of {calls}, {all}"),
    }
}

/// What to change. Nobody has to change anything for a note.
pub(crate) fn changes(it: &Finding) -> impl Iterator<Item = String> + '_ {
    it.remedies.iter().filter(|_| it.is_cause()).map(remedy_text)
}

/// What to change, where other findings stand before: what one of them says of the same calls is
/// not said again.
fn changes_behind(it: &Finding, before: &[Finding]) -> Vec<String> {
    let said = |remedy: &Remedy| {
        let is_it = |other: &Remedy| other.command == remedy.command && other.gain == remedy.gain;
        let has_it = |other: &Finding| other.is_cause() && other.remedies.iter().any(is_it);
        let is_same = |other: &Finding| (&other.victim, other.kind) == (&it.victim, it.kind);
        before.iter().position(|other| is_same(other) && has_it(other))
    };
    let one = |remedy: &Remedy| match said(remedy) {
        Some(place) => format!("{}  (as in {})", remedy.command, place + 1),
        None => remedy_text(remedy),
    };
    it.remedies.iter().filter(|_| it.is_cause()).map(one).collect()
}

fn finding_text(it: &Finding, before: &[Finding], style: &Style) -> String {
    let title = format!("{}. {}", before.len() + 1, title_of(it));
    let mut out = paragraph(&style.painted(&title, Some(Paint::Heading)), style, "  ", "     ");
    out.push_str(&paragraph(&format!("Cost: {}", cost(it)), style, INDENT, HANGING));
    out.push_str(&paragraph(&format!("Why: {}", it.mechanism), style, INDENT, HANGING));
    if let Some(confidence) = it.confidence {
        let text = format!(
            "Confidence: {}; a recording does not say that requests are withheld",
            confidence.name()
        );
        out.push_str(&paragraph(&text, style, INDENT, HANGING));
    }
    let more = it.others.len().saturating_sub(MOST_OTHERS);
    let more = (more > 0).then(|| format!("and so for {more} more, who are in --json"));
    for evidence in it.evidence.iter().chain(it.others.iter().take(MOST_OTHERS)).chain(&more) {
        out.push_str(&paragraph(&format!("· {evidence}"), style, INDENT, HANGING));
    }
    for change in changes_behind(it, before) {
        out.push_str(&paragraph(&format!("Change: {change}"), style, INDENT, HANGING));
    }
    out
}

/// What to type, and what comes of it.
fn remedy_text(remedy: &Remedy) -> String {
    let gain = match &remedy.gain {
        Some(gain) => format!("  ({})", gain_text(gain)),
        None if remedy.change.is_some() => "  (not tried)".to_string(),
        None => String::new(),
    };
    format!("{}{gain}", remedy.command)
}

fn gain_text(gain: &Gain) -> String {
    let [least, most] = gain.times.map(|it| human(it, Kind::Count));
    let times = if least == most { least } else { format!("{least} to {most}") };
    let seeds = if gain.seeds == 1 { "seed" } else { "seeds" };
    let price = match &gain.price {
        Some((job, longer)) => {
            format!("; {job} become {} times longer", human(*longer, Kind::Count))
        }
        None => String::new(),
    };
    let (before, after) = (time(gain.before.as_nanos()), time(gain.after.as_nanos()));
    // Where calls of the figure are looked at, it is what becomes shorter.
    let is_judged = |it: &&Metric| (it.before, it.after) == (gain.before, gain.after);
    let judged = gain.metric.as_ref().filter(is_judged);
    let judged_by = judged.map(|it| format!("{} ", it.name)).unwrap_or_default();
    let metric = match gain.metric.as_ref().filter(|_| judged.is_none()) {
        Some(Metric { name, before, after }) => {
            format!("; {name} {} becomes {}", time(before.as_nanos()), time(after.as_nanos()))
        }
        None => String::new(),
    };
    let figures = format!("{judged_by}{before} becomes {after}, {times} times shorter");
    format!("tried: {figures}, {} {seeds}{metric}{price}", gain.seeds)
}

fn slow_calls(it: &Explained, slow: usize, style: &Style) -> String {
    let mut out = String::new();
    for (caller, call) in it.slowest(slow) {
        let title = slow_title(caller, call, Instant::ZERO);
        let title = format!("  {title} (--call {})", CallId::of(call));
        out.push_str(&call_text(it, &title, call, style));
    }
    out
}

/// A call piece by piece.
fn call_text(it: &Explained, title: &str, call: &Call, style: &Style) -> String {
    let mut out = String::new();
    out.push_str(&format!("\n{}\n", style.painted(title, Some(Paint::Heading))));
    for commit in &call.commits {
        out.push_str(&format!("    {}\n", commit_words(it, commit)));
    }
    let (pieces, others) = pieces(call);
    for piece in pieces {
        let whose = it.actors.name(piece.who);
        let behind = piece.behind.map(|who| format!(" behind {}", it.actors.name(who)));
        let stage = piece.stage.map(|stage| format!(" ({})", stage.name()));
        let commit = piece.commit.map(|phase| format!(", commit: {}", phase.name()));
        out.push_str(&format!(
            "    +{:<10} {:>10}  {whose}: {}{}{}{}\n",
            time(piece.from.saturating_since(call.entered).as_nanos()),
            time(piece.length().as_nanos()),
            piece.layer,
            stage.unwrap_or_default(),
            behind.unwrap_or_default(),
            commit.unwrap_or_default()
        ));
    }
    if others > call.took() / 100 {
        out.push_str(&format!("    {:<11} {:>10}  shorter pieces\n", "", time(others.as_nanos())));
    }
    out
}

/// A commit that a call waited for.
fn commit_words(it: &Explained, commit: &Committed) -> String {
    let asked = match commit.asked_by {
        Some(who) => format!("asked for by {}", it.actors.name(who)),
        None => "old enough".to_string(),
    };
    let handles = commit.handles.iter().take(MEMBERS);
    let handles: Vec<String> =
        handles.map(|(who, count)| format!("{} {count}", it.actors.name(*who))).collect();
    format!("commit {}, {asked}; handles of {}", commit.transaction, handles.join(", "))
}

/// Which of the slow calls it is.
pub(crate) fn slow_title(caller: &Caller, call: &Call, begin: Instant) -> String {
    call_title(caller.kind.name(), &caller.job, call, begin)
}

/// Which call it is: of what kind, whose, when, and how long it took.
fn call_title(kind: &str, who: &str, call: &Call, begin: Instant) -> String {
    let began = call.entered.saturating_since(begin).as_nanos() as f64 / 1e9;
    let took = time(call.took().as_nanos());
    format!("{kind} of {who} at {began:.6} s took {took}")
}

/// The pieces of a call that take longest, in order, where alike ones follow each other as one; and
/// how long all others take.
pub(crate) fn pieces(call: &Call) -> (Vec<Segment>, Duration) {
    let least = call.took().as_nanos() / 1000;
    let is_alike = |one: &Segment, other: &Segment| {
        let key = |it: &Segment| (it.who, it.layer, it.behind, it.commit, it.stage);
        key(one) == key(other)
    };
    let mut all: Vec<(Segment, Duration)> = Vec::new();
    for it in call.path.iter().filter(|it| it.length().as_nanos() > least) {
        match all.last_mut() {
            Some((last, length)) if is_alike(last, it) => {
                (last.to, *length) = (it.to, *length + it.length());
            }
            _ => all.push((*it, it.length())),
        }
    }
    let mut lengths: Vec<Duration> = all.iter().map(|it| it.1).collect();
    lengths.sort_unstable_by_key(|it| std::cmp::Reverse(*it));
    let bound = lengths.get(PIECES - 1).copied().unwrap_or(Duration::ZERO);
    all.retain(|it| it.1 >= bound);
    all.truncate(PIECES);
    let shown = all.iter().map(|it| it.1).fold(Duration::ZERO, |sum, it| sum + it);
    let pieces = all.into_iter().map(|(it, length)| Segment { to: it.from + length, ..it });
    (pieces.collect(), call.took().saturating_sub(shown))
}

/// A time as people read it.
pub(crate) fn time(nanos: u64) -> String {
    human(nanos as f64, Kind::Time)
}
