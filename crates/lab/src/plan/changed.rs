//! Rows with a change, as somebody makes it on a machine that runs: whatever else was set stays.

use super::settings::{is_number, probe};
use super::{DROP_CACHES, Number, PlannedJob, Row};
use crate::error::Error;
use crate::experiment::Setting;
use crate::experiment::cgroup::{CgroupSpec, LIMITS};
use crate::experiment::filesystem;
use crate::kernels::Kernels;
use crate::scheduler_spec::SchedulerSpec;
use block::DEVICE_DEPTH;
use machine::{CacheRules, MachineSettings};
use programs::dd::Dd;
use programs::fio::{self, Fio};
use sched::Schedulers;
use std::sync::Arc;

/// A tunable or a setting that is not as it is by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deviation {
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: i64,
    /// What it would be, if that is known.
    pub default: Option<i64>,
}

/// Of more files than this nobody says that they are to be written before.
const MOST_WRITTEN: usize = 64;
/// The group of a job that is held to limits, where it has none of its own.
const OWN_GROUP: &str = "limited";
/// How many requests there are.
const REQUESTS: &str = "nr_requests";
/// Where a changed setting is given.
const PLACE: &str = "a change";

impl Row {
    /// The same with another scheduler of its kernel. What is set of the queue and of memory stays,
    /// unless this scheduler does not take it.
    pub(crate) fn with_scheduler(&self, name: &str) -> Result<Row, Error> {
        let (known, kernel) = (&Schedulers::default(), self.spec.named_kernel());
        let pinned = Some(&kernel);
        let spec = SchedulerSpec::parse_among(known, Kernels::Modelled, name, PLACE, pinned)?;
        let spec = spec.with_hz(self.spec.kernel.hz);
        let mut row = Row { spec, settings: Vec::new(), ..self.clone() };
        for it in self.settings.iter().filter(|it| is_number(&row.spec, &it.name)) {
            let one = std::slice::from_ref(it);
            if probe(&row.spec, row.model.name(), row.facts().clone(), one).is_ok() {
                row.settings.push(it.clone());
            }
        }
        row.read_back()
    }

    /// The same with these tunables and settings.
    pub(crate) fn with_values(&self, values: &[(&str, i64)]) -> Result<Row, Error> {
        let mut row = self.clone();
        for (name, value) in values {
            row.spec.check(name, *value, PLACE)?;
            row.write(name, *value);
        }
        row.read_back()
    }

    /// The same with a setting as it is by default.
    pub(crate) fn with_default(&self, name: &str) -> Result<Row, Error> {
        let mut row = self.clone();
        match self.default_of(name).filter(|_| name == REQUESTS) {
            Some(default) => row.write(name, default),
            None => row.settings.retain(|it| it.name != name),
        }
        row.read_back()
    }

    /// The same with the file system mounted with an option.
    pub(crate) fn with_mount_option(&self, option: &str) -> Result<Row, Error> {
        let mut row = self.clone();
        filesystem::set_options(&mut row.mount, option, PLACE)?;
        Ok(row)
    }

    /// The same with a job changed.
    pub(crate) fn with_job(&self, name: &str, change: impl Fn(&mut machine::Job)) -> Row {
        let mut row = self.clone();
        for it in row.jobs.iter_mut().filter(|it| it.job.name == name) {
            change(&mut it.job);
            it.clones.iter_mut().for_each(&change);
        }
        row
    }

    /// The same with the files of a job of fio written before as a whole, as far as it says how
    /// long they are; nothing if there is none.
    pub(crate) fn written_before(&self, name: &str) -> Option<Row> {
        let parts = self.jobs_called(name).flat_map(|it| it.program.parts());
        let fio = parts.filter_map(|it| it.downcast::<Fio>());
        let lines: Vec<PlannedJob> = fio.flat_map(Fio::jobs).flat_map(writing).collect();
        let mut row = self.clone();
        // What lets go of memory comes last.
        let drops = |it: &&PlannedJob| it.line.as_deref() == Some(DROP_CACHES);
        let last = row.preparation.iter().rev().take_while(drops).count();
        let at = row.preparation.len() - last;
        row.preparation.splice(at..at, lines.clone());
        (!lines.is_empty()).then_some(row)
    }

