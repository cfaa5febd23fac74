//! The lanes of a timeline: the scheduler, control groups with their tasks, the scheduler's queues
//! by what they hold, and the device.

use super::Recorded;
use crate::life::Life;
use base::Instant;
use block::{CgroupId, ContextId, Op};
use std::collections::BTreeMap;

/// More tasks than this do not have lanes of their own; those that ask least share one.
const MOST_TASKS: usize = 40;

/// What is shown in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// When the scheduler withholds requests.
    Scheduler,
    /// The requests of a control group.
    Group,
    /// The requests of a task, or of the tasks that share a lane.
    Task,
    /// Requests that the scheduler has.
    Queue,
    /// Requests that the device has.
    Device,
    /// Where on the disk they are.
    Position,
}

impl LaneKind {
    /// The name in pictures.
    pub const fn name(self) -> &'static str {
        match self {
            LaneKind::Scheduler => "scheduler",
            LaneKind::Group => "group",
            LaneKind::Task => "task",
            LaneKind::Queue => "queue",
            LaneKind::Device => "device",
            LaneKind::Position => "position",
        }
    }
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// What is written beside it.
    pub name: String,
    /// What is shown in it.
    pub kind: LaneKind,
    /// So many bars lie one above the other at most.
    pub rows: u8,
    /// And above those so many of system calls.
    pub calls: u8,
    /// The lane of the control group that it belongs to.
    pub group: Option<usize>,
}

impl Lane {
    fn new(name: &str, kind: LaneKind) -> Lane {
        Lane { name: name.to_string(), kind, rows: 1, calls: 0, group: None }
    }
}

/// Requests that the scheduler keeps apart, as far as every scheduler does.
const QUEUES: [&str; 4] =
    ["queue: reads", "queue: writes waited for", "queue: other writes", "queue: discards, flushes"];

/// All lanes, and whose they are.
pub(super) struct Lanes {
    pub lanes: Vec<Lane>,
    tasks: BTreeMap<ContextId, usize>,
    /// That of the tasks without a lane of their own, or else of none at all.
    others: usize,
    queues: [Option<usize>; QUEUES.len()],
    device: usize,
}

impl Lanes {
    /// The lanes of what was recorded.
    pub fn of(recorded: &Recorded) -> Lanes {
        let mut made = Lanes {
            lanes: vec![Lane::new("scheduler withholds", LaneKind::Scheduler)],
            tasks: BTreeMap::new(),
            others: 0,
            queues: [None; QUEUES.len()],
            device: 0,
        };
        made.add_tasks(recorded);
        for life in recorded.lives.iter().filter(|it| it.inserted.is_some()) {
            made.queues[queue_of(life)] = Some(0);
        }
        for queue in recorded.outline.iter().flat_map(|it| it.queues()) {
            made.queues[queue] = Some(0);
        }
        for (place, name) in made.queues.iter_mut().zip(QUEUES) {
            *place = place.map(|_| made.lanes.len());
            if place.is_some() {
                made.lanes.push(Lane::new(name, LaneKind::Queue));
            }
        }
        made.device = made.lanes.len();
        made.lanes.push(Lane::new("device", LaneKind::Device));
        made.lanes.push(Lane::new("position", LaneKind::Position));
        made
    }

    /// Control groups, each with its tasks: who asks first stands first.
    fn add_tasks(&mut self, recorded: &Recorded) {
        let (asking, rest) = asking(recorded);
        let group = |who: &ContextId| {
            let task = recorded.tasks.iter().find(|task| task.context == *who);
            task.map_or(CgroupId::ROOT, |task| task.cgroup)
        };
        let mut groups: Vec<CgroupId> = Vec::new();
        asking.iter().map(group).for_each(|it| {
            if !groups.contains(&it) {
                groups.push(it);
            }
        });
        for id in &groups {
            let over = (groups.len() > 1).then_some(self.lanes.len());
            if over.is_some() {
                self.lanes.push(Lane::new(&group_name(recorded, *id), LaneKind::Group));
            }
            for who in asking.iter().filter(|who| group(who) == *id) {
                self.tasks.insert(*who, self.lanes.len());
                let lane = Lane::new(&task_name(recorded, &asking, *who), LaneKind::Task);
                self.lanes.push(Lane { group: over, ..lane });
            }
        }
        if rest > 0 {
            self.others = self.lanes.len();
            self.lanes.push(Lane::new(&format!("{rest} other tasks"), LaneKind::Task));
        }
    }

