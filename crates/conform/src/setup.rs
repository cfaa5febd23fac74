//! Under what a recording is replayed: kernel, scheduler, tunables, limits.

use crate::history::{Era, FIRST_TASK, History, Look};
use crate::replica::Replica;
use base::{Instant, Sectors};
use block::kernel::{Dequeue, PlugEnd, PlugMerge};
use block::scheduler::{Cgroup, IoContext};
use block::{
    Attach, CgroupId, EventLog, Facts, IoContextId, Kernel, MergeLookup, QUEUE_SETTINGS,
    RequestQueue, Shape, Transport,
};
use lab::Error;
use lab::recording::PartSize;
use lab::recording::manifest::{Group, Manifest};
use lab::scheduler_spec::{ACCEPTED, SchedulerSpec};

/// What overrides, or stands in for, a manifest.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The kernel.
    pub kernel: Option<&'static Kernel>,
    /// The scheduler, as `NAME[@KERNEL][:TUNABLE=VALUE,…]`.
    pub scheduler: Option<String>,
    /// Tunables and settings of the queue, and `queue_depth`.
    pub settings: Vec<(String, i64)>,
    /// The device, as `MAJOR,MINOR`, where a recording has several.
    pub device: Option<String>,
    /// Of how many records what is known is kept at once.
    pub part: PartSize,
}

/// Everything that must be known of a recording before it can be replayed.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Scheduler and kernel, with what differs from defaults.
    pub spec: SchedulerSpec,
    /// The kernel, with the recorded machine's tick.
    pub kernel: &'static Kernel,
    /// What the device said of itself.
    pub facts: Facts,
    /// Control groups, the root first.
    pub groups: Vec<Group>,
    /// Ticks begin with the clock of the records.
    pub ticks_begin_with_clock: bool,
    /// Where the search for Kyber's tokens begins, by domain.
    pub token_searches: Vec<(String, u32)>,
}

impl Setup {
    /// Puts together what the manifest and the options say.
    pub fn new(manifest: &Manifest, options: &Options, place: &str) -> Result<Setup, Error> {
        let kernel = match options.kernel {
            Some(kernel) => Some(kernel),
            None => manifest.kernel()?,
        };
        let stated = options.scheduler.as_ref().or(manifest.scheduler.as_ref());
        let Some(stated) = stated else {
            let problem = "nothing says which scheduler was recorded";
            return Err(Error::bad(place, problem, format!("--scheduler {ACCEPTED}")));
        };
        let mut spec = SchedulerSpec::parse(stated, place, kernel)?;
        let own = std::mem::take(&mut spec.tunables);
        add_tunables(&mut spec, manifest);
        let mut facts = manifest.facts();
        for (name, value) in own.into_iter().chain(options.settings.iter().cloned()) {
            match name.as_str() {
                "queue_depth" => facts.queue_depth = depth(value, place)?,
                _ => {
                    spec.check(&name, value, place)?;
                    spec.tunables.retain(|(known, _)| *known != name);
                    spec.tunables.push((name, value));
                }
            }
        }
        let kernel = spec.kernel.with_hz(manifest.hz.unwrap_or(spec.kernel.hz));
        let groups = manifest.cgroups.clone();
        let ticks_begin_with_clock = manifest.ticks_begin_with_clock;
        let token_searches = manifest.token_searches().collect();
        Ok(Setup { spec, kernel, facts, groups, ticks_begin_with_clock, token_searches })
    }

    /// When tasks look at the clock for requests that they hold back: for the bio, or for the
    /// request itself.
    pub fn looks_at_clock(&self) -> Look {
        let for_bio = self.kernel.multi.is_some_and(|rules| rules.bio_reads_clock);
        match self.ticks_begin_with_clock {
            false => Look::AtRecord,
            true if for_bio => Look::Before,
            true => Look::Behind,
        }
    }

