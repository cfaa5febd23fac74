//! Whole lives, event by event.

use super::*;
use crate::layer::Layer;
use base::{Duration, Sector, Sectors};
use block::{ContextId, Flags, Op};
use proptest::prelude::*;

fn name(number: u64) -> RequestId {
    RequestId::from_bits(number)
}

/// An event of a request, at a microsecond; the task has its number.
fn event(micros: u64, rq: u64, action: Action) -> Event {
    Event {
        at: Instant::from_nanos(micros * 1000),
        context: ContextId(rq as u32),
        sector: Sector(rq * 100),
        sectors: Sectors(8),
        request: Some(name(rq)),
        ..Event::note(action)
    }
}

fn done(micros: u64, rq: u64) -> Event {
    event(micros, rq, Action::Complete { issued: Instant::ZERO })
}

fn lives(depth: u32, events: &[Event]) -> Vec<Life> {
    let mut requests = Requests::new(Some(depth));
    events.iter().for_each(|event| requests.see(event));
    requests.finish();
    requests.done().collect()
}

fn micros(parts: &[(Layer, Duration)]) -> Vec<(Layer, u64)> {
    parts.iter().map(|(layer, time)| (*layer, time.as_micros())).collect()
}

const HOLD: Action = Action::Hold { reason: HoldReason::ProcessIdles, waits_for: None };

#[test]
fn time_with_the_scheduler_is_held_full_others_or_the_hosts() {
    let events = [
        event(0, 1, Action::Queue),
        event(1, 1, Action::GetRequest),
        event(2, 1, Action::Insert),
        event(3, 1, Action::Issue),
        event(4, 2, Action::Queue),
        event(4, 2, Action::GetRequest),
        event(5, 2, Action::Insert),
        event(6, 3, Action::Queue),
        event(6, 3, Action::GetRequest),
        event(6, 3, Action::Insert),
        done(10, 1),
        event(12, 3, Action::Issue),
        done(20, 3),
        event(20, 0, HOLD),
        event(28, 2, Action::Issue),
        done(40, 2),
    ];
    let [first, third, second] = &lives(1, &events)[..] else { panic!("three lives") };
    assert_eq!(micros(&first.layers), [(Layer::Host, 3), (Layer::Device, 7)]);
    assert_eq!(micros(&third.layers), [(Layer::Full, 4), (Layer::Host, 2), (Layer::Device, 8)]);
    let held = Layer::Held(HoldReason::ProcessIdles);
    let expected =
        [(Layer::Host, 3), (held, 8), (Layer::Full, 5), (Layer::Others, 8), (Layer::Device, 12)];
    assert_eq!(micros(&second.layers), expected);
    assert_eq!(second.others, [(ContextId(3), Duration::from_micros(8))]);
    assert_eq!((second.total(), second.guess), (Duration::from_micros(36), None));
}

/// The single queue tells of the issue of one request more than the device takes.
#[test]
fn the_device_has_a_request_from_when_it_begins_with_it() {
    let at = |micros: u64| Instant::from_nanos(micros * 1000);
    let served = |since| Action::Served(Box::new([(at(since), block::command::Stage::Service)]));
    let events = [
        event(0, 1, Action::Insert),
        event(1, 1, Action::Issue),
        event(2, 2, Action::Insert),
        event(2, 2, Action::Issue),
        event(6, 1, served(1)),
        done(6, 1),
        event(9, 2, served(7)),
        done(10, 2),
    ];
    let lives = lives(1, &events);
    assert_eq!(micros(&lives[0].layers), [(Layer::Host, 1), (Layer::Device, 5)]);
    assert_eq!(micros(&lives[1].layers), [(Layer::Full, 5), (Layer::Device, 3)]);
    assert_eq!(lives[1].issued, at(7));
}

#[test]
fn what_is_withheld_ends_with_a_choice_and_not_with_an_issue() {
    let dispatch = Action::Dispatch(DispatchReason::ArrivalOrder);
    let events = [
        event(0, 1, Action::Insert),
        event(0, 2, Action::Insert),
        event(1, 1, dispatch.clone()),
        event(1, 0, HOLD),
        event(3, 1, Action::Issue),
        event(5, 2, dispatch),
        event(6, 2, Action::Issue),
        done(7, 1),
        done(8, 2),
    ];
    let lives = lives(4, &events);
    let held = Layer::Held(HoldReason::ProcessIdles);
    assert_eq!(micros(&lives[0].layers), [(Layer::Host, 3), (Layer::Device, 4)]);
    assert_eq!(micros(&lives[1].layers), [(held, 4), (Layer::Host, 2), (Layer::Device, 2)]);
    assert_eq!(lives[0].reason, Some(DispatchReason::ArrivalOrder));
}

