//! `fio --name=x --rw=read …`: a command line means what a job file means.
//!
//! Options before the first `--name` are defaults; each `--name` begins a job; anything else is a
//! job file. A name may be cut short where it stays unambiguous, and one dash does for two. Unlike
//! in a job file, keywords are not replaced, and the options of an ioengine exist only behind it.

use std::sync::Arc;

use super::error::{self, ParseError, Place};
use super::job::Job;
use super::options;
use super::parse::{Assembler, no_jobs};
use super::settings::Settings;
use super::source::{Section, Setting};
use crate::Surroundings;

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The processes to run.
    pub jobs: Vec<Job>,
    /// Options of the program itself that change nothing here, with the reason.
    pub ignored: Vec<(&'static str, &'static str)>,
}

/// Parses the words behind `fio`.
pub fn parse_command_line(
    words: &[String],
    context: &Surroundings<'_>,
) -> Result<CommandLine, ParseError> {
    let reader = Reader {
        words,
        next: 0,
        file: Place::COMMAND_LINE.into(),
        assembler: Assembler::default(),
        job: None,
        job_files: Vec::new(),
        ignored: Vec::new(),
        context,
    };
    let read = |mut reader: Reader<'_, '_>| {
        while reader.next < words.len() {
            reader.word()?;
        }
        reader.finish()
    };
    read(reader).map_err(options::complete)
}

/// An option of the program itself.
struct Program {
    name: &'static str,
    takes_value: bool,
    effect: Effect,
}

