//! A result in fio's own schema (fio 3.33, `--output-format=json`), for tools that read it.
//!
//! What a simulation does not know is zero: processor time, page faults, context switches. Programs
//! other than fio count as if they handed over one request at a time.

use lab::figure::{Figure, What};
use lab::metrics::calls::DEPTH_LEVELS;
use lab::metrics::samples::WINDOW;
use lab::metrics::{CallKind, Latency};
use lab::result::{CallResult, FioProcess, JobResult, RunResult, Second, Steadiness};
use serde_json::{Value, json};

/// The names of fio's decades within a unit.
const STEPS: [&str; 10] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"];
/// The names of depth levels.
const LEVELS: [&str; DEPTH_LEVELS] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// The names of batch sizes.
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// The shares of batches where each has one request.
const ONE_BY_ONE: [f64; 7] = [0.0, 100.0, 0.0, 0.0, 0.0, 0.0, 0.0];

/// What a window stands for in a second.
const PER_SECOND: f64 = 1e9 / WINDOW.as_nanos() as f64;

/// The whole document.
pub fn document(result: &RunResult) -> Value {
    let globals = globals(result);
    let own = |job| job_value(job, result, globals.is_some());
    let jobs: Vec<Value> = result.processes.iter().map(own).collect();
    let mut document = json!({
        "fio version": format!("paternoster-{}", env!("CARGO_PKG_VERSION")),
        "timestamp": 0,
        "timestamp_ms": 0,
        "time": "Thu Jan  1 00:00:00 1970",
    });
    if let Some(globals) = globals.filter(|it| !it.is_empty()) {
        document["global options"] = options([globals]);
    }
    document["jobs"] = Value::Array(jobs);
    document["disk_util"] = json!([disk_util(result)]);
    document
}

/// The options of global sections, if they hold for everybody.
fn globals(result: &RunResult) -> Option<&[(String, String)]> {
    let mut all = result.processes.iter().map(|job| job.fio.as_ref().map(|it| &it.global_options));
    let first = all.next().flatten()?;
    all.all(|other| other == Some(first)).then_some(first)
}

/// Options under their names; later ones replace earlier ones.
fn options<'a>(lists: impl IntoIterator<Item = &'a [(String, String)]>) -> Value {
    let all = lists.into_iter().flatten();
    Value::Object(all.map(|(name, value)| (name.clone(), json!(value))).collect())
}

/// Reads, writes or trims.
pub fn direction(call: &CallResult, runtime_ns: u64) -> Value {
    let (bytes, calls) = (&call.byte_samples, &call.call_samples);
    let kib = |sample: f64| sample * PER_SECOND / 1024.0;
    json!({
        "io_bytes": call.bytes,
        "io_kbytes": call.bytes.0 / 1024,
        "bw_bytes": call.bw_bytes as u64,
        "bw": call.bw_bytes as u64 / 1024,
        "iops": decimals(call.iops),
        "runtime": if call.count == 0 { 0 } else { runtime_ns / 1_000_000 },
        "total_ios": call.count,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latency(&call.slat, false),
        "clat_ns": latency(&call.clat, true),
        "lat_ns": latency(&call.lat, false),
        "bw_min": kib(bytes.min as f64) as u64,
        "bw_max": kib(bytes.max as f64) as u64,
        "bw_agg": decimals(if bytes.count > 0 { 100.0 } else { 0.0 }),
        "bw_mean": decimals(kib(bytes.mean())),
        "bw_dev": decimals(kib(bytes.deviation())),
        "bw_samples": bytes.count,
        "iops_min": (calls.min as f64 * PER_SECOND) as u64,
        "iops_max": (calls.max as f64 * PER_SECOND) as u64,
        "iops_mean": decimals(calls.mean() * PER_SECOND),
        "iops_stddev": decimals(calls.deviation() * PER_SECOND),
        "iops_samples": calls.count,
    })
}

/// Syncs.
pub fn sync(call: &CallResult) -> Value {
    json!({ "total_ios": call.count, "lat_ns": latency(&call.lat, true) })
}

/// A distribution of durations.
pub fn latency(latency: &Latency, with_percentiles: bool) -> Value {
    let mut value = json!({
        "min": latency.min,
        "max": latency.max,
        "mean": decimals(latency.mean.as_nanos() as f64),
        "stddev": decimals(latency.stddev.as_nanos() as f64),
        "N": latency.count,
    });
    if with_percentiles && latency.count > 0 {
        let named = latency.percentiles.iter().map(|(hundredths, value)| {
            (format!("{:.6}", *hundredths as f64 / 100.0), json!(value))
        });
        value["percentile"] = Value::Object(named.collect());
    }
    value
}

