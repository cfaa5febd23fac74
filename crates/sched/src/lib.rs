//! The I/O schedulers, one file or directory each, named as in sysfs.
//!
//! This list is the only place that knows all of them: a new scheduler is its file and a line
//! here. Everything else takes a name, asks [`about`] or [`kernels`], and lets [`build`] make one.
//! Experiments take a value, [`Schedulers`], to which anybody can add an [`Entry`] of his own
//! (`examples/own_scheduler.rs`).
//! `noop.rs` shows what a scheduler is; the seam itself is [`block::Scheduler`].

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod anticipatory;
mod async_depth;
mod backport;
pub mod bfq;
pub mod cfq;
mod choice;
pub mod deadline;
pub mod kyber;
pub mod mq_deadline;
pub mod none;
pub mod noop;
mod sector_tree;
mod settings;
mod sorted_fifo;
mod starvation;
mod think;

use alloc::boxed::Box;
use alloc::vec::Vec;
pub use backport::{Backport, Backports};
use block::{About, KERNELS, Kernel, Scheduler, Shape, Version};
use core::fmt;

/// A scheduler as an experiment can name it; a line of the list.
pub struct Entry {
    /// Its name in sysfs.
    pub name: &'static str,
    /// What is fixed about it in a kernel that has it.
    pub about: fn(&Kernel) -> &'static About,
    /// The first kernel that has it, among those with its shape.
    pub since: Version,
    /// The last one, if there are later ones with its shape.
    pub until: Option<Version>,
    /// The kernel it runs on when nobody says otherwise: the last of its kind.
    pub default_kernel: Version,
    /// The first kernel on which it honours weights of control groups.
    pub honours_weights: Option<Version>,
    /// The first kernel on which it honours I/O priorities.
    pub honours_ioprio: Option<Version>,
    /// Makes one; `None` for the absence of a scheduler.
    pub build: fn(&Kernel) -> Option<Box<dyn Scheduler>>,
    /// Changes of later kernels that it can be given alone.
    pub backports: Option<&'static Backports>,
}

/// All schedulers of Linux, oldest first within each shape.
pub static LIST: [Entry; 8] = [
    Entry {
        name: "noop",
        about: |_| &noop::ABOUT,
        since: Version::V2_6_28,
        until: None,
        default_kernel: Version::V4_19,
        honours_weights: None,
        honours_ioprio: None,
        build: |_| Some(Box::new(noop::Noop::default())),
        backports: None,
    },
    Entry {
        name: "deadline",
        about: |_| &deadline::ABOUT,
        since: Version::V2_6_28,
        until: None,
        default_kernel: Version::V4_19,
        honours_weights: None,
        honours_ioprio: None,
        build: |kernel| Some(Box::new(deadline::Deadline::new(kernel))),
        backports: None,
    },
    Entry {
        name: "anticipatory",
        about: |_| &anticipatory::ABOUT,
        since: Version::V2_6_28,
        until: Some(Version::V2_6_32),
        default_kernel: Version::V2_6_32,
        honours_weights: None,
        honours_ioprio: None,
        build: |kernel| Some(Box::new(anticipatory::Anticipatory::new(kernel))),
        backports: None,
    },
    Entry {
        name: "cfq",
        about: cfq::about_on,
        since: Version::V2_6_28,
        until: None,
        default_kernel: Version::V4_19,
        honours_weights: Some(Version::V4_10),
        honours_ioprio: Some(Version::V2_6_28),
        build: |kernel| Some(cfq::build(kernel)),
        backports: None,
    },
    Entry {
        name: "none",
        about: |_| &none::ABOUT,
        since: Version::V4_19,
        until: None,
        default_kernel: Version::V6_18,
        honours_weights: None,
        honours_ioprio: None,
        build: |_| None,
        backports: None,
    },
    Entry {
        name: "mq-deadline",
        about: mq_deadline::about_on,
        since: Version::V4_19,
        until: None,
        default_kernel: Version::V6_18,
        honours_weights: None,
        honours_ioprio: Some(Version::V6_1),
        build: |kernel| Some(Box::new(mq_deadline::MqDeadline::new(kernel))),
        backports: None,
    },
    Entry {
        name: "kyber",
        about: kyber::about_on,
        since: Version::V4_19,
        until: None,
        default_kernel: Version::V6_18,
        honours_weights: None,
        honours_ioprio: None,
        build: |kernel| Some(Box::new(kyber::Kyber::new(kernel))),
        backports: None,
    },
    Entry {
        name: "bfq",
        about: bfq::about_on,
        since: Version::V4_19,
        until: None,
        default_kernel: Version::V6_12,
        honours_weights: Some(Version::V4_19),
        honours_ioprio: Some(Version::V4_19),
        build: |kernel| Some(Box::new(bfq::Bfq::new(kernel))),
        backports: Some(&bfq::BACKPORTS),
    },
];

