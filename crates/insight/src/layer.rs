//! The layers in which time is spent, one closed list: reports, explanations and pictures know no
//! others.

use block::HoldReason;
use std::fmt;

/// Makes the list. What is before a request, what withholds it, and what comes then.
macro_rules! layers {
    (
        tasks { $($(#[doc = $of_task:literal])* $task:ident $task_name:literal,)* }
        before { $($(#[doc = $of_before:literal])* $before:ident $before_name:literal,)* }
        behind { $($(#[doc = $of_behind:literal])* $behind:ident $behind_name:literal,)* }
    ) => {
        /// Where an instant of a request or of a system call is spent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Layer {
            $($(#[doc = $of_task])* $task,)*
            $($(#[doc = $of_before])* $before,)*
            /// The scheduler withholds requests on purpose.
            Held(HoldReason),
            $($(#[doc = $of_behind])* $behind,)*
        }

        /// Places of those that are no reasons.
        enum Plain { $($task,)* $($before,)* $($behind,)* }

        impl Layer {
            const TASKS: usize = [$($task_name,)*].len();
            const BEFORE: usize = Layer::TASKS + [$($before_name,)*].len();
            /// How many there are, with every reason to hold.
            pub(crate) const COUNT: usize =
                Layer::BEFORE + HoldReason::ALL.len() + [$($behind_name,)*].len();

            /// All of them, in the order in which a call meets them.
            pub fn all() -> impl Iterator<Item = Layer> {
                let held = HoldReason::ALL.iter().map(|reason| Layer::Held(*reason));
                let before = [$(Layer::$task,)* $(Layer::$before,)*];
                before.into_iter().chain(held).chain([$(Layer::$behind,)*])
            }

            /// Its place among all.
            pub(crate) const fn place(self) -> usize {
                match self {
                    $(Layer::$task => Plain::$task as usize,)*
                    $(Layer::$before => Plain::$before as usize,)*
                    Layer::Held(reason) => Layer::BEFORE + reason as usize,
                    $(Layer::$behind => Plain::$behind as usize + HoldReason::ALL.len(),)*
                }
            }

            /// The name used in reports, in JSON and in pictures.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Layer::$task => $task_name,)*
                    $(Layer::$before => $before_name,)*
                    Layer::Held(reason) => reason.name(),
                    $(Layer::$behind => $behind_name,)*
                }
            }
        }
    };
}

layers! {
    tasks {
        /// A task computes.
        Computing "computing",
        /// A task can go on, and waits for a core.
        Core "core",
        /// A task sleeps because it wants to: a pause of its program.
        Pause "pause",
        /// A task waits for another one's word or end.
        Task "task",
        /// A task waits for a page that somebody reads or writes.
        Page "page",
        /// A task pauses because too much is dirty.
        DirtyLimit "dirty_limit",
        /// A task waits for a lock of a file, a directory or a map.
        Lock "lock",
        /// A task waits for the journal of ext4 or the log of XFS.
        Journal "journal",
    }
    before {
        /// A bio waits for limits of its control group.
        Limits "limits",
        /// A task waits because writeback is throttled.
        Throttle "throttle",
        /// A task waits for a request or a tag: all are taken.
        Tag "tag",
        /// A request waits in the plug of its task.
        Plug "plug",
    }
    behind {
        /// The device had nothing to do for longer than a host takes, and a recording gives no
        /// reason: the scheduler seems to have withheld requests.
        Withheld "withheld",
        /// Requests of others were chosen before it.
        Others "others_first",
        /// The device had no room, and nobody who came later was chosen.
        Full "device_full",
        /// The device had room, nothing was withheld, and nobody got round to it.
        Host "host",
        /// It was given back by the driver.
        Requeued "requeued",
        /// It is with the device, which has as much to do for others or more.
        Shared "device_shared",
        /// It is with the device, which has less to do for others.
        Device "device",
        /// The device flushes its cache for it.
        Flush "flush",
        /// The device is done, and nobody has been told yet.
        Interrupt "interrupt",
    }
}

impl Layer {
    /// Whether a request by itself can be there: it knows neither its task nor others' commands.
    pub const fn is_of_requests(self) -> bool {
        self.place() >= Layer::TASKS && !matches!(self, Layer::Shared)
    }

    /// Whether the scheduler withheld requests, as it said or as it seems.
    pub const fn is_held(self) -> bool {
        matches!(self, Layer::Held(_) | Layer::Withheld)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_stands_at_its_place_and_has_a_name_of_its_own() {
        let all: Vec<Layer> = Layer::all().collect();
        assert_eq!(all.len(), Layer::COUNT);
        assert!(all.iter().enumerate().all(|(place, it)| it.place() == place));
        let names: std::collections::BTreeSet<&str> = all.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), all.len());
    }
}
