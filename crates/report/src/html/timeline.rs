//! A timeline in the page: what is few as JSON, what is many as compressed columns.

use super::{base64, escape};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use insight::timeline::{CALLS, Chain, Columns, FULL, Lane, Series};
use insight::{Layer, Timeline};
use serde_json::{Value, json};
use std::io::Write;

/// Adds the data of timelines.
pub(super) fn push_data(timelines: &[Timeline], out: &mut String) {
    for (number, timeline) in timelines.iter().enumerate() {
        let columns = timeline.columns();
        let head = escape::script(&head(timeline, &columns));
        let tag = "<script type=\"application/json\" class=\"timeline-head\"";
        out.push_str(&format!("{tag} id=\"head-{number}\">{head}</script>\n"));
        let tag = "<script type=\"application/octet-stream\"";
        out.push_str(&format!("{tag} id=\"columns-{number}\">"));
        base64::push(&deflate(&columns.bytes), out);
        out.push_str("</script>\n");
    }
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}

/// What is few, and where each column lies.
fn head(timeline: &Timeline, columns: &Columns) -> Value {
    let pyramid = &timeline.pyramid;
    let names: Vec<&str> = timeline.kinds.iter().map(|it| it.name()).collect();
    let is_held = |it: &Layer| it.is_held();
    let held: Vec<bool> = timeline.kinds.iter().map(is_held).collect();
    json!({
        "title": timeline.title,
        "tick": timeline.tick,
        "end": timeline.end,
        "requests": timeline.requests.len(),
        "kept": (!timeline.kept.is_empty()).then_some(&timeline.kept),
        "held": timeline.held.len(),
        "steps": timeline.steps.len(),
        "calls": timeline.calls.len(),
        "lanes": timeline.lanes.iter().map(lane).collect::<Vec<_>>(),
        "kinds": names,
        "holds": held,
        "reasons": timeline.reasons.iter().map(|it| it.name()).collect::<Vec<_>>(),
        "callNames": CALLS,
        "chains": timeline.chains.iter().map(chain).collect::<Vec<_>>(),
        "columns": columns.columns.iter().map(|it| (it.name, it.bytes)).collect::<Vec<_>>(),
        "pyramid": {
            "width": pyramid.width,
            "full": FULL,
            "levels": pyramid.levels,
            "series": pyramid.series.iter().map(series).collect::<Vec<_>>(),
            "sectors": pyramid.sectors,
        },
    })
}

fn lane(it: &Lane) -> Value {
    json!({
        "name": it.name, "kind": it.kind.name(), "rows": it.rows, "calls": it.calls,
        "group": it.group,
    })
}

/// A critical path, piece by piece.
fn chain(it: &Chain) -> Value {
    let links: Vec<Value> =
        it.links.iter().map(|it| json!([it.from, it.to, it.lane, it.layer.name()])).collect();
    json!({ "from": it.from, "to": it.to, "task": it.task, "links": links })
}

fn series(it: &Series) -> Value {
    json!({ "lane": it.lane, "kind": it.kind, "most": it.most as f64 / 1000.0 })
}
