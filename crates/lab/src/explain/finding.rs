//! What a detector says: who lost time by whom, the evidence, why, and what to change.

use crate::metrics::CallKind;
use base::{Duration, Instant};
use insight::Confidence;
use serde::{Serialize, Serializer};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// It takes a good part of somebody's time, and something can be done about it.
    Cause,
    /// It is worth knowing.
    Note,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The detector.
    pub name: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// What it is, in some words.
    pub title: String,
    /// So little beside the time that passes that it is no cause, though a change helps.
    #[serde(skip)]
    pub is_rare: bool,
    /// The same title if the culprit turns out to be none.
    #[serde(skip)]
    pub acquitted: Option<String>,
    /// The job that loses.
    pub victim: String,
    /// Its calls.
    #[serde(serialize_with = "kind_name")]
    pub kind: CallKind,
    /// What it has of the figure that was asked for, if that is of single calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_figure: Option<OfFigure>,
    /// By whom, if it is anybody in particular.
    pub culprit: Option<String>,
    /// What the victim's calls lost, together.
    #[serde(rename = "cost_ns")]
    pub cost: Duration,
    /// The same as a share of their time, from 0 to 1.
    pub share: f64,
    /// Counts, and where to look.
    pub evidence: Vec<String>,
    /// Of whom else the same is so, and what it costs each.
    pub others: Vec<String>,
    /// How that comes about.
    pub mechanism: &'static str,
    /// What to change.
    pub remedies: Vec<Remedy>,
    /// How sure it is that requests were withheld, where that is inferred.
    #[serde(serialize_with = "confidence_name")]
    pub confidence: Option<Confidence>,
    /// When it was first, and for how long then.
    #[serde(skip)]
    pub first: (Instant, Duration),
    /// It is a note unless one of the remedies helps.
    #[serde(skip)]
    pub suspected: bool,
    /// The victim is stopped when others have ended.
    #[serde(skip)]
    pub is_in_background: bool,
    /// The time that passes meanwhile, of what the calls lost: of many at once it is less.
    #[serde(skip)]
    pub passes: Duration,
    /// What it ranks by, if that is not its share of a figure.
    #[serde(skip)]
    pub ranks_by: Option<f64>,
    /// What the culprit may be held to, should it turn out to be to blame.
    #[serde(skip)]
    pub limit: Option<Remedy>,
    /// What comes of it if the culprit is not there, if that was tried.
    pub without: Option<Gain>,
}

/// What a finding has of a figure, such as a p99. Calls that make such a figure count alike: one
/// that takes much longer makes it no worse.
#[derive(Clone, Debug, Serialize)]
pub struct OfFigure {
    /// Its name.
    pub name: String,
    /// What it is; that of calls which take too long is no time.
    #[serde(rename = "value_ns")]
    pub value: Option<Duration>,
    /// The share of a call that makes it so, from 0 to 1.
    pub share: f64,
}

/// A change that may help.
#[derive(Clone, Debug, Serialize)]
pub struct Remedy {
    /// What to type.
    pub command: String,
    /// The same for the simulator, if it knows it.
    #[serde(skip)]
    pub change: Option<Change>,
    /// What came of it in the simulator, if it was tried.
    pub gain: Option<Gain>,
}

/// How a change begins that needs other parameters of the kernel.
pub const BOOT: &str = "boot with";
/// A change that makes calls so many times shorter shows that a guess was right.
const BORNE_OUT: f64 = 3.0;

/// A change of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another scheduler, on the same kernel; its name with what is set of it.
    Scheduler(String),
    /// Tunables of the scheduler there is, or settings of the queue or of memory.
    Values(Vec<(&'static str, i64)>),
    /// Settings or tunables as they are by default.
    Defaults(Vec<String>),
    /// The machine has so many bytes of memory.
    Memory(u64),
    /// The file system is mounted with an option.
    Mount(String),
    /// A job without an I/O priority of its own.
    Ioprio(String),
    /// A job with the usual I/O priority, whatever its nice value is.
    BestEffort(String),
    /// The files of a job have been written as a whole before.
    Written(String),
    /// A job on all cores.
    AllCores(String),
    /// A control group with another weight.
    Weight(String, u32),
    /// A control group whose own tasks have another weight among its children.
    LeafWeight(String, u32),
    /// A job with limits, as `io.max` has them.
    Limit(String, String),
    /// A job with a nice value.
    Nice(String, i8),
    /// A control group without limits.
    Unlimited(String),
    /// The device gets so many commands at a time.
    Depth(u32),
    /// A job is not there: what it costs others. It is a remedy where it takes no data with it.
    Without(String),
}

/// The same load with a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The mean of the victim's calls before, or the figure that was asked for.
    #[serde(rename = "before_ns")]
    pub before: Duration,
    /// And with the change.
    #[serde(rename = "after_ns")]
    pub after: Duration,
    /// How many times shorter that is, least and most over seeds.
    pub times: [f64; 2],
    /// Whose calls become longest at the same time, and how many times longer, if any do.
    pub price: Option<(String, f64)>,
    /// How many seeds were run.
    pub seeds: usize,
    /// What becomes of the figure by which the experiment judges, if that is of these calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
}

