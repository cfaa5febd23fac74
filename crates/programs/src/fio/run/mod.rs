//! fio at work: the main task, which starts a task for each process and waits for them.
//!
//! As in fio, the processes of a stage start together, a process with a delay when that has passed
//! since the start of fio, a process that waits for a job when all processes of that job ended.
//! What a process does is in `run/process.rs`, how it hands requests over in `run/lanes.rs`.

mod crew;
mod donor;
mod files;
mod goal;
mod helper;
mod identity;
mod lanes;
mod memory;
mod pace;
mod process;

use crate::Program;
use guest::FioHabits;
use std::rc::Rc;
use std::sync::Arc;

use base::{Duration, Instant, Rng};
use block::ContextId;

use self::crew::{Crew, State};
use self::files::Files;
use self::helper::Helper;
use self::identity::spawn_confined;
use self::process::Process;
use super::command_line::parse_command_line;
use super::error::ParseError;
use super::job::{Direction, FileKind, Job};
use super::layout::{Layout, Looks, Ranges};
use super::random::Seeds;
use crate::Surroundings;
use machine::program::Running;
use machine::task::{IoContextOf, Task};

/// Exit status of fio when a job failed.
const FAILED: i32 = 1;

/// What processes use of which files, which of them had theirs, and who keeps figures.
type SettingOut<'a> = (&'a [Option<Ranges>], &'a [Files], &'a [u32], Option<&'a Helper>);

/// fio with its jobs, ready to run.
#[derive(Clone, Debug)]
pub struct Fio {
    jobs: Arc<[Job]>,
    habits: FioHabits,
}

impl machine::Program for Fio {
    fn name(&self) -> &str {
        "fio"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

impl Program for Fio {
    fn files(&self) -> Vec<&str> {
        let all = self.jobs.iter().flat_map(|job| &job.files.list);
        let named = all.filter(|file| matches!(file.kind, FileKind::Device | FileKind::File));
        named.map(|file| file.name.as_str()).collect()
    }
}

impl Fio {
    /// fio with these processes.
    pub fn new(jobs: Vec<Job>, habits: FioHabits) -> Fio {
        Fio { jobs: jobs.into(), habits }
    }

    /// What the words behind `fio` mean.
    pub fn parse(words: &[String], context: &Surroundings<'_>) -> Result<Fio, ParseError> {
        parse_command_line(words, context).map(|line| Fio::new(line.jobs, context.habits.fio))
    }

    /// Its processes.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Its processes, with what their results are called.
    pub fn labelled(&self) -> impl Iterator<Item = (String, &Job)> {
        self.jobs.iter().enumerate().map(|(number, job)| (label(&self.jobs, number), job))
    }

    /// What a user should know about how the jobs are understood, each said once.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for note in self.jobs.iter().flat_map(|job| &job.notes) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        notes
    }

    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        let footprint = self.habits.footprint;
        task.take_memory("fio", footprint);
        task.leave_pages_behind(self.habits.left_by_main());
        let status = self.run_jobs(&task).await;
        task.give_memory_back("fio", footprint);
        status
    }

    async fn run_jobs(self, task: &Task) -> i32 {
        begin(task, &self.jobs, &self.habits).await;
        let (plan, files) = match lay_out(task, &self.jobs, Looks::Early) {
            Ok(plan) => plan.into_iter().unzip::<_, _, Vec<_>, Vec<_>>(),
            Err(error) => {
                task.print(format!("fio: {error}"));
                return FAILED;
            }
        };
        let (helper, have_files) = match launch(task, &self.jobs, &files, &self.habits).await {
            Ok(launched) => launched,
            Err(message) => {
                task.print(message);
                return FAILED;
            }
        };
        task.leave_pages_behind(self.habits.left_by_processes());
        let started = task.now();
        let crew = Rc::new(Crew::new(&self.jobs, task.id(), self.habits));
        let delays: Vec<Instant> = self.jobs.iter().map(|job| started + delay(job, task)).collect();
        loop {
            let (mut due, mut next) = self.due(&crew, &delays, task.now());
            if due.iter().any(|number| self.begins_stage(&crew, *number)) {
                // It sleeps once more when it has seen that the last process ended, and lets the
                // new ones get ready.
                let look = self.habits.look;
                match takes_time(task) {
                    true => {
                        task.look_at_clock(self.habits.looks_while_waiting).await;
                        task.sleep(look).await;
                    }
                    false => {
                        let seen = next_look(started, task.now(), look);
                        task.sleep_until(seen + look * 2).await;
                    }
                }
                (due, next) = self.due(&crew, &delays, task.now());
            }
            let setting_out = (&plan[..], &files[..], &have_files[..], helper.as_ref());
            let lets_go = !due.is_empty();
            self.start_all(task, &crew, due, setting_out).await;
            if crew.all_ended() {
                break;
            }
            self.wait(task, &crew, next, lets_go).await;
        }
        if let Some(helper) = helper {
            helper.end(task).await;
        }
        if crew.any_failed() { FAILED } else { 0 }
    }

