//! Calls added up: who called, how long it took, and where that time went.

use super::focus::Only;
use crate::error::Error;
use crate::metrics::CallKind;
use base::{Duration, Instant};
use block::{CommitPhase, ContextId, PagesWhy, Stage};
use insight::histogram::Distribution;
use insight::{Call, Layer, Segment};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// So many of the slowest calls of each caller are kept at least.
pub const SLOWEST: usize = 3;

/// The calls of one kind of a job.
#[derive(Debug, Serialize)]
pub struct Caller {
    /// The job.
    pub job: String,
    /// Its calls of this kind.
    #[serde(serialize_with = "kind_name")]
    pub kind: CallKind,
    /// How many there were.
    pub calls: u64,
    /// How many of them had not ended when the run did.
    pub unfinished: u64,
    /// What they took together.
    #[serde(rename = "total_ns")]
    pub total: Duration,
    /// The longest.
    #[serde(rename = "longest_ns")]
    pub longest: Duration,
    /// The median.
    #[serde(rename = "median_ns")]
    pub median: Duration,
    /// From the first one's beginning to the last one's end.
    #[serde(skip)]
    pub active: Duration,
    /// Where the time went, most first; the parts add up to the total.
    pub parts: Vec<Part>,
    /// How many tasks make them.
    #[serde(skip)]
    pub tasks: u64,
    /// Commits of the journal that its calls waited for.
    #[serde(skip_serializing_if = "Commits::is_empty")]
    pub commits: Commits,
    /// Pages that its calls read, and those of others that they wrote: why, because of whom and how
    /// many.
    #[serde(skip)]
    pub pages: Pages,
    /// The slowest calls, the slowest first.
    #[serde(skip)]
    pub slowest: Vec<Call>,
    /// The parts of each of these.
    #[serde(skip)]
    pub parts_of_slowest: Vec<Vec<Part>>,
    /// How the whole time of calls is spread, and that in each layer.
    #[serde(skip)]
    pub by_layer: BTreeMap<Option<Layer>, Distribution>,
}

/// Pages that calls read, and those of others that they wrote.
pub type Pages = BTreeMap<(PagesWhy, String), u64>;

/// The commits of the journal that calls waited for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Commits {
    /// How long they waited in each phase.
    #[serde(rename = "phases_ns", serialize_with = "by_name_of_phase")]
    pub phases: BTreeMap<CommitPhase, Duration>,
    /// Who had asked for those commits, and for how many calls' waits; nobody, if it was their age.
    #[serde(skip)]
    pub asked_by: BTreeMap<Option<String>, u64>,
    /// Who had how many handles in them; a commit counts for each call that waited for it.
    pub handles: BTreeMap<String, u64>,
}

impl Commits {
    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }
}

/// A part of the time of a caller.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Where.
    #[serde(serialize_with = "layer_name")]
    pub layer: Layer,
    /// Whose time it is: the job itself, another one, or a task of the kernel.
    pub who: String,
    /// Who was waited for or was before it, if anybody was.
    pub behind: Option<String>,
    /// All of it.
    #[serde(rename = "time_ns")]
    pub time: Duration,
    /// Of that, with requests that read.
    #[serde(skip)]
    pub reading: Duration,
    /// Of that, while whoever calls waits for a lock.
    #[serde(skip)]
    pub locked: Duration,
    /// Of that, while somebody else's sync is under way.
    #[serde(skip)]
    beside_sync: Option<Portion>,
    /// Of that, while a commit is waited for, by its phases.
    #[serde(skip)]
    pub commit: BTreeMap<CommitPhase, Duration>,
    /// The longest that the drive had a request and served others, as far as it says.
    #[serde(skip)]
    pub passed_over: Duration,
    /// Of that, what the device did meanwhile, if its model says so.
    #[serde(
        rename = "stages_ns",
        serialize_with = "by_name_of_stage",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub stages: BTreeMap<Stage, Duration>,
    /// In so many calls.
    pub calls: u64,
    /// How many calls' time it is if each counts alike: its shares of single calls, added up.
    #[serde(skip)]
    pub alike: f64,
    /// The most in one call.
    #[serde(rename = "longest_ns")]
    pub longest: Duration,
    /// When it was first.
    #[serde(rename = "first_ns", serialize_with = "since_start")]
    pub first: Instant,
    /// And for how long it was then.
    #[serde(skip)]
    pub first_for: Duration,
}

