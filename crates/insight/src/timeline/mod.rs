//! The timeline of a run, as a picture of it needs it: lanes, requests in columns, held periods,
//! arrows, and sums over buckets of time for whoever sees too much at once.
//!
//! It knows nothing of how it is shown. Times are counted in *ticks*, which are nanoseconds unless
//! the run has very many requests.

mod calls;
mod columns;
pub mod keeper;
mod lanes;
pub mod outline;
mod pyramid;
mod requests;
mod rows;
pub mod spread;
pub mod watch;

use crate::calls::Call;
use crate::layer::Layer;
use crate::life::Life;
use base::Instant;
use block::{CgroupId, ContextId, DispatchReason, HoldReason};
pub use calls::{CALLS, CallBar, Calls, Chain, Link};
pub use columns::{Column, Columns};
use lanes::Lanes;
pub use lanes::{Lane, LaneKind};
use machine::TaskInfo;
use outline::Outline;
pub use pyramid::{FULL, Pyramid, Series};
pub use requests::{OPERATIONS, Requests, Span};

/// From so many requests on a nanosecond is more than a picture can use.
const MANY: usize = 200_000;
/// A tick of such a run, in nanoseconds: a hundredth of the shortest time that can be seen.
const COARSE_TICK: u64 = 100;

/// What a timeline is made of.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Whose run it is, such as the name of a scheduler.
    pub title: String,
    /// When the run ended.
    pub end: Instant,
    /// Requests that are done, in any order.
    pub lives: Vec<Life>,
    /// Tasks of which something is known.
    pub tasks: Vec<TaskInfo>,
    /// What control groups are called.
    pub groups: Vec<(CgroupId, String)>,
    /// When the scheduler withheld requests.
    pub held: Vec<Held>,
    /// What led from one task to another.
    pub arrows: Vec<Arrow>,
    /// System calls, in any order.
    pub calls: Vec<CallBar>,
    /// Calls whose critical paths are to be shown by themselves.
    pub paths: Vec<Call>,
    /// The times of which everything is there, if that is not the whole run.
    pub kept: Vec<(Instant, Instant)>,
    /// Of such a run what is known of all of it.
    pub outline: Option<Outline>,
}

impl Recorded {
    /// Whether there are requests that are not among `lives`.
    pub fn is_cut(&self) -> bool {
        self.outline.is_some()
    }

    /// How many requests the run has.
    pub fn requests(&self) -> usize {
        self.outline.as_ref().map_or(self.lives.len(), Outline::requests)
    }

    /// The same, with time counted from when a recording begins.
    pub fn as_if_begun(self, begin: Instant) -> Recorded {
        let since = |at: Instant| Instant::ZERO + at.saturating_since(begin);
        let kept = self.kept.into_iter().map(|(from, to)| (since(from), since(to)));
        Recorded {
            end: since(self.end),
            lives: self.lives.into_iter().map(|life| life.as_if_begun(begin)).collect(),
            kept: kept.collect(),
            outline: self.outline.map(|it| it.as_if_begun(begin)),
            ..self
        }
    }
}

/// A period in which the scheduler withheld requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Since when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// Why.
    pub reason: HoldReason,
    /// For whom, if it was anybody in particular.
    pub waits_for: Option<ContextId>,
}

/// A step of a critical path from one task to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// When.
    pub at: Instant,
    /// Whose work was done.
    pub from: ContextId,
    /// Whose work could go on.
    pub to: ContextId,
}

/// A held period, in ticks and by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSpan {
    /// Since when.
    pub from: u64,
    /// How long.
    pub length: u64,
    /// The reason, by its place in [`Timeline::kinds`].
    pub kind: usize,
    /// The lane of the task that is waited for.
    pub waits_for: Option<usize>,
}

/// A step from one task's lane to another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, in ticks.
    pub at: u64,
    /// From this lane.
    pub from: usize,
    /// To this one.
    pub to: usize,
}

/// The timeline of a run.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Whose run it is.
    pub title: String,
    /// Nanoseconds of a tick.
    pub tick: u64,
    /// When the run ended, in ticks.
    pub end: u64,
    /// From top to bottom.
    pub lanes: Vec<Lane>,
    /// Layers that occur; others speak of them by their places here.
    pub kinds: Vec<Layer>,
    /// Reasons of dispatches that occur.
    pub reasons: Vec<DispatchReason>,
    /// The requests.
    pub requests: Requests,
    /// Held periods, the first one first.
    pub held: Vec<HeldSpan>,
    /// Steps of critical paths, the first one first.
    pub steps: Vec<Step>,
    /// System calls.
    pub calls: Calls,
    /// Critical paths that are shown by themselves.
    pub chains: Vec<Chain>,
    /// Sums over buckets of time.
    pub pyramid: Pyramid,
    /// From when until when requests are there one by one, in ticks, if that is not the whole run.
    pub kept: Vec<(u64, u64)>,
}

