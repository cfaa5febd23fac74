//! Real recordings, read whole, against what is known of them and against `blkparse`.
//!
//! The files belong to others and are not part of the project: the environment variable
//! PATERNOSTER_TRACES names the directory that holds them.

use base::{Bytes, Duration, Sector};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::needs::{BLKTRACE, TRACES};
use trace::blktrace::{Action, Merge, Reader, Record, recording_files};
use trace::{Format, Op, Options, TimeUnit, Trace, read_trace};

fn read(path: &Path, options: &Options) -> Trace {
    read_trace(path, options).unwrap_or_else(|error| panic!("{error}"))
}

fn count(trace: &Trace, op: Op) -> usize {
    trace.arrivals.iter().filter(|arrival| arrival.op == op).count()
}

fn last_at(trace: &Trace) -> u64 {
    trace.arrivals.last().expect("a trace is never empty").at.as_nanos()
}

fn an_hour_of_a_database_server_in_blkreplay_form() {
    let directory = testing::needs::traces();
    let path = directory.join("block_csv/linux-mysql.load.gz");
    let trace = read(&path, &Options::default());
    assert_eq!(trace.format, Format::Blkreplay);
    assert_eq!(trace.arrivals.len(), 80_794);
    assert_eq!(last_at(&trace), 3_599_890_074_831);
    assert!(trace.remarks.is_empty(), "{:?}", trace.remarks);
    assert!(trace.arrivals.iter().all(|arrival| arrival.service.is_none()));
}

fn two_hours_of_a_virtual_disk_in_vscsi_form() {
    let directory = testing::needs::traces();
    let trace = read(&directory.join("block_csv/cloudPhysicsIO.vscsi"), &Options::default());
    assert_eq!(trace.format, Format::Vscsi);
    assert_eq!((count(&trace, Op::Read), count(&trace, Op::Write)), (46_974, 66_898));
    assert!((7_100..7_300).contains(&(last_at(&trace) / 1_000_000_000)), "{}", last_at(&trace));
}

fn the_same_load_in_two_formats_is_the_same() {
    let directory = testing::needs::traces();
    let spc = read(&directory.join("block_csv/Financial_mini.spc"), &Options::default());
    assert_eq!((spc.format, spc.arrivals.len()), (Format::Spc, 949));
    let options = Options {
        format: Some(Format::DiskSim),
        time_unit: Some(TimeUnit::Nanoseconds),
        ..Options::default()
    };
    let ascii = read(&directory.join("block_csv/example.ascii"), &options);
    assert_eq!(ascii.arrivals.len(), 10_000);
    for (one, other) in spc.arrivals.iter().zip(&ascii.arrivals).take(900) {
        assert!(one.at.as_nanos().abs_diff(other.at.as_nanos()) < 10_000);
        let rest = |a: &trace::Arrival| (a.op, a.sector, a.bytes);
        assert_eq!(rest(one), rest(other));
    }
}

fn a_cut_of_msr_must_be_named() {
    let directory = testing::needs::traces();
    let path = directory.join("block_csv/msr.cut.per_10k.rw_20_80.105.trace");
    let message = read_trace(&path, &Options::default()).unwrap_err().to_string();
    assert!(message.contains("disksim") && message.contains("msr-cut"), "{message}");
    let options = Options { format: Some(Format::MsrCut), ..Options::default() };
    let trace = read(&path, &options);
    assert_eq!((trace.arrivals.len(), last_at(&trace)), (10_000, 242_904_693_000));
    assert!(trace.remarks.is_empty(), "{:?}", trace.remarks);
}

fn measured_service_times_of_a_cheetah() {
    let directory = testing::needs::traces();
    let trace = read(&directory.join("block_csv/cheetah9LP.trace"), &Options::default());
    assert_eq!(trace.format, Format::DiskSimValidation);
    assert_eq!(trace.arrivals.len(), 10_000);
    let first = &trace.arrivals[0];
    assert_eq!((first.sector, first.bytes), (Sector(1_975_456), Bytes(2_048)));
    assert_eq!(first.service, Some(Duration::from_micros(15_362)));
    for pair in trace.arrivals.windows(2) {
        let completed = pair[0].at + pair[0].service.unwrap();
        assert_eq!(completed + pair[1].think.unwrap(), pair[1].at);
    }
}

