//! The world `linux`: an experiment with the real programs on a real kernel, in virtual time.
//!
//! The disk is the same model with the same seed as in the simulator, behind virtio; computing
//! takes no time. So whatever differs from the simulator is an error of the simulator, or of the
//! translation here. What programs say of themselves becomes the same results
//! ([`crate::result::RunResult`]) that the simulator measures.
//!
//! * `image`: a file system on the disk.
//! * `command`: jobs as the guest's shell gets them.
//! * `said`: what programs print, as figures.
//! * `brought`: what programs there need: files of this machine, a program made here.
//! * `bell`: the end of a run whose jobs have none.
//! * `served`: what the disk did, from its log.
//! * `settings`: what is written to files of the guest, and what is said of one that is refused.
//! * `recording`: what the kernel recorded, as blktrace files; `load`: a load for recordings.
//!
//! Leaves out: in results, the way of requests through the queue; and what the calls of dd took,
//! which it does not say.

mod bell;
mod brought;
pub mod command;
mod image;
mod load;
pub mod recording;
mod said;
mod served;
mod settings;
mod warming;

use crate::error::Error;
use crate::kernels::built;
use crate::metrics::bios::{self, Asked};
use crate::metrics::commands::{self, Agreement, Step};
use crate::metrics::{Layers, Throttling};
use crate::plan::{Plan, Row};
use crate::result::{JobResult, RunResult};
use crate::scheduler_spec::SchedulerSpec;
use crate::virtio;
use crate::world::World;
use base::{Bytes, Duration, Hz, Instant};
use block::Version;
use command::Draws;
use linux::configuration::default_hz;
use linux::{Contents, Disk, Finished, Guest, Job, Kernel, Protocol, Root, RunError};
use linux::{Hierarchy, Script, Setting, Trace, Watchdog};
use programs::fio::Fio;
use recording::{Machine, Recorded, Times};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What watching the block layer takes besides the room for its lines
/// (measured: nr_free_pages of a guest of 192 MiB with and without, 62 pages).
const WATCHING: Bytes = Bytes(248 << 10);
/// How often it is watched at most.
const WATCHES: u64 = 3;
/// Programs that are only needed where an experiment runs them.
const RARE: [&str; 3] = ["dbench", "dump", "sysbench"];
/// The programs that experiments run.
const PROGRAMS: [&str; 14] = [
    "cp",
    "dd",
    "fallocate",
    "fio",
    "ls",
    "mkdir",
    "mv",
    "rm",
    "rmdir",
    "sleep",
    "stat",
    "sync",
    "touch",
    "truncate",
];

/// Kernels and a root directory that runs share.
#[derive(Debug)]
pub struct LinuxWorld {
    /// Those that judge rules, one for each version and tick that is asked for.
    judges: Vec<((Version, Hz), Kernel)>,
    root: Root,
    /// Removed in the end.
    directory: PathBuf,
}

impl LinuxWorld {
    /// What the rows of a plan need, if any of them is in this world.
    pub fn for_plan(plan: &Plan) -> Result<Option<LinuxWorld>, Error> {
        let rows = || plan.rows.iter().filter(|row| row.world == World::Linux);
        let judged = rows().filter(|row| row.spec.guest.is_none());
        let mut judges: Vec<_> =
            judged.map(|row| (row.spec.kernel.version, row.spec.kernel.hz)).collect();
        judges.sort_unstable();
        judges.dedup();
        let wanted: Vec<&str> = rows().flat_map(Row::all_programs).map(|it| it.name()).collect();
        let rare = RARE.into_iter().filter(|name| wanted.contains(name));
        let programs: Vec<&str> = PROGRAMS.into_iter().chain(rare).collect();
        if rows().next().is_none() {
            return Ok(None);
        }
        let world = LinuxWorld::with(&programs, &judges)?;
        for mount in rows().filter_map(|row| row.mount.as_ref()) {
            world.root.add_directory(Path::new(&mount.point)).map_err(Error::no_linux)?;
        }
        for program in rows().flat_map(Row::all_programs) {
            world.bring(program, &plan.experiment.directory)?;
        }
        if plan.runs() > 1 {
            world.try_settings(rows())?;
        }
        Ok(Some(world))
    }

