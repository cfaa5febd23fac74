//! A scheduler as it is asked for: `NAME[@KERNEL[+BACKPORT…]][:TUNABLE=VALUE,…]`.
//!
//! A tunable is one of the scheduler's own or a setting of the queue. Ranges are checked against
//! the tables of both; limits that depend on the device are checked when a run is planned.

use crate::backports::{self, kernel_and_backports};
use crate::error::Error;
use crate::kernels::{GuestKernel, Kernels, Named};
use crate::offered::{OFFERED_FILES, OTHER, is_offered};
use base::{Hz, nearest};
use block::{About, Attach, KERNELS, Kernel, QueueSetting, Tunable};
use machine::MACHINE_SETTINGS;
use sched::{Backport, Entry, Schedulers};
use std::sync::Arc;

/// What is compared when nobody says which schedulers.
pub const DEFAULT: [&str; 2] = ["none", "mq-deadline"];
/// The word for every scheduler there is.
pub const ALL: &str = "all";
/// What is accepted where a scheduler is asked for.
pub const ACCEPTED: &str =
    "NAME[@KERNEL[+BACKPORT…]][:TUNABLE=VALUE,…], such as mq-deadline@6.18:fifo_batch=1";

/// A scheduler on a kernel, with what differs from its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerSpec {
    /// Its name in sysfs.
    pub name: &'static str,
    /// Who it is.
    pub entry: &'static Entry,
    /// The kernel whose rules hold, or are nearest to those of `guest`.
    pub kernel: &'static Kernel,
    /// The kernel itself that runs it, if one was named that was built.
    pub guest: Option<Arc<GuestKernel>>,
    /// The version that was asked for, if the rules are those of another.
    pub asked: Option<String>,
    /// Changes of later kernels that it is given.
    pub backports: Vec<&'static Backport>,
    /// Tunables and settings, in the order in which they are written.
    pub tunables: Vec<(String, i64)>,
}

impl SchedulerSpec {
    /// Understands one of Linux's schedulers; `pinned` is the kernel when the text names none.
    pub fn parse(
        text: &str,
        place: &str,
        pinned: Option<&'static Kernel>,
    ) -> Result<SchedulerSpec, Error> {
        let known = &Schedulers::default();
        let pinned = pinned.map(Named::from);
        SchedulerSpec::parse_among(known, Kernels::Modelled, text, place, pinned.as_ref())
    }

