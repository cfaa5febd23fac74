//! What `explain` prints of recordings, and the rows that `--events` writes.

use crate::directory::Directory;
use serde_json::Value;

const DD: [&str; 6] = ["--", "dd", "if=/dev/zero", "of=/dev/sda", "bs=4k", "count=50"];

/// A recording of a dd in the directory; its path.
fn record(directory: &Directory) -> &'static str {
    let options = ["compare", "--runs", "1", "-s", "deadline@4.19", "--record", "rec"];
    directory.print(&[&options[..], &DD[..], &["oflag=direct"]].concat());
    "rec/deadline@4.19-seed1"
}

fn a_recording_is_explained_request_by_request() {
    let directory = Directory::new("explain");
    let path = record(&directory);
    let text = directory.print(&["explain", path, "--slow", "2", "--hist"]);
    let parts = [
        "50 requests, device 8,0",
        "kernel 4.19, scheduler deadline",
        "dd write: 50 requests, mean ",
        "device-bound",
        "Q2Q  ",
        "w_await",
        "device: 50 requests, modes ",
        "dd write ",
        "Q +0 ns · G +",
    ];
    let mut rest = &text[..];
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("no {part:?} in\n{text}"));
        rest = &rest[at..];
    }
    let slow = text.lines().filter(|it| it.starts_with("  dd write ") && it.contains(" took "));
    assert_eq!(slow.count(), 2, "{text}");
    let by_name = directory.print(&["explain", &format!("{path}/sda")]);
    assert!(by_name.contains("50 requests"), "{by_name}");
    let json: Value = serde_json::from_str(&directory.print(&["explain", path, "--json"])).unwrap();
    assert_eq!((&json["requests"], &json["scheduler"]), (&50.into(), &"deadline".into()));
    assert_eq!(json["layers"]["device"]["count"], 50);
    assert_eq!(json["phases"][0]["phase"], "Q2Q");
}

fn the_text_of_blkparse_is_explained_too() {
    let directory = Directory::new("explain-text");
    let path = record(&directory);
    let mut text = Vec::new();
    let base = directory.path().join(path).join("sda");
    let records = trace::read_records(&base).unwrap();
    trace::blkparse::write(records, &mut text, "text").unwrap();
    directory.write("sda.txt", &text);
    let printed = directory.print(&["explain", "sda.txt"]);
    assert!(printed.contains("50 requests, device 8,0"), "{printed}");
    assert!(printed.contains("dd write: 50 requests"), "{printed}");
}

fn what_is_no_recording_is_refused_in_one_line() {
    let directory = Directory::new("explain-bad");
    directory.write("empty.blktrace.0", "");
    directory.write("noise.blktrace.0", [0x5a; 300]);
    directory.write("load.log", "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n");
    std::fs::create_dir(directory.path().join("nothing")).unwrap();
    for name in ["empty.blktrace.0", "noise.blktrace.0", "load.log", "nothing", "absent"] {
        let output = directory.run(&["explain", name]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("accepted: "), "{message}");
        assert!(output.stdout.is_empty());
    }
    let output = directory.run(&[&["explain", "--hist=pie"], &DD[..]].concat());
    assert_eq!(output.status.code(), Some(2));
}

fn a_call_is_shown_by_the_number_that_rows_have() {
    let directory = Directory::new("explain-call");
    let explain = ["explain", "--trials", "0", "-s", "none"];
    let of = |name: &str, value: &str| {
        let options = [&explain[..], &[name, value], &DD[..], &["oflag=direct"]].concat();
        options.into_iter().map(String::from).collect::<Vec<_>>()
    };
    let run =
        |options: &[String]| directory.run(&options.iter().map(|it| &it[..]).collect::<Vec<_>>());
    assert!(run(&of("--events", "e.csv")).status.success());
    let rows = std::fs::read_to_string(directory.path().join("e.calls.csv")).unwrap();
    let row: Vec<&str> = rows.lines().nth(8).unwrap().split(',').collect();
    let output = run(&of("--call", &format!("{}:{}", row[0], row[2])));
    let text = String::from_utf8(output.stdout).unwrap();
    let began = row[3].parse::<f64>().unwrap() / 1e9;
    assert!(text.contains(&format!("write of dd at {began:.6} s took")), "{text}");
    let slow = String::from_utf8(run(&of("--slow", "1")).stdout).unwrap();
    assert!(slow.contains(&format!("(--call {}:", row[0])), "{slow}");
    for bad in ["11", "11:x", "11:5000000"] {
        let output = run(&of("--call", bad));
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.starts_with("paternoster: --call: ") && message.lines().count() == 1);
        assert!(message.contains("; accepted: TASK:NUMBER, as --slow and the rows of --events"));
    }
}

