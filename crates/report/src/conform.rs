//! How schedulers agree with recordings of the kernel, as text and as JSON.

use crate::{Grid, Style};
use conform::{Absent, Conformity, Difference, MessageAgreement, Shown};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The whole document of a comparison with recordings.
pub fn document(results: &[Conformity]) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "traces": results.iter().map(trace).collect::<Vec<_>>(),
    })
}

fn trace(result: &Conformity) -> Value {
    let tunables = result.tunables.iter().map(|(name, value)| (name.clone(), (*value).into()));
    let classes = result.classes.iter().map(|(class, count)| (class.to_string(), (*count).into()));
    json!({
        "trace": result.trace,
        "kernel": result.kernel,
        "scheduler": result.scheduler,
        "tunables": Value::Object(tunables.collect::<Map<_, _>>()),
        "dispatches": result.dispatches,
        "contested": result.contested,
        "contested_with_8_or_more": result.contested_deep,
        "agreement": result.agreement(),
        "null_agreement": result.null_agreement(),
        "free_running": result.free_running(),
        "withheld": result.withheld_agreement(),
        "withheld_moments": result.withheld.0,
        "merges_that_differ": {
            "contiguous_memory": result.merges_that_differ.contiguous,
            "equal_positions": result.merges_that_differ.equal_positions,
            "unexplained": result.merges_that_differ.unexplained,
        },
        "messages": result.messages.as_ref().map(messages),
        "classes": Value::Object(classes.collect::<Map<_, _>>()),
        "first_difference": result.first_difference.as_ref().map(difference),
        "tick_phase_ns": result.tick_phase.map(|it| it.as_nanos()),
        "losses": losses(result),
        "absent_files": result.absent.iter().map(absent).collect::<Vec<_>>(),
        "remarks": result.remarks,
    })
}

fn losses(result: &Conformity) -> Value {
    let (losses, given) = (&result.losses, &result.given);
    let events = losses.events.iter().map(|(cpu, lost)| (cpu.to_string(), (*lost).into()));
    json!({
        "cpus_without_file": losses.cpus,
        "lost_events_by_cpu": Value::Object(events.collect::<Map<_, _>>()),
        "torn_files": losses.torn,
        "given_back": {
            "completions_by_next_request": given.by_next_request,
            "completions_by_activations": given.by_activations,
            "completions_by_usual_time": given.by_usual_time,
            "issues": given.issues,
            "insertions": given.insertions,
        },
        "requests_taken_out": given.taken_out,
        "decisions_excluded": result.excluded,
    })
}

fn absent(absent: &Absent) -> Value {
    json!({ "file": absent.file, "tells": absent.tells })
}

fn messages(messages: &MessageAgreement) -> Value {
    let more = messages.more.iter().map(|(kind, count)| (kind.clone(), (*count).into()));
    json!({
        "kernel": messages.kernel,
        "ours": messages.ours,
        "both": messages.both,
        "agreement": messages.percent(),
        "more_by_the_kernel": Value::Object(more.collect::<Map<_, _>>()),
    })
}

fn difference(difference: &Difference) -> Value {
    json!({
        "decision": difference.number,
        "at_ns": difference.at.as_nanos(),
        "class": difference.class.name(),
        "kernel": shown(&difference.kernel),
        "ours": difference.ours.as_ref().map(shown),
        "reason": difference.reason,
        "waiting": { "reads": difference.waiting.0, "writes": difference.waiting.1 },
        "issued_before": difference.before.iter().map(shown).collect::<Vec<_>>(),
        "state": difference.state,
    })
}

fn shown(request: &Shown) -> Value {
    json!({
        "op": format!("{:?}", request.op).to_lowercase(),
        "sector": request.sector.0,
        "sectors": request.sectors.0,
        "waited_ns": request.waited.as_nanos(),
    })
}

/// The results as a table, and the first difference of each recording that has one.
pub fn text(results: &[Conformity], style: &Style) -> String {
    let mut grid = Grid::new(&["trace", "scheduler", "dispatches"]);
    for (group, heading) in [
        ("contested decisions", "all"),
        ("", "8 or more"),
        ("", "agree"),
        ("", "by arrival"),
        ("", "free run"),
        ("", "withheld"),
        ("", "messages"),
    ] {
        grid.column(group, heading);
    }
    results.iter().for_each(|result| grid.row(row(result)));
    if results.len() > 1 {
        let totals = totals(results);
        totals.into_iter().for_each(|cells| grid.row(cells));
    }
    let mut out = grid.keyed(2).render(style);
    for result in results {
        push_notes(result, &mut out);
    }
    out
}

fn row(result: &Conformity) -> Vec<String> {
    vec![
        name_of(&result.trace),
        format!("{}@{}", result.scheduler, result.kernel),
        result.dispatches.to_string(),
        result.contested.to_string(),
        result.contested_deep.to_string(),
        percent(result.agreement()),
        percent(result.null_agreement()),
        percent(result.free_running()),
        percent(result.withheld_agreement()),
        percent(result.messages.as_ref().and_then(MessageAgreement::percent)),
    ]
}

/// A line for each scheduler, over all its recordings.
fn totals(results: &[Conformity]) -> Vec<Vec<String>> {
    let mut labels: Vec<String> = Vec::new();
    let label = |it: &Conformity| format!("{}@{}", it.scheduler, it.kernel);
    for result in results {
        if !labels.contains(&label(result)) {
            labels.push(label(result));
        }
    }
    let line = |name: String| {
        let of: Vec<&Conformity> = results.iter().filter(|it| label(it) == name).collect();
        let sum = |number: fn(&Conformity) -> u64| of.iter().map(|it| number(it)).sum::<u64>();
        let contested = sum(|it| it.contested);
        let share = |part: u64| percent(share(part, contested));
        vec![
            format!("all {}", of.len()),
            name,
            sum(|it| it.dispatches).to_string(),
            contested.to_string(),
            sum(|it| it.contested_deep).to_string(),
            share(sum(|it| it.agreed)),
            share(sum(|it| it.null_agreed)),
            share(sum(|it| it.free_agreed)),
            percent(self::share(sum(|it| it.withheld.1), sum(|it| it.withheld.0))),
            percent(self::share(sum(|it| said(it).0), sum(|it| said(it).1))),
        ]
    };
    labels.into_iter().map(line).collect()
}

