//! The worlds in which experiments run: [`linux`], an unmodified kernel in virtual time, and the
//! simulator. Whatever the world, a run yields a [`RunResult`].

pub mod linux;

mod sim;

use crate::error::Error;
use crate::plan::{Plan, Row};
use crate::record;
use crate::result::RunResult;
use crate::world::World;
use insight::timeline::Recorded;
use linux::LinuxWorld;
use machine::{Observer, TaskInfo};
use std::path::Path;

/// The worlds that a plan needs, ready to run its rows.
#[derive(Debug)]
pub struct Worlds<'p> {
    plan: &'p Plan,
    linux: Option<LinuxWorld>,
}

/// Runs a row in the simulator, and lets somebody watch who is told of tasks as well. All tasks
/// that there were come with the result.
pub fn watch(
    plan: &Plan,
    row: &Row,
    seed: u64,
    watcher: &mut dyn Observer,
) -> Result<(RunResult, Vec<TaskInfo>), Error> {
    sim::run(plan, row, seed, None, Some(watcher))
}

impl<'p> Worlds<'p> {
    /// Makes ready what the rows of a plan need.
    pub fn of(plan: &'p Plan) -> Result<Worlds<'p>, Error> {
        Ok(Worlds { plan, linux: LinuxWorld::for_plan(plan)? })
    }

    /// Runs a row with a seed; what it does is recorded below a directory, if one is given.
    pub fn run(&self, row: &Row, seed: u64, record_to: Option<&Path>) -> Result<RunResult, Error> {
        match (row.world, &self.linux) {
            (World::Linux, Some(linux)) => {
                let directory = record_to.map(|it| it.join(record::recording_name(row, seed)));
                linux.run(row, seed, self.plan.experiment.watches_bios, directory.as_deref())
            }
            _ => sim::run(self.plan, row, seed, record_to, None).map(|(result, _)| result),
        }
    }
}

/// What a timeline of a row with a seed is made of; nothing where the row does not run in the
/// simulator. It runs again for that, and does the same.
pub fn timeline(plan: &Plan, row: &Row, seed: u64) -> Result<Option<Recorded>, Error> {
    match row.world {
        World::Sim => sim::timeline(plan, row, seed).map(Some),
        World::Linux => Ok(None),
    }
}
