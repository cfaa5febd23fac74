//! Queues of CFQ that are to become one (rules cfq-cooperate) are there for as long as somebody
//! uses them: whoever goes before the plan is carried out takes his part of it along.

mod harness;

use base::Duration;
use block::scheduler::IoContext;
use block::{Action, ContextId, EventLog, IoContextId, Kernel, Version};
use harness::{Harness, Table, read};

/// Processes that read, and how many queues there are because of them.
struct Readers {
    harness: Harness,
    queues: i64,
}

impl Readers {
    fn new(version: Version, number: u32) -> Readers {
        let kernel = Kernel::of(version);
        let scheduler = sched::build("cfq", kernel).expect("the kernel has it");
        let table = Table { depth: 1, ..Table::default() };
        let mut harness = Harness::new(kernel, table, scheduler);
        *harness.queue.log() = EventLog::with_messages();
        for process in 0..number {
            let value = IoContext { tasks: 1, ..IoContext::default() };
            harness.queue.define_io_context(IoContextId(process), value);
        }
        Readers { harness, queues: 0 }
    }

    fn read(&mut self, process: u32, sector: u64) {
        self.harness.submit(read(process, sector, 0));
        self.count();
    }

    /// The oldest command is done a millisecond later.
    fn complete(&mut self) {
        self.harness.advance_to(self.harness.now + Duration::from_millis(1));
        self.harness.complete(0);
        self.count();
    }

    fn exit(&mut self, process: u32) {
        let (now, id) = (self.harness.now, IoContextId(process));
        self.harness.queue.define_io_context(id, IoContext::default());
        self.harness.queue.exit_io_context(now, ContextId(process + 1), id);
        self.harness.settle(ContextId(process + 1));
        self.count();
    }

    fn count(&mut self) {
        for event in self.harness.take_events() {
            let Action::Message { text, .. } = &event.action else { continue };
            self.queues += i64::from(text.ends_with("alloced"));
            self.queues -= i64::from(text.ends_with("put_queue"));
        }
    }

    /// Two read close to each other; their queues shall be one.
    fn two_that_cooperate(version: Version) -> Readers {
        let mut readers = Readers::new(version, 2);
        readers.read(0, 1000);
        readers.read(1, 1008);
        readers.complete();
        readers.complete();
        assert_eq!(readers.queues, 2);
        readers
    }
}

#[test]
fn whoever_exits_before_a_merge_takes_the_plan_along() {
    for version in [Version::V4_19, Version::V4_10] {
        // The queue of the first one shall go up in the other, and keeps it until then.
        for (first, left) in [(0, 1), (1, 2)] {
            let mut readers = Readers::two_that_cooperate(version);
            readers.exit(first);
            assert_eq!(readers.queues, left, "of {first} on {version}");
            readers.exit(1 - first);
            assert_eq!(readers.queues, 0, "after {first} on {version}");
        }
    }
}

#[test]
fn a_queue_that_was_merged_goes_with_its_last_user() {
    for version in [Version::V4_19, Version::V4_10] {
        let mut readers = Readers::two_that_cooperate(version);
        readers.read(0, 1016);
        readers.complete();
        readers.read(1, 1024);
        readers.complete();
        assert_eq!(readers.queues, 1, "one for both on {version}");
        readers.exit(0);
        assert_eq!(readers.queues, 1, "the other one still uses it on {version}");
        readers.exit(1);
        assert_eq!(readers.queues, 0, "on {version}");
    }
}
