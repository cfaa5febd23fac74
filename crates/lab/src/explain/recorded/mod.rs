//! A recording, explained: where the time of its requests went, by task, and what caused it.
//!
//! A request counts as a call of the task that made it, so the same detectors look at recordings
//! and at runs. A recording gives no reasons: what was withheld is inferred, and findings say how
//! sure that is. Memory is bounded by what is under way, whatever the length.

mod calls;
mod known;
mod turns;

pub use known::{Known, Turns};

use super::account::{Account, Caller};
use super::case::{Case, Of};
use super::detectors;
use super::finding::Finding;
use crate::error::Error;
use crate::recording::manifest::Manifest;
use crate::recording::tasks::{Owners, Tasks};
use crate::recording::{RESULT, base_of, check_devices};
use base::{Duration, Instant};
use block::{Action, CgroupId, Event, IoContextId, Ioprio};
use calls::Requests;
use insight::Life;
use insight::histogram::{Layers, Service};
use insight::intervals::Intervals;
use insight::phases::Phases;
use insight::recorded::{Misfits, Stream, Told};
use known::Labels;
use machine::TaskInfo;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace::Format;
use trace::blktrace::{DevT, Payload, Record};

/// The length of the intervals that are counted; those that are shown are longer.
const INTERVAL: Duration = Duration::from_millis(10);

/// How a recording is to be read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// So many of the slowest requests are kept.
    pub slowest: usize,
    /// Its device, where it has several: `MAJOR,MINOR`.
    pub device: Option<String>,
    /// Its format, where its content does not tell.
    pub format: Option<Format>,
}

/// A recording, explained.
pub struct Explained {
    /// The path that was asked for.
    pub path: String,
    /// Records in it.
    pub records: u64,
    /// Requests that are done.
    pub requests: u64,
    /// The device.
    pub device: String,
    /// The first event and the last one.
    pub span: (Instant, Instant),
    /// The kernel, if that is known.
    pub kernel: Option<String>,
    /// Who had requests, those who waited longest first.
    pub callers: Vec<Caller>,
    /// Phases as `btt` has them.
    pub phases: Phases,
    /// What the device did, by time.
    pub intervals: Intervals,
    /// How the time of requests is distributed, by layer.
    pub layers: Layers,
    /// How long the device had requests.
    pub service: Service,
    /// The slowest requests, the slowest first.
    pub slowest: Vec<Life>,
    /// What was found, the dearest cause first.
    pub findings: Vec<Finding>,
    /// What else is known.
    pub known: Known,
    /// What did not fit.
    pub misfits: Misfits,
    /// Requests that were under way at the end.
    pub unfinished: usize,
    /// What a reader should know.
    pub remarks: Vec<String>,
    labels: Labels,
}

impl Explained {
    /// What a task is called.
    pub fn name(&self, task: block::ContextId) -> String {
        self.labels.of(task)
    }

    /// The tasks that have names, for a timeline.
    pub fn tasks(&self) -> Vec<TaskInfo> {
        let task = |context| TaskInfo {
            context,
            name: self.name(context),
            job: None,
            io_context: IoContextId(context.0),
            cgroup: CgroupId::ROOT,
            ioprio: Ioprio::NONE,
        };
        self.labels.tasks().map(task).collect()
    }
}

/// What is added up while a recording is read.
struct Sums {
    requests: Requests,
    account: Account,
    phases: Phases,
    intervals: Intervals,
    layers: Layers,
    service: Service,
    slowest: Vec<Life>,
    most: usize,
    first: Option<Instant>,
    last: Instant,
}

impl Sums {
    fn new(most: usize) -> Sums {
        Sums {
            requests: Requests::default(),
            account: Account::new(0),
            phases: Phases::default(),
            intervals: Intervals::new(INTERVAL),
            layers: Layers::default(),
            service: Service::default(),
            slowest: Vec::new(),
            most,
            first: None,
            last: Instant::ZERO,
        }
    }

    fn hear(&mut self, told: Told) {
        if let Told::Event(event) = told {
            self.first.get_or_insert(event.at);
            self.last = self.last.max(event.at);
            self.requests.see(event);
        }
        self.phases.hear(told);
        self.intervals.hear(told);
    }

    fn end(&mut self, life: &Life) {
        self.account.add(self.requests.end(life));
        self.layers.see(life);
        self.service.see(life);
        let place = self.slowest.partition_point(|it| it.total() >= life.total());
        if place < self.most {
            self.slowest.insert(place, life.clone());
            self.slowest.truncate(self.most);
        }
    }
}

