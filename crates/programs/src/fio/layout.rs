//! Where the files of a workload lie on the device, and which range of them each job uses.
//!
//! A raw device has no files: each name is given one extent, in the order in which jobs first name
//! it, from the start of the device. Jobs that use one name share its extent, and its size is the
//! largest that any of them asks for. Files of a file system lie where it puts them: offsets in
//! them begin at zero, and what is there already counts.

use std::collections::{BTreeMap, BTreeSet};

use base::{Bytes, Rng, Sector};

use super::error::ParseError;
use super::job::{FileKind, Job, Share};
use super::pattern::Range;

/// Extents begin at multiples of this, as partitions and file systems do. Assumed.
const ALIGNMENT: u64 = 1 << 20;

/// Where the files of a workload lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    device: Bytes,
    extents: BTreeMap<String, Range>,
    /// What each job needs of files of a file system, by the number of the job, and what will be
    /// there before it begins.
    needed: BTreeMap<(u32, usize), FileSize>,
    /// Jobs that look how large their files are when they start.
    late: BTreeSet<u32>,
}

/// When fio looks how large files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Before any job starts.
    Early,
    /// The process of a job, when it starts (`create_serialize=0`).
    AtStart,
}

/// The size of a file of a file system, for one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSize {
    /// What is there before the job makes its files.
    pub before: u64,
    /// What the job wants to be there; zero if it does not say.
    pub wanted: u64,
}

/// What a job uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// The range of each of its files, in bytes of the device.
    pub files: Vec<Range>,
    /// The files themselves.
    pub whole: Vec<Range>,
    /// How much it transfers in one round.
    pub amount: Bytes,
}

/// What jobs ask of one file.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    size: u64,
    fills: bool,
}

impl Layout {
    /// Lays the files of `jobs` out on a device of `device` bytes. Sizes that a job leaves to
    /// chance are drawn from `rng`.
    pub fn new(
        jobs: &[Job],
        device: Bytes,
        existing: &dyn Fn(&str) -> Option<u64>,
        rng: &mut Rng,
        looks: Looks,
    ) -> Result<Self, ParseError> {
        let mut names: Vec<&str> = Vec::new();
        let mut demands: BTreeMap<&str, Demand> = BTreeMap::new();
        for job in jobs.iter().filter(|job| job.engine.does_block_io()) {
            for file in &job.files.list {
                if file.kind != FileKind::LaidOut {
                    continue;
                }
                let demand = demands.entry(&file.name).or_insert_with(|| {
                    names.push(&file.name);
                    Demand::default()
                });
                demand.fills |= job.extent.fill_device;
                demand.size = demand.size.max(needed(job, rng));
            }
        }
        let mut layout = Layout {
            device,
            extents: BTreeMap::new(),
            needed: BTreeMap::new(),
            late: BTreeSet::new(),
        };
        layout.place(jobs, &names, &demands)?;
        layout.measure(jobs, existing, rng, looks)?;
        Ok(layout)
    }

    /// The sizes of files of a file system.
    fn measure(
        &mut self,
        jobs: &[Job],
        existing: &dyn Fn(&str) -> Option<u64>,
        rng: &mut Rng,
        looks: Looks,
    ) -> Result<(), ParseError> {
        let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
        for job in jobs {
            for (index, file) in job.files.list.iter().enumerate() {
                if file.kind != FileKind::File {
                    continue;
                }
                let before = match sizes.get(file.name.as_str()) {
                    Some(size) => *size,
                    None => existing(&file.name).unwrap_or(0),
                };
                let appends = job.creation.append && job.writes();
                let own = match job.extent.fill_device {
                    true => self.device.0,
                    false => needed_of_file(job, before, rng),
                };
                let wanted = if appends { before + own } else { own };
                if wanted.max(before) == 0 {
                    if looks == Looks::Early && !job.creation.is_serial {
                        self.late.insert(job.number);
                        continue;
                    }
                    return Err(unknown_size(&file.name, job, jobs));
                }
                let after = if job.extent.fill_device { before } else { wanted.max(before) };
                sizes.insert(&file.name, after);
                self.needed.insert((job.number, index), FileSize { before, wanted });
            }
        }
        Ok(())
    }

