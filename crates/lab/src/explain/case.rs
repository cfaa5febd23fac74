//! What detectors look at: a row of a plan with what came of it, or a recording; and who called.

use super::account::{Caller, Part, ratio};
use super::actors::{Actor, Actors};
use super::finding::{BOOT, Change, Finding, OfFigure, Remedy, Weight};
use super::focus::Makes;
use super::recorded::Known;
use crate::metrics::CallKind;
use crate::plan::{PlannedJob, Row};
use crate::quantity::{Kind, human};
use crate::result::RunResult;
use crate::scheduler_spec::SchedulerSpec;
use base::{Duration, Instant};
use block::{Facts, Ioprio, IoprioClass, Shape, Transport};
use insight::{Confidence, Layer};
use machine::task::Advice;
use programs::fio::{Engine, Fio, Job};

/// A part of somebody's time that is less than this is not worth a word.
const LEAST: f64 = 0.05;
/// What is lost in less than this part of the time that passes is no cause.
const RARE: u64 = 1000;
/// Or in less than this part, if that is in few calls.
const RARE_OF_FEW: u64 = 20;
/// What is less than one of so many parts of the time that passes is minor.
const MINOR: u64 = 10;
/// Fewer than one of so many calls are few.
const FEW: u64 = 50;
/// What somebody sits and waits for is noticed from here on (Miller 1968).
const NOTICED: Duration = Duration::from_millis(100);
/// Who has calls under way for this part of the time makes one as soon as another is over.
pub const BACK_TO_BACK: f64 = 0.8;
/// From this part on it is a cause.
const CAUSE: f64 = 0.2;
/// How names of tasks of the kernel begin.
const KERNEL: [&str; 8] =
    ["kworker/", "jbd2/", "xfsaild/", "flush-", "kblockd", "swapper/", "dmcrypt_", "kswapd"];

/// What is to be explained.
pub struct Case<'a> {
    /// A run or a recording.
    pub of: Of<'a>,
    /// Who called; of a recording, who had requests.
    pub callers: &'a [Caller],
    /// The figure that its calls make, if these are not all and count alike.
    pub makes: Option<&'a Makes>,
    /// Whether somebody asked for just these calls: then none of them is too rare to speak of.
    pub is_asked: bool,
}

/// Where a case comes from.
#[derive(Clone, Copy)]
pub enum Of<'a> {
    /// A run of ours.
    Run {
        /// What was run.
        row: &'a Row,
        /// What came of it.
        result: &'a RunResult,
        /// Who took part.
        actors: &'a Actors,
    },
    /// A recording.
    Recording(&'a Known),
}