    /// Lets each kernel look at what is to be written to its files, before anything takes long.
    fn try_settings<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Result<(), Error> {
        let mut tried: Vec<(&Kernel, Script)> = Vec::new();
        for row in rows.filter(|row| settings::are_for_the_kernel(row)) {
            let asked = script(row);
            let script = Script {
                settings: asked.settings,
                hierarchy: asked.hierarchy,
                cgroups: asked.cgroups,
                ..Script::default()
            };
            let (kernel, before) = (self.kernel(&row.spec), script.clone());
            if !tried.iter().any(|it| (it.0, &it.1) == (kernel, &before)) {
                finish(self.guest_with(row, 1, script)?, row, 1)?;
                tried.push((kernel, before));
            }
        }
        Ok(())
    }

    /// A root directory with these programs, and one of the judges with the usual tick from the
    /// cache.
    pub fn open(judge: Version, programs: &[&str]) -> Result<LinuxWorld, Error> {
        LinuxWorld::with(programs, &[(judge, default_hz())])
    }

    fn with(programs: &[&str], judges: &[(Version, Hz)]) -> Result<LinuxWorld, Error> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let judge =
            |&(version, hz): &(Version, Hz)| Ok(((version, hz), built(&version.to_string(), hz)?));
        let judges = judges.iter().map(judge).collect::<Result<_, Error>>()?;
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let name = format!("paternoster-root-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let root = match Root::make(&directory, programs) {
            Ok(root) => root,
            Err(cause) => {
                // What there is of it is of no use; the error is what matters.
                let _ = std::fs::remove_dir_all(&directory);
                return Err(Error::no_linux(cause));
            }
        };
        Ok(LinuxWorld { judges, root, directory })
    }

    /// Runs one row with one seed; what it does is recorded into a directory, if one is asked for,
    /// without any influence on it.
    pub fn run(
        &self,
        row: &Row,
        seed: u64,
        watches_bios: bool,
        record_to: Option<&Path>,
    ) -> Result<RunResult, Error> {
        let mut result = self.run_as_it_is(row, seed, record_to)?;
        if watches_bios {
            result.bios = self.bios(row, seed, &result.commands)?;
        }
        Ok(result)
    }

    fn run_as_it_is(
        &self,
        row: &Row,
        seed: u64,
        record_to: Option<&Path>,
    ) -> Result<RunResult, Error> {
        let mut guest = self.guest(row, seed)?;
        if record_to.is_some() {
            let has_groups = !guest.script.cgroups.is_empty();
            // What may be dirty matters with files; without, not a tick is to move.
            let has_files = row.mount.is_some();
            guest.script.trace = Times::Disk.trace_in(recording::ROOM, has_groups, has_files);
        }
        let finished = finish(guest, row, seed)?;
        if let Some(directory) = record_to {
            let (kernel, model) = (self.kernel(&row.spec), row.model.name());
            let queue_depth = row.facts().queue_depth;
            let machine = Machine { kernel, model, queue_depth, times: Times::Disk };
            Recorded::of(machine, &finished)?.write(directory)?;
        }
        result(row, seed, &finished)
    }

    /// What tasks give to the block layer, watched in a run of its own, in a guest that has more
    /// memory for that. Where some pages more make the kernel do something else, or it has no room
    /// for all its lines, it gets a MiB more until it gives the disk the same commands and has;
    /// if it never does, the first run counts.
    fn bios(&self, row: &Row, seed: u64, commands: &[Step]) -> Result<Vec<Asked>, Error> {
        let mut first = None;
        for more in 0..WATCHES {
            let room = Bytes(watch_memory(row.memory).0 + (more << 20));
            let mut guest = self.guest(row, seed)?;
            guest.script.watch = Some(Bytes(room.0 - WATCHING.0));
            guest.memory = Bytes(guest.memory.0 + room.0);
            let finished = finish(guest, row, seed)?;
            let watched = result(row, seed, &finished)?;
            let is_same = Agreement::of(&watched.commands, commands).same_commands();
            if is_same && bios::is_whole(&finished.bios) {
                return Ok(watched.bios);
            }
            first.get_or_insert(watched.bios);
        }
        Ok(first.expect("it is watched at least once"))
    }

    fn guest<'a>(&'a self, row: &'a Row, seed: u64) -> Result<Guest<'a>, Error> {
        let mut script = script(row);
        for line in &row.preparation {
            let draws = Draws { seed, job: 0 };
            let command = command::of_line(line, row.mount.as_ref(), draws, &mut script.setup)?;
            script.preparation.push(command);
        }
        for (job, planned) in (0..).zip(&row.jobs) {
            let draws = Draws { seed, job };
            let command = command::of_job(planned, row.mount.as_ref(), draws, &mut script.setup)?;
            let group = planned.job.cgroup.trim_matches('/');
            let has_group = row.blkio && !group.is_empty();
            script.jobs.push(Job {
                name: planned.job.name.clone(),
                command,
                start: planned.job.start.saturating_since(Instant::ZERO),
                cgroup: has_group.then(|| group.to_string()),
                ioprio: Some(planned.job.ioprio).filter(|it| *it != block::Ioprio::NONE),
                background: planned.job.background,
            });
        }
        if script.setup.contains(&linux::visit::name_disk(warming::NAME)) {
            script.lead = Some(warming::by_other_name());
        }
        self.guest_with(row, seed, script)
    }

    fn guest_with<'a>(
        &'a self,
        row: &'a Row,
        seed: u64,
        script: Script,
    ) -> Result<Guest<'a>, Error> {
        let Disk { name, mut device, contents } = LinuxWorld::disk_of(row, seed)?;
        let queue_depth = row.facts().queue_depth;
        let mut bells = vec![None];
        if let Some(most) = row.most_calls {
            let count = bell::Count::default();
            device = Box::new(bell::Counted::new(device, count.clone()));
            let needed = 1 + usize::from(bell::needs_second(queue_depth));
            bells = (0..needed).map(|_| Some(bell::Bell::new(count.clone(), most))).collect();
        }
        let mut disks = vec![Disk { name, device, contents }];
        disks.extend(bells.into_iter().map(|bell| warming::disk(queue_depth, bell)));
        Ok(Guest {
            kernel: self.kernel(&row.spec),
            root: &self.root,
            memory: row.memory,
            disks,
            queue_depth,
            script,
            seed,
            protocol: Protocol::SharedMemory,
            watchdog: Watchdog::default(),
            core: None,
        })
    }

    /// The kernel that was named, or the one that judges the rules of the row.
    fn kernel<'a>(&'a self, spec: &'a SchedulerSpec) -> &'a Kernel {
        match &spec.guest {
            Some(guest) => guest.kernel(),
            None => self.judge(spec.kernel.version, spec.kernel.hz),
        }
    }

    fn judge(&self, version: Version, hz: Hz) -> &Kernel {
        let found = self.judges.iter().find(|(judge, _)| *judge == (version, hz));
        let (_, kernel) = found.expect("there is one for each version and tick of a row");
        kernel
    }

    /// The rules of the kernel of a world that was opened with one.
    pub fn rules(&self) -> &'static block::Kernel {
        let [((version, _), _)] = &self.judges[..] else { panic!("not one: {:?}", self.judges) };
        block::Kernel::of(*version)
    }

    /// The kernel of a world that was opened with one.
    fn only_judge(&self) -> &Kernel {
        let [(_, kernel)] = &self.judges[..] else { panic!("one judge, not {:?}", self.judges) };
        kernel
    }

    /// The disk of a row.
    fn disk_of(row: &Row, seed: u64) -> Result<Disk, Error> {
        let (contents, beginning) = match row.mount {
            Some(ref mount) => {
                let made = image::fresh(mount.format, row.facts().capacity)?;
                (made, virtio::Beginning::AFTER_MOUNT)
            }
            // What nobody looks at need not be kept.
            None if verifies(row) => {
                (Contents::new(linux::visit::DATA), virtio::Beginning::AFTER_BOOT)
            }
            None => (Contents::forgetful(), virtio::Beginning::AFTER_BOOT),
        };
        let facts = row.facts().clone();
        Ok(Disk {
            name: row.model.name().to_string(),
            device: Box::new(virtio::Renewed::new(&row.model, seed, facts, beginning)),
            contents,
        })
    }
}

