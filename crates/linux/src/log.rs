//! What the disks did, to the nanosecond: the exact truth that traces of the guest only come near.

use std::fmt;

use base::{Fingerprint, Instant, Sector, Sectors};
use block::command::CommandOp;

/// One command as a disk saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Which of the guest's disks, counted from zero.
    pub disk: u32,
    /// What was asked.
    pub op: CommandOp,
    /// First sector; zero for a flush.
    pub sector: Sector,
    /// Length; zero for a flush.
    pub sectors: Sectors,
    /// The slot that it occupied while in the device: the lowest that was free. The guest's own
    /// tag does not cross the transport.
    pub tag: u32,
    /// The I/O priority in the request's header: class times 8192 plus level, zero for none.
    pub ioprio: u16,
    /// When it reached the device.
    pub accepted: Instant,
    /// When it was finished; [`Instant::FAR_FUTURE`] when the guest ended before.
    pub completed: Instant,
}

/// Everything that the disks of one guest did, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceLog {
    /// The commands.
    pub served: Vec<Served>,
}

impl DeviceLog {
    /// A number that differs when anything differs.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut fingerprint = Fingerprint::new();
        for served in &self.served {
            fingerprint.mix(u64::from(served.disk) << 32 | u64::from(served.tag));
            fingerprint.mix((served.op as u64) << 32 | u64::from(served.ioprio));
            fingerprint.mix(served.sector.0);
            fingerprint.mix(u64::from(served.sectors.0));
            fingerprint.mix(served.accepted.as_nanos());
            fingerprint.mix(served.completed.as_nanos());
        }
        fingerprint
    }

    /// The greatest number of commands in one disk at once.
    pub fn deepest(&self, disk: u32) -> usize {
        let mut changes: Vec<(Instant, i64)> = Vec::new();
        for served in self.served.iter().filter(|served| served.disk == disk) {
            changes.push((served.accepted, 1));
            changes.push((served.completed, -1));
        }
        // What ends at an instant makes room for what begins at it.
        changes.sort_unstable();
        let mut deepest = 0;
        let mut inside = 0;
        for (_, change) in changes {
            inside += change;
            deepest = deepest.max(inside);
        }
        usize::try_from(deepest).expect("a depth is not negative")
    }
}

impl fmt::Display for Served {
    /// One line: times in seconds, disk, operation, first sector, sectors, tag.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Served { disk, op, sector, sectors, tag, accepted, completed, .. } = self;
        write!(f, "{accepted} {completed} {disk} {op:?} {sector}+{sectors} {tag}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(accepted: u64, completed: u64) -> Served {
        Served {
            disk: 0,
            op: CommandOp::Read,
            sector: Sector(8),
            sectors: Sectors(8),
            tag: 0,
            ioprio: 0,
            accepted: Instant::from_nanos(accepted),
            completed: Instant::from_nanos(completed),
        }
    }

    #[test]
    fn a_command_that_ends_makes_room_at_that_instant() {
        let log = DeviceLog { served: vec![served(0, 10), served(5, 20), served(10, 30)] };
        assert_eq!(log.deepest(0), 2);
        assert_eq!(log.deepest(1), 0);
    }

    #[test]
    fn a_nanosecond_changes_the_fingerprint() {
        let one = DeviceLog { served: vec![served(0, 10)] };
        let other = DeviceLog { served: vec![served(0, 11)] };
        assert_ne!(one.fingerprint(), other.fingerprint());
    }
}
