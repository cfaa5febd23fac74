//! What a guest's kernel recorded, put together for readers: a directory of blktrace files, with
//! everything beside them that `conform` must know.
//!
//! * `vda.blktrace.0`: version 7, as `blkparse -i vda` reads it.
//! * `manifest.txt`, `priorities.txt`, `cgroups.txt`: see [`crate::recording`].
//! * `disk.txt`: what the disk did, to the nanosecond, which no record of the kernel is exact to.
//!
//! Leaves out: loads that need more room for events than they were given; those are refused.

mod priorities;
mod times;

use super::LinuxWorld;
use crate::error::Error;
use crate::recording::manifest::{self, Manifest};
use crate::recording::tasks::Owners;
use crate::recording::{
    CGROUPS, DISK as DISK_LOG, DiskCommand, PRIORITIES, ROOT_CGROUP, Recording, Tasks,
};
use crate::{virtio, world};
use base::Bytes;
use block::command::CommandOp;
use block::{Ioprio, IoprioClass, Op};
use device::Model;
use linux::{
    Contents, Disk, Finished, Guest, Kernel, KnownCgroup, Protocol, Script, Served, Trace, Watchdog,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use trace::blktrace::{self, Action, DevT, Payload, Record, Wallclock, runs};

/// The disk's name in the guest, which its files get.
const NAME: &str = "vda";
/// Its number (measured in the linux world: the first virtio disk).
const DISK: DevT = DevT::new(254, 0);

/// Whose times a recording has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The guest's. Each event reads its clock, which takes 256 ns: the recording is its own
    /// reference.
    Guest,
    /// The disk's. The guest does what it does without a recording, to the nanosecond.
    Disk,
}

impl Times {
    /// How a guest records so, with priorities and room for so many bytes of events in its memory.
    pub fn trace(self, buffer: Bytes, cgroups: bool) -> Trace {
        self.trace_in(buffer, cgroups, false)
    }

    /// The same, perhaps with that room besides its memory.
    pub fn trace_in(self, buffer: Bytes, cgroups: bool, in_memory_of_its_own: bool) -> Trace {
        let recording = linux::Recording {
            buffer,
            in_memory_of_its_own,
            cgroups,
            priorities: true,
            runs: true,
        };
        match self {
            Times::Guest => Trace::Perturbing(recording),
            Times::Disk => Trace::Free(recording),
        }
    }
}

/// A recording of a guest.
#[derive(Clone, Debug)]
pub struct Recorded {
    records: Vec<Record>,
    /// Of each insertion.
    priorities: Vec<Ioprio>,
    names: BTreeMap<u32, String>,
    manifest: String,
    disk: Vec<Served>,
}

/// On what it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The model of the disk.
    pub model: &'a str,
    /// Requests that the driver has in the disk at once, at most.
    pub queue_depth: u32,
    /// How it was recorded.
    pub times: Times,
}

impl Recorded {
    /// Takes what a guest left.
    pub fn of(machine: Machine<'_>, finished: &Finished) -> Result<Recorded, Error> {
        if finished.lost_events > 0 {
            return Err(Error::NoRoom { lost: finished.lost_events });
        }
        let reader = blktrace::Reader::new(&finished.trace[..], "the guest's recording");
        let mut records = reader.collect::<Result<Vec<Record>, _>>().map_err(Error::Recording)?;
        let since = finished.begun_freely;
        records.retain(|record| record.time.as_nanos() >= since);
        records.retain(|record| record.action.is_note() || record.device == DISK);
        keep_sleeps_for_tags(&mut records);
        for record in &mut records {
            if record.action.is_note() {
                record.device = DISK;
            }
            record.cgroup = record.cgroup.filter(|cgroup| *cgroup != ROOT_CGROUP);
        }
        let insertions = finished.priorities.lines().filter_map(Insertion::parse);
        let insertions: Vec<Insertion> = insertions.filter(|it| it.time >= since).collect();
        let inserted = records.iter().filter(|it| it.action == Action::Insert).count();
        if inserted != insertions.len() {
            let (one, other) = (inserted, insertions.len());
            let what = format!("{one} insertions were recorded and {other} priorities of them");
            return Err(Error::linux(what));
        }
        let served = finished.log.served.iter();
        let served = served.filter(|it| it.disk == 0 && it.accepted >= finished.begun);
        let served: Vec<Served> = served.copied().collect();
        let ioprios = priorities::of(&records, &insertions, &served);
        if machine.times == Times::Disk {
            times::of_disk(&mut records, &served);
        }
        Ok(Recorded {
            records,
            manifest: manifest(machine, finished, &insertions, &ioprios),
            priorities: ioprios,
            names: insertions.into_iter().map(|it| (it.pid, it.name)).collect(),
            disk: served,
        })
    }

    /// How many events there are.
    pub fn events(&self) -> usize {
        self.records.len()
    }