    /// Understands one of these schedulers on one of these kernels.
    pub fn parse_among(
        known: &Schedulers,
        kernels: Kernels,
        text: &str,
        place: &str,
        pinned: Option<&Named>,
    ) -> Result<SchedulerSpec, Error> {
        let (head, tunables) = match text.split_once(':') {
            Some((head, tunables)) => (head, tunables),
            None => (text, ""),
        };
        let (name, kernel, given) = match head.split_once('@') {
            Some((name, kernel)) => {
                let (kernel, given) = kernel_and_backports(kernels, kernel, place)?;
                (name, Some(kernel), given)
            }
            None => (head, pinned.cloned(), Vec::new()),
        };
        let mut spec = match kernel {
            Some(Named { rules, guest: Some(guest), .. }) => {
                SchedulerSpec::of_guest(known, name, rules, guest, place)?
            }
            kernel => {
                let entry = known_entry(known, name, place)?;
                let kernel = kernel.unwrap_or(entry.default_kernel().into());
                let spec = SchedulerSpec::modelled(entry, &kernel, place)?;
                SchedulerSpec { backports: backports::find(entry, &kernel, &given, place)?, ..spec }
            }
        };
        for assignment in tunables.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = parse_assignment(assignment, place)?;
            if spec.tunables.iter().any(|(other, _)| *other == key) {
                let problem = format!("{key} stands twice in \"{text}\"");
                return Err(Error::bad(place, problem, "each tunable once"));
            }
            let checked = spec.check(&key, value, place);
            let is_file = || kernels.usual_has_file(&key, spec.kernel.hz);
            if checked.is_err() && !(spec.guest.is_none() && is_file()) {
                return checked.map(|()| spec);
            }
            spec.tunables.push((key, value));
        }
        Ok(spec)
    }

    /// A scheduler on a kernel that is modelled.
    fn modelled(
        entry: &'static Entry,
        Named { rules: kernel, asked, .. }: &Named,
        place: &str,
    ) -> Result<SchedulerSpec, Error> {
        if !entry.is_on(kernel) {
            let problem = format!("kernel {} does not have {}", kernel.version, entry.name);
            let accepted = versions(KERNELS.iter().filter(|kernel| entry.is_on(kernel)));
            return Err(Error::bad(place, problem, accepted));
        }
        let (name, asked) = (entry.name, asked.clone());
        let (backports, tunables) = (Vec::new(), Vec::new());
        Ok(SchedulerSpec { name, entry, kernel, guest: None, asked, backports, tunables })
    }

    /// A scheduler that a kernel offers which was built.
    fn of_guest(
        known: &Schedulers,
        name: &str,
        kernel: &'static Kernel,
        guest: Arc<GuestKernel>,
        place: &str,
    ) -> Result<SchedulerSpec, Error> {
        let offered: Vec<&str> = guest.schedulers().collect();
        if !offered.contains(&name) {
            let hint = nearest(name, offered.iter().copied());
            let problem = format!("kernel {} does not offer \"{name}\"{hint}", guest.name());
            return Err(Error::bad(place, problem, offered.join(", ")));
        }
        let entry = known.find(name).filter(|it| it.is_on(kernel)).unwrap_or(&OTHER);
        // The name of one that nobody has told of lives as long as the program.
        let name = match entry.name == name {
            true => entry.name,
            false => Box::leak(name.to_string().into_boxed_str()),
        };
        let (backports, tunables) = (Vec::new(), Vec::new());
        let (guest, asked) = (Some(guest), None);
        Ok(SchedulerSpec { name, entry, kernel, guest, asked, backports, tunables })
    }

    /// Understands a list, in which `all` stands for everything there is; without any, the default
    /// list.
    pub fn parse_list(
        known: &Schedulers,
        kernels: Kernels,
        texts: &[(String, String)],
        pinned: Option<&Named>,
    ) -> Result<Vec<SchedulerSpec>, Error> {
        let mut specs: Vec<SchedulerSpec> = Vec::new();
        let mut add = |spec: SchedulerSpec| {
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        };
        for (text, place) in texts {
            if text == ALL {
                every(known, pinned).into_iter().for_each(&mut add);
            } else {
                add(SchedulerSpec::parse_among(known, kernels, text, place, pinned)?);
            }
        }
        if texts.is_empty() {
            default_list(known, pinned).into_iter().for_each(add);
        }
        Ok(specs)
    }

    /// The same on the same kernel with another tick.
    pub fn with_hz(&self, hz: Hz) -> SchedulerSpec {
        SchedulerSpec { kernel: self.kernel.with_hz(hz), ..self.clone() }
    }

    /// What is fixed about the scheduler on its kernel.
    pub fn about(&self) -> &'static About {
        self.entry.about_on(self.kernel).expect("checked when it was parsed")
    }

    /// Attaches one to a queue.
    pub fn attach(&self) -> Attach {
        let built = self.entry.build_with(self.kernel, &self.backports);
        Attach::of(built.expect("checked when it was parsed"))
    }

    /// Whether it honours weights of control groups.
    pub fn honours_weights(&self) -> bool {
        self.entry.honours_weights_on(self.kernel)
    }

    /// What a control group weighs to it where nobody sets a weight, by the version of control
    /// groups (rule cfq-settings-3; `blkio.bfq.weight` of a new group).
    pub fn default_weight(&self, is_version_2: bool) -> u32 {
        if self.name == "cfq" && !is_version_2 { 500 } else { 100 }
    }

    /// Whether it honours I/O priorities.
    pub fn honours_ioprio(&self) -> bool {
        self.entry.honours_ioprio_on(self.kernel)
    }

    /// Whether weights for it stand in files of its own, such as `io.bfq.weight`.
    pub fn has_own_weights(&self) -> bool {
        let is_multi = sched::shape_of(self.name) == Some(block::Shape::Multi);
        self.honours_weights() && (self.is_offered() || is_multi)
    }

    /// Whether only a kernel of the world `linux` has it.
    pub fn is_offered(&self) -> bool {
        self.guest.is_some() || is_offered(self.entry)
    }

    /// Its kernel.
    pub fn named_kernel(&self) -> Named {
        Named { rules: self.kernel, guest: self.guest.clone(), asked: self.asked.clone() }
    }

    /// The kernel as it was named, with what it is given.
    pub fn kernel_name(&self) -> String {
        let name = match (&self.guest, &self.asked) {
            (Some(guest), _) => guest.name().to_string(),
            (None, Some(asked)) => asked.clone(),
            (None, None) => self.kernel.version.to_string(),
        };
        let given = self.backports.iter().map(|it| it.name);
        core::iter::once(name.as_str()).chain(given).collect::<Vec<_>>().join("+")
    }

    /// Whether a tunable of this name is its own.
    pub fn has_tunable(&self, name: &str) -> bool {
        match &self.guest {
            Some(guest) => guest.tunables(self.name).any(|it| it == name),
            None => self.tunable(name).is_some(),
        }
    }

    /// The names of its own tunables.
    pub fn tunable_names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match &self.guest {
            Some(guest) => Box::new(guest.tunables(self.name)),
            None => Box::new(self.about().tunables.iter().map(|it| it.name)),
        }
    }

    /// The scheduler's own tunable of this name.
    pub fn tunable(&self, name: &str) -> Option<&'static Tunable> {
        self.about().tunables.iter().find(|tunable| tunable.name == name)
    }

    /// Its name and tunables, without the kernel.
    pub fn short(&self) -> String {
        let tunables: Vec<String> =
            self.tunables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        match tunables.is_empty() {
            true => self.name.to_string(),
            false => format!("{}:{}", self.name, tunables.join(",")),
        }
    }

    /// As it would be asked for, in full.
    pub fn label(&self) -> String {
        let short = self.short();
        let rest = &short[self.name.len()..];
        format!("{}@{}{rest}", self.name, self.kernel_name())
    }

    /// Whether the scheduler, or the queue, has a setting of this name that takes this value.
    pub fn check(&self, name: &str, value: i64, place: &str) -> Result<(), Error> {
        if self.guest.as_ref().is_some_and(|it| self.has_tunable(name) || it.file(name).is_some()) {
            // The kernel itself knows the range.
            return Ok(());
        }
        let own = self.tunable(name).filter(|_| self.guest.is_none());
        let own = own.map(|it| (it.min, it.max, it.unit));
        let queue = QueueSetting::named(name, self.kernel);
        let machine = MACHINE_SETTINGS.iter().find(|it| it.name == name);
        let machine = machine.map(|it| (it.range.0, it.range.1, it.unit));
        let queue = queue.map(|it| (it.min, it.max, it.unit));
        let Some((min, max, unit)) = own.or(queue).or(machine) else {
            return Err(self.unknown_setting(name, place));
        };
        if (min..=max).contains(&value) {
            return Ok(());
        }
        let problem = format!("{name}={value} of {} is out of range", self.name);
        Err(Error::bad(place, problem, format!("{min} to {max} {unit}")))
    }

    /// Settings of the queue that its kernel has.
    pub(crate) fn queue_settings(&self) -> impl Iterator<Item = &'static QueueSetting> + use<> {
        QueueSetting::all(self.kernel)
    }

    pub(crate) fn unknown_setting(&self, name: &str, place: &str) -> Error {
        let all: Vec<(&str, &str)> = match &self.guest {
            Some(guest) => {
                let own = guest.tunables(self.name).map(|name| (name, "tunable"));
                own.chain(guest.file_names().map(|name| (name, "queue"))).collect()
            }
            None => {
                let own = self.about().tunables.iter().map(|it| (it.name, it.unit));
                let queue = self.queue_settings().map(|it| (it.name, it.unit));
                let memory = MACHINE_SETTINGS.iter().map(|it| (it.name, it.unit));
                own.chain(queue).chain(memory).collect()
            }
        };
        let hint = nearest(name, all.iter().map(|it| it.0));
        let accepted: Vec<String> =
            all.iter().map(|(name, unit)| format!("{name} ({unit})")).collect();
        let accepted = accepted.join(", ");
        if self.guest.is_none() && OFFERED_FILES.contains(&name) {
            let accepted = format!("--world linux, or what is: {accepted}");
            return Error::bad(place, format!("{name} is not simulated"), accepted);
        }
        let problem = format!("{} on {} has no \"{name}\"{hint}", self.name, self.kernel_name());
        Error::bad(place, problem, accepted)
    }
}

