//! What an experiment says of control groups: their weights, and who moves between them.
//!
//! Version 1 of control groups, which kernels with CFQ are used with, has two weights for each
//! group, `blkio.weight` against its siblings and `blkio.leaf_weight` of its own tasks against its
//! children, and both for single disks. Version 2 has only the first, `io.weight`, of another
//! range.

use super::document::{Document, Text, Value};
use super::job::parse_weight;
use super::keys;
use super::setting::{self, Setting, is_disk};
use crate::error::Error;
use crate::quantity::{self, ACCEPTED_DURATION};
use crate::scheduler_spec::SchedulerSpec;
use base::{Duration, Instant};
use block::Kernel;
use block::throttle::IoMax;
use std::ops::RangeInclusive;
use toml::de::DeTable;

/// The file of limits, in version 2; in version 1 there is one for each of its keys.
pub const LIMITS: &str = "io.max";
const EXAMPLE: &str = "[[cgroup]] with path = \"…\" and perhaps weight = 100";
const EXAMPLE_MOVE: &str = "move = [{ at = \"5s\", to = \"GROUP\" }, …]";
/// The disk of an experiment, as jobs call it.
const DISK: &str = "sda";
/// What `blkio.weight` and its relatives take (rule cfq-settings-3).
const VERSION_1: RangeInclusive<u32> = 10..=1000;
/// The most that `io.bfq.weight` takes (seen on 6.12).
const OWN_MOST: u32 = 1000;

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupSpec {
    /// Its path.
    pub path: String,
    /// What it weighs against its siblings.
    pub weight: Option<u32>,
    /// What its tasks weigh against its children.
    pub leaf_weight: Option<u32>,
    /// `weight` on the disk, if that is another.
    pub weight_device: Option<u32>,
    /// `leaf_weight` on the disk, if that is another.
    pub leaf_weight_device: Option<u32>,
    /// What is written to its files.
    pub files: Vec<Setting>,
    /// Where it is described.
    pub place: String,
}

/// The tasks of a job go to another control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveSpec {
    /// When, as starts of jobs are counted.
    pub at: Duration,
    /// The path of the group.
    pub to: String,
}

impl CgroupSpec {
    /// A group of which only the path is known.
    pub fn new(path: &str, place: &str) -> CgroupSpec {
        CgroupSpec {
            path: path.to_string(),
            weight: None,
            leaf_weight: None,
            weight_device: None,
            leaf_weight_device: None,
            files: Vec::new(),
            place: place.to_string(),
        }
    }

    /// As the machine takes it: a weight for a disk goes before that for all.
    pub fn on_the_disk(&self) -> machine::ControlGroup {
        machine::ControlGroup {
            path: absolute(&self.path),
            weight: self.weight_device.or(self.weight),
            leaf_weight: self.leaf_weight_device.or(self.leaf_weight),
            limits: self.limits(),
        }
    }

    /// What its tasks may do at most.
    ///
    /// # Panics
    /// If [`check_limits`] refuses what is said of that.
    pub fn limits(&self) -> IoMax {
        let asked = self.files.iter().find(|it| it.name == LIMITS);
        asked.map_or(IoMax::default(), |it| parse_limits(&it.value).expect("it was checked"))
    }

    /// Whether it is the group that a path means.
    pub fn is_at(&self, path: &str) -> bool {
        absolute(&self.path) == absolute(path)
    }

    /// Whether anything but `weight` is set.
    pub fn needs_version_1(&self) -> bool {
        self.leaf_weight.or(self.leaf_weight_device).is_some()
    }

