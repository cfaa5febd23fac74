//! The host: how many cores there are and what computing costs.
//!
//! A host is a TOML file in which every parameter states its value, unit and source. Some are built
//! in ([`Host::names`]), others are loaded from a file. Costs are charged to a core for each piece
//! of work that the kernel or a program does; the host `free` charges nothing.
//!
//! Leaves out: caches (a cost is the same however often the code ran; but for what a scheduler
//! keeps, in `[cold]`), frequency scaling, second threads of a core, and the cost of creating a
//! task.

use base::Duration;
use guest::Profile;
use params::Accept::{Time, Whole};
use params::{Accept, Document, Error, Format, Parameter, Section, Spec, Table, spec};
use std::path::Path;
use std::sync::Arc;

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

const FORMAT: Format =
    Format { what: "host", heads: &[("title", true), ("guest", false)], is_dated: false };
/// No piece of work takes longer than a second.
const COST: Accept = Time(0.0, 1e9);
/// What an event (insert, dispatch, completion) of a scheduler costs, by its name.
const SCHEDULERS: Section = Section { name: "scheduler", required: true, specs: &EVENTS };
/// The same, on a core whose caches do not hold what the scheduler keeps.
const COLD: Section = Section { name: "cold", required: false, specs: &EVENTS };
const EVENTS: [Spec; 8] = [
    spec("none", COST),
    spec("noop", COST),
    spec("deadline", COST),
    spec("mq-deadline", COST),
    spec("cfq", COST),
    spec("bfq", COST),
    spec("kyber", COST),
    spec("other", COST),
];

/// Cores and costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, or the path of its file.
    pub name: String,
    /// What it is, in one line.
    pub title: String,
    /// What is known of how it is booted, and of its programs; of most hosts nothing.
    pub guest: Arc<Profile>,
    /// Cores and clocks.
    pub machine: Machine,
    /// What pieces of work cost.
    pub costs: Costs,
    /// Cost of an event (insert, dispatch, completion) by name of the scheduler.
    schedulers: Vec<(&'static str, EventCost)>,
    parameters: Vec<Parameter>,
}

/// What an event of a scheduler costs a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCost {
    /// Where the core's caches hold what the scheduler keeps.
    pub warm: Duration,
    /// Where another core had such an event last, or the core has been idle since.
    pub cold: Duration,
}

params::section! {
    /// Cores and clocks of a host.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Machine in "machine" {
        /// Number of cores.
        cores: u16 = Whole(1, 1024, ""),
        /// A task that has computed this long goes behind the others that are ready.
        time_slice: Duration = Time(1.0, 1e9),
        /// In which steps a kernel with a fair queue of tasks charges them for computing; zero
        /// where tasks take turns instead.
        accounting: Duration = COST,
        /// How much later than its time a job begins.
        start_delay: Duration = COST,
        /// In which steps the clock counts; zero: as finely as time. An interrupt waits for the
        /// end of a look where it does.
        clock_step: Duration = COST,
        /// By how much sleeps are longer than asked, so that timers may fire together.
        timer_slack: Duration = COST,
    }
}

