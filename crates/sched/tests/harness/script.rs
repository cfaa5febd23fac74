//! Scripts: given a device and a scheduler, when this happens, then these requests are chosen.
//!
//! ```text
//! # Comments explain which rule is meant.
//! scheduler deadline@4.19 deadline@2.6.32     one or more; all must do the same
//! scheduler bfq@5.1+no-merge-on-flash          with changes of later kernels
//! device depth=1 transport=scsi cache=0 fua=0 hctxs=1 cpus=1 max_sectors=2560 rotational=1 …
//!                                              also worker_ms=0
//! set fifo_batch 2
//! at 5ms A read 100+8 sync prio=rt:0 cpu=0    "at" may be left out: the same time
//! A read 100+8 times=64 step=100              that often, each so much further on the disk
//! A read 100+8 times=9 step=8 done             each is done before the next one comes
//! A read 100+8 group=200                       in a control group of this weight, or name
//! group a weight=200 leaf=100 in=b             a control group by name, below another
//! A plug | A unplug | A blocks                 the task blocks, or ends its plug
//! remove a                                     a control group that nobody is in any more
//! A exit                                       the last task of its io_context
//! complete 100 | complete | complete all      by first sector; the oldest; until nothing is left
//! complete times=12                            the oldest, that often
//! requeue 100                                  the driver gives a command back
//! switch noop                                  another scheduler
//! messages expire | add to busy                messages of the elevator that contain one of these
//!                                              texts are part of what happens from here on
//! messages only cur-budget                     and requests are not
//! skip                                         what happened so far is not looked at
//! expect issue 100+8 (batch_starts) · merge 108+8 into 100
//! ```
//!
//! What is expected is everything that happened since the last `expect`; long lists go on in lines
//! that begin with `·`. "issue" is event D; a request that is chosen but not issued at once shows
//! as "choose" and "issue"; "held N" says that N requests are queued although the device has room.

use super::{Harness, KERNEL, Table};
use base::{Duration, Instant, Sector, Sectors};
use block::scheduler::{Cgroup, IoContext};
use block::{
    Action, Bio, CgroupId, ContextId, EventLog, Flags, IoContextId, Ioprio, IoprioClass, Kernel,
    Op, Origin, PlugFlush, RequestId, Scheduler, Transport,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Runs a script on all its schedulers: the text with what really happened in place of what was
/// expected. An error says where two schedulers differ.
pub fn run(path: &Path, text: &str) -> Result<String, String> {
    let mut actual: Option<String> = None;
    for (name, kernel) in schedulers(path, text) {
        let happened = Runner::new(path, name.clone(), kernel).run(text);
        match &actual {
            Some(first) if *first != happened => {
                let difference = difference(path, first, &happened);
                return Err(format!("{name}@{} differs: {difference}", kernel.version));
            }
            _ => actual = Some(happened),
        }
    }
    actual.ok_or_else(|| format!("{}: no scheduler line", path.display()))
}

/// Names of schedulers, with backports as in `bfq+no-merge-on-flash`, and their kernels.
fn schedulers(path: &Path, text: &str) -> Vec<(String, &'static Kernel)> {
    let line = text.lines().find_map(|line| line.strip_prefix("scheduler "));
    let named = |word: &str| {
        let (name, place) = word.split_once('@').unwrap_or_else(|| {
            panic!("{}: {word} names no kernel; write {word}@4.19", path.display())
        });
        let (kernel, given) = place.split_at(place.find('+').unwrap_or(place.len()));
        let kernel = Kernel::named(kernel)
            .unwrap_or_else(|| panic!("{}: no kernel {kernel}", path.display()));
        (format!("{name}{given}"), kernel)
    };
    line.unwrap_or_default().split_whitespace().map(named).collect()
}

/// The first line in which two texts differ.
fn difference(path: &Path, expected: &str, actual: &str) -> String {
    let lines = expected.lines().zip(actual.lines()).enumerate();
    let first = lines.into_iter().find(|(_, (expected, actual))| expected != actual);
    let (line, (expected, actual)) = first.unwrap_or((0, ("", "a different number of lines")));
    format!("{}:{}:\n  expected: {expected}\n  happened: {actual}", path.display(), line + 1)
}

struct Runner<'p> {
    path: &'p Path,
    scheduler: String,
    kernel: &'static Kernel,
    table: Table,
    harness: Option<Harness>,
    line: usize,
    tokens: u64,
    happened: Vec<String>,
    /// Requests chosen and not issued: place of the "choose" in `happened`.
    chosen: Option<RequestId>,
    /// Range of every living request, to name those that disappear.
    ranges: BTreeMap<RequestId, String>,
    /// Priorities of tasks.
    ioprio: BTreeMap<ContextId, Ioprio>,
    /// Names of control groups; a number is also the weight.
    groups: Vec<String>,
    /// Messages that contain one of these are part of what happens.
    messages: Vec<String>,
    /// What is no message is left out.
    only_messages: bool,
}

