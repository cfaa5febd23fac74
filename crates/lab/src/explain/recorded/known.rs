//! What is known of a recording besides the times of its requests.

use super::calls::Requests;
use super::turns::Pair;
use crate::explain::case::seconds;
use crate::metrics::CallKind;
use crate::recording::Tasks;
use crate::recording::manifest::Manifest;
use crate::scheduler_spec::SchedulerSpec;
use base::{Duration, Instant};
use block::{ContextId, Facts, IoprioClass};
use insight::Confidence;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// So often somebody has to be seen waiting before it is taken for a habit.
const LEAST: u64 = 5;
/// And for this part of the time, in percent.
const MOSTLY: u64 = 75;

/// How two tasks belong together that wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// They are of different programs.
    OfStrangers,
    /// They are of one program.
    OfOneProgram,
}

/// What is known of a recording.
#[derive(Debug)]
pub struct Known {
    /// The scheduler's name, if it is known.
    pub scheduler: Option<String>,
    /// It is known by its messages alone.
    pub by_messages: bool,
    /// The same as one of ours.
    pub spec: Option<SchedulerSpec>,
    /// What to call the disk in commands.
    pub disk: String,
    /// What the kernel was told of the device.
    pub facts: Facts,
    /// How many commands it takes was stated.
    pub states_depth: bool,
    /// The first event.
    pub begin: Instant,
    /// From there to the last one.
    pub elapsed: Duration,
    /// Commands that the device had while it had any, in thousandths.
    pub mean_depth: u64,
    /// Flushes of the device's cache.
    pub flushes: u64,
    /// Tasks of the idle class.
    pub idle_class: BTreeSet<String>,
    /// Requests for which nobody waits, as it seems.
    pub background: BTreeSet<(String, CallKind)>,
    manifest: Manifest,
    moved: BTreeMap<(String, CallKind), u64>,
    guesses: BTreeMap<(String, CallKind), [Duration; 3]>,
    pairs: BTreeMap<(String, String), (Pair, Turns)>,
}

/// What tasks are called: by their names, with their numbers where several have one name.
#[derive(Debug, Default)]
pub struct Labels {
    names: BTreeMap<u32, String>,
    several: BTreeSet<String>,
}

impl Labels {
    /// Of these tasks.
    pub(super) fn new(
        names: &BTreeMap<u32, String>,
        tasks: impl Iterator<Item = ContextId>,
    ) -> Labels {
        let tasks: BTreeSet<u32> = tasks.map(|it| it.0).collect();
        let (mut known, mut several) = (BTreeSet::new(), BTreeSet::new());
        for name in tasks.iter().filter_map(|task| names.get(task)) {
            if !known.insert(name) {
                several.insert(name.clone());
            }
        }
        Labels { names: names.clone(), several }
    }

    /// The tasks that have names.
    pub fn tasks(&self) -> impl Iterator<Item = ContextId> + '_ {
        self.names.keys().map(|task| ContextId(*task))
    }

    /// What a task is called.
    pub fn of(&self, task: ContextId) -> String {
        match self.names.get(&task.0) {
            Some(name) if self.several.contains(name) => format!("{name} ({})", task.0),
            Some(name) if !name.is_empty() => name.clone(),
            _ => format!("task {}", task.0),
        }
    }

    fn is_one_program(&self, one: ContextId, other: ContextId) -> bool {
        let name = |task: ContextId| self.names.get(&task.0);
        name(one).is_some() && name(one) == name(other)
    }
}

impl Known {
    /// What stands beside a recording, or is said in it.
    pub(super) fn new(manifest: &Manifest, speaks: Option<&str>, base: &Path) -> Known {
        let scheduler = manifest.scheduler.clone().or(speaks.map(String::from));
        let kernel = manifest.kernel().ok().flatten();
        let spec = scheduler.as_ref().and_then(|name| {
            let spec = SchedulerSpec::parse(name, &manifest.place, kernel);
            spec.or_else(|_| SchedulerSpec::parse(name, &manifest.place, None)).ok()
        });
        let name = base.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.split('.').next().unwrap_or_default();
        let is_disk = ["sd", "vd", "nvme", "hd", "xvd", "mmcblk", "dm-", "md", "loop"]
            .iter()
            .any(|it| name.starts_with(it));
        Known {
            by_messages: manifest.scheduler.is_none() && speaks.is_some(),
            scheduler,
            spec,
            disk: if is_disk { name } else { "DISK" }.to_string(),
            facts: manifest.facts(),
            states_depth: manifest.states_depth(),
            begin: Instant::ZERO,
            elapsed: Duration::ZERO,
            mean_depth: 0,
            flushes: 0,
            idle_class: BTreeSet::new(),
            background: BTreeSet::new(),
            manifest: manifest.clone(),
            moved: BTreeMap::new(),
            guesses: BTreeMap::new(),
            pairs: BTreeMap::new(),
        }
    }

