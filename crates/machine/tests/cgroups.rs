//! Control groups with writeback of their own: for whom what is written is submitted.

mod common;

use block::scheduler::Cgroup as Group;
use block::{Bio, CgroupId, Input, Op};
use common::{command, setup};
use machine::{Job, Mount, Observer, TaskInfo};
use std::collections::BTreeMap;

/// Keeps the names of tasks.
#[derive(Default)]
struct Names(BTreeMap<u32, String>);

impl Observer for Names {
    fn meet(&mut self, who: &TaskInfo) {
        self.0.insert(who.context.0, who.name.clone());
    }

    fn see(&mut self, _: &block::Event) {}
}

/// Writes of files, as bytes by task and group.
fn written(with_groups: bool, jobs: Vec<Job>) -> BTreeMap<(String, String), u64> {
    let mut setup = setup("6.12", "none");
    setup.jobs = jobs;
    setup.mount = Some(Mount::default());
    setup.cgroup_writeback = with_groups;
    setup.record_inputs = true;
    let mut names = Names::default();
    let outcome = machine::run(setup, &mut names).expect("a setup that runs");
    let (mut groups, mut bytes) = (BTreeMap::from([(CgroupId::ROOT, "/")]), BTreeMap::new());
    for input in &outcome.inputs {
        if let Input::Cgroup(id, group) = input {
            groups.insert(*id, &group.path);
        }
    }
    for input in &outcome.inputs {
        let Input::Submit(_, Bio { op: Op::Write, sectors, origin, .. }, _) = input else {
            continue;
        };
        let task = names.0[&origin.context.0].split(' ').next().unwrap_or_default().to_string();
        let group = groups[&origin.cgroup].to_string();
        *bytes.entry((task, group)).or_default() += u64::from(sectors.0) * 512;
    }
    bytes
}

fn in_group(line: &str, group: &str) -> Job {
    Job { cgroup: format!("/{group}"), ..command(line) }
}

fn at(job: Job, seconds: u64) -> Job {
    Job { start: base::Instant::from_nanos(seconds * 1_000_000_000), ..job }
}

fn of(bytes: &BTreeMap<(String, String), u64>, task: &str, group: &str) -> u64 {
    bytes.get(&(task.to_string(), group.to_string())).copied().unwrap_or(0)
}

const MIB: u64 = 1 << 20;

#[test]
fn what_a_group_has_dirtied_is_written_for_it_by_a_flusher_of_its_own() {
    let jobs = || {
        vec![
            in_group("dd if=/dev/zero of=/mnt/a bs=1M count=16", "a"),
            in_group("dd if=/dev/zero of=/mnt/b bs=1M count=8", "b"),
            at(command("sync"), 1),
        ]
    };
    let with = written(true, jobs());
    let flushers: Vec<&(String, String)> =
        with.keys().filter(|(task, _)| task.starts_with("kworker")).collect();
    let for_group = |group: &str| -> u64 {
        let of = |it: &&&(String, String)| it.1 == group;
        flushers.iter().filter(of).map(|key| with[*key]).sum()
    };
    assert_eq!((for_group("/a"), for_group("/b")), (16 * MIB, 8 * MIB));
    // Metadata of the file system are the root's.
    assert!(for_group("/") < MIB);
    let by: Vec<&str> = flushers.iter().map(|it| it.0.as_str()).collect();
    assert!(by.windows(2).all(|pair| pair[0] != pair[1]), "{by:?}");

    let without = written(false, jobs());
    let groups = without.keys().filter(|it| it.0.starts_with("kworker")).map(|it| &it.1);
    assert!(groups.into_iter().all(|group| group == "/"), "{without:?}");
}

#[test]
fn fsync_by_somebody_else_counts_for_the_group_that_dirtied_the_file() {
    let jobs = || {
        vec![
            in_group("dd if=/dev/zero of=/mnt/f bs=1M count=4", "a"),
            at(in_group("dd if=/dev/zero of=/mnt/f bs=4k count=1 conv=notrunc,fsync", "b"), 1),
        ]
    };
    let with = written(true, jobs());
    assert_eq!(of(&with, "dd", "/a"), 4 * MIB);
    let without = written(false, jobs());
    assert_eq!(of(&without, "dd", "/b"), 4 * MIB);
}

#[test]
fn durable_appends_are_the_groups_and_their_journal_the_roots() {
    // Rule cgroup-writeback-4, observed on 4.19: exactly 50 bios, 204800 bytes.
    let line = "dd if=/dev/zero of=/mnt/f bs=4k count=50 oflag=dsync";
    let with = written(true, vec![in_group(line, "a")]);
    assert_eq!(of(&with, "dd", "/a"), 204_800);
    assert!(of(&with, "jbd2/vda-8", "/") > 0);
    assert_eq!(of(&with, "jbd2/vda-8", "/a"), 0);
}

