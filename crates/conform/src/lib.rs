//! Decision fidelity: how far a scheduler of ours decides as the kernel's did.
//!
//! A recording of the kernel is put together to the lives of its requests (`history`), and replayed
//! (`slots`): arrivals, merges and completions as recorded; where the kernel issued its k-th
//! request, ours chooses its k-th, which completes when the kernel's k-th did. Only *contested*
//! decisions count: two or more requests could have been chosen, or none. Beside the agreement
//! stand what plain arrival order would get on the same recording (the null score), the agreement
//! of a free run of the whole queue (`free`), and the agreement on when a request was withheld.
//! Every disagreement has a class (`classes`); the first is explained with both states.
//!
//! The phase of the kernel's tick is not in a recording. Where it matters it is estimated: of some
//! that were tried, the one that agrees best, and it is stated.

mod agreement;
mod classes;
pub mod family;
mod free;
mod history;
mod messages;
mod parts;
mod replica;
mod runs;
mod search;
mod setup;
mod slots;

pub use classes::Class;
pub use history::Given;
pub use lab::recording::{Absent, Losses, PartSize};
pub use messages::MessageAgreement;
pub use replica::MergeDifferences;
pub use setup::{Options, Setup};

use base::{Duration, Instant, Sector, Sectors};
use block::Op;
use history::{History, Traced};
use lab::Error;
use lab::recording::{Parts, Recording};
use parts::Oddities;
use search::{Best, kernels};
use slots::{Assumed, Decision, Ours, Outcome, Until};
use std::collections::BTreeMap;
use std::path::Path;

/// How a scheduler agrees with the kernel on one recording.
#[derive(Clone, Debug)]
pub struct Conformity {
    /// The recording, as it was named.
    pub trace: String,
    /// The kernel whose rules were replayed.
    pub kernel: String,
    /// The scheduler.
    pub scheduler: &'static str,
    /// What differed from its defaults.
    pub tunables: Vec<(String, i64)>,
    /// Requests that the kernel's scheduler let go.
    pub dispatches: u64,
    /// Of these, contested decisions.
    pub contested: u64,
    /// Contested decisions taken with eight or more requests in the scheduler.
    pub contested_deep: u64,
    /// Contested decisions on which both agree.
    pub agreed: u64,
    /// Contested decisions that arrival order would have taken the same way.
    pub null_agreed: u64,
    /// Contested decisions in which a free run of the whole queue agrees.
    pub free_agreed: u64,
    /// Moments at which one of both withheld, and of these, those at which both did.
    pub withheld: (u64, u64),
    /// Bios that ours would have merged elsewhere, or not at all.
    pub merges_that_differ: MergeDifferences,
    /// Disagreements, by class, contested or not.
    pub classes: BTreeMap<Class, u64>,
    /// Where the orders first part.
    pub first_difference: Option<Difference>,
    /// The shift of the tick that agreed best, if any was needed.
    pub tick_phase: Option<Duration>,
    /// What the scheduler said, where the kernel's said anything.
    pub messages: Option<MessageAgreement>,
    /// Files beside the recording that are missed, with what they would have told.
    pub absent: Vec<Absent>,
    /// What of the recording is not there.
    pub losses: Losses,
    /// What of that was given back.
    pub given: Given,
    /// Decisions that are not judged, because something was missing that they depend on.
    pub excluded: u64,
    /// What else a reader should know.
    pub remarks: Vec<String>,
    oddities: Oddities,
}

/// A decision on which the kernel and ours disagree.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Number of the decision, from 0.
    pub number: usize,
    /// When, from the start of the recording.
    pub at: Duration,
    /// What kind of disagreement.
    pub class: Class,
    /// What the kernel issued.
    pub kernel: Shown,
    /// What ours chose, if anything.
    pub ours: Option<Shown>,
    /// Why ours did.
    pub reason: String,
    /// Requests waiting in the kernel's scheduler: reads and writes.
    pub waiting: (u32, u32),
    /// What the kernel had issued before.
    pub before: Vec<Shown>,
    /// The state of our scheduler just before.
    pub state: String,
}