    /// Which tasks are of the idle class.
    pub(super) fn take_tasks(&mut self, tasks: &Tasks, labels: &Labels) {
        let idle = tasks.ioprio.iter().filter(|it| it.1.class == IoprioClass::Idle);
        self.idle_class = idle.map(|(pid, _)| labels.of(ContextId(*pid))).collect();
    }

    /// What requests tell beside their times.
    pub(super) fn take_requests(&mut self, requests: Requests, labels: &Labels) {
        self.flushes = requests.flushes();
        for ((task, kind), kinds) in requests.kinds() {
            let key = (labels.of(*task), *kind);
            if kinds.background > kinds.foreground {
                self.background.insert(key.clone());
            }
            *self.moved.entry(key.clone()).or_default() += kinds.bytes;
            let guesses = self.guesses.entry(key).or_default();
            guesses.iter_mut().zip(kinds.guesses).for_each(|(it, more)| *it += more);
        }
        for ((one, other), pair) in requests.into_pairs() {
            let turns = match labels.is_one_program(one, other) {
                true => Turns::OfOneProgram,
                false => Turns::OfStrangers,
            };
            self.pairs.insert((labels.of(one), labels.of(other)), (pair, turns));
        }
    }

    /// The value of a tunable or of a setting of the queue, if it is stated.
    pub fn value(&self, name: &str) -> Option<i64> {
        let tunables = self.manifest.tunables.iter();
        let tunable = tunables.rev().find(|it| it.0 == name).map(|it| it.1);
        tunable.or_else(|| self.manifest.queue(name))
    }

    /// The bytes that somebody moved with requests of some kinds.
    pub fn moved(&self, name: &str, counts: impl Fn(CallKind) -> bool) -> u64 {
        let its = self.moved.iter().filter(|(key, _)| key.0 == name && counts(key.1));
        its.map(|it| it.1).sum()
    }

    /// How sure it is that requests of somebody were withheld: of half the time or more.
    pub fn confidence(&self, name: &str, kind: CallKind) -> Option<Confidence> {
        let guesses = self.guesses.get(&(name.to_string(), kind))?;
        let nanos = guesses.map(Duration::as_nanos);
        let all: u64 = nanos.iter().sum();
        let levels = [Confidence::High, Confidence::Medium, Confidence::Low];
        let mut sum = 0;
        levels.into_iter().find(|it| {
            sum += nanos[*it as usize];
            sum > 0 && 2 * sum >= all
        })
    }

    /// Whether one waits for the other when that is withheld behind it, or they work on the same.
    pub fn take_turns(&self, one: &str, other: &str) -> Option<Turns> {
        self.waits_for(other, one).or_else(|| self.waits_for(one, other))
    }

    /// Whether the first waits for the second.
    fn waits_for(&self, first: &str, second: &str) -> Option<Turns> {
        let (pair, turns) = self.pairs.get(&(second.to_string(), first.to_string()))?;
        let is_most = |it: Duration| {
            u128::from(it.as_nanos()) * 100 >= u128::from(pair.held.as_nanos()) * u128::from(MOSTLY)
        };
        // Two of one program that go on where the other ended work on the same.
        let is_shared = *turns == Turns::OfOneProgram && is_most(pair.held_near);
        let is_habit = pair.count >= LEAST && (is_most(pair.held_in_turn) || is_shared);
        is_habit.then_some(*turns)
    }

    /// What was seen of two who wait for each other.
    pub fn turns_in_words(&self, one: &str, other: &str) -> Option<String> {
        let (pair, _) = self.pairs.get(&(one.to_string(), other.to_string()))?;
        let since = |it: &Instant| seconds(it.saturating_since(self.begin).as_nanos());
        let first: Vec<String> = pair.first.iter().map(since).collect();
        let near = match pair.near {
            0 => String::new(),
            near => format!("; {near} began within 1 MiB of where the other's had ended"),
        };
        Some(format!(
            "{} requests of {one} were withheld behind {other}, which asked for nothing until {} \
             of them were done, and came next after {}{near}; the first at {} s",
            pair.count,
            pair.quiet,
            pair.in_turn,
            first.join(", ")
        ))
    }
}
