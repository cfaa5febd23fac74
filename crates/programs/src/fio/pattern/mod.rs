//! Where the next request of a job goes: direction, file, offset, length.
//!
//! A [`Walk`] is the pattern of one job over the ranges of its files. It knows nothing of time and
//! of the device. It draws what fio 3.33 draws from the same seed, in the same order, and so goes
//! the same way; and what a job wrote can be found again by walking once more.
//!
//! A walk goes in rounds: one ends where fio finds no place for a request in any file, and the
//! next one begins with nothing visited. The random numbers go on.
//!
//! Divergence: with `zonemode` the draws are those of fio, but not what becomes of them; and with
//! `zonemode=zbd` each process has write pointers of its own, while in fio the processes that
//! write to a device share them.

mod file_walk;
mod listing;
mod mixture;

use super::job::{Direction, Directions, Job, Service};
use super::layout::Ranges;
use super::random::{Purpose, Seeds, Skewed, Tausworthe};
use file_walk::{Draws, FileWalk};
use mixture::Mixture;

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub start: u64,
    /// The byte behind the last one.
    pub end: u64,
}

impl Range {
    /// How many bytes there are.
    pub fn size(self) -> u64 {
        self.end - self.start
    }
}

/// A request without its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The position of the file in the job's list.
    pub file: usize,
    /// The first byte, as the range of the file counts.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// The pattern of one job.
#[derive(Clone, Debug)]
pub struct Walk {
    directions: Directions,
    mixture: Mixture,
    service: Service,
    popularity: Option<Skewed>,
    files: Vec<FileWalk>,
    /// The file of the last request, and how many more go there.
    file: usize,
    left: u32,
    /// The block that was trimmed and is to be written next.
    trimmed: Option<Place>,
    choice: Tausworthe,
    draws: Draws,
}

/// A file is chosen by a skewed distribution over so many numbers for each file.
const NUMBERS_PER_FILE: u64 = 1 << 10;

impl Walk {
    /// The walk of `job` over the ranges of its files.
    pub fn new(job: &Job, ranges: &Ranges, seeds: &Seeds) -> Self {
        assert_eq!(ranges.files.len(), job.files.list.len(), "a range for each file");
        let pattern = &job.pattern;
        let count = ranges.files.len() as u64;
        let popularity = match &job.files.service {
            Service::Skewed(distribution) => {
                let seed = seeds.of(Purpose::File) as u32;
                Skewed::new(distribution, count * NUMBERS_PER_FILE, seed, false)
            }
            _ => None,
        };
        let walk = |(range, whole): (&Range, &Range)| {
            FileWalk::new(pattern, job.extent.zones, *range, *whole, count == 1, seeds)
        };
        Walk {
            directions: pattern.directions,
            mixture: Mixture::new(pattern.directions, seeds),
            service: job.files.service.clone(),
            popularity,
            files: ranges.files.iter().zip(&ranges.whole).map(walk).collect(),
            file: ranges.files.len() - 1,
            left: 0,
            trimmed: None,
            choice: seeds.stream(Purpose::File, pattern.long_draws),
            draws: Draws::new(pattern, seeds),
        }
    }

    /// Draws the direction of the next request.
    pub fn direction(&mut self) -> Direction {
        match self.directions {
            Directions::Only(direction) => direction,
            Directions::ReadWrite(_) => self.mixture.draw(),
            Directions::TrimWrite if self.trimmed.is_some() => Direction::Write,
            Directions::TrimWrite => Direction::Trim,
        }
    }

    /// The next request, in `direction` if a place is found at once: for each file that has none
    /// left, a direction is drawn again. `None` when there is none in any file; then a new round
    /// begins.
    pub fn next(&mut self, direction: Direction) -> Option<(Direction, Place)> {
        if direction == Direction::Write
            && let Some(trimmed) = self.trimmed.take()
        {
            return Some((direction, trimmed));
        }
        let mut wanted = Some(direction);
        loop {
            let Some(file) = self.choose_file() else {
                self.restart();
                return None;
            };
            let direction = wanted.take().unwrap_or_else(|| self.direction());
            let Some((offset, length)) = self.files[file].next(direction, &mut self.draws) else {
                self.end(file);
                continue;
            };
            self.mixture.count(direction);
            let place = Place { file, offset, length };
            if self.directions == Directions::TrimWrite {
                self.trimmed = Some(place);
            }
            return Some((direction, place));
        }
    }

    /// The file that a request without a place goes to, such as a sync. Observed: it takes its turn
    /// among the others.
    pub fn file_for_sync(&mut self) -> usize {
        if self.files.len() == 1 { 0 } else { self.choose_file().unwrap_or(self.file) }
    }

    /// There is no place left in a file.
    fn end(&mut self, file: usize) {
        self.left = 0;
        let file = &mut self.files[file];
        // Files that are not drawn evenly begin anew at once.
        match self.service {
            Service::Skewed(_) if !file.is_fresh() => file.restart(),
            _ => file.done = true,
        }
    }

    /// Forgets what was visited.
    fn restart(&mut self) {
        self.files.iter_mut().for_each(FileWalk::restart);
        self.mixture.restart();
        self.trimmed = None;
        self.left = 0;
    }

    /// The file for the next request, among those that are not done.
    fn choose_file(&mut self) -> Option<usize> {
        let count = self.files.len();
        if self.left > 0 && !self.files[self.file].done {
            self.left -= 1;
            return Some(self.file);
        }
        if self.files.iter().all(|file| file.done) {
            return None;
        }
        (self.file, self.left) = match self.service {
            Service::RoundRobin(run) => (self.open_from(self.file + 1), run - 1),
            Service::Random(run) => (self.draw_open(), run - 1),
            Service::Skewed(_) => (self.draw_open(), 0),
            // Before the first request the last file is the current one.
            Service::Sequential if self.files[self.file].is_fresh() => (self.open_from(0), 0),
            Service::Sequential => (self.open_from(self.file), 0),
        };
        debug_assert!(self.file < count);
        Some(self.file)
    }

    /// The first file from this one on that is not done.
    fn open_from(&self, start: usize) -> usize {
        let count = self.files.len();
        let open = (0..count).map(|step| (start + step) % count);
        { open }.find(|file| !self.files[*file].done).expect("a file that is not done")
    }

    /// Draws files until one is not done.
    fn draw_open(&mut self) -> usize {
        let count = self.files.len() as u64;
        loop {
            let drawn = match &mut self.popularity {
                Some(popularity) => popularity.draw() / NUMBERS_PER_FILE,
                None => self.choice.below(count),
            };
            if !self.files[drawn as usize].done {
                return drawn as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests;
