//! Who the tasks of a recording are: their control groups, priorities and io_contexts.
//!
//! Events name only numbers of tasks. A manifest says which control groups there are and who was in
//! them, and what command made the load; the load generator of the recordings prints which number
//! each of its jobs had (`result.txt`). In its commands a job is `name=N` with `copies`, `cg` (its
//! control group), `prio=CLASS:LEVEL` and `ioc=1` (its copies share an io_context). A shell that
//! joins a group before it becomes a program is understood too, and so are prefixes such as
//! `ionice`.

mod shell;

use super::manifest::Manifest;
use block::{Ioprio, IoprioClass};
use shell::parts;
use std::collections::{BTreeMap, BTreeSet};
use trace::blktrace::{Action, Payload, Record};

/// What is known of tasks, by number.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// Priorities that were set.
    pub ioprio: BTreeMap<u32, Ioprio>,
    /// Indices of groups of the manifest.
    pub cgroup: BTreeMap<u32, usize>,
    /// Whose io_context a task uses, if it is not its own.
    pub shares: BTreeMap<u32, u32>,
    /// Tasks that share, and it is not known with whom.
    sharing: BTreeSet<u32>,
}

/// In whose queue CFQ or BFQ put the first request of each task, if it says so.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    arrived: Option<u32>,
    first: BTreeMap<u32, Option<u32>>,
}

impl Owners {
    /// What all of these tell.
    pub fn of(records: &[Record]) -> Owners {
        let mut owners = Owners::default();
        records.iter().for_each(|record| owners.take(record));
        owners
    }

    /// Looks at the next record.
    pub fn take(&mut self, record: &Record) {
        match &record.payload {
            _ if record.action == Action::Insert => self.arrived = Some(record.pid),
            Payload::Message(text) => {
                let text = String::from_utf8_lossy(text);
                let Some(owner) = owner(&text) else { return };
                if let Some(pid) = self.arrived.take() {
                    self.first.entry(pid).or_insert(owner.parse().ok());
                }
            }
            _ => {}
        }
    }
}

/// Who first used the queue that a request came to, as a message at its arrival says.
fn owner(text: &str) -> Option<&str> {
    let of_cfq = text.strip_prefix("cfq").filter(|text| text.ends_with("insert_request"));
    let of_bfq = text.strip_prefix("bfq").filter(|text| text.contains(" get_request "));
    of_cfq.or(of_bfq)?.split(['S', 'A']).next()
}

/// A job of a command.
#[derive(Debug, Default)]
struct Job {
    name: String,
    cgroup: Option<usize>,
    ioprio: Option<Ioprio>,
    shares: bool,
}

/// The priority that ext4 gives its journal's thread (ext4(5): journal_ioprio, 3 by default).
const JOURNAL: Ioprio = Ioprio { class: IoprioClass::BestEffort, level: 3 };

impl Tasks {
    /// What a manifest, the output of its command, and names of tasks tell.
    pub fn new(
        manifest: &Manifest,
        result: &str,
        names: &BTreeMap<u32, String>,
        owners: &Owners,
    ) -> Tasks {
        let (ioprio, shares) = (manifest.ioprio.clone(), manifest.shares.clone());
        let mut tasks = Tasks { ioprio, shares, ..Tasks::default() };
        for (index, group) in manifest.cgroups.iter().enumerate() {
            tasks.cgroup.extend(group.tasks.iter().map(|pid| (*pid, index)));
        }
        for (pid, _) in names.iter().filter(|(_, name)| name.starts_with("jbd2/")) {
            tasks.ioprio.entry(*pid).or_insert(JOURNAL);
        }
        let command = manifest.command.as_deref().unwrap_or_default();
        tasks.take_jobs(&jobs(command, manifest), result);
        tasks.take_shells(command, manifest, names);
        tasks.take_owners(owners);
        tasks
    }

