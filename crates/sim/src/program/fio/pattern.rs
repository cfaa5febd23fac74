//! Where the next request of a job goes: direction, file, offset, length.
//!
//! A [`Walk`] is the pattern of one job over the ranges of its files. It knows nothing of time and
//! of the device; the same seed walks the same way, so what a job wrote can be found again by
//! walking once more.
//!
//! Divergence: with `zonemode=zbd` each process has write pointers of its own; in fio the
//! processes that write to a device share them.

mod file_walk;

use base::Rng;

use super::job::{Direction, Directions, Job, Service};
use super::random::Sampler;
use file_walk::FileWalk;

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
    service: Service,
    popularity: Option<Sampler>,
    files: Vec<FileWalk>,
    /// The file of the last request, and how many more go there.
    file: usize,
    left: u32,
    /// The block that was trimmed and is to be written next.
    trimmed: Option<Place>,
    mix: Rng,
    choice: Rng,
}

impl Walk {
    /// The walk of `job` over the ranges of its files; `stream` gives a named stream of random
    /// numbers that is the job's own.
    pub fn new(job: &Job, ranges: &[Range], stream: &dyn Fn(&str) -> Rng) -> Self {
        assert_eq!(ranges.len(), job.files.list.len(), "a range for each file");
        let walk = |(index, range): (usize, &Range)| {
            let mut rng = stream(&format!("offset/{index}"));
            let sizes = stream(&format!("size/{index}"));
            FileWalk::new(&job.pattern, job.extent.zones, *range, sizes, &mut rng)
        };
        let mut choice = stream("file");
        let popularity = match &job.files.service {
            Service::Skewed(distribution) => {
                let count = ranges.len() as u64;
                Some(Sampler::new(distribution, count, base::Bytes(1), &mut choice))
            }
            _ => None,
        };
        Walk {
            directions: job.pattern.directions,
            service: job.files.service.clone(),
            popularity,
            files: ranges.iter().enumerate().map(walk).collect(),
            file: ranges.len() - 1,
            left: 0,
            trimmed: None,
            mix: stream("direction"),
            choice,
        }
    }

    /// Draws the direction of the next request.
    pub fn direction(&mut self) -> Direction {
        match self.directions {
            Directions::Only(direction) => direction,
            Directions::ReadWrite(reads) => {
                if self.mix.below(100) < u64::from(reads) {
                    Direction::Read
                } else {
                    Direction::Write
                }
            }
            Directions::TrimWrite if self.trimmed.is_some() => Direction::Write,
            Directions::TrimWrite => Direction::Trim,
        }
    }

    /// The next request in `direction`; `None` when everything has been visited.
    pub fn next(&mut self, direction: Direction) -> Option<Place> {
        if direction == Direction::Write
            && let Some(trimmed) = self.trimmed.take()
        {
            return Some(trimmed);
        }
        loop {
            let file = self.choose_file()?;
            let Some((offset, length)) = self.files[file].next(direction) else {
                self.files[file].done = true;
                self.left = 0;
                continue;
            };
            let place = Place { file, offset, length };
            if self.directions == Directions::TrimWrite {
                self.trimmed = Some(place);
            }
            return Some(place);
        }
    }

    /// Forgets what was visited: the next round of `loops` or of a time-based job.
    pub fn restart(&mut self) {
        self.files.iter_mut().for_each(FileWalk::restart);
        self.trimmed = None;
        self.left = 0;
        self.file = self.files.len() - 1;
    }

    /// The file for the next request, among those that are not done.
    fn choose_file(&mut self) -> Option<usize> {
        let count = self.files.len();
        if self.left > 0 && !self.files[self.file].done {
            self.left -= 1;
            return Some(self.file);
        }
        let (start, more) = match self.service {
            Service::RoundRobin(run) => ((self.file + 1) % count, run - 1),
            Service::Random(run) => (self.choice.below(count as u64) as usize, run - 1),
            Service::Sequential if self.files[self.file].done => ((self.file + 1) % count, 0),
            // Before the first request the last file is the current one.
            Service::Sequential if self.files[self.file].is_fresh() => (0, 0),
            Service::Sequential => (self.file, 0),
            Service::Skewed(_) => {
                let sampler = self.popularity.as_ref().expect("built with the walk");
                (sampler.draw(&mut self.choice) as usize, 0)
            }
        };
        let open = (0..count).map(|step| (start + step) % count);
        self.file = { open }.find(|file| !self.files[*file].done)?;
        self.left = more;
        Some(self.file)
    }
}

#[cfg(test)]
mod tests;
