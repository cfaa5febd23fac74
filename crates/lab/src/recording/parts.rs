//! A recording part by part, so that its length costs no memory.
//!
//! A recording is read once to learn what holds of all of it: devices, names of tasks, whose
//! io_contexts they use, how many events are missing. If it has more records than a part, it is
//! read again, and there are never more of its records at hand than those of a part and those that
//! are shown again before it.

use super::manifest::Manifest;
use super::tasks::Owners;
use super::{CGROUPS, Losses, PRIORITIES, ROOT_CGROUP, Recording};
use super::{base_of, check_devices, read_cgroups, read_priorities};
use crate::error::Error;
use block::Ioprio;
use std::collections::BTreeMap;
use std::path::Path;
use trace::blktrace::{Action, DevT, Merge, Payload, Record, runs};

/// How long parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSize {
    /// So many records that were in no part before; twice as many if they are of one moment.
    /// Messages of runs of the queue are not counted, up to three beside each record.
    pub most: usize,
    /// So many of the part before are shown again, for what they tell of these.
    pub again: usize,
}

impl PartSize {
    /// All at once.
    pub const WHOLE: PartSize = PartSize { most: usize::MAX, again: 0 };
}

impl Default for PartSize {
    /// Memory for some 100 MB at most (measured: 400 bytes a record of CFQ).
    fn default() -> PartSize {
        PartSize { most: 200_000, again: 50_000 }
    }
}

/// A recording that is read part by part.
pub struct Parts {
    /// What is known of all of it, with the records of a part.
    recording: Recording,
    size: PartSize,
    device: Option<String>,
    /// The priorities of all insertions.
    priorities: Vec<Ioprio>,
    /// From which event on which control group holds.
    cgroups: BTreeMap<u32, u64>,
    /// Insertions that have left.
    gone: usize,
    /// What comes after this part; if it is read in one go, nothing is read again.
    rest: Option<Merge<trace::Source>>,
    /// The first record of the next part.
    ahead: Option<Record>,
    is_first: bool,
}

/// What a first reading tells.
#[derive(Default)]
pub(super) struct Survey {
    pub names: BTreeMap<u32, String>,
    pub owners: Owners,
    pub insertions: usize,
    pub losses: Losses,
    pub remarks: Vec<String>,
    devices: BTreeMap<DevT, u64>,
    /// All records, if there are not too many.
    records: Option<Vec<Record>>,
    /// How many of them count.
    counted: usize,
}

impl Survey {
    /// Reads all files of a recording.
    pub fn of(
        base: &Path,
        place: &str,
        device: Option<&str>,
        most: usize,
    ) -> Result<Survey, Error> {
        let mut all = trace::read_records(base)?;
        let mut survey = Survey { records: Some(Vec::new()), ..Survey::default() };
        for record in all.by_ref() {
            survey.take(record?, device, most);
        }
        check_devices(place, device, &survey.devices)?;
        if all.lost() > 0 {
            survey.remarks.push(format!("{} events were lost when it was recorded", all.lost()));
        }
        survey.losses.events = all.lost_by_cpu();
        for (name, torn) in all.torn() {
            survey.losses.torn += 1;
            survey.remarks.push(format!("{name} ends within a record at byte {}", torn.offset));
        }
        Ok(survey)
    }

    fn take(&mut self, record: Record, device: Option<&str>, most: usize) {
        if let Payload::Process(name) = &record.payload {
            let name = name.iter().copied().take_while(|byte| *byte != 0).collect();
            self.names.entry(record.pid).or_insert(String::from_utf8(name).unwrap_or_default());
        }
        if !tells(&record) {
            return;
        }
        if record.action != Action::NoteMessage {
            *self.devices.entry(record.device).or_insert(0) += 1;
        }
        if !is_of(&record, device) {
            return;
        }
        self.owners.take(&record);
        self.insertions += usize::from(record.action == Action::Insert);
        match &mut self.records {
            Some(records)
                if (self.counted < most || !counts(&record))
                    && records.len() < most.saturating_mul(WITH_MESSAGES) =>
            {
                self.counted += usize::from(counts(&record));
                records.push(record);
            }
            records => *records = None,
        }
    }
}

/// A part never has more than so many times the records that count (assumed: the kernel runs its
/// queue some times a request).
const WITH_MESSAGES: usize = 4;

/// Whether a record counts where a part ends.
fn counts(record: &Record) -> bool {
    !matches!(&record.payload, Payload::Message(text) if runs::tells(text))
}

/// Whether a record is one of those that are looked at.
fn tells(record: &Record) -> bool {
    let is_note = record.action.is_note() && record.action != Action::NoteMessage;
    !is_note && record.action != Action::Remap
}

fn is_of(record: &Record, device: Option<&str>) -> bool {
    device.is_none_or(|name| record.device.to_string() == name)
}

impl Parts {
    /// Of the recording that a path means, as with [`Recording::read`].
    pub fn open(path: &Path, device: Option<&str>, size: PartSize) -> Result<Parts, Error> {
        let base = base_of(path)?;
        let name = path.display().to_string();
        let mut survey = Survey::of(&base, &name, device, size.most)?;
        let records = survey.records.take();
        let rest = match records {
            Some(_) => None,
            None => Some(trace::read_records(&base)?),
        };
        let directory = base.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let priorities = read_priorities(&directory.join(PRIORITIES), survey.insertions)?;
        let cgroups = read_cgroups(&directory.join(CGROUPS))?;
        let mut recording = Recording::about(name, &base, directory, survey)?;
        recording.records = records.unwrap_or_default();
        let device = device.map(String::from);
        let (gone, ahead, is_first) = (0, None, true);
        let parts =
            Parts { recording, size, device, priorities, cgroups, gone, rest, ahead, is_first };
        Ok(parts)
    }