impl<'p> Runner<'p> {
    fn new(path: &'p Path, scheduler: String, kernel: &'static Kernel) -> Runner<'p> {
        Runner {
            path,
            scheduler,
            kernel,
            table: Table::default(),
            harness: None,
            line: 0,
            tokens: 0,
            happened: Vec::new(),
            chosen: None,
            ranges: BTreeMap::new(),
            ioprio: BTreeMap::new(),
            groups: Vec::new(),
            messages: Vec::new(),
            only_messages: false,
        }
    }

    fn run(mut self, text: &str) -> String {
        let mut output = String::new();
        for (number, line) in text.lines().enumerate() {
            self.line = number + 1;
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.first() {
                Some(&"expect") => output.push_str(&self.expectation()),
                Some(first) if first.starts_with('·') => {}
                _ => {
                    if words.first().is_some_and(|word| !word.starts_with('#')) {
                        self.statement(&words);
                    }
                    output.push_str(line);
                    output.push('\n');
                }
            }
        }
        let mut harness = self.harness.take().expect("a script does something");
        harness.drain();
        harness.queue.assert_drained();
        output
    }

    fn statement(&mut self, words: &[&str]) {
        match words {
            ["scheduler", ..] => {}
            ["device", settings @ ..] => {
                for setting in settings {
                    self.device(setting);
                }
            }
            ["at", time] => self.advance(time),
            ["at", time, rest @ ..] => {
                self.advance(time);
                self.action(rest);
            }
            _ => self.action(words),
        }
    }

    fn device(&mut self, setting: &str) {
        let Some((key, value)) = setting.split_once('=') else { self.bad(setting) };
        let number = || value.parse().unwrap_or_else(|_| self.bad(setting));
        match key {
            "depth" => self.table.depth = number(),
            "hctxs" => self.table.hctxs = number(),
            "cpus" => self.table.cpus = number() as u16,
            "max_sectors" => self.table.max_sectors = number(),
            "cache" => self.table.cache = number() != 0,
            "worker_ms" => self.table.worker = Duration::from_millis(number().into()),
            "rotational" => self.table.rotational = number() != 0,
            "fua" => self.table.fua = number() != 0,
            "transport" => {
                self.table.transport = match value {
                    "sata" => Transport::Sata,
                    "scsi" => Transport::Scsi,
                    "nvme" => Transport::Nvme,
                    "virtio" => Transport::Virtio,
                    _ => self.bad(setting),
                }
            }
            _ => self.bad(setting),
        }
    }

    fn advance(&mut self, time: &str) {
        let parts = [("ms", 1_000_000), ("us", 1_000), ("s", 1_000_000_000)];
        let parsed = parts
            .into_iter()
            .find_map(|(unit, nanos)| Some(time.strip_suffix(unit)?.parse::<u64>().ok()? * nanos));
        let Some(nanos) = parsed else { self.bad(time) };
        self.harness().advance_to(Instant::from_nanos(nanos));
        self.note();
    }

    fn action(&mut self, words: &[&str]) {
        match words {
            ["set", name, value] => {
                let Ok(value) = value.parse() else { self.bad(value) };
                let refused = self.harness().set(name, value).err();
                if let Some(error) = refused {
                    self.happened.push(format!("refuse {error:?}"));
                }
            }
            ["messages", texts @ ..] => {
                self.only_messages = texts.first() == Some(&"only");
                let texts = texts[usize::from(self.only_messages)..].join(" ");
                self.messages = texts.split(" | ").map(str::to_owned).collect();
                *self.harness().queue.log() = EventLog::with_messages();
            }
            ["skip"] => self.happened.clear(),
            ["complete"] if self.harness().in_flight.is_empty() => {
                self.bad("complete (nothing is with the device)")
            }
            ["complete"] => self.harness().complete(0),
            ["complete", "all"] => {
                while !self.harness().in_flight.is_empty() {
                    self.harness().complete(0);
                }
            }
            ["complete", word] if word.starts_with("times=") => {
                for _ in 0..self.number(&word["times=".len()..]) {
                    self.action(&["complete"]);
                }
            }
            ["complete", sector] => {
                let index = self.in_flight(sector);
                self.harness().complete(index);
            }
            ["group", name, settings @ ..] => self.define_group(name, settings),
            ["remove", name] => {
                let (now, id) = (self.harness().now, self.group_number(name));
                self.harness().queue.remove_cgroup(now, KERNEL, id);
                self.harness().settle(KERNEL);
            }
            ["requeue", sector] => {
                let index = self.in_flight(sector);
                self.harness().requeue(index);
            }
            ["switch", name] => {
                let Ok(built) = sched::build(name, self.kernel) else { self.bad(name) };
                self.harness().switch(built);
            }
            [actor, "exit"] => {
                let id = IoContextId(self.context(actor).0);
                let now = self.harness().now;
                self.harness().queue.exit_io_context(now, KERNEL, id);
                self.harness().settle(KERNEL);
            }
            [actor, "plug"] => {
                let context = self.context(actor);
                self.harness().start_plug(context);
            }
            [actor, "unplug"] => self.finish_plug(actor, PlugFlush::Explicit),
            [actor, "blocks"] => self.finish_plug(actor, PlugFlush::Blocks),
            [actor, op, rest @ ..] => {
                let value_of = |key| rest.iter().find_map(|word| word.strip_prefix(key));
                let times = value_of("times=").map_or(1, |word| self.number(word));
                let step = value_of("step=").map_or(0, |word| self.number(word));
                let mut bio = self.bio(actor, op, rest);
                for _ in 0..times {
                    if self.harness().asleep.contains(&bio.origin.context) {
                        self.bad(&format!("{actor} (asleep)"));
                    }
                    self.harness().submit(bio);
                    if rest.contains(&"done") {
                        self.action(&["complete", "all"]);
                    }
                    self.tokens += 1;
                    bio.token = self.tokens;
                    bio.sector.0 += step;
                }
            }
            _ => self.bad(&words.join(" ")),
        }
        self.note();
    }

    fn finish_plug(&mut self, actor: &str, why: PlugFlush) {
        let context = self.context(actor);
        self.harness().finish_plug(context, 0, why);
    }

    fn bio(&mut self, actor: &str, op: &str, rest: &[&str]) -> Bio {
        let context = self.context(actor);
        let (op, mut flags) = match op {
            "read" => (Op::Read, Flags::NONE),
            "write" => (Op::Write, Flags::NONE),
            "discard" => (Op::Discard, Flags::NONE),
            "flush" => (Op::Write, Flags::PREFLUSH),
            _ => self.bad(op),
        };
        self.tokens += 1;
        self.define(context, None);
        let mut bio = Bio {
            op,
            flags,
            sector: Sector(0),
            sectors: Sectors(0),
            ioprio: Ioprio::NONE,
            origin: Origin {
                context,
                io_context: IoContextId(context.0),
                cgroup: CgroupId::ROOT,
                cpu: 0,
            },
            token: self.tokens,
        };
        for word in rest {
            match word.split_once(['+', '=']) {
                Some(("prio", value)) => {
                    bio.ioprio = self.priority(value);
                    self.define(context, Some(bio.ioprio));
                }
                Some(("group", value)) => bio.origin.cgroup = self.group(value),
                Some(("cpu", value)) => bio.origin.cpu = self.number(value) as u16,
                Some(("times" | "step", _)) => {}
                Some((sector, sectors)) => {
                    bio.sector = Sector(self.number(sector));
                    bio.sectors = Sectors(self.number(sectors) as u32);
                }
                None if *word == "done" => {}
                None => flags = flags.with(self.flag(word)),
            }
        }
        bio.flags = flags;
        bio
    }

    /// A task has an io_context of its own; its priority stays until it is set anew.
    fn define(&mut self, context: ContextId, ioprio: Option<Ioprio>) {
        let known = self.ioprio.entry(context).or_default();
        *known = ioprio.unwrap_or(*known);
        let value = IoContext { ioprio: *known, tasks: 1, ..IoContext::default() };
        self.harness().queue.define_io_context(IoContextId(context.0), value);
    }

    /// A control group by name. One that was not described lies below the root, and its name is
    /// its weight.
    fn group(&mut self, name: &str) -> CgroupId {
        if !self.groups.iter().any(|known| known == name) {
            self.define_group(name, &[&format!("weight={name}")]);
        }
        self.group_number(name)
    }

    fn group_number(&self, name: &str) -> CgroupId {
        match self.groups.iter().position(|known| known == name) {
            Some(place) => CgroupId(place as u32 + 1),
            None => self.bad(name),
        }
    }

    fn define_group(&mut self, name: &str, settings: &[&str]) {
        let path = format!("/{name}");
        let mut group = Cgroup { path, parent: Some(CgroupId::ROOT), ..Cgroup::default() };
        for setting in settings {
            match setting.split_once('=') {
                Some(("weight", value)) => group.weight = Some(self.number(value) as u32),
                Some(("leaf", value)) => group.leaf_weight = Some(self.number(value) as u32),
                Some(("in", above)) => group.parent = Some(self.group_number(above)),
                _ => self.bad(setting),
            }
        }
        if !self.groups.iter().any(|known| known == name) {
            self.groups.push(name.to_owned());
        }
        let id = self.group_number(name);
        self.harness().queue.define_cgroup(id, group);
    }

    fn flag(&self, word: &str) -> Flags {
        match word {
            "sync" => Flags::SYNC,
            "fua" => Flags::FUA,
            "preflush" => Flags::PREFLUSH,
            "nomerge" => Flags::NOMERGE,
            "nowait" => Flags::NOWAIT,
            "idle" => Flags::IDLE,
            "prio" => Flags::PRIO,
            "meta" => Flags::META,
            _ => self.bad(word),
        }
    }

    fn priority(&self, value: &str) -> Ioprio {
        let (class, level) = value.split_once(':').unwrap_or((value, "4"));
        let class = match class {
            "rt" => IoprioClass::RealTime,
            "be" => IoprioClass::BestEffort,
            "idle" => IoprioClass::Idle,
            _ => self.bad(value),
        };
        Ioprio::new(class, self.number(level) as u8).unwrap_or_else(|| self.bad(value))
    }

    fn context(&self, actor: &str) -> ContextId {
        match actor.as_bytes() {
            [letter @ b'A'..=b'Z'] => ContextId(u32::from(letter - b'A') + 1),
            _ => self.bad(actor),
        }
    }

    fn in_flight(&mut self, sector: &str) -> usize {
        let number = self.number(sector);
        match self.harness().find(number) {
            Some(index) => index,
            None => self.bad(&format!("{sector} (not with the device)")),
        }
    }

    fn number(&self, word: &str) -> u64 {
        word.parse().unwrap_or_else(|_| self.bad(word))
    }

    fn bad(&self, word: &str) -> ! {
        panic!("{}:{}: cannot use {word}", self.path.display(), self.line)
    }

    fn harness(&mut self) -> &mut Harness {
        if self.harness.is_none() {
            let scheduler = self.build();
            self.harness = Some(Harness::new(self.kernel, self.table, scheduler));
        }
        self.harness.as_mut().expect("just made")
    }

    /// The scheduler of the script, with its backports.
    fn build(&self) -> Option<Box<dyn Scheduler>> {
        let mut names = self.scheduler.split('+');
        let name = names.next().unwrap_or_default();
        let Some(entry) = sched::LIST.iter().find(|entry| entry.name == name) else {
            self.bad(name)
        };
        let backport = |name: &str| {
            let found = entry.backports().iter().find(|backport| backport.name == name);
            found.unwrap_or_else(|| self.bad(name))
        };
        let given: Vec<_> = names.map(backport).collect();
        match entry.build_with(self.kernel, &given) {
            Ok(scheduler) => scheduler,
            Err(error) => panic!("{}: {}: {error}", self.path.display(), self.scheduler),
        }
    }

    /// Translates what happened into words.
    fn note(&mut self) {
        let harness = self.harness();
        let events = harness.take_events();
        let slept = std::mem::take(&mut harness.slept);
        for event in events {
            let is_message = matches!(event.action, Action::Message { .. });
            if self.only_messages && !is_message {
                continue;
            }
            let range = format!("{}+{}", event.sector, event.sectors);
            let named = |ranges: &BTreeMap<RequestId, String>, rq| {
                ranges.get(&rq).cloned().unwrap_or_else(|| String::from("?"))
            };
            let into = event.request.map(|rq| named(&self.ranges, rq));
            if let Some(rq) = event.request {
                self.update_range(rq, &range);
            }
            let said = match event.action {
                Action::BackMerge => format!("merge {range} behind {}", into.unwrap_or_default()),
                Action::FrontMerge => format!("merge {range} before {}", into.unwrap_or_default()),
                Action::Join { into } => {
                    let survivor = named(&self.ranges, into);
                    self.update_range(into, &survivor);
                    format!("join {range} to {survivor}")
                }
                Action::Dispatch(reason) => {
                    self.chosen = event.request;
                    self.happened.push(format!("choose {range} ({reason})"));
                    continue;
                }
                Action::Issue if self.chosen.is_some() && self.chosen == event.request => {
                    self.chosen = None;
                    let said = self.happened.pop().expect("the choice");
                    self.happened.push(said.replacen("choose", "issue", 1));
                    continue;
                }
                Action::Issue if event.sectors.is_zero() => String::from("issue flush"),
                Action::Issue => format!("issue {range}"),
                Action::Requeue => format!("requeue {range}"),
                Action::Hold { reason, .. } => format!("hold ({reason})"),
                Action::Message { text, .. } if self.is_wanted(&text) => format!("\"{text}\""),
                _ => continue,
            };
            self.chosen = None;
            self.happened.push(said);
        }
        for (context, asleep) in slept {
            let actor = char::from(b'A' + (context.0 as u8 - 1));
            let what = if asleep { "sleep" } else { "wake" };
            self.happened.push(format!("{what} {actor}"));
        }
    }

    fn is_wanted(&self, text: &str) -> bool {
        self.messages.iter().any(|wanted| text.contains(wanted))
    }

    /// Requests grow by merging; the queue knows their range.
    fn update_range(&mut self, rq: RequestId, range: &str) {
        let harness = self.harness.as_ref().expect("something happened");
        let range = match harness.queue.request(rq) {
            Some(request) => format!("{}+{}", request.sector, request.sectors),
            None => range.to_owned(),
        };
        self.ranges.insert(rq, range);
    }

    /// The `expect` lines for what happened since the last ones.
    fn expectation(&mut self) -> String {
        let harness = self.harness();
        let queued = harness.queue.queued();
        let held = queued > 0 && harness.has_room();
        let mut happened = std::mem::take(&mut self.happened);
        self.chosen = None;
        if held && !self.only_messages {
            happened.push(format!("held {queued}"));
        }
        if happened.is_empty() {
            happened.push(String::from("nothing"));
        }
        let mut lines = String::from("expect");
        let mut width = lines.len();
        for (number, said) in happened.iter().enumerate() {
            let separator = if number == 0 { " " } else { " · " };
            let length = separator.chars().count() + said.chars().count();
            if number > 0 && width + length > 100 {
                lines.push_str("\n    ·");
                lines.push(' ');
                width = 6;
            } else {
                lines.push_str(separator);
            }
            lines.push_str(said);
            width += length;
        }
        lines.push('\n');
        lines
    }
}
