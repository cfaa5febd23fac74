//! The host: how many cores there are and what computing costs.
//!
//! A host is a TOML file in which every parameter states its value, unit and source. Some are built
//! in ([`Host::names`]), others are loaded from a file. Costs are charged to a core for each piece
//! of work that the kernel or a program does; the host `free` charges nothing.
//!
//! Leaves out: caches (a cost is the same however often the code ran), frequency scaling, second
//! threads of a core, and the cost of creating a task.

use base::Duration;
use base::nearest;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The hosts that are built in.
const BUILT_IN: [(&str, &str); 7] = [
    ("free", include_str!("../../../hosts/free.toml")),
    ("guest", include_str!("../../../hosts/guest.toml")),
    ("host-2009", include_str!("../../../hosts/host-2009.toml")),
    ("host-2011", include_str!("../../../hosts/host-2011.toml")),
    ("host-2020", include_str!("../../../hosts/host-2020.toml")),
    ("icount", include_str!("../../../hosts/icount.toml")),
    ("vm-2019", include_str!("../../../hosts/vm-2019.toml")),
];

/// What a host file contains, section by section.
const SCHEMA: [(&str, &[&str]); 3] = [
    ("machine", &["cores", "time_slice", "accounting", "start_delay", "clock_step", "timer_slack"]),
    (
        "cost",
        &[
            "system_call",
            "clock",
            "kernel_clock",
            "exec",
            "path",
            "launch",
            "copy",
            "bio",
            "request",
            "driver",
            "transfer",
            "interrupt",
            "completion",
            "switch",
            "switch_spread",
            "message",
            "page",
            "dirty",
            "writeback",
            "commit",
            "seal",
        ],
    ),
    ("scheduler", &["none", "noop", "deadline", "mq-deadline", "cfq", "bfq", "kyber", "other"]),
];
const FIELDS: [&str; 4] = ["value", "unit", "source", "from"];
const SOURCES: [&str; 5] = ["datasheet", "measured", "derived", "fitted", "assumed"];
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
/// More cores than any host has.
const MOST_CORES: f64 = 1024.0;
/// Longer than any piece of work takes.
const LONGEST: f64 = 1e9;

/// Cores and costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, or the path of its file.
    pub name: String,
    /// What it is, in one line.
    pub title: String,
    /// Number of cores.
    pub cores: u16,
    /// A task that has computed this long goes behind the others that are ready.
    pub time_slice: Duration,
    /// In which steps a kernel with a fair queue of tasks charges them for computing; zero where
    /// tasks take turns instead.
    pub accounting: Duration,
    /// In which steps the clock counts; zero: as finely as time. An interrupt waits for the end of
    /// a look where it does.
    pub clock_step: Duration,
    /// By how much sleeps are longer than asked, so that timers may fire together.
    pub timer_slack: Duration,
    /// How much later than its time a job begins.
    pub start_delay: Duration,
    /// What pieces of work cost.
    pub costs: Costs,
    /// Cost of an event (insert, dispatch, completion) by name of the scheduler.
    schedulers: Vec<(String, Duration)>,
    parameters: Vec<Parameter>,
}

/// What pieces of work cost a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Entering and leaving the kernel.
    pub system_call: Duration,
    /// A program's look at the clock.
    pub clock: Duration,
    /// A look of the block layer at the clock, where that is not part of its other costs.
    pub kernel_clock: Duration,
    /// Starting a program, until it begins with what it is for.
    pub exec: Duration,
    /// Looking for a file of the system by its path.
    pub path: Duration,
    /// How long fio measures its clock before it creates its processes.
    pub launch: Duration,
    /// Copying or clearing 4 KiB.
    pub copy: Duration,
    /// Building a bio and looking where it fits.
    pub bio: Duration,
    /// Allocating and building a request.
    pub request: Duration,
    /// Handing a command to the device.
    pub driver: Duration,
    /// Moving 4 KiB between memory and the device, where a driver does so with the processor.
    pub transfer: Duration,
    /// Being interrupted.
    pub interrupt: Duration,
    /// Finishing one command.
    pub completion: Duration,
    /// Waking a task and switching to it.
    pub switch: Duration,
    /// How much more that may take, every amount being as likely: caches, and cores that sleep.
    pub switch_spread: Duration,
    /// A message of the scheduler, where somebody traces.
    pub message: Duration,
    /// Taking a page that is read into the cache, where that is no part of copying.
    pub page: Duration,
    /// Making a page dirty, beside copying it.
    pub dirty: Duration,
    /// Preparing a page of a file that is written to the disk.
    pub writeback: Duration,
    /// Preparing a commit of the journal of ext4, until its first block is submitted.
    pub commit: Duration,
    /// Preparing the block that makes the commit valid, when the others are on the disk.
    pub seal: Duration,
}

