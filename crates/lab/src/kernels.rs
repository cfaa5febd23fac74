//! The kernels that an experiment can name: those whose rules are modelled, and, where only the
//! world `linux` runs, those that were built for it.

use crate::error::Error;
use base::{Hz, nearest};
use block::{KERNELS, Kernel};
use device::Model;
use linux::{Cache, Offered, Visit};
use std::sync::Arc;

/// A disk on which a kernel is asked for its schedulers.
const DISK: &str = "hdd-7200-sata";

/// A kernel that was built, under the name by which it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestKernel {
    name: String,
    kernel: linux::Kernel,
}

impl GuestKernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel itself.
    pub fn kernel(&self) -> &linux::Kernel {
        &self.kernel
    }

    /// The schedulers that it offers.
    pub fn schedulers(&self) -> impl Iterator<Item = &str> {
        self.kernel.about.schedulers.iter().map(|it| it.name.as_str())
    }

    /// The tunables of one of them.
    pub fn tunables(&self, scheduler: &str) -> impl Iterator<Item = &str> {
        let offered: Option<&Offered> =
            self.kernel.about.schedulers.iter().find(|it| it.name == scheduler);
        offered.into_iter().flat_map(|it| &it.tunables).map(|(name, _)| name.as_str())
    }

    /// The modelled kernel whose rules are nearest to its own.
    fn rules(&self) -> &'static Kernel {
        nearest_rules(&self.kernel.version).with_hz(self.kernel.hz)
    }
}

/// When a version came, as a number that grows: up to 2.6 the third number counts, too.
fn age(version: &str) -> i64 {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|it| it.parse().ok()).unwrap_or(0_i64);
    let (major, minor, third) = (next(), next(), next());
    major * 10_000 + minor * 100 + if major == 2 { third } else { 0 }
}

/// The modelled kernel that came nearest to a version.
fn nearest_rules(version: &str) -> &'static Kernel {
    let own = age(version);
    let apart = |kernel: &&Kernel| (age(&kernel.version.to_string()) - own).abs();
    KERNELS.iter().min_by_key(apart).expect("there are some")
}

/// Whether a version came between the modelled ones.
fn is_between(version: &str) -> bool {
    let numbers: Vec<&str> = version.split('.').collect();
    let is_number = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let of = |kernel: &Kernel| age(&kernel.version.to_string());
    let (oldest, newest) = (of(&KERNELS[0]), of(&KERNELS[KERNELS.len() - 1]));
    (2..=3).contains(&numbers.len())
        && numbers.iter().all(is_number)
        && (oldest..=newest).contains(&age(version))
}

/// A kernel as a scheduler or an experiment names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The rules that hold, or that are nearest.
    pub rules: &'static Kernel,
    /// The kernel itself, if it is one that was built.
    pub guest: Option<Arc<GuestKernel>>,
    /// The version that was asked for, if the rules are those of another.
    pub asked: Option<String>,
}

impl From<&'static Kernel> for Named {
    fn from(rules: &'static Kernel) -> Named {
        Named { rules, guest: None, asked: None }
    }
}

/// Where a kernel's name is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// Among those whose rules are modelled.
    Modelled,
    /// Among those that were built with this tick.
    Built(Hz),
}

impl Kernels {
    /// The kernel of a name.
    pub fn find(self, name: &str, place: &str) -> Result<Named, Error> {
        match self {
            Kernels::Modelled if Kernel::named(name).is_none() && is_between(name) => {
                let rules = nearest_rules(name);
                Ok(Named { asked: Some(name.to_string()), ..Named::from(rules) })
            }
            Kernels::Modelled => parse_kernel(name, place).map(Named::from),
            Kernels::Built(hz) => {
                let mut kernel = built(name, hz)?;
                ask(&mut kernel)?;
                let guest = GuestKernel { name: name.to_string(), kernel };
                let rules = guest.rules();
                Ok(Named { rules, guest: Some(Arc::new(guest)), asked: None })
            }
        }
    }
}

/// A kernel from the user's cache.
pub fn built(name: &str, hz: Hz) -> Result<linux::Kernel, Error> {
    let found = Cache::of_user().and_then(|cache| cache.require(name, hz));
    found.map_err(Error::no_linux)
}

/// Asks a kernel for its schedulers, once, which shows that it starts.
pub fn ask(kernel: &mut linux::Kernel) -> Result<(), Error> {
    if kernel.about.schedulers.is_empty() {
        let visit = Visit::new(kernel.clone(), Model::find(DISK)?);
        let offered = visit.schedulers().map_err(Error::linux)?;
        kernel.offers(offered).map_err(|cause| Error::NoLinux(cause.to_string()))?;
    }
    Ok(())
}

/// The modelled kernel of a version.
pub fn parse_kernel(version: &str, place: &str) -> Result<&'static Kernel, Error> {
    Kernel::named(version).ok_or_else(|| {
        let known: Vec<String> = KERNELS.iter().map(|it| it.version.to_string()).collect();
        let hint = nearest(version, known.iter().map(String::as_str));
        Error::bad(place, format!("unknown kernel \"{version}\"{hint}"), known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux::About;

    #[test]
    fn a_kernel_that_was_built_has_the_nearest_rules() {
        let rules = |version: &str| {
            let (binary, hz) = (Default::default(), Hz::new(250).unwrap());
            let version = version.to_string();
            let kernel = linux::Kernel { binary, version, hz, about: About::default() };
            let guest = GuestKernel { name: "it".to_string(), kernel };
            (guest.rules().version.to_string(), guest.rules().hz.get())
        };
        assert_eq!(rules("7.3.4"), ("6.18".to_string(), 250));
        assert_eq!(rules("6.1.192").0, "6.12");
        let asked =
            |name| Kernels::Modelled.find(name, "-s").map(|it| (it.rules.version, it.asked));
        assert_eq!(asked("6.6").unwrap(), (block::Version::V6_12, Some("6.6".to_string())));
        assert_eq!(asked("5.15").unwrap().0, block::Version::V5_2);
        assert_eq!(asked("6.12").unwrap(), (block::Version::V6_12, None));
        assert!(["6.81", "2.6.10", "6", "6.x"].into_iter().all(|it| asked(it).is_err()));
        assert_eq!((rules("6.12.117+0a1b").0, rules("5.10.3").0), ("6.12".into(), "5.2".into()));
    }
}