/// The names of all schedulers.
pub fn names() -> impl Iterator<Item = &'static str> {
    LIST.iter().map(|entry| entry.name)
}

/// What is fixed about a scheduler, on its default kernel.
pub fn about(name: &str) -> Option<&'static About> {
    about_on(name, default_kernel(name)?)
}

/// What is fixed about a scheduler on a kernel; tunables come and go. `None` if that kernel does
/// not have it.
pub fn about_on(name: &str, kernel: &Kernel) -> Option<&'static About> {
    find(name)?.about_on(kernel)
}

/// The shape of the block layer a scheduler lives in.
pub fn shape_of(name: &str) -> Option<Shape> {
    find(name).map(Entry::shape)
}

/// The kernels that have a scheduler, oldest first; none if there is no such scheduler.
pub fn kernels(name: &str) -> impl Iterator<Item = &'static Kernel> {
    let entry = find(name);
    KERNELS.iter().filter(move |kernel| entry.is_some_and(|entry| entry.is_on(kernel)))
}

/// The kernel a scheduler runs on when nobody says otherwise.
pub fn default_kernel(name: &str) -> Option<&'static Kernel> {
    find(name).map(Entry::default_kernel)
}

/// Whether a scheduler honours weights of control groups on a kernel.
pub fn honours_weights(name: &str, kernel: &Kernel) -> bool {
    find(name).is_some_and(|entry| entry.honours_weights_on(kernel))
}

/// Makes a scheduler with default settings; `None` for the absence of one ("none").
pub fn build(name: &str, kernel: &Kernel) -> Result<Option<Box<dyn Scheduler>>, BuildError> {
    find(name).ok_or(BuildError::Unknown)?.build_for(kernel)
}

/// Why a scheduler cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// There is none of this name; [`names`] has those there are.
    Unknown,
    /// The kernel does not have it; [`kernels`] has those that do.
    NotInKernel {
        /// The scheduler.
        name: &'static str,
        /// The kernel.
        kernel: Version,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Unknown => f.write_str("no such scheduler"),
            BuildError::NotInKernel { name, kernel } => {
                write!(f, "kernel {kernel} does not have {name}")
            }
        }
    }
}

impl core::error::Error for BuildError {}

impl Entry {
    /// What is fixed about it on a kernel; `None` if that kernel does not have it.
    pub fn about_on(&self, kernel: &Kernel) -> Option<&'static About> {
        self.is_on(kernel).then(|| (self.about)(kernel))
    }

    /// The shape of the block layer it lives in.
    pub fn shape(&self) -> Shape {
        (self.about)(self.default_kernel()).shape
    }

    /// The kernel it runs on when nobody says otherwise.
    pub fn default_kernel(&self) -> &'static Kernel {
        Kernel::of(self.default_kernel)
    }

    /// Whether it honours weights of control groups on a kernel.
    pub fn honours_weights_on(&self, kernel: &Kernel) -> bool {
        self.honours_weights.is_some_and(|since| kernel.version >= since)
    }

    /// Whether it honours I/O priorities on a kernel.
    pub fn honours_ioprio_on(&self, kernel: &Kernel) -> bool {
        self.honours_ioprio.is_some_and(|since| kernel.version >= since)
    }

    /// Makes one with default settings; `None` for the absence of a scheduler.
    pub fn build_for(&self, kernel: &Kernel) -> Result<Option<Box<dyn Scheduler>>, BuildError> {
        if !self.is_on(kernel) {
            return Err(BuildError::NotInKernel { name: self.name, kernel: kernel.version });
        }
        Ok((self.build)(kernel))
    }

    /// Changes of later kernels that it can be given alone, on the kernels they name.
    pub fn backports(&self) -> &'static [Backport] {
        self.backports.map_or(&[], |it| it.list)
    }

    /// The same as [`Entry::build_for`], with changes of later kernels.
    pub fn build_with(
        &self,
        kernel: &Kernel,
        given: &[&'static Backport],
    ) -> Result<Option<Box<dyn Scheduler>>, BuildError> {
        match self.backports.filter(|_| self.is_on(kernel) && !given.is_empty()) {
            Some(backports) => Ok(Some((backports.build)(kernel, given))),
            None => self.build_for(kernel),
        }
    }

    /// Whether a kernel has it.
    pub fn is_on(&self, kernel: &Kernel) -> bool {
        let is_gone = self.until.is_some_and(|last| kernel.version > last);
        kernel.version >= self.since && !is_gone && kernel.has(self.shape())
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Two lines of one name are the same scheduler.
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.name == other.name
    }
}

