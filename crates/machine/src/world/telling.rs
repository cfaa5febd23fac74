//! What is told of a run: to its observer while it goes on, and in the end.

use super::World;
use crate::observe::Observer;
use crate::outcome::{Exit, JobOutcome, Outcome};
use base::Instant;

/// So many events wait for the observer at most: less than what keeps time from moving on.
const MOST_WAITING: usize = super::paying::MOST_EVENTS / 2;

impl World {
    /// A turn is over. Whether what has happened is to be handed to the observer, who has met so
    /// many tasks: he meets a task before its first event, and is not kept waiting for long.
    pub fn is_to_report(&mut self, met: usize) -> bool {
        self.end_moment();
        self.past >= MOST_WAITING
            || self.tasks.infos().len() > met
            || !self.preparation.is_nothing()
    }

    /// Hands everything that has happened to the observer, who has met so many tasks; the answer is
    /// how many he has met then.
    pub fn report(&mut self, met: usize, observer: &mut dyn Observer) -> usize {
        self.end_moment();
        self.mark_past();
        let World { storage, tasks, preparation, .. } = self;
        let task_infos = tasks.infos();
        for who in task_infos[met..].iter().filter(|who| !preparation.is_it(who.job)) {
            observer.meet(who);
        }
        let log = storage.queue_mut().log();
        match log.events() {
            [] => {}
            events if preparation.is_nothing() => observer.see_all(events),
            events => {
                let seen = events.iter().filter_map(|event| preparation.seen(event));
                seen.for_each(|event| observer.see(&event));
            }
        }
        log.clear();
        (self.past, self.marked) = (0, 0);
        task_infos.len()
    }

    /// Time moves on: what has happened is in the fingerprint before what is exchanged with the
    /// disk from now on.
    #[inline]
    pub(super) fn end_moment(&mut self) {
        if self.tells_tasks {
            self.tell_moves();
        }
        self.past = self.storage.queue_mut().log().events().len();
    }

    /// Mixes into the fingerprint what had happened when time moved on last, if that is not done:
    /// something else is to be mixed into it.
    pub(super) fn mark_past(&mut self) {
        let World { storage, mark, marked, past, .. } = self;
        let events = storage.queue_mut().log().events();
        events[*marked..*past].iter().for_each(|event| mark.event(event));
        *marked = *past;
    }

    /// The name of the job that makes system calls without end, if there is one.
    pub fn endless_job(&self) -> Option<&str> {
        self.endless.map(|job| self.jobs[job].name.as_str())
    }

    /// What came of the run, unless the preparation failed: then its line and what it said.
    pub fn outcome(&mut self) -> Result<Outcome, (String, String)> {
        let mut jobs = std::mem::take(&mut self.jobs);
        self.preparation.finish(&mut jobs)?;
        let now = self.clock.now();
        let counted = |at: Instant| self.preparation.counted(at);
        let jobs: Vec<JobOutcome> = jobs
            .into_iter()
            .map(|job| JobOutcome {
                name: job.name,
                exit: match job.ended {
                    Some(_) if job.was_stopped => Exit::Stopped,
                    Some((_, status)) => Exit::Status(status),
                    None => Exit::CutOff,
                },
                started: job.started.map(counted),
                ended: counted(job.ended.map_or(now, |(at, _)| at)),
                messages: job.messages,
            })
            .collect();
        if jobs.iter().all(|job| job.exit != Exit::CutOff) {
            self.storage.queue().assert_drained();
        }
        let last = jobs.iter().map(|job| job.ended).max().unwrap_or(counted(now));
        Ok(Outcome {
            jobs,
            elapsed: last.since(Instant::ZERO),
            begins: self.preparation.begins(),
            fingerprint: std::mem::take(&mut self.mark).finish(),
            tasks: self.tasks.last_infos(),
            cgroups: self.cgroups.all().to_vec(),
            cores: self.cpus.used(),
            inputs: self.storage.queue_mut().take_inputs(),
            accounts: std::mem::take(&mut self.accounts),
        })
    }
}
