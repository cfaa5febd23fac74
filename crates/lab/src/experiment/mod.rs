//! The description of an experiment: model x host x kernel x cgroups x jobs x schedulers with
//! settings x axes x seeds.
//!
//! It is what a TOML file says ([`Experiment::parse`]), or what a caller puts together. Nothing is
//! loaded or checked against the rest yet; that is done when it is planned ([`crate::plan`]).

pub mod builtin;
pub mod calls;
pub mod cgroup;
mod document;
pub mod expectation;
pub mod filesystem;
pub mod input;
pub mod job;
pub mod keys;
pub mod setting;

use crate::error::Error;
use crate::figure::Figure;
use crate::kernels::{Kernels, Named};
use crate::world::World;
use base::{Bytes, Hz};
use calls::CallLimit;
use cgroup::CgroupSpec;
use document::{Document, Text, Value};
use expectation::{Bound, Expectation};
use job::{JobSpec, Work};
use linux::configuration::default_hz;
use machine::Mount;
use sched::Schedulers;
pub use setting::Setting;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The model of a disk when none is named.
pub const DEFAULT_MODEL: &str = "hdd-7200-sata";
/// The host when none is named.
pub const DEFAULT_HOST: &str = "host-2020";
/// How many seeds when nobody says so.
pub const DEFAULT_SEEDS: u64 = 5;
const MOST_SEEDS: u64 = 10_000;

const EXAMPLE_JOB: &str = "[[job]] with name = \"…\" and run = \"…\"";

/// An experiment as it is described.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What it is called.
    pub title: String,
    /// What it is about, in a paragraph, with its source.
    pub story: String,
    /// The file it comes from, or a word for where else.
    pub origin: String,
    /// Where files that it names are looked for first.
    pub directory: PathBuf,
    /// The device model, by name or path.
    pub model: String,
    /// Where each key was given a value; those that nobody named are not there.
    pub places: BTreeMap<&'static str, String>,
    /// The host, by name or path.
    pub host: String,
    /// The kernel of schedulers that do not name one, and where that was said.
    pub kernel: Option<(String, String)>,
    /// The tick of all kernels, if it is not the usual one of their time.
    pub hz: Option<Hz>,
    /// Where it runs.
    pub worlds: Vec<World>,
    /// Whether the disk is behind virtio, as it always is in the world `linux`.
    pub virtio: bool,
    /// Commands that the disk takes at once behind virtio; as many as the model if not given.
    pub queue_depth: Option<u32>,
    /// The file system on the disk; none: the disk is raw.
    pub mount: Option<Mount>,
    /// Where it is mounted, if not where file systems usually are.
    pub mount_point: Option<String>,
    /// What the kernel is told of the disk's write cache, if that is not what the model says:
    /// whether it loses what it holds.
    pub write_cache: Option<bool>,
    /// Whether there is a controller of block I/O; without it all tasks are in one group for
    /// schedulers.
    pub blkio: bool,
    /// Whether control groups have writeback of their own, if that is not as the kernel has it.
    pub cgroup_writeback: Option<String>,
    /// The memory of the machine.
    pub memory: Option<Bytes>,
    /// The schedulers that can be asked for.
    pub known: Schedulers,
    /// Schedulers as they are asked for, each with its place; none: the default list.
    pub schedulers: Vec<(String, String)>,
    /// Settings that hold for all schedulers.
    pub settings: Vec<Setting>,
    /// Control groups with weights.
    pub cgroups: Vec<CgroupSpec>,
    /// What is done before the jobs begin, one line after the other.
    pub setup: Vec<JobSpec>,
    /// What is run.
    pub jobs: Vec<JobSpec>,
    /// What is varied.
    pub axes: Vec<Axis>,
    /// What all randomness derives from, one run for each.
    pub seeds: Vec<u64>,
    /// What is expected to come out.
    pub expect: Vec<Expectation>,
    /// The figure by which schedulers are judged, if it is not to be chosen, with its place.
    pub metric: Option<(String, String)>,
    /// How many I/O calls a run may make.
    pub calls: CallLimit,
    /// Whether schedulers check themselves after every step.
    pub paranoid: bool,
    /// Whether results have what tasks gave to the block layer.
    pub watches_bios: bool,
}