/// What is of a part while something holds.
#[derive(Clone, Copy, Debug)]
struct Portion {
    time: Duration,
    calls: u64,
    longest: Duration,
    first: Instant,
    first_for: Duration,
}

impl Portion {
    /// A piece of a call, and what there was before.
    fn with_piece(before: Option<Portion>, it: &Segment) -> Portion {
        let (first, first_for) = (it.from, it.length());
        let time = Duration::ZERO;
        let before = before.unwrap_or(Portion { time, calls: 1, longest: time, first, first_for });
        let time = before.time + it.length();
        Portion { time, longest: time, ..before }
    }

    /// That of several calls.
    fn and(self, other: Portion) -> Portion {
        let earlier = if self.first <= other.first { self } else { other };
        Portion {
            time: self.time + other.time,
            calls: self.calls + other.calls,
            longest: self.longest.max(other.longest),
            ..earlier
        }
    }
}

/// A call, as rows of `--events` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallId {
    /// The task that made it.
    pub task: ContextId,
    /// Its number among those of the task.
    pub number: u64,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.task.0, self.number)
    }
}

/// What names a call, for messages.
pub const ACCEPTED_CALL: &str = "TASK:NUMBER, as --slow and the rows of --events have them";

impl CallId {
    /// That of a call.
    pub fn of(call: &Call) -> CallId {
        CallId { task: call.task, number: call.token }
    }

    /// Reads `TASK:NUMBER`; `place` is where that stands.
    pub fn parse(text: &str, place: &str) -> Result<CallId, Error> {
        let parts = text.split_once(':');
        let parsed = parts.and_then(|(task, number)| {
            Some(CallId { task: ContextId(task.parse().ok()?), number: number.parse().ok()? })
        });
        let accepted = format!("{ACCEPTED_CALL}, such as 11:250");
        let problem = format!("\"{text}\" names no call");
        parsed.ok_or_else(|| Error::bad(place, problem, accepted))
    }

    fn is_of(self, call: &Call) -> bool {
        (self.task, self.number) == (call.task, call.token)
    }
}

/// What is added up while a run goes on.
#[derive(Debug)]
pub struct Account {
    slowest: usize,
    only: Option<Only>,
    /// A call that is wanted, by its task and number, and that call.
    wanted: Option<CallId>,
    picked: Option<Call>,
    callers: BTreeMap<(ContextId, CallKind), Sums>,
}

#[derive(Debug, Default)]
struct Sums {
    calls: u64,
    unfinished: u64,
    total: Duration,
    span: Option<(Instant, Instant)>,
    parts: BTreeMap<Key, Part>,
    phases: BTreeMap<CommitPhase, Duration>,
    asked_by: BTreeMap<Option<ContextId>, u64>,
    handles: BTreeMap<ContextId, u64>,
    pages: BTreeMap<(PagesWhy, ContextId), u64>,
    slowest: Vec<Call>,
    by_layer: BTreeMap<Option<Layer>, Distribution>,
}

impl Account {
    /// Keeps so many slow calls of each caller.
    pub fn new(slowest: usize) -> Account {
        Account {
            slowest: slowest.max(SLOWEST),
            only: None,
            wanted: None,
            picked: None,
            callers: BTreeMap::new(),
        }
    }

    /// Keeps a call besides, if one is wanted.
    pub fn picking(self, wanted: Option<CallId>) -> Account {
        Account { wanted, ..self }
    }

    /// The call that was wanted, if there was such a one.
    pub fn take_picked(&mut self) -> Option<Call> {
        self.picked.take()
    }

    /// Takes note of these calls and no others.
    pub fn only(self, only: Only) -> Account {
        Account { only: Some(only), ..self }
    }

    /// Takes note of a call.
    pub fn add(&mut self, call: Call) {
        let kind = CallKind::of(call.call);
        if self.wanted.is_some_and(|it| it.is_of(&call)) {
            self.picked = Some(call.clone());
        }
        if self.only.as_ref().is_some_and(|it| !it.has(call.task, kind, call.took())) {
            return;
        }
        let sums = self.callers.entry((call.task, kind)).or_default();
        sums.calls += 1;
        sums.unfinished += u64::from(call.is_unfinished);
        sums.total += call.took();
        sums.lasts(call.entered, call.ended);
        sums.by_layer.entry(None).or_default().add(call.took());
        sums.add_parts(&call.path, call.took());
        sums.add_commits(&call);
        for (why, by, pages) in &call.pages {
            *sums.pages.entry((*why, *by)).or_default() += u64::from(*pages);
        }
        sums.keep(call, self.slowest);
    }