/// A tick that kernels can be configured with.
pub fn parse_hz(text: &str, place: &str) -> Result<Hz, Error> {
    let choices = || Hz::CHOICES.map(|it| it.to_string()).join(", ");
    let refuse = || Error::bad(place, format!("hz: \"{text}\""), choices());
    text.parse().ok().and_then(Hz::new).ok_or_else(refuse)
}

/// `NAME=VALUE` of a whole number.
pub fn parse_assignment(text: &str, place: &str) -> Result<(String, i64), Error> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(Error::bad(place, format!("\"{text}\" has no value"), "NAME=VALUE"));
    };
    match value.parse() {
        Ok(number) => Ok((name.to_string(), number)),
        Err(_) => {
            let problem = format!("{name}: \"{value}\" is no whole number");
            Err(Error::bad(place, problem, "a whole number, as in sysfs"))
        }
    }
}

/// The versions of kernels, for messages.
pub fn versions<'k>(kernels: impl Iterator<Item = &'k Kernel>) -> String {
    kernels.map(|kernel| kernel.version.to_string()).collect::<Vec<_>>().join(", ")
}

fn known_entry(known: &Schedulers, name: &str, place: &str) -> Result<&'static Entry, Error> {
    known.find(name).ok_or_else(|| {
        let names: Vec<&str> = known.names().collect();
        let problem = format!("unknown scheduler \"{name}\"{}", nearest(name, known.names()));
        match name {
            "" => Error::bad(place, "no scheduler is named", ACCEPTED),
            _ => Error::bad(place, problem, format!("{}, {ALL}", names.join(", "))),
        }
    })
}