/// Something that is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name: used as `{name}` in jobs, a tunable, a setting, or a key that may be an axis.
    pub name: String,
    /// Its values as they were written.
    pub values: Vec<String>,
    /// Where it was given.
    pub place: String,
}

impl Experiment {
    /// The kernels that can be named. Whatever was built will do where nothing is simulated.
    pub fn kernels(&self) -> Kernels {
        match self.worlds == [World::Linux] {
            true => Kernels::Built(self.hz.unwrap_or(default_hz())),
            false => Kernels::Modelled,
        }
    }

    /// The kernel of schedulers that do not name one.
    pub fn named_kernel(&self) -> Result<Option<Named>, Error> {
        let named = self.kernel.as_ref();
        named.map(|(name, place)| self.kernels().find(name, place)).transpose()
    }

    /// An experiment of these jobs, with defaults for everything else.
    pub fn of_jobs(title: &str, jobs: Vec<JobSpec>) -> Experiment {
        Experiment {
            title: title.to_string(),
            story: String::new(),
            origin: "command line".to_string(),
            directory: PathBuf::new(),
            model: DEFAULT_MODEL.to_string(),
            places: BTreeMap::new(),
            host: DEFAULT_HOST.to_string(),
            kernel: None,
            hz: None,
            worlds: vec![World::Sim],
            virtio: false,
            queue_depth: None,
            mount: None,
            mount_point: None,
            write_cache: None,
            blkio: true,
            cgroup_writeback: None,
            memory: None,
            known: Schedulers::default(),
            schedulers: Vec::new(),
            settings: Vec::new(),
            cgroups: Vec::new(),
            setup: Vec::new(),
            jobs,
            axes: Vec::new(),
            seeds: (1..=DEFAULT_SEEDS).collect(),
            expect: Vec::new(),
            metric: None,
            calls: CallLimit::Usual,
            paranoid: false,
            watches_bios: false,
        }
    }

    /// The experiment in a file.
    pub fn load(path: &Path) -> Result<Experiment, Error> {
        let text = params::read_text(path).map_err(|cause| Error::unreadable(path, cause))?;
        let mut experiment = Experiment::parse(&path.display().to_string(), &text)?;
        experiment.directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok(experiment)
    }

    /// The experiment in a text; `file` stands for it in messages.
    pub fn parse(file: &str, text: &str) -> Result<Experiment, Error> {
        let (document, root) = Document::parse(file, text)?;
        keys::check(&keys::EXPERIMENT, "an experiment", &document, &root)?;
        let mut experiment = Experiment::of_jobs("", read_jobs(&document, &root)?);
        experiment.origin = file.to_string();
        for key in &keys::EXPERIMENT {
            if let Some(value) = root.get(key.name) {
                experiment.places.insert(key.name, document.place(&value.span()));
            }
        }
        keys::read(&keys::EXPERIMENT, &document, &root, &mut experiment)?;
        experiment.schedulers = read_schedulers(&document, &root)?;
        experiment.settings = read_settings(&document, &root)?;
        experiment.cgroups = cgroup::read(&document, &root)?;
        experiment.setup = read_setup(&document, &root)?;
        experiment.axes = read_axes(&document, &root)?;
        if root.get("seeds").is_some() {
            experiment.seeds = read_seeds(&document, &root)?;
        }
        experiment.expect = read_expect(&document, &root, &experiment)?;
        Ok(experiment)
    }

    /// As it is in results.
    pub fn to_json(&self) -> serde_json::Value {
        keys::to_json(&keys::EXPERIMENT, self)
    }

    /// The names of the jobs.
    pub fn job_names(&self) -> Vec<String> {
        self.jobs.iter().map(|job| job.name.clone()).collect()
    }
}

impl Axis {
    /// Understands `KEY=a,b,c`.
    pub fn parse(text: &str) -> Result<Axis, Error> {
        let place = format!("--vary {text}");
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        let values = setting::split(values).into_iter().filter(|it| !it.is_empty());
        let values: Vec<String> = values.map(|it| setting::unquoted(&it).to_string()).collect();
        if name.is_empty() || values.is_empty() {
            return Err(Error::bad(place, "nothing to vary", "KEY=VALUE,VALUE,…"));
        }
        Axis { name: name.to_string(), values, place }.checked()
    }