    /// The lane of a task. Everybody who does something has one; others share one, or have that of
    /// the scheduler.
    pub fn of_task(&self, who: ContextId) -> usize {
        self.tasks.get(&who).copied().unwrap_or(self.others)
    }

    /// The lane of the queue that a request waits in.
    pub fn of_queue(&self, life: &Life) -> usize {
        self.queue(queue_of(life))
    }

    /// The lane of a queue.
    pub fn queue(&self, number: usize) -> usize {
        self.queues[number].unwrap_or(self.device)
    }

    /// The lane of the device.
    pub fn device(&self) -> usize {
        self.device
    }
}

/// Who has requests or calls or is on a critical path, in the order of their first; and how many
/// more there are.
fn asking(recorded: &Recorded) -> (Vec<ContextId>, usize) {
    let lives = recorded.lives.iter().map(|it| (it.context, it.queued));
    let calls = recorded.calls.iter().map(|it| (it.task, it.from));
    let arrows = recorded.arrows.iter().flat_map(|it| [(it.from, it.at), (it.to, it.at)]);
    let paths = recorded.paths.iter().flat_map(|it| &it.path).map(|it| (it.who, it.from));
    let mut counts: BTreeMap<ContextId, (usize, Instant)> = BTreeMap::new();
    for (who, at) in lives.chain(calls).chain(arrows).chain(paths) {
        let it = counts.entry(who).or_insert((0, at));
        *it = (it.0 + 1, it.1.min(at));
    }
    for (who, (count, first)) in recorded.outline.iter().flat_map(|it| it.asking()) {
        let it = counts.entry(who).or_insert((0, first));
        *it = (it.0 + count, it.1.min(first));
    }
    // Who is on a path that is shown by itself has a lane before all others.
    let is_shown = |who: ContextId| {
        recorded.paths.iter().any(|it| it.path.iter().any(|piece| piece.who == who))
    };
    let mut all: Vec<_> = counts.into_iter().collect();
    all.sort_by_cached_key(|(who, (count, _))| (!is_shown(*who), std::cmp::Reverse(*count)));
    let rest = all.len().saturating_sub(MOST_TASKS);
    all.truncate(MOST_TASKS);
    all.sort_by_key(|(_, (_, first))| *first);
    (all.into_iter().map(|(who, _)| who).collect(), rest)
}

fn group_name(recorded: &Recorded, id: CgroupId) -> String {
    let found = recorded.groups.iter().find(|(it, _)| *it == id).map(|(_, name)| name.clone());
    found.unwrap_or_else(
        || if id == CgroupId::ROOT { "/".into() } else { format!("group {}", id.0) },
    )
}

/// A name that no other task with requests has.
fn task_name(recorded: &Recorded, asking: &[ContextId], who: ContextId) -> String {
    // What the block layer asks on its own account, such as flushes, is in nobody's context.
    let Some(task) = recorded.tasks.iter().find(|task| task.context == who) else {
        return if who.0 == 0 { "block layer".into() } else { format!("task {}", who.0) };
    };
    let namesakes = recorded.tasks.iter().filter(|it| it.name == task.name);
    let is_alone = namesakes.filter(|it| asking.contains(&it.context)).count() == 1;
    if is_alone { task.name.clone() } else { format!("{} ({})", task.name, who.0) }
}

/// Which of [`QUEUES`] a request waits in.
pub(super) fn queue_of(life: &Life) -> usize {
    match life.op {
        _ if life.sectors.is_zero() => 3,
        Op::Discard => 3,
        Op::Read => 0,
        Op::Write if block::is_sync(life.op, life.flags) => 1,
        Op::Write => 2,
    }
}
