//! Schedulers that do not want writes to be throttled by default (rule wbt-14).

use base::{Sector, Sectors};
use block::contract::{Harness, Table};
use block::scheduler::Cgroup;
use block::{
    Bio, CgroupId, ContextId, Flags, IoContextId, Ioprio, Kernel, Op, Origin, Scheduler, Transport,
};

/// A disk that takes 32 commands, whose kernel throttles by default.
struct Disk {
    harness: Harness,
    bios: u64,
}

impl Disk {
    fn new(scheduler: &str, kernel: &str) -> Disk {
        let kernel = Kernel::named(kernel).unwrap();
        let table = Table { depth: 32, transport: Transport::Sata, ..Table::default() };
        let mut harness = Harness::new(kernel, table, built(scheduler, kernel));
        harness.queue.throttle_by_default(harness.now);
        Disk { harness, bios: 0 }
    }

    /// Submits a buffered write of a task of its own; whether that went on.
    fn writes(&mut self, cgroup: CgroupId) -> bool {
        self.bios += 1;
        let context = ContextId(100 + self.bios as u32);
        self.harness.submit(Bio {
            op: Op::Write,
            flags: Flags::NONE,
            sector: Sector(10_000 * self.bios),
            sectors: Sectors(8),
            ioprio: Ioprio::NONE,
            origin: Origin { context, io_context: IoContextId(1), cgroup, cpu: 0 },
            token: self.bios,
        });
        !self.harness.asleep.contains(&context)
    }

    /// How many writes go on before one has to wait, of 30.
    fn slots(&mut self) -> usize {
        (0..30).take_while(|_| self.writes(CgroupId::ROOT)).count()
    }

    /// Finishes everything, in no time.
    fn drain(&mut self) {
        while !self.harness.in_flight.is_empty() {
            self.harness.complete(0);
        }
    }

    fn switch(&mut self, scheduler: &str) {
        let scheduler = built(scheduler, self.harness.queue.kernel());
        self.harness.switch(scheduler);
    }

    fn shown(&mut self) -> Option<i64> {
        self.harness.queue.get("wbt_lat_usec")
    }
}

fn built(scheduler: &str, kernel: &Kernel) -> Option<Box<dyn Scheduler>> {
    sched::build(scheduler, kernel).unwrap()
}

#[test]
fn in_4_10_a_request_of_a_group_ends_it_if_cfq_makes_it() {
    for (scheduler, slots) in [("cfq", 30), ("deadline", 7)] {
        let mut disk = Disk::new(scheduler, "4.10");
        let (group, parent) = (CgroupId(1), Some(CgroupId::ROOT));
        let cgroup = Cgroup { path: "/a".into(), parent, ..Cgroup::default() };
        disk.harness.queue.define_cgroup(group, cgroup);
        assert!(disk.writes(CgroupId::ROOT));
        assert_eq!(disk.shown(), Some(75_000), "tasks of the root alone");
        disk.drain();
        assert!(disk.writes(group));
        assert_eq!(disk.slots(), slots, "{scheduler}");
    }
}

#[test]
fn in_4_19_cfq_ends_it_as_soon_as_it_is_attached() {
    assert_eq!(Disk::new("cfq", "4.19").slots(), 30);
    assert_eq!(Disk::new("deadline", "4.19").slots(), 8);
}

#[test]
fn bfq_ends_it_while_it_is_attached() {
    let mut disk = Disk::new("bfq", "6.12");
    assert_eq!((disk.slots(), disk.shown()), (30, Some(0)));
    disk.drain();
    disk.switch("mq-deadline");
    assert_eq!((disk.slots(), disk.shown()), (8, Some(75_000)));
    disk.drain();
    disk.switch("bfq");
    assert_eq!((disk.slots(), disk.shown()), (30, Some(0)));
}

#[test]
fn what_somebody_wrote_holds_under_any_scheduler() {
    for (scheduler, kernel) in [("bfq", "6.12"), ("cfq", "4.19"), ("cfq", "4.10")] {
        let mut disk = Disk::new(scheduler, kernel);
        disk.harness.set("wbt_lat_usec", 10_000).unwrap();
        assert_eq!((disk.slots(), disk.shown()), (8, Some(10_000)), "{scheduler}@{kernel}");
    }
    let mut disk = Disk::new("bfq", "6.12");
    disk.harness.set("wbt_lat_usec", 75_000).unwrap();
    assert_eq!(disk.slots(), 30, "the default is what it would have anyway");
}