    /// Has every value once: two rows with the same one are told apart by nothing.
    fn checked(self) -> Result<Axis, Error> {
        let is_twice = |(at, value): &(usize, &String)| self.values[..*at].contains(value);
        match self.values.iter().enumerate().find(is_twice) {
            Some((_, value)) => {
                let problem = format!("axis {} has \"{value}\" twice", self.name);
                Err(Error::bad(&self.place, problem, "each value once"))
            }
            None => Ok(self),
        }
    }
}

fn read_schedulers(
    document: &Document<'_>,
    root: &DeTable<'_>,
) -> Result<Vec<(String, String)>, Error> {
    let list = document.list(root, "schedulers")?;
    if let Some(value) = root.get("schedulers").filter(|_| list.is_empty()) {
        let accepted = "schedulers = [\"all\"], some of paternoster list schedulers, or no such \
                        key for none and mq-deadline";
        return Err(document.bad(&value.span(), "the list of schedulers is empty", accepted));
    }
    let one = |value| document.as_text("schedulers", value).map(|it| (it.text, it.place));
    list.iter().map(one).collect()
}

fn read_setup(document: &Document<'_>, root: &DeTable<'_>) -> Result<Vec<JobSpec>, Error> {
    let lines = document.list(root, "setup")?;
    let line = |value| {
        let Text { text, place } = document.as_text("setup", value)?;
        Ok(JobSpec::new("setup", Work::Command(text), place))
    };
    lines.iter().map(line).collect()
}

fn read_jobs(document: &Document<'_>, root: &DeTable<'_>) -> Result<Vec<JobSpec>, Error> {
    let mut jobs: Vec<JobSpec> = Vec::new();
    for value in document.list(root, "job")? {
        let job = read_job(document, value)?;
        if jobs.iter().any(|other| other.name == job.name) {
            let problem = format!("a second job \"{}\"", job.name);
            return Err(Error::bad(job.place, problem, "another name for each job"));
        }
        jobs.push(job);
    }
    if jobs.is_empty() {
        return Err(document.bad(&(0..0), "an experiment without jobs", EXAMPLE_JOB));
    }
    Ok(jobs)
}

fn read_job(document: &Document<'_>, value: &Value<'_>) -> Result<JobSpec, Error> {
    let Some(table) = value.get_ref().as_table() else {
        return Err(document.wrong("job", value, EXAMPLE_JOB));
    };
    keys::check(&keys::JOB, "a job", document, table)?;
    let must = |key: &str| {
        let missing = || document.bad(&value.span(), format!("a job without {key}"), EXAMPLE_JOB);
        document.text(table, key)?.ok_or_else(missing)
    };
    let name = must("name")?;
    job::check_name(&name.text, &name.place, EXAMPLE_JOB)?;
    let run = must("run")?;
    let mut job = JobSpec::new(name.text, Work::Command(run.text), run.place);
    keys::read(&keys::JOB, document, table, &mut job)?;
    job.moves = cgroup::read_moves(document, table, job.start)?;
    job.files = setting::read_files(document, table)?;
    Ok(job)
}

fn read_settings(document: &Document<'_>, root: &DeTable<'_>) -> Result<Vec<Setting>, Error> {
    let Some(table) = document.table(root, "settings")? else { return Ok(Vec::new()) };
    setting::read(document, table)
}

fn read_axes(document: &Document<'_>, root: &DeTable<'_>) -> Result<Vec<Axis>, Error> {
    let Some(table) = document.table(root, "axes")? else { return Ok(Vec::new()) };
    let mut axes: Vec<(usize, Axis)> = Vec::new();
    for (key, _) in table {
        let name: &str = key.get_ref();
        let values = document.list(table, name)?;
        let place = document.place(&key.span());
        if values.is_empty() {
            return Err(Error::bad(place, format!("axis {name} has no values"), "[1, 2, …]"));
        }
        let values = values.iter().map(|value| document.as_word(name, value));
        let values = values.collect::<Result<_, _>>()?;
        let axis = Axis { name: name.to_string(), values, place }.checked()?;
        axes.push((key.span().start, axis));
    }
    axes.sort_by_key(|(position, _)| *position);
    Ok(axes.into_iter().map(|(_, axis)| axis).collect())
}

