//! What a recording was made of: scheduler, tunables, limits, device.
//!
//! A recording of the kernel says what happened and not to what. A `manifest.txt` beside it does,
//! in lines of `NAME: VALUE`:
//!
//! ```text
//! kernel: 4.19.79
//! device: scsi_debug …
//! queue_depth: 32
//! queue/scheduler: noop [deadline] cfq
//! queue/rotational: 1
//! iosched/read_expire: 500
//! ioprio 1993: 8196
//! io_context 1994: 1993
//! cgroup /sys/fs/cgroup/blkio: weight=500 leaf_weight=500 procs=[1 2]
//! cgroup /sys/fs/cgroup/blkio/db: id=31 weight=300
//! ```
//!
//! Names below `queue/` and `iosched/` are those of sysfs; `ioprio PID` is a task's priority as the
//! kernel encodes it, `io_context PID` the task whose io_context it shares. The first control group
//! is the root; `id` is a group's number in records. `ticks: begin with the clock` says that the
//! kernel counts a tick at each whole multiple of its length by the clock of the records. Names
//! below `sched/` are of debugfs: `sched/read_tokens: 103` says where the search for a token began.
//!
//! Lines that are not understood are left alone: a manifest may say more.

use crate::error::Error;
use crate::kernels::parse_kernel;
use crate::plan::Row;
use crate::scheduler_spec::parse_hz;
use base::{Bytes, Hz, Sectors};
use block::{ContextId, Facts, IoContextId, Ioprio, KERNELS, Kernel, Transport};
use machine::Outcome;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

/// The name of the file beside a recording.
pub const FILE_NAME: &str = "manifest.txt";
/// What is said of ticks that begin with the clock of the records.
pub const TICKS_BEGIN_WITH_CLOCK: &str = "begin with the clock";
/// What names of debugfs begin with.
pub(crate) const SEARCH: &str = "sched/";
/// Where control groups of block I/O are by convention.
pub(crate) const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// What is known of a recording besides its events.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    /// Where it was read, for messages.
    pub place: String,
    /// `kernel: …`.
    pub kernel: Option<String>,
    /// Ticks per second, if they are stated.
    pub hz: Option<Hz>,
    /// `ticks: begin with the clock`: there is one at each whole multiple of its length.
    pub ticks_begin_with_clock: bool,
    /// The name in brackets of `queue/scheduler`.
    pub scheduler: Option<String>,
    /// `iosched/…`, in order.
    pub tunables: Vec<(String, i64)>,
    /// Priorities of tasks.
    pub ioprio: BTreeMap<u32, Ioprio>,
    /// Tasks that share another's io_context.
    pub shares: BTreeMap<u32, u32>,
    /// Control groups, those above before those below.
    pub cgroups: Vec<Group>,
    /// What made the load.
    pub command: Option<String>,
    values: BTreeMap<String, String>,
}

/// `cgroup PATH: id=N weight=W leaf_weight=L bfq.weight=B procs=[…]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its path; that of the first one is the root's.
    pub path: String,
    /// Its number in records, if it is stated.
    pub id: Option<u64>,
    /// Its weight, if it is stated.
    pub weight: Option<u32>,
    /// The weight of the tasks in it against its children.
    pub leaf_weight: Option<u32>,
    /// Its weight under BFQ, if that is another: version 1 of control groups has a file for each.
    pub bfq_weight: Option<u32>,
    /// Tasks in it when the recording began.
    pub tasks: Vec<u32>,
}

impl Manifest {
    /// Reads the manifest beside a recording, if there is one.
    pub fn beside(directory: &Path) -> Result<Option<Manifest>, Error> {
        let path = directory.join(FILE_NAME);
        if !path.is_file() {
            return Ok(None);
        }
        let bytes = std::fs::read(&path).map_err(|cause| Error::unreadable(&path, cause))?;
        let text = String::from_utf8_lossy(&bytes);
        Manifest::parse(&text, &path.display().to_string()).map(Some)
    }

