//! The world `sim`: an experiment on the simulated machine.

use crate::error::Error;
use crate::experiment::cgroup::CgroupSpec;
use crate::experiment::filesystem;
use crate::fio_logs::{self, Accounts};
use crate::metrics::bios::BioCollector;
use crate::metrics::commands::Collector;
use crate::metrics::samples::Samples;
use crate::metrics::{Actor, CallKind, Calls, Latency, Layers, Measured, Meter};
use crate::plan::{Plan, PlannedJob, Row};
use crate::record::{self, Recorder};
use crate::result::{self, CallResult, FioProcess, JobResult, ProgramExit, RunResult};
use crate::told::{self, Told};
use crate::world::World;
use base::{Duration, Instant};
use insight::timeline::Recorded;
use insight::timeline::watch::Watch;
use machine::{Exit, Observer, Outcome, Several, TaskInfo};
use programs::Script;
use programs::dd::Closed;
use programs::fio::Fio;
use programs::fio::account::{Account, Batches};
use programs::pgioperf;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Runs one row with one seed. Whoever watches besides is told of tasks as well.
pub(super) fn run(
    plan: &Plan,
    row: &Row,
    seed: u64,
    record_to: Option<&Path>,
    watcher: Option<&mut dyn Observer>,
) -> Result<(RunResult, Vec<TaskInfo>), Error> {
    let setup = machine::Setup {
        tells_tasks: watcher.is_some(),
        ..setup(plan, row, seed, record_to.is_some())
    };
    let mut meter = Meter::new(row.jobs.iter().map(|job| job.naming.clone()).collect());
    meter.count_for(row.programs().map(|(number, _)| number).collect());
    if let Some((job, most)) = plan.watched_operations() {
        meter.watch_operations(job, most);
    }
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
    if let Some(watcher) = watcher {
        observers.push(&mut *watcher);
    }
    let outcome = simulate(setup, &mut Several(observers), row, seed)?;
    if let Some(recorder) = recorder {
        recorder.finish(&outcome)?;
    }
    let mut measured = meter.finish(outcome.elapsed);
    note_closings(&mut measured, row, &outcome);
    let accounts = accounts(row, &outcome);
    fio_logs::write(&plan.logs_to, row, seed, &accounts)?;
    let result = RunResult {
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
        cut_off_after: row.most_calls.filter(|_| outcome.is_cut_off()),
        layers: measured.layers(),
        jobs: with_told(job_results(&measured.sections, &row.jobs, &accounts), row, &outcome)
            .into(),
        processes: process_results(&measured, &row.jobs, &accounts),
        disk: measured.disk,
        throttling: measured.throttling,
        commands: collector.map(Collector::finish).unwrap_or_default(),
        bios: bios.map(BioCollector::finish).unwrap_or_default(),
        exits: row
            .programs()
            .zip(outcome.jobs)
            .map(|((number, _), job)| exit(&row.jobs[number], job))
            .collect(),
    };
    Ok((result, outcome.tasks))
}

/// Runs one row with one seed again, and keeps what a timeline is made of.
pub(super) fn timeline(plan: &Plan, row: &Row, seed: u64) -> Result<Recorded, Error> {
    let mut watch = Watch::new(Some(row.facts().queue_depth));
    let setup = machine::Setup { tells_tasks: true, ..setup(plan, row, seed, false) };
    let outcome = simulate(setup, &mut watch, row, seed)?;
    let mut recorded = watch.finish(Instant::ZERO + outcome.elapsed);
    let jobs: Vec<&machine::Job> = row.programs().map(|(_, job)| job).collect();
    for task in &recorded.tasks {
        if let Some(job) = task.job.and_then(|number| jobs.get(number)) {
            recorded.groups.push((task.cgroup, job.cgroup.clone()));
        }
    }
    Ok(recorded)
}