fn read_seeds(document: &Document<'_>, root: &DeTable<'_>) -> Result<Vec<u64>, Error> {
    let accepted = format!(
        "a number of seeds from 1 to {MOST_SEEDS}, such as 5, or a list of whole numbers, none \
         twice, such as [1, 2, 3]"
    );
    let value = root.get("seeds").expect("the caller has seen it");
    let number = |value: &Value<'_>| {
        let number = value.get_ref().as_integer()?;
        u64::from_str_radix(number.as_str(), number.radix()).ok()
    };
    let seeds = match value.get_ref() {
        DeValue::Integer(_) => {
            number(value).filter(|it| *it <= MOST_SEEDS).map(|it| (1..=it).collect())
        }
        DeValue::Array(list) => list.iter().map(number).collect::<Option<Vec<u64>>>(),
        _ => None,
    };
    let is_new = |seeds: &[u64], at: usize| !seeds[..at].contains(&seeds[at]);
    let seeds = seeds.filter(|seeds: &Vec<u64>| {
        !seeds.is_empty() && (0..seeds.len()).all(|at| is_new(seeds, at))
    });
    let problem = || format!("seeds = {}", document.written(&value.span()));
    seeds.ok_or_else(|| document.bad(&value.span(), problem(), accepted))
}

fn read_expect(
    document: &Document<'_>,
    root: &DeTable<'_>,
    experiment: &Experiment,
) -> Result<Vec<Expectation>, Error> {
    let Some(table) = document.table(root, "expect")? else { return Ok(Vec::new()) };
    let jobs = experiment.job_names();
    let mut expectations: Vec<(usize, Expectation)> = Vec::new();
    for (key, value) in table {
        let (scheduler, axes) = read_row(document, key, experiment)?;
        let Some(figures) = value.get_ref().as_table() else {
            return Err(document.wrong(key.get_ref(), value, "{ figure = \"…\", … }"));
        };
        for (figure, bound) in figures {
            let place = document.place(&figure.span());
            let position = figure.span().start;
            let names = with_section(figure.get_ref(), &jobs);
            let figure = Figure::parse(figure.get_ref(), &names, &place)?;
            let Text { text, place } = document.as_text(&figure.to_string(), bound)?;
            let bound = Bound::parse(&text, figure.what.kind(), &place)?;
            let (scheduler, axes) = (scheduler.clone(), axes.clone());
            let expectation = Expectation { scheduler, axes, figure, bound, text, place };
            expectations.push((position, expectation));
        }
    }
    expectations.sort_by_key(|(position, _)| *position);
    Ok(expectations.into_iter().map(|(_, expectation)| expectation).collect())
}

/// The names of jobs, and before them the section of one of them that a figure is of, if it is.
/// Which sections there are is known once the job is planned.
fn with_section(figure: &str, jobs: &[String]) -> Vec<String> {
    let section = jobs.iter().find_map(|job| {
        let rest = figure.strip_prefix(job.as_str())?.strip_prefix('/')?;
        let (section, _) = rest.split_once('.')?;
        Some(format!("{job}/{section}"))
    });
    section.into_iter().chain(jobs.iter().cloned()).collect()
}

/// A scheduler and values of axes, as the left side of an expectation.
type Row = (String, Vec<(String, String)>);

