//! What is written is read again, in both kinds of files.

use base::{Duration, Instant, Sector, Sectors};
use block::{ContextId, DispatchReason, Flags, HoldReason, Op};
use insight::{Confidence, Layer, Life};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use rows::Rows;
use std::path::PathBuf;

fn life() -> Life {
    let at = Instant::from_nanos;
    let held = Layer::Held(HoldReason::ProcessIdles);
    Life {
        context: ContextId(7),
        op: Op::Write,
        flags: Flags::SYNC,
        sector: Sector(100),
        sectors: Sectors(8),
        queued: at(10),
        allocated: at(11),
        inserted: Some(at(12)),
        issued: at(20),
        completed: at(30),
        merged: 1,
        reason: Some(DispatchReason::Expired),
        told: None,
        bios: vec![],
        layers: vec![
            (Layer::Host, Duration::from_nanos(2)),
            (held, Duration::from_nanos(5)),
            (Layer::Others, Duration::from_nanos(3)),
            (Layer::Device, Duration::from_nanos(10)),
        ],
        others: vec![
            (ContextId(9), Duration::from_nanos(2)),
            (ContextId(8), Duration::from_nanos(1)),
        ],
        guess: Some(Confidence::Medium),
    }
}

/// A file that is gone when the test ends.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        File(std::env::temp_dir().join(format!("rows-{}-{name}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // There is nobody left to tell that cleaning up failed.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn write(file: &File, count: usize) {
    let mut rows = Rows::create(&file.0).unwrap();
    (0..count).for_each(|_| rows.add(&life()).unwrap());
    rows.finish().unwrap();
}

#[test]
fn csv_has_a_heading_and_a_line_for_each_request() {
    let file = File::new("x.csv");
    write(&file, 2);
    let text = std::fs::read_to_string(&file.0).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3);
    let cell = |name: &str| lines[1][lines[0].iter().position(|it| *it == name).unwrap()];
    assert_eq!(
        [cell("task"), cell("op"), cell("inserted"), cell("told")],
        ["7", "write", "12", ""]
    );
    assert_eq!([cell("process_idles"), cell("plug"), cell("device")], ["5", "0", "10"]);
    assert_eq!([cell("others"), cell("guess"), cell("reason")], ["9:2 8:1", "medium", "expired"]);
}

#[test]
fn parquet_has_the_same_columns_and_nothing_where_nothing_is_known() {
    let file = File::new("x.parquet");
    write(&file, 70_000);
    let reader = SerializedFileReader::new(std::fs::File::open(&file.0).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 70_000);
    let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
    let cell = |name: &str| row.get_column_iter().find(|it| it.0 == name).unwrap().1.clone();
    assert_eq!((cell("task"), cell("told")), (Field::Long(7), Field::Null));
    assert_eq!((cell("op"), cell("others_first")), (Field::Str("write".into()), Field::Long(3)));
}

#[test]
fn an_empty_file_is_a_file_and_another_suffix_is_refused() {
    for name in ["empty.csv", "empty.parquet"] {
        let file = File::new(name);
        write(&file, 0);
        assert!(std::fs::metadata(&file.0).unwrap().len() > 0);
    }
    let error = Rows::create("x.arrow".as_ref()).err().unwrap().to_string();
    assert_eq!(error, "x.arrow: unknown suffix `arrow`; accepted: .csv or .parquet");
}

#[test]
fn a_call_has_its_layers_and_a_file_appears_when_it_is_complete() {
    use insight::{Call, Segment};
    let at = Instant::from_nanos;
    let piece = |from, to, layer, behind: Option<u32>| Segment {
        behind: behind.map(ContextId),
        ..Segment::of(ContextId(7), layer, [at(from), at(to)])
    };
    let call = Call {
        task: ContextId(7),
        call: block::Syscall::Sync,
        token: 3,
        entered: at(10),
        ended: at(40),
        is_unfinished: false,
        commits: Vec::new(),
        pages: Vec::new(),
        path: vec![
            piece(10, 15, Layer::Computing, None),
            piece(15, 30, Layer::Others, Some(9)),
            piece(30, 40, Layer::Flush, None),
        ],
    };
    let file = File::new("calls.csv");
    let mut rows = Rows::of_calls(&file.0).unwrap();
    rows.add(&call).unwrap();
    assert!(!file.0.exists());
    rows.finish().unwrap();
    let text = std::fs::read_to_string(&file.0).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let cell = |name: &str| lines[1][lines[0].iter().position(|it| *it == name).unwrap()];
    assert_eq!([cell("call"), cell("entered"), cell("ended")], ["sync", "10", "40"]);
    assert_eq!([cell("computing"), cell("others_first"), cell("flush")], ["5", "15", "10"]);
    assert_eq!(cell("behind"), "9:15");
    let dropped = File::new("dropped.csv");
    drop(Rows::of_calls(&dropped.0).unwrap());
    let directory = std::fs::read_dir(std::env::temp_dir()).unwrap();
    let mine = format!("rows-{}-dropped", std::process::id());
    assert!(!directory.flatten().any(|it| it.file_name().to_string_lossy().starts_with(&mine)));
}