    /// Waits until there may be something to do. When it `lets_go` processes, it sleeps at once
    /// and does not look at the clock for those that wait.
    async fn wait(&self, task: &Task, crew: &Crew, next: Instant, lets_go: bool) {
        if !takes_time(task) {
            task.notified_until(next).await;
            return;
        }
        let waits = crew.anybody_waits();
        if waits && !lets_go {
            task.look_at_clock(self.habits.looks_while_waiting).await;
        }
        let look = task.clock() + if waits { self.habits.look } else { self.habits.poll };
        let before = crew.ended();
        task.sleep_until(next.min(look)).await;
        task.look_at_clock(self.habits.looks_per_end * (crew.ended() - before)).await;
        look_for_orders(task, crew).await;
    }

    /// Creates processes, and lets them go together when all are ready.
    async fn start_all(
        &self,
        task: &Task,
        crew: &Rc<Crew>,
        due: Vec<usize>,
        (plan, files, have_files, helper): SettingOut<'_>,
    ) {
        let takes_time = takes_time(task) && !due.is_empty();
        let are_first = due.iter().all(|number| self.jobs[*number].stage == 0);
        let lacks_files = |number: &&usize| !have_files.contains(&(**number as u32));
        let missing = due.iter().filter(lacks_files).count() as u32;
        let mut children = Vec::new();
        // What the others had to say before was heard otherwise.
        task.notified_until(task.now()).await;
        for number in due {
            if takes_time && !are_first {
                task.look_at_clock(self.habits.looks_per_later_process).await;
            }
            // Both write to what they share since.
            task.use_memory(self.habits.memory_of_main_per_process);
            children.push(self.start(task, crew, number, (&plan[number], &files[number])));
            if takes_time {
                task.notified().await;
            }
        }
        if takes_time && are_first {
            look_at_disks(task, &self.jobs).await;
            let FioHabits { looks_per_job, looks_when_made, looks_before_go, .. } = self.habits;
            let are_made = missing > 0 && self.jobs.iter().any(Job::has_files);
            let when_made = if are_made { looks_when_made } else { 0 };
            task.look_at_clock(looks_per_job * missing + when_made + looks_before_go).await;
        } else if takes_time {
            task.look_at_clock(self.habits.looks_before_stage).await;
        }
        if takes_time {
            task.look_for_files(1).await;
            task.sleep(self.habits.look).await;
        }
        if let Some(helper) = helper.filter(|_| !crew.anybody_waits()) {
            helper.all_have_begun(task.clock());
        }
        for child in children {
            task.notify(child);
        }
        if takes_time {
            look_for_orders(task, crew).await;
        }
    }

    /// Whether a process is the first of a later stage.
    fn begins_stage(&self, crew: &Crew, number: usize) -> bool {
        let stage = self.jobs[number].stage;
        let waits = |other: usize| crew.state(other) == State::Waiting;
        stage > 0 && (0..self.jobs.len()).all(|it| self.jobs[it].stage != stage || waits(it))
    }

    /// The processes that are to start, and when to look again at the latest.
    fn due(&self, crew: &Crew, delays: &[Instant], now: Instant) -> (Vec<usize>, Instant) {
        let (mut due, mut next) = (Vec::new(), Instant::FAR_FUTURE);
        for (number, job) in self.jobs.iter().enumerate() {
            if crew.state(number) != State::Waiting {
                continue;
            }
            if delays[number] > now {
                next = next.min(delays[number]);
            } else if crew.has_its_turn(&self.jobs, number) {
                due.push(number);
            } else if job.stage > 0 && !crew.has_ended_before(&self.jobs, job.stage) {
                break;
            }
        }
        (due, next)
    }