fn read_row(
    document: &Document<'_>,
    key: &toml::Spanned<toml::de::DeString<'_>>,
    experiment: &Experiment,
) -> Result<Row, Error> {
    let text: &str = key.get_ref();
    let mut words = text.split_whitespace();
    let scheduler = words.next().unwrap_or_default().to_string();
    if !experiment.schedulers.iter().any(|(known, _)| *known == scheduler) {
        let known: Vec<&str> = experiment.schedulers.iter().map(|it| it.0.as_str()).collect();
        let hint = base::nearest(&scheduler, known.iter().copied());
        let problem = format!("\"{scheduler}\" is not among the schedulers{hint}");
        let accepted = match known.is_empty() {
            true => format!("schedulers = [\"{scheduler}\", …] as well"),
            false => known.join(", "),
        };
        return Err(document.bad(&key.span(), problem, accepted));
    }
    let mut axes = Vec::new();
    for word in words {
        let pair = word.split_once('=').filter(|(name, value)| {
            let axis = experiment.axes.iter().find(|axis| axis.name == *name);
            axis.is_some_and(|axis| axis.values.iter().any(|it| it == value))
        });
        let Some((name, value)) = pair else {
            let problem = format!("\"{word}\" is no value of an axis");
            return Err(document.bad(&key.span(), problem, "SCHEDULER AXIS=VALUE …"));
        };
        axes.push((name.to_string(), value.to_string()));
    }
    Ok((scheduler, axes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Duration;

    const MINIMAL: &str = "[[job]]\nname = \"a\"\nrun = \"dd of=/dev/sda\"\n";

    fn parse(text: &str) -> Experiment {
        Experiment::parse("x.toml", text).unwrap()
    }

    fn refusal(text: &str) -> String {
        Experiment::parse("x.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn everything_has_a_default_but_the_jobs() {
        let experiment = parse(MINIMAL);
        assert_eq!(
            (experiment.model.as_str(), experiment.host.as_str()),
            ("hdd-7200-sata", "host-2020")
        );
        assert_eq!(experiment.seeds, [1, 2, 3, 4, 5]);
        assert!(refusal("title = \"x\"").starts_with("x.toml:1: an experiment without jobs"));
    }

    #[test]
    fn a_whole_experiment_is_understood() {
        let experiment = parse(
            "title = \"t\"\nstory = \"\"\"\na\nb\"\"\"\nmodel = \"null\"\nmemory = \"1 GiB\"\n\
             kernel = \"4.19\"\nschedulers = [\"noop@4.19\", \"deadline\"]\nseeds = [3, 9]\n\
             setup = [\"drop_caches\"]\nfs = \"raw\"\n\
             [settings]\nnr_requests = 64\n[[cgroup]]\npath = \"db\"\nweight = 800\n\
             [[job]]\nname = \"pg\"\nrun = \"dd count={n}\"\ncgroup = \"db\"\nioprio = \"be/2\"\n\
             start = \"2s\"\nduration = \"30 s\"\nbackground = true\n\
             [axes]\nn = [1, 5]\nmodel = [\"null\"]\n\
             [expect]\n\"noop@4.19 n=5\" = { \"pg.write_bw\" = \"60 kB/s ± 10 %\" }\n",
        );
        assert_eq!((experiment.story.as_str(), experiment.memory), ("a b", Some(Bytes(1 << 30))));
        assert_eq!(experiment.seeds, [3, 9]);
        let job = &experiment.jobs[0];
        assert_eq!((job.start, job.background), (Duration::from_secs(2), true));
        assert_eq!(job.duration, Some(Duration::from_secs(30)));
        assert_eq!(job.place, "x.toml:19");
        let axes: Vec<&str> = experiment.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(axes, ["n", "model"]);
        let expected = &experiment.expect[0];
        assert_eq!((expected.scheduler.as_str(), expected.axes.len()), ("noop@4.19", 1));
    }

    #[test]
    fn a_wrong_key_is_refused_with_place_and_nearest() {
        let text = format!("{MINIMAL}runn = \"dd\"\n");
        assert_eq!(
            refusal(&text),
            "x.toml:4: a job has no key \"runn\"; nearest: \"run\"; accepted: name, run, clones, \
             cgroup, weight, move, ioprio, start, duration, background, CONTROLLER.FILE"
        );
        assert!(refusal(&format!("modle = \"x\"\n{MINIMAL}")).contains("nearest: \"model\""));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert!(refusal("title = \n").starts_with("x.toml:1: not TOML"));
        assert!(refusal(&format!("fs = \"xsf\"\n{MINIMAL}")).contains("nearest: \"xfs\""));
        assert!(refusal(&format!("model = 5\n{MINIMAL}")).contains("model is of type integer"));
        assert!(refusal(&format!("{MINIMAL}start = \"soon\"")).contains("start \"soon\""));
        assert!(refusal(&format!("{MINIMAL}{MINIMAL}")).contains("a second job \"a\""));
        assert!(refusal(&format!("{MINIMAL}[axes]\nn = []")).contains("axis n has no values"));
        let expect = "schedulers = [\"none\"]\n[[job]]\nname = \"a\"\nrun = \"x\"\n[expect]\n";
        assert!(refusal(&format!("{expect}noop = {{}}")).contains("not among the schedulers"));
        assert!(refusal(&format!("{expect}none = {{ p = \"\" }}")).contains("no figure \"p\""));
    }

    /// Whether this is said of a line at the beginning of an experiment, or at the end of its job.
    fn is_refused((line, said): (&str, &str)) {
        let refused = match line.strip_prefix("job: ") {
            Some(line) => refusal(&format!("{MINIMAL}{line}\n")),
            None => refusal(&format!("{line}\n{MINIMAL}")),
        };
        assert!(refused.starts_with("x.toml:") && refused.contains(said), "{line}: {refused}");
    }

    #[test]
    fn a_value_that_means_nothing_is_refused_with_what_it_is_and_what_would_do() {
        let cases = [
            ("seeds = 0", "seeds = 0; accepted: a number of seeds from 1 to 10000"),
            ("seeds = -1", "seeds = -1; accepted: a number of seeds"),
            ("seeds = [3, 3]", "seeds = [3, 3]; accepted: "),
            ("memory = \"0\"", "memory \"0\"; accepted: a size such as"),
            ("memory = \"4 KiB\"", "\"1 GiB\", 1 MiB at least"),
            ("schedulers = []", "the list of schedulers is empty; accepted: "),
            ("job: duration = \"0s\"", "duration \"0s\"; accepted: a time above zero"),
            ("job: clones = 0", "x.toml:4: clones \"0\"; accepted: 1 to 1000"),
            ("job: [axes]\nn = [1, 1]", "axis n has \"1\" twice"),
            ("[[cgroup]]\npath = \"../a\"", "x.toml:2: control group \"../a\"; accepted: names"),
            ("job: move = [{ at = \"1s\", to = \"a//b\" }]", "control group \"a//b\""),
        ];
        cases.into_iter().for_each(is_refused);
        assert!(
            refusal(&MINIMAL.replace("\"a\"", "\" \"")).contains("x.toml:2: the job has no name")
        );
    }

    #[test]
    fn a_value_of_another_form_is_answered_with_what_the_key_takes() {
        let cases = [
            ("kernel = 6.1", "kernel is of type float; accepted: a text in quotes: a version"),
            ("hz = \"250\"", "hz is of type string; accepted: a whole number: 100, 250, 300, 1000"),
            ("schedulers = \"bfq\"", "accepted: a list of NAME[@KERNEL]"),
            ("[cgroup]\npath = \"a\"", "cgroup is of type table; accepted: [[cgroup]] tables"),
            ("queue_depth = 99999999999999999999", "\"99999999999999999999\"; accepted: 1 to 256"),
            ("title = \"a\"\ntitle = \"b\"", "x.toml:2: not TOML: duplicate key \"title\""),
            ("world = \"linux\"", "no key \"world\"; accepted: --world on the command line"),
            ("runs = 3", "no key \"runs\"; accepted: seeds: a number or a list"),
        ];
        cases.into_iter().for_each(is_refused);
    }

    #[test]
    fn a_number_counts_in_whatever_base_it_is_written() {
        let experiment =
            parse(&format!("queue_depth = 0x10\n{MINIMAL}[settings]\nnr_requests = 0x40\n"));
        assert_eq!(experiment.queue_depth, Some(16));
        assert_eq!(experiment.settings[0].value, "64");
    }

    #[test]
    fn an_axis_of_the_command_line_is_a_key_and_values() {
        let axis = Axis::parse("nr_requests=32,64").unwrap();
        assert_eq!((axis.name.as_str(), axis.values.len()), ("nr_requests", 2));
        assert!(Axis::parse("x").is_err() && Axis::parse("=1").is_err());
    }
}
