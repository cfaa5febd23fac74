//! Runs a plan: every row with every seed, several runs at a time.
//!
//! A run is one thread and depends on nothing but its row and its seed, so the results and their
//! order are the same whatever the number of threads.

use crate::cgroup::CgroupSpec;
use crate::error::Error;
use crate::fidelity::bios::{Asked, BioCollector};
use crate::fidelity::sequence::{Collector, Step};
use crate::filesystem;
use crate::linux_world::{LinuxWorld, World};
use crate::metrics::calls::DEPTH_LEVELS;
use crate::metrics::samples::{Samples, Spread};
use crate::metrics::{Actor, CallKind, Calls, Disk, Latency, Layers, Measured, Meter};
use crate::plan::{Plan, PlannedJob, Row};
use crate::record::{self, Recorder};
use crate::scheduler_spec::SchedulerSpec;
use base::{Bytes, Duration};
use machine::{Exit, Observer, Several};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What came of a plan.
#[derive(Debug)]
pub struct Report {
    /// What was run.
    pub plan: Plan,
    /// A result for each row and seed: rows in the order of the plan, within them seeds.
    pub results: Vec<RunResult>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Where it ran.
    pub world: World,
    /// The scheduler as it was asked for.
    pub spec: SchedulerSpec,
    /// Name and value of each axis.
    pub axes: Vec<(String, String)>,
    /// The device model.
    pub model: String,
    /// The file system on its disk.
    pub fs: &'static str,
    /// The host.
    pub host: String,
    /// What randomness derived from.
    pub seed: u64,
    /// Tunables and settings with their values.
    pub tunables: Vec<(&'static str, i64)>,
    /// Two runs with the same fingerprint did the same.
    pub fingerprint: u64,
    /// When the last job ended.
    pub elapsed: Duration,
    /// What each job did; the clones of a fio job count together.
    pub jobs: Vec<JobResult>,
    /// What each process did, as fio reports it.
    pub processes: Vec<JobResult>,
    /// Latency by layer, of all jobs together.
    pub layers: Layers,
    /// What the disk did.
    pub disk: Disk,
    /// The same command by command, if the plan has more than one world.
    pub commands: Vec<Step>,
    /// What tasks gave to the block layer, if it was watched.
    pub bios: Vec<Asked>,
    /// How each program ended, and what it said.
    pub exits: Vec<ProgramExit>,
}

/// What a job, or the tasks of one name within it, did.
#[derive(Clone, Debug, Default)]
pub struct JobResult {
    /// Its name.
    pub name: String,
    /// The path of its control group.
    pub cgroup: String,
    /// How many tasks it had.
    pub tasks: u32,
    /// From its first call to the end of its last.
    pub runtime: Duration,
    /// Its calls, by [`CallKind`].
    pub calls: [CallResult; 4],
    /// Latency by layer.
    pub layers: Layers,
    /// How often a call was made at depths up to 1, 2, 4, … 64 and more.
    pub depths: [u64; DEPTH_LEVELS],
}

/// The calls of one kind, summed up.
#[derive(Clone, Debug, Default)]
pub struct CallResult {
    /// How many ended.
    pub count: u64,
    /// How many had not ended when the run did.
    pub unfinished: u64,
    /// What they transferred.
    pub bytes: Bytes,
    /// Bytes per second of the job's runtime; zero if that is zero.
    pub bw_bytes: f64,
    /// Calls per second of the job's runtime.
    pub iops: f64,
    /// From preparing an asynchronous call to its submission.
    pub slat: Latency,
    /// From submission to the end.
    pub clat: Latency,
    /// Both together.
    pub lat: Latency,
    /// Bytes in windows of half a second.
    pub byte_samples: Spread,
    /// Calls in windows of half a second.
    pub call_samples: Spread,
    /// Of fio's decades of latency, the percentage of calls in each; see [`DECADES`].
    pub decades: Vec<f64>,
}

/// Upper limits of fio's decades of latency, in nanoseconds; one more class lies above.
pub const DECADES: [u64; 31] = {
    const STEPS: [u64; 9] = [2, 4, 10, 20, 50, 100, 250, 500, 750];
    let mut limits = [0; 31];
    let mut unit = 1;
    let mut at = 0;
    while at < 31 {
        let step = at % 10;
        limits[at] = unit * if step < 9 { STEPS[step] } else { 1000 };
        if step == 9 {
            unit *= 1000;
        }
        at += 1;
    }
    limits[30] = 2_000_000_000;
    limits
};

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramExit {
    /// The job.
    pub job: String,
    /// Whether it ended as it should have.
    pub failed: bool,
    /// How it ended, in words.
    pub how: String,
    /// What it wrote to its standard error.
    pub messages: Vec<String>,
}

/// Runs everything. `progress` is told how many runs are done whenever one is.
pub fn run(
    plan: Plan,
    record_to: Option<&Path>,
    threads: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Report, Error> {
    let linux = LinuxWorld::for_plan(&plan)?;
    let seeds = &plan.experiment.seeds;
    let runs: Vec<(&Row, u64)> =
        plan.rows.iter().flat_map(|row| seeds.iter().map(move |seed| (row, *seed))).collect();
    let existed = record_to.is_some_and(Path::exists);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = AtomicBool::new(false);
    let slots: Vec<Mutex<Option<Result<RunResult, Error>>>> =
        runs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((row, seed)) = runs.get(index) else { break };
            let result = match (row.world, &linux) {
                (World::Linux, Some(linux)) => {
                    let name = || record::recording_name(row, *seed);
                    let directory = record_to.map(|directory| directory.join(name()));
                    linux.run(row, *seed, plan.experiment.watches_bios, directory.as_deref())
                }
                _ => run_one(&plan, row, *seed, record_to),
            };
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            *slots[index].lock().expect("nobody panicked with the lock") = Some(result);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, runs.len().max(1)) {
            scope.spawn(work);
        }
    });
    let finished = slots.into_iter().filter_map(|slot| slot.into_inner().expect("as above"));
    match finished.collect::<Result<Vec<_>, _>>() {
        Ok(results) => Ok(Report { plan, results }),
        Err(error) => {
            if let Some(directory) = record_to {
                record::remove_directories(&plan, directory, existed);
            }
            Err(error)
        }
    }
}

