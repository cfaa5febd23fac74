//! One guest from its boot to its end: a function of its description.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Mutex;

use base::{Bytes, Duration, Instant};
use device::Device;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use trace::blktrace::{Events, records_of_pages};

use crate::cache::Kernel;
use crate::clock::Protocol;
use crate::controller::{Attached, Controller, Ended};
use crate::directory::Directory;
use crate::drive::Drive;
use crate::error::{RunError, tail};
use crate::farewell::Farewell;
use crate::gate;
use crate::launch::{CONSOLE, Process, ROOT, Terminal};
use crate::lazy::LazyTables;
use crate::log::DeviceLog;
use crate::offers;
use crate::refusal::Refusal;
use crate::rootfs::Root;
use crate::script::{Job, Script, Trace, job_file, left};
use crate::store::Contents;
use crate::watch::Watchdog;

/// A disk of a guest.
pub struct Disk {
    /// What the log and messages call it.
    pub name: String,
    /// How it behaves.
    pub device: Box<dyn Device>,
    /// What is on it.
    pub contents: Contents,
}

/// A machine and what it does.
pub struct Guest<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The root directory.
    pub root: &'a Root,
    /// Its memory, besides what a recording may have of its own. What is not used is not taken from
    /// the host.
    pub memory: Bytes,
    /// Its disks: `vda`, `vdb`, …
    pub disks: Vec<Disk>,
    /// Requests that the block layer has in each disk at once, at most.
    pub queue_depth: u32,
    /// What it does.
    pub script: Script,
    /// Another seed is another stream of the kernel's own random numbers.
    pub seed: u64,
    /// How it is told the time.
    pub protocol: Protocol,
    /// When it is given up.
    pub watchdog: Watchdog,
    /// The host's core to keep everything on; that with the fewest of our guests if none is named.
    /// The processes of a guest and we take turns, so one core is enough; to go from one core to
    /// another at each turn takes several times as long. It makes no difference to the run.
    pub core: Option<usize>,
}

/// What a guest left.
#[derive(Debug)]
pub struct Finished {
    /// The guest's clock when the jobs began: a whole second.
    pub begun: Instant,
    /// When that was by the clock of a recording without times, and of the other lists of events:
    /// what is earlier there was left over by the preparation. Zero where that clock is a counter.
    pub begun_freely: u64,
    /// The guest's clock when it ended.
    pub ended: Instant,
    /// What each job said, in the order of the script.
    pub jobs: Vec<Outcome>,
    /// The recording, as the kernel's records one after the other: a file of `blktrace` in the
    /// version that the kernel has inside.
    pub trace: Vec<u8>,
    /// Events that found no room in the recording.
    pub lost_events: u64,
    /// Whether jobs were ended by the script's bell.
    pub rung: bool,
    /// The I/O priority of each insertion, as lines of the kernel's event `block_rq_insert`.
    pub priorities: String,
    /// What tasks gave to the block layer, as lines of the kernel's event `block_bio_queue`.
    pub bios: String,
    /// The files of the disks' queues as they were when the jobs began, by path.
    pub queues: BTreeMap<String, String>,
    /// The script's control groups as they were when the jobs began, if that was recorded.
    pub cgroups: Vec<KnownCgroup>,
    /// The head of `/proc/timer_list` when the jobs began: it has the time in nanoseconds.
    pub timers: String,
    /// Inode tables that ext4 initialised beside the jobs.
    pub lazy: LazyTables,
    /// What the disks did.
    pub log: DeviceLog,
    /// What is on the disks now.
    pub contents: Vec<Contents>,
    /// What the kernel printed.
    pub console: String,
}

/// A control group as the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCgroup {
    /// Its number in records.
    pub id: u64,
    /// Its weight for BFQ, where the kernel has that.
    pub weight: Option<u32>,
    /// Its path, such as `db` or `user/db`.
    pub path: String,
}

