//! Draws what waits in the scheduler and what the drive has, from event to event of a recording.
//!
//! `queue_and_drive RECORDING [FROM]`: RECORDING is what `compare --record` left, a file or its
//! directory, FROM a number of microseconds after the first event; without it, the picture is of
//! the longest service hole: the drive stands idle while requests wait. Each line is an insertion
//! (I), an issue (D) or a completion (C), with a mark for each request that waits in the scheduler
//! (`q`) and each that the drive has (`d`). The length of a hole stands at the line that ends it,
//! and the sum of all at the end.

use base::{Duration, Instant};
use lab::recording::Recording;
use std::error::Error;
use std::path::{Path, PathBuf};
use trace::blktrace::Action;

const LINES: usize = 24;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: queue_and_drive RECORDING [FROM_US]";
    let recording = PathBuf::from(arguments.next().ok_or(usage)?);
    let from = arguments.next().map(|it| it.parse().map_err(|_| usage)).transpose()?;
    draw(&moments(&recording)?, from.map(Duration::from_micros));
    Ok(())
}

/// How many requests are where.
#[derive(Default)]
struct Counts {
    waiting: usize,
    with_drive: usize,
    /// Since when the drive stands idle while requests wait.
    hole: Option<Instant>,
}

impl Counts {
    /// The length of the hole that this event ends.
    fn follow(&mut self, now: Instant, action: Action) -> Option<Duration> {
        match action {
            Action::Insert => self.waiting += 1,
            Action::Issue => {
                self.waiting = self.waiting.saturating_sub(1);
                self.with_drive += 1;
            }
            _ => self.with_drive = self.with_drive.saturating_sub(1),
        }
        let is_hole = self.with_drive == 0 && self.waiting > 0;
        match self.hole {
            None if is_hole => self.hole = Some(now),
            Some(since) if !is_hole => {
                self.hole = None;
                return Some(now.since(since));
            }
            _ => {}
        }
        None
    }
}

/// A line of the picture.
struct Moment {
    /// Since the first.
    at: Duration,
    name: char,
    pid: u32,
    waiting: usize,
    with_drive: usize,
    /// The hole that ends here.
    hole: Option<Duration>,
}

fn moments(path: &Path) -> Result<Vec<Moment>, Box<dyn Error>> {
    let (mut counts, mut first, mut moments) = (Counts::default(), None, Vec::new());
    for record in Recording::read(path, None)?.records {
        let name = match record.action {
            Action::Insert => 'I',
            Action::Issue => 'D',
            Action::Complete => 'C',
            _ => continue,
        };
        let start = *first.get_or_insert(record.time);
        let hole = counts.follow(record.time, record.action);
        let (at, pid) = (record.time.since(start), record.pid);
        let Counts { waiting, with_drive, .. } = counts;
        moments.push(Moment { at, name, pid, waiting, with_drive, hole });
    }
    Ok(moments)
}

fn draw(moments: &[Moment], from: Option<Duration>) {
    let longest = || (0..moments.len()).max_by_key(|index| moments[*index].hole);
    let first = match from {
        Some(from) => moments.partition_point(|moment| moment.at < from),
        None => longest().map_or(0, |index| index.saturating_sub(LINES * 2 / 3)),
    };
    for moment in moments.iter().skip(first).take(LINES) {
        let (q, d) = ("q".repeat(moment.waiting), "d".repeat(moment.with_drive));
        let hole = moment.hole.map(|hole| format!("hole of {hole}")).unwrap_or_default();
        let micros = moment.at.as_nanos() as f64 / 1e3;
        let line =
            format!("{micros:>12.1} {} {:>6}  {q:<24}{d:<24}{hole}", moment.name, moment.pid);
        println!("{}", line.trim_end());
    }
    let holes = moments.iter().filter_map(|moment| moment.hole);
    let (count, all) =
        holes.fold((0, Duration::ZERO), |(count, sum), hole| (count + 1, sum + hole));
    let time = moments.last().map_or(Duration::ZERO, |moment| moment.at);
    println!("{count} holes, {all} of {time}");
}
