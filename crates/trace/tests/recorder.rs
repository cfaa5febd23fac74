//! What the recorder writes, read back by ourselves and by `blkparse`.

use base::{Instant, Sector};
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::needs::BLKTRACE;
use trace::blktrace::{
    Action, Categories, DevT, Merge, Payload, Reader, Record, Recorder, Wallclock, recording_files,
};
use trace::{Op, Options, read_trace};

/// A directory of this test's own, removed when the test passed.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

const DISK: DevT = DevT::new(8, 0);

/// One life of a read on CPU 0 that completes on CPU 3, with one event of every other kind.
fn story() -> Vec<Record> {
    use Action::*;
    let at = |micros: u64| Instant::from_nanos(5_000_000_000 + micros * 1_000);
    let on = |micros, action, cpu, flags| {
        Record { device: DISK, cpu, pid: 77, ..Record::event(action, at(micros)) }.with(flags)
    };
    let data = |micros, action, cpu, flags| Record {
        sector: Sector(2_048),
        bytes: 4_096,
        ..on(micros, action, cpu, flags)
    };
    let none = Categories::NONE;
    let read = Categories::READ | Categories::SYNC;
    let write = Categories::WRITE;
    let remap = Payload::Remap { from: DevT::new(253, 3), to: DISK, sector: Sector(900) };
    vec![
        Record { payload: remap, ..data(0, Remap, 0, read) },
        data(1, Queue, 0, read),
        data(2, GetRequest, 0, read),
        on(3, Plug, 0, none),
        Record { device: DISK, ..Record::message(at(4), "cfq77SN / insert_request") },
        data(5, Insert, 0, read),
        Record { payload: Payload::Unplug(1), ..on(6, Unplug, 0, none) },
        data(7, Issue, 0, read),
        Record { payload: Payload::Split(Sector(2_052)), ..data(8, Split, 0, write) },
        data(9, BackMerge, 0, write),
        data(10, FrontMerge, 0, write),
        data(11, SleepRequest, 0, write),
        on(12, Queue, 0, write | Categories::FLUSH),
        data(13, Requeue, 0, write),
        data(14, Queue, 0, write | Categories::DISCARD),
        Record { pid: 78, ..data(15, Queue, 1, write | Categories::FUA) },
        Record { pid: 0, ..data(107, Complete, 3, read) },
        Record { pid: 0, error: -5, ..data(108, Complete, 3, write) },
    ]
}

fn write(base: &Path) -> Vec<PathBuf> {
    let wallclock = Wallclock { at: Instant::ZERO, seconds: 1_700_000_000, nanoseconds: 5 };
    let mut recorder = Recorder::create(base, DISK, 5, wallclock).unwrap();
    recorder.name_task(0, "swapper/0");
    recorder.name_task(77, "fio");
    recorder.name_task(78, "a name that is longer than fifteen bytes");
    story().iter().for_each(|record| recorder.record(record).unwrap());
    recorder.finish().unwrap()
}

fn a_recording_reads_back_as_it_was_written() {
    let directory = Directory::new("reads-back");
    let base = directory.0.join("sda");
    let files = write(&base);
    assert_eq!(files.len(), 5);
    assert_eq!(recording_files(&base), files);

    let readers = files.iter().map(|file| Reader::new(std::fs::File::open(file).unwrap(), "x"));
    let mut merge = Merge::new(readers.collect());
    let mut records: Vec<Record> = merge.by_ref().map(Result::unwrap).collect();
    assert_eq!(merge.lost(), 0);
    assert_eq!(records.remove(0).action, Action::NoteTimestamp);
    let names = records.iter().filter(|record| record.action == Action::NoteProcess);
    let names: Vec<_> = names.map(|record| (record.pid, record.payload.clone())).collect();
    assert_eq!(names[0], (77, Payload::Process(*b"fio\0\0\0\0\0\0\0\0\0\0\0\0\0")));
    assert_eq!(names[1], (78, Payload::Process(*b"a name that is \0")));
    assert_eq!((names.len(), names[2].0), (3, 0));

    records.retain(|record| record.action != Action::NoteProcess);
    records.iter_mut().for_each(|record| record.sequence = 0);
    assert_eq!(records, story());
}

fn a_recording_is_read_whole_by_its_name_and_in_part_by_the_name_of_a_file() {
    let directory = Directory::new("by-name");
    let base = directory.0.join("sda");
    let files = write(&base);
    let whole = read_trace(&base, &Options::default()).unwrap();
    let ops: Vec<Op> = whole.arrivals.iter().map(|arrival| arrival.op).collect();
    assert_eq!(ops, [Op::Read, Op::Flush, Op::Discard, Op::Write]);
    let part = read_trace(&files[0], &Options::default()).unwrap();
    assert_eq!(part.arrivals.len(), 3);
    let remark = part.remarks.last().unwrap();
    assert!(remark.starts_with("one of the 5 files of a recording; "), "{remark}");

    let missing =
        read_trace(&directory.0.join("sdb"), &Options::default()).unwrap_err().to_string();
    assert!(
        missing.ends_with(
            "sdb: no such file; accepted: a trace file, or NAME where \
        NAME.blktrace.0 exists"
        ),
        "{missing}"
    );
}

fn a_directory_that_cannot_be_written_to_is_an_error() {
    let base = Path::new("/proc/no such directory/sda");
    let error = Recorder::create(base, DISK, 1, Wallclock::default()).err().unwrap();
    assert!(error.to_string().contains("sda.blktrace.0"), "{error}");
}

fn blkparse_reads_a_recording_without_complaint() {
    let directory = Directory::new("blkparse");
    write(&directory.0.join("sda"));
    let mut command = Command::new("blkparse");
    command.args(["-q", "-i", "sda", "-f", "%D %2c %5T.%9t %5p %2a %3d %S %n %e %C\\n"]);
    let output = command.current_dir(&directory.0).output().unwrap();
    let said = String::from_utf8([output.stderr, output.stdout].concat()).unwrap();
    assert!(output.status.success(), "{said}");
    let added = |line: &&str| line.starts_with("Input file sda.blktrace.");
    assert_eq!(said.lines().filter(added).count(), 3, "files that are not empty\n{said}");
    let text: String =
        said.lines().filter(|line| !added(line)).map(|l| l.to_owned() + "\n").collect();
    for line in [
        "  8,0    0     0.000000000    77  A  RS 2048 8 0 fio",
        "  8,0    0     0.000001000    77  Q  RS 2048 8 0 fio",
        "  8,0    0     0.000003000    77  P   N 0 0 0 fio",
        "  8,0    0        0     0.000004000     0  m   N cfq77SN / insert_request",
        "  8,0    0     0.000012000    77  Q  FW 0 0 0 fio",
        "  8,0    1     0.000015000    78  Q  WF 2048 8 0 a name that is ",
        "  8,0    3     0.000108000     0  C   W 2048 8 65531 swapper/0",
    ] {
        assert!(text.lines().any(|printed| printed.starts_with(line)), "{line}\n{text}");
    }
    assert_eq!(text.lines().count(), story().len(), "{text}");
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [] => a_recording_reads_back_as_it_was_written,
            a_recording_is_read_whole_by_its_name_and_in_part_by_the_name_of_a_file,
            a_directory_that_cannot_be_written_to_is_an_error;
        [BLKTRACE] => blkparse_reads_a_recording_without_complaint,
    ])
}
