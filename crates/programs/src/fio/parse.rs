//! From sections to the list of processes: defaults from global sections, clones, reporting
//! groups, stone walls.

use std::path::Path;

use super::build;
use super::error::{ParseError, Place};
use super::job::Job;
use super::options;
use super::settings::{Settings, Value};
use super::source::{self, Section, Setting};
use crate::Surroundings;

/// fio starts at most this many processes (`--max-jobs`).
const MOST_JOBS: u32 = 4096;

/// Parses the text of a job file; `path` is its name for messages and relative includes.
pub fn parse_job_file(
    path: &str,
    text: &str,
    context: &Surroundings<'_>,
) -> Result<Vec<Job>, ParseError> {
    let mut assembler = Assembler::default();
    assembler.job_file(path, text, context).map_err(options::complete)?;
    if assembler.jobs.is_empty() {
        return Err(no_jobs(path));
    }
    Ok(assembler.jobs)
}

/// The refusal of a job file with nothing to run.
pub(super) fn no_jobs(path: &str) -> ParseError {
    let accepted = "a section with another name than global, such as [reader] and rw=randread";
    ParseError::new(&Place::new(&path.into(), 1), "the file defines no jobs").accepts(accepted)
}

/// Collects jobs from job files and from a command line.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    /// What global sections, and options before the first job, have set.
    pub defaults: Settings,
    /// The processes so far.
    pub jobs: Vec<Job>,
    /// The sections to run; all, if empty.
    pub only: Vec<String>,
    /// Writes and trims are refused.
    pub readonly: bool,
    /// The next job starts when all before it ended, whatever it says itself.
    wall: bool,
}

impl Assembler {
    /// Adds the jobs of a job file.
    pub fn job_file(
        &mut self,
        path: &str,
        text: &str,
        context: &Surroundings<'_>,
    ) -> Result<(), ParseError> {
        for section in source::sections(path, text, context)? {
            if section.is_global() {
                let mut defaults = std::mem::take(&mut self.defaults);
                self.apply_section(&mut defaults, &section.settings)?;
                self.defaults = defaults;
            } else if self.only.is_empty() || self.only.contains(&section.name) {
                let mut settings = self.defaults.of_job();
                self.apply_section(&mut settings, &section.settings)?;
                self.section(&section, &settings, context)?;
            }
        }
        Ok(())
    }

    /// Reads a job file from disk. Each file is a world of its own: it runs when the jobs before
    /// it ended, and only the first one sees the defaults of the command line.
    pub fn open_job_file(
        &mut self,
        path: &str,
        place: &Place,
        first: bool,
        context: &Surroundings<'_>,
    ) -> Result<(), ParseError> {
        let text = (context.read_file)(Path::new(path)).map_err(|error| {
            ParseError::new(place, format!("cannot open the job file '{path}': {error}"))
        })?;
        if !first {
            self.defaults = Settings::default();
            self.wall = true;
        }
        self.job_file(path, &text, context)
    }

    fn apply_section(&self, target: &mut Settings, settings: &[Setting]) -> Result<(), ParseError> {
        target.apply_section(settings)?;
        match settings.iter().find(|setting| is_direction(setting)) {
            Some(setting) => self.check_readonly(target, setting),
            None => Ok(()),
        }
    }

    /// Applies one setting from the command line.
    pub fn apply(&self, target: &mut Settings, setting: &Setting) -> Result<(), ParseError> {
        target.apply(setting)?;
        if is_direction(setting) { self.check_readonly(target, setting) } else { Ok(()) }
    }

    fn check_readonly(&self, target: &Settings, setting: &Setting) -> Result<(), ParseError> {
        match target.get("rw") {
            Some(Value::Choice(word, _)) if self.readonly && !word.ends_with("read") => {
                let message = format!("{word} writes or trims, and fio is in read-only mode");
                Err(ParseError::new(&setting.place, message).option(&setting.name))
            }
            _ => Ok(()),
        }
    }

    /// Adds the clones of a section.
    pub fn section(
        &mut self,
        section: &Section,
        settings: &Settings,
        context: &Surroundings<'_>,
    ) -> Result<(), ParseError> {
        let set = |name| matches!(settings.get(name), Some(Value::Switch(true)));
        let mut job = build::build(&section.name, &section.place, settings, context)?;
        if self.jobs.len() + job.clones as usize > MOST_JOBS as usize {
            return Err(job.error(format!("more than {MOST_JOBS} jobs")));
        }
        if section.odd_name {
            job.notes.push(format!(
                "{}: fio takes '{}' for the name, the last character of the line being cut off",
                section.place, section.name
            ));
        }
        self.check_wait_for(&job, settings)?;
        if let Some(last) = self.jobs.last() {
            let wall = set("stonewall") || self.wall;
            job.stage = last.stage + u32::from(wall);
            job.group = last.group + u32::from(wall || set("new_group"));
        }
        self.wall = false;
        let differs =
            |other: &&Job| other.group == job.group && other.goal.steady != job.goal.steady;
        if self.jobs.iter().any(|other| differs(&other)) {
            let message = "steadystate differs from that of a job of the same reporting group";
            return Err(job.error(message));
        }
        for index in 0..job.clones {
            // fio numbers clones from the last to the first. // observed: offset_increment
            let clone = (job.clones - index) % job.clones;
            let mut own = job.clone();
            if clone > 0 {
                let (name, place) = (&section.name, &section.place);
                own.files = build::files_of_clone(name, place, clone, settings, context)?;
            }
            own.clone = clone;
            own.number = self.jobs.len() as u32;
            // Which core belongs to a process depends on how many there are.
            if matches!(settings.get("cpus_allowed_policy"), Some(Value::Choice("split", _))) {
                own.process.cpus =
                    own.process.cpus.map(|cpus| vec![cpus[own.number as usize % cpus.len()]]);
            }
            self.jobs.push(own);
        }
        Ok(())
    }

    /// A job can only wait for one that stands before it and whose name is no other job's.
    fn check_wait_for(&self, job: &Job, settings: &Settings) -> Result<(), ParseError> {
        let Some(name) = &job.wait_for else { return Ok(()) };
        let place = settings.place_of("wait_for", &job.place);
        let error = |message: String| ParseError::new(&place, message).option("wait_for");
        let named = self.jobs.iter().filter(|other| other.name == *name && other.clone == 0);
        match named.count() {
            1 => Ok(()),
            0 => Err(error(format!("there is no job '{name}' before this one"))),
            count => Err(error(format!("{count} jobs are called '{name}'"))),
        }
    }
}

fn is_direction(setting: &Setting) -> bool {
    setting.name == "rw" || setting.name == "readwrite"
}
