//! What tracefs of 7.3 gives: the same events as pages of its buffer and as binary output.
//!
//! Two writes of `dd oflag=dsync` and, after a change to BFQ, one read; with control groups.

use base::Instant;
use std::io::Write;
use std::process::{Command, Stdio};
use testing::needs::BLKTRACE;
use trace::blktrace::{
    Action, Categories, Conversion, Events, Layout, Payload, Reader, Record, records_of_pages,
};

const PAGES: &[u8] = include_bytes!("linux-7.3/pages");
const CUT: &[u8] = include_bytes!("linux-7.3/cut");

fn of_pages() -> Vec<Record> {
    let file = records_of_pages(PAGES, "pages", &Events::new()).unwrap();
    let mut reader = Reader::new(&file[..], "pages");
    let records = reader.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(reader.layout(), Some(Layout::V8_LITTLE));
    records
}

/// As text, without its padding.
fn message(record: &Record) -> Option<&str> {
    match &record.payload {
        Payload::Message(text) => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

fn pages_say_all() {
    let records = of_pages();
    let letters: String = records.iter().map(|it| it.action.letter()).collect();
    assert_eq!(&letters[..26], "QGPUIDCQGDCCQGPUIDCQGDCCmQ");
    let first = &records[0];
    assert_eq!(first.time, Instant::from_nanos(2_000_076_288));
    assert_eq!((first.bytes, first.pid, first.cgroup), (4096, 50, Some(1)));
    assert!(first.categories.contains(Categories::WRITE | Categories::SYNC));
    assert_eq!(records[3].payload, Payload::Unplug(1));
    let said: Vec<&str> = records.iter().filter_map(message).collect();
    assert_eq!(said[0], "elv switch: bfq");
    assert_eq!(said[1], "bfq [bfq_limit_depth] wr_busy 0 sync 1 depth 64");
    assert!(records.is_sorted_by_key(|it| it.time));
}

fn binary_output_says_the_same_but_for_the_ends_of_payloads() {
    let mut reader = Reader::new(CUT, "cut");
    let records: Vec<Record> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!((reader.layout(), reader.torn()), (Some(Layout::CUT_LITTLE), None));
    let whole = of_pages();
    assert_eq!(records.len(), whole.len());
    for (one, whole) in records.iter().zip(&whole) {
        let (payload, cgroup) = (one.payload.clone(), one.cgroup);
        assert_eq!(*one, Record { payload, cgroup, ..whole.clone() });
        if let (Some(one), Some(whole)) = (message(one), message(whole)) {
            assert_eq!(one, &whole[..whole.len().max(16) - 16]);
        }
    }
}

fn debians_blkparse_prints_them_all_from_version_7() {
    let records = of_pages();
    let conversion = Conversion { layout: Layout::V7_LITTLE, cgroups: false };
    let mut file = Vec::new();
    let converted = conversion.write(records.iter().cloned().map(Ok), &mut file, "x").unwrap();
    assert_eq!((converted.left_out, converted.simplified), (0, 0));
    let mut blkparse = Command::new("blkparse")
        .args(["-q", "-i", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    blkparse.stdin.take().unwrap().write_all(&file).unwrap();
    let printed = String::from_utf8(blkparse.wait_with_output().unwrap().stdout).unwrap();
    let letter = |line: &str| line.split_whitespace().nth(5).map(str::to_string);
    let letters: Vec<String> = printed.lines().filter_map(letter).collect();
    let expected: Vec<String> = records.iter().map(|it| it.action.letter().to_string()).collect();
    // Messages have no number, so they may stand elsewhere.
    let events = |all: &[String]| all.iter().filter(|it| *it != "m").cloned().collect::<String>();
    assert_eq!(events(&letters), events(&expected));
    assert_eq!(letters.len(), expected.len());
    let issued = records.iter().filter(|it| it.action == Action::Issue).count();
    assert_eq!(issued, 5);
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [] => pages_say_all, binary_output_says_the_same_but_for_the_ends_of_payloads;
        [BLKTRACE] => debians_blkparse_prints_them_all_from_version_7,
    ])
}