fn a_recording_without_q_events_replays_its_d_events() {
    let directory = testing::needs::traces();
    let trace = read(&directory.join("keks_zfs_ssd/keks"), &Options::default());
    assert_eq!((trace.format, trace.arrivals.len()), (Format::Blktrace, 1_192));
    assert!(trace.remarks[0].contains("no Q or I events"), "{:?}", trace.remarks);
    let served = trace.arrivals.iter().filter(|arrival| arrival.service.is_some()).count();
    assert!(served == 1_168, "all but the 24 flushes: {served}");
}

fn recordings_with_q_events_replay_those() {
    let directory = testing::needs::traces();
    let disk = read(&directory.join("mynotes_sda_vm/sda"), &Options::default());
    assert_eq!(disk.arrivals.len(), 113);
    let bytes: u64 = disk.arrivals.iter().map(|arrival| arrival.bytes.0).sum();
    assert_eq!((count(&disk, Op::Write), bytes), (113, 3_232_256));
    let flash = read(&directory.join("viewer_sample_nvme/sample.blktrace.0"), &Options::default());
    assert!(flash.arrivals.len() >= 963, "{}", flash.arrivals.len());
    assert!(flash.arrivals.iter().all(|arrival| arrival.service.is_some()));
    for entry in directory.join("loop0_blktst").read_dir().unwrap() {
        let trace = read(&entry.unwrap().path(), &Options::default());
        assert!(trace.arrivals.len() > 500, "{}", trace.arrivals.len());
        assert_eq!(count(&trace, Op::Read), trace.arrivals.len());
    }
}

/// Records of a merged stream or recording, as `blkparse` would print them. It reads a single file
/// from standard input, and may then count time from an instant that changes on the way: the time
/// is left out.
fn printed(files: &[PathBuf]) -> Vec<String> {
    let readers = files
        .iter()
        .map(|file| Reader::new(std::fs::File::open(file).unwrap(), &file.display().to_string()));
    let records: Vec<Record> = Merge::new(readers.collect()).map(Result::unwrap).collect();
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    for record in &records {
        if let trace::blktrace::Payload::Process(comm) = &record.payload {
            let text = comm.split(|byte| *byte == 0).next().unwrap();
            names.insert(record.pid, String::from_utf8_lossy(text).into_owned());
        }
    }
    let events = || records.iter().filter(|record| !record.action.is_note());
    let start = events().map(|record| record.time).min().expect("events");
    let mut lines: Vec<String> = events()
        .map(|record| {
            let Record { device, cpu, sequence, pid, sector, .. } = record;
            let time = base::Instant::ZERO + record.time.since(start);
            let time = if files.len() > 1 { time.to_string() } else { String::new() };
            let (letter, rwbs) = (record.action.letter(), record.rwbs());
            let sectors = record.bytes / 512;
            let error = record.error.cast_unsigned();
            let name = names.get(pid).map_or("(null)", String::as_str);
            format!(
                "{device} {cpu} {sequence} {time} {pid} {letter} {rwbs} {sector} {sectors} \
                 {error} {name}"
            )
        })
        .collect();
    lines.sort();
    lines
}

