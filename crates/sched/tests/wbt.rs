//! Schedulers that do not want writes to be throttled by default (rule wbt-14).

use base::{Bytes, Instant, Sector, Sectors};
use block::scheduler::Cgroup;
use block::{
    Attach, Bio, CgroupId, Command, ContextId, EventLog, Facts, Flags, IoContextId, Ioprio, Kernel,
    Op, Origin, Output, RequestQueue, Transport,
};
use sched::Schedulers;

/// A disk that takes one command at once.
struct Disk {
    queue: RequestQueue,
    now: Instant,
    commands: Vec<Command>,
    wants_run: bool,
    bios: u64,
}

const WORKER: ContextId = ContextId(90);

impl Disk {
    /// One whose kernel throttles by default.
    fn new(scheduler: &str, kernel: &str) -> Disk {
        let kernel = Kernel::named(kernel).unwrap();
        let facts = Facts {
            transport: Transport::Sata,
            capacity: Bytes(1 << 40),
            rotational: true,
            volatile_cache: false,
            fua: false,
            queue_depth: 32,
            hardware_queues: 1,
            logical_block: 512,
            max_hw_sectors: Sectors(65_535),
            max_segments: 128,
            discard: false,
            chunk_sectors: Sectors(0),
            segment: Facts::PAGE,
        };
        let attach = attach(scheduler, kernel);
        let queue = RequestQueue::new(kernel, facts, attach, 1, EventLog::off());
        let (now, commands, wants_run, bios) = (Instant::ZERO, Vec::new(), false, 0);
        let mut disk = Disk { queue, now, commands, wants_run, bios };
        disk.queue.throttle_by_default(disk.now);
        disk
    }

    /// Submits a buffered write of a task of its own; whether that went on.
    fn writes(&mut self, cgroup: CgroupId) -> bool {
        self.bios += 1;
        let context = ContextId(100 + self.bios as u32);
        let bio = Bio {
            op: Op::Write,
            flags: Flags::NONE,
            sector: Sector(10_000 * self.bios),
            sectors: Sectors(8),
            ioprio: Ioprio::NONE,
            origin: Origin { context, io_context: IoContextId(1), cgroup, cpu: 0 },
            token: self.bios,
        };
        self.queue.submit(self.now, bio);
        let goes_on = self.queue.finish(self.now, context);
        self.act();
        goes_on
    }

    /// How many writes go on before one has to wait, of 30.
    fn slots(&mut self) -> usize {
        (0..30).take_while(|_| self.writes(CgroupId::ROOT)).count()
    }

    /// Finishes everything.
    fn drain(&mut self) {
        self.act();
        while let Some(command) = self.commands.pop() {
            self.queue.complete(self.now, WORKER, 0, command.tag);
            self.queue.finish(self.now, WORKER);
            self.act();
        }
    }

    fn switch(&mut self, scheduler: &str) {
        let attach = attach(scheduler, self.queue.kernel());
        self.queue.switch(self.now, WORKER, attach);
        self.queue.finish(self.now, WORKER);
        self.drain();
    }

    fn act(&mut self) {
        loop {
            while let Some(output) = self.queue.pop_output() {
                match output {
                    Output::Issue(command) => self.commands.push(command),
                    Output::RunWorker { .. } => self.wants_run = true,
                    Output::Wake(context) => drop(self.queue.finish(self.now, context)),
                    Output::BioDone { .. } | Output::WouldBlock { .. } => {}
                }
            }
            if !std::mem::take(&mut self.wants_run) {
                return;
            }
            self.queue.run(self.now, WORKER, 0);
            self.queue.finish(self.now, WORKER);
        }
    }

    fn shown(&mut self) -> Option<i64> {
        self.queue.get("wbt_lat_usec")
    }
}

fn attach(scheduler: &str, kernel: &Kernel) -> Attach {
    let entry = Schedulers::default().find(scheduler).unwrap();
    Attach::of((entry.build)(kernel))
}

#[test]
fn in_4_10_a_request_of_a_group_ends_it_if_cfq_makes_it() {
    for (scheduler, slots) in [("cfq", 30), ("deadline", 7)] {
        let mut disk = Disk::new(scheduler, "4.10");
        let (group, parent) = (CgroupId(1), Some(CgroupId::ROOT));
        let cgroup = Cgroup { path: "/a".into(), parent, ..Cgroup::default() };
        disk.queue.define_cgroup(group, cgroup);
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
        disk.queue.set(disk.now, "wbt_lat_usec", 10_000).unwrap();
        assert_eq!((disk.slots(), disk.shown()), (8, Some(10_000)), "{scheduler}@{kernel}");
    }
    let mut disk = Disk::new("bfq", "6.12");
    disk.queue.set(disk.now, "wbt_lat_usec", 75_000).unwrap();
    assert_eq!(disk.slots(), 30, "the default is what it would have anyway");
}
