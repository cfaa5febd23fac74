//! Recordings written by hand, and what is understood of them.

use super::*;
use crate::layer::Layer;
use crate::life::Confidence;
use base::{Sector, Sectors};
use block::{Action as Happens, Event, HoldReason, RequestId};
use trace::blktrace::Action::*;
use trace::blktrace::{Action, Categories};

/// A record of task 7, at a microsecond: a read of so many sectors there.
fn read(micros: u64, action: Action, sector: u64, sectors: u32) -> Record {
    Record {
        sector: Sector(sector),
        bytes: sectors * 512,
        pid: 7,
        device: DevT::new(8, 0),
        ..Record::event(action, Instant::from_nanos(micros * 1000))
    }
    .with(Categories::READ)
}

/// All steps of a read that nobody holds up.
fn whole(micros: u64, sector: u64) -> Vec<Record> {
    let steps = [Queue, GetRequest, Insert, Issue, Complete];
    let step = |(number, action)| read(micros + number as u64, action, sector, 8);
    steps.into_iter().enumerate().map(step).collect()
}

fn understood(records: &[Record]) -> (Vec<Event>, Vec<Life>, Misfits) {
    let (mut stream, mut events) = (Stream::new(None), Vec::new());
    let mut see = |told: Told| match told {
        Told::Event(event) => events.push(event.clone()),
        Told::Lost(..) => {}
    };
    records.iter().for_each(|record| stream.take(record, &mut see));
    stream.finish(&mut see);
    let lives = stream.lives().collect();
    (events, lives, stream.misfits().clone())
}

fn micros(life: &Life) -> Vec<(Layer, u64)> {
    life.layers.iter().map(|(layer, time)| (*layer, time.as_micros())).collect()
}

#[test]
fn a_request_is_followed_from_its_bio_to_its_end() {
    let (events, lives, misfits) = understood(&whole(10, 100));
    assert_eq!((events.len(), lives.len(), misfits), (5, 1, Misfits::default()));
    let names: Vec<Option<RequestId>> = events.iter().map(|event| event.request).collect();
    assert!(names[0].is_none() && names[1].is_some());
    assert!(names[1..].iter().all(|name| *name == names[1]));
    assert_eq!(micros(&lives[0]), [(Layer::Host, 3), (Layer::Device, 1)]);
}

#[test]
fn bios_merge_at_both_ends() {
    let mut records = whole(10, 108);
    records.splice(
        3..,
        [
            read(13, Queue, 116, 8),
            read(13, BackMerge, 116, 8),
            read(14, Queue, 100, 8),
            read(14, FrontMerge, 100, 8),
            read(15, Issue, 100, 24),
            read(20, Complete, 100, 24),
        ],
    );
    let (_, lives, misfits) = understood(&records);
    assert_eq!((lives.len(), lives[0].merged, misfits), (1, 2, Misfits::default()));
    assert_eq!((lives[0].sector, lives[0].sectors), (Sector(100), Sectors(24)));
}

#[test]
fn requests_join_with_a_record_or_without() {
    let two = [&whole(10, 100)[..3], &whole(20, 108)[..3]].concat();
    let end = [read(30, Issue, 100, 16), read(40, Complete, 100, 16)];
    for merge in [vec![], vec![read(25, BackMerge, 108, 8)]] {
        let records = [&two[..], &merge, &end].concat();
        let (events, lives, misfits) = understood(&records);
        let joins = events.iter().filter(|event| matches!(event.action, Happens::Join { .. }));
        assert_eq!((joins.count(), lives.len(), misfits), (1, 1, Misfits::default()));
        assert_eq!((lives[0].merged, lives[0].sectors), (1, Sectors(16)));
    }
}

#[test]
fn parts_of_a_split_bio_came_with_the_whole() {
    let split = Record { payload: Payload::Split(Sector(108)), ..read(11, Split, 100, 8) };
    let records = [
        read(10, Queue, 100, 16),
        split,
        read(12, GetRequest, 100, 8),
        read(14, GetRequest, 108, 8),
        read(15, Issue, 100, 8),
        read(16, Issue, 108, 8),
        read(20, Complete, 100, 8),
        read(21, Complete, 108, 8),
    ];
    let (_, lives, _) = understood(&records);
    let queued: Vec<u64> = lives.iter().map(|life| life.queued.as_nanos() / 1000).collect();
    assert_eq!(queued, [10, 10]);
}

