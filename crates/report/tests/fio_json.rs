//! The JSON that is called fio's has the keys of fio's, in its order.

use std::process::Command;

use base::Histogram;
use lab::metrics::Latency;
use lab::result::{CallResult, JobResult, RunResult};
use report::fio_json::document;
use serde_json::Value;
use testing::needs::FIO;

fn some_call() -> CallResult {
    let mut histogram = Histogram::new();
    histogram.record(base::Duration::from_micros(7));
    let lat = Latency::of(&histogram);
    let clat = lat.clone();
    CallResult { count: 1, lat, clat, decades: vec![0.0; 32], ..CallResult::default() }
}

/// Every path of keys in a document, lists by their first element.
fn paths(value: &Value, prefix: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                out.push(format!("{prefix}/{key}"));
                paths(value, &format!("{prefix}/{key}"), out);
            }
        }
        Value::Array(list) => {
            if let Some(first) = list.first() {
                paths(first, &format!("{prefix}[]"), out);
            }
        }
        _ => {}
    }
}

fn our_paths() -> Vec<String> {
    let job = JobResult {
        name: "x".to_string(),
        calls: [some_call(), some_call(), CallResult::default(), CallResult::default()],
        ..JobResult::default()
    };
    let mut result = test_result();
    result.processes.push(job);
    let mut out = Vec::new();
    paths(&document(&result)["jobs"][0], "", &mut out);
    out
}

fn test_result() -> RunResult {
    RunResult {
        world: lab::World::Sim,
        spec: lab::SchedulerSpec::parse("none", "test", None).unwrap(),
        axes: Vec::new(),
        model: String::new(),
        fs: "raw",
        host: String::new(),
        seed: 1,
        tunables: Vec::new(),
        fingerprint: 0,
        elapsed: base::Duration::ZERO,
        jobs: Vec::new(),
        processes: Vec::new(),
        layers: Default::default(),
        disk: Default::default(),
        commands: Vec::new(),
        bios: Vec::new(),
        exits: Vec::new(),
    }
}

fn the_keys_are_those_of_fio_in_its_order() {
    let arguments = ["--output-format=json", "--name=x", "--ioengine=null", "--rw=randrw"];
    let mut fio = Command::new("fio");
    let output = fio.args(arguments).args(["--size=64k", "--bs=4k"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let theirs: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let mut expected = Vec::new();
    paths(&theirs["jobs"][0], "", &mut expected);
    let keep = |path: &&String| !path.starts_with("/job options/");
    let expected: Vec<&String> = expected.iter().filter(keep).collect();
    let ours = our_paths();
    let ours: Vec<&String> = ours.iter().filter(keep).collect();
    assert_eq!(ours, expected);
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![[FIO] => the_keys_are_those_of_fio_in_its_order])
}