impl KnownCgroup {
    /// Understands `ID WEIGHT PATH`; a weight of 0 is none.
    fn parse(line: &str) -> Option<KnownCgroup> {
        let (id, rest) = line.split_once(' ')?;
        let (weight, path) = rest.split_once(' ')?;
        let weight = Some(weight.parse().ok()?).filter(|weight| *weight > 0);
        Some(KnownCgroup { id: id.parse().ok()?, weight, path: path.to_string() })
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The job's name.
    pub name: String,
    /// What it wrote to its standard output.
    pub output: Vec<u8>,
    /// What it wrote to its standard error.
    pub errors: Vec<u8>,
    /// Its exit code; above 128, a signal.
    pub exit: u8,
}

impl Guest<'_> {
    /// Runs it in a directory that is made for it and removed afterwards.
    pub fn run(self) -> Result<Finished, RunError> {
        let directory = make_directory()?;
        self.run_in(directory.path())
    }

    /// Runs it in an empty directory, which keeps the guest's console and results. The directory
    /// makes no difference to the run.
    pub fn run_in(self, directory: &Path) -> Result<Finished, RunError> {
        self.check()?;
        self.prepare(directory)?;
        let script = self.script.clone();
        match self.drive(directory, &Terminal::Kept) {
            Ok(ended) => collect(directory, &script, ended),
            Err(error) => Err(diagnosed(&console(directory), error)),
        }
    }