#[test]
fn a_file_that_another_group_goes_on_writing_goes_over_to_it() {
    let first = in_group("dd if=/dev/zero of=/mnt/f bs=1M count=1", "a");
    let append = |second| {
        let line = "dd if=/dev/zero of=/mnt/f bs=1M count=100 seek=1 conv=notrunc,fsync";
        at(in_group(line, "b"), second)
    };
    let jobs = vec![first, append(1), append(20), append(40), append(60), append(80)];
    let bytes = written(true, jobs);
    let sum = |group: &str| -> u64 {
        let of = |it: &(&(String, String), &u64)| it.0.1 == group;
        bytes.iter().filter(of).map(|(_, bytes)| bytes).sum()
    };
    assert!(sum("/a") > 0 && sum("/b") > sum("/a"), "{bytes:?}");
}

/// Writes of the disk itself by 4.19 and CFQ, as bytes by group, and what groups weigh there.
fn under_cfq(change: impl FnOnce(&mut machine::Setup)) -> (BTreeMap<String, u64>, Vec<Group>) {
    let mut setup = setup("4.19", "cfq");
    setup.record_inputs = true;
    change(&mut setup);
    let outcome = machine::run(setup, &mut Names::default()).expect("a setup that runs");
    let mut groups = vec![Group { path: "/".to_string(), ..Group::default() }];
    let mut bytes = BTreeMap::new();
    for input in &outcome.inputs {
        match input {
            Input::Cgroup(id, group) => {
                groups.resize(groups.len().max(id.0 as usize + 1), Group::default());
                groups[id.0 as usize] = group.clone();
            }
            Input::Submit(_, Bio { op: Op::Write, sectors, origin, .. }, _) => {
                let path = groups[origin.cgroup.0 as usize].path.clone();
                *bytes.entry(path).or_default() += u64::from(sectors.0) * 512;
            }
            _ => {}
        }
    }
    (bytes, groups)
}

const WRITER: &str = "dd if=/dev/zero of=/dev/sda bs=64k count=200 oflag=direct";

#[test]
fn the_tasks_of_a_job_move_at_their_time() {
    let to = |at: u64, path: &str| machine::Move {
        at: base::Instant::from_nanos(at * 1_000_000),
        cgroup: path.to_string(),
    };
    let (bytes, _) = under_cfq(|setup| {
        let mut job = in_group(WRITER, "a");
        job.moves = vec![to(2, "/b/c"), to(4, "/")];
        setup.jobs = vec![job];
    });
    assert_eq!(bytes.keys().collect::<Vec<_>>(), ["/", "/a", "/b/c"]);
    assert_eq!(bytes.values().sum::<u64>(), 200 * 65_536);
}

#[test]
fn without_a_controller_all_tasks_are_in_the_root() {
    let (bytes, groups) = under_cfq(|setup| {
        setup.blkio = false;
        setup.jobs = vec![in_group(WRITER, "a"), in_group(WRITER, "b")];
        setup.cgroups =
            vec![machine::ControlGroup { path: "/a".to_string(), ..Default::default() }];
    });
    assert_eq!(bytes, BTreeMap::from([("/".to_string(), 2 * 200 * 65_536)]));
    assert_eq!(groups.len(), 1);
}

#[test]
fn what_groups_weigh_is_told_to_the_scheduler() {
    let group = |path: &str, weight, leaf_weight| machine::ControlGroup {
        path: path.to_string(),
        weight,
        leaf_weight,
        ..machine::ControlGroup::default()
    };
    let weights = |version_2: bool| {
        let (_, groups) = under_cfq(|setup| {
            setup.jobs = vec![in_group(WRITER, "a/b")];
            setup.cgroups = vec![group("/a", Some(200), None), group("/", None, Some(700))];
            setup.cgroup_writeback = version_2;
        });
        groups.iter().map(|it| (it.path.clone(), it.weight, it.leaf_weight)).collect::<Vec<_>>()
    };
    let named = |path: &str, weight, leaf| (path.to_string(), weight, leaf);
    assert_eq!(
        weights(false),
        [named("/", None, Some(700)), named("/a", Some(200), None), named("/a/b", None, None)]
    );
    assert_eq!(
        weights(true),
        [
            named("/", None, Some(700)),
            named("/a", Some(200), Some(100)),
            named("/a/b", Some(100), Some(100))
        ]
    );
}
