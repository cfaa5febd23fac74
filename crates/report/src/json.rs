//! Results as JSON; the format is described in `docs/experiments.md`.
//!
//! A record of the crate `lab` that is written as it is says so itself (`Serialize`). What stands
//! here is put together from several, under keys that no field has: with `json!` a key is one line,
//! while types for them would say each key twice.

use crate::fio_json::{direction, latency, sync};
use lab::World;
use lab::fidelity::errors::{JobError, Pair, errors_by_call};
use lab::matrix::Report;
use lab::metrics::operations::Place;
use lab::metrics::{CallKind, Layers};
use lab::result::{JobResult, RunResult};
use lab::summary::{Line, Paired, Summary};
use serde_json::{Value, json};

/// The whole document of a comparison.
pub fn compare(report: &Report, summary: &Summary) -> Value {
    let results: Vec<Value> = report.results.iter().map(result).collect();
    let lines: Vec<Value> = summary.lines.iter().map(|it| line(it, report)).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "experiment": report.plan.experiment.to_json(),
        "results": results,
        "summary": lines,
        "judged_by": summary.main.as_ref().map(|it| it.to_string()),
        "why": summary.pairs.iter().map(|it| why(it, report)).collect::<Vec<_>>(),
        "findings": summary.findings,
        "expected": expected(summary),
        "errors": errors_by_call(report).iter().map(|it| job_error(it, report)).collect::<Vec<_>>(),
        "notes": report.plan.notes(),
    })
}

/// A document as text, ending with a line end.
pub fn to_text(document: &Value) -> String {
    format!("{document:#}\n")
}

fn result(result: &RunResult) -> Value {
    let tunables = result.tunables.iter().map(|(name, value)| (name.to_string(), (*value).into()));
    let fingerprint = (result.world == World::Sim).then(|| format!("{:016x}", result.fingerprint));
    let mut value = json!({
        "world": result.world.to_string(),
        "kernel": result.spec.kernel_name(),
        "hz": result.spec.kernel.hz.get(),
        "scheduler": result.spec.name,
        "label": result.spec.label(),
        "tunables": Value::Object(tunables.collect()),
        "model": result.model,
        "fs": result.fs,
        "host": result.host,
        "axes": axes(&result.axes),
        "seed": result.seed,
        "fingerprint": fingerprint,
        "elapsed_ns": result.elapsed,
        "cut_off_after_calls": result.cut_off_after,
        "jobs": result.jobs.iter().map(job).collect::<Vec<_>>(),
        "layers": layers(&result.layers),
        "disk": result.disk,
    });
    if !result.throttling.is_empty() {
        value["throttling"] = json!(result.throttling);
    }
    value
}

fn job(job: &JobResult) -> Value {
    let runtime = job.runtime.as_nanos();
    let of = |kind| {
        let call = job.call(kind);
        let mut value = direction(call, runtime);
        value["lat_ns"] = latency(&call.lat, true);
        value["unfinished"] = call.unfinished.into();
        value
    };
    let syncs = job.call(CallKind::Sync);
    let mut sync = sync(syncs);
    sync["unfinished"] = syncs.unfinished.into();
    let mut value = json!({
        "jobname": job.name,
        "cgroup": job.cgroup,
        "tasks": job.tasks,
        "runtime_ns": runtime,
        "read": of(CallKind::Read),
        "write": of(CallKind::Write),
        "trim": of(CallKind::Trim),
        "sync": sync,
        "layers": layers(&job.layers),
    });
    if let Some(throughput) = job.told.throughput {
        let passes = latency(&job.told.passes, false);
        value["told"] = json!({ "throughput_bytes": throughput, "pass_ns": passes });
    }
    if job.told.commits.count > 0 {
        value["told"] = json!({ "commit_ns": latency(&job.told.commits, true) });
    }
    value
}

fn layers(layers: &Layers) -> Value {
    json!({
        "syscall": latency(&layers.syscall, true),
        "queue": latency(&layers.queue, true),
        "device": latency(&layers.device, true),
    })
}

fn line(line: &Line, report: &Report) -> Value {
    let spec = &report.plan.rows[line.row].spec;
    let figures = line.figures.iter().map(|(figure, it)| (figure.to_string(), json!(it)));
    json!({
        "world": report.plan.rows[line.row].world.to_string(),
        "scheduler": spec.name,
        "kernel": spec.kernel_name(),
        "label": spec.label(),
        "axes": axes(&line.axes),
        "figures": Value::Object(figures.collect()),
    })
}

/// The same operations under the best and the worst, and where they wait.
fn why(paired: &Paired, report: &Report) -> Value {
    let rows = &report.plan.rows;
    let places = |nanos: [f64; Place::COUNT]| {
        let each = Place::ALL.iter().zip(nanos);
        Value::Object(each.map(|(place, it)| (place.name().to_string(), it.into())).collect())
    };
    json!({
        "best": rows[paired.best].spec.label(),
        "best_axes": axes(&rows[paired.best].axes),
        "worst": rows[paired.worst].spec.label(),
        "worst_axes": axes(&rows[paired.worst].axes),
        "call": paired.call.map(|it| it.name()),
        "point": paired.point.map(|it| it.to_string()),
        "pairs": paired.pairs,
        "unpaired": paired.unpaired,
        "left_out": paired.left_out,
        "also_slow": paired.also_slow,
        "sample": paired.sample,
        "best_ns": places(paired.best_ns),
        "worst_ns": places(paired.worst_ns),
    })
}

fn expected(summary: &Summary) -> Vec<Value> {
    let of = |checked: &lab::summary::Checked| {
        json!({
            "scheduler": checked.expectation.scheduler,
            "axes": axes(&checked.axes),
            "figure": checked.expectation.figure.to_string(),
            "expected": checked.expectation.text,
            "mean": checked.seen.map(|it| it.mean),
            "holds": checked.holds,
        })
    };
    summary.expected.iter().map(of).collect()
}

/// What the simulator makes of a job, beside what the kernel does.
fn job_error(error: &JobError, report: &Report) -> Value {
    let row = &report.plan.rows[error.row];
    let pair = |pair: Option<Pair>| {
        pair.map(|it| json!({ "sim": it.sim, "linux": it.linux, "percent": it.percent() }))
    };
    let requests = |(count, bytes): (u64, u64)| json!({ "requests": count, "bytes": bytes });
    json!({
        "label": row.spec.label(),
        "axes": axes(&row.axes),
        "job": error.job,
        "call": error.call.name(),
        "bw_bytes": pair(error.bandwidth),
        "clat_p50_ns": pair(error.p50),
        "clat_p99_ns": pair(error.p99),
        "judged_ns": pair(error.judged),
        "same_requests": error.same_requests,
        "disk": { "sim": requests(error.requests.0), "linux": requests(error.requests.1) },
    })
}

/// Values of axes; numbers as numbers.
fn axes(axes: &[(String, String)]) -> Value {
    let value = |text: &str| match text.parse::<i64>() {
        Ok(number) => Value::from(number),
        Err(_) => Value::from(text),
    };
    Value::Object(axes.iter().map(|(name, text)| (name.clone(), value(text))).collect())
}