/// Runs one row with one seed.
fn run_one(
    plan: &Plan,
    row: &Row,
    seed: u64,
    record_to: Option<&Path>,
) -> Result<RunResult, Error> {
    let jobs = row.programs().map(|(_, job)| job.clone()).collect();
    let setup = machine::Setup {
        settings: row.settings.clone(),
        memory: row.memory,
        mount: row.mount.clone(),
        cgroups: row.cgroups.iter().map(CgroupSpec::on_the_disk).collect(),
        blkio: row.blkio,
        cgroup_writeback: row.cgroup_writeback,
        preparation: row.preparation.iter().map(PlannedJob::as_line).collect(),
        seed,
        events: true,
        messages: record_to.is_some(),
        paranoid: plan.experiment.paranoid,
        ..machine::Setup::new(
            row.spec.kernel,
            row.attach(),
            row.device(seed),
            row.host.clone(),
            jobs,
        )
    };
    let mut meter = Meter::new(row.jobs.iter().map(|job| job.naming.clone()).collect());
    meter.count_for(row.programs().map(|(number, _)| number).collect());
    let mut collector = (plan.experiment.worlds.len() > 1).then(Collector::default);
    let mut bios = plan.experiment.watches_bios.then(BioCollector::default);
    let mut recorder = match record_to {
        None => None,
        Some(directory) => {
            Some(Recorder::create(&directory.join(record::directory_name(row, seed)), row)?)
        }
    };
    let mut observers: Vec<&mut dyn Observer> = vec![&mut meter];
    observers.extend(collector.as_mut().map(|it| it as &mut dyn Observer));
    observers.extend(bios.as_mut().map(|it| it as &mut dyn Observer));
    observers.extend(recorder.as_mut().map(|it| it as &mut dyn Observer));
    let outcome = machine::run(setup, &mut Several(observers));
    let label = row.spec.label();
    let outcome =
        outcome.map_err(|cause| Error::Setup { run: format!("{label}, seed {seed}"), cause })?;
    if let Some(recorder) = recorder {
        recorder.finish(&outcome)?;
    }
    let measured = meter.finish(outcome.elapsed);
    Ok(RunResult {
        world: World::Sim,
        spec: row.spec.clone(),
        axes: row.axes.clone(),
        model: row.model.name().to_string(),
        fs: filesystem::name(row.mount.as_ref()),
        host: row.host.name.clone(),
        seed,
        tunables: row.tunables.clone(),
        fingerprint: outcome.fingerprint.finish(),
        elapsed: outcome.elapsed,
        layers: measured.layers(),
        jobs: job_results(&measured.sections, &row.jobs),
        processes: process_results(&measured, &row.jobs),
        disk: measured.disk,
        commands: collector.map(Collector::finish).unwrap_or_default(),
        bios: bios.map(BioCollector::finish).unwrap_or_default(),
        exits: outcome.jobs.into_iter().map(ProgramExit::of).collect(),
    })
}

/// A result for each job, or for each section within it.
fn job_results(sections: &[Actor], jobs: &[PlannedJob]) -> Vec<JobResult> {
    let mut results = Vec::new();
    for (number, planned) in jobs.iter().enumerate() {
        let of_job = || sections.iter().filter(move |it| it.job == Some(number));
        let callers: Vec<&Actor> = of_job().filter(|it| it.did_anything()).collect();
        let cgroup = &planned.job.cgroup;
        match callers.as_slice() {
            [] => {
                let (name, cgroup) = (planned.job.name.clone(), cgroup.clone());
                results.push(JobResult { name, cgroup, ..JobResult::default() });
            }
            [only] => {
                let name = planned.result_name(&only.name, true);
                // Helpers make no calls of their own, but carry out those of the only caller.
                let layers = Layers::of(of_job());
                results.push(JobResult::of(only, name, cgroup, layers));
            }
            several => results.extend(several.iter().map(|actor| {
                let name = planned.result_name(&actor.name, false);
                JobResult::of(actor, name, cgroup, Layers::of([*actor].into_iter()))
            })),
        }
    }
    results
}

