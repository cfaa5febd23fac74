//! What a flash drive promises, seen from inside.

use base::{Duration, Instant, Rng, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};

use super::drive::Drive;
use crate::Device;
use crate::Model;

fn drive(name: &str) -> Drive {
    Model::builtin(name).unwrap().build_flash()
}

/// The built-in model of this name with a text in its file replaced.
fn changed(name: &str, old: &str, new: &str) -> Drive {
    let (_, text) = crate::builtin::MODELS.iter().find(|model| model.0 == name).unwrap();
    assert!(text.contains(old), "{name} has no {old}");
    Model::from_text(name, &text.replacen(old, new, 1)).unwrap().build_flash()
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
fn a_flush_waits_until_what_was_written_before_is_in_the_flash() {
    for name in ["ssd-sata-m4", "nvme-980pro"] {
        let mut drive = drive(name);
        let mut now = Instant::ZERO;
        for step in 0..300 {
            drive.accept(now, command(0, CommandOp::Write, step * 800, 24));
            now = until_done(&mut drive, 0);
        }
        drive.accept(now, command(1, CommandOp::Flush, 0, 0));
        let done = until_done(&mut drive, 1);
        assert_eq!(drive.buffered(), 0, "{name}");
        let least = if name == "nvme-980pro" { 3000 } else { 1500 };
        assert!(done.since(now) >= Duration::from_micros(least), "{name}");
    }
}

#[test]
fn a_protected_buffer_has_nothing_to_flush() {
    let mut drive = drive("nvme-plp");
    drive.accept(Instant::ZERO, command(0, CommandOp::Write, 0, 2048));
    let now = until_done(&mut drive, 0);
    drive.accept(now, command(1, CommandOp::Flush, 0, 0));
    assert!(until_done(&mut drive, 1).since(now) < Duration::from_micros(10));
}

#[test]
fn a_read_suspends_a_program_if_the_flash_can() {
    let longest = |mut drive: Drive| {
        let mut rng = Rng::stream(1, "test");
        let mut now = Instant::ZERO;
        let mut longest = Duration::ZERO;
        for _ in 0..200 {
            drive.accept(now, command(0, CommandOp::Write, rng.below(1_000_000) * 32, 256));
            now = until_done(&mut drive, 0);
            drive.accept(now, command(1, CommandOp::Read, rng.below(10_000_000) * 8, 8));
            let done = until_done(&mut drive, 1);
            longest = longest.max(done.since(now));
            now = done + Duration::from_micros(50);
        }
        longest
    };
    let suspends = longest(drive("nvme-plp"));
    let (_, text) = crate::builtin::MODELS.iter().find(|model| model.0 == "nvme-plp").unwrap();
    let start = text.find("[suspend]").unwrap();
    let end = start + text[start..].find("\n\n").unwrap();
    let text = format!("{}{}", &text[..start], &text[end..]);
    let waits = longest(Model::from_text("plp", &text).unwrap().build_flash());
    assert!(suspends < Duration::from_micros(140), "suspended: {suspends}");
    assert!(waits > Duration::from_micros(350), "not suspended: {waits}");
}

#[test]
fn what_was_never_written_needs_no_flash() {
    let mut drive =
        changed("nvme-980pro", "prefilled         = { value = true", "prefilled = { value = false");
    drive.accept(Instant::ZERO, command(0, CommandOp::Read, 0, 8));
    let empty = until_done(&mut drive, 0).since(Instant::ZERO);
    assert!(empty < Duration::from_micros(20), "{empty}");
    let mut now = Instant::from_nanos(1_000_000_000);
    drive.accept(now, command(0, CommandOp::Write, 0, 8));
    until_done(&mut drive, 0);
    now += Duration::from_millis(10);
    drive.accept(now, command(0, CommandOp::Read, 0, 8));
    let full = until_done(&mut drive, 0).since(now);
    assert!(full > Duration::from_micros(50), "{full}");
}

#[test]
fn a_write_larger_than_the_buffer_passes_through() {
    let mut drive =
        changed("ssd-sata-m4", "value = 16, unit = \"MiB\"", "value = 64, unit = \"KiB\"");
    let mut now = Instant::ZERO;
    for step in 0..20 {
        drive.accept(now, command(0, CommandOp::Write, step * 4103, 4103));
        now = until_done(&mut drive, 0);
    }
    let rate = 20.0 * 4103.0 * 512.0 / now.as_nanos() as f64 * 1000.0;
    assert!((100.0..300.0).contains(&rate), "{rate} MB/s");
}

#[test]
fn readers_do_not_starve_a_writer() {
    let mut drive = drive("nvme-plp");
    let mut rng = Rng::stream(1, "test");
    let mut written = 0;
    for tag in 0..600 {
        drive.accept(Instant::ZERO, command(tag, CommandOp::Read, rng.below(100_000_000) * 8, 8));
    }
    drive.accept(Instant::ZERO, command(600, CommandOp::Write, 0, 2048));
    let mut completed = Vec::new();
    while let Some(now) = drive.next_event().filter(|at| at.as_nanos() < 1_000_000_000) {
        drive.advance(now, &mut completed);
        for tag in completed.drain(..) {
            let next = if tag.0 == 600 {
                written += 2048;
                command(600, CommandOp::Write, written, 2048)
            } else {
                command(tag.0, CommandOp::Read, rng.below(100_000_000) * 8, 8)
            };
            drive.accept(now, next);
        }
    }
    let megabytes = written * 512 / 1_000_000;
    assert!(megabytes > 300, "{megabytes} MB in a second");
}

#[test]
fn a_flush_ends_although_readers_keep_every_unit_busy() {
    let mut drive = drive("nvme-980pro");
    let mut rng = Rng::stream(1, "test");
    let mut read = |tag| command(tag, CommandOp::Read, rng.below(100_000_000) * 8, 8);
    for tag in 0..600 {
        drive.accept(Instant::ZERO, read(tag));
    }
    drive.accept(Instant::ZERO, command(600, CommandOp::Write, 0, 2048));
    let (mut completed, mut flush_ended) = (Vec::new(), None);
    while let Some(now) = drive.next_event().filter(|at| at.as_nanos() < 100_000_000) {
        drive.advance(now, &mut completed);
        for tag in completed.drain(..) {
            match tag.0 {
                600 => drive.accept(now, command(601, CommandOp::Flush, 0, 0)),
                601 => flush_ended = Some(now),
                tag => drive.accept(now, read(tag)),
            }
        }
    }
    assert!(flush_ended.is_some_and(|at| at.as_nanos() < 20_000_000), "{flush_ended:?}");
}
