//! What a drive promises, seen from inside.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Duration, Instant, Rng, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use proptest::prelude::*;

use super::drive::{Drive, range_of};
use crate::Device;
use crate::Model;

fn drive(name: &str) -> Drive {
    Model::builtin(name).unwrap().build_rotational(1)
}

fn command(tag: u32, op: CommandOp, sector: u64, sectors: u32) -> Command {
    Command { tag: Tag(tag), op, sector: Sector(sector), sectors: Sectors(sectors), fua: false }
}

/// Runs until `tag` completes; returns when.
fn until_done(drive: &mut Drive, tag: u32) -> Instant {
    let mut completed = Vec::new();
    loop {
        let now = drive.next_event().expect("a command in flight");
        drive.advance(now, &mut completed);
        if completed.contains(&Tag(tag)) {
            return now;
        }
    }
}

#[test]
fn no_read_is_faster_than_its_mechanics() {
    for name in ["hdd-7200-sata", "hdd-sas-2009", "cheetah9lp"] {
        let mut drive = drive(name);
        let sectors = drive.facts().capacity.0 / Sector::SIZE;
        let mut rng = Rng::stream(1, "test");
        let mut now = Instant::ZERO;
        for _ in 0..500 {
            let read = command(0, CommandOp::Read, rng.below(sectors - 8), 8);
            let parameters: Arc<_> = drive.parameters.clone();
            let place = parameters.geometry.place(read.sector.0);
            let moving = parameters.mechanics.moving(drive.arm, &place, false);
            let before = drive.cache.hit(&range_of(&read));
            drive.accept(now, read);
            let done = until_done(&mut drive, 0);
            let least = Duration::from_nanos(moving) + drive.link_time(CommandOp::Read, 1);
            assert!(before.is_some() || done.since(now) >= least, "{name}: {read:?}");
            // Long enough for reading ahead to end: the arm stands still.
            now = done + Duration::from_millis(100);
            drive.advance(now, &mut Vec::new());
        }
    }
}

#[test]
fn a_sequential_reader_loses_no_turn() {
    let mut drive = drive("hdd-7200-sata");
    let mut now = Instant::ZERO;
    for step in 0..2000 {
        drive.accept(now, command(0, CommandOp::Read, step * 256, 256));
        now = until_done(&mut drive, 0);
    }
    // 3072 sectors a track; a turn and the skew of 0.141669 turns for each.
    let tracks = 2000 * 256 / 3072 + 1;
    let turns = Duration::from_nanos(8_333_333 * 1_141_669 / 1_000_000 * tracks);
    assert!(now.as_nanos() < (turns + Duration::from_millis(30)).as_nanos(), "took {now}");
}

#[test]
fn a_sequential_writer_without_cache_loses_a_turn_for_each_request() {
    let mut drive = drive("hdd-sas-2009");
    let mut now = Instant::ZERO;
    for step in 0..100 {
        drive.accept(now, command(0, CommandOp::Write, step * 8, 8));
        now = until_done(&mut drive, 0);
    }
    let turn = 60_000_000_000 / 10_001;
    assert!(now.as_nanos() > 98 * turn && now.as_nanos() < 105 * turn, "took {now}");
}

#[test]
fn a_flush_waits_for_everything_before_it_and_holds_back_what_follows() {
    let mut drive = drive("hdd-7200-sata");
    let mut rng = Rng::stream(1, "test");
    for tag in 0..20 {
        let sector = rng.below(1_900_000_000);
        drive.accept(Instant::ZERO, command(tag, CommandOp::Write, sector, 8));
    }
    drive.accept(Instant::ZERO, command(20, CommandOp::Flush, 0, 0));
    drive.accept(Instant::ZERO, command(21, CommandOp::Read, 0, 8));
    let mut completed = Vec::new();
    while !completed.contains(&Tag(20)) {
        let now = drive.next_event().expect("a flush in flight");
        drive.advance(now, &mut completed);
    }
    assert_eq!(completed.len(), 21, "all writes are done, the read behind has not begun");
    assert_eq!(drive.cache.dirty_sectors(), 0);
    until_done(&mut drive, 21);
}