fn job_value(job: &JobResult, result: &RunResult, has_globals: bool) -> Value {
    let none = FioProcess::default();
    let fio = job.fio.as_ref().unwrap_or(&none);
    let given = match &job.fio {
        None => json!({ "name": job.name }),
        Some(fio) if has_globals => options([fio.options.as_slice()]),
        Some(fio) => options([fio.global_options.as_slice(), &fio.options]),
    };
    let batches = |shares: &Vec<f64>| match shares.as_slice() {
        [] => named(&BATCHES, &ONE_BY_ONE),
        shares => named(&BATCHES, shares),
    };
    let failed = result.exits.iter().any(|exit| exit.job == job.name && exit.failed);
    let runtime = job.runtime.as_nanos();
    let of = |kind| direction(job.call(kind), runtime);
    let decades = job.decades();
    let millis: Vec<&str> = STEPS.into_iter().chain(["2000", ">=2000"]).collect();
    let mut value = json!({
        "jobname": job.name,
        "groupid": fio.group,
        "error": i32::from(failed),
        "eta": 0,
        "elapsed": runtime / 1_000_000_000 + 1,
        "job options": given,
        "read": of(CallKind::Read),
        "write": of(CallKind::Write),
        "trim": of(CallKind::Trim),
        "sync": sync(job.call(CallKind::Sync)),
        "job_runtime": runtime / 1_000_000,
        "usr_cpu": 0.0,
        "sys_cpu": 0.0,
        "ctx": 0,
        "majf": 0,
        "minf": 0,
        "iodepth_level": named(&LEVELS, &job.depth_shares()),
        "iodepth_submit": batches(&fio.submitted),
        "iodepth_complete": batches(&fio.completed),
        "latency_ns": named(&STEPS, &decades[..10]),
        "latency_us": named(&STEPS, &decades[10..20]),
        "latency_ms": named(&millis, &decades[20..]),
        "latency_depth": fio.depth.max(1),
        "latency_target": fio.target.map_or(0, |it| it.target.as_nanos()),
        "latency_percentile": fio.target.map_or(100.0, |it| f64::from(it.percentile) / 1e6),
        "latency_window": fio.target.map_or(0, |it| it.window.as_nanos() / 1000),
    });
    if let Some(seen) = &fio.steady {
        value["steadystate"] = steadystate(seen);
    }
    value
}

/// What was seen of a rate that was to become steady.
fn steadystate(seen: &Steadiness) -> Value {
    let goal = seen.goal;
    let rate = if goal.bandwidth { "bw" } else { "iops" };
    let percent = if goal.percent { "%" } else { "" };
    let column = |of: fn(&Second) -> u64| {
        let all = seen.seconds.iter().map(of).chain(std::iter::repeat(0));
        all.take(seen.window()).collect::<Vec<u64>>()
    };
    let (iops, bw) = (column(|it| it.requests), column(|it| it.bytes));
    let mean = |all: &[u64]| all.iter().sum::<u64>() / all.len() as u64;
    json!({
        "ss": format!(
            "{rate}{}:{:.6}{percent}",
            if goal.slope { "_slope" } else { "" },
            goal.limit as f64 / 1e6
        ),
        "duration": goal.duration.as_nanos() / 1_000_000_000,
        "attained": i32::from(seen.attained),
        "criterion": format!("{:.6}{percent}", seen.criterion()),
        "max_deviation": decimals(seen.deviation()),
        "slope": decimals(seen.slope()),
        "data": { "bw_mean": mean(&bw), "iops_mean": mean(&iops), "iops": iops, "bw": bw },
    })
}

fn disk_util(result: &RunResult) -> Value {
    let disk = &result.disk;
    let busy = Figure { job: None, what: What::Busy }.value(result);
    let millis = |duration: base::Duration| duration.as_nanos() / 1_000_000;
    json!({
        "name": "sda",
        "read_ios": disk.reads,
        "write_ios": disk.writes,
        "read_merges": 0,
        "write_merges": disk.merges,
        "read_ticks": millis(disk.read_time),
        "write_ticks": millis(disk.write_time),
        "in_queue": millis(disk.read_time) + millis(disk.write_time),
        "util": decimals(busy.unwrap_or(0.0)),
    })
}

/// Percentages under names; anything that is not nothing is at least 0.01.
fn named(names: &[&str], values: &[f64]) -> Value {
    let visible = |value: f64| if value > 0.0 { value.max(0.01) } else { 0.0 };
    let pairs = names.iter().zip(values);
    Value::Object(pairs.map(|(name, it)| (name.to_string(), decimals(visible(*it)))).collect())
}

/// A number as fio prints it, with six decimals.
fn decimals(value: f64) -> Value {
    Value::from((value * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Histogram;

    fn some_call() -> CallResult {
        let mut histogram = Histogram::new();
        histogram.record(base::Duration::from_micros(7));
        let lat = Latency::of(&histogram);
        let clat = lat.clone();
        CallResult { count: 1, lat, clat, decades: vec![0.0; 32], ..CallResult::default() }
    }

    #[test]
    fn percentiles_are_called_as_fio_calls_them() {
        let value = latency(&some_call().clat, true);
        assert_eq!(value["percentile"]["99.950000"], 7000);
        assert_eq!(value["N"], 1);
        assert!(latency(&Latency::default(), true).get("percentile").is_none());
    }
}