/// A request, for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What it does.
    pub op: Op,
    /// Where.
    pub sector: Sector,
    /// How much.
    pub sectors: Sectors,
    /// How long it had waited.
    pub waited: Duration,
}

impl Conformity {
    /// Agreement in percent of contested decisions; `None` if there were none.
    pub fn agreement(&self) -> Option<f64> {
        percent(self.agreed, self.contested)
    }

    /// What arrival order would get.
    pub fn null_agreement(&self) -> Option<f64> {
        percent(self.null_agreed, self.contested)
    }

    /// What a free run gets.
    pub fn free_running(&self) -> Option<f64> {
        percent(self.free_agreed, self.contested)
    }

    /// Agreement on when a request was withheld; `None` if nobody withheld any.
    pub fn withheld_agreement(&self) -> Option<f64> {
        percent(self.withheld.1, self.withheld.0)
    }
}

/// Compares a scheduler with a recording: a file, the name of a recording, or a directory with one.
/// A long one is read and judged part by part, unless the scheduler remembers too much for that.
pub fn conform(path: &Path, options: &Options) -> Result<Conformity, Error> {
    let device = options.device.as_deref();
    let mut parts = Parts::open(path, device, options.part)?;
    let setup = Setup::new(parts.manifest(), options, &path.display().to_string())?;
    if setup.remembers_all() {
        parts = Parts::open(path, device, PartSize::WHOLE)?;
    }
    let mut whole: Option<Conformity> = None;
    while let Some((part, again)) = parts.next_part()? {
        let judged = judge_part(part, again, options)?;
        match &mut whole {
            Some(whole) => whole.append(judged),
            None => whole = Some(judged),
        }
    }
    Ok(whole.expect("a recording has events").with_remarks())
}

/// Compares a scheduler with a recording that is at hand.
pub fn conform_recording(recording: &Recording, options: &Options) -> Result<Conformity, Error> {
    Ok(judge_part(recording, 0, options)?.with_remarks())
}

/// Judges the decisions of a part, of whose records the first were judged with the part before.
fn judge_part(part: &Recording, again: usize, options: &Options) -> Result<Conformity, Error> {
    let setup = Setup::new(&part.manifest, options, &part.name)?;
    let since = if again > 0 { part.records[again].time } else { Instant::ZERO };
    let history = History::read(setup.era(), part, since);
    let judged = judge(part.name.clone(), &history, &setup);
    let (absent, losses) = (part.absent.clone(), part.losses.clone());
    let remarks = part.remarks.clone();
    Ok(Conformity { absent, losses, remarks, given: history.given, ..judged })
}

fn judge(trace: String, history: &History, setup: &Setup) -> Conformity {
    let Best { phase, assumed, outcome, agrees } = Best::of(history, setup);
    let decisions = &outcome.decisions;
    let is_new = |it: &&Decision| it.at >= history.since;
    let contested = |index: &usize| decisions[*index].contested && is_new(&&decisions[*index]);
    let count = |agrees: &[bool]| {
        (0..decisions.len()).filter(contested).filter(|index| agrees[*index]).count() as u64
    };
    let classes = classes_of(history, setup, &outcome, &agrees);
    let deep = (0..decisions.len()).filter(contested).filter(|it| decisions[*it].waiting >= 8);
    Conformity {
        trace,
        messages: messages::compare_since(history.since, &history.messages, &outcome.messages),
        kernel: setup.kernel.version.to_string(),
        scheduler: setup.spec.name,
        tunables: setup.spec.tunables.clone(),
        dispatches: decisions.iter().filter(is_new).count() as u64,
        contested: (0..decisions.len()).filter(contested).count() as u64,
        contested_deep: deep.count() as u64,
        agreed: count(&agrees),
        null_agreed: count(&null(history, decisions)),
        free_agreed: count(&free::agreement(history, setup, decisions, phase)),
        withheld: (outcome.withheld, outcome.both_withheld),
        merges_that_differ: outcome.merges_that_differ,
        first_difference: first_difference(history, setup, (phase, &assumed), &outcome, &agrees),
        classes,
        tick_phase: Some(phase).filter(|it| !it.is_zero() && !setup.ticks_begin_with_clock),
        absent: Vec::new(),
        losses: Losses::default(),
        given: Given::default(),
        excluded: decisions.iter().filter(is_new).filter(|it| !it.judged).count() as u64,
        remarks: Vec::new(),
        oddities: Oddities::of(history, &outcome),
    }
}

