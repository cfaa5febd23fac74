//! The kernels that an experiment can name: those whose rules are modelled, and, where only the
//! world `linux` runs, those that were built for it.

use crate::error::Error;
use crate::world::JUDGES;
use base::{Hz, nearest};
use block::{KERNELS, Kernel, Version};
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

/// Releases of 2.6, 3, 4, 5 and 6; later series are taken to be as long as the last one.
const RELEASES: [i64; 5] = [40, 20, 21, 20, 20];

/// How many releases there had been before a version, since 2.6.0: a release came every two to
/// three months, so this is its age.
fn age(version: &str) -> i64 {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|it| it.parse().ok()).unwrap_or(0_i64);
    let (major, minor, third) = (next(), next(), next());
    let (before, own) = if major <= 2 { (0, third) } else { (major - 2, minor) };
    let release = |series: i64| RELEASES[series.min(4) as usize];
    (0..before).map(release).sum::<i64>() + own
}

/// The kernel that came nearest to a version, of some.
fn nearest_of<'a>(kernels: impl Iterator<Item = &'a Kernel>, version: &str) -> &'a Kernel {
    let own = age(version);
    let apart = |kernel: &&Kernel| (age(&kernel.version.to_string()) - own).abs();
    kernels.min_by_key(apart).expect("there are some")
}

/// The modelled kernel that came nearest to a version.
fn nearest_rules(version: &str) -> &'static Kernel {
    nearest_of(KERNELS.iter(), version)
}

/// The judge that came nearest to a version.
pub fn nearest_judge(version: &str) -> Version {
    nearest_of(JUDGES.map(Kernel::of).into_iter(), version).version
}

/// Whether a series was as long as the second number says.
fn is_in_series(numbers: &[&str]) -> bool {
    let number = |text: &str| text.parse::<usize>().ok();
    let (Some(major), Some(minor)) = (number(numbers[0]), number(numbers[1])) else { return false };
    major < 3 || minor < RELEASES[(major - 2).min(4)] as usize
}

/// Whether a version came between the modelled ones.
fn is_between(version: &str) -> bool {
    let numbers: Vec<&str> = version.split('.').collect();
    let is_number = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let of = |kernel: &Kernel| age(&kernel.version.to_string());
    let (oldest, newest) = (of(&KERNELS[0]), of(&KERNELS[KERNELS.len() - 1]));
    (2..=3).contains(&numbers.len())
        && numbers.iter().all(is_number)
        && is_in_series(&numbers)
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
            Kernels::Modelled => {
                let rules = parse_kernel(name, place)?;
                let is_judged = rules.version < JUDGES[0] || JUDGES.contains(&rules.version);
                // Older ones have recordings and reports to judge them.
                let asked = (!is_judged).then(|| name.to_string());
                Ok(Named { asked, ..Named::from(rules) })
            }
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
        let offered = visit.schedulers().map_err(|cause| match cause.is_bad_input() {
            true => Error::no_linux(cause),
            false => Error::linux(cause),
        })?;
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
        assert_eq!(rules("7.3.4"), ("7.3".to_string(), 250));
        assert_eq!(rules("6.1.192").0, "6.1");
        let asked =
            |name| Kernels::Modelled.find(name, "-s").map(|it| (it.rules.version, it.asked));
        assert_eq!(asked("6.6").unwrap(), (Version::V6_1, Some("6.6".to_string())));
        assert_eq!(asked("5.15").unwrap().0, Version::V6_1);
        assert_eq!(asked("6.8").unwrap().0, Version::V6_12);
        assert_eq!(nearest_judge("6.18").to_string(), "7.3");
        assert_eq!(asked("6.12").unwrap(), (Version::V6_12, None));
        assert!(["6.81", "2.6.10", "6", "6.x"].into_iter().all(|it| asked(it).is_err()));
        assert_eq!((rules("6.12.117+0a1b").0, rules("5.10.3").0), ("6.12".into(), "5.2".into()));
    }
}
