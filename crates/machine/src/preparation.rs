//! What is done before the jobs begin: a program that leaves a state behind, such as files, cached
//! pages, a journal and a head that stands somewhere.
//!
//! It begins at time zero of the machine. The jobs begin at the second whole second after it has
//! ended, as in the world linux, and from then on time is counted for everybody outside:
//! an observer sees nothing of what was before, nor the end of what had begun before.

use crate::jobs::JobState;
use base::Instant;
use block::{Action, Event};

/// How far the preparation of a run has come. It is a job behind the others.
#[derive(Debug, Default)]
pub(crate) struct Preparation {
    /// How many other jobs there are.
    jobs: usize,
    /// When they begin, as soon as that is known.
    begins: Option<Instant>,
    /// What of it failed, in its own words.
    failed: Option<String>,
}

impl Preparation {
    /// Before so many jobs.
    pub fn before(jobs: usize) -> Preparation {
        Preparation { jobs, ..Preparation::default() }
    }

    /// How many other jobs there are; it has the next number.
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// It has ended, or there was none: the jobs begin then.
    pub fn is_over(&mut self, begins: Instant) {
        self.begins = Some(begins);
    }

    /// Notes what of it failed.
    pub fn blame(&mut self, line: &str) {
        self.failed = Some(line.to_string());
    }

    /// Whether it has failed, so that nothing else happens.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Whether the jobs are to come or there already.
    pub fn is_done(&self) -> bool {
        self.begins.is_some()
    }

    /// Whether this is the preparation and no other job.
    pub fn is_it(&self, job: Option<usize>) -> bool {
        job.is_some_and(|job| job >= self.jobs)
    }

    /// Takes itself away from the jobs of a run; the error is what of it failed,
    /// and why.
    pub fn finish(&self, jobs: &mut Vec<JobState>) -> Result<(), (String, String)> {
        let shell = jobs.split_off(self.jobs).pop();
        let Some((line, shell)) = self.failed.clone().zip(shell) else { return Ok(()) };
        let status = shell.ended.map_or(0, |(_, status)| status);
        let said = shell.messages.join("; ");
        let why = if said.is_empty() { format!("exit status {status}") } else { said };
        Err((line, why))
    }

    /// When the jobs began.
    pub fn begins(&self) -> Instant {
        self.begins.unwrap_or(Instant::ZERO)
    }

    /// A time as it is counted outside.
    pub fn counted(&self, at: Instant) -> Instant {
        Instant::ZERO + at.saturating_since(self.begins())
    }

    /// Whether events are seen as they are.
    pub fn is_nothing(&self) -> bool {
        self.begins == Some(Instant::ZERO)
    }

    /// An event as it is seen outside, if it is: not what was before the jobs, nor the end of what
    /// had begun before.
    pub fn seen(&self, event: &Event) -> Option<Event> {
        let begins = self.begins.filter(|begins| event.at >= *begins)?;
        let counted = |at: Instant| (at >= begins).then(|| self.counted(at));
        let action = match event.action.clone() {
            Action::Complete { issued } => Action::Complete { issued: counted(issued)? },
            Action::Released { since } => Action::Released { since: counted(since)? },
            Action::BioDone { queued, issued } => {
                Action::BioDone { queued: counted(queued)?, issued: counted(issued)? }
            }
            Action::SyscallExit { call, entered, submitted } => Action::SyscallExit {
                call,
                entered: counted(entered)?,
                submitted: counted(submitted)?,
            },
            Action::SyscallUnfinished { call, entered, submitted } => Action::SyscallUnfinished {
                call,
                entered: counted(entered)?,
                submitted: counted(submitted)?,
            },
            Action::Served(stages) => {
                let begins = self.begins.unwrap_or_default();
                let counted =
                    |(at, stage): &(Instant, _)| (self.counted((*at).max(begins)), *stage);
                Action::Served(stages.iter().map(counted).collect())
            }
            other => other,
        };
        Some(Event { at: self.counted(event.at), action, ..event.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Duration;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn what_began_before_the_jobs_is_not_seen_and_time_counts_from_them() {
        let preparation = Preparation { jobs: 1, begins: Some(at(5)), failed: None };
        let event = |seconds, action| Event { at: at(seconds), ..Event::note(action) };
        assert_eq!(preparation.seen(&event(4, Action::Queue)), None);
        let seen = preparation.seen(&event(7, Action::Complete { issued: at(6) })).unwrap();
        assert_eq!((seen.at, seen.action), (at(2), Action::Complete { issued: at(1) }));
        assert_eq!(preparation.seen(&event(7, Action::Complete { issued: at(4) })), None);
        let unknown = Preparation { begins: None, ..preparation };
        assert_eq!(unknown.seen(&event(9, Action::Queue)), None);
    }
}
