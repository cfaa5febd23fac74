//! A result in fio's own schema (fio 3.33, `--output-format=json`), for tools that read it.
//!
//! What a simulation does not know is zero: processor time, page faults, context switches and the
//! sizes of batches.

use lab::figure::{Figure, What};
use lab::metrics::calls::DEPTH_LEVELS;
use lab::metrics::samples::{Spread, WINDOW};
use lab::metrics::{CallKind, Latency};
use lab::result::{CallResult, JobResult, RunResult};
use serde_json::{Map, Value, json};

/// The names of fio's decades within a unit.
const STEPS: [&str; 10] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"];
/// The names of depth levels.
const LEVELS: [&str; DEPTH_LEVELS] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// The names of batch sizes.
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// The whole document.
pub fn document(result: &RunResult) -> Value {
    let jobs: Vec<Value> = result.processes.iter().map(|job| job_value(job, result)).collect();
    json!({
        "fio version": format!("paternoster-{}", env!("CARGO_PKG_VERSION")),
        "timestamp": 0,
        "timestamp_ms": 0,
        "time": "Thu Jan  1 00:00:00 1970",
        "jobs": jobs,
        "disk_util": [disk_util(result)],
    })
}

/// Reads, writes or trims.
pub fn direction(call: &CallResult, runtime_ns: u64) -> Value {
    let runtime = if call.count == 0 { 0 } else { runtime_ns / 1_000_000 };
    let mut value = Map::new();
    value.insert("io_bytes".into(), call.bytes.0.into());
    value.insert("io_kbytes".into(), (call.bytes.0 / 1024).into());
    value.insert("bw_bytes".into(), (call.bw_bytes as u64).into());
    value.insert("bw".into(), (call.bw_bytes as u64 / 1024).into());
    value.insert("iops".into(), decimals(call.iops));
    value.insert("runtime".into(), runtime.into());
    value.insert("total_ios".into(), call.count.into());
    value.insert("short_ios".into(), 0.into());
    value.insert("drop_ios".into(), 0.into());
    value.insert("slat_ns".into(), latency(&call.slat, false));
    value.insert("clat_ns".into(), latency(&call.clat, true));
    value.insert("lat_ns".into(), latency(&call.lat, false));
    samples("bw", "dev", &call.byte_samples, 1024.0, &mut value);
    value.shift_insert(
        value.keys().position(|key| key == "bw_mean").unwrap_or(0),
        "bw_agg".into(),
        decimals(if call.byte_samples.count > 0 { 100.0 } else { 0.0 }),
    );
    samples("iops", "stddev", &call.call_samples, 1.0, &mut value);
    Value::Object(value)
}

/// Syncs.
pub fn sync(call: &CallResult) -> Value {
    json!({ "total_ios": call.count, "lat_ns": latency(&call.lat, true) })
}

/// A distribution of durations.
pub fn latency(latency: &Latency, with_percentiles: bool) -> Value {
    let mut value = Map::new();
    value.insert("min".into(), latency.min.as_nanos().into());
    value.insert("max".into(), latency.max.as_nanos().into());
    value.insert("mean".into(), decimals(latency.mean.as_nanos() as f64));
    value.insert("stddev".into(), decimals(latency.stddev.as_nanos() as f64));
    value.insert("N".into(), latency.count.into());
    if with_percentiles && latency.count > 0 {
        let named = latency.percentiles.iter().map(|(hundredths, value)| {
            let percent = *hundredths as f64 / 100.0;
            (format!("{percent:.6}"), Value::from(value.as_nanos()))
        });
        value.insert("percentile".into(), Value::Object(named.collect()));
    }
    Value::Object(value)
}

fn job_value(job: &JobResult, result: &RunResult) -> Value {
    let failed = result.exits.iter().any(|exit| exit.job == job.name && exit.failed);
    let runtime = job.runtime.as_nanos();
    let of = |kind| direction(job.call(kind), runtime);
    let mut value = Map::new();
    value.insert("jobname".into(), job.name.clone().into());
    value.insert("groupid".into(), 0.into());
    value.insert("error".into(), i32::from(failed).into());
    value.insert("eta".into(), 0.into());
    value.insert("elapsed".into(), (runtime / 1_000_000_000 + 1).into());
    value.insert("job options".into(), json!({ "name": job.name }));
    value.insert("read".into(), of(CallKind::Read));
    value.insert("write".into(), of(CallKind::Write));
    value.insert("trim".into(), of(CallKind::Trim));
    value.insert("sync".into(), sync(job.call(CallKind::Sync)));
    value.insert("job_runtime".into(), (runtime / 1_000_000).into());
    for key in ["usr_cpu", "sys_cpu"] {
        value.insert(key.into(), decimals(0.0));
    }
    for key in ["ctx", "majf", "minf"] {
        value.insert(key.into(), 0.into());
    }
    let shares = job.depth_shares();
    value.insert("iodepth_level".into(), named(&LEVELS, &shares));
    value.insert("iodepth_submit".into(), named(&BATCHES, &[0.0; 7]));
    value.insert("iodepth_complete".into(), named(&BATCHES, &[0.0; 7]));
    let decades = job.decades();
    value.insert("latency_ns".into(), named(&STEPS, &decades[..10]));
    value.insert("latency_us".into(), named(&STEPS, &decades[10..20]));
    let millis: Vec<&str> = STEPS.into_iter().chain(["2000", ">=2000"]).collect();
    value.insert("latency_ms".into(), named(&millis, &decades[20..]));
    value.insert("latency_depth".into(), 1.into());
    value.insert("latency_target".into(), 0.into());
    value.insert("latency_percentile".into(), decimals(100.0));
    value.insert("latency_window".into(), 0.into());
    Value::Object(value)
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

/// The values of windows, per second and in a unit of so many.
fn samples(prefix: &str, deviation: &str, of: &Spread, unit: f64, value: &mut Map<String, Value>) {
    let per_second = 1e9 / WINDOW.as_nanos() as f64 / unit;
    let whole = |number: u64| Value::from((number as f64 * per_second) as u64);
    value.insert(format!("{prefix}_min"), whole(of.min));
    value.insert(format!("{prefix}_max"), whole(of.max));
    value.insert(format!("{prefix}_mean"), decimals(of.mean() * per_second));
    value.insert(format!("{prefix}_{deviation}"), decimals(of.deviation() * per_second));
    value.insert(format!("{prefix}_samples"), of.count.into());
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
        assert_eq!(value["percentile"]["99.950000"], 7008);
        assert_eq!(value["N"], 1);
        assert!(latency(&Latency::default(), true).get("percentile").is_none());
    }
}