/// One parameter as the file states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Section and name, such as `cost.driver`.
    pub name: String,
    /// The value as written.
    pub value: String,
    /// Its unit; empty for a count.
    pub unit: String,
    /// One of `datasheet`, `measured`, `derived`, `fitted`, `assumed`.
    pub source: String,
    /// Where it is from, in the file's own words.
    pub from: String,
}

/// Why a host could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// There is no built-in host of this name.
    #[error("unknown host \"{name}\"{hint}; built-in hosts: {all}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name, as the end of a sentence.
        hint: String,
        /// All names.
        all: String,
    },
    /// The file could not be read.
    #[error("{file}: cannot be read: {cause}")]
    Unreadable {
        /// The path as it was given.
        file: String,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// Something in the file is not as it must be.
    #[error("{file}:{line}: {problem}; accepted: {accepted}")]
    Bad {
        /// The path as it was given.
        file: String,
        /// The line, counted from one.
        line: usize,
        /// What is wrong.
        problem: String,
        /// What would be accepted.
        accepted: String,
    },
}

impl Host {
    /// The names of the built-in hosts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The host on which computing costs nothing.
    pub fn free() -> Host {
        Host::named("free").expect("the built-in hosts are well formed")
    }

    /// A built-in host.
    pub fn named(name: &str) -> Result<Host, HostError> {
        let found = BUILT_IN.iter().find(|(known, _)| *known == name);
        let Some((_, text)) = found else {
            return Err(HostError::Unknown {
                name: name.to_string(),
                hint: nearest(name, Host::names()),
                all: Host::names().collect::<Vec<_>>().join(", "),
            });
        };
        Host::parse(name, text)
    }

    /// A host from a file.
    pub fn load(path: &Path) -> Result<Host, HostError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|cause| HostError::Unreadable { file: file.clone(), cause })?;
        Host::parse(&file, &text)
    }

    /// A built-in host by its name, or the host in the file if it looks like a path.
    pub fn find(name_or_path: &str) -> Result<Host, HostError> {
        match name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            true => Host::load(Path::new(name_or_path)),
            false => Host::named(name_or_path),
        }
    }

    /// A host from the text of a file; `name` stands for it in messages.
    pub fn parse(name: &str, text: &str) -> Result<Host, HostError> {
        Reader { file: name, text }.host()
    }

    /// Everything the file states, in its order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// What an event (insert, dispatch, completion) of a scheduler costs.
    pub fn scheduler_event(&self, scheduler: &str) -> Duration {
        let of = |wanted: &str| self.schedulers.iter().find(|(name, _)| name == wanted);
        of(scheduler).or(of("other")).expect("every host has a cost for other schedulers").1
    }

    /// Whether computing costs nothing at all.
    pub fn is_free(&self) -> bool {
        self.costs == Costs::default() && self.schedulers.iter().all(|(_, cost)| cost.is_zero())
    }
}

/// Reads a host file.
struct Reader<'t> {
    file: &'t str,
    text: &'t str,
}

/// A checked entry: in nanoseconds, or a plain count.
struct Entry {
    number: f64,
    position: usize,
    parameter: Parameter,
}