#[test]
fn what_is_given_back_is_issued_again_and_may_end_in_parts() {
    let mut records = whole(10, 100);
    let end = records.split_off(4);
    records.extend([
        read(14, Requeue, 100, 8),
        read(15, Insert, 100, 8),
        read(20, Issue, 100, 8),
        read(24, Complete, 100, 4),
    ]);
    records.extend([Record { sector: Sector(104), bytes: 2048, ..end[0].clone() }]);
    records[8].time = Instant::from_nanos(26_000);
    let (_, lives, misfits) = understood(&records);
    let expected = [(Layer::Host, 3), (Layer::Requeued, 7), (Layer::Device, 6)];
    assert_eq!((micros(&lives[0]), misfits), (expected.to_vec(), Misfits::default()));
}

#[test]
fn where_there_is_nothing_but_issues_and_ends_a_life_begins_with_its_issue() {
    let (_, lives, misfits) = understood(&[
        read(10, Issue, 100, 8),
        read(11, Complete, 50, 8),
        read(15, Complete, 100, 8),
    ]);
    assert_eq!(micros(&lives[0]), [(Layer::Device, 5)]);
    assert_eq!(misfits, Misfits { completions: 1, ..Misfits::default() });
}

#[test]
fn a_long_gap_is_taken_for_withheld_and_marked_as_a_guess() {
    let busy: Vec<Record> = (0..20).flat_map(|turn| whole(turn * 10, 1000 * turn)).collect();
    let waits = [
        read(300, Queue, 5, 8),
        read(300, GetRequest, 5, 8),
        read(301, Insert, 5, 8),
        read(8_301, Issue, 5, 8),
        read(8_310, Complete, 5, 8),
    ];
    let says = Record::message(Instant::from_nanos(299_000), "cfq9S  arm_idle: 8 group_idle: 0");
    let cases = [
        (vec![], Layer::Withheld, Confidence::Medium),
        (vec![says], Layer::Held(HoldReason::ProcessIdles), Confidence::High),
    ];
    for (said, layer, confidence) in cases {
        let (_, lives, _) = understood(&[&busy[..], &said, &waits].concat());
        let last = lives.last().unwrap();
        assert_eq!(micros(last), [(Layer::Host, 1), (layer, 8_000), (Layer::Device, 9)]);
        assert_eq!(last.guess, Some(confidence));
        assert!(lives[..20].iter().all(|life| life.guess.is_none()));
    }
}

#[test]
fn what_never_ends_is_given_up() {
    let mut records = whole(0, 100);
    records.pop();
    records.extend(whole(200_000_000, 500));
    let (_, lives, misfits) = understood(&records);
    assert_eq!((lives.len(), misfits.lost), (1, 1));
    assert_eq!(lives[0].time_in(Layer::Full), base::Duration::ZERO);
}

#[test]
fn records_of_other_devices_and_other_commands_are_counted() {
    let mut records = whole(10, 100);
    records.push(Record { device: DevT::new(8, 16), ..records[0].clone() });
    records.push(records[3].clone().with(Categories::PC));
    let (_, lives, misfits) = understood(&records);
    assert_eq!((lives.len(), misfits.other_devices, misfits.passthrough), (1, 1, 1));
}

#[test]
fn what_is_lost_is_under_way_no_more() {
    let mut records = vec![read(1, Queue, 8, 8), read(2, GetRequest, 8, 8)];
    records.extend([read(3, Insert, 8, 8), read(4, Issue, 8, 8)]);
    // Nothing is heard of it again, for three minutes in which others come and go.
    (1..18).for_each(|number| records.extend(whole(number * 10_000_000, 100)));
    let mut stream = Stream::new(None);
    let mut phases = crate::phases::Phases::default();
    let mut intervals = crate::intervals::Intervals::new(base::Duration::from_secs(10));
    let mut hear = |told: Told| {
        phases.hear(told);
        intervals.hear(told);
    };
    records.iter().for_each(|record| stream.take(record, &mut hear));
    stream.finish(&mut hear);
    assert_eq!(stream.misfits().lost, 1);
    assert!(phases.busy() < base::Duration::from_secs(110), "{:?}", phases.busy());
    let last = intervals.all().last().copied().unwrap_or_default();
    assert!(last.busy < base::Duration::from_millis(1), "{last:?}");
}