    /// The same without a job; nothing if nobody would be left who is waited for.
    pub(crate) fn without(&self, name: &str) -> Option<Row> {
        let mut row = self.clone();
        row.jobs.retain(|it| it.job.name != name);
        row.jobs.iter().any(|it| !it.job.background).then_some(row)
    }

    /// The same with another weight of a control group.
    pub(crate) fn with_weight(&self, group: &str, weight: u32) -> Row {
        self.with_group(group, |it| it.weight = Some(weight))
    }

    /// The same with another weight of a control group's own tasks.
    pub(crate) fn with_leaf_weight(&self, group: &str, weight: u32) -> Row {
        self.with_group(group, |it| it.leaf_weight = Some(weight))
    }

    /// The same with a control group that has no limits.
    pub(crate) fn unlimited(&self, group: &str) -> Row {
        self.with_group(group, |it| it.files.retain(|it| it.name != LIMITS))
    }

    /// The same with a job that is held to limits, in a control group of its own; nothing if that
    /// cannot be, or if its group has limits.
    pub(crate) fn with_limits(&self, name: &str, limits: &str) -> Option<Row> {
        let job = &self.jobs.iter().find(|it| it.job.name == name)?.job;
        let is_below =
            |path: &str| path.trim_matches('/').starts_with(job.cgroup.trim_matches('/'));
        let others = self.jobs.iter().filter(|it| it.job.name != name);
        let is_shared = others.into_iter().any(|it| is_below(&it.job.cgroup));
        let path = match is_shared || job.cgroup.trim_matches('/').is_empty() {
            true => format!("{}/{OWN_GROUP}", job.cgroup.trim_end_matches('/')),
            false => job.cgroup.clone(),
        };
        let moves = self.jobs.iter().any(|it| !it.job.moves.is_empty());
        let mut row = self.with_job(name, |it| it.cgroup.clone_from(&path));
        if !row.cgroups.iter().any(|it| it.is_at(&path)) {
            row.cgroups.push(CgroupSpec::new(&path, PLACE));
        }
        let group = row.cgroups.iter_mut().find(|it| it.is_at(&path))?;
        if moves || !row.blkio || row.spec.kernel.throttle.is_none() || !group.limits().is_none() {
            return None;
        }
        let (name, value, place) = (LIMITS.to_string(), limits.to_string(), PLACE.to_string());
        group.files.push(Setting { name, value, place });
        Some(row)
    }

    fn with_group(&self, path: &str, change: impl Fn(&mut CgroupSpec)) -> Row {
        let mut row = self.clone();
        row.cgroups.iter_mut().filter(|it| it.is_at(path)).for_each(change);
        row
    }

    /// The same with a disk that is given so many commands at a time from when it is there on: it
    /// keeps its requests and its tags.
    pub(crate) fn with_depth(&self, commands: u32) -> Result<Row, Error> {
        let mut row = self.clone();
        row.write(DEVICE_DEPTH, i64::from(commands));
        row.read_back()
    }

    /// Somebody writes a value. What is written last holds, but of `nr_requests` all are written:
    /// some schedulers take their limits from the number before.
    fn write(&mut self, name: &str, value: i64) {
        self.settings.retain(|it| it.name != name || name == REQUESTS);
        let (name, place) = (name.to_string(), PLACE.to_string());
        self.settings.push(Number { name, value, place });
    }

    /// What a tunable or a setting is by default.
    pub(crate) fn default_of(&self, name: &str) -> Option<i64> {
        let usual = probe(&self.spec, self.model.name(), self.facts().clone(), &[]).ok()?;
        let of_queue = usual.iter().find(|it| it.0 == name).map(|it| it.1);
        let of_machine = MachineSettings::of(&CacheRules::of(self.spec.kernel)).get(name);
        of_queue.or(of_machine.and_then(|it| i64::try_from(it).ok()))
    }

    /// What is set and is not as it is by default.
    pub(crate) fn deviations(&self) -> Vec<Deviation> {
        let mut all: Vec<Deviation> = Vec::new();
        // What is written last holds.
        for Number { name, value, .. } in self.settings.iter().rev() {
            if !all.iter().any(|it| it.name == *name) {
                let (name, value) = (name.clone(), *value);
                let default = self.default_of(&name);
                all.push(Deviation { name, value, default });
            }
        }
        all.retain(|it| it.default != Some(it.value));
        all
    }