#[derive(Clone, Copy)]
enum Effect {
    /// Nothing changes; the reason.
    Ignored(&'static str),
    /// fio would do something else than run jobs.
    Refused(&'static str),
    /// Names a section to run.
    Section,
    /// Refuses writes from here on.
    ReadOnly,
    /// Names forms of output.
    OutputFormat,
}

const SHOWN: &str = "results are shown by the report";
const OTHER: &str = "it does something else than run jobs";
const REMOTE: &str = "jobs run in this process only";

const fn flag(name: &'static str, effect: Effect) -> Program {
    Program { name, takes_value: false, effect }
}

const fn valued(name: &'static str, effect: Effect) -> Program {
    Program { name, takes_value: true, effect }
}

const PROGRAM: &[Program] = &[
    valued("output", Effect::Ignored(SHOWN)),
    valued("output-format", Effect::OutputFormat),
    valued("eta", Effect::Ignored(SHOWN)),
    valued("eta-interval", Effect::Ignored(SHOWN)),
    valued("eta-newline", Effect::Ignored(SHOWN)),
    valued("status-interval", Effect::Ignored(SHOWN)),
    valued("terse-version", Effect::Ignored(SHOWN)),
    flag("minimal", Effect::Ignored(SHOWN)),
    flag("append-terse", Effect::Ignored(SHOWN)),
    flag("bandwidth-log", Effect::Ignored(SHOWN)),
    flag("latency-log", Effect::Ignored(SHOWN)),
    valued("idle-prof", Effect::Ignored(SHOWN)),
    valued("debug", Effect::Ignored(SHOWN)),
    valued("alloc-size", Effect::Ignored("memory is not reserved beforehand")),
    valued("max-jobs", Effect::Ignored("the limit is fixed")),
    valued("aux-path", Effect::Ignored("no files are written beside the results")),
    flag("warnings-fatal", Effect::Ignored("what fio warns of is an error or a note here")),
    valued("section", Effect::Section),
    flag("readonly", Effect::ReadOnly),
    flag("parse-only", Effect::Refused(OTHER)),
    flag("showcmd", Effect::Refused(OTHER)),
    flag("version", Effect::Refused(OTHER)),
    flag("help", Effect::Refused(OTHER)),
    valued("cmdhelp", Effect::Refused(OTHER)),
    valued("enghelp", Effect::Refused(OTHER)),
    flag("crctest", Effect::Refused(OTHER)),
    flag("cpuclock-test", Effect::Refused(OTHER)),
    flag("memcpytest", Effect::Refused(OTHER)),
    valued("inflate-log", Effect::Refused(OTHER)),
    flag("merge-blktrace-only", Effect::Refused(OTHER)),
    valued("server", Effect::Refused(REMOTE)),
    valued("daemonize", Effect::Refused(REMOTE)),
    valued("client", Effect::Refused(REMOTE)),
    valued("remote-config", Effect::Refused(REMOTE)),
    valued("trigger-file", Effect::Refused("triggers are not modelled")),
    valued("trigger-timeout", Effect::Refused("triggers are not modelled")),
    valued("trigger", Effect::Refused("triggers are not modelled")),
    valued("trigger-remote", Effect::Refused("triggers are not modelled")),
];

struct Reader<'a, 'c> {
    words: &'a [String],
    next: usize,
    file: Arc<str>,
    assembler: Assembler,
    /// The job being described; options go to the defaults while there is none.
    job: Option<(Section, Settings)>,
    job_files: Vec<(String, Place)>,
    ignored: Vec<(&'static str, &'static str)>,
    context: &'a Surroundings<'c>,
}

impl Reader<'_, '_> {
    fn word(&mut self) -> Result<(), ParseError> {
        let word = self.words[self.next].as_str();
        self.next += 1;
        let place = Place::new(&self.file, self.next as u32);
        if word == "--" {
            let rest = self.words[self.next..].iter().zip(self.next as u32 + 1..);
            let files = rest.map(|(path, line)| (path.clone(), Place::new(&self.file, line)));
            self.job_files.extend(files);
            self.next = self.words.len();
            return Ok(());
        }
        let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            self.job_files.push((word.to_owned(), place));
            return Ok(());
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        let known = self.known(name, &place)?;
        let takes_value = match known {
            Known::Program(program) => program.takes_value,
            Known::Job(row) => row.takes_value(),
        };
        let value = match value {
            None if takes_value => Some(self.value(name, &place)?),
            value => value,
        };
        match known {
            Known::Program(program) => self.program(program, value.as_deref(), &place),
            Known::Job(row) => self.setting(Setting { name: row.name.to_owned(), value, place }),
        }
    }

    /// The next word as the value of the option before it, whatever it looks like.
    fn value(&mut self, name: &str, place: &Place) -> Result<String, ParseError> {
        let value = self.words.get(self.next).cloned();
        self.next += 1;
        value.ok_or_else(|| ParseError::new(place, "needs a value").option(name))
    }

    /// The option that `name` means: its full name, or the only one that begins so.
    fn known(&self, name: &str, place: &Place) -> Result<Known, ParseError> {
        let settings = self.job.as_ref().map_or(&self.assembler.defaults, |(_, job)| job);
        let engine = settings.engine();
        if let Some(program) = PROGRAM.iter().find(|program| program.name == name) {
            return Ok(Known::Program(program));
        }
        if let Some(row) = options::find(name, engine) {
            return Ok(Known::Job(row));
        }
        let programs = PROGRAM.iter().map(|program| (program.name, Known::Program(program)));
        let rows = options::all().filter(|row| row.belongs_to(engine));
        let rows = rows.flat_map(|row| {
            row.aliases.iter().chain([&row.name]).map(move |alias| (*alias, Known::Job(row)))
        });
        let mut candidates: Vec<(&str, Known)> = programs
            .chain(rows)
            .filter(|(known, _)| !name.is_empty() && known.starts_with(name))
            .collect();
        candidates.sort_by_key(|(_, known)| known.name());
        candidates.dedup_by_key(|(_, known)| known.name());
        match candidates[..] {
            [(_, known)] => Ok(known),
            [] => Err(self.unknown(name, engine, place)),
            _ => {
                let names: Vec<&str> = candidates.iter().map(|(_, known)| known.name()).collect();
                Err(ParseError::new(place, "is ambiguous").option(name).accepts(names.join(", ")))
            }
        }
    }

    fn unknown(&self, name: &str, engine: &str, place: &Place) -> ParseError {
        let engines = options::engines_with(name);
        if !engines.is_empty() {
            let message = format!("only exists behind --ioengine={}", engines.join(" or "));
            return ParseError::new(place, message).option(name);
        }
        let programs = PROGRAM.iter().map(|program| program.name);
        let nearest = options::nearest(name, engine).or_else(|| error::nearest(name, programs));
        ParseError::new(place, "no such option of fio 3.33").option(name).nearest(nearest)
    }

    fn program(
        &mut self,
        program: &Program,
        value: Option<&str>,
        place: &Place,
    ) -> Result<(), ParseError> {
        let error = |message: &str| ParseError::new(place, message).option(program.name);
        match program.effect {
            Effect::Ignored(reason) => self.ignored.push((program.name, reason)),
            Effect::Refused(reason) => {
                return Err(error(&format!("not available: {reason}")));
            }
            Effect::Section => self.assembler.only.extend(value.map(str::to_owned)),
            Effect::ReadOnly => self.assembler.readonly = true,
            Effect::OutputFormat => {
                const FORMATS: [&str; 4] = ["normal", "terse", "json", "json+"];
                let formats = value.unwrap_or_default();
                if let Some(bad) = formats.split(',').find(|format| !FORMATS.contains(format)) {
                    let message = format!("'{bad}' is no form of output");
                    return Err(error(&message).accepts(FORMATS.join(", ")));
                }
                self.ignored.push((program.name, SHOWN));
            }
        }
        Ok(())
    }

    fn setting(&mut self, setting: Setting) -> Result<(), ParseError> {
        if setting.name == "name" {
            let name = setting.value.as_deref().unwrap_or_default();
            if name.is_empty() {
                return Err(ParseError::new(&setting.place, "needs a name").option("name"));
            }
            self.end_job()?;
            let section = Section::new(name, setting.place);
            if !section.is_global() {
                let mut settings = self.assembler.defaults.of_job();
                settings.note_typed("name", &section.name);
                self.job = Some((section, settings));
            }
            return Ok(());
        }
        if let Some((_, settings)) = &mut self.job {
            return self.assembler.apply(settings, &setting);
        }
        let mut defaults = std::mem::take(&mut self.assembler.defaults);
        self.assembler.apply(&mut defaults, &setting)?;
        self.assembler.defaults = defaults;
        Ok(())
    }

    fn end_job(&mut self) -> Result<(), ParseError> {
        match self.job.take() {
            Some((section, settings)) => self.assembler.section(&section, &settings, self.context),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<CommandLine, ParseError> {
        self.end_job()?;
        for (index, (path, place)) in self.job_files.iter().enumerate() {
            self.assembler.open_job_file(path, place, index == 0, self.context)?;
        }
        if self.assembler.jobs.is_empty() {
            return Err(match self.job_files.first() {
                Some((path, _)) => no_jobs(path),
                None => ParseError::new(&Place::new(&self.file, 1), "the command defines no jobs")
                    .accepts("--name=NAME and its options, or a job file"),
            });
        }
        Ok(CommandLine { jobs: self.assembler.jobs, ignored: self.ignored })
    }
}

#[derive(Clone, Copy)]
enum Known {
    Program(&'static Program),
    Job(&'static options::Row),
}

impl Known {
    fn name(&self) -> &'static str {
        match self {
            Known::Program(program) => program.name,
            Known::Job(row) => row.name,
        }
    }
}