/// Runs a machine. A mistake of the simulator's own ends the run, and is told with what ran.
fn simulate(
    setup: machine::Setup,
    observer: &mut dyn Observer,
    row: &Row,
    seed: u64,
) -> Result<Outcome, Error> {
    let run = format!("{}, seed {seed}", row.spec.label());
    // Whatever it leaves half done is dropped.
    let outcome = catch_unwind(AssertUnwindSafe(|| machine::run(setup, observer)));
    match outcome {
        Ok(outcome) => outcome.map_err(|cause| Error::Setup { run, cause }),
        Err(_) => Err(Error::Broken { run }),
    }
}

/// The machine of a row.
fn setup(plan: &Plan, row: &Row, seed: u64, messages: bool) -> machine::Setup {
    let jobs = row.programs().map(|(_, job)| job.clone()).collect();
    machine::Setup {
        settings: row.settings.iter().map(|it| (it.name.clone(), it.value)).collect(),
        memory: row.memory,
        mount: row.mount.clone(),
        cgroups: row.cgroups.iter().map(CgroupSpec::on_the_disk).collect(),
        blkio: row.blkio,
        cgroup_writeback: row.cgroup_writeback,
        preparation: Script::of(
            row.preparation.iter().map(PlannedJob::as_line).collect(),
            row.host.guest.habits.shell,
        ),
        seed,
        most_calls: row.most_calls,
        events: true,
        messages,
        paranoid: plan.experiment.paranoid,
        ..machine::Setup::new(
            row.spec.kernel,
            row.attach(),
            row.device(seed),
            row.host.clone(),
            jobs,
        )
    }
}

/// dd's own time ends when its files are closed, which may take long (rule sync-4).
fn note_closings(measured: &mut Measured, row: &Row, outcome: &Outcome) {
    let jobs: Vec<usize> = row.programs().map(|(number, _)| number).collect();
    for (program, account) in &outcome.accounts {
        let Some(&Closed(at)) = account.downcast_ref() else { continue };
        let at = Instant::ZERO + at.saturating_since(outcome.begins);
        let job = jobs.get(*program).copied();
        let actors = measured.sections.iter_mut().chain(&mut measured.processes);
        actors.filter(|it| it.job.is_some() && it.job == job).for_each(|it| it.counts_until(at));
    }
}

/// The accounts of the processes of fio, each with the number of its job.
fn accounts(row: &Row, outcome: &Outcome) -> Accounts {
    let jobs: Vec<usize> = row.programs().map(|(number, _)| number).collect();
    let of_fio = |(program, account): &(usize, Rc<dyn Any>)| {
        Some((*jobs.get(*program)?, account.clone().downcast::<Account>().ok()?))
    };
    outcome.accounts.iter().filter_map(of_fio).collect()
}

/// What fio knows of its processes of one name.
fn of_fio(planned: &PlannedJob, label: &str, accounts: &[&Account]) -> Option<FioProcess> {
    let fio: &Fio = planned.program.downcast()?;
    let (_, job) = fio.labelled().find(|(name, _)| name == label)?;
    let all = |of: &dyn Fn(&Account) -> Batches| {
        shares(accounts.iter().map(|it| of(it)).fold(Batches::default(), Batches::and))
    };
    Some(FioProcess {
        group: job.group,
        options: job.options.clone(),
        global_options: job.global_options.clone(),
        submitted: all(&|it| it.submitted.get()),
        completed: all(&|it| it.completed.get()),
        depth: accounts.iter().map(|it| it.depth.get()).max().unwrap_or(0),
        target: job.goal.latency,
        // Processes that report as one share the watch.
        steady: accounts.iter().find_map(|it| it.steadiness()),
    })
}

/// Percentages of all batches.
fn shares(batches: Batches) -> Vec<f64> {
    let all = batches.0.iter().sum::<u64>().max(1) as f64;
    batches.0.iter().map(|count| 100.0 * *count as f64 / all).collect()
}