    /// Whether it does the same as another row, seed by seed.
    pub(crate) fn does_the_same(&self, other: &Row) -> bool {
        let spec = |it: &Row| SchedulerSpec { tunables: Vec::new(), ..it.spec.clone() };
        let set = |it: &Row| -> Vec<(String, i64)> {
            let numbers = it.settings.iter().map(|it| (it.name.clone(), it.value));
            let mut numbers: Vec<_> = numbers.collect();
            // The order counts where a name is written twice.
            numbers.sort_by(|one, other| one.0.cmp(&other.0));
            numbers
        };
        let device = |it: &Row| (it.facts().queue_depth, it.virtio.is_some());
        let is_alike = |(one, other): (&PlannedJob, &PlannedJob)| {
            let key = |it: &machine::Job| {
                let place = (it.affinity.clone(), it.cgroup.clone());
                (it.name.clone(), it.ioprio, it.nice, place)
            };
            key(&one.job) == key(&other.job)
        };
        self.world == other.world
            && self.axes == other.axes
            && device(self) == device(other)
            && self.cgroups == other.cgroups
            && self.mount == other.mount
            && self.memory == other.memory
            // What a change writes before has no line.
            && self.preparation.len() == other.preparation.len()
            && self.jobs.len() == other.jobs.len()
            && self.jobs.iter().zip(&other.jobs).all(is_alike)
            && spec(self) == spec(other)
            && set(self) == set(other)
    }

    fn read_back(mut self) -> Result<Row, Error> {
        self.tunables = probe(&self.spec, self.model.name(), self.facts().clone(), &self.settings)?;
        Ok(self)
    }
}