    /// The sizes of the files of a job, where they are files of a file system.
    pub fn file_size(&self, job: &Job, index: usize) -> Option<FileSize> {
        self.needed.get(&(job.number, index)).copied()
    }

    /// Whether a job looks when it starts how large its files are.
    pub fn looks_at_start(&self, job: &Job) -> bool {
        self.late.contains(&job.number)
    }

    /// The extent of a file that was laid out.
    pub fn extent(&self, name: &str) -> Option<Range> {
        self.extents.get(name).copied()
    }

    fn place(
        &mut self,
        jobs: &[Job],
        names: &[&str],
        demands: &BTreeMap<&str, Demand>,
    ) -> Result<(), ParseError> {
        let user = |name: &str| {
            let uses = |job: &&Job| job.files.list.iter().any(|file| file.name == name);
            jobs.iter().find(uses).expect("a file has a job that uses it")
        };
        let filled = |name: &&&str| demands[**name].fills;
        let fixed: u64 = names
            .iter()
            .filter(|name| !filled(name))
            .fold(0, |sum, name| sum.saturating_add(aligned(demands[*name].size)));
        let left =
            self.device.0.saturating_sub(fixed) / names.iter().filter(filled).count().max(1) as u64;
        let mut next = 0_u64;
        for name in names {
            let demand = demands[name];
            let size = if demand.fills { left / ALIGNMENT * ALIGNMENT } else { demand.size };
            if size == 0 {
                return Err(user(name)
                    .error(format!(
                        "the file '{name}' does not exist, and no job says how large it is"
                    ))
                    .accepts("size or filesize, or a file under /dev for the whole device"));
            }
            let end = next.saturating_add(size);
            if end > self.device.0 {
                return Err(user(name).error(format!(
                    "the files do not fit on the device: '{name}' ends at {end} of {} bytes",
                    self.device.0
                )));
            }
            self.extents.insert((*name).to_owned(), Range { start: next, end });
            next = end.div_ceil(ALIGNMENT) * ALIGNMENT;
        }
        Ok(())
    }

    /// The ranges of a job's files and the amount it transfers.
    pub fn ranges(&self, job: &Job) -> Result<Ranges, ParseError> {
        if job.cpu.is_some() {
            let files = vec![Range { start: 0, end: 0 }; job.files.list.len()];
            return Ok(Ranges { whole: files.clone(), files, amount: Bytes(0) });
        }
        let whole = |index: usize| {
            let file = &job.files.list[index];
            match file.kind {
                FileKind::File => {
                    let FileSize { before, wanted } = self.needed[&(job.number, index)];
                    let appends = job.creation.append && job.writes();
                    let start = if appends { before } else { 0 };
                    Range { start, end: wanted.max(before) }
                }
                FileKind::Device => Range { start: 0, end: self.device.0 },
                FileKind::LaidOut if job.engine.does_block_io() => {
                    self.extents.get(&file.name).copied().expect("laid out with the workload")
                }
                // Nothing is read or written, so nothing has to lie anywhere.
                FileKind::LaidOut | FileKind::Sink => {
                    Range { start: 0, end: share_of_size(job, self.device.0).unwrap_or(0) }
                }
            }
        };
        let (mut files, mut all) = (Vec::new(), Vec::new());
        for index in 0..job.files.list.len() {
            let file = whole(index);
            let range = used(job, file)?;
            files.push(range);
            all.push(file);
        }
        let sum = files.iter().fold(0_u64, |sum, range| sum.saturating_add(range.size()));
        let amount = match (job.extent.io_size, job.extent.size, job.files.size) {
            (Some(Share::Bytes(bytes)), ..) => bytes,
            (Some(Share::Percent(percent)), ..) => percent_of(sum, percent),
            // With a size for each file, size is only the amount to transfer.
            (None, Some(Share::Bytes(bytes)), Some(_)) => bytes.min(sum),
            _ => sum,
        };
        Ok(Ranges { files, whole: all, amount: Bytes(amount) })
    }
}