    /// Jobs by name, `NAME` or `NAME.COPY`, with the number in the second column.
    fn take_jobs(&mut self, jobs: &[Job], result: &str) {
        for line in result.lines() {
            let mut words = line.split_whitespace();
            let (Some(label), Some(Ok(pid))) = (words.next(), words.next().map(str::parse)) else {
                continue;
            };
            let is_of = |job: &&Job| {
                let copy = label.strip_prefix(job.name.as_str());
                copy.is_some_and(|copy| copy.is_empty() || copy.starts_with('.'))
            };
            let Some(job) = jobs.iter().find(is_of) else { continue };
            self.cgroup.extend(job.cgroup.map(|group| (pid, group)));
            self.ioprio.extend(job.ioprio.map(|ioprio| (pid, ioprio)));
            if job.shares {
                self.sharing.insert(pid);
            }
        }
    }

    /// Whose io_contexts the sharing tasks use: a message names the first user of a queue.
    fn take_owners(&mut self, owners: &Owners) {
        for pid in std::mem::take(&mut self.sharing) {
            let owner = owners.first.get(&pid).copied().flatten();
            self.shares.extend(owner.filter(|it| *it != pid).map(|owner| (pid, owner)));
        }
    }

    /// `echo $$ > GROUP/cgroup.procs; exec PROGRAM`, `ionice -c 3 PROGRAM`: tasks of that name, in
    /// their order. Of one such program all tasks of its name are, for it may have made them.
    fn take_shells(&mut self, command: &str, manifest: &Manifest, names: &BTreeMap<u32, String>) {
        let parts = parts(command, manifest);
        let called = |name: &str| name == "sh" || parts.iter().any(|it| it.is_called(name));
        let mut pids: Vec<u32> = Vec::new();
        pids.extend(names.iter().filter(|(_, name)| called(name)).map(|(pid, _)| *pid));
        // A shell that is still called so when it is first seen counts only if it is missed.
        let missed = parts.len() > names.values().filter(|it| called(it) && *it != "sh").count();
        pids.retain(|pid| missed || names[pid] != "sh");
        for (index, pid) in pids.into_iter().enumerate() {
            let Some(part) = parts.get(if parts.len() == 1 { 0 } else { index }) else { break };
            self.cgroup.extend(part.cgroup.map(|group| (pid, group)));
            if let Some(ioprio) = part.ioprio {
                self.ioprio.entry(pid).or_insert(ioprio);
            }
        }
    }
}

/// Jobs of which only what a command printed could tell which tasks they are.
pub fn jobs_without_tasks(manifest: &Manifest) -> Vec<String> {
    let jobs = jobs(manifest.command.as_deref().unwrap_or_default(), manifest);
    let says = |job: &Job| job.cgroup.is_some() || job.ioprio.is_some() || job.shares;
    jobs.into_iter().filter(says).map(|job| job.name).collect()
}

fn jobs(command: &str, manifest: &Manifest) -> Vec<Job> {
    let words = command.split_whitespace().filter(|word| word.starts_with("name="));
    words.map(|word| job(word, manifest)).collect()
}

