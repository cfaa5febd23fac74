//! What a host does with what was written.

use super::write_back::{Rules, WriteBack};
use crate::{Device, Model};
use base::{Duration, Instant, Rng, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A host that lets pages age for a second, writes up to four pages twice at once, and holds ten.
fn host() -> WriteBack {
    let after = Duration::from_secs(1);
    WriteBack::new(Rules { after, at_once: 2, largest: 4, limit: 10 }, 2, 64)
}

#[test]
fn what_is_written_again_goes_to_the_drive_once_with_its_neighbours_in_order_of_place() {
    let mut host = host();
    for (millis, page) in [(0, 7), (1, 6), (2, 7), (3, 100), (4, 3), (5, 4), (900, 50)] {
        host.note_written(at(millis), page);
    }
    assert_eq!(host.next_due(), Some(at(1000)));
    assert_eq!(host.next(at(999)), None, "nothing is old enough");
    assert_eq!(host.next(at(1004)), Some((0, 3, 1)), "page 4 is a millisecond younger");
    assert_eq!(host.next(at(1005)), Some((1, 4, 1)));
    assert_eq!(host.next(at(1005)), None, "two are at the drive");
    assert!(host.holds(7) && !host.holds(3));
    host.written(0);
    assert_eq!(host.next(at(1005)), Some((0, 6, 2)));
    host.note_written(at(1006), 6);
    host.written(1);
    assert_eq!(host.next(at(1900)), Some((1, 50, 1)));
    host.written(0);
    assert_eq!(host.next(at(1900)), Some((0, 100, 1)), "page 6 is dirty anew, and young");
    host.written(0);
    assert_eq!(host.next(at(2006)), Some((0, 6, 1)));
}

#[test]
fn at_the_limit_everything_is_due() {
    let mut host = host();
    (0..10).for_each(|page| host.note_written(at(0), page * 2));
    assert!(!host.has_room(1));
    assert_eq!(host.next(at(0)), Some((0, 0, 1)));
    assert!(!host.has_room(1), "not before it is on the drive");
    host.written(0);
    assert!(host.has_room(1) && !host.has_room(2));
}

/// `vm-disk` with a small limit, whose host writes back through the drive or out of sight.
fn disk(writes_back: bool) -> Box<dyn Device> {
    let (_, text) = crate::builtin::MODELS.iter().find(|model| model.0 == "vm-disk").unwrap();
    let text = text.replacen("dirty_limit = { value = 256", "dirty_limit = { value = 1", 1);
    let text = if writes_back { writing_back(&text) } else { text };
    Model::from_text("disk", &text).unwrap().build(1)
}

/// The model in this text, whose host writes back through the drive.
fn writing_back(text: &str) -> String {
    let stated = |name, value| {
        format!("{name} = {{ value = {value}, source = \"assumed\", from = \"test\" }}\n")
    };
    let section = [
        "[write_back]\n".to_string(),
        stated("after", "100, unit = \"ms\""),
        stated("at_once", "4"),
        stated("largest", "1, unit = \"MiB\""),
        "[jitter]".to_string(),
    ];
    text.replacen("[jitter]", &section.concat(), 1)
}

/// A random reader, and a random writer that pauses, for ten seconds: the mean time of a read in
/// microseconds, and how many writes there were.
fn reader_beside_writer(disk: &mut dyn Device, pause: Duration) -> (u64, u64) {
    let mut rng = Rng::stream(1, "test");
    let (mut now, mut completed) = (Instant::ZERO, Vec::new());
    let mut asked = [Instant::ZERO; 2];
    let (mut reads, mut writes, mut waited) = (0, 0, 0);
    let mut wanting = vec![(now, 0), (now, 1)];
    while now < at(10_000) {
        wanting.sort_unstable_by(|a, b| b.cmp(a));
        let event = disk.next_event();
        if let Some((when, who)) = wanting.pop_if(|it| event.is_none_or(|event| it.0 <= event)) {
            let op = if who == 0 { CommandOp::Read } else { CommandOp::Write };
            let sector = Sector(rng.below(20_000_000) * 8);
            asked[who as usize] = when;
            let sectors = Sectors(8);
            disk.accept(when, Command { tag: Tag(who), op, sector, sectors, fua: false });
            continue;
        }
        now = event.expect("commands in flight");
        disk.advance(now, &mut completed);
        for Tag(who) in completed.drain(..) {
            match who {
                0 => (reads, waited) = (reads + 1, waited + now.since(asked[0]).as_nanos() / 1000),
                _ => writes += 1,
            }
            wanting.push((now + if who == 0 { Duration::ZERO } else { pause }, who));
        }
    }
    (waited / reads, writes)
}

#[test]
fn reads_wait_beside_what_the_host_writes_back() {
    let pause = Duration::from_millis(10);
    let (alone, _) = reader_beside_writer(&mut *disk(false), pause);
    let (beside, _) = reader_beside_writer(&mut *disk(true), pause);
    assert!(alone * 5 / 4 < beside && beside < alone * 4, "{alone} and {beside} us");
}

#[test]
fn who_writes_for_long_gets_no_more_than_the_drive_writes() {
    let pause = Duration::ZERO;
    let (_, unseen) = reader_beside_writer(&mut *disk(false), pause);
    let (_, written) = reader_beside_writer(&mut *disk(true), pause);
    assert!(unseen > 100_000 && (500..10_000).contains(&written), "{unseen}, {written} writes");
}

#[test]
fn a_drive_of_one_command_at_a_time_has_no_place_for_both() {
    let (_, text) = crate::builtin::MODELS.iter().find(|model| model.0 == "vm-disk").unwrap();
    let changed = text
        .replacen("value = 100, unit = \"GiB\"", "value = 1, unit = \"GiB\"", 1)
        .replacen("\"hdd-7200-sata\"", "\"recorded-hdd-qd1\"", 1);
    assert!(Model::from_text("FILE", &changed).is_ok(), "out of sight");
    let error = Model::from_text("FILE", &writing_back(&changed)).err().unwrap().to_string();
    let expected = "FILE:19: backing.model: recorded-hdd-qd1 takes one command at a time; a model \
                    that takes two: one may be what the host writes back";
    assert_eq!(error, expected);
}
