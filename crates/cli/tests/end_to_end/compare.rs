//! What `compare` and `list` print and write.

use crate::directory::{Directory, workspace};
use expect_test::expect_file;
use serde_json::Value;
use std::process::{Command, Stdio};
use testing::needs::{BLKTRACE, TRACES, traces};

const DD: [&str; 6] = ["--", "dd", "if=/dev/zero", "of=/dev/sda", "bs=4k", "count=100"];

fn dd(directory: &Directory, options: &[&str]) -> String {
    directory.print(&[&["compare"], options, &DD[..], &["oflag=direct"]].concat())
}

fn a_command_is_compared_under_the_default_schedulers() {
    let directory = Directory::new("default");
    let text = dd(&directory, &[]);
    let header = text.lines().next().unwrap();
    assert!(header.starts_with("world sim · kernel 6.18 · model hdd-7200-sata · host host-2020"));
    assert!(text.lines().any(|line| line.starts_with("none ")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("mq-deadline ")), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 100), "{text}");
    assert!(!text.contains('\x1b'), "no colours when piped");
}

fn the_documented_json_comes_out() {
    let directory = Directory::new("json");
    let text =
        dd(&directory, &["--json", "-s", "all", "--runs", "2", "--vary", "nr_requests=16,32"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 8 * 2 * 2);
    let first = &results[0];
    assert_eq!((&first["world"], &first["fs"]), (&"sim".into(), &"raw".into()));
    assert_eq!(first["axes"]["nr_requests"], 16);
    assert_eq!(first["tunables"]["nr_requests"], 16);
    assert_eq!(first["fingerprint"].as_str().unwrap().len(), 16);
    let job = &first["jobs"][0];
    assert_eq!((&job["jobname"], &job["write"]["total_ios"]), (&"dd".into(), &100.into()));
    assert_eq!(job["write"]["io_bytes"], 409_600);
    assert_eq!(job["write"]["lat_ns"]["N"], 100);
    assert_eq!(job["layers"]["device"]["N"], 100);
    assert_eq!(first["disk"]["write_bytes"], 409_600);
    let held = &first["disk"]["held_by_reason"];
    let sum: u64 = held.as_object().unwrap().values().map(|it| it.as_u64().unwrap()).sum();
    assert_eq!(first["disk"]["held_ns"], sum);
    assert_eq!(document["summary"].as_array().unwrap().len(), 8 * 2);
    assert_eq!(document["summary"][0]["figures"]["dd.bw"]["n"], 2);
}

fn the_same_seed_gives_the_same_document() {
    let directory = Directory::new("same");
    let options = ["--json", "--runs", "2", "-s", "all"];
    assert_eq!(dd(&directory, &options), dd(&directory, &options));
}

fn results_go_to_files_that_are_complete() {
    let directory = Directory::new("files");
    dd(&directory, &["--json=all.json", "--fio-json", "fio", "--runs", "1"]);
    assert_eq!(directory.names(), ["all.json", "fio"]);
    let text = std::fs::read_to_string(directory.path().join("all.json")).unwrap();
    assert!(serde_json::from_str::<Value>(&text).is_ok());
    let text =
        std::fs::read_to_string(directory.path().join("fio/mq-deadline@6.18-seed1.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["jobs"][0]["write"]["total_ios"], 100);
    assert_eq!(document["disk_util"][0]["write_ios"], 100);
}

fn a_page_with_the_timelines_of_two_schedulers_comes_out() {
    let directory = Directory::new("page");
    let text = dd(&directory, &["--html", "a.html", "--perfetto", "a.json", "-s", "noop,cfq"]);
    assert!(text.contains("noop"), "the text is printed all the same");
    assert_eq!(directory.names(), ["a.html", "a.json"]);
    let page = std::fs::read_to_string(directory.path().join("a.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert_eq!(page.matches("class=\"timeline-head\"").count(), 2);
    let events = std::fs::read_to_string(directory.path().join("a.json")).unwrap();
    let events: Value = serde_json::from_str(&events).unwrap();
    let bars = events["traceEvents"].as_array().unwrap().iter();
    let bars = bars.filter(|it| it["ph"] == "X" && it["args"]["sector"].is_u64());
    assert_eq!(bars.count(), 2 * 2 * 100, "each request in its task's lane and the device's");
    let page = directory.print(&[&["compare", "--runs", "1", "--html", "-"][..], &DD].concat());
    assert!(page.starts_with("<!doctype html>"), "only the page");
    let asked = ["explain", "--trials", "0", "-s", "noop,cfq,deadline", "--html", "-"];
    let page = directory.print(&[&asked[..], &DD].concat());
    assert!(page.starts_with("<!doctype html>"), "only the page");
    assert_eq!(page.matches("class=\"timeline-head\"").count(), 2);
    assert_eq!(page.matches("class=\"callers\"").count(), 3);
}

fn what_is_no_regular_file_is_written_to_and_stays() {
    let directory = Directory::new("streams");
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    directory.write("target", "before");
    std::os::unix::fs::symlink("target", directory.path().join("link")).unwrap();
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || std::fs::read_to_string(fifo).unwrap())
    };
    dd(&directory, &["--json=fifo", "--csv=link", "--runs", "1"]);
    assert!(serde_json::from_str::<Value>(&reader.join().unwrap()).is_ok());
    assert_eq!(directory.names(), ["fifo", "link", "target"]);
    assert!(std::fs::symlink_metadata(directory.path().join("link")).unwrap().is_symlink());
    let csv = std::fs::read_to_string(directory.path().join("target")).unwrap();
    assert!(csv.starts_with("world,kernel,scheduler,label,figure,mean,"), "{csv}");
    let text = dd(&directory, &["--json=/dev/stdout", "--runs", "1"]);
    assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
    // Results are not lost with a file that cannot be written.
    let all = [&["compare", "--runs", "1", "--json=/dev/full"][..], &DD].concat();
    let output = directory.run(&all);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("mq-deadline"));
}