    /// The shape of the recorded queue.
    pub fn shape(&self) -> Shape {
        self.spec.entry.shape()
    }

    /// What must be known to read the records.
    pub fn era(&self) -> Era {
        let plug = self.kernel.multi.filter(|_| self.shape() == Shape::Multi);
        let issues_directly = self.spec.name == "none";
        Era {
            shape: self.shape(),
            joins_are_traced: self.joins_are_traced(),
            issues_directly,
            issues_newest_first: issues_directly
                && plug.is_some_and(|it| it.plug.issues_first == PlugEnd::Newest),
            heeds_runs: self.collects_lists(),
            largest: self.largest(),
            usual: self.usual(),
            scans_lists: self.spec.about().lookup == MergeLookup::Recent,
            merges_into_newest: plug.is_some_and(|it| it.plug.merges_into == PlugMerge::Newest),
        }
    }

    /// Whether a run collects requests of a scheduler in a list before it issues them (rules hctx).
    pub fn collects_lists(&self) -> bool {
        let bursts = self.kernel.multi.is_some_and(|multi| multi.dequeue == Dequeue::Burst);
        bursts && self.shape() == Shape::Multi && self.spec.name != "none"
    }

    /// The largest request, as far as that was stated.
    fn largest(&self) -> Sectors {
        let stated = self.spec.tunables.iter().find(|(name, _)| name == "max_sectors_kb");
        let sectors = stated.and_then(|(_, kib)| u32::try_from(kib * 2).ok());
        Sectors(sectors.unwrap_or(u32::MAX))
    }

    /// The largest request with a segment for each page, as far as that was stated.
    fn usual(&self) -> Sectors {
        let by_segments = u32::from(self.facts.max_segments).saturating_mul(self.facts.segment.0);
        Sectors(by_segments.min(self.largest().0))
    }

    /// Whether requests that join are traced as merges.
    pub fn joins_are_traced(&self) -> bool {
        self.kernel.traces_joins
    }

    /// Whether the driver takes requests from the scheduler before it knows that it can issue them
    /// (rule hctx-3: drivers without a budget).
    pub fn parks(&self) -> bool {
        let budget = matches!(self.facts.transport, Transport::Sata | Transport::Scsi);
        self.shape() == Shape::Multi && !budget && self.spec.name != "none"
    }

    /// A queue of its own for the recording.
    pub fn queue(&self, history: &History, log: EventLog) -> RequestQueue {
        let built = self.spec.entry.build_with(self.kernel, &self.spec.backports);
        let attach = Attach::of(built.expect("the kernel has it"));
        let callers = history.calls.iter().map(|call| call.origin);
        let owners = callers.chain(history.requests.iter().map(|life| life.bio.origin));
        // Bios that got no request came from somewhere, too.
        let cpus = owners.clone().map(|origin| origin.cpu).max().unwrap_or(0) + 1;
        let mut queue = RequestQueue::new(self.kernel, self.facts.clone(), attach, cpus, log);
        for (name, value) in &self.spec.tunables {
            // Nobody wrote what is as it is from the beginning; and what the recorded kernel had
            // need not be within our model's range.
            if queue.get(name) != Some(*value) {
                let _ = queue.set(Instant::ZERO, name, *value);
            }
        }
        let most = owners.map(|origin| origin.context.0.max(origin.io_context.0)).max();
        let unset = IoContext { tasks: 1, ..IoContext::default() };
        let mut io_contexts = vec![unset; most.unwrap_or(0) as usize + 1];
        for life in &history.requests {
            let owner = life.bio.origin.io_context.0 as usize;
            io_contexts[owner].ioprio = life.bio.ioprio;
        }
        for (task, io_context) in io_contexts.iter().enumerate().skip(FIRST_TASK as usize) {
            queue.define_io_context(IoContextId(task as u32), *io_context);
        }
        for (index, group) in self.groups.iter().enumerate() {
            queue.define_cgroup(CgroupId(index as u32), self.cgroup(index, group));
        }
        let is_stated =
            |id: &CgroupId| self.groups.get(id.0 as usize).is_some_and(|it| it.id.is_some());
        for (number, id) in history.cgroups.iter().filter(|(_, id)| !is_stated(id)) {
            let path = format!("/cgroup {number}");
            let cgroup = Cgroup { path, parent: Some(CgroupId::ROOT), ..Cgroup::default() };
            queue.define_cgroup(*id, cgroup);
        }
        queue
    }

