//! What is written in one form is read in another, by ourselves and by Debian's tools.

use base::{Instant, Sector};
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::needs::{BLKTRACE, FIO};
use trace::blktrace::{
    Action, Categories, Conversion, Converted, DevT, Layout, Payload, Reader, Record,
};
use trace::{Error, Options, blkparse, read_trace};

/// A directory of this test's own, removed when the test passed.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("convert").join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    /// What a tool prints.
    fn run(&self, tool: &str, arguments: &[&str]) -> String {
        let output = Command::new(tool).args(arguments).current_dir(&self.0).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool}: {said}");
        assert!(!said.contains("Bad fs action"), "{tool}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Lives of requests of two tasks on two CPUs, all in control groups, and a message.
fn story() -> Vec<Record> {
    use Action::{BackMerge, Complete, GetRequest, Insert, Issue, Plug, Queue, Remap, Unplug};
    let start = Instant::from_nanos(7_000_000_000);
    let mut records = vec![
        Record::timestamp(start, 1_700_000_000, 5),
        Record::process(start, 77, "fio"),
        Record { cgroup: Some(9), ..Record::message(start, "bfq77A add_rq") },
    ];
    let mut now = start.as_nanos();
    for turn in 0..50u64 {
        let kind = [Categories::READ | Categories::SYNC, Categories::WRITE][turn as usize % 2];
        for action in [Remap, Queue, GetRequest, Plug, BackMerge, Insert, Unplug, Issue, Complete] {
            now += 1_000 * (1 + turn % 7);
            let empty = matches!(action, Plug | Unplug);
            let returns = action == Complete;
            let payload = match action {
                Unplug => Payload::Unplug(1),
                Remap => Payload::Remap {
                    from: DevT::new(253, 0),
                    to: DevT::new(8, 0),
                    sector: Sector(turn),
                },
                _ => Payload::None,
            };
            records.push(Record {
                sector: Sector(if empty { 0 } else { 1_000_000 + turn * 4_096 }),
                bytes: if empty { 0 } else { 4_096 },
                pid: if returns { 0 } else { 77 },
                device: DevT::new(8, 0),
                cgroup: Some(42),
                sequence: records.len() as u32,
                payload,
                ..Record::event(action, Instant::from_nanos(now)).with(kind)
            });
        }
    }
    records
}

fn all(records: &[Record]) -> impl Iterator<Item = Result<Record, Error>> {
    records.iter().cloned().map(Ok)
}

fn bytes(records: &[Record], layout: Layout, cgroups: bool) -> (Vec<u8>, Converted) {
    let mut out = Vec::new();
    let converted = Conversion { layout, cgroups }.write(all(records), &mut out, "out").unwrap();
    (out, converted)
}

fn read(bytes: &[u8]) -> Vec<Record> {
    Reader::new(bytes, "x").map(Result::unwrap).collect()
}

fn every_layout_becomes_every_other_without_a_loss() {
    let story = story();
    for from in Layout::ALL {
        let (first, _) = bytes(&story, from, true);
        assert_eq!(Layout::of_magic(*first.first_chunk().unwrap()), Ok(from));
        for to in Layout::ALL {
            let (second, converted) = bytes(&read(&first), to, true);
            let expected = Converted { written: story.len() as u64, ..Converted::default() };
            assert_eq!(converted, expected);
            assert_eq!(read(&second), story, "{from:?} to {to:?}");
        }
    }
}

fn what_version_7_cannot_tell_is_counted() {
    let at = Instant::from_nanos;
    let event = |action, kind| Record { bytes: 4096, ..Record::event(action, at(1)) }.with(kind);
    let zeroes = event(Action::Queue, Categories::WRITE | Categories::WRITE_ZEROES);
    let plug = event(Action::ZonePlug, Categories::WRITE);
    let read = event(Action::Queue, Categories::READ);
    let (_, converted) = bytes(&[zeroes, plug, read], Layout::V7_LITTLE, true);
    assert_eq!(converted, Converted { written: 2, left_out: 1, simplified: 1 });
}

fn debians_tools_read_what_was_version_8_with_control_groups() {
    let directory = Directory::new("tools");
    let (eight, _) = bytes(&story(), Layout::V8_BIG, true);
    directory.write("sda.blktrace.0", &bytes(&read(&eight), Layout::V7_LITTLE, false).0);
    let printed = directory.run("blkparse", &["-q", "-i", "sda"]);
    let mut ours = Vec::new();
    blkparse::write(all(&read(&bytes(&story(), Layout::V7_LITTLE, false).0)), &mut ours, "x")
        .unwrap();
    let events = printed.lines().filter(|line| !line.starts_with("Input file"));
    let ours = String::from_utf8(ours).unwrap();
    assert_eq!(ours.lines().count(), events.clone().count());
    for (our, their) in ours.lines().zip(events) {
        assert_eq!(our, their);
    }
    directory.run("blkparse", &["-q", "-i", "sda", "-d", "sda.bin", "-O"]);
    let metrics = directory.run("btt", &["-i", "sda.bin"]);
    let row = metrics.lines().find(|line| line.starts_with("D2C ")).expect("a table with D2C");
    // The mean over 50 requests of which the last step takes 1 to 7 us.
    assert!(row.contains("0.000003") && row.trim_end().ends_with(" 50"), "{row}");
}

fn the_text_and_the_log_that_are_written_are_read_again() {
    let directory = Directory::new("text");
    let mut text = Vec::new();
    assert_eq!(blkparse::write(all(&story()), &mut text, "x").unwrap(), 451);
    directory.write("sda.txt", &text);
    directory.write("sda.blktrace.0", &bytes(&story(), Layout::V7_LITTLE, true).0);
    let binary = read_trace(&directory.0.join("sda.blktrace.0"), &Options::default()).unwrap();
    let printed = read_trace(&directory.0.join("sda.txt"), &Options::default()).unwrap();
    assert_eq!(printed.arrivals, binary.arrivals);
    let mut log = Vec::new();
    binary.write_fio_iolog(&mut log).unwrap();
    directory.write("sda.log", &log);
    let logged = read_trace(&directory.0.join("sda.log"), &Options::default()).unwrap();
    assert_eq!(logged.arrivals.len(), binary.arrivals.len());
    for (one, other) in logged.arrivals.iter().zip(&binary.arrivals) {
        assert_eq!((one.op, one.sector, one.bytes), (other.op, other.sector, other.bytes));
        assert_eq!(one.at.as_nanos() / 1000, other.at.as_nanos() / 1000);
    }
}

fn fio_accepts_a_log_that_is_written() {
    let directory = Directory::new("fio");
    directory.write("source", b"1,src 1,0,Read,4096,8192,0\n31,src 1,1,Write,0,512,0\n");
    let trace = read_trace(&directory.0.join("source"), &Options::default()).unwrap();
    let mut log = vec![];
    trace.write_fio_iolog(&mut log).unwrap();
    directory.write("written.iolog", &log);
    let how = ["--name=x", "--ioengine=null", "--output-format=terse", "--terse-version=3"];
    let text = directory.run("fio", &[&how[..], &["--read_iolog=written.iolog"]].concat());
    let fields: Vec<&str> = text.trim().split(';').collect();
    // Terse version 3: the sixth field is KiB read.
    assert_eq!(fields.get(5), Some(&"8"), "{text}");
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [] => every_layout_becomes_every_other_without_a_loss,
            what_version_7_cannot_tell_is_counted,
            the_text_and_the_log_that_are_written_are_read_again;
        [BLKTRACE] => debians_tools_read_what_was_version_8_with_control_groups;
        [FIO] => fio_accepts_a_log_that_is_written,
    ])
}