fn job(word: &str, manifest: &Manifest) -> Job {
    let mut job = Job::default();
    for (key, value) in word.split(',').filter_map(|part| part.split_once('=')) {
        match key {
            "name" => job.name = value.to_string(),
            "cg" => job.cgroup = manifest.cgroup(value),
            "ioc" => job.shares = value == "1",
            "prio" => {
                let numbers = value.split_once(':');
                let parsed = numbers.and_then(|(class, level)| {
                    let bits: u16 = class.parse().ok()?;
                    Some(Ioprio::from_bits(bits << 13 | level.parse::<u16>().ok()?))
                });
                job.ioprio = parsed;
            }
            _ => {}
        }
    }
    job
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Instant;

    #[test]
    fn a_job_tells_group_priority_and_io_context_of_its_copies() {
        let text = "cgroup /cg/blkio: weight=1000 leaf_weight=1000 procs=[1 2 ]\n\
                    cgroup /cg/blkio/A: weight=200 leaf_weight=500 procs=[9]\n\
                    command: lg name=a,cg=/cg/blkio/A,prio=2:7 name=p,copies=2,ioc=1\n";
        let manifest = Manifest::parse(text, "m").unwrap();
        assert_eq!(manifest.cgroups[1].weight, Some(200));
        let result = "#job pid rw\na 293 randread\np.0 317 read\np.1 318 read\nTOTAL 0.5 MB/s\n";
        let names = BTreeMap::from([(67, "jbd2/sda-8".to_string())]);
        let arrival = |pid| Record { pid, ..Record::event(Action::Insert, Instant::ZERO) };
        let said = Record::message(Instant::ZERO, "cfq316S  insert_request");
        let records = [arrival(317), said.clone(), arrival(318), said];
        let tasks = Tasks::new(&manifest, result, &names, &Owners::of(&records));
        assert_eq!(tasks.cgroup, BTreeMap::from([(1, 0), (2, 0), (9, 1), (293, 1)]));
        assert_eq!(tasks.ioprio[&293], Ioprio::new(IoprioClass::BestEffort, 7).unwrap());
        assert_eq!(tasks.ioprio[&67].level, 3);
        assert_eq!(tasks.shares, BTreeMap::from([(317, 316), (318, 316)]));
    }

    #[test]
    fn a_shell_joins_a_group_before_it_becomes_a_program() {
        let text = "cgroup /cg: weight=1000\ncgroup /cg/c1: weight=500\ncgroup /cg/c2: weight=500\n\
                    command: sh -c 'echo $$ > /cg/c1/cgroup.procs; exec dd if=a' & \
                    sh -c 'echo $$ > /cg/./cgroup.procs; exec dd if=b'\n";
        let manifest = Manifest::parse(text, "m").unwrap();
        let names = BTreeMap::from([(5, "dd".to_string()), (7, "dd".to_string())]);
        let tasks = Tasks::new(&manifest, "", &names, &Owners::default());
        assert_eq!(tasks.cgroup, BTreeMap::from([(5, 1), (7, 0)]));
    }

    #[test]
    fn the_program_behind_prefixes_keeps_group_and_priority() {
        let text = "cgroup /cg: weight=1000\ncgroup /cg/c1: weight=500\n\
                    command: sh -c 'echo $$ > /cg/c1/cgroup.procs; \
                    exec /bin/ionice -c 2 -n 0 prog'\n";
        let manifest = Manifest::parse(text, "m").unwrap();
        let names = BTreeMap::from([(5, "sh".to_string()), (7, "prog".to_string())]);
        let tasks = Tasks::new(&manifest, "", &names, &Owners::default());
        assert_eq!(tasks.cgroup, BTreeMap::from([(7, 1)]));
        assert_eq!(tasks.ioprio, BTreeMap::from([(7, Ioprio::from_bits(2 << 13))]));
    }

    #[test]
    fn of_one_program_all_tasks_are_and_of_several_each_is_its_own() {
        let names = [(5, "dd"), (6, "dd"), (7, "cat"), (8, "a-name-of-fifte")];
        let names = names.map(|(pid, name)| (pid, name.to_string())).into();
        let of = |command: &str| {
            let manifest = Manifest::parse(&format!("command: {command}\n"), "m").unwrap();
            let ioprio = Tasks::new(&manifest, "", &names, &Owners::default()).ioprio;
            ioprio.into_iter().map(|(pid, it)| (pid, it.to_bits() >> 13)).collect::<Vec<_>>()
        };
        assert_eq!(of("sudo ionice -c 3 dd if=a"), [(5, 3), (6, 3)]);
        assert_eq!(of("dd if=a & ionice -c1 dd if=b; wait"), [(6, 1)]);
        assert_eq!(of("ionice -c 1 /bin/sh -c \"time cat x | wc\""), [(7, 1)]);
        assert_eq!(of("ionice -c 3 ./a-name-of-fifteen-letters"), [(8, 3)]);
        assert_eq!(of("dd if=a 2>&1"), []);
    }
}