/// Messages that both said, and that either did.
fn said(result: &Conformity) -> (u64, u64) {
    result.messages.as_ref().map_or((0, 0), |it| (it.both, it.kernel.max(it.ours)))
}

fn push_notes(result: &Conformity, out: &mut String) {
    let name = name_of(&result.trace);
    let mut say = |text: String| {
        writeln!(out, "{name}: {text}").expect("writing to memory does not fail");
    };
    lost(result).into_iter().for_each(&mut say);
    for Absent { file, tells } in &result.absent {
        say(format!("warning: no {file} beside it, which would tell {tells}"));
    }
    if let Some(phase) = result.tick_phase {
        say(format!("agrees best with ticks that begin {} us earlier", phase.as_micros()));
    }
    if !result.classes.is_empty() {
        let classes: Vec<String> =
            result.classes.iter().map(|(class, count)| format!("{count} {class}")).collect();
        say(format!("differences: {}", classes.join(", ")));
    }
    result.remarks.iter().for_each(|remark| say(remark.clone()));
    if let Some(messages) = &result.messages {
        let more = messages.more.iter().map(|(kind, count)| format!("{count:+} \"{kind}\""));
        let more: Vec<String> = more.collect();
        if !more.is_empty() {
            say(format!("the kernel said more or less often: {}", more.join(", ")));
        }
        if let Some((dispatches, kernel, ours)) = &messages.first {
            say(format!("messages differ first after {dispatches} dispatches"));
            say(format!("  kernel: {}", kernel.join(" | ")));
            say(format!("  ours:   {}", ours.join(" | ")));
        }
    }
    if let Some(difference) = &result.first_difference {
        explain(difference, out);
    }
}

/// What of a recording is not there, and what was made of that.
fn lost(result: &Conformity) -> Vec<String> {
    let (losses, given) = (&result.losses, &result.given);
    let mut lines = Vec::new();
    if !losses.cpus.is_empty() {
        let cpus: Vec<String> = losses.cpus.iter().map(u32::to_string).collect();
        lines.push(format!("warning: no file of CPU {}", cpus.join(", ")));
    }
    if !losses.events.is_empty() {
        let of = |(cpu, lost): (&u32, &u64)| format!("{lost} of CPU {cpu}");
        let events: Vec<String> = losses.events.iter().map(of).collect();
        lines.push(format!("warning: events are missing: {}", events.join(", ")));
    }
    if given.total() > 0 {
        lines.push(format!(
            "given back: {} completions ({} by the task's next request, {} after the usual time; \
             {} moved by what the scheduler said of the driver), {} issues, {} insertions",
            given.completions(),
            given.by_next_request,
            given.by_usual_time,
            given.by_activations,
            given.issues,
            given.insertions,
        ));
    }
    if result.excluded + given.taken_out > 0 {
        lines.push(format!(
            "not judged: {} decisions that depend on what is missing; {} requests of which nothing \
             tells what became of them",
            result.excluded, given.taken_out,
        ));
    }
    lines
}

fn explain(difference: &Difference, out: &mut String) {
    let at = difference.at.as_nanos() as f64 / 1e6;
    let ours = match &difference.ours {
        Some(ours) => format!("{} ({})", one(ours), difference.reason),
        None => format!("nothing ({})", difference.reason),
    };
    let before: Vec<String> = difference.before.iter().map(position).collect();
    let lines = [
        format!("  first at {at:.6} ms, decision {}: {}", difference.number, difference.class),
        format!("    kernel issued  {}", one(&difference.kernel)),
        format!("    ours chose     {ours}"),
        format!(
            "    kernel's state: {} reads and {} writes wait; issued before: {}",
            difference.waiting.0,
            difference.waiting.1,
            if before.is_empty() { "nothing".to_string() } else { before.join(", ") },
        ),
        format!("    our state: {}", difference.state),
    ];
    for line in lines {
        writeln!(out, "{line}").expect("writing to memory does not fail");
    }
}

fn one(request: &Shown) -> String {
    let waited = request.waited.as_nanos() as f64 / 1e6;
    format!("{}, waiting for {waited:.3} ms", position(request))
}

fn position(request: &Shown) -> String {
    let op = format!("{:?}", request.op).to_lowercase();
    format!("{op} {}+{}", request.sector.0, request.sectors.0)
}

/// The last two parts of a path say enough.
fn name_of(trace: &str) -> String {
    trace.trim_end_matches('/').rsplit('/').next().unwrap_or(trace).to_string()
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// Percent, never rounded up to all of it.
fn percent(value: Option<f64>) -> String {
    match value {
        None => "–".to_string(),
        Some(all) if all >= 100.0 => "100 %".to_string(),
        Some(part) => format!("{:.2} %", (part * 100.0).floor() / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_is_not_all() {
        assert_eq!(percent(share(99_999, 100_000)), "99.99 %");
        assert_eq!(percent(share(3, 3)), "100 %");
        assert_eq!(percent(share(0, 0)), "–");
    }

    #[test]
    fn a_recording_is_called_by_its_last_name() {
        assert_eq!(name_of("recordings/d-hdd/"), "d-hdd");
        assert_eq!(name_of("sda"), "sda");
    }
}
