//! From a description to runs: everything is loaded, parsed and checked before anything runs.
//!
//! A plan has a row for each scheduler at each point of the axes, and each row is run once for
//! each seed. Whatever is wrong with an experiment is found here, so nothing is ever written for
//! bad input.

mod changed;
mod clones;
mod disks;
mod groups;
mod jobs;
mod limits;
mod preparation;
mod settings;

pub(crate) use changed::Deviation;
pub use preparation::DROP_CACHES;
pub use settings::{Number, Written};

pub use crate::experiment::calls::{CallLimit, MOST_CALLS};

use crate::error::Error;
use crate::experiment::cgroup::{self, CgroupSpec};
use crate::experiment::filesystem;
use crate::experiment::job::{JobSpec, Work};
use crate::experiment::keys;
use crate::experiment::{Axis, Experiment, Setting};
use crate::figure::{Figure, What};
use crate::kernels::{Named, nearest_judge};
use crate::metrics::{Naming, Section};
use crate::result::RunResult;
use crate::scheduler_spec::SchedulerSpec;
use crate::virtio;
use crate::world::{self, World};
use base::nearest;
use base::{Bytes, Hz};
use block::command::Facts;
use block::{Attach, Kernel, QUEUE_SETTINGS};
use device::{Device, Model};
use machine::{Host, Mount};
use programs::Program;
use programs::dd::Dd;
use programs::fio::{Fio, Job};
use programs::replay::{Pace, Replay};
use settings::{OfRow, probe};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// More runs take more memory than there is.
pub const MOST_RUNS: usize = 100_000;
/// All runs together keep so many single operations, 64 bytes each.
const MOST_OPERATIONS: usize = 1 << 20;
/// A run keeps so many in any case.
const LEAST_OPERATIONS: usize = 256;
/// And no more than this: who watches more is slower, and says no more.
const MOST_OF_A_RUN: usize = 1 << 12;

/// What stands for the number of the disk in a guest.
pub(crate) const DISK: &str = "vda";

/// Everything that will be run.
#[derive(Debug)]
pub struct Plan {
    /// What it was made from.
    pub experiment: Experiment,
    /// Schedulers at points of the axes, in the order of results.
    pub rows: Vec<Row>,
    /// The figure by which they are judged, if the experiment says so.
    pub metric: Option<Figure>,
    /// Below which directory fio's logs go; nowhere, if that is none.
    pub logs_to: Option<PathBuf>,
}

/// A scheduler at a point of the axes.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where it runs.
    pub world: World,
    /// The scheduler as it was asked for.
    pub spec: SchedulerSpec,
    /// Name and value of each axis.
    pub axes: Vec<(String, String)>,
    /// What its results are called as files, without seed and world; no other row's in its world.
    pub directory: String,
    /// The disk.
    pub model: Model,
    /// What the kernel is told of the disk, if that is not what the model says.
    pub virtio: Option<Facts>,
    /// The file system on the disk, if it carries one.
    pub mount: Option<Mount>,
    /// There is a controller of block I/O.
    pub blkio: bool,
    /// Control groups have writeback of their own.
    pub cgroup_writeback: bool,
    /// Cores and costs.
    pub host: Host,
    /// The memory of the machine.
    pub memory: Bytes,
    /// What is written to sysfs, in this order.
    pub settings: Vec<Number>,
    /// What is written to files that only a guest has, after that.
    pub written: Vec<Written>,
    /// All tunables and settings with the values they have then.
    pub tunables: Vec<(&'static str, i64)>,
    /// What was set to the value that it has anyway.
    pub unchanged: Vec<(String, i64)>,
    /// Control groups with weights.
    pub cgroups: Vec<CgroupSpec>,
    /// What is done before.
    pub preparation: Vec<PlannedJob>,
    /// What is run.
    pub jobs: Vec<PlannedJob>,
    /// I/O calls after which a run ends although its jobs have not, if there is a limit.
    pub most_calls: Option<u64>,
}