    /// The tasks that have called.
    pub fn tasks(&self) -> BTreeSet<ContextId> {
        self.callers.keys().map(|(task, _)| *task).collect()
    }

    /// Who called, by the names of tasks, those whose calls took longest first.
    pub fn finish(self, name: impl Fn(ContextId) -> String) -> Vec<Caller> {
        let mut jobs: BTreeMap<(String, CallKind), OfJob> = BTreeMap::new();
        for ((task, kind), sums) in self.callers {
            jobs.entry((name(task), kind)).or_default().add(sums, &name, self.slowest);
        }
        let caller =
            |((job, kind), it): ((String, CallKind), OfJob)| it.into_caller(job, kind, &name);
        let mut callers: Vec<Caller> = jobs.into_iter().map(caller).collect();
        callers.sort_by_key(|it| std::cmp::Reverse(it.total));
        callers
    }
}

/// Where, whose time, and behind whom.
type Key = (Layer, ContextId, Option<ContextId>);

/// Parts by layer, whose they are and who was before.
type Named = BTreeMap<(Layer, String, Option<String>), Part>;

fn add_named(
    named: &mut Named,
    (&(layer, who, behind), part): (&Key, &Part),
    name: impl Fn(ContextId) -> String,
) {
    let (who, behind) = (name(who), behind.map(&name));
    let key = (layer, who.clone(), behind.clone());
    let new = || Part { who, behind, ..Part::at(layer, part.first, part.first_for) };
    let it = named.entry(key).or_insert_with(new);
    it.add(part);
    it.calls += part.calls;
    it.alike += part.alike;
    it.longest = it.longest.max(part.longest);
    if part.first < it.first {
        (it.first, it.first_for) = (part.first, part.first_for);
    }
}

impl Commits {
    /// Adds what a task has waited for.
    fn add(&mut self, sums: &Sums, name: impl Fn(ContextId) -> String) {
        add_each(&mut self.phases, &sums.phases);
        for (who, count) in &sums.asked_by {
            *self.asked_by.entry(who.map(&name)).or_default() += count;
        }
        for (who, count) in &sums.handles {
            *self.handles.entry(name(*who)).or_default() += count;
        }
    }
}

/// Adds times to those of the same kind.
fn add_each<K: Copy + Ord>(sums: &mut BTreeMap<K, Duration>, times: &BTreeMap<K, Duration>) {
    for (kind, time) in times {
        *sums.entry(*kind).or_default() += *time;
    }
}

impl Sums {
    fn add_parts(&mut self, path: &[Segment], took: Duration) {
        let mut of_layer: BTreeMap<Layer, Duration> = BTreeMap::new();
        for it in path {
            *of_layer.entry(it.layer).or_default() += it.length();
        }
        for (layer, time) in of_layer {
            self.by_layer.entry(Some(layer)).or_default().add(time);
        }
        for (key, of) in parts_of(path) {
            let new = || Part::at(key.0, of.first, of.first_for);
            let part = self.parts.entry(key).or_insert_with(new);
            part.add(&of);
            part.calls += 1;
            part.alike += ratio(of.time, took);
            part.longest = part.longest.max(of.time);
        }
    }

    fn add_commits(&mut self, call: &Call) {
        for it in &call.path {
            if let Some(phase) = it.commit {
                *self.phases.entry(phase).or_default() += it.length();
            }
        }
        for commit in &call.commits {
            *self.asked_by.entry(commit.asked_by).or_default() += 1;
            for (who, handles) in &commit.handles {
                *self.handles.entry(*who).or_default() += u64::from(*handles);
            }
        }
    }

    fn lasts(&mut self, from: Instant, to: Instant) {
        let (first, last) = self.span.unwrap_or((from, to));
        self.span = Some((first.min(from), last.max(to)));
    }