#[test]
fn a_flush_with_nothing_to_write_costs_nothing() {
    let mut drive = drive("hdd-7200-sata");
    drive.accept(Instant::ZERO, command(0, CommandOp::Flush, 0, 0));
    assert_eq!(until_done(&mut drive, 0), Instant::ZERO);
}

#[test]
fn a_command_that_is_passed_over_goes_when_it_is_old_enough() {
    let mut drive = drive("hdd-7200-sata");
    let far = 1_900_000_000;
    let mut rng = Rng::stream(1, "test");
    let mut near = |tag| command(tag, CommandOp::Read, rng.below(4_000_000), 8);
    for tag in 1..32 {
        drive.accept(Instant::ZERO, near(tag));
    }
    drive.accept(Instant::ZERO, command(0, CommandOp::Read, far, 8));
    let mut completed = Vec::new();
    let waited = loop {
        let now = drive.next_event().expect("commands in flight");
        drive.advance(now, &mut completed);
        if completed.contains(&Tag(0)) {
            break now;
        }
        for tag in completed.drain(..) {
            drive.accept(now, near(tag.0));
        }
    };
    let waited = waited.as_nanos() / 1_000_000;
    assert!((2400..2440).contains(&waited), "waited {waited} ms");
}

/// Streams of `depth` reads of 128 KiB beside one reader at random places, for ten seconds:
/// how long each read of the latter took, and how many of the stream's were served.
fn beside_a_stream(drive: &mut Drive, depth: u32) -> (Vec<Duration>, u64) {
    let mut rng = Rng::stream(1, "test");
    let mut streamed = 0;
    let mut next = |tag, streamed: &mut u64| match tag {
        0 => command(0, CommandOp::Read, 100_000_000 + rng.below(1 << 27), 8),
        _ => {
            *streamed += 1;
            command(tag, CommandOp::Read, *streamed * 256, 256)
        }
    };
    // What the host will ask for: it needs a while after each completion.
    let mut asking: VecDeque<(Instant, u32)> =
        (0..=depth).map(|tag| (Instant::ZERO, tag)).collect();
    let (mut waited, mut asked, mut completed) = (Vec::new(), Instant::ZERO, Vec::new());
    while asked < Instant::from_nanos(10_000_000_000) {
        let at = drive.next_event();
        if let Some(&(when, tag)) = asking.front()
            && at.is_none_or(|at| when <= at)
        {
            asking.pop_front();
            drive.accept(when, next(tag, &mut streamed));
            asked = if tag == 0 { when } else { asked };
            continue;
        }
        let at = at.expect("commands in flight");
        drive.advance(at, &mut completed);
        let again = at + Duration::from_micros(20);
        for Tag(tag) in completed.drain(..) {
            if tag == 0 {
                waited.push(at.since(asked));
            }
            asking.push_back((again, tag));
        }
    }
    (waited, streamed)
}

#[test]
fn whatever_joins_a_stream_nobody_waits_longer_than_the_drive_lets_him() {
    let longest_seek = Duration::from_millis(25);
    let turn = Duration::from_millis(9);
    for depth in [1, 2, 8, 31] {
        let mut drive = drive("hdd-7200-sata");
        let (waited, streamed) = beside_a_stream(&mut drive, depth);
        let most = drive.parameters.order.ageing + turn + longest_seek;
        assert!(waited.iter().all(|it| *it <= most), "{depth}: {:?}", waited.iter().max());
        assert!(waited.len() >= 4, "{depth}: {} reads", waited.len());
        // 165 MB/s alone are 12,600. With one read at a time the arm must leave now and then.
        let least = if depth == 1 { 2500 } else { 11_000 };
        assert!(streamed > least, "{depth}: {streamed} of the stream");
    }
}

/// A model with one text replaced.
fn changed(name: &str, old: &str, new: &str) -> Drive {
    changed_all(name, &[(old, new)])
}