/// The size that a file must have for the job: its share of the size, behind the job's offset.
fn needed(job: &Job, rng: &mut Rng) -> u64 {
    if let Some((least, most)) = job.files.size {
        // A file that is smaller than a block could not be used.
        let sectors = rng.between(least.0 / Sector::SIZE, most.0 / Sector::SIZE);
        return sectors * Sector::SIZE;
    }
    let count = job.files.list.len() as u64;
    let Some(Share::Bytes(size)) = job.extent.size else { return 0 };
    let size = (size / count).next_multiple_of(Sector::SIZE);
    size.saturating_add(offset(job, size))
}

/// The same for a file of a file system, which need not be whole sectors. Observed: what was there
/// before counts where a job gives no size.
fn needed_of_file(job: &Job, before: u64, rng: &mut Rng) -> u64 {
    if let Some((least, most)) = job.files.size {
        return rng.between(least.0, most.0);
    }
    let count = job.files.list.len() as u64;
    match job.extent.size {
        Some(Share::Bytes(size)) => (size / count).saturating_add(offset(job, size / count)),
        _ => before,
    }
}

/// Why it is not known how large a file is.
fn unknown_size(name: &str, job: &Job, jobs: &[Job]) -> ParseError {
    let fills =
        |it: &&Job| it.extent.fill_device && it.files.list.iter().any(|file| file.name == name);
    let fills = jobs.iter().find(fills);
    let Some(other) = fills else {
        let message = format!("the file '{name}' does not exist, and no job says how large it is");
        return job.error(message).accepts("size or filesize");
    };
    job.error(format!(
        "the file '{name}' does not exist yet; how much job '{}' fills is not known before",
        other.name
    ))
    .accepts("size or filesize, or create_serialize=0 to look when the job starts")
}

/// The range that the job uses of `file`.
fn used(job: &Job, file: Range) -> Result<Range, ParseError> {
    let from = offset(job, file.size());
    let size = match share_of_size(job, file.size()) {
        Some(size) if !job.extent.fill_device && job.files.size.is_none() => size,
        _ => file.size(),
    };
    let end = from.saturating_add(size).min(file.size());
    let end = if job.has_files() { end } else { end / Sector::SIZE * Sector::SIZE };
    let least = job
        .pattern
        .sizes
        .iter()
        .zip(super::job::Direction::ALL)
        .filter(|(_, direction)| job.pattern.directions.include(*direction))
        .map(|(sizes, _)| sizes.least().0)
        .max()
        .unwrap_or(0);
    if from.saturating_add(least) > end {
        return Err(job.error(format!(
            "from offset {from} there is no room for a block of {least} bytes before {end}"
        )));
    }
    Ok(Range { start: file.start + from, end: file.start + end })
}

/// What `size` leaves for each file of which the job could use `whole` bytes.
fn share_of_size(job: &Job, whole: u64) -> Option<u64> {
    let count = job.files.list.len() as u64;
    match job.extent.size? {
        // Too little to divide means the whole of each.
        Share::Bytes(bytes) => Some(bytes / count).filter(|share| *share > 0),
        Share::Percent(percent) => Some(percent_of(whole, percent)),
    }
}

/// The offset of a job in a file of `whole` bytes.
fn offset(job: &Job, whole: u64) -> u64 {
    let align = match job.extent.offset_align.0 {
        0 => job.pattern.sizes.iter().map(|sizes| sizes.least().0).min().unwrap_or(1),
        align => align,
    };
    let resolve = |share: Share| match share {
        Share::Bytes(bytes) => bytes,
        Share::Percent(percent) => {
            percent_of(whole, percent).checked_next_multiple_of(align.max(1)).unwrap_or(whole)
        }
    };
    let increment = resolve(job.extent.offset_increment).saturating_mul(u64::from(job.clone));
    let offset = resolve(job.extent.offset).saturating_add(increment);
    offset / Sector::SIZE * Sector::SIZE
}

fn percent_of(bytes: u64, percent: u8) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}