    /// What the recording says of its machine.
    pub fn manifest(&self) -> &Manifest {
        &self.recording.manifest
    }

    /// The next part, and how many of its records were in the one before.
    pub fn next_part(&mut self) -> Result<Option<(&Recording, usize)>, Error> {
        let is_first = std::mem::take(&mut self.is_first);
        let again = if is_first { 0 } else { self.forget() };
        self.fill(again)?;
        let is_over = self.recording.records.len() == again;
        self.complete(again);
        Ok((!is_over).then_some((&self.recording, again)))
    }

    /// Adds as many new records as a part has, and those of the same moment as the last: what
    /// happened when is how parts are told apart.
    fn fill(&mut self, again: usize) -> Result<(), Error> {
        let Some(rest) = &mut self.rest else { return Ok(()) };
        let records = &mut self.recording.records;
        records.extend(self.ahead.take());
        let mut count = records[again..].iter().filter(|it| counts(it)).count();
        for record in rest.by_ref() {
            let record = record?;
            if !tells(&record) || !is_of(&record, self.device.as_deref()) {
                continue;
            }
            let is_later = records.last().is_some_and(|last| last.time < record.time);
            let all = records.len() - again;
            let is_full = count >= self.size.most || all / WITH_MESSAGES >= self.size.most;
            let must_end = count.max(all / WITH_MESSAGES) / 2 >= self.size.most;
            if is_full && (is_later || must_end) {
                self.ahead = Some(record);
                break;
            }
            count += usize::from(counts(&record));
            records.push(record);
        }
        Ok(())
    }

    /// All of it, if it has not been read in parts.
    pub(super) fn whole(mut self) -> Result<Recording, Error> {
        self.next_part()?;
        Ok(self.recording)
    }

    /// Lets go of all records but those that are shown again; how many these are.
    fn forget(&mut self) -> usize {
        let records = &mut self.recording.records;
        let most = if self.rest.is_some() { self.size.again } else { 0 };
        let mut again = 0;
        let is_shown = |record: &Record| {
            again += usize::from(counts(record));
            again <= most
        };
        let again = records.iter().rev().map(is_shown).take_while(|shown| *shown).count();
        let leaving = records.drain(..records.len() - again);
        self.gone += leaving.filter(|it| it.action == Action::Insert).count();
        again
    }

    /// Adds to new records what stands in files beside.
    fn complete(&mut self, again: usize) {
        let records = &mut self.recording.records;
        if !self.cgroups.is_empty() {
            for record in &mut records[again..] {
                let group = self.cgroups.range(..=record.sequence).next_back();
                record.cgroup = group.map(|it| *it.1).filter(|group| *group != ROOT_CGROUP);
            }
        }
        let insertions = records.iter().filter(|it| it.action == Action::Insert).count();
        let known = self.priorities.iter().skip(self.gone).take(insertions);
        self.recording.priorities = known.copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Instant;
    use linux::Directory;
    use trace::blktrace::Layout;

    /// Insertions, of which every third is of another device and every event of another group.
    fn write(directory: &Path, count: u32) {
        let mut bytes = Vec::new();
        let (mut priorities, mut cgroups) = (String::new(), String::new());
        for number in 0..count {
            let at = Instant::from_nanos(u64::from(number) * 1_000);
            let device = DevT::new(8, if number % 3 == 2 { 16 } else { 0 });
            let event = Record::event(Action::Insert, at);
            let record = Record { sequence: number, device, pid: number, ..event };
            Layout::V7_LITTLE.encode(&record, &mut bytes);
            cgroups.push_str(&format!("{number} {}\n", number + 2));
            if number % 3 != 2 {
                priorities.push_str(&format!("{}\n", 16_384 + number % 8));
            }
        }
        std::fs::write(directory.join("sda.blktrace.0"), bytes).unwrap();
        std::fs::write(directory.join(PRIORITIES), priorities).unwrap();
        std::fs::write(directory.join(CGROUPS), cgroups).unwrap();
    }

    #[test]
    fn every_record_comes_once_and_few_are_at_hand() {
        let directory = Directory::make().unwrap();
        write(directory.path(), 300);
        let whole = Recording::read(directory.path(), Some("8,0")).unwrap();
        assert_eq!((whole.records.len(), whole.priorities.len()), (200, 200));
        let size = PartSize { most: 30, again: 7 };
        let mut parts = Parts::open(directory.path(), Some("8,0"), size).unwrap();
        let mut seen = 0;
        while let Some((part, again)) = parts.next_part().unwrap() {
            assert_eq!(again, if seen == 0 { 0 } else { 7 });
            assert!(part.records.len() <= 37);
            let from = seen - again;
            seen = from + part.records.len();
            assert_eq!(part.records[..], whole.records[from..seen]);
            assert_eq!(part.priorities[..], whole.priorities[from..seen]);
        }
        assert_eq!(seen, 200);
    }

    #[test]
    fn what_fits_is_read_once() {
        let directory = Directory::make().unwrap();
        write(directory.path(), 30);
        let size = PartSize { most: 20, again: 7 };
        let mut parts = Parts::open(directory.path(), Some("8,0"), size).unwrap();
        assert!(parts.rest.is_none());
        assert_eq!(parts.next_part().unwrap().unwrap().0.records.len(), 20);
        assert!(parts.next_part().unwrap().is_none());
    }
}
