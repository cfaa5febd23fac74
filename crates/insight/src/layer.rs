//! The layers in which time is spent, one closed list: reports, explanations and pictures know no
//! others.

use block::HoldReason;
use std::fmt;

/// Where an instant of a request or of a system call is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// A task computes.
    Computing,
    /// A task can go on, and waits for a core.
    Core,
    /// A task sleeps because it wants to: a pause of its program.
    Pause,
    /// A task waits for another one's word or end.
    Task,
    /// A task waits for a page that somebody reads or writes.
    Page,
    /// A task pauses because too much is dirty.
    DirtyLimit,
    /// A task waits for a lock of a file, a directory or a map.
    Lock,
    /// A task waits for the journal of ext4 or the log of XFS.
    Journal,
    /// A task waits for a request or a tag: all are taken.
    Tag,
    /// A task waits because writeback is throttled.
    Throttle,
    /// A bio waits for limits of its control group.
    Limits,
    /// A request waits in the plug of its task.
    Plug,
    /// The scheduler withholds requests on purpose.
    Held(HoldReason),
    /// The device had nothing to do for longer than a host takes, and a recording gives no reason:
    /// the scheduler seems to have withheld requests.
    Withheld,
    /// Requests of others were chosen before it.
    Others,
    /// The device had no room, and nobody who came later was chosen.
    Full,
    /// The device had room, nothing was withheld, and nobody got round to it.
    Host,
    /// It was given back by the driver.
    Requeued,
    /// It is with the device, which has commands of others at the same time.
    Shared,
    /// It is with the device, and no command of others is.
    Device,
    /// The device flushes its cache for it.
    Flush,
    /// The device is done, and nobody has been told yet.
    Interrupt,
}

impl Layer {
    /// How many there are, with every reason to hold.
    pub(crate) const COUNT: usize = 21 + Layer::REASONS;
    /// Reasons to hold stand behind the others.
    const REASONS: usize = 12;

    /// Its place in a list of all.
    pub(crate) const fn place(self) -> usize {
        match self {
            Layer::Computing => 0,
            Layer::Core => 1,
            Layer::Pause => 2,
            Layer::Task => 3,
            Layer::Page => 4,
            Layer::DirtyLimit => 5,
            Layer::Lock => 6,
            Layer::Journal => 7,
            Layer::Tag => 8,
            Layer::Throttle => 9,
            Layer::Limits => 10,
            Layer::Plug => 11,
            Layer::Withheld => 12,
            Layer::Others => 13,
            Layer::Full => 14,
            Layer::Host => 15,
            Layer::Requeued => 16,
            Layer::Shared => 17,
            Layer::Device => 18,
            Layer::Flush => 19,
            Layer::Interrupt => 20,
            Layer::Held(reason) => 21 + reason as usize,
        }
    }

    /// The name used in reports, in JSON and in pictures.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Computing => "computing",
            Layer::Core => "core",
            Layer::Pause => "pause",
            Layer::Task => "task",
            Layer::Page => "page",
            Layer::DirtyLimit => "dirty_limit",
            Layer::Lock => "lock",
            Layer::Journal => "journal",
            Layer::Tag => "tag",
            Layer::Throttle => "throttle",
            Layer::Limits => "limits",
            Layer::Plug => "plug",
            Layer::Held(reason) => reason.name(),
            Layer::Withheld => "withheld",
            Layer::Others => "others_first",
            Layer::Full => "device_full",
            Layer::Host => "host",
            Layer::Requeued => "requeued",
            Layer::Shared => "device_shared",
            Layer::Device => "device",
            Layer::Flush => "flush",
            Layer::Interrupt => "interrupt",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