/// What becomes of the figure by which an experiment judges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// What it is, in the mean of seeds.
    #[serde(rename = "before_ns")]
    pub before: Duration,
    /// And with the change.
    #[serde(rename = "after_ns")]
    pub after: Duration,
}

impl Gain {
    /// How many times better it is by what is judged: the experiment's metric, or else the calls.
    pub fn counts(&self) -> f64 {
        let ratio =
            |it: &Metric| it.before.as_nanos().max(1) as f64 / it.after.as_nanos().max(1) as f64;
        self.metric.as_ref().map_or(self.times[0], ratio)
    }
}

impl Finding {
    /// Without whom it was blamed on nothing is better: it is no culprit.
    pub fn acquit(&mut self) {
        self.culprit = None;
        if self.is_rare {
            self.weight = Weight::Note;
        }
        if let Some(title) = self.acquitted.take() {
            self.title = title;
        }
    }

    /// It is a note, and becomes a cause when one of the remedies helps.
    pub fn suspect(&mut self) {
        (self.weight, self.suspected) = (Weight::Note, true);
    }

    /// What it counts for among others of its weight: the time that passes, or what it has of the
    /// figure that was asked for; twice where a change is known to help, and a little more where it
    /// helps much. What is seen in a run goes before what only a trial bears out.
    pub fn counts(&self) -> Duration {
        // That files written before help proves nothing of who is blamed besides.
        let is_other = |it: &&Remedy| matches!(it.change, Some(Change::Written(_)));
        let proving = self.remedies.iter().filter(|it| self.culprit.is_none() || !is_other(it));
        // Nor does it that somebody has more of what is taken from another.
        let proving = proving.filter(|it| !it.is_limit());
        let gains = proving.filter_map(|it| it.gain.as_ref());
        let best = gains.map(|it| it.times[0]).fold(1.0, f64::max);
        let is_guess = self.suspected && !self.is_setting() && best < BORNE_OUT;
        let worth = if best > 1.0 { 2.1 - 0.1 / best } else { 1.0 };
        let worth = worth * if is_guess { 0.8 } else { 1.0 };
        let lost = self.of_figure.as_ref().map(|it| {
            // Only the share tells findings about one figure apart.
            let share = self.ranks_by.unwrap_or(it.share);
            share * it.value.map_or(1e9, |it| it.as_nanos() as f64)
        });
        let lost = lost.unwrap_or(self.passes.as_nanos() as f64);
        Duration::from_nanos((lost * worth) as u64)
    }

    /// The same is so for somebody else.
    pub(super) fn add_victim(&mut self, other: &Finding) {
        let (cost, kind) = (super::case::time(other.cost), other.kind.name());
        let share = 100.0 * other.share;
        let line =
            format!("so for {}: {cost}, {share:.0} % of the time of its {kind}s", other.victim);
        self.others.push(line);
    }

    /// It is about what somebody has set, and holds only if the default is better.
    pub fn is_setting(&self) -> bool {
        self.name == super::detectors::SETTING
    }

    /// Whether it is more than a note.
    pub fn is_cause(&self) -> bool {
        self.weight == Weight::Cause
    }
}

impl Remedy {
    /// One that the simulator can try.
    pub fn tried(command: impl Into<String>, change: Change) -> Remedy {
        Remedy { command: command.into(), change: Some(change), gain: None }
    }

    /// Whether it takes from another on purpose.
    pub fn is_limit(&self) -> bool {
        matches!(self.change, Some(Change::Limit(..) | Change::Without(_)))
    }

    /// Whether the kernel has to be started with other parameters.
    pub fn needs_reboot(&self) -> bool {
        self.command.starts_with(BOOT)
    }

    /// One that it cannot.
    pub fn told(command: impl Into<String>) -> Remedy {
        Remedy { command: command.into(), change: None, gain: None }
    }
}

/// Whose something is, in words.
pub fn possessive(name: &str) -> String {
    if name.ends_with('s') { format!("{name}'") } else { format!("{name}'s") }
}

fn kind_name<S: Serializer>(kind: &CallKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

fn confidence_name<S: Serializer>(
    it: &Option<Confidence>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    it.map(Confidence::name).serialize(serializer)
}
