//! The JSON that is called fio's has the keys of fio's, in its order, and values of the same types.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use lab::experiment::input::{self, TraceOptions};
use lab::matrix;
use lab::plan::Plan;
use report::fio_json::document;
use serde_json::Value;
use testing::needs::FIO;

/// Jobs of several engines in two groups; the file that they share stands where `FILE` does.
const JOBS: &str = "[global]\nfilename=FILE\nsize=256k\nbs=4k\n\n[sync]\nrw=randrw\nnorandommap\n\
    \n[queue]\nioengine=libaio\nreadwrite=randrw\niodepth=32\niodepth_batch=8\nbs=4k,8k\n\
    \n[last]\nstonewall\nrw=write\nfsync=8\nname=other\nss=bw_slope:1%\n\
    ss_dur=3\n";

/// What fio says of the jobs, and what comes out here.
fn both() -> (Value, Value) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("paternoster-json-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("jobs.fio");
    let data = directory.join("data").display().to_string();
    std::fs::write(&file, JOBS.replace("FILE", &data)).unwrap();
    let both = (theirs(&file), ours(&file));
    std::fs::remove_dir_all(&directory).unwrap();
    both
}

fn theirs(file: &Path) -> Value {
    let output = Command::new("fio").arg("--output-format=json").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap()
}

fn ours(file: &Path) -> Value {
    let mut experiment = input::load(file, &TraceOptions::default()).unwrap();
    experiment.seeds = vec![1];
    experiment.schedulers.truncate(1);
    let report = matrix::run(Plan::new(experiment).unwrap(), None, 1, &|_| ()).unwrap();
    document(&report.results[0])
}

/// Every path of keys in a document with the type of what stands there, lists by their elements.
fn schema(value: &Value, prefix: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, it)| schema(it, &format!("{prefix}/{key}"), out));
        }
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(at, it)| schema(it, &format!("{prefix}[{at}]"), out));
        }
        Value::Number(number) if number.is_f64() => out.push(format!("{prefix}: decimals")),
        Value::Number(_) => out.push(format!("{prefix}: whole")),
        Value::String(_) => out.push(format!("{prefix}: text")),
        _ => out.push(format!("{prefix}: {value}")),
    }
}

fn the_schema_is_that_of_fio() {
    let (mut theirs, mut ours) = both();
    // Which disks there are is not fio's affair, and some hosts show none.
    let disk = theirs["disk_util"].get(0).cloned();
    theirs["disk_util"] = Value::Null;
    let our_disk = ours["disk_util"][0].take();
    ours["disk_util"] = Value::Null;
    let schema_of = |value: &Value| {
        let mut out = Vec::new();
        schema(value, "", &mut out);
        // fio puts the options that others depend on before them.
        let is_option = |it: &&mut String| it.contains(" options/");
        let mut options: Vec<String> =
            out.iter().filter(|it| it.contains(" options/")).cloned().collect();
        options.sort();
        out.iter_mut().filter(is_option).zip(options).for_each(|(at, it)| *at = it);
        out
    };
    assert_eq!(schema_of(&ours), schema_of(&theirs));
    if let Some(disk) = disk {
        // An array or a logical volume has figures of its parts besides.
        let theirs = schema_of(&disk);
        let theirs: Vec<&String> = theirs.iter().filter(|it| !it.contains("aggr_")).collect();
        let ours = schema_of(&our_disk);
        assert_eq!(
            ours.iter().map(|it| type_of_disk(it)).collect::<Vec<_>>(),
            theirs.into_iter().map(|it| type_of_disk(it)).collect::<Vec<_>>()
        );
    }
}

/// `util` is whole in fio where it is nothing.
fn type_of_disk(path: &str) -> &str {
    if path.starts_with("/util") { "/util" } else { path }
}

fn options_are_as_they_were_typed() {
    let (theirs, ours) = both();
    assert_eq!(ours["global options"], theirs["global options"]);
    for (ours, theirs) in
        ours["jobs"].as_array().unwrap().iter().zip(theirs["jobs"].as_array().unwrap())
    {
        for key in ["jobname", "groupid", "error", "job options", "latency_depth"] {
            assert_eq!(ours[key], theirs[key], "{key}");
        }
    }
}

fn shares_are_of_everything() {
    let (_, ours) = both();
    for job in ours["jobs"].as_array().unwrap() {
        for key in ["iodepth_level", "iodepth_submit", "iodepth_complete"] {
            let all: f64 = job[key].as_object().unwrap().values().filter_map(Value::as_f64).sum();
            assert!((all - 100.0).abs() < 0.1, "{key}: {all}");
        }
        let latency = ["latency_ns", "latency_us", "latency_ms"];
        let shares = latency.iter().flat_map(|key| job[key].as_object().unwrap().values());
        let all: f64 = shares.filter_map(Value::as_f64).sum();
        assert!((all - 100.0).abs() < 0.5, "{all}");
    }
    let submitted = &ours["jobs"][1]["iodepth_submit"];
    assert!(submitted["8"].as_f64().unwrap() > 50.0, "{submitted}");
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [FIO] => the_schema_is_that_of_fio, options_are_as_they_were_typed, shares_are_of_everything
    ])
}