    /// Whether a scheduler that honours weights takes these.
    fn check(&self, spec: &SchedulerSpec, is_version_2: bool) -> Result<(), Error> {
        let (path, place, label) = (absolute(&self.path), &self.place, spec.label());
        let is_own = spec.has_own_weights();
        if let Some(weight) = self.weight.filter(|it| is_own && *it > OWN_MOST) {
            let problem = format!("weight {weight} of {path} under {label}");
            let accepted = format!("1 to {OWN_MOST}, as {}.weight takes", spec.name);
            return Err(Error::bad(place, problem, accepted));
        }
        if is_version_2 {
            if self.needs_version_1() {
                let problem = format!("leaf_weight of {path} with cgroup_writeback = true");
                let accepted = "weight: version 2 of control groups has no other";
                return Err(Error::bad(place, problem, accepted));
            }
            return Ok(());
        }
        let shared = self.weight.filter(|_| !is_own);
        let given = [shared, self.leaf_weight, self.weight_device, self.leaf_weight_device];
        match given.into_iter().flatten().find(|weight| !VERSION_1.contains(weight)) {
            Some(weight) => {
                let (least, most) = (VERSION_1.start(), VERSION_1.end());
                let problem = format!("weight {weight} of {path} under {label}");
                let accepted = format!(
                    "{least} to {most}, as blkio.weight takes; 1 to 10000, as io.weight does, with \
                     cgroup_writeback = true"
                );
                Err(Error::bad(place, problem, accepted))
            }
            None => Ok(()),
        }
    }
}

/// Refuses weights that a scheduler would honour but its kernel does not take.
pub fn check(groups: &[CgroupSpec], spec: &SchedulerSpec, is_version_2: bool) -> Result<(), Error> {
    if !spec.honours_weights() {
        return Ok(());
    }
    groups.iter().try_for_each(|group| group.check(spec, is_version_2))
}

/// Limits, as `io.max` has them; the disk may be named before them.
fn parse_limits(value: &str) -> Result<IoMax, (String, String)> {
    let value = value.trim();
    let (first, rest) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    IoMax::parse(if is_disk(first) { rest } else { value })
}

/// Refuses limits that are none, or that the kernel does not have where they are asked for.
pub fn check_limits(
    groups: &[CgroupSpec],
    kernel: &Kernel,
    is_version_2: bool,
    blkio: bool,
) -> Result<(), Error> {
    for (group, file) in groups.iter().flat_map(|it| it.files.iter().map(move |file| (it, file))) {
        if file.name != LIMITS {
            continue;
        }
        let refuse =
            |problem: String, accepted: &str| Err(Error::bad(&file.place, problem, accepted));
        if let Err((problem, accepted)) = parse_limits(&file.value) {
            return refuse(problem, &accepted);
        }
        let path = absolute(&group.path);
        if kernel.throttle.is_none() {
            let problem = format!("{LIMITS} of {path} with kernel {}", kernel.version);
            return refuse(problem, "kernels from 4.10 on");
        }
        if !blkio {
            return refuse(format!("{LIMITS} of {path} with blkio = false"), "blkio = true");
        }
        if is_version_2 && path == "/" {
            let accepted = "a group below it, or cgroup_writeback = false for version 1 of control \
                            groups";
            return refuse(format!("{LIMITS} of the root"), accepted);
        }
    }
    Ok(())
}

/// A path from the root.
pub fn absolute(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}

/// Refuses what is no path of a group: each part of it is the name of a directory.
pub fn check_path(path: &str, place: &str) -> Result<(), Error> {
    let is_name = |part: &str| {
        let is_other = matches!(part, "" | "." | "..") || part.starts_with("cgroup.");
        !is_other && part.trim() == part && !part.chars().any(char::is_control)
    };
    let within = path.trim_matches('/');
    if within.is_empty() && !path.starts_with("//") || within.split('/').all(is_name) {
        return Ok(());
    }
    let accepted = "names of directories with / between them, such as db or batch/backup; / for \
                    the root";
    Err(Error::bad(place, format!("control group \"{path}\""), accepted))
}

/// Understands `blkio`: whether there is a controller of block I/O.
pub fn parse_blkio(text: &str, place: &str) -> Result<bool, Error> {
    let refuse = || Error::bad(place, format!("blkio \"{text}\""), "true, false");
    text.parse().map_err(|_| refuse())
}

/// The groups of an experiment, each described once.
pub(crate) fn read(document: &Document<'_>, root: &DeTable<'_>) -> Result<Vec<CgroupSpec>, Error> {
    let mut groups: Vec<CgroupSpec> = Vec::new();
    for value in document.list(root, "cgroup")? {
        let group = read_group(document, value)?;
        if groups.iter().any(|other| absolute(&other.path) == absolute(&group.path)) {
            let problem = format!("a second [[cgroup]] {}", absolute(&group.path));
            return Err(Error::bad(group.place, problem, "one for each path"));
        }
        groups.push(group);
    }
    Ok(groups)
}

