//! The page of an explanation: who called and where that time went, what was found, and the slowest
//! calls piece by piece.

use super::compare::{curves, distributions_of};
use super::{CallerRow, Callers, Distributions, Finding, Page, Place, Table, shown};
use crate::explain::{changes, cost, part_words, pieces, share, slow_title, time, title_of};
use base::{Duration, Instant};
use block::ContextId;
use insight::timeline::{Recorded, spread};
use insight::{Call, Segment, Timeline};
use lab::explain::Explained;
use lab::explain::account::{Caller, Part};
use lab::explain::finding::Finding as Found;
use lab::plan::Plan;

/// Of each row the times of so many callers are spread out.
const SPREAD: usize = 4;
/// What is said of arrows.
const ARROWS: &str = "Arrows are the critical paths of calls: they lead from the task that was \
    waited for to the one that could go on.";

/// Everything that is said of a plan's rows, with the runs that are shown and so many slow calls.
pub fn page(plan: &Plan, explained: &[Explained], recorded: Vec<Recorded>, slowest: usize) -> Page {
    let experiment = &plan.experiment;
    let title = match experiment.title.as_str() {
        "" => "Where the time goes",
        title => title,
    };
    let curves = curves(&recorded);
    let shown = recorded.len();
    let remark = shown::which(&recorded, experiment.seeds[0]);
    Page {
        title: title.to_string(),
        about: about(plan, explained),
        story: story(plan, explained),
        answer: explained
            .iter()
            .map(|it| answer(&it.label(), &it.findings))
            .collect::<Vec<_>>()
            .join("\n"),
        callers: explained.iter().map(|it| callers(it.label(), &it.callers)).collect(),
        curves,
        distributions: explained
            .iter()
            .flat_map(|it| distributions(&it.label(), "calls", &it.callers))
            .collect(),
        findings: numbered(explained, shown).flat_map(|(it, run)| findings(it, run)).collect(),
        slow: numbered(explained, shown).flat_map(|(it, run)| slow(it, run, slowest)).collect(),
        remark: shown::remark(remark, ARROWS),
        timelines: recorded.into_iter().map(Timeline::of).collect(),
        ..Page::default()
    }
}

/// Rows, each with the number of its timeline, if it has one.
fn numbered(
    explained: &[Explained],
    shown: usize,
) -> impl Iterator<Item = (&Explained, Option<usize>)> {
    explained.iter().enumerate().map(move |(row, it)| (it, Some(row).filter(|it| *it < shown)))
}

fn about(plan: &Plan, explained: &[Explained]) -> String {
    let mut models: Vec<&str> = explained.iter().map(|it| it.result.model.as_str()).collect();
    models.dedup();
    let seed = plan.experiment.seeds[0];
    format!("model {} · seed {seed} · simulated", models.join(", "))
}

/// What the experiment says of itself, which calls were looked at, and by what findings are ranked.
fn story(plan: &Plan, explained: &[Explained]) -> Vec<String> {
    let own = Some(plan.experiment.story.clone()).filter(|it| !it.is_empty());
    let looked_at = |it: &Explained| Some(format!("{}: {}.", it.label(), it.looked_at.as_ref()?));
    let ranked = explained.iter().find_map(|it| it.ranked_otherwise(plan));
    let looked_at = explained.iter().filter_map(looked_at);
    own.into_iter().chain(looked_at).chain(ranked.map(|it| it + ".")).collect()
}

/// The first cause of a row and what helps most.
pub(super) fn answer(label: &str, findings: &[Found]) -> String {
    let Some(cause) = findings.iter().find(|it| it.is_cause()) else {
        return match findings.first() {
            Some(note) => format!("{label}: {}. No change is known to help.", note.title),
            None => format!("{label}: nothing takes a noteworthy part of anybody's time."),
        };
    };
    let best = cause.remedies.iter().filter_map(|it| it.gain.as_ref().map(|gain| (it, gain)));
    let best = best.max_by(|one, other| one.1.times[0].total_cmp(&other.1.times[0]));
    match best {
        Some((remedy, gain)) => {
            let [before, after] = [gain.before, gain.after].map(|it| time(it.as_nanos()));
            let becomes = match &cause.of_figure {
                Some(of) => format!("{} is", of.name),
                None => format!("a {} takes", cause.kind.name()),
            };
            let (title, command) = (&cause.title, &remedy.command);
            format!("{label}: {title}. With “{command}” {becomes} {after} instead of {before}.")
        }
        None => format!("{label}: {}.", cause.title),
    }
}