params::section! {
    /// What pieces of work cost a core.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Costs in "cost" {
        /// Entering and leaving the kernel.
        system_call: Duration = COST,
        /// A program's look at the clock.
        clock: Duration = COST,
        /// A look of the block layer at the clock, where that is not part of its other costs.
        kernel_clock: Duration = COST,
        /// Starting a program, until it begins with what it is for.
        exec: Duration = COST,
        /// Looking for a file of the system by its path.
        path: Duration = COST,
        /// How long fio measures its clock before it creates its processes.
        launch: Duration = COST,
        /// To start a thread of the kernel.
        thread: Duration = COST,
        /// Copying or clearing 4 KiB.
        copy: Duration = COST,
        /// Building a bio and looking where it fits.
        bio: Duration = COST,
        /// Allocating and building a request.
        request: Duration = COST,
        /// Handing a command to the device.
        driver: Duration = COST,
        /// Moving 4 KiB between memory and the device, where a driver does so with the processor.
        transfer: Duration = COST,
        /// Being interrupted.
        interrupt: Duration = COST,
        /// Finishing one command.
        completion: Duration = COST,
        /// Passing the scheduler's lock to a core that waits for it.
        handover: Duration = COST,
        /// Waking a task and switching to it.
        switch: Duration = COST,
        /// How much more that may take, every amount being as likely: caches, and cores that sleep.
        switch_spread: Duration = COST,
        /// A message of the scheduler, where somebody traces.
        message: Duration = COST,
        /// Taking a page that is read into the cache, where that is no part of copying.
        page: Duration = COST,
        /// Making a page dirty, beside copying it.
        dirty: Duration = COST,
        /// Preparing a page of a file that is written to the disk.
        writeback: Duration = COST,
        /// Preparing a commit of the journal of ext4, until its first block is submitted.
        commit: Duration = COST,
        /// Preparing the block that makes the commit valid, when the others are on the disk.
        seal: Duration = COST,
    }
}

impl Host {
    /// Whether nice values weigh computing time: where tasks take turns, they do not.
    pub fn weighs_nice(&self) -> bool {
        !self.machine.accounting.is_zero()
    }

    /// The names of the built-in hosts.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The host on which computing costs nothing.
    pub fn free() -> Host {
        Host::named("free").expect("the built-in hosts are well formed")
    }

    /// A built-in host.
    pub fn named(name: &str) -> Result<Host, Error> {
        let found = BUILT_IN.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| Error::unknown("host", name, Host::names()))?;
        Host::parse(name, text)
    }

    /// A host from a file.
    pub fn load(path: &Path) -> Result<Host, Error> {
        Host::parse(&path.display().to_string(), &params::read(path)?)
    }

    /// A built-in host by its name, or the host in the file if it looks like a path.
    pub fn find(name_or_path: &str) -> Result<Host, Error> {
        match name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            true => Host::load(Path::new(name_or_path)),
            false => Host::named(name_or_path),
        }
    }

    /// A host from the text of a file; `name` stands for it in messages.
    pub fn parse(name: &str, text: &str) -> Result<Host, Error> {
        let document = Document::parse(&FORMAT, name, text)?;
        let schema = [&Machine::SECTION, &Costs::SECTION, &SCHEDULERS, &COLD];
        let (table, parameters) = document.check(&schema, "a host")?;
        let schedulers = EVENTS.iter().map(|it| (it.name, event_cost(&table, it.name)));
        Ok(Host {
            name: name.to_string(),
            title: document.head("title").to_string(),
            guest: profile(&document, name)?,
            machine: machine(&table)?,
            costs: Costs::read(&table),
            schedulers: schedulers.collect(),
            parameters,
        })
    }

    /// Everything the file states, in its order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// What an event (insert, dispatch, completion) of a scheduler costs.
    pub fn scheduler_event(&self, scheduler: &str) -> EventCost {
        let of = |wanted: &str| self.schedulers.iter().find(|(name, _)| *name == wanted);
        of(scheduler).or(of("other")).expect("every host has a cost for other schedulers").1
    }

    /// The same host with a kernel of this series: its guest may differ then.
    pub fn with_kernel(&self, series: &str) -> Host {
        Host { guest: self.guest.with_kernel(series), ..self.clone() }
    }

    /// Whether computing costs nothing at all.
    pub fn is_free(&self) -> bool {
        let is_free = |(_, cost): &(_, EventCost)| *cost == EventCost::default();
        self.costs == Costs::default() && self.schedulers.iter().all(is_free)
    }
}

/// Cores and clocks. The fair queue of tasks is that of one core.
fn machine(table: &Table) -> Result<Machine, Error> {
    let machine = Machine::read(table);
    if machine.cores > 1 && !machine.accounting.is_zero() {
        let problem = "not zero with several cores".to_string();
        return Err(table.refuse("machine.accounting", problem, "0 ns, or machine.cores = 1"));
    }
    Ok(machine)
}