impl<'a> Case<'a> {
    /// All calls of it.
    pub fn of(of: Of<'a>, callers: &'a [Caller]) -> Case<'a> {
        Case { of, callers, makes: None, is_asked: false }
    }

    /// What was run, if it was.
    pub fn row(&self) -> Option<&'a Row> {
        match self.of {
            Of::Run { row, .. } => Some(row),
            Of::Recording(_) => None,
        }
    }

    /// What came of it.
    pub fn result(&self) -> Option<&'a RunResult> {
        match self.of {
            Of::Run { result, .. } => Some(result),
            Of::Recording(_) => None,
        }
    }

    /// What is known of a recording.
    pub fn recording(&self) -> Option<&'a Known> {
        match self.of {
            Of::Run { .. } => None,
            Of::Recording(known) => Some(known),
        }
    }

    /// Who took part in a run.
    pub fn actors(&self) -> Option<&'a Actors> {
        match self.of {
            Of::Run { actors, .. } => Some(actors),
            Of::Recording(_) => None,
        }
    }

    /// The jobs of a run, and sections of them.
    pub fn jobs(&self) -> impl Iterator<Item = &'a Actor> + use<'a> {
        self.actors().into_iter().flat_map(Actors::jobs)
    }

    /// One of them.
    pub fn job(&self, name: &str) -> Option<&'a Actor> {
        self.actors()?.named(name).filter(|it| it.is_job)
    }

    /// The job, as it was planned, that has results of this name.
    fn planned(&self, name: &str) -> impl Iterator<Item = &'a PlannedJob> {
        self.row().into_iter().flat_map(move |row| row.jobs_called(name))
    }

    /// The jobs of fio in a job.
    fn fio_jobs(&self, name: &str) -> impl Iterator<Item = &'a Job> {
        let parts = self.planned(name).flat_map(|it| it.program.parts());
        parts.filter_map(|it| it.downcast::<Fio>()).flat_map(Fio::jobs)
    }

    /// Whether an I/O priority was given to a job, and not by its program to itself.
    pub fn is_given_ioprio(&self, name: &str) -> bool {
        self.planned(name).any(|it| it.job.ioprio != Ioprio::NONE)
    }

    /// Whether a job of fio has several calls under way from one thread.
    pub fn job_is_asynchronous(&self, name: &str) -> bool {
        self.fio_jobs(name).any(|it| it.engine.is_asynchronous())
    }

    /// Whether a job of fio submits direct calls of which several can be under way.
    pub fn submits_directly(&self, name: &str) -> bool {
        let submits = |it: &Job| it.engine.is_asynchronous() && it.engine != Engine::PosixAio;
        self.fio_jobs(name).any(|it| submits(it) && it.durability.direct)
    }

    /// How many calls fio is told to have under way at once by an engine that has them done one by
    /// one, whose next call comes as soon as one is over; else none.
    pub fn asked_at_once(&self, caller: &Caller) -> f64 {
        let serial = |it: &&Job| it.engine == Engine::PosixAio || !it.durability.direct;
        let depths =
            self.fio_jobs(&caller.job).filter(|it| it.engine.is_asynchronous()).filter(serial);
        let asked = depths.map(|it| it.queue.depth).max().unwrap_or(0);
        if caller.at_once() < BACK_TO_BACK { 0.0 } else { f64::from(asked) }
    }

    /// Whether a job goes through its files from the beginning to the end, as dd, cp and some jobs
    /// of fio do; none if nobody knows.
    pub fn goes_in_sequence(&self, name: &str) -> Option<bool> {
        let mut parts = self.planned(name).flat_map(|it| it.program.parts());
        let copies = parts.any(|it| matches!(it.name(), "dd" | "cp"));
        let mut fio = self.fio_jobs(name).map(|it| !it.pattern.random).peekable();
        match fio.peek() {
            Some(_) => Some(fio.any(|it| it)),
            None => copies.then_some(true),
        }
    }

    /// Whether a job writes whole pages, as far as that is known.
    pub fn writes_whole_pages(&self, name: &str) -> bool {
        let mut fio = self.fio_jobs(name).peekable();
        fio.peek().is_some() && fio.all(|it| it.writes_whole(Facts::PAGE.bytes().0))
    }

    /// Whether a job reads and writes through a mapping of its files.
    pub fn maps(&self, name: &str) -> bool {
        self.fio_jobs(name).any(|it| it.engine == Engine::Mmap)
    }

    /// Whether a job of fio says that it reads here and there.
    pub fn advises_random(&self, name: &str) -> bool {
        self.fio_jobs(name)
            .any(|it| !it.durability.direct && it.caching.hint == Some(Advice::Random))
    }

    /// Another job that computes while a caller wants a core: one that makes no calls, or the only
    /// one.
    pub fn computing(&self, caller: &Caller) -> Option<String> {
        // Who is kept on some cores waits for whoever else is, and else for its own.
        let cores = |name: &str| self.planned(name).find_map(|it| it.job.affinity.clone());
        let own = cores(&caller.job);
        let is_there = |it: &&String| own.is_none() || cores(it) == own;
        let others =
            || self.jobs().map(|it| &it.name).filter(|it| **it != caller.job).filter(is_there);
        let calls = |name: &String| self.callers.iter().any(|it| it.job == *name);
        let only = || others().next().filter(|_| others().count() == 1);
        others().find(|it| !calls(it)).or_else(only).cloned()
    }

    /// Whether a job reads and writes past the page cache, as far as that is known.
    pub fn is_direct(&self, name: &str) -> bool {
        let mut parts = self.planned(name).flat_map(|it| it.program.parts()).peekable();
        let is_direct = |it: &Job| it.durability.direct;
        parts.peek().is_some()
            && parts
                .all(|it| it.downcast::<Fio>().is_some_and(|it| it.jobs().iter().all(is_direct)))
    }

    /// Whether data are on the disk before the commit that names them.
    pub fn is_ordered(&self) -> bool {
        let mount = self.row().and_then(|row| row.mount.as_ref());
        mount.is_none_or(|it| it.is_ordered && it.format == machine::Format::Ext4)
    }

    /// The scheduler, where it is one of ours.
    pub fn spec(&self) -> Option<&'a SchedulerSpec> {
        match self.of {
            Of::Run { row, .. } => Some(&row.spec),
            Of::Recording(known) => known.spec.as_ref(),
        }
    }

    /// The scheduler's name in sysfs.
    pub fn scheduler(&self) -> &'a str {
        match self.of {
            Of::Run { row, .. } => row.spec.name,
            Of::Recording(known) => known.scheduler.as_deref().unwrap_or("the scheduler"),
        }
    }

    /// The disk as commands name it.
    pub fn disk(&self) -> &'a str {
        match self.of {
            Of::Run { row, .. } => row.disk_name(),
            Of::Recording(known) => &known.disk,
        }
    }

    /// The value of a tunable or a setting.
    pub fn value(&self, name: &str) -> Option<i64> {
        match self.of {
            Of::Run { row, .. } => row.tunables.iter().find(|it| it.0 == name).map(|it| it.1),
            Of::Recording(known) => known.value(name),
        }
    }

    /// Whether the kernel takes the disk for one that turns; of a recording that says nothing of
    /// it, too.
    pub fn turns(&self) -> bool {
        match self.of {
            Of::Run { row, .. } => row.facts().rotational,
            Of::Recording(known) => known.facts.rotational,
        }
    }

    /// How many commands the device takes.
    pub fn depth(&self) -> u32 {
        match self.of {
            Of::Run { row, .. } => row.facts().queue_depth,
            Of::Recording(known) => known.facts.queue_depth,
        }
    }

    /// How many tasks read through the page cache, as far as that is known.
    pub fn buffered_readers(&self) -> u64 {
        let readers = self.callers.iter().filter(|it| it.kind == CallKind::Read);
        readers.filter(|it| !self.is_direct(&it.job)).map(|it| it.tasks).sum()
    }

    /// How many it had while it had any, in thousandths.
    pub fn mean_depth(&self) -> u64 {
        match self.of {
            Of::Run { result, .. } => result.disk.depth_mean_thousandths,
            Of::Recording(known) => known.mean_depth,
        }
    }

    /// How many flushes the disk had.
    pub fn flushes(&self) -> u64 {
        match self.of {
            Of::Run { result, .. } => result.disk.flushes,
            Of::Recording(known) => known.flushes,
        }
    }

    /// Flushes in a second.
    pub fn flush_rate(&self) -> f64 {
        self.flushes() as f64 * 1e9 / self.elapsed().as_nanos().max(1) as f64
    }

    /// How long it went on.
    fn elapsed(&self) -> Duration {
        match self.of {
            Of::Run { result, .. } => result.elapsed,
            Of::Recording(known) => known.elapsed,
        }
    }

    /// Whether a task is the kernel's own.
    pub fn is_kernel(&self, name: &str) -> bool {
        match self.of {
            Of::Run { actors, .. } => !actors.named(name).is_some_and(|it| it.is_job),
            Of::Recording(_) => KERNEL.iter().any(|it| name.starts_with(it)),
        }
    }

    /// Whether somebody is of the idle class.
    pub fn is_idle_class(&self, name: &str) -> bool {
        match self.of {
            Of::Run { actors, .. } => {
                actors.named(name).is_some_and(|it| it.ioprio.class == IoprioClass::Idle)
            }
            Of::Recording(known) => known.idle_class.contains(name),
        }
    }

    /// Whether a job is stopped when the others have ended.
    fn runs_in_background(&self, name: &str) -> bool {
        self.planned(name).any(|it| it.job.background)
    }

    /// Whether nobody waits for what somebody asks for, as far as a recording tells.
    pub fn is_in_background(&self, caller: &Caller) -> bool {
        let known = self.recording();
        known.is_some_and(|it| it.background.contains(&(caller.job.clone(), caller.kind)))
    }

    /// Whether the scheduler may keep the disk idle on purpose.
    pub fn may_idle(&self) -> bool {
        let plain = ["noop", "none", "deadline", "mq-deadline", "kyber"];
        self.recording().is_none() || !plain.contains(&self.scheduler())
    }

    /// Whether a task writes what others have made dirty.
    pub fn is_flusher(&self, name: &str) -> bool {
        name.starts_with("kworker/u")
    }

    /// Whether a task commits the journal or writes the log.
    pub fn is_journal(&self, name: &str) -> bool {
        name.starts_with("jbd2/") || name.starts_with("xfsaild/")
    }

    /// A finding about a caller, if the parts it is about are worth a word.
    pub fn finding(
        &self,
        name: &'static str,
        caller: &Caller,
        is_about: impl Fn(&Part) -> bool,
    ) -> Option<Finding> {
        self.finding_of(name, caller, |it| if is_about(it) { it.time } else { Duration::ZERO })
    }

    /// The same about so much of each part.
    pub fn finding_of(
        &self,
        name: &'static str,
        caller: &Caller,
        of: impl Fn(&Part) -> Duration,
    ) -> Option<Finding> {
        let is_known = super::detectors::KNOWN.iter().any(|it| it.0 == name);
        assert!(is_known, "the table does not know {name}");
        let cost = caller.parts.iter().map(&of).fold(Duration::ZERO, |sum, it| sum + it);
        let share = cost.as_nanos() as f64 / caller.total.as_nanos().max(1) as f64;
        if share < LEAST {
            return None;
        }
        let parts: Vec<&Part> = caller.parts.iter().filter(|it| !of(it).is_zero()).collect();
        let of_figure = self.of_figure(caller, &parts, &of);
        let counts = of_figure.as_ref().map_or(share, |it| it.share);
        let is_rare = !self.is_asked && cost * self.rarest(caller, &parts) < self.elapsed();
        let worst = parts[0];
        let mut evidence = vec![
            format!(
                "{} of {} in {} of {}",
                time(cost),
                time(caller.total),
                self.many(caller.calls, caller.kind.name()),
                caller.job
            ),
            self.first_and_longest(worst, longest(caller, &parts, &of)),
        ];
        evidence.extend(parts.iter().take(3).map(|it| self.line(it)));
        Some(Finding {
            name,
            weight: match counts >= CAUSE && !is_rare {
                true => Weight::Cause,
                false => Weight::Note,
            },
            title: String::new(),
            acquitted: None,
            victim: caller.job.clone(),
            kind: caller.kind,
            of_figure,
            culprit: worst.behind.clone().filter(|it| *it != caller.job),
            cost,
            share,
            evidence,
            others: Vec::new(),
            mechanism: "",
            remedies: Vec::new(),
            confidence: self.confidence(caller, &parts),
            first: (worst.first, worst.first_for),
            suspected: false,
            is_in_background: self.runs_in_background(&caller.job),
            passes: caller.passes(cost),
            is_rare,
            ranks_by: None,
            limit: None,
            without: None,
        })
    }

    fn first_and_longest(&self, worst: &Part, longest: Option<Duration>) -> String {
        let first = seconds(worst.first.saturating_since(self.begin()).as_nanos());
        let one = self.unit().trim_end_matches('s');
        let longest = longest.map(|it| format!("; the longest in one {one} {}", time(it)));
        format!("first at {first} s{}", longest.unwrap_or_default())
    }

    /// What so much of each part has of the figure that was asked for.
    fn of_figure(
        &self,
        caller: &Caller,
        parts: &[&Part],
        of: impl Fn(&Part) -> Duration,
    ) -> Option<OfFigure> {
        let Makes { name, value } = self.makes?.clone();
        let calls: f64 = parts.iter().map(|it| it.alike * ratio(of(it), it.time)).sum();
        let share = calls / caller.calls.max(1) as f64;
        Some(OfFigure { name, value, share })
    }

    /// Whether what somebody loses is less than a tenth of the time that passes, and nobody asked
    /// for it.
    pub fn is_minor(&self, found: &Finding) -> bool {
        !self.is_asked && found.passes * MINOR < self.elapsed()
    }

    /// What is lost in less than one of so many parts of the time that passes is no cause. Of few
    /// calls more has to be lost.
    fn rarest(&self, caller: &Caller, parts: &[&Part]) -> u64 {
        let calls = parts.iter().map(|it| it.calls).max().unwrap_or(0);
        let is_noticed = parts.iter().any(|it| it.longest >= NOTICED);
        if is_noticed || calls * FEW >= caller.calls { RARE } else { RARE_OF_FEW }
    }

    /// When it began: times that people read count from there.
    fn begin(&self) -> Instant {
        self.recording().map_or(Instant::ZERO, |it| it.begin)
    }

    /// What the times of callers are of.
    pub fn unit(&self) -> &'static str {
        if self.recording().is_some() { "requests" } else { "calls" }
    }

    /// So many calls or requests, of a kind if one is named.
    pub fn many(&self, count: u64, kind: &str) -> String {
        let unit = if count == 1 { self.unit().trim_end_matches('s') } else { self.unit() };
        format!("{count} {kind}{}{unit}", if kind.is_empty() { "" } else { " " })
    }

    fn line(&self, part: &Part) -> String {
        let behind = match (&part.behind, part.layer) {
            (Some(behind), layer) if layer.is_held() => format!(", for {behind}"),
            (Some(behind), _) => format!(", behind {behind}"),
            (None, _) => String::new(),
        };
        let (took, calls) = (time(part.time), self.many(part.calls, ""));
        format!("{}: {}{behind}, {took} in {calls}", part.who, part.layer)
    }

    /// How sure it is what parts of a caller's time are that a recording does not state.
    fn confidence(&self, caller: &Caller, parts: &[&Part]) -> Option<Confidence> {
        let is_inferred = |it: &&Part| it.layer.is_held();
        let known = self.recording().filter(|_| parts.iter().any(is_inferred))?;
        known.confidence(&caller.job, caller.kind)
    }

    /// Schedulers that the kernel has besides, the plainest first.
    pub fn other_schedulers(&self, among: &[&'static str]) -> Vec<Remedy> {
        let Some(spec) = self.spec() else { return Vec::new() };
        let has =
            |it: &&&str| sched::about_on(it, spec.kernel).is_some() && **it != self.scheduler();
        let own = sched::shape_of(self.scheduler());
        let one = |name: &&'static str| {
            let echo = format!("echo {name} > /sys/block/{}/queue/scheduler", self.disk());
            // One of the other block layer needs another boot.
            let command = match sched::shape_of(name) {
                shape if shape == own => echo,
                Some(Shape::Multi) => format!("{BOOT} scsi_mod.use_blk_mq=1, and {echo}"),
                _ => format!("{BOOT} scsi_mod.use_blk_mq=0, and {echo}"),
            };
            Remedy::tried(command, Change::Scheduler(name.to_string()))
        };
        among.iter().filter(has).map(one).collect()
    }

    /// Tunables of the scheduler, those of them that it has.
    pub fn tunables(&self, values: &[(&'static str, i64)]) -> Option<Remedy> {
        let spec = self.spec()?;
        let has = |name: &str| spec.tunable(name).is_some();
        let values: Vec<_> = values
            .iter()
            .copied()
            .filter(|it| has(it.0) && self.value(it.0) != Some(it.1))
            .collect();
        if values.is_empty() {
            return None;
        }
        let path = |name: &str| format!("/sys/block/{}/queue/iosched/{name}", self.disk());
        let commands: Vec<String> =
            values.iter().map(|(name, value)| format!("echo {value} > {}", path(name))).collect();
        Some(Remedy::tried(commands.join("; "), Change::Values(values)))
    }

    /// The tunables of the scheduler that somebody has set, as they are by default.
    pub fn defaults(&self) -> Option<Remedy> {
        let (row, spec) = (self.row()?, self.spec()?);
        let values = row.deviations().into_iter();
        let values = values.filter_map(|it| Some((spec.tunable(&it.name)?.name, it.default?)));
        self.tunables(&values.collect::<Vec<_>>())
    }

    /// A setting of the queue or of memory.
    pub fn setting(&self, name: &'static str, value: i64) -> Option<Remedy> {
        self.settings(&[(name, value)])
    }

    /// There are so many requests. Where a scheduler hears of them before they are there (rule
    /// allocate-9), all but synchronous reads may use as many as there were. That is said, for
    /// after a boot with the new number they may use as many as there are by default.
    pub fn more_requests(&self, requests: i64) -> Option<Remedy> {
        let remedy = self.setting("nr_requests", requests)?;
        let sees_old = |row: &&Row| row.spec.kernel.multi.is_some_and(|it| it.depth_hook_sees_old);
        let row = self.row().filter(sees_old);
        let Some(depth) = row.and_then(|row| row.spec.tunable("async_depth")) else {
            return Some(remedy);
        };
        let now = self.value("nr_requests")?;
        let file = format!("/sys/block/{}/queue/iosched/{}", self.disk(), depth.name);
        let command = format!("{}; echo {now} > {file}", remedy.command);
        let values = vec![("nr_requests", requests), (depth.name, now)];
        Some(Remedy::tried(command, Change::Values(values)))
    }

    /// Several together.
    pub fn settings(&self, values: &[(&'static str, i64)]) -> Option<Remedy> {
        if values.iter().all(|(name, value)| self.value(name) == Some(*value)) {
            return None;
        }
        let command = |(name, value): &(&str, i64)| match name.starts_with("dirty_") {
            true => format!("sysctl vm.{name}={value}"),
            false => format!("echo {value} > /sys/block/{}/queue/{name}", self.disk()),
        };
        let commands: Vec<String> = values.iter().map(command).collect();
        Some(Remedy::tried(commands.join("; "), Change::Values(values.to_vec())))
    }

    /// A setting as it is by default.
    pub fn default_setting(&self, name: &'static str) -> Option<Remedy> {
        self.setting(name, self.row()?.default_of(name)?)
    }

    /// A job may read and write half of what it does now.
    pub fn half_of(&self, name: &str) -> Option<Remedy> {
        let result = self.result()?;
        let rate = |key: &str, kind: CallKind| {
            let its = result.jobs.iter().filter(|it| it.name == name);
            let moved: u64 = its.clone().map(|it| it.calls[kind as usize].bytes.0).sum();
            let runtime = its.map(|it| it.runtime.as_nanos()).max().filter(|it| *it > 0)?;
            let half = moved as f64 * 1e9 / runtime as f64 / 2.0;
            (half >= 1.0).then(|| format!("{key}={}", two_digits(half as u64)))
        };
        let rates = [rate("rbps", CallKind::Read), rate("wbps", CallKind::Write)];
        let limits: Vec<String> = rates.into_iter().flatten().collect();
        let limits = Some(limits.join(" ")).filter(|it| !it.is_empty())?;
        let command = format!("limit {name} to half of what it does now (io.max {limits})");
        Some(Remedy::tried(command, Change::Limit(name.to_string(), limits)))
    }

    /// The device gets one command at a time, where it has a file for that. What comes of a disk
    /// that a host gives fewer commands hangs on the host, of which nothing is known.
    pub fn one_at_a_time(&self) -> Option<Remedy> {
        let own = self.row().map(|row| row.model.facts().transport);
        let has_file = own.is_none_or(|it| matches!(it, Transport::Scsi | Transport::Sata));
        let command = self.commands_at_a_time(1).filter(|_| has_file);
        command.map(|it| Remedy::tried(it, Change::Depth(1)))
    }

    /// How the device is given so many commands at a time: only SCSI and SATA disks have a file for
    /// that, and of a disk behind virtio it is the host that says so.
    pub fn commands_at_a_time(&self, commands: u32) -> Option<String> {
        let disk = self.disk();
        let echo = format!("echo {commands} > /sys/block/{disk}/device/queue_depth");
        let unit = if commands == 1 { "command" } else { "commands" };
        let host =
            format!("set {commands} {unit} at a time on the host: a guest has no file for it");
        let is_scsi = |it: Transport| matches!(it, Transport::Scsi | Transport::Sata);
        match self.row().map(|row| (row.facts().transport, row.model.facts().transport)) {
            // The lab puts any disk behind virtio, to compare it with a guest.
            Some((Transport::Virtio, own)) if is_scsi(own) => {
                Some(format!("{echo}; behind virtio, {host}"))
            }
            Some((Transport::Virtio, _)) => Some(host),
            Some((seen, _)) => is_scsi(seen).then_some(echo),
            None => (disk.starts_with("sd") || disk == "DISK").then_some(echo),
        }
    }

    /// The kernel's schedulers that do nothing of their own, and those with deadlines.
    pub fn plain_schedulers(&self) -> Vec<Remedy> {
        match sched::shape_of(self.scheduler()) {
            Some(Shape::Single) => self.other_schedulers(&["deadline", "noop"]),
            _ => self.other_schedulers(&["mq-deadline", "none"]),
        }
    }

    /// Schedulers that share the disk out by weight.
    pub fn fair_schedulers(&self) -> Vec<Remedy> {
        self.other_schedulers(&["bfq", "cfq"])
    }
}

/// The most of a finding in one call: in one of the slowest, which are known to the nanosecond, or
/// of one part in another. Nothing if none of these is known.
fn longest(caller: &Caller, parts: &[&Part], of: impl Fn(&Part) -> Duration) -> Option<Duration> {
    let sum = |it: &Vec<Part>| it.iter().map(&of).fold(Duration::ZERO, |sum, it| sum + it);
    let slowest = caller.parts_of_slowest.iter().map(sum);
    // Of a part that counts by half nobody knows how much of its longest counts.
    let whole = parts.iter().filter(|it| of(it) == it.time).map(|it| it.longest);
    slowest.chain(whole).max().filter(|it| !it.is_zero())
}

/// Whether time is spent waiting until the device gets a request.
pub fn waits(layer: Layer) -> bool {
    layer.is_held() || matches!(layer, Layer::Others | Layer::Full | Layer::Tag)
}

/// A number of which the first two digits are kept.
fn two_digits(number: u64) -> u64 {
    let unit = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number / unit * unit
}

/// A time as people read it.
pub fn time(duration: Duration) -> String {
    human(duration.as_nanos() as f64, Kind::Time)
}

/// Seconds of a run, to the microsecond.
pub fn seconds(nanos: u64) -> String {
    format!("{:.6}", nanos as f64 / 1e9)
}
