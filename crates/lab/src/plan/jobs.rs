//! The jobs of an experiment: from command lines, job files and recordings to programs.

use super::{PlannedJob, Planner};
use crate::error::Error;
use crate::experiment::cgroup::{MoveSpec, absolute, check_path};
use crate::experiment::job::{JobSpec, Recording, Work};
use crate::metrics::{Naming, Section};
use crate::quantity::{Kind, human};
use crate::world::World;
use base::{Duration, Histogram, Instant};
use block::Ioprio;
use machine::Format;
use machine::Host;
use programs::Program;
use programs::dump::Dump;
use programs::fio::Fio;
use programs::pgioperf::Pgioperf;
use programs::replay::Replay;
use std::path::Path;
use std::sync::Arc;

impl Planner {
    pub(super) fn jobs(&self, host: &Host) -> Result<Vec<PlannedJob>, Error> {
        let jobs = &self.experiment.jobs;
        if let Some(first) = jobs.first().filter(|_| jobs.iter().all(|job| job.background)) {
            let accepted = "at least one job without background = true";
            return Err(Error::bad(&first.place, "all jobs are in the background", accepted));
        }
        let planned = self.experiment.jobs.iter().map(|job| self.with_clones(job, host));
        let mut planned = planned.collect::<Result<Vec<_>, _>>()?;
        tell_apart(&mut planned);
        Ok(planned)
    }

    pub(super) fn job(&self, spec: &JobSpec, host: &Host) -> Result<PlannedJob, Error> {
        let mut planned = match &spec.work {
            Work::Command(line) => {
                self.command(&self.substituted(line, &spec.place)?, spec, host)?
            }
            Work::JobFile(path) => self.job_file(path, spec, host)?,
            Work::Trace(recording) => replay(recording, spec),
        };
        let job = &mut planned.job;
        if let Some(cgroup) = &spec.cgroup {
            job.cgroup = self.substituted(cgroup, &spec.place)?;
            check_path(&job.cgroup, &spec.place)?;
        }
        if let Some(ioprio) = spec.ioprio {
            job.ioprio = ioprio;
        }
        job.cgroup = absolute(&job.cgroup);
        job.start = Instant::ZERO + spec.start;
        job.duration = spec.duration.or(job.duration);
        job.moves = spec.moves.iter().map(MoveSpec::planned).collect();
        job.background = spec.background;
        planned.weight = spec.weight.or(planned.weight);
        Ok(planned)
    }

    /// Understands a command.
    pub(super) fn command(
        &self,
        line: &str,
        spec: &JobSpec,
        host: &Host,
    ) -> Result<PlannedJob, Error> {
        let refuse = |cause: programs::CommandError| match &spec.work {
            Work::JobFile(_) => Error::JobFile(cause.to_string()),
            _ => Error::Command { place: spec.place.clone(), cause: cause.to_string() },
        };
        let read_file = |path: &Path| {
            let beside = self.experiment.directory.join(path);
            params::read_text(if path.exists() { path } else { &beside })
        };
        let mount = self.experiment.mount.as_ref();
        let context = programs::Surroundings {
            page_size: base::page::SIZE,
            ncpus: host.machine.cores.into(),
            mb_memory: self.memory().0 >> 20,
            habits: &host.guest.habits,
            mount,
            environment: &|name| std::env::var(name).ok(),
            read_file: &read_file,
        };
        let command = programs::parse_in(line, &context).map_err(refuse)?;
        let program = command.program;
        let mut job = machine::Job::new(&spec.name, program.clone());
        job.ioprio = command.ioprio.unwrap_or(Ioprio::NONE);
        job.nice = command.nice.unwrap_or(0);
        job.affinity = command.affinity;
        job.duration = command.duration;
        if let Some(cgroup) = command.cgroup {
            job.cgroup = cgroup;
        }
        self.check_files(&program.files(), &spec.place)?;
        self.check_laid_out(&*program, &spec.place)?;
        let is_there = |dump: &Dump| !dump.is_described();
        let dumps = program.parts().iter().any(|it| it.downcast().is_some_and(is_there));
        if dumps && self.experiment.worlds.contains(&World::Sim) {
            let problem = "dump of the file system itself is not modelled";
            let accepted = "--population=COUNTxSIZE without fs, or --world linux alone";
            return Err(Error::bad(&spec.place, problem, accepted));
        }
        let is_xfs = mount.is_some_and(|it| it.format == Format::Xfs);
        if is_xfs && program.copies_files() {
            let problem = "cp shares the blocks of the source on xfs, which is not modelled";
            let accepted = "cp --reflink=never, dd, or fs = \"ext4\"";
            return Err(Error::bad(&spec.place, problem.to_string(), accepted));
        }
        let (naming, notes) = match program.downcast() {
            // The guest runs fio itself, which ignores nothing.
            Some(fio) if self.is_linux_alone() => (sections(fio), guest_notes(fio)),
            Some(fio) => (sections(fio), notes(fio)),
            None => (processes(&*program), Vec::new()),
        };
        let weight = command.weight;
        let line = Some(programs::without_shell(line));
        let clones = Vec::new();
        let named_by_task = spec.is_unnamed && program.is::<Fio>();
        Ok(PlannedJob { line, program, job, clones, weight, naming, named_by_task, notes })
    }