impl Reader<'_> {
    fn host(&self) -> Result<Host, HostError> {
        let root = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let problem = format!("not TOML: {}", error.message().replace('\n', ", "));
            self.bad(at, problem, "a host file is TOML 1.0")
        })?;
        let root = root.into_inner();
        let title = match root.get("title").map(|title| title.get_ref()) {
            Some(DeValue::String(title)) => title.to_string(),
            _ => return Err(self.bad(0, "no title".to_string(), "title = \"…\"")),
        };
        for (key, _) in &root {
            let name: &str = key.get_ref();
            if name != "title" && !SCHEMA.iter().any(|(section, _)| *section == name) {
                let hint = nearest(name, SCHEMA.iter().map(|(section, _)| *section));
                let problem = format!("unknown section [{name}]{hint}");
                return Err(self.bad(key.span().start, problem, "machine, cost, scheduler"));
            }
        }
        let mut entries = Vec::new();
        for (section, names) in SCHEMA {
            entries.extend(self.section(&root, section, names)?);
        }
        self.check_accounting(&entries)?;
        Ok(self.build(title, entries))
    }

    /// The fair queue of tasks is that of one core.
    fn check_accounting(&self, entries: &[Entry]) -> Result<(), HostError> {
        let of = |name: &str| entries.iter().find(|entry| entry.parameter.name == name);
        let several = of("machine.cores").is_some_and(|cores| cores.number > 1.0);
        match of("machine.accounting").filter(|step| several && step.number > 0.0) {
            Some(step) => {
                let problem = "machine.accounting with several cores".to_string();
                Err(self.bad(step.position, problem, "0 ns, or machine.cores = 1"))
            }
            None => Ok(()),
        }
    }

    fn build(&self, title: String, mut entries: Vec<Entry>) -> Host {
        let of = |name: &str| {
            let found = entries.iter().find(|entry| entry.parameter.name == name);
            found.expect("the schema was checked").number
        };
        let time = |name: &str| Duration::from_nanos(libm::round(of(name)) as u64);
        let costs = Costs {
            system_call: time("cost.system_call"),
            clock: time("cost.clock"),
            kernel_clock: time("cost.kernel_clock"),
            exec: time("cost.exec"),
            path: time("cost.path"),
            launch: time("cost.launch"),
            copy: time("cost.copy"),
            bio: time("cost.bio"),
            request: time("cost.request"),
            driver: time("cost.driver"),
            transfer: time("cost.transfer"),
            interrupt: time("cost.interrupt"),
            completion: time("cost.completion"),
            switch: time("cost.switch"),
            switch_spread: time("cost.switch_spread"),
            message: time("cost.message"),
            page: time("cost.page"),
            dirty: time("cost.dirty"),
            writeback: time("cost.writeback"),
            commit: time("cost.commit"),
            seal: time("cost.seal"),
        };
        let schedulers = SCHEMA[2].1.iter();
        let schedulers =
            schedulers.map(|name| (name.to_string(), time(&format!("scheduler.{name}")))).collect();
        let cores = of("machine.cores") as u16;
        let time_slice = time("machine.time_slice");
        let accounting = time("machine.accounting");
        let start_delay = time("machine.start_delay");
        let clock_step = time("machine.clock_step");
        let timer_slack = time("machine.timer_slack");
        entries.sort_by_key(|entry| entry.position);
        let parameters = entries.into_iter().map(|entry| entry.parameter).collect();
        let name = self.file.to_string();
        Host {
            name,
            title,
            cores,
            time_slice,
            accounting,
            start_delay,
            clock_step,
            timer_slack,
            costs,
            schedulers,
            parameters,
        }
    }

    fn section(
        &self,
        root: &DeTable<'_>,
        section: &str,
        names: &[&str],
    ) -> Result<Vec<Entry>, HostError> {
        let accepted = names.join(", ");
        let Some((key, value)) = root.get_key_value(section) else {
            return Err(self.bad(0, format!("no section [{section}]"), &accepted));
        };
        let at = key.span().start;
        let Some(table) = value.get_ref().as_table() else {
            return Err(self.bad(at, format!("{section} is no section"), &accepted));
        };
        let mut entries = Vec::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            let full = format!("{section}.{name}");
            if !names.contains(&name) {
                let problem =
                    format!("unknown parameter \"{full}\"{}", nearest(name, names.iter().copied()));
                return Err(self.bad(key.span().start, problem, &accepted));
            }
            entries.push(self.entry(full, key.span().start, value)?);
        }
        for name in names {
            let full = format!("{section}.{name}");
            if !entries.iter().any(|entry| entry.parameter.name == full) {
                let accepted = format!("{name} = {{ value = …, unit = …, source = …, from = … }}");
                return Err(self.bad(at, format!("missing parameter \"{full}\""), &accepted));
            }
        }
        Ok(entries)
    }

    fn entry(
        &self,
        name: String,
        position: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Entry, HostError> {
        let Some(fields) = value.get_ref().as_table() else {
            let problem = format!("{name} is no table");
            return Err(self.bad(
                position,
                problem,
                "{ value = …, unit = …, source = …, from = … }",
            ));
        };
        if let Some((key, _)) = fields.iter().find(|(key, _)| !FIELDS.contains(&&**key.get_ref())) {
            let problem = format!("{name}: unknown field \"{}\"", key.get_ref());
            return Err(self.bad(key.span().start, problem, &FIELDS.join(", ")));
        }
        let text = |field: &str| match fields.get(field).map(|value| value.get_ref()) {
            Some(DeValue::String(text)) => Ok(text.to_string()),
            _ => Err(self.bad(position, format!("{name}: no {field}"), "a text in quotes")),
        };
        let (unit, source, from) = (text("unit")?, text("source")?, text("from")?);
        if !SOURCES.contains(&source.as_str()) {
            let problem = format!("{name}: source \"{source}\"");
            return Err(self.bad(position, problem, &SOURCES.join(", ")));
        }
        let written = match fields.get("value").map(|value| value.get_ref()) {
            Some(DeValue::Integer(number)) => number.as_str().to_string(),
            Some(DeValue::Float(number)) => number.as_str().to_string(),
            _ => return Err(self.bad(position, format!("{name}: no value"), "a number")),
        };
        let number = self.number(&name, position, &written, &unit)?;
        let parameter = Parameter { name, value: written, unit, source, from };
        Ok(Entry { number, position, parameter })
    }

    /// The value in nanoseconds, or the count.
    fn number(&self, name: &str, at: usize, value: &str, unit: &str) -> Result<f64, HostError> {
        let number: f64 = value.parse().unwrap_or(f64::NAN);
        if name == "machine.cores" {
            let fits = (1.0..=MOST_CORES).contains(&number) && libm::trunc(number) == number;
            return if fits && unit.is_empty() {
                Ok(number)
            } else {
                let problem = format!("{name}: {value} {unit}");
                Err(self.bad(at, problem, "a whole number from 1 to 1024, unit \"\""))
            };
        }
        let factor = UNITS.iter().find(|(known, _)| *known == unit).map_or(f64::NAN, |unit| unit.1);
        let lowest = if name == "machine.time_slice" { 1.0 } else { 0.0 };
        let nanos = number * factor;
        if (lowest..=LONGEST).contains(&nanos) {
            Ok(nanos)
        } else {
            let problem = format!("{name}: {value} {unit}");
            Err(self.bad(at, problem, "a time from 0 to 1 s, unit ns, us, ms or s"))
        }
    }

    fn bad(&self, at: usize, problem: String, accepted: &str) -> HostError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        HostError::Bad {
            file: self.file.to_string(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            problem,
            accepted: accepted.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free_with(from: &str, to: &str) -> String {
        let text = BUILT_IN[0].1.replacen(from, to, 1);
        assert_ne!(text, BUILT_IN[0].1, "{from} was not found");
        Host::parse("x.toml", &text).unwrap_err().to_string()
    }

    #[test]
    fn every_built_in_host_loads() {
        for name in Host::names() {
            let host = Host::named(name).unwrap();
            assert_eq!(host.is_free(), name == "free");
            assert_eq!(host.parameters().len(), 35, "{name}");
        }
        let host = Host::named("host-2020").unwrap();
        assert_eq!(host.cores, 10);
        assert_eq!(host.costs.bio, Duration::from_nanos(280));
        assert_eq!(host.scheduler_event("bfq"), Duration::from_nanos(470));
        assert_eq!(host.scheduler_event("mine"), host.scheduler_event("other"));
    }

    #[test]
    fn an_unknown_host_is_answered_with_the_nearest() {
        let error = Host::named("vm-2018").unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown host \"vm-2018\"; nearest: \"vm-2019\"; built-in hosts: free, guest, \
             host-2009, host-2011, host-2020, icount, vm-2019"
        );
    }

    #[test]
    fn errors_name_file_line_and_what_is_accepted() {
        assert_eq!(
            free_with("driver ", "drivre "),
            "x.toml:24: unknown parameter \"cost.drivre\"; nearest: \"driver\"; accepted: \
             system_call, clock, kernel_clock, exec, path, launch, copy, bio, request, driver, \
             transfer, interrupt, completion, switch, switch_spread, message, page, dirty, \
             writeback, commit, seal"
        );
        assert_eq!(
            free_with("value = 1, unit = \"\"", "value = 0, unit = \"\""),
            "x.toml:7: machine.cores: 0 ; accepted: a whole number from 1 to 1024, unit \"\""
        );
        assert_eq!(
            free_with("unit = \"us\"", "unit = \"h\""),
            "x.toml:15: cost.system_call: 0 h; accepted: a time from 0 to 1 s, unit ns, us, ms or s"
        );
        let both = BUILT_IN.iter().find(|(name, _)| *name == "guest").unwrap().1;
        let both = both.replacen("cores       = { value = 1", "cores       = { value = 2", 1);
        assert_eq!(
            Host::parse("x.toml", &both).unwrap_err().to_string(),
            "x.toml:8: machine.accounting with several cores; accepted: 0 ns, or machine.cores = 1"
        );
        assert!(free_with("[cost]", "[const]").starts_with("x.toml:14: unknown section [const]"));
        assert!(free_with("title", "titel").starts_with("x.toml:1: no title"));
        assert!(free_with("title =", "title").starts_with("x.toml:4: not TOML"));
    }
}
