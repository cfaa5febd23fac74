//! When a run ends although its jobs have not.
//!
//! Whoever types `fio basic-verify.fio` does not say for how long: the load of a disk of a terabyte
//! takes hours on the real thing, and hundreds of millions of calls here. A run of which nobody
//! limits the time ends after [`MOST_CALLS`], which is the same for every scheduler, and says so.

use super::{PlannedJob, Planner};
use crate::error::Error;
use crate::experiment::Experiment;
use crate::experiment::calls::{CallLimit, MOST_CALLS, MOST_COMMANDS};
use crate::world::World;
use programs::dbench::Dbench;
use programs::fio::Fio;
use programs::replay::Replay;

impl Planner {
    /// How many calls these jobs may make; in the world `linux`, how many commands they may come
    /// to at the disk, as calls cannot be counted there. Where both worlds run there is no limit,
    /// because both are to do the same.
    pub(super) fn most_calls(&self, jobs: &[PlannedJob]) -> Result<Option<u64>, Error> {
        let Experiment { calls, worlds, .. } = &self.experiment;
        let is_open = || jobs.iter().any(|it| !it.job.background && !is_limited(it));
        let usual = match worlds[..] {
            [World::Sim] => Some(MOST_CALLS),
            [World::Linux] => Some(MOST_COMMANDS),
            _ => None,
        };
        match calls {
            CallLimit::AtMost(_) if usual.is_none() => {
                let accepted = "one world, or a duration of the jobs";
                Err(Error::bad(self.place("calls"), "calls in two worlds", accepted))
            }
            CallLimit::AtMost(calls) => Ok(Some(*calls)),
            CallLimit::Usual if is_open() => Ok(usual),
            CallLimit::Usual | CallLimit::All => Ok(None),
        }
    }
}

/// Whether somebody has said when a job ends: its duration, fio's `runtime`, dbench's `-t`, or a
/// recording.
fn is_limited(planned: &PlannedJob) -> bool {
    let fio = planned.program.downcast::<Fio>();
    let ends = |fio: &Fio| fio.jobs().iter().all(|it| it.timing.runtime.is_some());
    let program = &planned.program;
    let limits_itself = program.is::<Replay>() || program.is::<Dbench>();
    planned.job.duration.is_some() || limits_itself || fio.is_some_and(ends)
}
