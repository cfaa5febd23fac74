//! The page of a recording that was explained: who had requests and where their time went, what was
//! found, the slowest requests, and a timeline.

use super::compare::curves;
use super::explain::{answer, callers, distributions, finding, path};
use super::{Page, Place, shown};
use base::{Duration, Instant};
use insight::Timeline;
use insight::timeline::Recorded;
use insight::timeline::keeper::Keeper;
use lab::explain::recorded::Explained;

/// Everything that is said of a recording of this name, with so many slow requests.
pub fn page(name: &str, it: &Explained, keeper: Keeper, slowest: usize) -> Page {
    let (begin, end) = it.span;
    let kept = keeper.finish(end).as_if_begun(begin);
    let recorded = Recorded { title: name.to_string(), tasks: it.tasks(), ..kept };
    let remark = shown::part(&recorded).unwrap_or_default();
    let time_of = |(since, length): (Instant, Duration)| {
        let from = since.saturating_since(begin).as_nanos();
        Place::Time { run: 0, from, to: from + length.as_nanos() }
    };
    let find = |found| finding(name, found, Some(time_of));
    let calls =
        it.callers.iter().flat_map(|caller| caller.slowest.iter().map(move |it| (caller, it)));
    let mut calls: Vec<_> = calls.collect();
    calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.took()));
    let slow = calls.into_iter().take(slowest).map(|(caller, call)| {
        let place = time_of((call.entered, call.took()));
        (path(name, caller, call, begin, |who| it.name(who)), Some(place))
    });
    Page {
        title: format!("Where the time of requests went: {name}"),
        about: about(it),
        answer: answer(name, &it.findings),
        callers: vec![callers(name.to_string(), &it.callers)],
        curves: curves(std::slice::from_ref(&recorded)),
        distributions: distributions(name, "requests", &it.callers),
        findings: it.findings.iter().map(find).collect(),
        slow: slow.collect(),
        remark,
        timelines: vec![Timeline::of(recorded)],
        ..Page::default()
    }
}

fn about(it: &Explained) -> String {
    let known = &it.known;
    let seconds = known.elapsed.as_nanos() as f64 / 1e9;
    let mut words = vec![format!("device {}", it.device), format!("{seconds:.3} s")];
    words.push(format!("{} requests", it.requests));
    words.extend(it.kernel.as_ref().map(|it| format!("kernel {it}")));
    words.extend(known.scheduler.as_ref().map(|it| format!("scheduler {it}")));
    words.join(" · ")
}