fn histograms_come_in_the_forms_that_people_know() {
    let directory = Directory::new("explain-hist");
    let of = |form: &str| {
        let options = ["explain", "--trials", "0", "-s", "none", form];
        directory.print(&[&options[..], &DD[..], &["oflag=direct"]].concat())
    };
    let (bpftrace, bcc, json) = (of("--hist"), of("--hist=bcc"), of("--hist=json"));
    for part in ["D2C: 50 requests, modes ", "(50 write)", "dd write, device: 50 calls", "|@@"] {
        assert!(bpftrace.contains(part), "no {part:?} in\n{bpftrace}");
    }
    assert!(bcc.contains(": count     distribution"), "{bcc}");
    let lines = json.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let histograms: Vec<Value> = lines.filter(|it| it["type"] == "hist").collect();
    assert!(histograms.iter().any(|it| it["data"]["@D2C"].is_array()), "{json}");
}

fn a_page_of_a_recording_has_its_findings_and_a_timeline() {
    let directory = Directory::new("explain-page");
    let path = record(&directory);
    directory.print(&["explain", path, "--html", "page.html"]);
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    for part in ["deadline@4.19-seed1", "device-bound", "id=\"timeline\"", "50 requests"] {
        assert!(page.contains(part), "no {part:?} on the page");
    }
}

fn requests_and_calls_become_rows() {
    let directory = Directory::new("events");
    let lines =
        |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap().lines().count();
    let direct = |options: &[&str]| {
        directory.print(&[options, &DD[..], &["oflag=direct"]].concat());
    };
    direct(&["compare", "--runs", "1", "-s", "none", "--events", "one.csv"]);
    assert_eq!((directory.names(), lines("one.csv")), (vec!["one.csv".to_string()], 51));
    direct(&["compare", "--runs", "2", "-s", "none@6.18", "--events", "all.csv"]);
    assert_eq!(lines("all/none@6.18-seed2.csv"), 51);
    direct(&["explain", "--trials", "0", "-s", "none", "--events", "e.csv"]);
    assert_eq!((lines("e.csv"), lines("e.calls.csv")), (51, 51));
    direct(&["explain", "--trials", "0", "-s", "none", "--events", "e.parquet"]);
    let parquet = std::fs::read(directory.path().join("e.calls.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let path = record(&directory);
    directory.print(&["explain", path, "--events", "r.csv"]);
    assert_eq!(lines("r.csv"), 51);
    assert!(directory.names().iter().all(|it| !it.contains("partial")));
}

fn rows_of_an_unknown_kind_are_refused_before_anything_runs() {
    let directory = Directory::new("events-bad");
    for (verb, file) in [("compare", "x.arrow"), ("explain", "x"), ("explain", "no/x.csv")] {
        let output = directory.run(&[&[verb, "--events", file], &DD[..]].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("--events: ") && message.contains("accepted: "), "{message}");
    }
    assert!(directory.names().is_empty());
}

/// The tests of this file.
pub fn tests() -> Vec<testing::Test> {
    testing::tests![
        [] => a_recording_is_explained_request_by_request,
            the_text_of_blkparse_is_explained_too,
            what_is_no_recording_is_refused_in_one_line,
        a_call_is_shown_by_the_number_that_rows_have,
        histograms_come_in_the_forms_that_people_know,
        a_page_of_a_recording_has_its_findings_and_a_timeline,
            requests_and_calls_become_rows,
            rows_of_an_unknown_kind_are_refused_before_anything_runs
    ]
}