/// A result for each process: clones in the place of their section.
fn process_results(measured: &Measured, jobs: &[PlannedJob]) -> Vec<JobResult> {
    let mut actors: Vec<Actor> = Vec::new();
    for section in &measured.sections {
        let clones = measured.processes.iter().filter(|process| {
            let naming = process.job.map(|job| &jobs[job].naming);
            let of = naming.map_or("", |naming| naming.section_of(&process.name));
            process.job == section.job && of == section.name
        });
        let before = actors.len();
        actors.extend(clones.cloned());
        if actors.len() == before {
            actors.push(section.clone());
        }
    }
    job_results(&actors, jobs)
}

impl RunResult {
    /// A job by its name.
    pub fn job(&self, name: &str) -> Option<&JobResult> {
        self.jobs.iter().find(|job| job.name == name)
    }

    /// Whether every program ended as it should have.
    pub fn succeeded(&self) -> bool {
        self.exits.iter().all(|exit| !exit.failed)
    }
}

impl JobResult {
    /// Its calls of one kind.
    pub fn call(&self, kind: CallKind) -> &CallResult {
        &self.calls[kind as usize]
    }

    /// The percentage of calls made at each depth level.
    pub fn depth_shares(&self) -> Vec<f64> {
        let all = self.depths.iter().sum::<u64>().max(1) as f64;
        self.depths.iter().map(|count| 100.0 * *count as f64 / all).collect()
    }

    /// The percentage of all its calls that move data in each decade of latency.
    pub fn decades(&self) -> Vec<f64> {
        let kinds = [CallKind::Read, CallKind::Write, CallKind::Trim].map(|kind| self.call(kind));
        let all = kinds.iter().map(|call| call.lat.count).sum::<u64>().max(1) as f64;
        let share = |decade: usize| {
            let of = |call: &&CallResult| {
                call.decades.get(decade).copied().unwrap_or(0.0) * call.lat.count as f64
            };
            kinds.iter().map(of).sum::<f64>() / all
        };
        (0..=DECADES.len()).map(share).collect()
    }

    fn of(actor: &Actor, name: String, cgroup: &str, layers: Layers) -> JobResult {
        let runtime = actor.runtime();
        JobResult {
            name,
            cgroup: cgroup.to_string(),
            tasks: actor.tasks,
            runtime,
            calls: CallKind::ALL.map(|kind| CallResult::of(&actor.calls[kind as usize], runtime)),
            layers,
            depths: actor.depths,
        }
    }
}

impl CallResult {
    fn of(calls: &Calls, runtime: Duration) -> CallResult {
        let per_second = |amount: u64| match runtime.as_nanos() {
            0 => 0.0,
            nanos => amount as f64 * 1e9 / nanos as f64,
        };
        let Samples { bytes, operations, .. } = calls.samples.clone();
        CallResult {
            count: calls.count,
            unfinished: calls.unfinished,
            bytes: calls.bytes,
            bw_bytes: per_second(calls.bytes.0),
            iops: per_second(calls.count),
            slat: Latency::of(&calls.submission),
            clat: Latency::of(&calls.completion),
            lat: Latency::of(&calls.total),
            byte_samples: bytes,
            call_samples: operations,
            decades: decades(calls),
        }
    }
}

/// The percentage of calls in each decade of latency, the last one open.
fn decades(calls: &Calls) -> Vec<f64> {
    let mut counts = [0_u64; DECADES.len() + 1];
    for (nanos, count) in calls.total.bins() {
        counts[DECADES.partition_point(|limit| *limit < nanos)] += count;
    }
    let all = calls.total.count().max(1) as f64;
    counts.iter().map(|count| 100.0 * *count as f64 / all).collect()
}

impl ProgramExit {
    fn of(job: machine::JobOutcome) -> ProgramExit {
        let (failed, how) = match job.exit {
            Exit::Status(0) => (false, "ended".to_string()),
            Exit::Status(status) => (true, format!("failed with exit status {status}")),
            Exit::Stopped => (false, "stopped when its time was over".to_string()),
            Exit::CutOff => (false, "cut off at the end of the run".to_string()),
        };
        ProgramExit { job: job.name, failed, how, messages: job.messages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decades_are_those_of_fio() {
        assert_eq!(DECADES[..4], [2, 4, 10, 20]);
        assert_eq!(DECADES[9..12], [1000, 2000, 4000]);
        assert_eq!(DECADES[19..22], [1_000_000, 2_000_000, 4_000_000]);
        assert_eq!(DECADES[29..], [1_000_000_000, 2_000_000_000]);
        assert!(DECADES.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