/// The profile that a host names; a path begins where the host's file lies.
fn profile(document: &Document<'_>, file: &str) -> Result<Arc<Profile>, Error> {
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    match document.head("guest") {
        "" => Ok(Profile::neutral().clone()),
        name => Profile::find(name, directory).map_err(|error| match error {
            Error::Unknown { name, hint, all, .. } => {
                let accepted = format!("a file, or one of {all}");
                document.refuse_head("guest", format!("unknown guest \"{name}\"{hint}"), accepted)
            }
            other => other,
        }),
    }
}

/// A host that says nothing of cold caches has none.
fn event_cost(table: &Table, scheduler: &str) -> EventCost {
    let warm = table.time(&format!("scheduler.{scheduler}"));
    let cold = match table.has("cold") {
        true => table.time(&format!("cold.{scheduler}")),
        false => warm,
    };
    EventCost { warm, cold }
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
            let cold = if name == "host-2020" { EVENTS.len() } else { 0 };
            assert_eq!(host.parameters().len(), 37 + cold, "{name}");
        }
        let host = Host::named("host-2020").unwrap();
        assert_eq!(host.machine.cores, 10);
        assert_eq!(host.costs.bio, Duration::from_nanos(280));
        let of_bfq =
            EventCost { warm: Duration::from_nanos(470), cold: Duration::from_nanos(1750) };
        assert_eq!(host.scheduler_event("bfq"), of_bfq);
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
    fn a_host_that_names_no_guest_has_the_neutral_one() {
        for name in Host::names() {
            let guest = &Host::named(name).unwrap().guest.name;
            assert_eq!(guest, if name == "guest" { "uml-6.12" } else { "neutral" });
        }
        let text = BUILT_IN[0].1;
        let naming = |guest: &str| {
            let text = text.replacen("\n[machine]", &format!("guest = \"{guest}\"\n[machine]"), 1);
            Host::parse("hosts/x.toml", &text)
        };
        assert_eq!(naming("uml-6.12").unwrap().guest.name, "uml-6.12");
        assert_eq!(
            naming("uml-6.11").unwrap_err().to_string(),
            "hosts/x.toml:5: unknown guest \"uml-6.11\"; nearest: \"uml-6.1\", \"uml-6.12\"; \
             a file, or one of neutral, uml-6.1, uml-6.12, uml-7.3"
        );
        let missing = naming("../none.toml").unwrap_err().to_string();
        assert!(missing.starts_with("hosts/../none.toml: cannot be read"), "{missing}");
    }

    #[test]
    fn errors_name_file_line_and_what_is_accepted() {
        assert_eq!(
            free_with("driver ", "drivre "),
            "x.toml:25: unknown parameter \"cost.drivre\"; nearest: \"driver\"; [cost] has \
             system_call, clock, kernel_clock, exec, path, launch, thread, copy, bio, request, \
             driver, transfer, interrupt, completion, handover, switch, switch_spread, message, \
             page, dirty, writeback, commit, seal"
        );
        assert_eq!(
            free_with("value = 1, unit = \"\"", "value = 0, unit = \"\""),
            "x.toml:7: machine.cores: value 0 is out of range; a whole number from 1 to 1024, \
             unit \"\""
        );
        assert_eq!(
            free_with("unit = \"us\"", "unit = \"h\""),
            "x.toml:15: cost.system_call: unit \"h\"; nearest: \"s\"; a time from 0 ns to \
             1.00 s in one of ns, us, ms, s"
        );
        let both = BUILT_IN.iter().find(|(name, _)| *name == "guest").unwrap().1;
        let both = both.replacen("cores       = { value = 1", "cores       = { value = 2", 1);
        assert_eq!(
            Host::parse("x.toml", &both).unwrap_err().to_string(),
            "x.toml:9: machine.accounting: not zero with several cores; 0 ns, or machine.cores = 1"
        );
        assert!(free_with("[cost]", "[const]").starts_with("x.toml:14: unknown section [const]"));
        assert!(free_with("title", "titel").starts_with("x.toml:1: no title"));
        assert!(free_with("title =", "title").starts_with("x.toml:4: not TOML"));
    }
}