    /// Lets the caller's terminal talk to a shell in the guest, after settings, cgroups and set-up
    /// commands. The guest keeps to real time where it can, and what is typed comes when it
    /// comes, so such a run is not repeatable.
    pub fn shell(mut self) -> Result<(), RunError> {
        if !io::stdin().is_terminal() {
            let accepted = "a terminal; a command can be run without a shell".to_string();
            let problem = "the standard input, for a shell, is no terminal".to_string();
            return Err(RunError::Bad { problem, accepted });
        }
        let directory = make_directory()?;
        self.check()?;
        (self.script.jobs, self.script.trace) = (Vec::new(), Trace::Off);
        self.prepare(directory.path())?;
        let file = directory.path().join("guest/script");
        let mut text = read_text(&file)?;
        text.push_str("setsid -c sh -i </dev/tty0 >/dev/tty0 2>&1\n");
        write(&file, text)?;
        // The kernel changes the terminal and cannot change it back when it is killed.
        let before = tcgetattr(io::stdin()).ok();
        let ended = self.drive(directory.path(), &Terminal::Callers);
        if let Some(before) = before {
            // A terminal that has gone needs no restoring.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
        if let Some(failed) = failed_set_up(&directory.path().join("guest")) {
            return Err(failed);
        }
        ended.map(drop)
    }

    fn check(&self) -> Result<(), RunError> {
        let bad = |problem: String, accepted: &str| {
            Err(RunError::Bad { problem, accepted: accepted.to_string() })
        };
        if self.memory < Bytes(64 << 20) || self.memory > Bytes(1 << 40) {
            return bad(format!("{} bytes of memory", self.memory.0), "64 MiB to 1 TiB");
        }
        let mut deepest = DEEPEST;
        for Disk { name, device, .. } in &self.disks {
            let facts = device.facts();
            deepest = facts.queue_depth.min(deepest);
            if facts.capacity.0 < u64::from(facts.logical_block) {
                return bad(format!("disk {name} holds nothing"), "at least one block");
            }
        }
        if self.queue_depth == 0 || self.queue_depth > deepest {
            let problem = format!("a queue depth of {}", self.queue_depth);
            return bad(problem, &format!("1 to {deepest}, which these disks can take"));
        }
        for job in &self.script.jobs {
            let known = |group: &String| self.script.cgroups.iter().any(|one| one.path == *group);
            if let Some(group) = job.cgroup.as_ref().filter(|group| !known(group)) {
                return bad(
                    format!("job {} in cgroup {group}", job.name),
                    "a cgroup of the script",
                );
            }
        }
        Ok(())
    }

    /// Puts into the directory what the guest finds there.
    fn prepare(&self, directory: &Path) -> Result<(), RunError> {
        let guest = directory.join("guest");
        fs::create_dir_all(&guest).map_err(|cause| RunError::file("creating", &guest, cause))?;
        let (root, link) = (self.root.directory(), directory.join(ROOT));
        root.canonicalize()
            .and_then(|root| symlink(root, &link))
            .map_err(|cause| RunError::file("linking to", root, cause))?;
        write(&guest.join("script"), self.script.text(self.disks.len()))?;
        write(&guest.join("gate"), gate::program())?;
        for (number, job) in self.script.jobs.iter().enumerate() {
            // Who ends a background job waits for its shell, and that for what the job still says.
            let trap = if job.background { "trap 'exit 143' TERM\n" } else { "" };
            write(&guest.join(job_file(number)), format!("{trap}{}\n", job.command))?;
        }
        Ok(())
    }

    fn drive(self, directory: &Path, terminal: &Terminal) -> Result<Ended, RunError> {
        let _pinned = Pinned::to(self.core)?;
        let clock = listen(directory, "clock")?;
        let memory = Bytes(self.memory.0 + self.script.trace.memory().0);
        let mut arguments = self.arguments(memory);
        if matches!(terminal, Terminal::Callers) {
            // What the kernel has to say would stand between what the shell says.
            arguments.push("loglevel=0".to_string());
        }
        let mut disks = Vec::new();
        for (number, Disk { name, device, contents }) in self.disks.into_iter().enumerate() {
            let listener = listen(directory, &format!("disk{number}"))?;
            let number = u32::try_from(number).expect("few disks");
            disks.push(Attached::new(Drive::new(number, name, device, contents), listener));
        }
        let binary = &self.kernel.binary;
        let process = Process::start(binary, &arguments, memory, directory, terminal)?;
        let farewell = Farewell::in_directory(&directory.join("guest"));
        let controller =
            Controller::new(process, clock, disks, self.protocol, self.watchdog, farewell);
        match terminal {
            Terminal::Kept => controller.run(),
            Terminal::Callers => controller.paced().run(),
        }
    }

    /// The kernel's command line (section 2 of the findings). It feeds the kernel's random
    /// numbers, so nothing in it may depend on the host.
    fn arguments(&self, memory: Bytes) -> Vec<String> {
        let mut words = vec![format!("mem={}M", memory.0 >> 20)];
        words.extend(FIXED_ARGUMENTS.map(String::from));
        for number in 0..self.disks.len() {
            // 2 is a block device.
            words.push(format!("virtio_uml.device=disk{number}:2"));
        }
        words.push(format!("virtio_blk.queue_depth={}", self.queue_depth));
        words.push(format!("seed={:016x}", self.seed));
        words.extend(offers::seccomp(&self.kernel.binary).then(|| "seccomp=auto".to_string()));
        words
    }
}

/// The largest queue depth: the ring has 256 entries (section 4 of the findings).
pub(crate) const DEEPEST: u32 = 256;

const FIXED_ARGUMENTS: [&str; 13] = [
    "root=/dev/root",
    "rootfstype=hostfs",
    // A relative path does not work for the root file system; this does.
    "rootflags=/proc/self/cwd/rootfs",
    "ro",
    "init=/init",
    "umid=guest",
    "con=null",
    "con0=fd:0,fd:1",
    "norandmaps",
    // Otherwise BFQ's messages have no pointers (section 6).
    "no_hash_pointers",
    "panic=-1",
    "quiet",
    "time-travel=ext:clock",
];

/// Keeps the calling thread, and whatever it starts, on one core while it lives.
struct Pinned {
    before: CpuSet,
    core: usize,
}

/// How many guests are kept on each core: cores are shared by all threads of a process.
static GUESTS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

impl Pinned {
    fn to(wanted: Option<usize>) -> Result<Pinned, RunError> {
        let before = sched_getaffinity(None)
            .map_err(|cause| RunError::file("asking for", "the cores", cause.into()))?;
        let cores: Vec<_> = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core)).collect();
        if let Some(core) = wanted.filter(|core| !cores.contains(core)) {
            let problem = format!("core {core} of the host");
            return Err(RunError::Bad { problem, accepted: format!("one of {cores:?}") });
        }
        let mut guests = GUESTS.lock().expect("nobody panics with it");
        let here = sched_getcpu();
        let burden = |core: &usize| (guests.get(core).copied().unwrap_or(0), *core != here);
        let least = cores.into_iter().min_by_key(burden);
        let core = wanted.or(least).expect("a thread may run somewhere");
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only)
            .map_err(|cause| RunError::file("choosing", "the core", cause.into()))?;
        *guests.entry(core).or_default() += 1;
        Ok(Pinned { before, core })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(count) = GUESTS.lock().expect("nobody panics with it").get_mut(&self.core) {
            *count -= 1;
        }
        // It was allowed before; if a core has gone since, the one that is left will do.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Listens at a socket in `directory`, whose path may be longer than a socket's name can be.
