//! What a history consists of: what happened to requests, and what tasks asked of the block layer.

use super::Traced;
use base::{Duration, Instant};
use block::scheduler::Merge;
use block::{Bio, ContextId, Origin};
use trace::blktrace::runs;

/// What happened.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// When.
    pub at: Instant,
    /// Who was running, which need not be whose request it is.
    pub task: ContextId,
    /// To which request.
    pub rq: Traced,
    /// What.
    pub what: What,
}

/// What can happen to a request.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// There was no tag for its bio, and the task went to sleep. (Only where it can be told.)
    Starve,
    /// The task got a tag at last.
    Recover,
    /// It was allocated for its bio.
    Allocate,
    /// A bio was merged into it.
    Merge(Bio, Merge),
    /// It was inserted.
    Insert {
        /// Queued requests may have absorbed it.
        joins: bool,
        /// The task itself ran the queue when it had inserted all it held; else a worker did, some
        /// time later.
        runs: bool,
    },
    /// Without a scheduler: its plug was flushed, and it goes to the driver.
    Offer {
        /// It was flushed as one of so many.
        of: u32,
    },
    /// It was appended to another.
    Join {
        /// To this one.
        into: Traced,
        /// As in [`What::Insert`], if this was instead of being inserted.
        runs: Option<bool>,
    },
    /// The driver took it.
    Issue,
    /// The driver gave it back.
    Requeue,
    /// The device finished it.
    Complete,
    /// A flush without data is done, which was allocated then; no request is concerned.
    Flushed(Instant),
    /// The task that was running has exited; no request is concerned.
    Exit,
    /// A message told of a run of the queue; no request is concerned.
    Run(RunEvent),
    /// A message of the scheduler told that it was asked for a request.
    Ask(Answer),
}

/// What a scheduler that is asked for a request says that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It gives one.
    Gives,
    /// It looks at its queues, and gives none.
    Withholds,
    /// It does not look: it has none, or serves one request at a time.
    Refuses,
}

/// How BFQ says that it is asked.
const ASKED: &str = "bfq dispatch requests: ";

impl Answer {
    /// Whether a message says that the scheduler is asked; what it answers is said later.
    pub(super) fn is_asked(text: &str) -> bool {
        text.starts_with(ASKED)
    }

    /// What a message says that it answers.
    pub(super) fn of(text: &str) -> Option<Answer> {
        match text.split_once("select_queue: ")?.1 {
            "returned this queue" => Some(Answer::Gives),
            "no queue returned" => Some(Answer::Withholds),
            _ => None,
        }
    }
}

/// What messages tell of runs of the queue ([`trace::blktrace::runs`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// A worker will run it.
    Wanted,
    /// A worker begins to.
    Begins,
    /// A task has run it and sleeps now, because there is no tag.
    Sleeps,
}

impl RunEvent {
    /// What a message tells.
    pub fn of(message: &[u8]) -> Option<RunEvent> {
        let all = [
            (runs::WANTED, RunEvent::Wanted),
            (runs::BEGINS, RunEvent::Begins),
            (runs::SLEEPS, RunEvent::Sleeps),
        ];
        all.into_iter().find(|(says, _)| says.as_bytes() == message).map(|(_, event)| event)
    }
}

/// What a task asked of the block layer.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// When.
    pub at: Instant,
    /// Who, and on which core.
    pub origin: Origin,
    /// What.
    pub what: CallKind,
}

/// What a task may ask.
#[derive(Clone, Copy, Debug)]
pub enum CallKind {
    /// A bio was submitted while the task held requests back, or not.
    Submit {
        /// The bio.
        bio: Bio,
        /// Whether the request made of it was held back.
        plugged: bool,
    },
    /// The task's plug ended, or the task was about to sleep.
    Flush {
        /// It was about to sleep.
        blocks: bool,
    },
}

/// A look at the clock in a recording that states the times of its guest.
pub const LOOK: Duration = Duration::from_nanos(256);

/// When a task looks at the clock for a request that it holds back. Its plug remembers that time.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// When the request is recorded, as far as is known.
    AtRecord,
    /// A look before that (traced on 6.12.117).
    Before,
    /// A look behind it (traced on 7.3.4).
    Behind,
}

impl Look {
    /// When a request of this record's time was looked at the clock for; `is_interrupted`: the
    /// look for the record itself was, which then took twice as long.
    pub fn at(self, record: Instant, is_interrupted: bool) -> Instant {
        let looks = 1 + u64::from(is_interrupted);
        match self {
            Look::AtRecord => record,
            Look::Before => {
                let nanos = record.as_nanos().saturating_sub(looks * LOOK.as_nanos());
                Instant::from_nanos(nanos)
            }
            Look::Behind => record + LOOK,
        }
    }
}

/// Puts completions behind the choice that they came too late for. Whoever issues a list looks at
/// the clock before the first record of it, and nowhere between its choice and that. So a
/// completion that interrupts this look comes one look before, and after all that was chosen.
/// (Observed on 7.3.4 with Kyber: writes finish, and the reads that follow were chosen for want of
/// a token.) Behind a request that was issued it may be the second look of that one: then what
/// follows is chosen later.
pub(super) fn put_behind_choices(steps: &mut [Step]) {
    let mut at = 0;
    while at < steps.len() {
        let first = steps[at];
        let is_same = |step: &Step| {
            let is_aside = matches!(step.what, What::Complete | What::Run(RunEvent::Wanted));
            is_aside && step.at == first.at
        };
        let aside = steps[at..].iter().take_while(|step| is_same(step)).count();
        let issue = steps.get(at + aside).filter(|step| {
            let is_own = step.task == first.task && step.at == first.at + LOOK;
            is_own && matches!(step.what, What::Issue)
        });
        let was_issuing = at.checked_sub(1).map(|before| steps[before]).is_some_and(|before| {
            matches!(before.what, What::Issue) && first.at < before.at + LOOK + LOOK
        });
        if matches!(first.what, What::Complete) && issue.is_some() && !was_issuing {
            steps[at..=at + aside].rotate_right(1);
            steps[at].at = first.at;
        }
        at += aside.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_that_interrupts_the_look_of_who_issues_comes_after_the_choice() {
        let step = |nanos: u64, task, what| Step {
            at: Instant::from_nanos(nanos),
            task: ContextId(task),
            rq: 0,
            what,
        };
        let order = |steps: &[Step]| -> Vec<bool> {
            let mut steps = steps.to_vec();
            put_behind_choices(&mut steps);
            steps.iter().map(|step| matches!(step.what, What::Issue)).collect()
        };
        let (done, wanted) = (What::Complete, What::Run(RunEvent::Wanted));
        let all = |pid, late: u64| {
            let issue = step(512 + late, pid, What::Issue);
            [step(256, 1, done), step(256, 1, done), step(256, 1, wanted), issue]
        };
        assert_eq!(order(&all(1, 0)), [true, false, false, false]);
        assert_eq!(order(&all(2, 0)), [false, false, false, true]);
        assert_eq!(order(&all(1, 256)), [false, false, false, true]);
        let amid: Vec<Step> = [step(0, 1, What::Issue)].into_iter().chain(all(1, 0)).collect();
        assert_eq!(order(&amid), [true, false, false, false, true]);
    }
}
