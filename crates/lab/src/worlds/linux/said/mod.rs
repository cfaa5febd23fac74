//! What programs in the guest print, as figures: fio's JSON with its bins, dd's last line,
//! closing lines of sysbench and dbench, pgioperf's bins.

mod dbench;
mod pgioperf;
mod startup;
mod sysbench;

use crate::error::Error;
use crate::metrics::latency::PERCENTILES;
use crate::metrics::{CallKind, Latency};
use crate::plan::PlannedJob;
use crate::result::{CallResult, FioProcess, JobResult, ProgramExit, Second, Steadiness, decades};
use crate::told;
use base::{Bytes, Duration, Histogram};
use linux::Outcome;
use programs::dd::Dd;
use programs::fio::Fio;
use programs::pgioperf::Pgioperf;
use programs::startup::Startup;
use programs::sysbench::Sysbench;
use serde_json::Value;

/// The status of a program that `timeout` has ended.
const STOPPED: u8 = 124;
/// fio's status when somebody has interrupted it (observed: fio 3.33); it sums up before, and adds
/// one for each of its jobs that had an error.
const INTERRUPTED: u8 = 128;
/// A signal ended the program; it is the rest (POSIX shell).
const SIGNALLED: u8 = 128;
const SIGTERM: u8 = 15;

/// A job's results.
pub struct Said {
    /// Clones together.
    pub jobs: Vec<JobResult>,
    /// Clones apart.
    pub processes: Vec<JobResult>,
    /// How it ended.
    pub exit: ProgramExit,
}

/// What a job said.
pub fn of_job(planned: &PlannedJob, outcome: &Outcome) -> Result<Said, Error> {
    let messages = String::from_utf8_lossy(&outcome.errors);
    let mut messages: Vec<String> = messages.lines().map(str::to_string).collect();
    let most = planned.program.downcast().map_or(0, |fio: &Fio| fio.jobs().len());
    let with_errors = usize::from(outcome.exit).checked_sub(INTERRUPTED.into());
    let stopped = [STOPPED, SIGNALLED + SIGTERM].contains(&outcome.exit)
        || with_errors.is_some_and(|errors| errors <= most);
    let (failed, how) = match outcome.exit {
        0 => (false, "ended".to_string()),
        _ if stopped => (false, "stopped when its time was over".to_string()),
        status => (true, format!("failed with exit status {status}")),
    };
    let program = &*planned.program;
    let (jobs, processes) = match () {
        () if program.is::<Fio>() && !failed => of_fio(planned, outcome)?,
        () if program.is::<Dd>() => {
            let result = of_dd(planned, &messages);
            (vec![result.clone()], vec![result])
        }
        () if told::is_dbench(program) && !failed => {
            let output = String::from_utf8_lossy(&outcome.output);
            let said = output.lines().map(str::to_string).collect();
            messages.extend(told::notes(program, said));
            let result = dbench::result(planned, &output);
            (vec![result.clone()], vec![result])
        }
        () if program.is::<Startup>() && !failed => {
            let output = String::from_utf8_lossy(&outcome.output);
            messages.extend(output.lines().map(str::to_string));
            let result = startup::result(planned, &output);
            (vec![result.clone()], vec![result])
        }
        () if program.is::<Pgioperf>() && !failed => {
            let output = String::from_utf8_lossy(&outcome.output);
            let pgioperf = program.downcast().expect("it is one");
            let (results, said) = pgioperf::results(planned, pgioperf, &output);
            messages.extend(said);
            (results.clone(), results)
        }
        () if program.is::<Sysbench>() && !failed => {
            let result = sysbench::result(planned, &String::from_utf8_lossy(&outcome.output));
            (vec![result.clone()], vec![result])
        }
        () => (Vec::new(), Vec::new()),
    };
    let exit = ProgramExit { job: planned.job.name.clone(), failed, how, messages };
    Ok(Said { jobs, processes, exit })
}