fn aligned(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse_job_file;
    use super::*;
    use crate::Surroundings;

    const MIB: u64 = 1 << 20;
    const DEVICE: Bytes = Bytes(1 << 30);

    /// Start and end of each range of a job in MiB, and the amount in MiB.
    type InMib = (Vec<(u64, u64)>, u64);

    fn ranges(text: &str) -> Result<Vec<InMib>, ParseError> {
        let context = Surroundings {
            page_size: 4096,
            ncpus: 2,
            mb_memory: 1024,
            habits: &guest::Profile::uml().habits,
            mount: None,
            environment: &|_| None,
            read_file: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        };
        let jobs = parse_job_file("job.fio", &text.replace('|', "\n"), &context)?;
        let nothing = |_: &str| None;
        let layout =
            Layout::new(&jobs, DEVICE, &nothing, &mut Rng::stream(1, "layout"), Looks::Early)?;
        let mut all = Vec::new();
        for job in &jobs {
            let ranges = layout.ranges(job)?;
            let files = ranges.files.iter().map(|range| (range.start / MIB, range.end / MIB));
            all.push((files.collect(), ranges.amount.0 / MIB));
        }
        Ok(all)
    }

    #[test]
    fn a_device_is_used_as_far_as_the_job_says() {
        let one =
            |options: &str| ranges(&format!("[a]|filename=/dev/sda|{options}")).unwrap()[0].clone();
        assert_eq!(one(""), (vec![(0, 1024)], 1024));
        assert_eq!(one("size=100m"), (vec![(0, 100)], 100));
        assert_eq!(one("offset=24m"), (vec![(24, 1024)], 1000));
        assert_eq!(one("offset=1000m|size=100m"), (vec![(1000, 1024)], 24));
        assert_eq!(one("size=25%|io_size=10%"), (vec![(0, 256)], 25));
        assert_eq!(one("size=20m|io_size=40m"), (vec![(0, 20)], 40));
        assert_eq!(one("offset=50%|bs=1m"), (vec![(512, 1024)], 512));
    }

    #[test]
    fn files_lie_one_behind_the_other_and_are_shared_by_name() {
        let text = "[global]|size=64m|[a]|numjobs=2|[b]|filename=x|[c]|filename=x|size=32m";
        let expected = [
            (vec![(0, 64)], 64),
            (vec![(64, 128)], 64),
            (vec![(128, 192)], 64),
            (vec![(128, 160)], 32),
        ];
        assert_eq!(ranges(text).unwrap(), expected);
    }

    #[test]
    fn the_size_is_divided_between_files() {
        let all = ranges("[a]|size=64m|nrfiles=4").unwrap();
        assert_eq!(all, [(vec![(0, 16), (16, 32), (32, 48), (48, 64)], 64)]);
        let all = ranges("[a]|filesize=8m|nrfiles=2|size=100m").unwrap();
        assert_eq!(all, [(vec![(0, 8), (8, 16)], 16)]);
    }

    #[test]
    fn clones_move_on_by_the_increment() {
        let text = "[a]|filename=/dev/sda|size=10m|offset=5m|offset_increment=100m|numjobs=2";
        assert_eq!(ranges(text).unwrap(), [(vec![(5, 15)], 10), (vec![(105, 115)], 10)]);
        let text = "[a]|filename=f|size=10m|offset_increment=10m|numjobs=2";
        assert_eq!(ranges(text).unwrap(), [(vec![(0, 10)], 10), (vec![(10, 20)], 10)]);
    }

    #[test]
    fn a_job_may_fill_the_device_and_another_read_what_it_wrote() {
        let text = "[w]|filename=f|rw=write|fill_device=1|[r]|stonewall|filename=f|rw=read";
        assert_eq!(ranges(text).unwrap(), [(vec![(0, 1024)], 1024), (vec![(0, 1024)], 1024)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, message) in [
            ("[a]", "does not exist, and no job says how large it is"),
            ("[a]|size=2g", "do not fit on the device"),
            ("[a]|filename=/dev/sda|offset=2g", "no room for a block"),
            ("[a]|filename=/dev/sda|bs=1m|size=512k", "no room for a block"),
            ("[a]|size=8000p", "do not fit on the device"),
        ] {
            let error = ranges(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn a_job_without_block_io_needs_no_room() {
        let all = ranges("[a]|ioengine=null|size=100g").unwrap();
        assert_eq!(all, [(vec![(0, 102_400)], 102_400)]);
        assert_eq!(ranges("[a]|ioengine=cpuio|cpuload=5").unwrap(), [(vec![(0, 0)], 0)]);
    }
}