/// A model with some texts replaced.
fn changed_all(name: &str, changes: &[(&str, &str)]) -> Drive {
    let (_, text) = crate::builtin::MODELS.iter().find(|model| model.0 == name).unwrap();
    let changed = changes.iter().fold(text.to_string(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    });
    Model::from_text("changed", &changed).unwrap().build_rotational(1)
}

/// How long two reads take that follow each other, the second after a pause.
fn two_reads_in_sequence(drive: &mut Drive) -> [Duration; 2] {
    let mut now = Instant::from_nanos(100_000_000);
    [0, 8].map(|sector| {
        let start = now;
        drive.accept(start, command(0, CommandOp::Read, sector, 8));
        let done = until_done(drive, 0);
        now = done + Duration::from_millis(50);
        drive.advance(now, &mut Vec::new());
        done.since(start)
    })
}

#[test]
fn nothing_is_kept_ahead_where_look_ahead_is_skipped() {
    let mut drive =
        changed("hdd-7200-sata", "value = 0, unit = \"share\"", "value = 1, unit = \"share\"");
    for sector in [0, 8, 16] {
        let now = Instant::from_nanos(1_000_000_000 * (1 + sector / 8));
        drive.accept(now, command(0, CommandOp::Read, sector, 8));
        until_done(&mut drive, 0);
        drive.advance(now + Duration::from_millis(500), &mut Vec::new());
        assert!(drive.cache.hit(&(sector..sector + 8)).is_some());
        assert!(drive.cache.hit(&(sector..sector + 9)).is_none(), "{sector}");
    }
}

#[test]
fn look_ahead_may_wait_for_a_sequential_read() {
    let [_, hit] = two_reads_in_sequence(&mut drive("hdd-7200-sata"));
    assert!(hit < Duration::from_micros(300), "{hit}");
    let mut drive = changed("hdd-7200-sata", "\"any-read\"", "\"sequential-read\"");
    let [_, miss] = two_reads_in_sequence(&mut drive);
    assert!(miss > Duration::from_micros(300), "{miss}");
    drive.accept(Instant::from_nanos(400_000_000), command(0, CommandOp::Read, 16, 8));
    let done = until_done(&mut drive, 0).since(Instant::from_nanos(400_000_000));
    assert!(done < Duration::from_micros(300), "the second read was sequential: {done}");
}

#[test]
fn look_ahead_may_end_with_the_cylinder() {
    let mut drive = changed("cheetah9lp", "\"next-track\"", "\"cylinder\"");
    let parameters: Arc<_> = drive.parameters.clone();
    let end = parameters.geometry.cylinder_end(0, u64::MAX);
    let (last, next) = (parameters.geometry.place(end - 1), parameters.geometry.place(end));
    assert_eq!((last.cylinder, next.cylinder), (0, 1));
    drive.accept(Instant::ZERO, command(0, CommandOp::Read, end - 100, 8));
    until_done(&mut drive, 0);
    drive.advance(Instant::from_nanos(1_000_000_000), &mut Vec::new());
    assert!(drive.cache.hit(&(end - 50..end)).is_some());
    assert!(drive.cache.hit(&(end - 50..end + 1)).is_none());
}

#[test]
fn the_link_may_be_slower_in_one_direction() {
    let mut drive =
        changed("hdd-7200-sata", "write_rate = { value = 550", "write_rate = { value = 55");
    let took = |drive: &mut Drive, op| {
        let start = drive.next_event().map_or(Instant::ZERO, |at| at) + Duration::from_secs(1);
        drive.advance(start, &mut Vec::new());
        drive.accept(start, command(0, op, 0, 256));
        until_done(drive, 0).since(start)
    };
    let write = took(&mut drive, CommandOp::Write);
    // 131,072 bytes at 55 MB/s are 2.38 ms; the controller takes 0.28 ms.
    assert!((2600..2750).contains(&(write.as_nanos() / 1000)), "{write}");
}

/// How long a write takes that joins nothing, on a drive idle since its start.
fn lone_write(drive: &mut Drive) -> Duration {
    let start = Instant::from_nanos(1_000_000_000);
    drive.accept(start, command(0, CommandOp::Write, 1_000_000, 8));
    until_done(drive, 0).since(start)
}