/// A job, understood.
#[derive(Clone, Debug)]
pub struct PlannedJob {
    /// The command, if it is one, with the values of axes.
    pub line: Option<String>,
    /// What runs.
    pub program: Arc<dyn Program>,
    /// As the machine takes it.
    pub job: machine::Job,
    /// The others that are started with it, if there are several.
    pub clones: Vec<machine::Job>,
    /// The weight of its group.
    pub weight: Option<u32>,
    /// How the tasks of the job are told apart in results.
    pub naming: Naming,
    /// Whether results are called by task names alone, as fio does with a job file.
    pub named_by_task: bool,
    /// What the user should know about how it was understood.
    pub notes: Vec<String>,
}

impl Plan {
    /// Loads and checks everything.
    pub fn new(experiment: Experiment) -> Result<Plan, Error> {
        check_size(&experiment)?;
        let mut rows = Vec::new();
        for point in points(&experiment.axes) {
            rows.extend(Planner::at(&experiment, point)?.rows()?);
        }
        check_axes(&experiment, &rows)?;
        name_directories(&mut rows);
        let metric = metric(&experiment, &rows)?;
        Ok(Plan { experiment, rows, metric, logs_to: None })
    }

    /// How many runs there will be.
    pub fn runs(&self) -> usize {
        self.rows.len() * self.experiment.seeds.len()
    }

    /// The job by which schedulers are judged, by its number, and how many of its operations a run
    /// keeps so that they can be paired; `None` where there is nothing to compare.
    pub fn watched_operations(&self) -> Option<(usize, usize)> {
        let asked = self.metric.as_ref().and_then(|it| it.job.as_ref());
        let mut jobs = self.rows.first()?.jobs.iter();
        let is_asked = |job: &PlannedJob| asked.is_some_and(|it| job.result_names().contains(it));
        let job = jobs.position(is_asked).unwrap_or(0);
        let most = MOST_OPERATIONS / self.runs();
        (self.rows.len() > 1).then_some((job, most.clamp(LEAST_OPERATIONS, MOST_OF_A_RUN)))
    }

    /// What the user should know about how jobs were understood, each thing once.
    pub fn notes(&self) -> Vec<String> {
        let of_jobs = self.rows.iter().flat_map(|row| &row.jobs).flat_map(|job| &job.notes);
        let of_kernels = self.rows.iter().filter_map(|row| {
            let (asked, rules) = (row.spec.asked.as_ref()?, row.spec.kernel.version);
            let judge = nearest_judge(asked);
            Some(format!(
                "Kernel {asked}: rules of {rules}, not judged; \
                 the nearest judged kernel is {judge}."
            ))
        });
        let mut notes: Vec<String> = Vec::new();
        for note in of_jobs.cloned().chain(of_kernels) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }
}

impl Plan {
    /// The scheduler of a row; with its kernel where rows differ in that.
    pub fn row_name(&self, row: usize) -> String {
        let spec = &self.rows[row].spec;
        let same = self.rows.iter().all(|it| it.spec.kernel_name() == spec.kernel_name());
        let name = if same { spec.short() } else { spec.label() };
        let world = self.rows[row].world;
        let same = self.rows.iter().all(|it| it.world == world);
        if same { name } else { format!("{name} ({world})") }
    }
}

impl Plan {
    /// A row as it is told from all others: the values of axes and the scheduler.
    pub fn row_title(&self, row: usize) -> String {
        let axes = self.rows[row].axes.iter().map(|(name, value)| format!("{name}={value}"));
        let words: Vec<String> = axes.chain([self.row_name(row)]).collect();
        words.join(" ")
    }
}

impl PlannedJob {
    /// A program that is run once and has nothing to be said of it.
    pub fn new(name: &str, program: Arc<dyn Program>) -> PlannedJob {
        PlannedJob {
            line: None,
            job: machine::Job::new(name, program.clone()),
            program,
            clones: Vec::new(),
            weight: None,
            naming: Naming::Whole,
            named_by_task: false,
            notes: Vec::new(),
        }
    }

    /// Whether it merely moves data, as fast as it can.
    pub fn copies(&self) -> bool {
        let replay = self.program.downcast::<Replay>();
        // Whose every write is to be durable waits for each of them.
        self.program.downcast::<Dd>().is_some_and(|it| !it.waits_for_durability())
            || replay.is_some_and(|it| matches!(it.pace, Pace::BackToBack { .. }))
    }