impl Eq for Entry {}

/// The schedulers that an experiment can name: those of Linux, and others that were added.
#[derive(Clone, Debug)]
pub struct Schedulers {
    entries: Vec<&'static Entry>,
}

impl Default for Schedulers {
    /// Those of Linux.
    fn default() -> Schedulers {
        Schedulers { entries: LIST.iter().collect() }
    }
}

impl Schedulers {
    /// The same and another one, behind all others.
    pub fn with(mut self, entry: &'static Entry) -> Schedulers {
        self.entries.push(entry);
        self
    }

    /// All of them, in order.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> + '_ {
        self.entries.iter().copied()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.entries().map(|entry| entry.name)
    }

    /// The one of this name.
    pub fn find(&self, name: &str) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.name == name)
    }
}

fn find(name: &str) -> Option<&'static Entry> {
    LIST.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn versions(name: &str) -> Vec<std::string::String> {
        kernels(name).map(|kernel| kernel.version.to_string()).collect()
    }

    #[test]
    fn schedulers_live_in_the_kernels_that_had_them() {
        assert_eq!(versions("noop"), ["2.6.28", "2.6.32", "4.10", "4.19"]);
        assert_eq!(versions("deadline"), versions("noop"));
        assert_eq!(versions("anticipatory"), ["2.6.28", "2.6.32"]);
        assert_eq!(versions("cfq"), versions("noop"));
        assert_eq!(versions("mq-deadline"), ["4.19", "5.1", "5.2", "6.1", "6.12", "6.18", "7.3"]);
        assert_eq!(versions("none"), versions("mq-deadline"));
        assert_eq!(versions("kyber"), versions("mq-deadline"));
        assert_eq!(versions("elevator"), Vec::<std::string::String>::new());
    }

    #[test]
    fn every_scheduler_can_be_built_for_each_of_its_kernels() {
        for name in names() {
            for kernel in kernels(name) {
                let built = build(name, kernel).expect("the kernel has it");
                let about = about_on(name, kernel).expect("the kernel has it");
                assert_eq!(about.name, name);
                assert_eq!(built.is_none(), name == "none");
                if let Some(scheduler) = built {
                    let names = |about: &About| -> Vec<_> {
                        about.tunables.iter().map(|t| t.name).collect()
                    };
                    assert_eq!(names(scheduler.about()), names(about));
                }
            }
            let default = default_kernel(name).expect("in the list");
            assert!(kernels(name).any(|kernel| kernel == default));
            assert_eq!(about(name).expect("in the list").name, name);
        }
    }

    #[test]
    fn a_scheduler_is_refused_on_a_kernel_without_it() {
        let refused = |name, kernel| build(name, Kernel::of(kernel)).err();
        let expected = BuildError::NotInKernel { name: "noop", kernel: Version::V6_18 };
        assert_eq!(refused("noop", Version::V6_18), Some(expected));
        assert_eq!(expected.to_string(), "kernel 6.18 does not have noop");
        assert_eq!(refused("elevator", Version::V4_19), Some(BuildError::Unknown));
    }

    #[test]
    fn defaults_lie_within_ranges() {
        for name in names() {
            for kernel in kernels(name) {
                for tunable in about_on(name, kernel).expect("the kernel has it").tunables {
                    let range = tunable.min..=tunable.max;
                    assert!(tunable.default.is_none_or(|value| range.contains(&value)));
                }
            }
        }
    }
}