fn read_group(document: &Document<'_>, value: &Value<'_>) -> Result<CgroupSpec, Error> {
    let Some(table) = value.get_ref().as_table() else {
        return Err(document.wrong("cgroup", value, EXAMPLE));
    };
    keys::check(&keys::GROUP, "a control group", document, table)?;
    let Some(path) = document.text(table, "path")? else {
        return Err(document.bad(&value.span(), "a control group without path", EXAMPLE));
    };
    check_path(&path.text, &path.place)?;
    let mut group = CgroupSpec::new(&path.text, &path.place);
    keys::read(&keys::GROUP, document, table, &mut group)?;
    group.weight_device = read_device(document, table, "weight_device")?;
    group.leaf_weight_device = read_device(document, table, "leaf_weight_device")?;
    group.files = setting::read_files(document, table)?;
    Ok(group)
}

/// `{ sda = 300 }`: there is one disk.
fn read_device(
    document: &Document<'_>,
    table: &DeTable<'_>,
    key: &str,
) -> Result<Option<u32>, Error> {
    let Some(disks) = document.table(table, key)? else { return Ok(None) };
    document.check_keys(disks, key, &[DISK])?;
    match document.whole(disks, DISK)? {
        Some(Text { text, place }) => parse_weight(&text, &place).map(Some),
        None => Ok(None),
    }
}

/// When and where to the tasks of a job move, in order of time.
pub(crate) fn read_moves(
    document: &Document<'_>,
    job: &DeTable<'_>,
    start: Duration,
) -> Result<Vec<MoveSpec>, Error> {
    let mut moves = Vec::new();
    for value in document.list(job, "move")? {
        let Some(table) = value.get_ref().as_table() else {
            return Err(document.wrong("move", value, EXAMPLE_MOVE));
        };
        document.check_keys(table, "a move", &["at", "to"])?;
        let must = |key: &str| {
            let missing =
                || document.bad(&value.span(), format!("a move without {key}"), EXAMPLE_MOVE);
            document.text(table, key)?.ok_or_else(missing)
        };
        let (Text { text, place }, to) = (must("at")?, must("to")?);
        check_path(&to.text, &to.place)?;
        let refuse = || Error::bad(&place, format!("at \"{text}\""), ACCEPTED_DURATION);
        let at = quantity::duration(&text).ok_or_else(refuse)?;
        if at < start {
            let problem = format!("a move at {text}, before the job starts");
            return Err(Error::bad(place, problem, "times from the start of the job on"));
        }
        moves.push(MoveSpec { at, to: to.text });
    }
    moves.sort_by_key(|it| it.at);
    Ok(moves)
}