    /// Understands a fio job file.
    fn job_file(&self, path: &Path, spec: &JobSpec, host: &Host) -> Result<PlannedJob, Error> {
        let quoted = path.display().to_string().replace('\'', "'\\''");
        let planned = self.command(&format!("fio '{quoted}'"), spec, host)?;
        Ok(PlannedJob { named_by_task: true, ..planned })
    }
}

/// Gives jobs that are called by their tasks alone the name of the job as well where others have
/// such a name.
fn tell_apart(jobs: &mut [PlannedJob]) {
    let mut taken: Vec<String> = Vec::new();
    for job in jobs {
        if job.clones.is_empty() && job.result_names().iter().any(|it| taken.contains(it)) {
            job.named_by_task = false;
        }
        taken.extend(job.result_names());
    }
}

/// How the results of a fio command are told apart.
fn sections(fio: &Fio) -> Naming {
    let mut sections: Vec<Section> = Vec::new();
    for job in fio.jobs() {
        if sections.iter().all(|section| section.name != job.name) {
            sections.push(Section { name: job.name.clone(), ramp: job.timing.ramp });
        }
    }
    Naming::Sections(sections)
}

/// How the results of another program are told apart.
fn processes(program: &dyn Program) -> Naming {
    let names = program.downcast().map(Pgioperf::processes).unwrap_or_default();
    let section = |name: &str| Section { name: name.to_string(), ramp: Duration::ZERO };
    match names.as_slice() {
        [] => Naming::Whole,
        names => Naming::Sections(names.iter().map(|name| section(name)).collect()),
    }
}

/// How a note begins that holds where contents are not there.
const VERIFY: &str = "verify: ";

/// What the user should know about a fio command that fio itself runs.
fn guest_notes(fio: &Fio) -> Vec<String> {
    let mut notes = fio.notes();
    notes.retain(|note| !note.starts_with(VERIFY));
    if fio.jobs().iter().flat_map(|job| &job.ignored).any(|it| it.option == "clocksource") {
        notes.push(
            "fio reads the clock that it is told to (clocksource); cpu is the counter of the \
             machine outside, so times by it are wrong."
                .to_string(),
        );
    }
    notes
}

/// What the user should know about a fio command: how it was understood, and what was ignored.
fn notes(fio: &Fio) -> Vec<String> {
    let mut notes = fio.notes();
    if fio.jobs().iter().any(|job| job.logs.are_written()) {
        notes.push("Each result has a directory for fio's logs where they would be.".to_string());
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for ignored in fio.jobs().iter().flat_map(|job| &job.ignored) {
        let known = reasons.iter().position(|(reason, _)| *reason == ignored.reason);
        let at = known.unwrap_or_else(|| {
            reasons.push((ignored.reason, Vec::new()));
            reasons.len() - 1
        });
        if !reasons[at].1.contains(&ignored.option) {
            reasons[at].1.push(ignored.option);
        }
    }
    notes.extend(
        reasons
            .iter()
            .map(|(reason, options)| format!("Ignored: {}: {reason}", options.join(", "))),
    );
    notes
}

fn replay(recording: &Recording, spec: &JobSpec) -> PlannedJob {
    let (arrivals, pace) = (recording.arrivals.clone(), recording.pace);
    let remarks = recording.remarks.iter();
    let recorded = recorded_latency(&arrivals).map(|it| format!("As recorded: {it}."));
    let notes = remarks.map(|it| format!("{}: {it}", recording.path.display())).chain(recorded);
    let notes = notes.collect();
    PlannedJob { notes, ..PlannedJob::new(&spec.name, Arc::new(Replay { arrivals, pace })) }
}

/// What requests took when they were recorded, if the recording says so.
fn recorded_latency(arrivals: &[trace::Arrival]) -> Option<String> {
    let kinds = [(trace::Op::Read, "a read"), (trace::Op::Write, "a write")].map(|(op, name)| {
        let of_kind = arrivals.iter().filter(|arrival| arrival.op == op);
        let mut histogram = Histogram::new();
        of_kind.filter_map(|it| it.service).for_each(|took| histogram.record(took));
        if histogram.count() == 0 {
            return None;
        }
        let time = |it: Duration| human(it.as_nanos() as f64, Kind::Time);
        let [p50, p99] = [5000, 9900].map(|it| time(histogram.quantile(it, 10_000)));
        let (mean, max) = (time(histogram.mean()), time(histogram.max()));
        Some(format!("{name} took p50 {p50}, p99 {p99}, max {max}, mean {mean}"))
    });
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    (!kinds.is_empty()).then(|| kinds.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_said_by_kind() {
        let read = |millis| trace::Arrival {
            at: Instant::ZERO,
            op: trace::Op::Read,
            flags: trace::Flags::default(),
            sector: base::Sector(0),
            bytes: base::Bytes(4096),
            device: 0,
            pid: None,
            service: Some(Duration::from_millis(millis)),
            think: None,
        };
        let said = recorded_latency(&[read(2), read(4)]).unwrap();
        assert!(said.starts_with("a read took p50 2") && said.contains("mean 3.00 ms"), "{said}");
        let silent = trace::Arrival { service: None, ..read(1) };
        assert_eq!(recorded_latency(&[silent]), None);
    }
}