    /// Understands the text of a manifest.
    pub fn parse(text: &str, place: &str) -> Result<Manifest, Error> {
        let mut manifest = Manifest { place: place.to_string(), ..Manifest::default() };
        for (number, line) in text.lines().enumerate() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let place = format!("{place}:{}", number + 1);
            manifest.take(name.trim(), value.trim(), &place)?;
        }
        Ok(manifest)
    }

    fn take(&mut self, name: &str, value: &str, place: &str) -> Result<(), Error> {
        match name {
            "kernel" => self.kernel = value.split_whitespace().next().map(String::from),
            "hz" => self.hz = Some(parse_hz(value, place)?),
            "ticks" => self.ticks_begin_with_clock = value == TICKS_BEGIN_WITH_CLOCK,
            "queue/scheduler" => self.scheduler = bracketed(value).map(String::from),
            "queue_depth" | "hardware_queues" => {
                let first = value.split_whitespace().next().unwrap_or_default();
                self.values.insert(name.to_string(), first.to_string());
            }
            _ => self.take_other(name, value, place)?,
        }
        Ok(())
    }

    fn take_other(&mut self, name: &str, value: &str, place: &str) -> Result<(), Error> {
        if let Some(tunable) = name.strip_prefix("iosched/") {
            if let Ok(value) = value.parse() {
                self.tunables.push((tunable.to_string(), value));
            }
        } else if let Some(pid) = name.strip_prefix("ioprio ") {
            let bits = number(value, name, place)?;
            self.ioprio.insert(number(pid, name, place)?, Ioprio::from_bits(bits));
        } else if let Some(pid) = name.strip_prefix("io_context ") {
            self.shares.insert(number(pid, name, place)?, number(value, name, place)?);
        } else if let Some(path) = name.strip_prefix("cgroup ") {
            self.cgroups.push(group(path.trim(), value));
        } else if name == "command" {
            self.command = Some(value.to_string());
        } else if name.starts_with("queue/")
            || name.starts_with(SEARCH)
            || name == "device"
            || name == "transport"
        {
            self.values.insert(name.to_string(), value.to_string());
        }
        Ok(())
    }

    /// The index of the group that a path means; "." in it means nothing.
    pub fn cgroup(&self, path: &str) -> Option<usize> {
        let path = path.trim_end_matches("/.");
        self.cgroups.iter().position(|group| group.path == path)
    }

    /// The text of a manifest for a recording of a queue of ours.
    pub fn text_of(row: &Row) -> String {
        use std::fmt::Write;
        let (facts, spec) = (row.model.facts(), &row.spec);
        let transport = format!("{:?}", facts.transport).to_ascii_lowercase();
        let flag = |is: bool| i64::from(is).to_string();
        let own = |name: &str| spec.tunable(name).is_some();
        let cache = if facts.volatile_cache { "write back" } else { "write through" };
        let mut lines = vec![
            ("kernel".to_string(), spec.kernel.version.to_string()),
            ("hz".to_string(), spec.kernel.hz.get().to_string()),
            ("device".to_string(), row.model.name().to_string()),
            ("transport".to_string(), transport),
            ("queue_depth".to_string(), facts.queue_depth.to_string()),
            ("hardware_queues".to_string(), facts.hardware_queues.to_string()),
            ("queue/scheduler".to_string(), format!("[{}]", spec.name)),
            ("queue/logical_block_size".to_string(), facts.logical_block.to_string()),
            ("queue/max_hw_sectors_kb".to_string(), (facts.max_hw_sectors.0 / 2).to_string()),
            ("queue/max_segments".to_string(), facts.max_segments.to_string()),
            ("queue/chunk_sectors".to_string(), facts.chunk_sectors.0.to_string()),
            ("queue/fua".to_string(), flag(facts.fua)),
            ("queue/write_cache".to_string(), cache.to_string()),
        ];
        for (name, value) in &row.tunables {
            let directory = if own(name) { "iosched" } else { "queue" };
            lines.push((format!("{directory}/{name}"), value.to_string()));
        }
        lines.iter().fold(String::new(), |mut text, (name, value)| {
            writeln!(text, "{name}: {value}").expect("writing to memory does not fail");
            text
        })
    }

    /// Lines about the tasks of a run of ours.
    pub fn text_about(outcome: &Outcome, pid: impl Fn(ContextId) -> u32) -> String {
        let mut lines = Vec::new();
        let mut owners: BTreeMap<IoContextId, ContextId> = BTreeMap::new();
        for who in &outcome.tasks {
            if who.ioprio != Ioprio::NONE {
                lines.push(format!("ioprio {}: {}", pid(who.context), who.ioprio.to_bits()));
            }
            let owner = *owners.entry(who.io_context).or_insert(who.context);
            if owner != who.context {
                lines.push(format!("io_context {}: {}", pid(who.context), pid(owner)));
            }
        }
        for (index, group) in outcome.cgroups.iter().enumerate() {
            let inside = outcome.tasks.iter().filter(|who| who.cgroup.0 as usize == index);
            let inside: Vec<String> = inside.map(|who| pid(who.context).to_string()).collect();
            let weight = |name: &str, weight: Option<u32>| {
                weight.map_or(String::new(), |weight| format!("{name}={weight} "))
            };
            lines.push(format!(
                "cgroup {BLKIO}{}: {}{}procs=[{}]",
                group.path.trim_end_matches('/'),
                weight("weight", group.weight),
                weight("leaf_weight", group.leaf_weight),
                inside.join(" ")
            ));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The modelled kernel whose version begins that of the recorded one.
    pub fn kernel(&self) -> Result<Option<&'static Kernel>, Error> {
        let Some(version) = &self.kernel else { return Ok(None) };
        let is_prefix = |kernel: &&Kernel| {
            let name = kernel.version.to_string();
            version.strip_prefix(&name).is_some_and(|rest| !rest.starts_with(char::is_numeric))
        };
        match KERNELS.iter().rev().find(is_prefix) {
            Some(kernel) => Ok(Some(kernel)),
            None => parse_kernel(version, &self.place).map(Some),
        }
    }

    /// Where the search for Kyber's tokens begins, by domain as the kernel calls it.
    pub fn token_searches(&self) -> impl Iterator<Item = (String, u32)> + '_ {
        self.values.iter().filter_map(|(name, value)| {
            let domain = name.strip_prefix(SEARCH)?.strip_suffix("_tokens")?;
            Some((domain.to_uppercase(), value.parse().ok()?))
        })
    }

    /// A number from `queue/NAME`, if it is stated.
    pub fn queue(&self, name: &str) -> Option<i64> {
        self.values.get(&format!("queue/{name}"))?.parse().ok()
    }

    /// Whether it is stated how many commands the device takes.
    pub fn states_depth(&self) -> bool {
        self.values.contains_key("queue_depth")
    }

    /// What the device told the kernel; what is not stated is what most disks have.
    pub fn facts(&self) -> Facts {
        let number = |name: &str, otherwise: i64| self.queue(name).unwrap_or(otherwise);
        let is = |name: &str, word: &str| self.values.get(name).is_some_and(|it| it == word);
        let count = |name: &str| self.values.get(name).and_then(|it| it.parse().ok());
        let sectors = |kib: i64| Sectors(u32::try_from(kib * 2).unwrap_or(u32::MAX));
        let chunk = u32::try_from(number("chunk_sectors", 0)).unwrap_or(0);
        Facts {
            transport: self.transport(),
            capacity: Bytes(1 << 40),
            rotational: number("rotational", 1) != 0,
            volatile_cache: is("queue/write_cache", "write back"),
            fua: number("fua", 0) != 0,
            queue_depth: count("queue_depth").unwrap_or(32),
            hardware_queues: count("hardware_queues").unwrap_or(1),
            logical_block: number("logical_block_size", 512).clamp(512, 65_536) as u32,
            max_hw_sectors: sectors(number("max_hw_sectors_kb", 1_280)),
            max_segments: number("max_segments", 128).clamp(1, i64::from(u16::MAX)) as u16,
            discard: number("discard_max_bytes", 0) != 0,
            chunk_sectors: Sectors(chunk),
            segment: Facts::PAGE,
        }
    }

    fn transport(&self) -> Transport {
        let stated = self.values.get("transport").or(self.values.get("device"));
        let stated = stated.map_or("", String::as_str);
        let known = [
            ("ahci", Transport::Sata),
            ("sata", Transport::Sata),
            ("nvme", Transport::Nvme),
            ("virtio", Transport::Virtio),
            ("loop", Transport::Loop),
        ];
        let found = known.iter().find(|(word, _)| stated.to_ascii_lowercase().starts_with(word));
        found.map_or(Transport::Scsi, |(_, transport)| *transport)
    }
}