/// What plain arrival order would get: at each place the oldest request, whatever came of it.
fn null(history: &History, decisions: &[Decision]) -> Vec<bool> {
    use history::What;
    let arrivals = history.steps.iter().filter(|step| matches!(step.what, What::Insert { .. }));
    let order: BTreeMap<Traced, usize> =
        arrivals.enumerate().map(|(place, step)| (step.rq, place)).collect();
    let mut ours = kernels(decisions);
    ours.sort_by_key(|(period, rq)| (*period, order.get(rq)));
    agreement::common(&kernels(decisions), &ours)
}

fn classes_of(
    history: &History,
    setup: &Setup,
    outcome: &Outcome,
    agrees: &[bool],
) -> BTreeMap<Class, u64> {
    let mut classes = BTreeMap::new();
    let mut apart = None;
    for (index, decision) in outcome.decisions.iter().enumerate() {
        if decision.at >= history.since && decision.told && agrees[index] {
            *classes.entry(Class::UnseenRun).or_insert(0) += 1;
        }
        if decision.at < history.since || agrees[index] && !decision.merged_differently {
            continue;
        }
        let before = apart == Some(decision.period);
        let class = classes::classify(history, setup, &outcome.decisions, index, before);
        *classes.entry(class).or_insert(0) += 1;
        apart = Some(decision.period);
    }
    classes
}

fn first_difference(
    history: &History,
    setup: &Setup,
    (phase, assumed): (Duration, &Assumed),
    outcome: &Outcome,
    agrees: &[bool],
) -> Option<Difference> {
    let parts = |it: &Decision| !it.agrees();
    let differs = |index: &usize| !agrees[*index] || outcome.decisions[*index].merged_differently;
    let old = outcome.decisions.iter().filter(|it| it.at < history.since).count();
    let missing = (old..agrees.len()).find(differs)?;
    // The orders part where the choices do, which may be before the request that is missed.
    let number = outcome.decisions[old..missing]
        .iter()
        .position(|it| parts(it) && it.period == outcome.decisions[missing].period)
        .map_or(missing, |place| old + place);
    let decision = &outcome.decisions[number];
    let until = Until::Described(number);
    let state = slots::replay(history, setup, phase, until, assumed).described;
    let start = history.steps.first().map_or(Instant::ZERO, |step| step.at);
    let inserted = inserted(history);
    let show = |rq: Traced| {
        let life = &history.requests[rq];
        let since = inserted.get(&rq).copied().unwrap_or(decision.at);
        let waited = decision.at.saturating_since(since);
        Shown { op: life.bio.op, sector: life.sector, sectors: life.sectors, waited }
    };
    let before = outcome.decisions[number.saturating_sub(3)..number].iter();
    Some(Difference {
        number: number - old,
        at: decision.at.since(start),
        class: classes::classify(history, setup, &outcome.decisions, number, false),
        kernel: show(decision.kernel),
        ours: decision.ours.request().map(show),
        reason: match decision.ours {
            Ours::Chose(_, reason) => reason.to_string(),
            Ours::Parked(_) => "chosen before and parked".to_string(),
            Ours::Held(reason) => reason.to_string(),
            Ours::Nothing => "nothing is queued".to_string(),
        },
        waiting: decision.directions,
        before: before.map(|it| show(it.kernel)).collect(),
        state: state.unwrap_or_default(),
    })
}

fn inserted(history: &History) -> BTreeMap<Traced, Instant> {
    let steps = history.steps.iter();
    let insertions = steps.filter(|step| matches!(step.what, history::What::Insert { .. }));
    insertions.map(|step| (step.rq, step.at)).collect()
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}