impl Timeline {
    /// The timeline of what was recorded.
    pub fn of(mut recorded: Recorded) -> Timeline {
        recorded.lives.sort_by_key(|life| (life.queued, life.issued, life.sector));
        recorded.held.sort_by_key(|held| held.from);
        recorded.arrows.sort_by_key(|arrow| arrow.at);
        recorded.calls.sort_by_key(|call| (call.from, call.task));
        let tick = if recorded.lives.len() < MANY { 1 } else { COARSE_TICK };
        let kinds = kinds(&recorded);
        let mut lanes = Lanes::of(&recorded);
        let last = recorded.lives.iter().map(|life| life.end()).max().unwrap_or_default();
        let end = recorded.end.max(last).as_nanos() / tick + 1;
        let mut requests = Requests::of(&recorded.lives, &lanes, &kinds, tick);
        rows::assign(&mut requests, &mut lanes.lanes);
        let calls = Calls::of(&recorded.calls, &mut lanes, tick);
        let chains = recorded.paths.iter().map(|it| Chain::of(it, &lanes, tick)).collect();
        let held = held(&recorded, &lanes, &kinds, tick);
        let steps = steps(&recorded, &lanes, tick);
        let pyramid = match &recorded.outline {
            Some(outline) => Pyramid::of_outline(outline, &lanes, &kinds, tick),
            None => Pyramid::of(&requests, &held, &lanes.lanes, end),
        };
        let ticks = |at: Instant| at.as_nanos() / tick;
        let kept = recorded.kept.iter().map(|(from, to)| (ticks(*from), ticks(*to))).collect();
        let reasons = requests.reasons.clone();
        let lanes = lanes.lanes;
        let title = recorded.title;
        Timeline {
            title,
            tick,
            end,
            lanes,
            kinds,
            reasons,
            requests,
            held,
            steps,
            calls,
            chains,
            pyramid,
            kept,
        }
    }

    /// Everything that is many, in columns of bytes.
    pub fn columns(&self) -> Columns {
        let mut columns = Columns::default();
        self.requests.encode(&mut columns);
        columns.deltas("held_from", self.held.iter().map(|it| it.from));
        columns.numbers("held_length", self.held.iter().map(|it| it.length));
        columns.numbers("held_kind", self.held.iter().map(|it| it.kind as u64));
        let waits_for = |it: &HeldSpan| it.waits_for.map_or(0, |lane| lane as u64 + 1);
        columns.numbers("held_for", self.held.iter().map(waits_for));
        columns.deltas("step_at", self.steps.iter().map(|it| it.at));
        columns.numbers("step_from", self.steps.iter().map(|it| it.from as u64));
        columns.numbers("step_to", self.steps.iter().map(|it| it.to as u64));
        self.calls.encode(&mut columns);
        self.pyramid.encode(&mut columns);
        columns
    }
}

/// The layers that occur, in the order of the closed list.
fn kinds(recorded: &Recorded) -> Vec<Layer> {
    let mut seen = std::collections::BTreeSet::new();
    for life in &recorded.lives {
        seen.extend(life.layers.iter().map(|(layer, _)| *layer));
    }
    seen.extend(recorded.held.iter().map(|it| Layer::Held(it.reason)));
    seen.extend(recorded.outline.iter().flat_map(Outline::layers));
    seen.into_iter().collect()
}

fn held(recorded: &Recorded, lanes: &Lanes, kinds: &[Layer], tick: u64) -> Vec<HeldSpan> {
    let span = |it: &Held| {
        let (from, to) = (it.from.as_nanos() / tick, it.to.as_nanos() / tick);
        let layer = Layer::Held(it.reason);
        let kind = kinds.iter().position(|kind| *kind == layer).unwrap_or(0);
        // Who is waited for may never have asked.
        let waits_for = it.waits_for.map(|who| lanes.of_task(who)).filter(|lane| *lane > 0);
        HeldSpan { from, length: to.saturating_sub(from), kind, waits_for }
    };
    recorded.held.iter().map(span).collect()
}

/// Arrows between tasks that have lanes of their own.
fn steps(recorded: &Recorded, lanes: &Lanes, tick: u64) -> Vec<Step> {
    let step = |it: &Arrow| {
        let (from, to) = (lanes.of_task(it.from), lanes.of_task(it.to));
        (from != to).then_some(Step { at: it.at.as_nanos() / tick, from, to })
    };
    recorded.arrows.iter().filter_map(step).collect()
}