/// What the records tell beside their events.
#[derive(Default)]
struct Survey {
    devices: BTreeMap<DevT, u64>,
    owners: Owners,
    /// The scheduler that says something.
    speaks: Option<&'static str>,
}

impl Survey {
    fn take(&mut self, record: &Record) {
        self.owners.take(record);
        if let Payload::Message(text) = &record.payload {
            let begins = |name: &&&str| text.starts_with(name.as_bytes());
            self.speaks = self.speaks.or(["cfq", "bfq"].iter().find(begins).copied());
        } else if !record.action.is_note() && record.action != trace::blktrace::Action::Remap {
            *self.devices.entry(record.device).or_insert(0) += 1;
        }
    }
}

/// Explains the recording that a path means; `sink` gets each request when it is done.
pub fn explain(
    path: &Path,
    options: &Options,
    sink: &mut dyn FnMut(&Life),
) -> Result<Explained, Error> {
    let base = base_of(path)?;
    let place = path.display().to_string();
    let device = options.device.as_deref().map(device_of).transpose()?;
    let mut records = trace::read_events(&base, options.format)?;
    let (mut stream, mut survey) = (Stream::new(device), Survey::default());
    let mut sums = Sums::new(options.slowest);
    let mut drain = |stream: &mut Stream, sums: &mut Sums| {
        stream.show_lives(|life| {
            sums.end(life);
            sink(life);
        });
    };
    records.show_all(|record| {
        survey.take(record);
        stream.take(record, &mut |told| sums.hear(told));
        drain(&mut stream, &mut sums);
    })?;
    stream.finish(&mut |told| sums.hear(told));
    drain(&mut stream, &mut sums);
    check_devices(&place, options.device.as_deref(), &survey.devices)?;
    if sums.requests.count() == 0 {
        let accepted = "a recording with requests that were issued and completed";
        return Err(Error::bad(place, "no request in it is done", accepted));
    }
    finish(path, &base, stream, survey, sums, records.losses())
}

/// Puts together what there is to say.
fn finish(
    path: &Path,
    base: &Path,
    stream: Stream,
    survey: Survey,
    sums: Sums,
    remarks: Vec<String>,
) -> Result<Explained, Error> {
    let directory = base.parent().filter(|it| !it.as_os_str().is_empty()).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| PathBuf::from("."));
    let manifest = Manifest::beside(&directory)?.unwrap_or_default();
    let result = std::fs::read(directory.join(RESULT)).unwrap_or_default();
    let result = String::from_utf8_lossy(&result);
    let tasks = Tasks::new(&manifest, &result, stream.names(), &survey.owners);
    let labels = Labels::new(stream.names(), sums.requests.tasks());
    let Sums { requests, account, phases, intervals, layers, service, slowest, .. } = sums;
    let (first, last) = (sums.first, sums.last);
    let count = requests.count();
    let callers = account.finish(|task| labels.of(task));
    let span = (first.unwrap_or_default(), last);
    let mut known = Known::new(&manifest, survey.speaks, base);
    known.begin = span.0;
    known.elapsed = span.1.saturating_since(span.0);
    known.mean_depth = (phases.depth() * 1000.0) as u64;
    if !known.states_depth {
        known.facts.queue_depth = phases.most.max(1);
    }
    known.take_tasks(&tasks, &labels);
    known.take_requests(requests, &labels);
    let findings = detectors::detect_in_recording(&Case::of(Of::Recording(&known), &callers));
    Ok(Explained {
        path: path.display().to_string(),
        records: stream.records(),
        requests: count,
        device: stream.device().map(|it| it.to_string()).unwrap_or_default(),
        span,
        kernel: manifest.kernel.clone(),
        callers,
        phases,
        intervals,
        layers,
        service,
        slowest,
        findings,
        known,
        misfits: stream.misfits().clone(),
        unfinished: stream.under_way(),
        remarks,
        labels,
    })
}

/// The device that `MAJOR,MINOR` names.
fn device_of(name: &str) -> Result<DevT, Error> {
    let numbers = name.split_once(',');
    let parsed = numbers.and_then(|(major, minor)| {
        Some(DevT::new(major.trim().parse().ok()?, minor.trim().parse().ok()?))
    });
    let refuse = || Error::bad("--trace-device", format!("\"{name}\""), "MAJOR,MINOR, such as 8,0");
    parsed.ok_or_else(refuse)
}

/// Whether an event is of a bio or a request that comes in.
fn arrives(event: &Event) -> bool {
    matches!(event.action, Action::Queue | Action::GetRequest)
}
