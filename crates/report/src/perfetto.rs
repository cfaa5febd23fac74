//! A timeline as trace events, which Perfetto and Chrome's tracing read.
//!
//! Lanes are processes and their rows are threads, so that no bar covers another. A request is a
//! bar in the lane of its task with a bar for each part of its time, and one in the device's lane.

use insight::Timeline;
use insight::timeline::{CALLS, LaneKind, OPERATIONS};
use serde_json::{Value, json};

/// Rows from here on are those of system calls.
const CALL_ROWS: u8 = 100;

/// The events of timelines, one after the other, as a document.
pub fn to_text(timelines: &[Timeline]) -> String {
    let mut events = Vec::new();
    let mut first = 0;
    for timeline in timelines {
        Export { timeline, first, events: &mut events }.all();
        first += timeline.lanes.len();
    }
    json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
}

/// One timeline on its way out.
struct Export<'a> {
    timeline: &'a Timeline,
    /// The number of its first lane.
    first: usize,
    events: &'a mut Vec<Value>,
}

impl Export<'_> {
    fn all(&mut self) {
        self.names();
        self.requests();
        self.calls();
        self.held();
        self.steps();
    }

    fn names(&mut self) {
        for (number, lane) in self.timeline.lanes.iter().enumerate() {
            let pid = self.first + number;
            // Some lanes are called what they are.
            let name = match lane.name.starts_with(lane.kind.name()) {
                true => format!("{}: {}", self.timeline.title, lane.name),
                false => format!("{}: {} {}", self.timeline.title, lane.kind.name(), lane.name),
            };
            self.events.push(json!({
                "ph": "M", "pid": pid, "name": "process_name", "args": { "name": name }
            }));
            self.events.push(json!({
                "ph": "M", "pid": pid, "name": "process_sort_index", "args": { "sort_index": pid }
            }));
        }
    }

    /// Microseconds, as the format counts.
    fn micros(&self, ticks: u64) -> f64 {
        (ticks * self.timeline.tick) as f64 / 1000.0
    }

    fn bar(&mut self, lane: usize, row: u8, name: &str, from: u64, to: u64, args: Value) {
        let (ts, dur) = (self.micros(from), self.micros(to - from));
        self.events.push(json!({
            "ph": "X", "pid": self.first + lane, "tid": row, "name": name, "ts": ts, "dur": dur,
            "args": args
        }));
    }

    fn requests(&mut self) {
        let timeline = self.timeline;
        let all = &timeline.requests;
        let device = timeline.lanes.iter().position(|it| it.kind == LaneKind::Device);
        for at in 0..all.len() {
            let name = OPERATIONS[all.operation(at)];
            let (task, row) = (all.task[at], all.rows[0][at]);
            let (from, to) = (all.queued[at], all.ended(at));
            let args = || json!({ "sector": all.sector[at], "sectors": all.sectors[at] });
            self.bar(task, row, name, from, to, args());
            for (from, to, kind) in all.spans(at) {
                self.bar(task, row, timeline.kinds[kind].name(), from, to, json!({}));
            }
            if let Some(device) = device {
                self.bar(
                    device,
                    all.rows[2][at],
                    name,
                    from + all.issued[at],
                    all.completed(at),
                    args(),
                );
            }
        }
    }

    fn calls(&mut self) {
        let timeline = self.timeline;
        let all = &timeline.calls;
        for at in 0..all.len() {
            let (lane, name) = (all.task[at], CALLS[usize::from(all.what[at])]);
            let (row, to) = (CALL_ROWS + all.rows[at], all.from[at] + all.length[at]);
            self.bar(lane, row, name, all.from[at], to, json!({ "call": true }));
        }
    }

    fn held(&mut self) {
        let timeline = self.timeline;
        for span in &timeline.held {
            let whom = span.waits_for.map(|lane| timeline.lanes[lane].name.as_str());
            let args = json!({ "waits_for": whom });
            let name = timeline.kinds[span.kind].name();
            self.bar(0, 0, name, span.from, span.from + span.length, args);
        }
    }

    /// Flows, which are drawn as arrows.
    fn steps(&mut self) {
        let timeline = self.timeline;
        for (id, step) in timeline.steps.iter().enumerate() {
            let ts = self.micros(step.at);
            for (phase, lane) in [("s", step.from), ("f", step.to)] {
                self.events.push(json!({
                    "ph": phase, "bp": "e", "pid": self.first + lane, "tid": 0, "ts": ts,
                    "id": self.first << 32 | id, "cat": "critical path", "name": "goes on"
                }));
            }
        }
    }
}
