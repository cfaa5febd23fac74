//! Arrivals from blktrace recordings: which events they are, and what is said of the rest.

mod common;

use base::{Duration, Instant, Sector};
use common::{columns, read, refusal};
use trace::blktrace::{Action, Categories, DevT, Layout, Payload, Record};
use trace::{Flags, Format, Op};

const DISK: DevT = DevT::new(8, 0);

fn event(micros: u64, action: Action, sector: u64, bytes: u32, flags: Categories) -> Record {
    let at = Instant::from_nanos(1_000_000_000 + micros * 1_000);
    let sector = Sector(sector);
    Record { sector, bytes, pid: 77, device: DISK, ..Record::event(action, at) }.with(flags)
}

fn numbered(mut records: Vec<Record>) -> Vec<Record> {
    let events = records.iter_mut().filter(|record| !record.action.is_note());
    events.zip(1..).for_each(|(record, number)| record.sequence = number);
    records
}

fn file(layout: Layout, records: &[Record]) -> Vec<u8> {
    let mut bytes = vec![];
    records.iter().for_each(|record| layout.encode(record, &mut bytes));
    bytes
}

/// A read that is split over two completions, a write with everything, a pure flush.
fn story() -> Vec<Record> {
    use Action::{Complete, GetRequest, Insert, Issue, Plug, Queue};
    let (read, write) = (Categories::READ, Categories::WRITE);
    let durable = write | Categories::FLUSH | Categories::FUA | Categories::META;
    let start = Instant::from_nanos(900_000_000);
    let none = Categories::NONE;
    numbered(vec![
        Record::timestamp(start, 1_700_000_000, 123),
        Record::process(start, 77, "fio"),
        event(1, Queue, 100, 65_536, read | Categories::SYNC),
        event(2, GetRequest, 100, 65_536, read | Categories::SYNC),
        event(3, Plug, 0, 0, none),
        event(4, Insert, 100, 65_536, read | Categories::SYNC),
        event(5, Issue, 100, 65_536, read | Categories::SYNC),
        event(6, Queue, 0, 0, read | Categories::FLUSH),
        event(7, Queue, 500, 4_096, durable),
        event(8, Queue, 900, 8_192, write | Categories::DISCARD),
        event(9, Queue, u64::MAX, 36, read | Categories::PC),
        event(50, Complete, 100, 32_768, read),
        event(90, Complete, 164, 32_768, read),
    ])
}

fn expected() -> Vec<(u64, Op, u64, u64, u32)> {
    let device = DISK.to_bits();
    vec![
        (0, Op::Read, 100, 65_536, device),
        (5_000, Op::Flush, 0, 0, device),
        (6_000, Op::Write, 500, 4_096, device),
        (7_000, Op::Discard, 900, 8_192, device),
    ]
}

#[test]
fn all_versions_and_byte_orders_give_the_same_arrivals() {
    for layout in Layout::ALL {
        let trace = read(file(layout, &story()));
        assert_eq!(trace.format, Format::Blktrace);
        assert_eq!(columns(&trace), expected(), "{layout:?}");
        assert_eq!(trace.devices.values().collect::<Vec<_>>(), ["8,0"]);
        let skipped = "1 Q events without data, as passthrough commands, were skipped";
        assert_eq!(trace.remarks, [skipped]);
    }
}

#[test]
fn a_cgroup_before_the_payload_changes_nothing() {
    let grouped = story().into_iter().map(|record| Record { cgroup: Some(4242), ..record });
    let trace = read(file(Layout::V7_LITTLE, &grouped.collect::<Vec<_>>()));
    assert_eq!(columns(&trace), expected());
}

#[test]
fn service_ends_when_the_last_sector_is_complete() {
    let trace = read(file(Layout::V7_LITTLE, &story()));
    assert_eq!(trace.arrivals[0].service, Some(Duration::from_micros(89)));
    assert_eq!(trace.arrivals[2].service, None);
}

#[test]
fn flags_come_from_categories() {
    let trace = read(file(Layout::V7_LITTLE, &story()));
    let flags: Vec<Flags> = trace.arrivals.iter().map(|arrival| arrival.flags).collect();
    let none = Flags::default();
    assert_eq!(flags[0], Flags { sync: true, ..none });
    assert_eq!(flags[1], none);
    assert_eq!(flags[2], Flags { preflush: true, fua: true, metadata: true, ..none });
    assert_eq!(trace.arrivals[0].pid, Some(77));
}