fn what_is_worse_than_it_was_saved_or_expected_exits_with_1() {
    let directory = Directory::new("check");
    let status = |options: &[&str]| {
        let all = [&["compare", "--runs", "1"], options, &DD[..], &["oflag=direct"]].concat();
        directory.run(&all).status.code()
    };
    assert_eq!(status(&["--json=saved.json"]), Some(0));
    assert_eq!(status(&["--check=saved.json"]), Some(0));
    assert_eq!(status(&["--check"]), Some(2), "nothing is expected");
    let text = std::fs::read_to_string(directory.path().join("saved.json")).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document["summary"][0]["figures"]["dd.bw"]["mean"] = 1e12.into();
    directory.write("better.json", document.to_string());
    assert_eq!(status(&["--check=better.json"]), Some(1));
    let job = "seeds = 1\nschedulers = [\"none\"]\n[[job]]\nname = \"dd\"\n\
               run = \"dd if=/dev/zero of=/dev/sda count=9 oflag=direct\"\n[expect]\n";
    directory.write("x.toml", format!("{job}none = {{ bw = \"> 1 GB/s\" }}\n"));
    assert_eq!(directory.run(&["compare", "x.toml"]).status.code(), Some(0));
    assert_eq!(directory.run(&["compare", "--check", "x.toml"]).status.code(), Some(1));
}

fn what_was_saved_and_is_missing_exits_with_1() {
    let directory = Directory::new("missing");
    let held = |options: &[&str]| {
        let all = [&["compare", "--runs", "1"], options, &DD[..], &["oflag=direct"]].concat();
        let output = directory.run(&all);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let assert_held = |options: &[&str], status, says: &str| {
        let (code, said) = held(options);
        assert!(code == Some(status) && said.contains(says), "{options:?}: {code:?} {said}");
    };
    held(&["--json=saved.json"]);
    let chosen = ["--check=saved.json", "-s", "none"];
    assert_held(&chosen, 0, "mq-deadline@6.18 was saved, and is not asked for");
    assert_held(&["--check=saved.json", "-s", "all"], 0, "noop@4.19 was not saved");
    let text = std::fs::read_to_string(directory.path().join("saved.json")).unwrap();
    let saved: Value = serde_json::from_str(&text).unwrap();
    let (mut rows, mut jobs) = (saved.clone(), saved);
    let mut more = rows["summary"][0].clone();
    more["label"] = "cfq@4.19".into();
    rows["summary"].as_array_mut().unwrap().push(more);
    directory.write("rows.json", rows.to_string());
    assert_held(&["--check=rows.json"], 1, "cfq@4.19 was saved, and was not run");
    jobs["results"][0]["jobs"][0]["jobname"] = "other".into();
    directory.write("jobs.json", jobs.to_string());
    assert_held(&["--check=jobs.json"], 1, "job other was saved, and is not there now");
}

fn results_fit_the_terminal_and_its_letters() {
    let directory = Directory::new("width");
    let all = [&["compare", "--runs", "1", "-s", "all"][..], &DD, &["oflag=direct"]].concat();
    for width in ["60", "80", "120"] {
        let output = directory.run_with(&[("COLUMNS", width)], &all);
        let text = String::from_utf8(output.stdout).unwrap();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width.parse().unwrap(), "{text}");
    }
    let output = directory.run_with(&[("LC_ALL", "C")], &all);
    assert!(output.stdout.is_ascii());
}

