//! What a history consists of: what happened to requests, and what tasks asked of the block layer.

use super::Traced;
use base::Instant;
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