    fn start(
        &self,
        task: &Task,
        crew: &Rc<Crew>,
        number: usize,
        (ranges, files): (&Option<Ranges>, &Files),
    ) -> ContextId {
        let label = label(&self.jobs, number);
        let (main, takes_time) = (task.id(), takes_time(task));
        let child = spawn_confined(task, &self.jobs[number], || {
            let (jobs, crew) = (self.jobs.clone(), crew.clone());
            let (name, ranges, mut files) = (label.clone(), ranges.clone(), files.clone());
            task.spawn(&label, IoContextOf::Itself, |task| async move {
                let job = &jobs[number];
                task.use_memory(crew.habits.memory_of_process);
                if takes_time {
                    task.notify(main);
                    task.may_yield().await;
                }
                // Observed: the engine is ready before the process starts.
                let is_ready = files.open_donor(&task, job).await;
                if takes_time {
                    task.notified().await;
                }
                let status = match is_ready {
                    Ok(()) => run_process(&task, &name, job, &crew, (ranges, files)).await,
                    Err(message) => {
                        task.print(message);
                        FAILED
                    }
                };
                crew.end(&task, &jobs, number, status);
                status
            })
        });
        crew.start(number, child);
        child
    }
}

/// What a job uses of files that may not have been there before.
fn look_at_start(task: &Task, job: &Job) -> Result<(Ranges, Files), ParseError> {
    let jobs = std::slice::from_ref(job);
    let plan = lay_out(task, jobs, Looks::AtStart)?.into_iter().next();
    Ok(plan.and_then(|(ranges, files)| Some((ranges?, files))).expect("one job that has looked"))
}

/// What jobs use of which files, and nothing yet for those that look when they start.
fn lay_out(
    task: &Task,
    jobs: &[Job],
    looks: Looks,
) -> Result<Vec<(Option<Ranges>, Files)>, ParseError> {
    let existing = |path: &str| task.stat(path);
    let mut rng = task.rng("program/fio/layout");
    let layout = Layout::new(jobs, task.disk().capacity, &existing, &mut rng, looks)?;
    let of = |job: &Job| {
        if layout.looks_at_start(job) {
            return Ok((None, Files::default()));
        }
        let ranges = layout.ranges(job)?;
        let files = Files::of(job, &layout, &ranges.files);
        Ok((Some(ranges), files))
    };
    jobs.iter().map(of).collect()
}

/// What a process does once it may go; the answer is its exit status.
async fn run_process(
    task: &Task,
    name: &str,
    job: &Job,
    crew: &Crew,
    (ranges, files): (Option<Ranges>, Files),
) -> i32 {
    let (ranges, files) = match ranges {
        Some(ranges) => (ranges, files),
        None => match look_at_start(task, job) {
            Ok((ranges, found)) => (ranges, files.found(found)),
            Err(error) => {
                task.print(format!("fio: {error}"));
                return FAILED;
            }
        },
    };
    match Process::new(task.clone(), name, job, crew, (&ranges, files)).await {
        Ok(mut process) => process.run().await,
        Err(status) => status,
    }
}

/// Whether what fio does beside its requests takes time on this host.
fn takes_time(task: &Task) -> bool {
    !task.costs().launch.is_zero()
}

/// What fio does before its processes: it sleeps a little between looks at its clock and makes the
/// files. The answer is its helper, where that takes time, and which jobs had their files.
// measured in the world linux, as all that follows
async fn launch(
    task: &Task,
    jobs: &[Job],
    files: &[Files],
    habits: &FioHabits,
) -> Result<(Option<Helper>, Vec<u32>), String> {
    if !takes_time(task) {
        return files::make_all(task, jobs, files, habits)
            .await
            .map(|have_files| (None, have_files));
    }
    for _ in 0..habits.naps {
        task.sleep(habits.nap).await;
        task.look_at_clock(habits.looks_per_nap).await;
    }
    task.look_at_clock(habits.looks_before_helper).await;
    let helper = Helper::start(task, habits.helper, jobs.len() as u32).await;
    let have_files = files::make_all(task, jobs, files, habits).await?;
    task.use_memory(habits.memory_before_processes);
    Ok((Some(helper), have_files))
}