    fn keep(&mut self, call: Call, most: usize) {
        let place = self.slowest.partition_point(|it| it.took() >= call.took());
        if place < most {
            self.slowest.insert(place, call);
            self.slowest.truncate(most);
        }
    }

    fn join(&mut self, other: Sums, most: usize) {
        self.calls += other.calls;
        self.unfinished += other.unfinished;
        self.total += other.total;
        other.span.into_iter().for_each(|(from, to)| self.lasts(from, to));
        for (layer, times) in other.by_layer {
            self.by_layer.entry(layer).or_default().merge(&times);
        }
        other.slowest.into_iter().for_each(|call| self.keep(call, most));
    }
}

/// The parts of one call.
fn parts_of(path: &[Segment]) -> BTreeMap<Key, Part> {
    let mut parts: BTreeMap<Key, Part> = BTreeMap::new();
    let key = |it: &Segment| (it.layer, it.who, it.behind);
    for it in path {
        let new = || Part::at(it.layer, it.from, it.length());
        parts.entry(key(it)).or_insert_with(new).add_piece(it);
    }
    let is_one = |one: &Segment, next: &Segment| {
        is_passed_over(one) && is_passed_over(next) && one.who == next.who && one.to == next.from
    };
    for wait in path.chunk_by(is_one).filter(|it| is_passed_over(&it[0])) {
        let long = wait[wait.len() - 1].to.saturating_since(wait[0].from);
        for it in wait {
            if let Some(part) = parts.get_mut(&key(it)) {
                part.passed_over = part.passed_over.max(long);
            }
        }
    }
    parts
}

/// The parts of one call, with names.
fn named_parts_of(call: &Call, name: &impl Fn(ContextId) -> String) -> Vec<Part> {
    let mut parts = Named::new();
    parts_of(&call.path).iter().for_each(|part| add_named(&mut parts, part, name));
    let of_one = |it: Part| Part { longest: it.time, calls: 1, ..it };
    parts.into_values().map(of_one).collect()
}

/// Whether the drive has a request and serves others meanwhile, as far as it says what it does.
fn is_passed_over(it: &Segment) -> bool {
    let is_in_drive = matches!(it.layer, Layer::Device | Layer::Shared);
    is_in_drive && it.stage.is_none_or(|it| it == Stage::Queue)
}

/// The calls of all tasks of a job, with names in place of tasks.
#[derive(Default)]
struct OfJob {
    tasks: u64,
    sums: Sums,
    parts: Named,
    commits: Commits,
    pages: Pages,
}

impl OfJob {
    /// One more task, of which so many slow calls are kept.
    fn add(&mut self, sums: Sums, name: &impl Fn(ContextId) -> String, slowest: usize) {
        self.tasks += 1;
        sums.parts.iter().for_each(|part| add_named(&mut self.parts, part, name));
        self.commits.add(&sums, name);
        for ((why, by), count) in &sums.pages {
            *self.pages.entry((*why, name(*by))).or_default() += count;
        }
        self.sums.join(sums, slowest);
    }

    fn into_caller(
        self,
        job: String,
        kind: CallKind,
        name: &impl Fn(ContextId) -> String,
    ) -> Caller {
        let OfJob { tasks, sums, parts, commits, pages } = self;
        let parts_of_slowest = sums.slowest.iter().map(|it| named_parts_of(it, name)).collect();
        let mut parts: Vec<Part> = parts.into_values().collect();
        parts.sort_by_key(|it| std::cmp::Reverse(it.time));
        for part in &mut parts {
            // Of a call with several tasks each that it is behind counts.
            part.calls = part.calls.min(sums.calls);
        }
        let latency = sums.by_layer.get(&None).cloned().unwrap_or_default();
        Caller {
            job,
            kind,
            calls: sums.calls,
            unfinished: sums.unfinished,
            total: sums.total,
            longest: latency.histogram().max(),
            median: latency.histogram().quantile(1, 2),
            active: sums.span.map_or(Duration::ZERO, |(from, to)| to.saturating_since(from)),
            parts,
            tasks,
            commits,
            pages,
            slowest: sums.slowest,
            parts_of_slowest,
            by_layer: sums.by_layer,
        }
    }
}