    /// What it may be called in results.
    pub(crate) fn result_names(&self) -> Vec<String> {
        let sections: &[Section] = match &self.naming {
            Naming::Whole => &[],
            Naming::Sections(sections) => sections,
        };
        let several = sections.iter().map(|it| self.result_name(&it.name, false));
        let alone = self.result_name(sections.first().map_or("", |it| &it.name), true);
        match sections.len() {
            0 | 1 => vec![alone],
            _ => several.collect(),
        }
    }

    /// What a section of the job, perhaps its only one, is called in results.
    pub fn result_name(&self, section: &str, is_only: bool) -> String {
        match self.named_by_task {
            true => section.to_string(),
            false if is_only => self.job.name.clone(),
            false => format!("{}/{section}", self.job.name),
        }
    }
}

impl Row {
    /// All programs that are started, each with the number of its job.
    pub fn programs(&self) -> impl Iterator<Item = (usize, &machine::Job)> {
        self.jobs.iter().enumerate().flat_map(|(number, planned)| {
            let all = std::iter::once(&planned.job).chain(&planned.clones);
            all.map(move |job| (number, job))
        })
    }

    /// The programs of its preparation and its jobs, those of a sequence one by one.
    pub fn all_programs(&self) -> impl Iterator<Item = &dyn programs::Program> {
        self.preparation.iter().chain(&self.jobs).flat_map(|it| it.program.parts())
    }

    /// Scheduler and axes as part of a path.
    fn plain_directory(&self) -> String {
        let axes = self.axes.iter().map(|(name, value)| format!("{name}={value}"));
        let parts: Vec<String> = std::iter::once(self.spec.label()).chain(axes).collect();
        let safe =
            |c: char| if c.is_ascii_alphanumeric() || "-_.@=+".contains(c) { c } else { '_' };
        parts.join("-").chars().map(safe).collect()
    }

    /// Whether a setting of this name was given.
    pub fn sets(&self, name: &str) -> bool {
        let group_file = Setting::group_file(name).map(|(_, file)| file);
        let of_groups = self.cgroups.iter().flat_map(|group| &group.files);
        let mut texts = self.written.iter().map(|it| &it.setting).chain(of_groups);
        self.settings.iter().any(|it| it.name == name)
            || texts.any(|it| it.name == group_file.unwrap_or(name))
    }

    /// The scheduler, in the shape of the block layer it lives in.
    pub fn attach(&self) -> Attach {
        self.spec.attach()
    }

    /// What a control group weighs where nobody sets a weight.
    pub(crate) fn default_weight(&self) -> u32 {
        self.spec.default_weight(self.cgroup_writeback)
    }

    /// The jobs that have results of this name.
    pub(crate) fn jobs_called(&self, name: &str) -> impl Iterator<Item = &PlannedJob> {
        self.jobs.iter().filter(move |it| it.result_names().iter().any(|it| it == name))
    }

    /// What commands call the disk, or else the kernel.
    pub fn disk_name(&self) -> &str {
        let programs = self.jobs.iter().flat_map(|it| it.program.parts());
        let named = programs.flat_map(|it| it.files()).find_map(disks::name_of);
        named.unwrap_or_else(|| machine::disk_name(self.facts().transport))
    }

    /// What the kernel is told of the disk.
    pub fn facts(&self) -> &Facts {
        self.virtio.as_ref().unwrap_or_else(|| self.model.facts())
    }

    /// The disk.
    pub fn device(&self, seed: u64) -> Box<dyn Device> {
        match &self.virtio {
            Some(facts) => {
                let facts = facts.clone();
                Box::new(virtio::Renewed::new(&self.model, seed, facts, virtio::Beginning::AT_ONCE))
            }
            None => self.model.build(seed),
        }
    }
}

/// A value of each axis.
type Point = Vec<(Axis, String)>;

/// All combinations of values, the last axis varying fastest.
fn points(axes: &[Axis]) -> Vec<Point> {
    axes.iter().fold(vec![Vec::new()], |points, axis| {
        let extended = |point: &Point| {
            let point = point.clone();
            axis.values.iter().map(move |value| {
                let mut longer = point.clone();
                longer.push((axis.clone(), value.clone()));
                longer
            })
        };
        points.iter().flat_map(|point| extended(point).collect::<Vec<_>>()).collect()
    })
}