/// fio's answer: one object, perhaps with lines of warnings before it.
fn of_fio(
    planned: &PlannedJob,
    outcome: &Outcome,
) -> Result<(Vec<JobResult>, Vec<JobResult>), Error> {
    let text = String::from_utf8_lossy(&outcome.output);
    let bad = |what: &str| Error::linux(format!("job {}: fio's answer {what}", planned.job.name));
    let start = text.find('{').ok_or_else(|| bad("is not JSON"))?;
    let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let document = documents.next().and_then(Result::ok).ok_or_else(|| bad("is damaged"))?;
    let entries = document["jobs"].as_array().ok_or_else(|| bad("names no jobs"))?;
    let mut names: Vec<&str> = Vec::new();
    for entry in entries {
        let name = entry["jobname"].as_str().ok_or_else(|| bad("has a job without a name"))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let result = |name: &str, of: &[&Value]| {
        let (name, cgroup) = (planned.result_name(name, names.len() == 1), &planned.job.cgroup);
        job(name, cgroup, of)
    };
    let named = |name: &str| -> Vec<&Value> {
        entries.iter().filter(|entry| entry["jobname"] == *name).collect()
    };
    let jobs = names.iter().map(|name| result(name, &named(name))).collect();
    let processes = entries.iter().map(|entry| {
        let name = entry["jobname"].as_str().unwrap_or_default();
        let mut fio = said_of_itself(entry, &document["global options"]);
        fio.steady = steadiness(planned, fio.group, &entry["steadystate"]);
        let fio = Some(fio);
        JobResult { fio, ..result(name, &[entry]) }
    });
    Ok((jobs, processes.collect()))
}

/// What only fio knows of a process.
fn said_of_itself(entry: &Value, globals: &Value) -> FioProcess {
    let options = |value: &Value| {
        let all = value.as_object().into_iter().flatten();
        all.map(|(name, it)| (name.clone(), it.as_str().unwrap_or_default().to_string())).collect()
    };
    let shares = |key: &str| {
        let all = entry[key].as_object().into_iter().flatten();
        all.map(|(_, share)| share.as_f64().unwrap_or(0.0)).collect()
    };
    FioProcess {
        group: whole(&entry["groupid"]) as u32,
        options: options(&entry["job options"]),
        global_options: options(globals),
        submitted: shares("iodepth_submit"),
        completed: shares("iodepth_complete"),
        depth: whole(&entry["latency_depth"]) as usize,
        target: None,
        steady: None,
    }
}

/// What fio has seen of a rate that was to become steady. Seconds that it has not seen are zeros.
fn steadiness(planned: &PlannedJob, group: u32, said: &Value) -> Option<Steadiness> {
    let fio: &Fio = planned.program.downcast()?;
    let goal = fio.jobs().iter().find(|job| job.group == group)?.goal.steady?;
    let of = |key: &str| said["data"][key].as_array().into_iter().flatten().map(whole);
    let both = of("iops").zip(of("bw"));
    let mut seconds: Vec<Second> =
        both.map(|(requests, bytes)| Second { requests, bytes }).collect();
    while seconds.last() == Some(&Second::default()) {
        seconds.pop();
    }
    Some(Steadiness { goal, attained: whole(&said["attained"]) != 0, seconds })
}

/// The clones of a section as one.
fn job(name: String, cgroup: &str, clones: &[&Value]) -> JobResult {
    let kinds = [CallKind::Read, CallKind::Write, CallKind::Trim];
    let names = ["read", "write", "trim"];
    let mut result = JobResult {
        name,
        cgroup: cgroup.to_string(),
        tasks: clones.len() as u32,
        ..JobResult::default()
    };
    let parts_of = |name: &str| clones.iter().map(|clone| &clone[name]).collect::<Vec<_>>();
    result.runtime = names.iter().map(|name| runtime(&parts_of(name))).max().unwrap_or_default();
    for (kind, name) in kinds.into_iter().zip(names) {
        result.calls[kind as usize] = calls(&parts_of(name), result.runtime);
    }
    let syncs: Vec<&Value> = clones.iter().map(|clone| &clone["sync"]).collect();
    let lat = latency(&syncs, "lat_ns");
    let count = syncs.iter().map(|sync| whole(&sync["total_ios"])).sum();
    result.calls[CallKind::Sync as usize] =
        CallResult { count, clat: lat.clone(), lat, ..CallResult::default() };
    result
}

/// The longest runtime, which fio states in milliseconds.
fn runtime(parts: &[&Value]) -> Duration {
    let longest = parts.iter().map(|part| whole(&part["runtime"])).max();
    Duration::from_millis(longest.unwrap_or(0))
}

/// What fio says of one kind of call. It states no runtime for the reads of a job that was ended
/// while it verified what it had written; the whole job's is meant then.
fn calls(parts: &[&Value], of_job: Duration) -> CallResult {
    let sum = |key: &str| parts.iter().map(|part| whole(&part[key])).sum::<u64>();
    let (count, bytes) = (sum("total_ios"), sum("io_bytes"));
    let stated = Some(runtime(parts)).filter(|it| !it.is_zero()).unwrap_or(of_job);
    let seconds = stated.as_nanos() as f64 / 1e9;
    let rate = |amount: u64| if seconds == 0.0 { 0.0 } else { amount as f64 / seconds };
    CallResult {
        count,
        bytes: Bytes(bytes),
        bw_bytes: rate(bytes),
        iops: rate(count),
        slat: latency(parts, "slat_ns"),
        clat: latency(parts, "clat_ns"),
        lat: latency(parts, "lat_ns"),
        decades: decades(bins(parts, "lat_ns")),
        ..CallResult::default()
    }
}

/// The middle of fio's last bin, which takes whatever is longer (fio 3.33, json+).
const LAST_BIN_OF_FIO: Duration = Duration::from_nanos(17_112_760_320);

/// The distribution of all parts together. Mean and spread are fio's own; the percentiles as well
/// where there is one part, else they come from the bins.
fn latency(parts: &[&Value], key: &str) -> Latency {
    let used: Vec<&Value> =
        parts.iter().map(|part| &part[key]).filter(|it| whole(&it["N"]) > 0).collect();
    let count: u64 = used.iter().map(|it| whole(&it["N"])).sum();
    if count == 0 {
        return Latency::default();
    }
    let weighted = |of: &dyn Fn(&Value) -> f64| {
        used.iter().map(|it| of(it) * whole(&it["N"]) as f64).sum::<f64>() / count as f64
    };
    let mean = weighted(&|it| real(&it["mean"]));
    let square = weighted(&|it| real(&it["stddev"]).powi(2) + real(&it["mean"]).powi(2));
    let nanos = |value: f64| Duration::from_nanos(value.max(0.0) as u64);
    let least = used.iter().map(|it| whole(&it["min"])).min().unwrap_or(0);
    let most = used.iter().map(|it| whole(&it["max"])).max().unwrap_or(0);
    let mut histogram = Histogram::new();
    for (nanos, n) in bins(parts, key) {
        histogram.record_n(Duration::from_nanos(nanos), n);
    }
    let percentiles = match used.as_slice() {
        [only] => stated(only),
        _ => {
            let point = |it: u64| (it, histogram.quantile(it, 10_000));
            PERCENTILES.iter().copied().map(point).collect()
        }
    };
    let (min, max) = (Duration::from_nanos(least), Duration::from_nanos(most));
    // The middle of fio's bin may lie beyond what was measured.
    let within = percentiles.into_iter().map(|(point, value)| (point, value.clamp(min, max)));
    Latency {
        count,
        min,
        max,
        mean: nanos(mean),
        stddev: nanos((square - mean * mean).max(0.0).sqrt()),
        percentiles: within.collect(),
        ceiling: LAST_BIN_OF_FIO,
        bins: Latency::bins_of(&histogram),
    }
}

/// The percentiles as fio states them: `"99.900000": nanoseconds`.
fn stated(of: &Value) -> Vec<(u64, Duration)> {
    let value = |hundredths: u64| {
        let name = format!("{}.{:02}0000", hundredths / 100, hundredths % 100);
        Some((hundredths, Duration::from_nanos(of["percentile"].get(name)?.as_u64()?)))
    };
    PERCENTILES.iter().copied().filter_map(value).collect()
}

/// Nanoseconds and how many calls took that long, of all parts.
fn bins(parts: &[&Value], key: &str) -> Vec<(u64, u64)> {
    let all = parts.iter().filter_map(|part| part[key]["bins"].as_object()).flatten();
    all.filter_map(|(nanos, count)| Some((nanos.parse().ok()?, count.as_u64()?))).collect()
}

/// dd says a nanosecond where its clock has not moved (coreutils 9.1): its rate is not known.
const CLOCK_STOOD: f64 = 1e-9;

/// dd says how much it copied and in which time; not whether that was reading or writing, but a
/// disk is only ever one of the two.
fn of_dd(planned: &PlannedJob, messages: &[String]) -> JobResult {
    let mut result = JobResult {
        name: planned.job.name.clone(),
        cgroup: planned.job.cgroup.clone(),
        tasks: 1,
        ..JobResult::default()
    };
    let Some((bytes, seconds)) = messages.iter().find_map(|line| copied(line)) else {
        return result;
    };
    let records = messages.iter().find_map(|line| {
        let (whole, part) = line.strip_suffix(" records out")?.split_once('+')?;
        Some(whole.parse::<u64>().ok()? + part.parse::<u64>().ok()?)
    });
    let line = planned.line.as_deref().unwrap_or_default();
    let writes =
        line.split_whitespace().any(|word| word.starts_with("of=") && word != "of=/dev/null");
    let kind = if writes { CallKind::Write } else { CallKind::Read };
    let count = records.unwrap_or(0);
    let rate = |amount: u64| if seconds > CLOCK_STOOD { amount as f64 / seconds } else { 0.0 };
    result.runtime = Duration::from_nanos((seconds * 1e9) as u64);
    result.calls[kind as usize] = CallResult {
        count,
        bytes: Bytes(bytes),
        bw_bytes: rate(bytes),
        iops: rate(count),
        ..CallResult::default()
    };
    result
}

/// `1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.0123 s, 85.2 MB/s`
fn copied(line: &str) -> Option<(u64, f64)> {
    let (before, after) = line.split_once(" copied, ")?;
    let bytes = before.split_whitespace().next()?.parse().ok()?;
    let seconds = after.split_once(" s,").map_or(after, |(seconds, _)| seconds);
    Some((bytes, seconds.trim().parse().ok()?))
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn real(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_line_of_dd_is_understood() {
        let line = "1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.0123 s, 85.2 MB/s";
        assert_eq!(copied(line), Some((1_048_576, 0.0123)));
        assert_eq!(copied("512 bytes copied, 1.5 s, 0.3 kB/s"), Some((512, 1.5)));
        assert_eq!(copied("1+0 records in"), None);
    }

    #[test]
    fn a_dd_whose_clock_stood_has_no_rate() {
        let mut planned = PlannedJob::new("dd", std::sync::Arc::new(programs::Sync));
        planned.line = Some("dd if=/dev/zero of=/dev/sda".into());
        let rate = |said: &str| {
            let said = ["30+0 records out".to_string(), format!("122880 bytes copied, {said}")];
            let result = of_dd(&planned, &said);
            result.calls.iter().map(|it| it.bw_bytes).sum::<f64>()
        };
        assert_eq!(rate("1e-09 s, 123 TB/s"), 0.0);
        assert_eq!(rate("0.5 s, 246 kB/s"), 245_760.0);
    }

    #[test]
    fn reads_of_which_fio_states_no_runtime_are_those_of_the_whole_job() {
        let kind = |runtime: u64| {
            json!({ "total_ios": 100, "io_bytes": 51_200,
            "runtime": runtime })
        };
        let result = job("x".into(), "/", &[&json!({ "read": kind(0), "write": kind(500) })]);
        let rates = [CallKind::Read, CallKind::Write].map(|it| result.call(it).iops);
        assert_eq!(rates, [200.0, 200.0]);
        let idle = job("x".into(), "/", &[&json!({ "read": kind(0) })]);
        assert_eq!(idle.call(CallKind::Read).iops, 0.0);
    }

    #[test]
    fn clones_are_taken_together_by_their_bins() {
        let clone = |nanos: u64, n: u64| {
            let bins = json!({ nanos.to_string(): n });
            let times = json!({ "min": nanos, "max": nanos, "mean": nanos as f64, "stddev": 0.0,
                "N": n, "percentile": { "50.000000": nanos }, "bins": bins });
            json!({ "read": { "total_ios": n, "io_bytes": n * 512, "runtime": 1000,
                "clat_ns": times } })
        };
        let (one, other) = (clone(100, 3), clone(200, 1));
        let result = job("x".into(), "/", &[&one, &other]);
        let read = result.call(CallKind::Read);
        assert_eq!((read.count, read.bytes, read.iops), (4, Bytes(2048), 4.0));
        assert_eq!((read.clat.mean.as_nanos(), read.clat.stddev.as_nanos()), (125, 43));
        assert_eq!(read.clat.percentile(5000), Some(Duration::from_nanos(100)));
        assert_eq!(read.clat.percent_over(Duration::from_nanos(100)), Some(25.0));
        let alone = job("x".into(), "/", &[&other]);
        let percentile = alone.call(CallKind::Read).clat.percentile(5000);
        assert_eq!(percentile, Some(Duration::from_nanos(200)));
    }
}