/// Whether somebody compares what is read with what was written.
fn verifies(row: &Row) -> bool {
    let mut parts = row.preparation.iter().chain(&row.jobs).flat_map(|it| it.program.parts());
    parts.any(|part| {
        let fio = part.downcast::<Fio>();
        fio.is_some_and(|fio| fio.jobs().iter().any(|job| job.verify.is_some()))
    })
}

/// Runs a guest to its end.
fn finish(guest: Guest<'_>, row: &Row, seed: u64) -> Result<Finished, Error> {
    guest.run().map_err(|cause| match cause {
        RunError::Refused(refusal) => settings::refused(row, &refusal),
        cause => Error::linux(format!("{}, seed {seed}, world linux: {cause}", row.spec.label())),
    })
}

impl Drop for LinuxWorld {
    fn drop(&mut self) {
        // A directory that cannot be removed is litter, not a failure of the run.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// What a guest gets for lines about what tasks give to the block layer: whole MiB, so few that its
/// limits of dirty pages, which are known from the boot on, stay the same within a percent. A MiB
/// has room for 16,000 lines.
fn watch_memory(memory: Bytes) -> Bytes {
    Bytes((memory.0 >> 27).clamp(1, 4) << 20)
}

/// Whether a tunable of ours is the scheduler's in sysfs of a kernel, and not the queue's.
pub fn is_schedulers(rules: &block::Kernel, tunable: &str) -> bool {
    tunable != "async_depth" || rules.multi.is_none_or(|multi| !multi.async_depth_is_of_queue)
}

/// Settings and groups, without jobs.
fn script(row: &Row) -> Script {
    let rotational = u8::from(row.facts().rotational).to_string();
    let mut settings = vec![
        Setting::queue(0, "rotational", rotational),
        // Nothing is throttled unless a setting says so, as in the simulator.
        Setting::queue(0, "wbt_lat_usec", "0"),
        // A scheduler that is attached anew remembers nothing of the boot.
        Setting::queue(0, "scheduler", "none"),
        Setting::queue(0, "scheduler", row.spec.name),
    ];
    if !row.facts().volatile_cache && row.model.facts().volatile_cache {
        settings.push(Setting::queue(0, "write_cache", "write through"));
    }
    settings.extend(settings::of_disk(row).into_iter().map(|it| it.written));
    let cgroups = settings::cgroups(row);
    // The disk hears nothing for a while, and so knows the first command of the jobs.
    let setup = match &row.mount {
        Some(mount) => image::mounting(mount, warming::WARM_UP),
        None => vec![warming::WARM_UP.to_string(), "sleep 2".to_string()],
    };
    // Without the controllers of memory and I/O in one hierarchy there is none.
    let hierarchy = if row.cgroup_writeback { Hierarchy::V2 } else { Hierarchy::V1 };
    let lead = Some(warming::WARM_UP.to_string());
    let bell = row.most_calls.map(|_| bell::commands(row.facts().queue_depth));
    Script {
        settings,
        hierarchy,
        cgroups,
        setup,
        lead,
        bell,
        trace: Trace::Off,
        ..Script::default()
    }
}

/// What a guest left, as a result.
fn result(row: &Row, seed: u64, finished: &Finished) -> Result<RunResult, Error> {
    let began = finished.begun;
    let (disk, device) = served::measure(&finished.log, began);
    let mut fingerprint = finished.log.fingerprint();
    let (mut jobs, mut processes, mut exits) = (Vec::<JobResult>::new(), Vec::new(), Vec::new());
    for (planned, outcome) in row.jobs.iter().zip(&finished.jobs) {
        fingerprint.mix_bytes(&outcome.output);
        fingerprint.mix_bytes(&outcome.errors);
        let said = said::of_job(planned, outcome)?;
        jobs.extend(said.jobs);
        processes.extend(said.processes);
        exits.push(said.exit);
    }
    let ends = jobs.iter().map(|job| job.runtime).max();
    let layers = Layers { device, ..Layers::default() };
    Ok(RunResult {
        world: World::Linux,
        spec: row.spec.clone(),
        axes: row.axes.clone(),
        model: row.model.name().to_string(),
        fs: crate::experiment::filesystem::name(row.mount.as_ref()),
        host: row.host.name.clone(),
        seed,
        tunables: row.tunables.clone(),
        fingerprint: fingerprint.finish(),
        elapsed: ends.unwrap_or(Duration::ZERO).max(disk.busy + disk.idle),
        cut_off_after: row.most_calls.filter(|_| finished.rung),
        layers,
        jobs: jobs.into(),
        processes,
        disk,
        // Only its trace events tell, which are in recordings.
        throttling: Throttling::default(),
        commands: commands::of_log(&finished.log.served, began),
        bios: bios::of_lines(&finished.bios, "254,0", finished.begun_freely),
        exits,
    })
}