impl Part {
    fn at(layer: Layer, first: Instant, first_for: Duration) -> Part {
        Part {
            layer,
            who: String::new(),
            behind: None,
            time: Duration::ZERO,
            reading: Duration::ZERO,
            locked: Duration::ZERO,
            beside_sync: None,
            commit: BTreeMap::new(),
            passed_over: Duration::ZERO,
            stages: BTreeMap::new(),
            calls: 0,
            alike: 0.0,
            longest: Duration::ZERO,
            first,
            first_for,
        }
    }

    /// What is of it while somebody else's sync is under way, as a part of its own.
    fn while_others_sync(&self) -> Option<Part> {
        let Portion { time, calls, longest, first, first_for } = self.beside_sync?;
        let alike = self.alike * ratio(time, self.time);
        Some(Part { time, calls, longest, first, first_for, alike, ..self.clone() })
    }

    /// Adds the times of another one.
    fn add(&mut self, other: &Part) {
        self.time += other.time;
        self.reading += other.reading;
        self.locked += other.locked;
        self.beside_sync = match (self.beside_sync, other.beside_sync) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
        add_each(&mut self.commit, &other.commit);
        self.passed_over = self.passed_over.max(other.passed_over);
        add_each(&mut self.stages, &other.stages);
    }

    /// Adds a piece of a call.
    fn add_piece(&mut self, it: &Segment) {
        let (time, zero) = (it.length(), Duration::ZERO);
        self.time += time;
        self.reading += if it.is_read { time } else { zero };
        self.locked += if it.is_locked { time } else { zero };
        if it.is_beside_sync {
            self.beside_sync = Some(Portion::with_piece(self.beside_sync, it));
        }
        if let Some(phase) = it.commit {
            *self.commit.entry(phase).or_default() += time;
        }
        if let Some(stage) = it.stage {
            *self.stages.entry(stage).or_default() += time;
        }
    }
}

impl Caller {
    /// How much of its time some parts have, from 0 to 1.
    pub fn share(&self, has: impl Fn(&Part) -> bool) -> f64 {
        let time: u64 = self.parts.iter().filter(|it| has(it)).map(|it| it.time.as_nanos()).sum();
        time as f64 / self.total.as_nanos().max(1) as f64
    }

    /// The same calls with nothing but what they did while somebody else's sync was under way.
    pub fn while_others_sync(&self) -> Caller {
        let only = |parts: &Vec<Part>| -> Vec<Part> {
            let mut parts: Vec<Part> = parts.iter().filter_map(Part::while_others_sync).collect();
            parts.sort_by_key(|it| std::cmp::Reverse(it.time));
            parts
        };
        Caller {
            job: self.job.clone(),
            parts: only(&self.parts),
            parts_of_slowest: self.parts_of_slowest.iter().map(only).collect(),
            commits: Commits::default(),
            pages: Pages::new(),
            slowest: Vec::new(),
            by_layer: BTreeMap::new(),
            ..*self
        }
    }

    /// How many calls are under way at once, on the average.
    pub fn at_once(&self) -> f64 {
        self.total.as_nanos() as f64 / self.active.as_nanos().max(1) as f64
    }

    /// The part of its time that requests take which read, from 0 to 1.
    pub fn reading(&self) -> f64 {
        let time: u64 = self.parts.iter().map(|it| it.reading.as_nanos()).sum();
        time as f64 / self.total.as_nanos().max(1) as f64
    }

    /// How much time passes while calls take this much: of several at once each counts.
    pub fn passes(&self, time: Duration) -> Duration {
        Duration::from_nanos((time.as_nanos() as f64 / self.at_once().max(1.0)) as u64)
    }

    /// The mean of a call.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.total.as_nanos() / self.calls.max(1))
    }
}

/// How much of a time another is.
pub fn ratio(part: Duration, whole: Duration) -> f64 {
    part.as_nanos() as f64 / whole.as_nanos().max(1) as f64
}

fn kind_name<S: Serializer>(kind: &CallKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

fn layer_name<S: Serializer>(layer: &Layer, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(layer.name())
}

fn by_name_of_phase<S: Serializer>(
    times: &BTreeMap<CommitPhase, Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(times.iter().map(|(phase, time)| (phase.name(), time)))
}

fn by_name_of_stage<S: Serializer>(
    times: &BTreeMap<Stage, Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(times.iter().map(|(stage, time)| (stage.name(), time)))
}

fn since_start<S: Serializer>(at: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(at.as_nanos())
}
