//! What the disk did, from its own log: exact, and without any influence on the run.

use crate::metrics::{Disk, Latency};
use base::{Bytes, Duration, Histogram, Instant};
use block::command::CommandOp;
use linux::{DeviceLog, Served};

/// What the disk did since `began`, and how long commands were in it.
pub fn measure(log: &DeviceLog, began: Instant) -> (Disk, Latency) {
    let counted = |it: &&Served| it.accepted >= began && it.completed != Instant::FAR_FUTURE;
    let served: Vec<&Served> = log.served.iter().filter(counted).collect();
    let (mut disk, mut device) = (Disk::default(), Histogram::new());
    let mut last_end = None;
    let (mut seeks, mut seek_sum) = (0_u64, 0_u128);
    for it in &served {
        let took = it.completed.saturating_since(it.accepted);
        device.record(took);
        let bytes = it.sectors.bytes();
        match it.op {
            CommandOp::Read => {
                disk.reads += 1;
                disk.read_bytes = Bytes(disk.read_bytes.0 + bytes.0);
                disk.read_time += took;
            }
            CommandOp::Write => {
                disk.writes += 1;
                disk.write_bytes = Bytes(disk.write_bytes.0 + bytes.0);
                disk.write_time += took;
            }
            CommandOp::Flush => disk.flushes += 1,
            CommandOp::Discard => disk.discards += 1,
        }
        if it.op == CommandOp::Flush {
            continue;
        }
        disk.commands += 1;
        if let Some(end) = last_end.replace(it.sector.0 + u64::from(it.sectors.0)) {
            disk.sequential += u64::from(it.sector.0 == end);
            seeks += 1;
            seek_sum += u128::from(it.sector.0.abs_diff(end));
        }
    }
    disk.seek_sectors_mean = (seek_sum / u128::from(seeks.max(1))) as u64;
    (disk.busy, disk.idle) = times(&served);
    let all: u128 = served
        .iter()
        .map(|it| u128::from(it.completed.saturating_since(it.accepted).as_nanos()))
        .sum();
    disk.depth_mean_thousandths = (all * 1000 / u128::from(disk.busy.as_nanos().max(1))) as u64;
    (disk, Latency::of(&device))
}

/// The time with commands in the disk, and that without any, from the first command (fio takes
/// its time before) to the end of the last one.
fn times(served: &[&Served]) -> (Duration, Duration) {
    let first = served.first().map_or(Instant::ZERO, |it| it.accepted);
    let (mut busy, mut idle, mut until) = (Duration::ZERO, Duration::ZERO, first);
    for it in served {
        idle += it.accepted.saturating_since(until);
        busy += it.completed.saturating_since(until.max(it.accepted));
        until = until.max(it.completed);
    }
    (busy, idle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Sector, Sectors};

    #[test]
    fn overlapping_commands_keep_the_disk_busy_once() {
        let served = |from, to| Served {
            disk: 0,
            op: CommandOp::Read,
            sector: Sector(8),
            sectors: Sectors(8),
            tag: 0,
            ioprio: 0,
            accepted: Instant::from_nanos(from),
            completed: Instant::from_nanos(to),
        };
        let log = DeviceLog {
            served: vec![served(1, 2), served(10, 20), served(15, 30), served(40, 50)],
        };
        let (disk, device) = measure(&log, Instant::from_nanos(5));
        assert_eq!((disk.busy.as_nanos(), disk.idle.as_nanos()), (30, 10));
        assert_eq!((disk.reads, device.count), (3, 3));
        assert_eq!((disk.commands, disk.sequential), (3, 0));
        assert_eq!(disk.depth_mean_thousandths, 35_000 / 30);
    }
}