/// A number of a line about a task.
fn number<T: FromStr>(text: &str, name: &str, place: &str) -> Result<T, Error> {
    text.trim().parse().map_err(|_| {
        let what = name.split(' ').next().unwrap_or_default();
        let problem = format!("{what}: \"{}\" is no number", text.trim());
        Error::bad(place, problem, format!("{what} PID: NUMBER, both as the kernel has them"))
    })
}

fn group(path: &str, value: &str) -> Group {
    let (stated, tasks) = value.split_once("procs=[").unwrap_or((value, ""));
    let number = |name: &str| {
        let mut words = stated.split_whitespace().filter_map(|word| word.split_once('='));
        words.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<u32>().ok())
    };
    let tasks = tasks.trim_end_matches(']').split_whitespace();
    Group {
        path: path.to_string(),
        id: number("id").map(u64::from),
        weight: number("weight"),
        leaf_weight: number("leaf_weight"),
        bfq_weight: number("bfq.weight"),
        tasks: tasks.filter_map(|pid| pid.parse().ok()).collect(),
    }
}

/// The word in brackets, as sysfs marks what is chosen; or the only word.
fn bracketed(text: &str) -> Option<&str> {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let only = || Some(text.trim()).filter(|it| !it.is_empty() && !it.contains(' '));
    chosen.map(|(name, _)| name).or_else(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "kernel: 4.19.79 #2 SMP\ndevice: ahci: QEMU\nqueue_depth: 31  queue_type: \
                        simple\nqueue/scheduler: noop [deadline] cfq\nqueue/rotational: 0\n\
                        queue/max_hw_sectors_kb: 2147483647\niosched/fifo_batch: 8\nioprio 77: \
                        8196\n--- result\n  nothing: of note\n";

    #[test]
    fn a_manifest_states_scheduler_tunables_and_limits() {
        let manifest = Manifest::parse(TEXT, "m").unwrap();
        let kernel = manifest.kernel().unwrap().unwrap();
        assert_eq!(kernel.version.to_string(), "4.19");
        assert_eq!(manifest.scheduler.as_deref(), Some("deadline"));
        assert_eq!(manifest.tunables, [("fifo_batch".to_string(), 8)]);
        let facts = manifest.facts();
        assert_eq!((facts.queue_depth, facts.rotational), (31, false));
        assert_eq!(facts.transport, Transport::Sata);
        assert_eq!(manifest.ioprio[&77], Ioprio::from_bits(8196));
    }

    #[test]
    fn a_kernel_that_is_not_modelled_is_refused() {
        let manifest = Manifest::parse("kernel: 4.1.2\n", "m").unwrap();
        let refusal = manifest.kernel().unwrap_err().to_string();
        assert!(refusal.starts_with("m: unknown kernel \"4.1.2\""), "{refusal}");
        let wrong = Manifest::parse("hz: 99\n", "m").unwrap_err().to_string();
        assert_eq!(wrong, "m:1: hz: \"99\"; accepted: 100, 250, 300, 1000");
    }
}