fn what_a_terminal_would_obey_is_shown_instead() {
    let directory = Directory::new("escapes");
    let text = directory.print(&[
        "compare",
        "--runs",
        "1",
        "--job",
        "a\x1b[31mb",
        "dd if=/dev/zero of=/dev/sda count=9 oflag=direct",
    ]);
    assert!(!text.contains('\x1b') && text.contains("a\\u{1b}[31mb"), "{text}");
}

fn schedulers_are_judged_by_the_figure_that_is_named() {
    let directory = Directory::new("metric");
    let text = dd(&directory, &["--json", "--runs", "1", "--metric", "write_p99.9"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["judged_by"], "dd.write_p99.9");
    let all = [&["compare", "--json", "--runs", "1"][..], &DD, &["oflag=dsync"]].concat();
    let document: Value = serde_json::from_str(&directory.print(&all)).unwrap();
    assert_eq!(document["judged_by"], "dd.write_p99", "it waits for each write");
}

fn a_recording_is_read_by_blkparse_without_complaint() {
    let directory = Directory::new("record");
    dd(&directory, &["--record", "rec", "--runs", "1", "-s", "all"]);
    let base = directory.path().join("rec/deadline@4.19-seed1");
    assert!(base.join("sda.blktrace.0").exists());
    let blkparse = Command::new("blkparse").args(["-i", "sda"]).current_dir(&base).output();
    let output = blkparse.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let complaints: String = String::from_utf8(output.stderr)
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with("Input file "))
        .collect();
    assert_eq!((output.status.code(), complaints.as_str()), (Some(0), ""));
    let events = |letter: &str| {
        text.lines().filter(|line| line.split_whitespace().nth(5) == Some(letter)).count()
    };
    assert_eq!((events("Q"), events("D"), events("C")), (100, 100, 100), "{text}");
    assert!(text.contains("[dd]") && !text.contains("(null)"), "{text}");
    // What exists is not overwritten.
    let arguments = [&["compare", "--record", "rec", "--runs", "1", "-s", "all"][..], &DD].concat();
    assert_eq!(directory.run(&arguments).status.code(), Some(2));
}