#[test]
fn without_q_events_arrivals_are_i_events_and_without_those_d_events() {
    let is = |actions: &[Action]| {
        let keep = |record: &Record| actions.contains(&record.action);
        file(Layout::V7_LITTLE, &numbered(story().into_iter().filter(keep).collect()))
    };
    let inserted = read(is(&[Action::Insert, Action::Issue, Action::Complete]));
    assert_eq!(columns(&inserted), expected()[..1]);
    assert_eq!(inserted.arrivals[0].service, Some(Duration::from_micros(86)));
    assert_eq!(
        inserted.remarks,
        ["device 8,0 has no Q events: arrivals are I events, of merged requests"]
    );
    let issued = read(is(&[Action::Issue, Action::Complete]));
    assert_eq!(issued.arrivals[0].service, Some(Duration::from_micros(85)));
    assert_eq!(
        issued.remarks,
        ["device 8,0 has no Q or I events: arrivals are D events, as the scheduler left them"]
    );
}

#[test]
fn a_request_that_was_requeued_arrives_once() {
    use Action::{Complete, Issue, Requeue};
    let read_of = |micros, action| event(micros, action, 8, 4_096, Categories::READ);
    let records = [read_of(1, Issue), read_of(2, Requeue), read_of(3, Issue), read_of(9, Complete)];
    let trace = read(file(Layout::V7_LITTLE, &numbered(records.to_vec())));
    assert_eq!(columns(&trace), [(0, Op::Read, 8, 4_096, DISK.to_bits())]);
    assert_eq!(trace.arrivals[0].service, Some(Duration::from_micros(8)));
}

#[test]
fn torn_and_lost_records_are_reported() {
    let mut records = story();
    records.remove(5);
    let mut bytes = file(Layout::V7_LITTLE, &records);
    bytes.truncate(bytes.len() - 5);
    let trace = read(&bytes);
    let at = bytes.len() - 43;
    assert_eq!(
        trace.remarks[0],
        format!("x: the last record, at byte {at}, is cut off after 43 bytes")
    );
    assert_eq!(trace.remarks[1], "the recording lost 1 events");
}

#[test]
fn an_extent_that_no_disk_has_is_refused_with_its_byte() {
    let records = vec![
        event(1, Action::Queue, 8, 4_096, Categories::READ),
        event(2, Action::Queue, 1 << 60, 4_096, Categories::READ),
    ];
    assert_eq!(
        refusal(file(Layout::V7_LITTLE, &records)),
        "x at byte 48: the extent of the record; accepted: fewer than 2^32 sectors that end \
         before sector 2^55"
    );
}

#[test]
fn only_version_8_knows_zones_and_zeroes() {
    let zone = Categories::WRITE | Categories::from_bits(1 << 17);
    let zeroes = Categories::WRITE | Categories::WRITE_ZEROES;
    let records =
        vec![event(1, Action::Queue, 8, 4_096, zeroes), event(2, Action::Queue, 8, 4_096, zone)];
    let trace = read(file(Layout::V8_LITTLE, &records));
    assert_eq!(columns(&trace), [(0, Op::Write, 8, 4_096, DISK.to_bits())]);
    assert_eq!(
        trace.remarks,
        [
            "1 events of writes of zeroes were taken for writes, as version 7 has them",
            "1 operations on zones were skipped"
        ]
    );
}

#[test]
fn the_payload_of_an_event_is_no_arrival() {
    let unplug =
        Record { payload: Payload::Unplug(16), ..event(1, Action::Unplug, 0, 0, Categories::NONE) };
    let message = refusal(file(Layout::V7_LITTLE, &[unplug]));
    assert!(message.starts_with("x: nothing to replay in it (read as blktrace)"), "{message}");
}

#[test]
fn blkparse_text_gives_arrivals_as_records_do() {
    let trace = read(
        "Input file sda.blktrace.0 added
  8,0    0        1     1.000000000    77  Q FWS 100 + 16 [fio]
  8,0    0        2     1.000001000    77  Q  FN [fio]
  8,0    0        3     1.000002000    77  D  WS 100 + 16 [fio]
  8,0    0        4     1.000107000     0  C  WS 100 + 16 [0]
CPU0 (sda):
",
    );
    assert_eq!(trace.format, Format::Blkparse);
    let device = DevT::new(8, 0).to_bits();
    let expected = [(0, Op::Write, 100, 8_192, device), (1_000, Op::Flush, 0, 0, device)];
    assert_eq!(columns(&trace), expected);
    let first = &trace.arrivals[0];
    assert_eq!(first.flags, Flags { preflush: true, sync: true, ..Flags::default() });
    assert_eq!((first.service, first.pid), (Some(Duration::from_micros(107)), Some(77)));
}
