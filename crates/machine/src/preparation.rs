//! What is done before the jobs begin: a program that leaves a state behind, such as files, cached
//! pages, a journal and a head that stands somewhere.
//!
//! It begins at time zero of the machine. The jobs begin at the second whole second after it has
//! ended, as in the world linux, and from then on time is counted for everybody outside:
//! an observer sees nothing of what was before, nor the end of what had begun before.

use crate::clock::AgendaItem;
use crate::life::JobState;
use crate::program::Program;
use crate::simulation::{Job, SetupError};
use crate::world::World;
use base::{Duration, Instant};
use block::{Action, Event};
use std::sync::Arc;

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

impl World {
    /// Has the jobs done, after a preparation if there is one.
    pub fn prepare(&mut self, jobs: Vec<Job>, preparation: Option<Arc<dyn Program>>) {
        self.preparation.jobs = jobs.len();
        self.jobs.extend(jobs.into_iter().map(JobState::new));
        let Some(preparation) = preparation else {
            return self.begin_jobs(Instant::ZERO);
        };
        self.jobs.push(JobState::new(Job::new("setup", preparation)));
        let at = Instant::ZERO + self.start_delay;
        self.clock.schedule(at, AgendaItem::Start(self.preparation.jobs));
    }

    /// A job has ended: if it is the preparation, the others are to begin.
    pub fn is_prepared(&mut self, job: usize) {
        if job == self.preparation.jobs && !self.preparation.has_failed() {
            let seconds = self.clock.now().since(Instant::ZERO).as_nanos() / 1_000_000_000;
            self.begin_jobs(Instant::ZERO + Duration::from_secs(seconds) + self.guest.pause);
        }
    }

    fn begin_jobs(&mut self, begins: Instant) {
        self.preparation.begins = Some(begins);
        self.clock.prolong(begins.since(Instant::ZERO));
        for number in 0..self.preparation.jobs {
            let start = self.jobs[number].job.as_ref().expect("it has not started").start;
            let at = begins + start.since(Instant::ZERO) + self.start_delay;
            self.clock.schedule(at, AgendaItem::Start(number));
        }
    }
}

impl Preparation {
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

    /// Takes itself away from the jobs of a run; the answer is why it failed.
    pub fn finish(&self, jobs: &mut Vec<JobState>) -> Result<(), SetupError> {
        let shell = jobs.split_off(self.jobs).pop();
        let Some((line, shell)) = self.failed.clone().zip(shell) else { return Ok(()) };
        let status = shell.ended.map_or(0, |(_, status)| status);
        let said = shell.messages.join("; ");
        let why = if said.is_empty() { format!("exit status {status}") } else { said };
        Err(SetupError::Preparation { line, why })
    }

    /// A time as it is counted outside.
    pub fn counted(&self, at: Instant) -> Instant {
        Instant::ZERO + at.saturating_since(self.begins.unwrap_or(Instant::ZERO))
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
            other => other,
        };
        Some(Event { at: self.counted(event.at), action, ..event.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