/// What writes the files of a job, each as long as it gets.
fn writing(job: &fio::Job) -> Vec<PlannedJob> {
    let files = job.files_of_known_size();
    if files.len() > MOST_WRITTEN {
        return Vec::new();
    }
    let line = |(name, bytes): (&str, u64)| {
        let mib = bytes.div_ceil(1 << 20);
        let words = format!("if=/dev/zero of={name} bs=1M count={mib} conv=notrunc,fsync");
        let words: Vec<String> = words.split(' ').map(str::to_string).collect();
        Some(PlannedJob::new("dd", Arc::new(Dd::parse(&words).ok()?)))
    };
    files.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use crate::plan::Plan;

    fn rows(text: &str) -> Vec<Row> {
        let text = format!(
            "{text}\n[[job]]\nname = \"dd\"\nrun = \"dd if=/dev/sda of=/dev/null bs=4k count=1\""
        );
        Plan::new(Experiment::parse("test", &text).unwrap()).unwrap().rows
    }

    fn set(row: &Row) -> Vec<(&str, i64)> {
        row.settings.iter().map(|it| (it.name.as_str(), it.value)).collect()
    }

    #[test]
    fn files_written_before_make_another_row() {
        let text = r#"
            fs = "ext4"
            model = "hdd-7200-sata"
            schedulers = ["none"]
            [[job]]
            name = "log"
            run = "fio --name=log --filename=/mnt/log --rw=write --size=1m"
        "#;
        let row = Plan::new(Experiment::parse("test", text).unwrap()).unwrap().rows.remove(0);
        let before = row.written_before("log").unwrap();
        assert!(!before.does_the_same(&row) && before.does_the_same(&before.clone()));
    }

    #[test]
    fn another_scheduler_keeps_what_is_set_of_the_queue_and_of_memory() {
        let text = "schedulers = [\"cfq@4.19:slice_idle=8\"]\n\
                    settings = { read_ahead_kb = 64, dirty_bytes = 1048576 }\n\
                    [axes]\nquantum = [4]";
        let row = rows(text).remove(0);
        assert_eq!(row.settings.len(), 4);
        let other = row.with_scheduler("deadline").unwrap();
        assert_eq!(other.spec.label(), "deadline@4.19");
        let mut kept = set(&other);
        kept.sort();
        assert_eq!(kept, [("dirty_bytes", 1_048_576), ("read_ahead_kb", 64)]);
    }

    #[test]
    fn a_change_outdoes_what_was_set_for_all() {
        let row = rows("schedulers = [\"cfq@4.19\"]\nsettings = { slice_idle = 8 }").remove(0);
        let changed = row.with_values(&[("slice_idle", 0)]).unwrap();
        assert_eq!(set(&changed), [("slice_idle", 0)]);
        assert!(changed.tunables.contains(&("slice_idle", 0)));
        assert!(row.with_values(&[("slice_idle", -1)]).is_err());
    }

    #[test]
    fn a_disk_that_is_given_fewer_commands_keeps_its_requests() {
        let row = rows("schedulers = [\"mq-deadline@6.12\"]\nmodel = \"hdd-7200-sata\"").remove(0);
        let changed = row.with_depth(1).unwrap();
        assert_eq!(set(&changed), [(DEVICE_DEPTH, 1)]);
        assert_eq!(changed.tunables, row.tunables);
        assert!(!changed.does_the_same(&row) && row.with_depth(1_000).is_err());
    }

    #[test]
    fn who_is_limited_has_a_group_of_its_own() {
        let rows = |groups: &str| rows(&format!("schedulers = [\"none@6.12\"]\n{groups}"));
        let limit = |row: &Row| row.with_limits("dd", "rbps=1000000");
        let row = rows("").remove(0);
        let limited = limit(&row).unwrap();
        assert!(limited.jobs[0].job.cgroup == "/limited" && !limited.does_the_same(&row));
        assert_eq!(limited.cgroups[0].limits().read.bps, Some(1_000_000));
        // It has limits then, and somebody else has nothing of them.
        assert!(limit(&limited).is_none() && row.with_limits("cp", "rbps=1").is_none());
        assert!(limit(&rows("blkio = false").remove(0)).is_none());
    }

    #[test]
    fn a_value_that_is_outdone_is_not_written() {
        let text = "schedulers = [\"mq-deadline@6.12\"]\nsettings = { nr_requests = 32 }\n\
                    [axes]\nnr_requests = [256]";
        let row = rows(text).remove(0);
        assert_eq!(set(&row), [("nr_requests", 256)]);
        assert!(row.tunables.contains(&("async_depth", 64)));
    }

    #[test]
    fn requests_are_written_once_more_on_a_machine_that_runs() {
        let text = "schedulers = [\"mq-deadline@6.12\", \"mq-deadline@6.18\"]\n\
                    settings = { nr_requests = 32 }";
        let (name, after) = ("nr_requests", |row: &Row, it: Row| {
            let value = |name: &str| it.tunables.iter().find(|it| it.0 == name).unwrap().1;
            assert!(!it.does_the_same(row));
            (value("nr_requests"), value("async_depth"))
        });
        // 6.12 has its scheduler look at the number before.
        for (row, depths) in rows(text).iter().zip([[32, 32], [256, 64]]) {
            let more = row.with_values(&[(name, 256)]).unwrap();
            assert_eq!(after(row, more), (256, depths[0]));
            assert_eq!(after(row, row.with_default(name).unwrap()), (64, depths[1]));
        }
    }

    #[test]
    fn a_backport_of_one_scheduler_is_no_matter_of_another() {
        let row = rows("schedulers = [\"bfq@5.1+no-merge-on-flash\"]").remove(0);
        assert_eq!(row.with_scheduler("mq-deadline").unwrap().spec.label(), "mq-deadline@5.1");
    }

    #[test]
    fn what_is_set_is_told_with_its_default() {
        let text = "schedulers = [\"cfq@2.6.28:slice_idle=0\"]\n\
                    settings = { dirty_ratio = 40, quantum = 4, dirty_expire_centisecs = 3000 }";
        let all: Vec<_> = rows(text)[0].deviations();
        let all: Vec<_> = all.iter().map(|it| (it.name.as_str(), it.default)).collect();
        assert_eq!(all, [("slice_idle", Some(8)), ("dirty_ratio", Some(10))]);
    }

    #[test]
    fn rows_that_do_the_same_are_known() {
        let rows =
            rows("schedulers = [\"cfq@4.19\", \"deadline@4.19\", \"cfq@4.19:slice_idle=0\"]");
        assert!(rows[0].with_scheduler("deadline").unwrap().does_the_same(&rows[1]));
        assert!(rows[0].with_values(&[("slice_idle", 0)]).unwrap().does_the_same(&rows[2]));
        assert!(!rows[0].does_the_same(&rows[2]));
    }
}