/// Who called, and where that time went.
pub(super) fn callers(caption: String, callers: &[Caller]) -> Callers {
    let row = |caller: &Caller| {
        let unfinished = match caller.unfinished {
            0 => String::new(),
            many => format!(" ({many} not ended)"),
        };
        let times = [caller.mean(), caller.median, caller.longest];
        let [mean, median, longest] = times.map(|it| time(it.as_nanos()));
        let part =
            |it: &Part| (it.layer.name().to_string(), share(it, caller), part_words(it, caller));
        CallerRow {
            who: caller.job.clone(),
            cells: [
                caller.kind.name().to_string(),
                format!("{}{unfinished}", caller.calls),
                mean,
                median,
                longest,
            ],
            parts: caller.parts.iter().map(part).collect(),
        }
    };
    Callers { caption, rows: callers.iter().map(row).collect() }
}

fn findings(it: &Explained, run: Option<usize>) -> Vec<Finding> {
    let label = it.label();
    let place = |run: usize| {
        move |(since, length): (Instant, Duration)| Place::Time {
            run,
            from: since.as_nanos(),
            to: (since + length).as_nanos(),
        }
    };
    it.findings.iter().map(|found| finding(&label, found, run.map(place))).collect()
}

/// What was found; `place` says where on a timeline something is that begins then and lasts so
/// long.
pub(super) fn finding(
    label: &str,
    found: &Found,
    place: Option<impl Fn((Instant, Duration)) -> Place>,
) -> Finding {
    let place = place.map(|place| place(found.first));
    Finding {
        whose: label.to_string(),
        title: title_of(found),
        cost: cost(found),
        evidence: found.evidence.iter().chain(&found.others).cloned().collect(),
        mechanism: found.mechanism.to_string(),
        changes: changes(found).collect(),
        place,
    }
}

/// The slowest calls of a row, one by one.
fn slow(it: &Explained, run: Option<usize>, most: usize) -> Vec<(Table, Option<Place>)> {
    let all = it.slowest(most).into_iter().enumerate();
    let one = |(number, (caller, call)): (usize, (&Caller, &Call))| {
        let place = run.map(|run| Place::Chain { run, number });
        let name = |who| it.actors.name(who).to_string();
        (path(&it.label(), caller, call, Instant::ZERO, name), place)
    };
    all.map(one).collect()
}

/// A slow call of a run that began at a time, piece by piece.
pub(super) fn path(
    label: &str,
    caller: &Caller,
    call: &Call,
    begin: Instant,
    name: impl Fn(ContextId) -> String,
) -> Table {
    let caption = format!("{label}: {}", slow_title(caller, call, begin));
    let rows = pieces(call).0.into_iter().map(|piece| {
        let after = time(piece.from.saturating_since(call.entered).as_nanos());
        let behind = piece.behind.map(&name);
        let cells = [
            format!("+{after}"),
            time(piece.length().as_nanos()),
            name(piece.who),
            layer_words(&piece),
            behind.unwrap_or_default(),
        ];
        cells.into_iter().map(|cell| (cell, None)).collect()
    });
    let headings = ["after", "for", "whose time", "where", "behind or for whom"];
    Table {
        caption,
        keys: 1,
        groups: Vec::new(),
        headings: headings.map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

/// Where a piece is, with what the device did and the phase of a commit.
fn layer_words(piece: &Segment) -> String {
    let mut words = piece.layer.name().replace('_', " ");
    if let Some(stage) = piece.stage {
        words.push_str(&format!(" ({})", stage.name()));
    }
    if let Some(phase) = piece.commit {
        words.push_str(&format!(", commit: {}", phase.name()));
    }
    words
}

/// How long the calls of the first callers spend where.
pub(super) fn distributions(label: &str, of: &str, callers: &[Caller]) -> Vec<Distributions> {
    let one = |caller: &Caller| {
        let whose = format!("{label}: {}s of {}", caller.kind.name(), caller.job);
        distributions_of(&whose, of, &spread::of_times(&caller.by_layer))
    };
    callers.iter().take(SPREAD).map(one).collect()
}