impl MoveSpec {
    /// As the machine takes it.
    pub fn planned(&self) -> machine::Move {
        machine::Move { at: Instant::ZERO + self.at, cgroup: absolute(&self.to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::plan::Plan;

    fn parse(text: &str) -> Result<Experiment, Error> {
        let job =
            "[[job]]\nname = \"a\"\nrun = \"dd if=/dev/sda of=/dev/null iflag=direct count=1\"\n";
        Experiment::parse("x.toml", &format!("schedulers = [\"cfq\"]\nseeds = 1\n{text}\n{job}"))
    }

    fn refusal(text: &str) -> String {
        parse(text).and_then(Plan::new).unwrap_err().to_string()
    }

    #[test]
    fn weights_are_those_of_the_disk_where_it_has_its_own() {
        let text = "[[cgroup]]\npath = \"a\"\nweight = 200\nleaf_weight = 300\n\
                    weight_device = { sda = 400 }";
        let experiment = parse(text).unwrap();
        let group = experiment.cgroups[0].on_the_disk();
        assert_eq!(
            (group.path.as_str(), group.weight, group.leaf_weight),
            ("/a", Some(400), Some(300))
        );
    }

    #[test]
    fn weights_that_the_kernel_does_not_take_are_refused() {
        let of = |rest: &str| refusal(&format!("[[cgroup]]\npath = \"a\"\n{rest}"));
        assert_eq!(
            of("weight = 2000"),
            "x.toml:4: weight 2000 of /a under cfq@4.19; accepted: 10 to 1000, as blkio.weight \
             takes; 1 to 10000, as io.weight does, with cgroup_writeback = true"
        );
        assert!(of("weight_device = { sdb = 400 }").contains("has no key \"sdb\""));
        assert!(of("leaf_weight = 0").contains("1 to 10000"));
        assert!(of("[[cgroup]]\npath = \"/a\"").contains("a second [[cgroup]] /a"));
        let v2 = "fs = \"ext4\"\ncgroup_writeback = true\n[[cgroup]]\npath = \"a\"\n";
        assert!(refusal(&format!("{v2}leaf_weight = 5")).contains("version 2"));
        assert!(parse(&format!("{v2}weight = 5")).and_then(Plan::new).is_ok());
    }

    #[test]
    fn a_job_and_its_group_may_not_contradict_each_other() {
        let group = "[[cgroup]]\npath = \"a\"\nweight = 200\n[[job]]\nname = \"b\"\n\
                     run = \"dd if=/dev/sda of=/dev/null iflag=direct count=1\"\n\
                     cgroup = \"a\"\nweight = 300\n";
        assert!(refusal(group).contains("weight 300 of /a, which has 200"));
    }

    #[test]
    fn moves_come_after_the_start_and_in_order() {
        let job = |rest: &str| {
            format!(
                "[[job]]\nname = \"b\"\n\
                 run = \"dd if=/dev/sda of=/dev/null iflag=direct count=1\"\n\
                 start = \"1s\"\nmove = [{rest}]\n"
            )
        };
        let text = job("{ at = \"3s\", to = \"c\" }, { at = \"2s\", to = \"/d\" }");
        let experiment = parse(&text).unwrap();
        let to: Vec<&str> = experiment.jobs[0].moves.iter().map(|it| it.to.as_str()).collect();
        assert_eq!(to, ["/d", "c"]);
        let early = refusal(&job("{ at = \"500ms\", to = \"c\" }"));
        assert!(early.contains("before the job starts"), "{early}");
        assert!(refusal(&job("{ at = \"2s\" }")).contains("a move without to"));
        assert!(refusal(&job("{ at = \"x\", to = \"c\" }")).contains("at \"x\""));
    }

    #[test]
    fn clones_have_files_and_groups_of_their_own() {
        let job = |clones: &str| {
            format!(
                "[[job]]\nname = \"b\"\ncgroup = \"of{{n}}/{{clone}}\"\nclones = {clones}\n\
                 run = \"dd if=/dev/sda of=/dev/null skip={{clone}} iflag=direct count=1\"\n\
                 [axes]\nn = [1, 3]\n"
            )
        };
        let file = |clones: &str| {
            let text = format!("schedulers = [\"cfq\"]\nseeds = 1\n{}", job(clones));
            Experiment::parse("x.toml", &text).and_then(Plan::new)
        };
        let plan = file("\"{n}\"").unwrap();
        let groups = |row: usize| -> Vec<&str> {
            plan.rows[row].programs().map(|(_, job)| job.cgroup.as_str()).collect()
        };
        assert_eq!(groups(0), ["/of1/1"]);
        assert_eq!(groups(1), ["/of3/1", "/of3/2", "/of3/3"]);
        assert!(file("0").unwrap_err().to_string().contains("1 to 1000"));
    }

    #[test]
    fn the_world_linux_says_what_it_cannot() {
        let linux = |text: &str| {
            let mut experiment = parse(text).unwrap();
            experiment.worlds = vec![crate::world::World::Linux];
            experiment.schedulers = vec![("none".to_string(), "x".to_string())];
            Plan::new(experiment).unwrap_err().to_string()
        };
        let said = linux("[[cgroup]]\npath = \"a\"\nleaf_weight = 5");
        assert!(said.contains("leaf_weight of /a in the world linux"), "{said}");
        let job = "[[job]]\nname = \"b\"\n\
                   run = \"dd if=/dev/sda of=/dev/null iflag=direct count=1\"\n\
                   move = [{ at = \"1s\", to = \"c\" }]";
        assert!(linux(job).contains("a job that moves in the world linux"));
    }
}