/// A result for each job, or for each section within it.
fn job_results(sections: &[Actor], jobs: &[PlannedJob], accounts: &Accounts) -> Vec<JobResult> {
    let mut results = Vec::new();
    for (number, planned) in jobs.iter().enumerate() {
        let of_job = || sections.iter().filter(move |it| it.job == Some(number));
        let callers: Vec<&Actor> = of_job().filter(|it| it.did_anything()).collect();
        let cgroup = &planned.job.cgroup;
        let fio = |actor: &Actor| {
            let its = accounts.iter().filter(|(job, it)| *job == number && it.label == actor.name);
            let its: Vec<&Account> = its.map(|(_, account)| &**account).collect();
            of_fio(planned, &actor.name, &its)
        };
        match callers.as_slice() {
            [] => {
                let (name, cgroup) = (planned.job.name.clone(), cgroup.clone());
                results.push(JobResult { name, cgroup, ..JobResult::default() });
            }
            [only] => {
                let name = planned.result_name(&only.name, true);
                // Helpers make no calls of their own, but carry out those of the only caller.
                let layers = Layers::of(of_job());
                results
                    .push(JobResult { fio: fio(only), ..job_result(only, name, cgroup, layers) });
            }
            several => results.extend(several.iter().map(|actor| {
                let name = planned.result_name(&actor.name, false);
                let layers = Layers::of([*actor].into_iter());
                JobResult { fio: fio(actor), ..job_result(actor, name, cgroup, layers) }
            })),
        }
    }
    results
}

/// A result for each process: clones in the place of their section.
fn process_results(
    measured: &Measured,
    jobs: &[PlannedJob],
    accounts: &Accounts,
) -> Vec<JobResult> {
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
    actors.iter_mut().for_each(|actor| actor.operations = Arc::default());
    job_results(&actors, jobs, accounts)
}

/// What an actor did.
fn job_result(actor: &Actor, name: String, cgroup: &str, layers: Layers) -> JobResult {
    let runtime = actor.runtime();
    JobResult {
        name,
        cgroup: cgroup.to_string(),
        tasks: actor.tasks,
        runtime,
        called: actor.called(),
        calls: CallKind::ALL.map(|kind| call_result(&actor.calls[kind as usize], runtime)),
        layers,
        depths: actor.depths,
        fio: None,
        told: Told::default(),
        operations: actor.operations.clone(),
    }
}

/// The calls of one kind, summed up.
fn call_result(calls: &Calls, runtime: Duration) -> CallResult {
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
        decades: result::decades(calls.total.bins()),
    }
}

/// With what programs stated, which jobs of one result do.
fn with_told(mut results: Vec<JobResult>, row: &Row, outcome: &Outcome) -> Vec<JobResult> {
    for ((number, _), ended) in row.programs().zip(&outcome.jobs) {
        let planned = &row.jobs[number];
        let told = Told::by(&*planned.program, &ended.messages);
        if let Some(result) = results.iter_mut().find(|it| it.name == planned.job.name) {
            result.told = told;
        }
    }
    let jobs: Vec<usize> = row.programs().map(|(number, _)| number).collect();
    for (program, account) in &outcome.accounts {
        let Some(account) = account.downcast_ref::<pgioperf::Account>() else { continue };
        let name = row.jobs[jobs[*program]].result_name(pgioperf::WAL, false);
        if let Some(result) = results.iter_mut().find(|it| it.name == name) {
            result.told = Told::by_pgioperf(account);
        }
    }
    results
}

/// How a program ended.
fn exit(planned: &PlannedJob, job: machine::JobOutcome) -> ProgramExit {
    let (failed, how) = match job.exit {
        Exit::Status(0) => (false, "ended".to_string()),
        Exit::Status(status) => (true, format!("failed with exit status {status}")),
        Exit::Stopped => (false, "stopped when its time was over".to_string()),
        Exit::CutOff => (false, "cut off at the end of the run".to_string()),
    };
    let messages = told::notes(&*planned.program, job.messages);
    ProgramExit { job: job.name, failed, how, messages }
}