/// Every scheduler: of the pinned kernel, or each on the kernel it runs on by default.
fn every(known: &Schedulers, pinned: Option<&Named>) -> Vec<SchedulerSpec> {
    if let Some(Named { rules, guest: Some(guest), .. }) = pinned {
        let spec = |name| SchedulerSpec::of_guest(known, name, rules, guest.clone(), "");
        return guest.schedulers().filter_map(|name| spec(name).ok()).collect();
    }
    let on = |entry: &'static Entry| {
        let kernel = pinned.cloned().unwrap_or(entry.default_kernel().into());
        SchedulerSpec::modelled(entry, &kernel, "").ok()
    };
    known.entries().filter_map(on).collect()
}

/// The default list, or what a pinned kernel has instead of it.
fn default_list(known: &Schedulers, pinned: Option<&Named>) -> Vec<SchedulerSpec> {
    let every = every(known, pinned);
    let usual: Vec<SchedulerSpec> =
        every.iter().filter(|spec| DEFAULT.contains(&spec.name)).cloned().collect();
    if usual.is_empty() { every } else { usual }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SchedulerSpec, Error> {
        SchedulerSpec::parse(text, "-s", None)
    }

    fn refusal(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_scheduler_names_kernel_and_tunables() {
        let spec = parse("mq-deadline@5.2:fifo_batch=1,nr_requests=64").unwrap();
        assert_eq!((spec.name, spec.kernel.version.to_string().as_str()), ("mq-deadline", "5.2"));
        assert_eq!(spec.tunables, [("fifo_batch".into(), 1), ("nr_requests".into(), 64)]);
        assert_eq!(spec.label(), "mq-deadline@5.2:fifo_batch=1,nr_requests=64");
        assert_eq!(spec.short(), "mq-deadline:fifo_batch=1,nr_requests=64");
        assert_eq!(parse("deadline").unwrap().label(), "deadline@4.19");
    }

    #[test]
    fn a_pinned_kernel_holds_unless_another_is_named() {
        let pinned = Kernel::named("5.1");
        let label = |text| SchedulerSpec::parse(text, "-s", pinned).unwrap().label();
        assert_eq!(label("none"), "none@5.1");
        assert_eq!(label("none@6.18"), "none@6.18");
    }

    #[test]
    fn what_there_is_not_is_refused_with_what_is_near() {
        assert_eq!(
            refusal("deadlin"),
            "-s: unknown scheduler \"deadlin\"; nearest: \"deadline\"; accepted: noop, deadline, \
             anticipatory, cfq, none, mq-deadline, kyber, bfq, all"
        );
        assert!(refusal("noop@6.18").contains("kernel 6.18 does not have noop; accepted: 2.6.28"));
        assert!(
            refusal("none@6.81").contains("unknown kernel \"6.81\"; nearest: \"6.1\", \"6.18\"")
        );
        assert!(refusal("mq-deadline:fifo_bacth=1").contains("nearest: \"fifo_batch\""));
        assert_eq!(
            refusal("mq-deadline:front_merges=2"),
            "-s: front_merges=2 of mq-deadline is out of range; accepted: 0 to 1 bool"
        );
        assert!(refusal("mq-deadline:fifo_batch=x").contains("no whole number"));
        assert!(refusal("mq-deadline:fifo_batch").contains("has no value"));
        assert!(refusal("").contains("no scheduler is named"));
    }

    #[test]
    fn the_default_list_fits_a_pinned_kernel() {
        let labels = |texts: &[&str], pinned: Option<&str>| -> Vec<String> {
            let texts: Vec<_> = texts.iter().map(|it| (it.to_string(), "-s".to_string())).collect();
            let pinned = pinned.and_then(Kernel::named).map(Named::from);
            let specs = SchedulerSpec::parse_list(
                &Schedulers::default(),
                Kernels::Modelled,
                &texts,
                pinned.as_ref(),
            );
            specs.unwrap().iter().map(SchedulerSpec::label).collect()
        };
        assert_eq!(labels(&[], None), ["none@6.18", "mq-deadline@6.18"]);
        assert_eq!(
            labels(&[], Some("2.6.28")),
            ["noop@2.6.28", "deadline@2.6.28", "anticipatory@2.6.28", "cfq@2.6.28"]
        );
        assert_eq!(labels(&["all", "none"], None).len(), sched::names().count());
        assert_eq!(
            labels(&["all"], Some("6.12")),
            ["none@6.12", "mq-deadline@6.12", "kyber@6.12", "bfq@6.12"]
        );
    }
}