#[test]
fn makers_charge_a_write_that_is_cached_as_a_hit() {
    let miss = ("write_miss_after_read  = { value = 0.28", "write_miss_after_read = { value = 5");
    let taken = lone_write(&mut changed("hdd-7200-sata", miss.0, miss.1));
    assert!(taken > Duration::from_millis(5), "it joins nothing: {taken}");
    let cached = "[write_hits]\nare = { value = \"cached-writes\", source = \"assumed\", \
                  from = \"test\" }\n[link]";
    let with = |model, more: &[(&str, &str)]| {
        let mut changes = vec![("[link]", cached)];
        changes.extend(more);
        lone_write(&mut changed_all(model, &changes))
    };
    let taken = with("hdd-7200-sata", &[miss]);
    assert!(taken < Duration::from_micros(300), "the buffer takes it: {taken}");
    let through =
        ("write_miss_after_read  = { value = 0.25", "write_miss_after_read = { value = 9");
    let taken = with("hdd-sas-2009", &[through]);
    assert!(taken > Duration::from_millis(9), "no buffer takes it: {taken}");
}

#[test]
fn the_link_may_wait_for_a_share_of_a_read() {
    let took = |share: &str| {
        let watermark = format!(
            "[read_watermark]\nshare = {{ value = {share}, unit = \"share\", \
             source = \"assumed\", from = \"test\" }}\n[read_cache]"
        );
        let mut drive = changed("cheetah9lp", "[read_cache]", &watermark);
        // Over the end of a track: the watermark may lie in either part.
        drive.accept(Instant::ZERO, command(0, CommandOp::Read, 154, 200));
        let done = until_done(&mut drive, 0);
        (done, drive.link_time(CommandOp::Read, 1))
    };
    let [(streamed, sector), (half, _), (stored, _)] = ["0", "0.5", "1"].map(took);
    // On this drive a sector takes 23.5 us under the head and 103.3 us on the link; 100 sectors
    // are on the first track, and the next begins 97 sectors later.
    let extra = |done: Instant| done.since(streamed).as_nanos() / 1000;
    assert!((2325..2331).contains(&extra(half)), "99 sectors later: {} us", extra(half));
    assert!((6955..6975).contains(&extra(stored)), "99 + 97 + 100: {} us", extra(stored));
    // Sector 154 comes by after 3.6 ms, and all of the read takes 7 ms to pass.
    let last = (stored.as_nanos() - 200 * sector.as_nanos()) / 1000;
    assert!((10_590..10_620).contains(&last), "then all of it is in the buffer: {last} us");
}

#[test]
fn without_the_sections_nothing_is_held_back() {
    let whole = "[read_watermark]\nshare = { value = 0, unit = \"share\", source = \"assumed\", \
                 from = \"test\" }\n[write_hits]\nare = { value = \"joining-writes\", \
                 source = \"assumed\", from = \"test\" }\n[read_cache]";
    for name in ["hdd-7200-sata", "hdd-sas-2009", "cheetah9lp"] {
        let [mut with, mut without] = [changed(name, "[read_cache]", whole), drive(name)];
        let (mut rng, mut now) = (Rng::stream(1, "test"), Instant::ZERO);
        for _ in 0..300 {
            let op = if rng.chance(1, 3) { CommandOp::Write } else { CommandOp::Read };
            let command = command(0, op, rng.below(4000) * 8, 8 * (1 + rng.below(20) as u32));
            let pause = Duration::from_micros(rng.below(20_000));
            let [a, b] = [&mut with, &mut without].map(|drive| {
                drive.accept(now, command);
                let done = until_done(drive, 0);
                drive.advance(done + pause, &mut Vec::new());
                done
            });
            assert_eq!(a, b, "{name}: {command:?}");
            now = a + pause;
        }
    }
}

