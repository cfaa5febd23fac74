//! Why two schedulers chose differently: a closed list.

use crate::history::History;
use crate::setup::Setup;
use crate::slots::{Decision, Ours};
use base::Duration;
use block::{Direction, DispatchReason};
use std::fmt;

/// The kind of a disagreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// One saw a deadline passed that the other did not, within a tick of it.
    ExpiryTick,
    /// One ended a batch, or turned to the other direction, where the other did not.
    BatchBoundary,
    /// The request has another size, or was joined with another one.
    MergeDifference,
    /// Both chose a request with the same first sector.
    EqualSectors,
    /// The choice fell before an arrival that the other saw: the same two requests, exchanged; or
    /// ours would have let its request go before.
    Parked,
    /// A clock that is moved by less than a recording is exact to decides: ours then takes the
    /// kernel's request, and goes on from there.
    Clock,
    /// Ours withheld where the kernel issued.
    Withheld,
    /// No disagreement: the kernel's choice tells whether the queue had been run before, which left
    /// no record, or where it searched for a token; either way the recording could be as it is. Not
    /// judged.
    UnseenRun,
    /// Nothing had been issued before in the recording: what the kernel remembered is not known.
    UnknownStart,
    /// Within a busy period in which the orders had parted before; ours holds other requests.
    Consequence,
    /// None of these.
    Unexplained,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 11] = [
        Class::ExpiryTick,
        Class::BatchBoundary,
        Class::MergeDifference,
        Class::EqualSectors,
        Class::Parked,
        Class::Clock,
        Class::Withheld,
        Class::UnseenRun,
        Class::UnknownStart,
        Class::Consequence,
        Class::Unexplained,
    ];

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Class::ExpiryTick => "expiry_tick",
            Class::BatchBoundary => "batch_boundary",
            Class::MergeDifference => "merge_difference",
            Class::EqualSectors => "equal_sectors",
            Class::Parked => "parked",
            Class::Clock => "clock",
            Class::Withheld => "withheld",
            Class::UnseenRun => "unseen_run",
            Class::UnknownStart => "unknown_start",
            Class::Consequence => "consequence",
            Class::Unexplained => "unexplained",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Steps between an insertion and a choice that may have been made before it (assumed: the time
/// a worker needs to be scheduled).
const PARKED_WITHIN: Duration = Duration::from_micros(200);

/// The class of decision `index`, on which the kernel and ours disagree; `apart`: they have
/// disagreed in this busy period before.
pub fn classify(
    history: &History,
    setup: &Setup,
    decisions: &[Decision],
    index: usize,
    apart: bool,
) -> Class {
    let decision = &decisions[index];
    let kernel = &history.requests[decision.kernel];
    if decision.is_close {
        return Class::Clock;
    }
    if decision.merged_differently {
        return Class::MergeDifference;
    }
    let Some(ours) = decision.ours.request() else { return Class::Withheld };
    let other = &history.requests[ours];
    if (kernel.sector, kernel.bio.op) == (other.sector, other.bio.op) {
        return Class::EqualSectors;
    }
    if expires_nearby(setup, decision, kernel.bio.direction()) {
        return Class::ExpiryTick;
    }
    if is_exchange(decisions, index) {
        return Class::Parked;
    }
    if apart {
        return Class::Consequence;
    }
    if setup.remembers_runs() && matches!(decision.ours, Ours::Parked(_)) {
        return Class::Parked;
    }
    let is_start = matches!(
        decision.ours,
        Ours::Chose(_, reason) if reason != DispatchReason::BatchContinues
    );
    if is_start && decision.period == 0 && index < FIRST_DECISIONS {
        return Class::UnknownStart;
    }
    if kernel.bio.direction() != other.bio.direction() || is_start {
        return Class::BatchBoundary;
    }
    Class::Unexplained
}

/// Decisions that what came before the recording can have influenced: batches of both directions
/// until writes had their turn (rule deadline-6).
const FIRST_DECISIONS: usize = 48;

/// Whether the age of a request lies within a tick of its deadline.
fn expires_nearby(setup: &Setup, decision: &Decision, direction: Direction) -> bool {
    let ours_expired = matches!(decision.ours, Ours::Chose(_, DispatchReason::Expired));
    if !decision.was_oldest && !ours_expired {
        return false;
    }
    let name = match direction {
        Direction::Read => "read_expire",
        Direction::Write => "write_expire",
    };
    let set = setup.spec.tunables.iter().find(|(known, _)| known == name).map(|it| it.1);
    let default = setup.spec.tunable(name).and_then(|tunable| tunable.default);
    let Some(expire) = set.or(default) else { return false };
    let expire = Duration::from_millis(u64::try_from(expire).unwrap_or(0));
    let age = decision.at.saturating_since(decision.inserted);
    let distance = age.saturating_sub(expire).max(expire.saturating_sub(age));
    distance <= setup.kernel.hz.tick()
}

/// Whether ours chose here what the kernel chose next, or before, and the other way round, and one
/// of the two had just arrived.
fn is_exchange(decisions: &[Decision], index: usize) -> bool {
    let here = &decisions[index];
    let neighbours = [index.checked_sub(1), index.checked_add(1)];
    neighbours.into_iter().flatten().filter_map(|at| decisions.get(at)).any(|there| {
        let exchanged =
            there.ours.request() == Some(here.kernel) && here.ours.request() == Some(there.kernel);
        let fresh = |it: &Decision| here.at.saturating_since(it.inserted) <= PARKED_WITHIN;
        exchanged && (fresh(here) || fresh(there))
    })
}