    /// For a comparison, without a detour through files.
    pub fn recording(&self, name: &str) -> Result<Recording, Error> {
        let manifest = Manifest::parse(&self.manifest, name)?;
        Ok(Recording {
            name: name.to_string(),
            records: self.records.clone(),
            tasks: Tasks::new(&manifest, "", &BTreeMap::new(), &Owners::of(&self.records)),
            manifest,
            disk: self.disk.iter().filter_map(command_of).collect(),
            priorities: self.priorities.clone(),
            ..Recording::default()
        })
    }

    /// Writes everything into a directory, which is made.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(directory).map_err(|cause| Error::unwritable(directory, cause))?;
        self.write_records(directory).map_err(Error::Recording)?;
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::write(&path, text).map_err(|cause| Error::unwritable(&path, cause))
        };
        let lines = |text: String, it: &Ioprio| text + &format!("{}\n", it.to_bits());
        write(PRIORITIES, &self.priorities.iter().fold(String::new(), lines))?;
        let cgroups = self.cgroups();
        if !cgroups.is_empty() {
            write(CGROUPS, &cgroups)?;
        }
        let lines = |text: String, it: &Served| text + &format!("{it}\n");
        write(DISK_LOG, &self.disk.iter().fold(DISK_TITLE.to_string(), lines))?;
        write(manifest::FILE_NAME, &self.manifest)
    }

    fn write_records(&self, directory: &Path) -> Result<(), trace::Error> {
        let Some(first) = self.records.first() else { return Ok(()) };
        let wallclock = Wallclock { at: first.time, ..Wallclock::default() };
        let mut files = blktrace::Recorder::create(&directory.join(NAME), DISK, 1, wallclock)?;
        for (pid, name) in &self.names {
            files.name_task(*pid, name);
        }
        for record in &self.records {
            files.record(&Record { cgroup: None, ..record.clone() })?;
        }
        files.finish().map(drop)
    }

    /// Where the events of another control group begin, by the number of the event.
    fn cgroups(&self) -> String {
        let (mut text, mut before) = (String::new(), ROOT_CGROUP);
        let events = self.records.iter().filter(|it| !it.action.is_note());
        for (number, record) in events.enumerate() {
            let cgroup = record.cgroup.unwrap_or(ROOT_CGROUP);
            if cgroup != before {
                writeln!(text, "{} {cgroup}", number + 1).expect("memory can be written to");
                before = cgroup;
            }
        }
        text
    }
}

fn command_of(served: &Served) -> Option<DiskCommand> {
    let op = match served.op {
        CommandOp::Read => Op::Read,
        CommandOp::Write => Op::Write,
        _ => return None,
    };
    let Served { accepted, completed, sector, sectors, .. } = *served;
    Some(DiskCommand { accepted, completed, op, sector, sectors })
}

/// Of the messages that tell that a task sleeps, those stay whose task gets a request next: it
/// slept for a tag. When it is woken, it may issue what others wait for before.
fn keep_sleeps_for_tags(records: &mut Vec<Record>) {
    let mut next: BTreeMap<u32, Action> = BTreeMap::new();
    let runs_queue = [Action::Issue, Action::Unplug, Action::Requeue];
    let keeps = records.iter().rev().map(|record| match &record.payload {
        Payload::Message(text) if text == runs::SLEEPS.as_bytes() => {
            next.get(&record.pid) == Some(&Action::GetRequest)
        }
        _ if record.action.is_note() || runs_queue.contains(&record.action) => true,
        _ => {
            next.insert(record.pid, record.action);
            true
        }
    });
    let keeps: Vec<bool> = keeps.collect();
    let mut keeps = keeps.into_iter().rev();
    records.retain(|_| keeps.next().unwrap_or(true));
}

impl LinuxWorld {
    /// Runs a script on a disk of a model and records it with the guest's times, in a world with
    /// one judge.
    pub fn record(
        &self,
        model: &Model,
        queue_depth: u32,
        script: Script,
        seed: u64,
    ) -> Result<(Finished, Recorded), Error> {
        let facts = virtio::facts(model.facts(), Some(queue_depth));
        let has_groups = !script.cgroups.is_empty();
        let guest = Guest {
            kernel: self.only_judge(),
            root: &self.root,
            memory: world::MEMORY,
            disks: vec![Disk {
                name: model.name().to_string(),
                device: Box::new(virtio::Renewed::new(
                    model,
                    seed,
                    facts,
                    virtio::Beginning::AT_ONCE,
                )),
                contents: Contents::forgetful(),
            }],
            queue_depth,
            script: Script { trace: Times::Guest.trace(ROOM, has_groups), ..script },
            seed,
            protocol: Protocol::SharedMemory,
            watchdog: Watchdog::default(),
            core: None,
        };
        let finished = guest.run().map_err(Error::linux)?;
        let (kernel, model) = (self.only_judge(), model.name());
        let machine = Machine { kernel, model, queue_depth, times: Times::Guest };
        let recorded = Recorded::of(machine, &finished)?;
        Ok((finished, recorded))
    }
}