/// There must not be too many runs: what each needs is planned before any begins.
fn check_size(experiment: &Experiment) -> Result<(), Error> {
    let axes = experiment.axes.iter().map(|axis| axis.values.len());
    let others = [experiment.schedulers.len(), experiment.worlds.len(), experiment.seeds.len()];
    let runs = axes.chain(others).fold(1, |runs: usize, it| runs.saturating_mul(it.max(1)));
    if runs <= MOST_RUNS {
        return Ok(());
    }
    let place = if experiment.origin.is_empty() { "compare" } else { &experiment.origin };
    let problem = format!("{runs} runs are too many");
    let accepted = format!("at most {MOST_RUNS}: fewer seeds, schedulers or values of axes");
    Err(Error::bad(place, problem, accepted))
}

/// Gives each row a directory of its own: different values may read alike as parts of a path.
fn name_directories(rows: &mut [Row]) {
    let mut taken = BTreeSet::new();
    for row in rows {
        let plain = row.plain_directory();
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        let free = names.find(|name| taken.insert((row.world, name.clone())));
        row.directory = free.expect("there are enough numbers");
    }
}

impl Plan {
    /// Refuses the figure that the experiment names if none of its runs has it.
    pub fn check_metric<'r>(&self, runs: impl Iterator<Item = &'r RunResult>) -> Result<(), Error> {
        let place = self.experiment.metric.as_ref().map(|(_, place)| place.as_str());
        let asked = self.metric.as_ref().zip(place);
        asked
            .map_or(Ok(()), |(it, place)| it.check_that_it_occurs(&runs.collect::<Vec<_>>(), place))
    }
}