fn listen(directory: &Path, name: &str) -> Result<UnixListener, RunError> {
    let listen = || -> io::Result<UnixListener> {
        let directory = fs::File::open(directory)?;
        UnixListener::bind(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
    };
    listen().map_err(|cause| RunError::file("listening at", directory.join(name), cause))
}

fn write(file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), RunError> {
    fs::write(file, bytes).map_err(|cause| RunError::file("writing", file, cause))
}

pub(crate) fn make_directory() -> Result<Directory, RunError> {
    Directory::make()
        .map_err(|cause| RunError::file("making a directory in", std::env::temp_dir(), cause))
}

/// Reads what the guest left.
fn collect(directory: &Path, script: &Script, ended: Ended) -> Result<Finished, RunError> {
    let guest = directory.join("guest");
    let console = console(directory);
    if console.contains(RESTARTED) {
        return Err(diagnosed(&console, RunError::HungUp));
    }
    if let Some(failed) = failed_set_up(&guest) {
        return Err(failed);
    }
    if !guest.join(left::DONE).exists() {
        return Err(diagnosed(&console, RunError::HungUp));
    }
    if ended.at == Instant::ZERO {
        // It did everything without asking us for the time.
        return Err(RunError::NoClock);
    }
    let optional = |name: &str| read_text(&guest.join(name)).unwrap_or_default();
    let jobs = script.jobs.iter().enumerate().map(|(number, job)| {
        let file = |kind: &str| read(&guest.join(format!("{number}.{kind}")));
        let exit = String::from_utf8_lossy(&file("exit")?).trim().parse();
        let (output, errors) = (file("out")?, file("err")?);
        let exit = exit.map_err(|_| no_room(job, output.len() + errors.len()))?;
        Ok(Outcome { name: job.name.clone(), output, errors, exit })
    });
    let queues = optional(left::QUEUES);
    let queues = queues.lines().filter_map(|line| line.split_once(' '));
    let begun: u64 = optional(left::BEGUN).trim().parse().unwrap_or_default();
    Ok(Finished {
        begun: Instant::ZERO + Duration::from_secs(begun),
        begun_freely: if script.preparation.is_empty() { 0 } else { begun * UPTIME_UNITS },
        ended: ended.at,
        jobs: jobs.collect::<Result<_, RunError>>()?,
        trace: trace(&guest)?,
        lost_events: lost(&optional(left::STATISTICS)),
        rung: guest.join(left::RUNG).exists(),
        priorities: optional(left::PRIORITIES),
        bios: optional(left::BIOS),
        queues: queues.map(|(file, value)| (file.to_string(), value.to_string())).collect(),
        cgroups: optional(left::CGROUPS).lines().filter_map(KnownCgroup::parse).collect(),
        timers: optional(left::TIMERS),
        lazy: LazyTables::read(&optional(left::LAZY)),
        log: ended.log,
        contents: ended.disks.into_iter().map(Drive::into_contents).collect(),
        console,
    })
}

/// What the script said before it gave up, if it did.
fn failed_set_up(guest: &Path) -> Option<RunError> {
    let what = fs::read_to_string(guest.join(left::FAILED)).ok()?;
    let refused = read_text(&guest.join(left::REFUSED)).ok();
    Some(match refused.and_then(|it| Refusal::read(&it)) {
        Some(refusal) => RunError::Refused(refusal),
        None => RunError::SetUp { what: what.trim().to_string() },
    })
}

/// Not even the exit status of a job found room in memory, where what it prints is kept.
fn no_room(job: &Job, printed: usize) -> RunError {
    let problem = format!("job {}: {printed} bytes that it printed fill the memory", job.name);
    let accepted = "less output, such as into a file on the disk, or more memory".to_string();
    RunError::Bad { problem, accepted }
}

/// What the kernel's clock `uptime` counts in a second (observed on 6.12).
const UPTIME_UNITS: u64 = 100;

/// The records in the pages of the recording.
fn trace(guest: &Path) -> Result<Vec<u8>, RunError> {
    let file = guest.join(left::TRACE);
    if !file.exists() {
        return Ok(Vec::new());
    }
    let events = read_text(&guest.join(left::EVENTS)).unwrap_or_default();
    let events = events.lines().filter_map(|line| {
        let (id, says) = line.split_once(' ')?;
        Some((id.parse().ok()?, says))
    });
    Ok(records_of_pages(&read(&file)?, "the guest's recording", &events.collect::<Events<'_>>())?)
}

/// The sum of the lines of a trace buffer's statistics that tell of losses.
fn lost(statistics: &str) -> u64 {
    let counts = statistics.lines().filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        matches!(name, "overrun" | "commit overrun" | "dropped events")
            .then(|| value.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

fn console(directory: &Path) -> String {
    read_text(&directory.join(CONSOLE)).unwrap_or_default()
}

/// What a kernel says that begins again. It has no disks then, and its script fails.
const RESTARTED: &str = "reboot: Restarting system";
/// What every kernel says, as it has a driver for disks that we do not use.
const COMMONPLACE: &str = "Failed to initialize ubd device 0";

/// Says what was wrong in the words of the kernel, where it said anything.
fn diagnosed(console: &str, error: RunError) -> RunError {
    let lines = console.lines().filter(|line| !line.contains(COMMONPLACE));
    let end = tail(&lines.collect::<Vec<_>>().join("\n"), 12);
    // Trap 1 of section 2.
    if console.contains("wait_stub_done") && console.contains("failed to wait for SIGTRAP") {
        return RunError::Rseq { console: end };
    }
    let panicked = console.lines().find_map(|line| line.split_once("Kernel panic - not syncing: "));
    match (error, panicked) {
        (RunError::HungUp | RunError::NoClock, Some((_, reason))) => {
            RunError::Panicked { reason: reason.to_string(), console: end }
        }
        (RunError::HungUp, None) if console.trim().is_empty() => RunError::Mute,
        (RunError::HungUp, None) => RunError::Unfinished { console: end },
        (error, _) => error,
    }
}

fn read(file: &Path) -> Result<Vec<u8>, RunError> {
    fs::read(file).map_err(|cause| RunError::file("reading", file, cause))
}

fn read_text(file: &Path) -> Result<String, RunError> {
    Ok(String::from_utf8_lossy(&read(file)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_words_explain_its_end() {
        let shown = |console: &str, error| diagnosed(console, error).to_string();
        let rseq = "wait_stub_done : failed to wait for SIGTRAP, pid = 7, status = 0xb7f\n\
                    Kernel panic - not syncing: Attempted to kill init!";
        assert!(shown(rseq, RunError::HungUp).contains("rseq=0"));
        let panic = "[ 0.1] Kernel panic - not syncing: VFS: Unable to mount root fs";
        assert!(shown(panic, RunError::HungUp).contains("panicked: VFS: Unable to mount root fs"));
        assert!(shown("bye", RunError::HungUp).contains("before its script did\nbye"));
        assert!(
            shown("", RunError::HungUp).contains("accepted: one that `paternoster linux build`")
        );
        assert!(shown("", RunError::NoClock).contains("UML_TIME_TRAVEL_SUPPORT"));
    }

    #[test]
    fn losses_are_added_up() {
        let statistics = "entries: 5\noverrun: 3\ncommit overrun: 0\ndropped events: 4\nread: 9\n";
        assert_eq!(lost(statistics), 7);
    }
}