fn a_recording_can_be_replayed() {
    let directory = Directory::new("replay");
    dd(&directory, &["--record", "rec", "--runs", "1", "-s", "none"]);
    let text = directory.print(&["compare", "--json", "--runs", "1", "rec/none@6.18-seed1/sda"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["results"][0]["disk"]["write_bytes"], 409_600);
}

fn a_program_that_fails_is_told_and_exits_with_1() {
    let directory = Directory::new("failed");
    let seek = "seek=99999999999";
    let all = ["compare", "--", "dd", "if=/dev/zero", "of=/dev/sda", "oflag=direct", seek];
    let output = directory.run(&[&all[..], &["count=1"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("dd failed with exit status 1"), "{text}");
    let output = directory.run(&[&["explain"], &all[1..], &["count=1"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("dd failed with exit status 1"), "{text}");
}

fn a_reader_who_goes_away_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_paternoster"))
        .args(["list", "tunables"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

fn a_standard_output_that_is_closed_is_a_failure() {
    let line = format!("{} list kernels >&-", env!("CARGO_BIN_EXE_paternoster"));
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("standard output: cannot be written: it is closed"), "{message}");
}

fn names_of_files_begin_where_the_file_system_is() {
    let directory = Directory::new("relative");
    let fs = ["compare", "--fs", "ext4", "--runs", "1", "-s", "none", "--json", "--"];
    for line in [
        "dd if=/dev/zero of=test.img bs=4k count=5 conv=fsync",
        "truncate -s 64k a && cp ./a b && sync",
        "lg name=a,file=x,rw=write,bs=4k,n=3,direct=0",
        "fio --name=x --filename=x --rw=write --size=64k",
        "sysbench fileio --file-num=1 --file-total-size=64k prepare",
        "pgioperf --prepare --size=1m && pgioperf --size=1m --readers=2 --lines=1",
    ] {
        let text = directory.print(&[&fs[..], &[line]].concat());
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["results"][0]["fs"], "ext4", "{line}");
    }
}

fn a_job_is_called_what_its_user_would_call_it() {
    let directory = Directory::new("names");
    let name = |arguments: &[&str]| {
        let all = [&["compare", "--runs", "1", "-s", "none", "--json"], arguments].concat();
        let document: Value = serde_json::from_str(&directory.print(&all)).unwrap();
        let jobs = document["results"][0]["jobs"].as_array().unwrap().clone();
        let names = jobs.iter().map(|job| job["jobname"].as_str().unwrap().to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    let fio = "fio --name=etcd --filename=/dev/sda --rw=read --size=64k";
    let dd = "dd if=/dev/sda of=/dev/null count=9";
    assert_eq!(name(&["--", fio]), "etcd");
    assert_eq!(name(&["--", &format!("{fio} --name=b --filename=/dev/sda --size=4k")]), "etcd b");
    assert_eq!(name(&["--", &format!("sudo nice -n 5 ionice -c3 timeout 9 {dd}")]), "dd");
    assert_eq!(name(&["--job", "etcd", dd, "--", fio]), "etcd fio");
    assert_eq!(name(&["--job", "dd", dd, "--", dd]), "dd dd-2");
}

fn everything_can_be_listed() {
    let directory = Directory::new("list");
    let subjects = ["schedulers", "models", "hosts", "guests", "kernels", "programs", "tunables"];
    for subject in subjects.into_iter().chain(["experiments", "metrics"]) {
        assert!(directory.print(&["list", subject]).lines().count() > 1, "{subject}");
    }
    let tunables = directory.print(&["list", "tunables", "mq-deadline"]);
    assert!(tunables.contains("prio_aging_expire") && tunables.contains("nr_requests"));
    assert!(directory.print(&["list", "models", "hdd-7200-sata"]).contains("mechanics.rpm"));
    assert!(directory.print(&["list", "hosts", "vm-2019"]).contains("cost.driver"));
    assert!(directory.print(&["list"]).contains("blk-mq"));
}

fn help_completions_and_man_page_come_from_the_same_place() {
    let directory = Directory::new("help");
    let script = directory.print(&["completions", "bash"]);
    for value in ["--scheduler", "hdd-7200-sata", "mq-deadline", "vm-2019", "journal-pingpong"] {
        assert!(script.contains(value), "{value}");
    }
    assert!(script.contains(" sync_p99.9 ") && script.contains(" 2.6.32 "));
    let verbs = directory.print(&["--help"]);
    assert!(verbs.contains("  man ") && verbs.contains("  completions "), "{verbs}");
    assert!(!verbs.contains("not available yet"), "{verbs}");
    assert!(directory.print(&["man"]).starts_with(".ie"));
    assert!(directory.print(&["man", "compare"]).contains("fio\\-json"));
    assert_eq!(directory.run(&["man", "compair"]).status.code(), Some(2));
    let help = directory.print(&["compare", "--help"]);
    for option in ["--model", "--vary", "--replay", "--fio-json", "Examples:"] {
        assert!(help.contains(option), "{option}");
    }
}

fn help_reads_as_it_did() {
    let directory = Directory::new("golden");
    expect_file!["../golden/help.txt"].assert_eq(&directory.print(&["--help"]));
    expect_file!["../golden/help-explain.txt"].assert_eq(&directory.print(&["explain", "--help"]));
    let help = directory.print(&["compare", "--help"]);
    expect_file!["../golden/help-compare.txt"].assert_eq(&help);
}

/// What is published changes only together with a line in the change log.
fn the_first_experiment_comes_out_as_it_was_published_in_debug_and_in_release() {
    let directory = Directory::new("first-light");
    let experiment = workspace().join("experiments/first-light.toml").display().to_string();
    let text = directory.print(&["compare", "--json=all.json", &experiment]);
    let begin = text.find("world sim").unwrap();
    // How long it took is not part of what came out.
    let (header, rest) = text[begin..].split_once('\n').unwrap();
    let header = &header[..header.rfind(" · ").unwrap()];
    let json = std::fs::read_to_string(directory.path().join("all.json")).unwrap();
    let document: Value = serde_json::from_str(&json).unwrap();
    let mut seen = format!("{header}\n{rest}\n");
    for result in document["results"].as_array().unwrap() {
        let word = |key: &str| result[key].as_str().unwrap();
        let seed = &result["seed"];
        seen.push_str(&format!("{} {} seed {seed}\n", word("fingerprint"), word("label")));
    }
    expect_file!["../golden/first-light.txt"].assert_eq(&seen);
}

fn experiments_of_the_program_can_be_listed_and_run_anywhere() {
    let directory = Directory::new("builtin");
    assert!(directory.print(&["list", "experiments"]).contains("first-light  "));
    assert!(directory.print(&["list", "experiments", "first-light"]).contains("[[job]]"));
    let text = directory.print(&["compare", "--runs", "1", "first-light"]);
    assert!(text.contains("db read"), "{text}");
    assert_eq!(directory.run(&["list", "experiments", "first"]).status.code(), Some(2));
}

const FIO: &str = "[global]\nfilename=/dev/sda\ndirect=1\nbs=4k\nnumber_ios=50\n\
                   [readers]\nrw=randread\nnumjobs=2\n[writer]\nrw=write\nfsync=10\n";

fn a_job_file_is_reported_by_section_and_in_fio_s_schema_by_process() {
    let directory = Directory::new("sections");
    directory.write("two.fio", FIO);
    let options = ["compare", "--runs", "1", "-s", "none", "--json", "--fio-json", "fio"];
    let text = directory.print(&[&options[..], &["two.fio"]].concat());
    let document: Value = serde_json::from_str(&text).unwrap();
    let names = |jobs: &Value| -> Vec<String> {
        let jobs = jobs.as_array().unwrap().iter();
        jobs.map(|job| job["jobname"].as_str().unwrap().to_string()).collect()
    };
    let jobs = &document["results"][0]["jobs"];
    assert_eq!(names(jobs), ["readers", "writer"]);
    assert_eq!((&jobs[0]["read"]["total_ios"], &jobs[0]["tasks"]), (&100.into(), &2.into()));
    // As fio 3.33: the last write is not followed by one.
    assert_eq!(jobs[1]["sync"]["total_ios"], 4);
    let text = std::fs::read_to_string(directory.path().join("fio/none@6.18-seed1.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(names(&document["jobs"]), ["readers.0", "readers.1", "writer"]);
    assert_eq!(document["jobs"][1]["read"]["total_ios"], 50);
}

fn logs_of_fio_go_to_a_directory_for_each_result_and_replace_nothing_but_files() {
    let directory = Directory::new("logs");
    let job = "[j]\nfilename=/dev/sda\ndirect=1\nrw=read\nbs=64k\nnumber_ios=5\nnumjobs=2\n\
               log_offset=1\nwrite_lat_log=L\nwrite_bw_log\n";
    directory.write("j.fio", job);
    let arguments = ["compare", "--runs", "1", "-s", "none,mq-deadline", "j.fio"];
    directory.print(&arguments);
    let of = |name: &str| directory.path().join("none@6.18-seed1").join(name);
    let text = std::fs::read_to_string(of("L_clat.2.log")).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(", ").collect()).collect();
    assert_eq!(lines.len(), 5);
    // Milliseconds, nanoseconds, read, bytes, offset, priority.
    assert_eq!(lines[1][2..], ["0", "65536", "65536", "0"]);
    assert!(lines.iter().all(|line| line[1].parse::<u64>().unwrap() > 10_000), "{text}");
    assert_eq!(std::fs::read_to_string(of("L_slat.1.log")).unwrap(), "");
    assert!(of("j_bw.1.log").is_file());
    assert!(directory.path().join("mq-deadline@6.18-seed1/L_lat.1.log").is_file());
    // A file is replaced, what is none is not, and directories are not made for a prefix.
    directory.print(&arguments);
    std::fs::remove_file(of("L_lat.1.log")).unwrap();
    std::fs::create_dir(of("L_lat.1.log")).unwrap();
    let refused = directory.run(&arguments);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no regular file"));
    directory.write("j.fio", job.replace("lat_log=L", "lat_log=no/L"));
    let refused = directory.run(&arguments);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("./no is no directory"));
}

fn jobs_of_the_command_line_have_names_groups_and_weights() {
    let directory = Directory::new("jobs");
    let dd = "ionice -c 3 dd if=/dev/zero of=/dev/sda bs=64k count=50 oflag=direct";
    let fio = "fio --name=x --filename=/dev/sda --direct=1 --rw=randread --bs=4k --number_ios=20";
    let pairs = ["--job", "pg:cgroup=db,weight=800", fio, "--job", "bulk:weight=200", dd];
    let text = directory.print(&[&["compare"], &pairs[..]].concat());
    assert!(text.contains("pg read") && text.contains("pg:bulk"), "{text}");
    assert!(text.contains("do not honour 800:200"), "{text}");
}

fn an_endless_load_is_stopped_after_a_duration() {
    let directory = Directory::new("duration");
    let all = ["compare", "--runs", "1", "--json", "--duration", "500ms"];
    let text = directory.print(&[&all[..], &["--", "dd", "if=/dev/sda", "of=/dev/null"]].concat());
    let document: Value = serde_json::from_str(&text).unwrap();
    let elapsed = document["results"][0]["elapsed_ns"].as_u64().unwrap();
    assert!((500_000_000..600_000_000).contains(&elapsed), "{elapsed}");
}

fn an_hour_of_a_server_is_compared_under_all_schedulers() {
    let traces = traces();
    let trace = traces.join("block_csv/linux-mysql.load.gz").display().to_string();
    let directory = Directory::new("hour");
    let text = directory.print(&["compare", "-s", "all", "--runs", "1", "--json", &trace]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 8);
    for result in results {
        let job = &result["jobs"][0];
        let ios = ["read", "write"].map(|kind| job[kind]["total_ios"].as_u64().unwrap());
        assert_eq!(ios.iter().sum::<u64>(), 80_794);
        assert!(result["elapsed_ns"].as_u64().unwrap() > 3_500_000_000_000);
    }
    assert!(!document["findings"].as_array().unwrap().is_empty());
}

fn every_recorded_trace_can_be_compared() {
    let traces = traces();
    let directory = Directory::new("traces");
    let scsi = "block_csv/cloudPhysicsIO.vscsi";
    for (trace, options) in [
        (scsi, &["--duration", "600s"][..]),
        ("block_csv/Financial_mini.spc", &["--trace-device", "0", "--duration", "60s"]),
        (
            "block_csv/example.ascii",
            &["--trace-format", "disksim", "--time-unit", "ns", "--trace-device", "3"],
        ),
        ("block_csv/msr.cut.per_10k.rw_20_80.105.trace", &["--trace-format", "msr-cut"]),
        ("block_csv/cheetah9LP.trace", &["--model", "cheetah9lp"]),
        ("app_startup/xterm.trace", &[]),
        ("viewer_sample_nvme/sample.blktrace.0", &[]),
        ("mynotes_sda_vm/sda", &[]),
        ("keks_zfs_ssd/keks", &[]),
    ] {
        let path = traces.join(trace).display().to_string();
        let all = [&["compare", "--runs", "1"][..], options, &[&path]].concat();
        let output = directory.run(&all);
        let errors = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(0), "{trace}: {errors}");
    }
}

/// The tests of this file.
pub fn tests() -> Vec<testing::Test> {
    testing::tests![
        [] => a_command_is_compared_under_the_default_schedulers,
            the_documented_json_comes_out,
            the_same_seed_gives_the_same_document,
            results_go_to_files_that_are_complete,
            a_page_with_the_timelines_of_two_schedulers_comes_out,
            what_is_no_regular_file_is_written_to_and_stays,
            what_is_worse_than_it_was_saved_or_expected_exits_with_1,
            what_was_saved_and_is_missing_exits_with_1,
            results_fit_the_terminal_and_its_letters,
            what_a_terminal_would_obey_is_shown_instead,
            schedulers_are_judged_by_the_figure_that_is_named,
            a_recording_can_be_replayed,
            a_program_that_fails_is_told_and_exits_with_1,
            a_reader_who_goes_away_is_no_failure,
            everything_can_be_listed,
            help_completions_and_man_page_come_from_the_same_place,
            help_reads_as_it_did,
            the_first_experiment_comes_out_as_it_was_published_in_debug_and_in_release,
            experiments_of_the_program_can_be_listed_and_run_anywhere,
            a_standard_output_that_is_closed_is_a_failure,
            names_of_files_begin_where_the_file_system_is,
            a_job_is_called_what_its_user_would_call_it,
            a_job_file_is_reported_by_section_and_in_fio_s_schema_by_process,
            logs_of_fio_go_to_a_directory_for_each_result_and_replace_nothing_but_files,
            jobs_of_the_command_line_have_names_groups_and_weights,
            an_endless_load_is_stopped_after_a_duration;
        [BLKTRACE] => a_recording_is_read_by_blkparse_without_complaint;
        [TRACES] => an_hour_of_a_server_is_compared_under_all_schedulers,
            every_recorded_trace_can_be_compared,
    ]
}