#[test]
fn several_reads_of_a_stream_cross_the_link_one_after_the_other() {
    for rate in [50, 100] {
        let slow = format!("read_rate  = {{ value = {rate}");
        let mut drive = changed("hdd-7200-sata", "read_rate  = { value = 550", &slow);
        (0..8).for_each(|step| {
            drive.accept(Instant::ZERO, command(step, CommandOp::Read, u64::from(step) * 256, 256));
        });
        let (mut at, mut asked, mut served, mut completed) = (Instant::ZERO, 8, 0, Vec::new());
        while served < 2000 {
            at = drive.next_event().expect("commands in flight");
            drive.advance(at, &mut completed);
            for Tag(tag) in completed.drain(..) {
                drive.accept(at, command(tag, CommandOp::Read, asked * 256, 256));
                (asked, served) = (asked + 1, served + 1);
            }
        }
        let megabytes = served * 131_072 * 1000 / at.as_nanos();
        assert!((rate * 9 / 10..=rate).contains(&megabytes), "{megabytes} MB/s of {rate}");
    }
}

#[test]
fn a_drive_that_leaves_its_stream_at_once_serves_a_random_reader_beside_one_read_at_a_time() {
    let mut drive = drive("hdd-sas-2009");
    let (waited, _) = beside_a_stream(&mut drive, 1);
    let longest = *waited.iter().max().unwrap();
    assert!(longest < Duration::from_millis(40), "{longest}");
}

#[test]
fn a_buffer_full_of_writes_makes_the_next_one_wait_for_the_platters() {
    let mut drive = drive("hdd-7200-sata");
    let mut rng = Rng::stream(1, "test");
    let mut longest = Duration::ZERO;
    let mut now = Instant::ZERO;
    for _ in 0..600 {
        let start = now;
        drive.accept(now, command(0, CommandOp::Write, rng.below(1_900_000_000), 8));
        now = until_done(&mut drive, 0);
        longest = longest.max(now.since(start));
    }
    assert!(longest > Duration::from_millis(2), "longest {longest}");
    assert!(drive.cache.dirty_sectors() <= 256 * 8);
}

#[test]
fn a_forced_write_is_on_the_platters_when_it_completes() {
    let mut drive =
        changed("hdd-7200-sata", "fua             = { value = false", "fua = { value = true");
    let mut now = Instant::ZERO;
    for step in 0..20 {
        let write = command(0, CommandOp::Write, step * 90_000_000, 8);
        drive.accept(now, Command { fua: step % 2 == 0, ..write });
        let done = until_done(&mut drive, 0);
        let forced = done.since(now) > Duration::from_micros(400);
        assert_eq!(forced, step % 2 == 0, "step {step}: {}", done.since(now));
        now = done;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_dirty_range_chosen_is_the_one_a_full_scan_finds(
        seed in any::<u64>(),
        count in 1u64..200,
        span in prop_oneof![Just(2_000_000u64), Just(100_000_000), Just(1_900_000_000)],
        at in 0u64..50_000_000,
    ) {
        let mut drive = drive("hdd-7200-sata");
        let mut rng = Rng::stream(seed, "test");
        for _ in 0..count {
            let sector = rng.below(span / 8) * 8;
            if let Some(absorbed) = drive.cache.absorb(sector..sector + 8, Instant::ZERO) {
                let place = drive.parameters.geometry.place(sector);
                drive.cache.set_place(absorbed.segment, place);
            }
        }
        drive.arm_lba = rng.below(span);
        let place = drive.parameters.geometry.place(drive.arm_lba);
        drive.arm = super::mechanics::Arm { cylinder: place.cylinder, head: place.head };
        let now = Instant::from_nanos(at);
        let mechanics = drive.parameters.mechanics.clone();
        let time = |drive: &Drive, index: usize| {
            let place = drive.cache.idle_dirty_place(index).unwrap();
            let moving = mechanics.moving(drive.arm, place, true);
            let arrived = now + Duration::from_nanos(moving);
            mechanics.arrival(arrived, place.angle).since(now)
        };
        let listed: Vec<usize> = drive.cache.dirty().iter().map(|entry| entry.1).collect();
        let best = listed.iter().map(|&index| time(&drive, index)).min().unwrap();
        let chosen = drive.soonest_dirty(now).unwrap();
        prop_assert_eq!(time(&drive, chosen), best);
    }
}