#[test]
fn before_it_is_a_request_it_waits_for_limits_throttling_or_a_tag() {
    let bio = Some(BioId::from_bits(9));
    let of_bio = |micros, action| Event { bio, request: None, ..event(micros, 1, action) };
    let at = |micros: u64| Instant::from_nanos(micros * 1000);
    let events = [
        of_bio(5, Action::Released { since: at(0) }),
        of_bio(6, Action::Queue),
        of_bio(6, Action::Throttled { depth: 1 }),
        of_bio(8, Action::Sleep),
        of_bio(9, Action::Sleep),
        event(12, 1, Action::GetRequest),
        event(12, 1, Action::Plug),
        event(15, 1, Action::Unplug { depth: 1 }),
        event(16, 1, Action::Insert),
        event(16, 1, Action::Issue),
        event(20, 1, Action::Requeue),
        event(20, 1, Action::Insert),
        event(23, 1, Action::Issue),
        done(30, 1),
        of_bio(31, Action::BioDone { queued: at(6), issued: at(23) }),
    ];
    let lives = lives(1, &events);
    let expected = [
        (Layer::Limits, 5),
        (Layer::Throttle, 2),
        (Layer::Tag, 4),
        (Layer::Host, 2),
        (Layer::Plug, 3),
        (Layer::Requeued, 7),
        (Layer::Device, 7),
        (Layer::Interrupt, 1),
    ];
    assert_eq!(micros(&lives[0].layers), expected);
    assert_eq!((lives[0].queued, lives[0].told), (at(0), Some(at(31))));
}

#[test]
fn what_is_absorbed_ends_in_the_survivor() {
    let events = [
        event(0, 1, Action::GetRequest),
        event(1, 2, Action::GetRequest),
        event(2, 1, Action::BackMerge),
        event(2, 1, Action::Insert),
        event(3, 2, Action::Join { into: name(1) }),
        event(4, 1, Action::Issue),
        done(5, 1),
        done(6, 2),
    ];
    let lives = lives(1, &events);
    assert_eq!((lives.len(), lives[0].merged), (1, 2));
}

#[test]
fn data_with_a_flush_behind_is_with_the_device_and_then_flushed() {
    let issued = Instant::from_nanos(7_000);
    let bio = Some(BioId::from_bits(9));
    let events = [
        Event { bio, request: None, ..event(0, 1, Action::Queue) },
        event(0, 1, Action::GetRequest),
        event(1, 1, Action::Issue),
        done(4, 1),
        event(9, 1, Action::Complete { issued }),
    ];
    let lives = lives(1, &events);
    assert_eq!(micros(&lives[0].layers), [(Layer::Host, 4), (Layer::Device, 3), (Layer::Flush, 2)]);
}

#[test]
fn a_guess_is_marked_as_one() {
    let mut requests = Requests::new(Some(1));
    let at = |micros: u64| Instant::from_nanos(micros * 1000);
    requests.see(&event(0, 1, Action::Insert));
    requests.infer_hold(at(1), None, Confidence::Medium);
    requests.see(&event(9, 1, Action::Issue));
    requests.see(&done(10, 1));
    let life = requests.done().next().unwrap();
    assert_eq!(life.guess, Some(Confidence::Medium));
    assert_eq!(life.time_in(Layer::Withheld), Duration::from_micros(8));
}

prop_compose! {
    /// Any event at all, so most tell of what cannot be.
    fn any_event()(
        micros in 0u64..40, kind in 0u8..20, rq in 0u64..5, into in 0u64..5, task in 0u32..3,
        bio in prop::option::of(0u64..4), sector in 0u64..3, flush: bool, is_named in 0u8..8,
    ) -> Event {
        let at = Instant::from_nanos(micros);
        let action = match kind {
            0 | 1 => Action::Queue,
            2 => Action::Split { rest: Sector(into) },
            3 => Action::BackMerge,
            4 | 5 => Action::GetRequest,
            6 => Action::Sleep,
            7 => Action::Throttled { depth: 1 },
            8 => Action::Released { since: at },
            9 => Action::Plug,
            10 => Action::Unplug { depth: 1 },
            11 | 12 => Action::Insert,
            13 => Action::Join { into: name(into) },
            14 => Action::Dispatch(DispatchReason::Expired),
            15 => Action::Hold { reason: HoldReason::NoToken, waits_for: None },
            16 | 17 => Action::Issue,
            18 => Action::Requeue,
            _ if flush => Action::BioDone { queued: at, issued: at },
            _ => Action::Complete { issued: at },
        };
        Event {
            at,
            context: ContextId(task),
            op: Op::Write,
            flags: if flush { Flags::PREFLUSH } else { Flags::NONE },
            sector: Sector(sector),
            sectors: Sectors(if flush { 0 } else { 8 }),
            bio: bio.map(BioId::from_bits),
            request: (is_named > 0).then(|| name(rq | ((into / 3) << 32))),
            ..Event::note(action)
        }
    }
}

use block::bio::BioId;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn whatever_happens_parts_add_up_and_nothing_is_left(
        steps in prop::collection::vec((any_event(), 0u64..20), 0..120), depth in 0u32..4
    ) {
        let mut requests = Requests::new((depth > 0).then_some(depth));
        let mut clock = 0;
        for (mut event, passed) in steps {
            clock += passed;
            event.at = Instant::from_nanos(clock.saturating_sub(event.at.as_nanos() / 30));
            requests.see(&event);
        }
        let names = (0..16).map(|it| name((it % 8) | ((it / 8) << 32)));
        let under_way: Vec<RequestId> = names.collect();
        requests.finish();
        for life in requests.done() {
            let sum: Duration = life.layers.iter().map(|part| part.1).sum();
            prop_assert_eq!(sum, life.end().since(life.queued));
            let others: Duration = life.others.iter().map(|other| other.1).sum();
            prop_assert!(others <= life.time_in(Layer::Others));
        }
        for id in under_way {
            requests.lose(Instant::from_nanos(clock), id);
        }
        prop_assert_eq!((requests.under_way(), requests.waiting), (0, 0));
    }
}