/// Room for events: about 750 bytes a request.
pub const ROOM: Bytes = Bytes(96 << 20);
const DISK_TITLE: &str = "# accepted completed disk operation sector+sectors slot\n";

/// A line of the kernel's event `block_rq_insert`.
struct Insertion {
    /// By the clock of the list.
    time: u64,
    pid: u32,
    name: String,
    /// If this kernel's event says it.
    ioprio: Option<Ioprio>,
}

impl Insertion {
    /// Understands ` NAME-PID [CPU] … block_rq_insert: DEV RWBS BYTES () SECTOR + SECTORS
    /// CLASS,HINT,LEVEL [NAME]`; other lines are none, and so are those of other disks. Observed on
    /// 6.1.192: there is no priority; on 6.12.117 and 7.3.4 there is.
    fn parse(line: &str) -> Option<Insertion> {
        let (task, event) = line.split_once(" block_rq_insert: ")?;
        let (task, time) = task.split_once(" [")?;
        let time = time.trim_end_matches(':').rsplit(' ').next()?.parse().ok()?;
        let (name, pid) = task.trim().rsplit_once('-')?;
        let (rest, _) = event.strip_prefix(&format!("{DISK} "))?.rsplit_once(" [")?;
        let ioprio = rest.rsplit_once(' ').and_then(|(_, ioprio)| parse_ioprio(ioprio));
        Some(Insertion { time, pid: pid.parse().ok()?, name: name.trim().to_string(), ioprio })
    }
}

/// Understands `CLASS,HINT,LEVEL`.
fn parse_ioprio(text: &str) -> Option<Ioprio> {
    let (class, rest) = text.split_once(',')?;
    let (_, level) = rest.split_once(',')?;
    let class = match class {
        "none" => IoprioClass::None,
        "rt" => IoprioClass::RealTime,
        "be" => IoprioClass::BestEffort,
        "idle" => IoprioClass::Idle,
        _ => return None,
    };
    Ioprio::new(class, level.parse().ok()?)
}

fn manifest(
    machine: Machine<'_>,
    finished: &Finished,
    insertions: &[Insertion],
    ioprios: &[Ioprio],
) -> String {
    let mut text = format!(
        "kernel: {}\nhz: {}\ndevice: {}\ntransport: virtio\nqueue_depth: {}\nhardware_queues: 1\n\
         times: {}\n",
        machine.kernel.version,
        machine.kernel.hz.get(),
        machine.model,
        machine.queue_depth,
        match machine.times {
            Times::Guest => "of the guest, each event took 256 ns",
            Times::Disk => "of the disk",
        },
    );
    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name}: {value}").expect("memory can be written to");
    };
    if machine.times == Times::Guest {
        // Observed on 6.1, 6.12 and 7.3 in virtual time: what mq-deadline counts in ticks.
        line("ticks", manifest::TICKS_BEGIN_WITH_CLOCK);
    }
    for (file, value) in &finished.queues {
        if let Some((_, name)) = file.split_once(&format!("/{NAME}/sched/")) {
            line(&format!("{}{name}", manifest::SEARCH), value);
        }
        let Some((_, name)) = file.split_once(&format!("/{NAME}/queue/")) else { continue };
        match name.strip_prefix("iosched/") {
            Some(_) => line(name, value),
            None => line(&format!("queue/{name}"), value),
        }
    }
    if !finished.cgroups.is_empty() {
        line(&format!("cgroup {}", manifest::BLKIO), "");
    }
    for KnownCgroup { id, weight, path } in &finished.cgroups {
        let weight = weight.map_or(String::new(), |weight| format!(" weight={weight}"));
        line(&format!("cgroup {}/{path}", manifest::BLKIO), &format!("id={id}{weight}"));
    }
    // A task that had several priorities has none that could be stated.
    let mut tasks: BTreeMap<u32, Option<Ioprio>> = BTreeMap::new();
    for (it, ioprio) in insertions.iter().zip(ioprios) {
        let known = tasks.entry(it.pid).or_insert(Some(*ioprio));
        *known = known.filter(|known| known == ioprio);
    }
    for (pid, ioprio) in tasks.into_iter().filter_map(|(pid, ioprio)| Some((pid, ioprio?))) {
        line(&format!("ioprio {pid}"), &ioprio.to_bits().to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_event_gives_task_and_priority() {
        let line = "            load-62      [000] .....  1234: block_rq_insert: 254,0 WS 4096 () \
                    2048 + 8 rt,0,3 [load]";
        let insertion = Insertion::parse(line).unwrap();
        assert_eq!((insertion.pid, insertion.name.as_str()), (62, "load"));
        assert_eq!(insertion.ioprio, Ioprio::new(IoprioClass::RealTime, 3));
        let of_6_1 = line.replace(" rt,0,3", "");
        let insertion = Insertion::parse(&of_6_1).unwrap();
        assert_eq!((insertion.pid, insertion.ioprio), (62, None));
        assert!(Insertion::parse("# tracer: nop").is_none());
    }
}