/// What `blkparse` prints of the files.
fn blkparse(files: &[PathBuf]) -> Vec<String> {
    let time = if files.len() > 1 { "%T.%9t" } else { "" };
    let format = format!("%M,%m %c %s {time} %p %a %d %S %n %e %C\\n");
    let mut command = Command::new("blkparse");
    let path = files[0].display().to_string();
    match path.rsplit_once(".blktrace.") {
        Some((base, _)) if files.len() > 1 => command.args(["-q", "-i", base, "-f", &format]),
        _ => {
            command.stdin(std::fs::File::open(&files[0]).unwrap());
            command.args(["-q", "-i", "-", "-f", &format])
        }
    };
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.starts_with("Input file")).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The same recording as `blkparse` prints it by default.
fn default_text(base: &Path) -> String {
    let output = Command::new("blkparse").arg("-i").arg(base).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn the_text_of_a_recording_says_what_the_recording_says() {
    let directory = testing::needs::traces();
    for name in ["keks_zfs_ssd/keks", "mynotes_sda_vm/sda"] {
        let text = default_text(&directory.join(name));
        let binary = read(&directory.join(name), &Options::default());
        let source = Box::new(std::io::Cursor::new(text.clone().into_bytes()));
        let printed = trace::read_stream(source, "printed", &Options::default()).unwrap();
        assert_eq!(printed.format, Format::Blkparse);
        assert_eq!(printed.arrivals, binary.arrivals, "{name}");

        let (mut ours, mut name_of) = (vec![], BTreeMap::new());
        for record in trace::blkparse::Reader::new(text.as_bytes(), "printed") {
            let record = record.unwrap();
            if let trace::blktrace::Payload::Process(comm) = record.payload {
                let comm = comm.split(|byte| *byte == 0).next().unwrap();
                name_of.insert(record.pid, String::from_utf8_lossy(comm).into_owned());
                continue;
            }
            let known = name_of.get(&record.pid).map_or("(null)", String::as_str);
            ours.extend(trace::blkparse::line(&record, base::Instant::ZERO, known));
        }
        let events = text.lines().take_while(|line| !line.starts_with("CPU"));
        let theirs: Vec<&str> = events.filter(|line| !line.starts_with("Input file")).collect();
        assert_eq!(ours, theirs, "{name}");
    }
}

fn text_that_was_kept_and_text_that_was_digested() {
    let directory = testing::needs::traces();
    let directory = directory.join("blkparse_text/oxdeadmeat_nvme_dmcrypt");
    let trace = read(&directory.join("nvme0n1.blktrace.txt"), &Options::default());
    assert_eq!((trace.format, trace.arrivals.len()), (Format::Blkparse, 248));
    let digested = directory.join("nvme0n1.blktrace.merged.txt");
    let message = read_trace(&digested, &Options::default()).unwrap_err().to_string();
    assert!(message.contains("no known format begins with"), "{message}");
}

fn start_ups_of_applications() {
    let directory = testing::needs::traces();
    for (name, requests) in [("gnometerm", 2_781), ("lowriter", 1_268), ("xterm", 718)] {
        let path = directory.join(format!("app_startup/{name}.trace"));
        let trace = read(&path, &Options::default());
        assert_eq!(trace.format, Format::StartUp);
        assert_eq!(trace.arrivals.len(), requests, "{name}");
        assert!(trace.arrivals.iter().all(|arrival| arrival.pid.is_some()));
    }
}

fn every_field_of_every_event_agrees_with_blkparse() {
    let directory = testing::needs::traces();
    let mut recordings = vec![
        recording_files(&directory.join("keks_zfs_ssd/keks")),
        recording_files(&directory.join("mynotes_sda_vm/sda")),
        vec![directory.join("viewer_sample_nvme/sample.blktrace.0")],
    ];
    for which in ["trace_x_0_y_0.bin", "trace_x_1_y_2.bin"] {
        recordings.push(vec![directory.join("loop0_blktst").join(which)]);
    }
    for files in recordings {
        let theirs = blkparse(&files);
        let ours = printed(&files);
        let name = files[0].display();
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (our, their) in ours.iter().zip(&theirs) {
            assert_eq!(our, their, "{name}");
        }
        assert!(ours.iter().all(|line| !line.contains(&Action::Abort.letter().to_string())));
    }
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [TRACES] => an_hour_of_a_database_server_in_blkreplay_form,
            two_hours_of_a_virtual_disk_in_vscsi_form,
            the_same_load_in_two_formats_is_the_same,
            a_cut_of_msr_must_be_named,
            measured_service_times_of_a_cheetah,
            a_recording_without_q_events_replays_its_d_events,
            recordings_with_q_events_replay_those,
            text_that_was_kept_and_text_that_was_digested,
            start_ups_of_applications;
        [TRACES, BLKTRACE] => the_text_of_a_recording_says_what_the_recording_says,
            every_field_of_every_event_agrees_with_blkparse,
    ])
}