/// The figure that the experiment names. What only a job has is the first job's if none is named.
fn metric(experiment: &Experiment, rows: &[Row]) -> Result<Option<Figure>, Error> {
    let Some((text, place)) = &experiment.metric else { return Ok(None) };
    let mut names: Vec<String> = Vec::new();
    for job in rows.iter().flat_map(|row| &row.jobs) {
        for name in job.result_names() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut figure = Figure::parse(text, &names, place)?;
    if figure.job.is_none() && matches!(figure.what, What::Call(..)) {
        figure.job = names.first().cloned();
    }
    Ok(Some(figure))
}

/// Every axis must change something.
fn check_axes(experiment: &Experiment, rows: &[Row]) -> Result<(), Error> {
    for Axis { name, place, .. } in &experiment.axes {
        let in_jobs = is_used(experiment, name);
        let special = keys::is_axis(name);
        let set = rows.iter().any(|row| row.sets(name));
        if !(in_jobs || special || set) {
            let queue = QUEUE_SETTINGS.iter().map(|it| it.name);
            let own = rows.iter().flat_map(|row| row.tunables.iter().map(|it| it.0));
            let known: Vec<&str> = keys::axes().chain(queue).chain(own).collect();
            let problem = match keys::of_experiment(name) {
                Some(_) => format!("{name} cannot be varied"),
                None => format!("\"{name}\" changes nothing{}", nearest(name, known)),
            };
            let accepted = format!(
                "a word used as {{{name}}} in a job, a tunable or setting, or {}",
                keys::axes().collect::<Vec<_>>().join(", ")
            );
            return Err(Error::bad(place.clone(), problem, accepted));
        }
    }
    Ok(())
}

/// Whether jobs, or what is done before them, say `{axis}`.
fn is_used(experiment: &Experiment, axis: &str) -> bool {
    let word = format!("{{{axis}}}");
    let in_group = |it: &JobSpec| it.cgroup.as_ref().is_some_and(|path| path.contains(&word));
    let in_files = |files: &[Setting]| files.iter().any(|it| it.value.contains(&word));
    let says = |it: &JobSpec| {
        let in_line = matches!(&it.work, Work::Command(line) if line.contains(&word));
        in_line || in_group(it) || in_files(&it.files) || it.clones.as_ref() == Some(&word)
    };
    experiment.jobs.iter().chain(&experiment.setup).any(says)
        || experiment.cgroups.iter().any(|group| in_files(&group.files))
        || in_files(&experiment.settings)
}

/// What runs on a host: a guest of another kernel may have programs with other habits.
struct Load {
    host: Host,
    preparation: Vec<PlannedJob>,
    jobs: Vec<PlannedJob>,
}

impl Load {
    fn is_for(&self, host: &Host) -> bool {
        self.host.guest.name == host.guest.name
    }
}

/// Plans the rows at one point of the axes.
struct Planner {
    /// As it is at this point.
    experiment: Experiment,
    point: Point,
}

impl Planner {
    /// Gives keys that are axes their values.
    fn at(experiment: &Experiment, point: Point) -> Result<Planner, Error> {
        let mut experiment = experiment.clone();
        for key in &keys::EXPERIMENT {
            let varied = point.iter().find(|(axis, _)| key.is_axis && axis.name == key.name);
            if let Some(((axis, value), set)) = varied.zip(key.set) {
                set(&mut experiment, value, &axis.place)?;
                experiment.places.insert(key.name, axis.place.clone());
            }
        }
        let mut planner = Planner { experiment, point };
        planner.mount_where_asked()?;
        Ok(planner)
    }

    /// Mounts the file system where somebody said. There has to be one, at some point of the axes.
    fn mount_where_asked(&mut self) -> Result<(), Error> {
        let Some(point) = self.experiment.mount_point.clone() else { return Ok(()) };
        let is_varied = self.point.iter().any(|(axis, _)| axis.name == "fs");
        match &mut self.experiment.mount {
            Some(mount) => mount.point = point,
            None if is_varied => {}
            None => {
                let problem = format!("mount_point \"{point}\" of a disk without file system");
                let accepted = "fs = \"ext4\" or \"xfs\"";
                return Err(Error::bad(self.place("mount_point"), problem, accepted));
            }
        }
        Ok(())
    }

    fn rows(&self) -> Result<Vec<Row>, Error> {
        let model = Model::find(&self.located(&self.experiment.model));
        let model = model.map_err(|it| Error::parameters(self.place("model"), it))?;
        let virtio = self.virtio(&model);
        let mount = self.experiment.mount.clone();
        let host = self.host()?;
        let kernel = self.kernel()?;
        let (known, kernels) = (&self.experiment.known, self.experiment.kernels());
        let asked = &self.experiment.schedulers;
        let mut specs = SchedulerSpec::parse_list(known, kernels, asked, kernel.as_ref())?;
        self.check_offered(&specs)?;
        self.check_kernels(&specs)?;
        if let Some(hz) = self.experiment.hz {
            self.check_tick(hz)?;
            specs = specs.iter().map(|spec| spec.with_hz(hz)).collect();
        }
        let given = self.settings(&specs)?;
        let mut loads = vec![self.load(host.clone())?];
        let jobs = loads[0].jobs.clone();
        let most_calls = self.most_calls(&jobs)?;
        let cgroups = self.cgroups(&jobs, &given.of_groups)?;
        self.check_groups(&cgroups, &jobs)?;
        let axes = self.point.iter().map(|(axis, value)| (axis.name.clone(), value.clone()));
        let axes: Vec<(String, String)> = axes.collect();
        let mut rows = Vec::new();
        for spec in specs {
            let OfRow { numbers, written } = self.of_row(&spec, &given)?;
            let facts = virtio.as_ref().unwrap_or(model.facts());
            let tunables = probe(&spec, model.name(), facts.clone(), &numbers)?;
            let usual = probe(&spec, model.name(), facts.clone(), &[])?;
            let unchanged = self.unchanged(&numbers, &given, &usual);
            let cgroup_writeback = self.cgroup_writeback(&spec, mount.as_ref())?;
            cgroup::check(&cgroups, &spec, cgroup_writeback)?;
            if !self.is_linux_alone() || !cgroup_writeback {
                let blkio = self.experiment.blkio;
                cgroup::check_limits(&cgroups, spec.kernel, cgroup_writeback, blkio)?;
            }
            self.check_tasks(&cgroups, &jobs, cgroup_writeback)?;
            let host = host.with_kernel(&spec.kernel.version.to_string());
            if !loads.iter().any(|load| load.is_for(&host)) {
                loads.push(self.load(host.clone())?);
            }
            let load = loads.iter().find(|load| load.is_for(&host)).expect("it is there now");
            let has_it = |world: &&World| **world == World::Linux || !spec.is_offered();
            rows.extend(self.experiment.worlds.iter().filter(has_it).map(|world| Row {
                world: *world,
                settings: numbers.clone(),
                written: written.clone(),
                tunables: tunables.clone(),
                unchanged: unchanged.clone(),
                spec: spec.clone(),
                axes: axes.clone(),
                directory: String::new(),
                model: model.clone(),
                virtio: virtio.clone(),
                mount: mount.clone(),
                blkio: self.experiment.blkio,
                cgroup_writeback,
                host: host.clone(),
                memory: self.memory(),
                cgroups: cgroups.clone(),
                preparation: load.preparation.clone(),
                jobs: load.jobs.clone(),
                most_calls,
            }));
        }
        Ok(rows)
    }

    /// What runs on a host.
    fn load(&self, host: Host) -> Result<Load, Error> {
        let preparation = self.preparation(&host)?;
        let mut jobs = self.jobs(&host)?;
        self.check_disks(&mut jobs)?;
        Ok(Load { host, preparation, jobs })
    }

    fn is_judged(&self) -> bool {
        self.experiment.worlds.contains(&World::Linux)
    }

    /// A guest has less than a machine of which nothing is said, and the simulator then as little.
    fn memory(&self) -> Bytes {
        let default = if self.is_judged() { world::MEMORY } else { machine::DEFAULT_MEMORY };
        self.experiment.memory.unwrap_or(default)
    }

    /// What the kernel is told of the disk behind virtio, if it is.
    fn virtio(&self, model: &Model) -> Option<Facts> {
        let Experiment { queue_depth, write_cache, virtio, .. } = self.experiment;
        let is_virtio = virtio || self.is_judged();
        let facts = match is_virtio {
            true => virtio::facts(model.facts(), queue_depth),
            false => model.facts().clone(),
        };
        let volatile_cache = write_cache.unwrap_or(facts.volatile_cache);
        (is_virtio || write_cache.is_some()).then_some(Facts { volatile_cache, ..facts })
    }

    /// Whether control groups have writeback of their own.
    fn cgroup_writeback(&self, spec: &SchedulerSpec, mount: Option<&Mount>) -> Result<bool, Error> {
        let asked = self.experiment.cgroup_writeback.as_deref();
        let place = self.place("cgroup_writeback");
        filesystem::cgroup_writeback(asked, spec.kernel, mount, place)
    }

    /// Files need a file system.
    fn check_files(&self, files: &[&str], place: &str) -> Result<(), Error> {
        let mount = self.experiment.mount.as_ref();
        let is_file = |path: &str| {
            let below = mount.and_then(|it| path.strip_prefix(it.point.as_str()));
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let other = files.iter().find(|it| !it.starts_with("/dev/") && !is_file(it));
        let Some(other) = other else {
            return files.iter().try_for_each(|it| disks::disk(it, place).map(|_| ()));
        };
        let accepted = match mount {
            Some(mount) => format!("files below {}, or /dev/sda for the disk", mount.point),
            None => "/dev/sda for the disk, or a file system (fs = \"ext4\" or \"xfs\", or --fs) \
                     and a file below its mount_point, where relative names begin"
                .to_string(),
        };
        Err(Error::bad(place, format!("there is no file {other}"), accepted))
    }

    /// Only the simulator lays files out on a raw disk: a kernel would put them in memory.
    fn check_laid_out(&self, program: &dyn Program, place: &str) -> Result<(), Error> {
        let parts = program.parts();
        let jobs = parts.iter().filter_map(|it| it.downcast::<Fio>()).flat_map(Fio::jobs);
        match jobs.filter_map(Job::laid_out).next().filter(|_| self.is_judged()) {
            None => Ok(()),
            Some(name) => {
                let problem = format!("the file {name} on a raw disk in the world linux");
                let accepted = "--fs ext4 or xfs, /dev/sda for the disk, or --world sim";
                Err(Error::bad(place, problem, accepted))
            }
        }
    }

    /// Where the simulator runs, too, it needs something to run.
    fn check_offered(&self, specs: &[SchedulerSpec]) -> Result<(), Error> {
        let simulates = self.experiment.worlds.contains(&World::Sim);
        match specs.iter().all(SchedulerSpec::is_offered) && simulates {
            true => {
                let names: Vec<&str> = specs.iter().map(|it| it.name).collect();
                let problem = format!("{} is not simulated", names.join(", "));
                Err(Error::bad("--world", problem, "--world linux, or another scheduler as well"))
            }
            false => Ok(()),
        }
    }

    /// In both worlds at once there are the kernels that judge, and the simulator follows.
    fn check_kernels(&self, specs: &[SchedulerSpec]) -> Result<(), Error> {
        let is_other = |it: &&SchedulerSpec| {
            it.guest.is_none()
                && (it.asked.is_some() || !world::JUDGES.contains(&it.kernel.version))
        };
        let other = specs.iter().find(is_other);
        match other.filter(|_| self.is_judged()) {
            Some(spec) => {
                let problem = format!("{} in the world linux", spec.label());
                let accepted = format!("kernels {}", world::judges());
                Err(Error::bad("--world", problem, accepted))
            }
            None => Ok(()),
        }
    }

    fn host(&self) -> Result<Host, Error> {
        if self.is_judged() {
            return Ok(Host::named("guest")?);
        }
        let name = self.located(&self.experiment.host);
        let host = match name.contains('/') || name.ends_with(".toml") {
            true => Host::load(Path::new(&name)),
            false => Host::named(&name),
        };
        host.map_err(|it| Error::parameters(self.place("host"), it))
    }

    fn kernel(&self) -> Result<Option<Named>, Error> {
        match self.experiment.named_kernel()? {
            None if self.is_judged() => Ok(Some(Kernel::of(world::KERNEL).into())),
            asked => Ok(asked),
        }
    }

    /// In the world `linux` a kernel has a tick that it can be built with.
    fn check_tick(&self, hz: Hz) -> Result<(), Error> {
        if self.is_judged() && !linux::configuration::TICKS.contains(&hz.get()) {
            let problem = format!("hz {} in the world linux", hz.get());
            let accepted = linux::configuration::TICKS.map(|it| it.to_string()).join(", ");
            return Err(Error::bad(self.place("hz"), problem, accepted));
        }
        Ok(())
    }

    /// Where a key is given: by its axis, in the file or on the command line.
    fn place<'a>(&'a self, key: &'a str) -> &'a str {
        self.experiment.places.get(key).map_or(key, String::as_str)
    }

    /// The value of an axis.
    fn value(&self, name: &str) -> Option<(&Axis, &str)> {
        let found = self.point.iter().find(|(axis, _)| axis.name == name);
        found.map(|(axis, value)| (axis, value.as_str()))
    }

    /// The name or path of a model or host, with a path beside the experiment found there.
    fn located(&self, name: &str) -> String {
        let beside: PathBuf = self.experiment.directory.join(name);
        let is_beside = name.ends_with(".toml") && !Path::new(name).exists() && beside.exists();
        if is_beside { beside.display().to_string() } else { name.to_string() }
    }

    /// The line with the value of each axis where it says `{axis}`.
    fn substituted(&self, line: &str, place: &str) -> Result<String, Error> {
        let mut out = String::new();
        let mut rest = line;
        while let Some(open) = rest.find('{') {
            let Some(length) = rest[open..].find('}') else { break };
            let name = &rest[open + 1..open + length];
            out.push_str(&rest[..open]);
            // ${NAME} is fio's own.
            if rest[..open].ends_with('$') {
                out.push_str(&rest[open..=open + length]);
            } else if name == DISK {
                // The number of the disk, which the guest knows.
                out.push_str(&rest[open..=open + length]);
            } else if let Some((_, value)) = self.value(name) {
                out.push_str(value);
            } else {
                let names: Vec<&str> = self.point.iter().map(|it| it.0.name.as_str()).collect();
                let problem = format!("no axis \"{name}\"{}", nearest(name, names.clone()));
                let accepted = match names.is_empty() {
                    true => "axes, defined in [axes] or with --vary".to_string(),
                    false => names.join(", "),
                };
                return Err(Error::bad(place, problem, accepted));
            }
            rest = &rest[open + length + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }
}