/// Before it lets the first processes go, fio looks at the disk for each that there will be, and
/// for one that writes once more whether it is mounted. With files it looks once.
async fn look_at_disks(task: &Task, jobs: &[Job]) {
    let looks = |job: &Job| 1 + u32::from(job.pattern.directions.include(Direction::Write));
    let of_disks: u32 = jobs.iter().filter(|job| !job.has_files()).map(looks).sum();
    let of_files = u32::from(jobs.iter().any(Job::has_files));
    task.look_for_files(of_disks + of_files).await;
}

/// fio measures its clock when it has read its jobs; then it asks for its files, and so reads the
/// directory.
async fn begin(task: &Task, jobs: &[Job], habits: &FioHabits) {
    task.look_for_as_long_as(task.costs().launch).await;
    let (count, eights) = (jobs.len() as u32, (jobs.len() as u32).saturating_sub(1) / 8);
    let FioHabits { memory_per_process, memory_per_eight_processes, .. } = *habits;
    task.use_memory(memory_per_process * count + memory_per_eight_processes * eights);
    for job in jobs {
        let files = job.files.list.iter().filter(|file| file.kind == FileKind::File);
        let (mut missing, is_alone) = (0, files.clone().count() == 1);
        for file in files {
            missing += u32::from(task.look_for(&file.name).await.is_none());
        }
        if missing > 0 {
            let more = if is_alone { habits.paths_of_only_file } else { 0 };
            task.look_for_files(missing + more).await;
        }
    }
    if takes_time(task) {
        let is_without_files = !jobs.iter().any(Job::has_files);
        let more = if is_without_files { habits.looks_without_files } else { 0 };
        task.look_at_clock(habits.looks_at_begin + more).await;
    }
}

/// The main process looks whether somebody has asked for its figures, in a file. The kernel then
/// has work done that it has put off. Its thread no longer stops the process when it has run alone,
/// which it has after so many processes have ended.
async fn look_for_orders(task: &Task, crew: &Crew) {
    task.look_for_files(1).await;
    if crew.ended() < crew.habits.disturbed_until {
        task.be_disturbed().await;
    }
}

/// When fio looks again whether processes have ended.
fn next_look(started: Instant, now: Instant, look: Duration) -> Instant {
    let looks = now.since(started).as_nanos().div_ceil(look.as_nanos());
    started + look * looks
}

/// How long after the start of fio a job starts; drawn if it gives a range.
fn delay(job: &Job, task: &Task) -> Duration {
    let (from, to) = job.timing.start_delay;
    let mut rng = stream(task, job, "delay");
    Duration::from_nanos(rng.between(from.as_nanos(), to.as_nanos()))
}

/// The seeds of what a process draws as fio does. The seed of the experiment takes the place of
/// `randseed` where a job has none.
fn seeds(task: &Task, job: &Job) -> Seeds {
    Seeds::new(job, task.seed())
}

/// A stream of random numbers of one process that fio draws otherwise. With `randseed` it depends
/// on that alone, otherwise on the seed of the experiment.
fn stream(task: &Task, job: &Job, purpose: &str) -> Rng {
    match job.pattern.seed {
        Some(seed) => Rng::stream(seed, &format!("program/fio/{}/{purpose}", job.number)),
        None => {
            let program = task.job().unwrap_or(0);
            task.rng(&format!("program/fio/{program}/{}/{purpose}", job.number))
        }
    }
}

/// The name under which the results of a process count: processes that report as a group have one
/// in common, others are told apart.
fn label(jobs: &[Job], number: usize) -> String {
    let job = &jobs[number];
    if job.group_reporting {
        return jobs.iter().find(|other| other.reports_with(job)).unwrap_or(job).name.clone();
    }
    let is_shared =
        |name: &str| jobs.iter().any(|other| other.number != job.number && other.name == name);
    match () {
        () if !is_shared(&job.name) => job.name.clone(),
        () if job.clones > 1 && !jobs.iter().any(|other| is_namesake(job, other)) => {
            format!("{}.{}", job.name, job.clone)
        }
        () => format!("{}.{}", job.name, job.number),
    }
}

/// Whether two processes have one name, but are not clones of one section.
fn is_namesake(job: &Job, other: &Job) -> bool {
    // Clones are numbered from the last to the first.
    let first = |job: &Job| job.number - (job.clones - job.clone) % job.clones;
    job.name == other.name && first(job) != first(other)
}