    fn cgroup(&self, index: usize, group: &Group) -> Cgroup {
        let root = &self.groups[0].path;
        let above = self.groups[..index].iter().enumerate().filter(|(_, other)| {
            group.path.strip_prefix(&other.path).is_some_and(|rest| rest.starts_with('/'))
        });
        let parent = above.max_by_key(|(_, other)| other.path.len());
        let path = group.path.strip_prefix(root).filter(|path| !path.is_empty());
        Cgroup {
            path: path.unwrap_or("/").to_string(),
            parent: parent.map(|(index, _)| CgroupId(index as u32)),
            weight: group.bfq_weight.filter(|_| self.spec.name == "bfq").or(group.weight),
            leaf_weight: group.leaf_weight,
        }
    }

    /// Whether the scheduler remembers that it was asked in vain: runs that issue nothing count.
    pub fn remembers_runs(&self) -> bool {
        self.spec.name == "cfq"
    }

    /// Whether what it does follows from all that it did before: BFQ's weights, budgets and virtual
    /// times are not known of a part.
    pub fn remembers_all(&self) -> bool {
        self.spec.name == "bfq"
    }

    /// For how many decisions it may change the choice that a request was served: a batch. (The
    /// turns of CFQ last longer; within them little depends on what was before.)
    pub fn memory(&self) -> u32 {
        let set = self.spec.tunables.iter().find(|(name, _)| name == "fifo_batch").map(|it| it.1);
        let batch = set.or_else(|| self.spec.tunable("fifo_batch")?.default);
        u32::try_from(batch.unwrap_or(1)).unwrap_or(1).max(1)
    }

    /// Whether the phase of the tick can matter.
    pub fn counts_ticks(&self) -> bool {
        self.spec.name != "cfq"
    }

    /// A queue that follows the recording.
    pub fn replica(&self, history: &History) -> Replica {
        let queue = self.queue(history, EventLog::with_messages());
        let mut replica = Replica::new(queue, self.joins_are_traced());
        for (domain, place) in &self.token_searches {
            replica.heed(Instant::ZERO, &format!("kyber_searches: {domain} {place}"), None);
        }
        replica
    }
}

/// Tunables and settings that the manifest states and the model knows.
fn add_tunables(spec: &mut SchedulerSpec, manifest: &Manifest) {
    // Nobody is held back for writeback here: what is followed had to wait already.
    let settings = QUEUE_SETTINGS.iter().filter(|it| it.name != "wbt_lat_usec");
    let settings = settings.filter_map(|it| Some((it.name.to_string(), manifest.queue(it.name)?)));
    // What is a scheduler's on one kernel is the queue's on another, as `async_depth`.
    let own = (spec.entry.about)(spec.kernel).tunables.iter();
    let of_queue = own.filter_map(|it| Some((it.name.to_string(), manifest.queue(it.name)?)));
    let settings: Vec<(String, i64)> = settings.chain(of_queue).collect();
    for (name, value) in settings.into_iter().chain(manifest.tunables.iter().cloned()) {
        if spec.check(&name, value, "").is_ok() {
            spec.tunables.push((name, value));
        }
    }
}

fn depth(value: i64, place: &str) -> Result<u32, Error> {
    let bad = || Error::bad(place, format!("queue_depth={value} is out of range"), "1 to 65536");
    u32::try_from(value).ok().filter(|depth| (1..=65_536).contains(depth)).ok_or_else(bad)
}
