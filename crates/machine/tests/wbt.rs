//! Writeback throttling in a whole machine (rules wbt): whom it helps, and who waits.

mod common;

use base::Duration;
use block::{Action, Event, Op};
use common::{command, setup};
use machine::{Observer, TaskInfo};

/// What became of the reads and of the writers.
#[derive(Default)]
struct Seen {
    reads: Vec<Duration>,
    throttled: u32,
    told: u32,
}

impl Observer for Seen {
    fn meet(&mut self, _who: &TaskInfo) {}

    fn see(&mut self, event: &Event) {
        match event.action {
            Action::BioDone { queued, .. } if event.op == Op::Read => {
                self.reads.push(event.at.since(queued));
            }
            Action::Throttled { .. } => self.throttled += 1,
            Action::Wbt(_) => self.told += 1,
            _ => {}
        }
    }
}

/// A reader beside a buffered writer of 200 MB, on the SSD.
fn beside_a_writer(wbt_lat_usec: i64) -> Seen {
    let mut setup = setup("6.12", "mq-deadline");
    setup.device = device::Model::builtin("ssd-sata-m4").expect("a model").build(1);
    setup.settings.push(("wbt_lat_usec".to_string(), wbt_lat_usec));
    setup.jobs.extend([
        command("dd if=/dev/sda of=/dev/null bs=4k count=2000 skip=4000000 iflag=direct"),
        command("dd if=/dev/zero of=/dev/sda bs=1M count=200 conv=fsync"),
    ]);
    let mut seen = Seen::default();
    machine::run(setup, &mut seen).expect("a setup that runs");
    seen
}

fn mean(reads: &[Duration]) -> u64 {
    let nanos: u64 = reads.iter().map(|it| it.as_nanos()).sum();
    nanos / reads.len() as u64
}

#[test]
fn reads_beside_a_buffered_writer_are_faster_when_it_is_throttled() {
    let (throttled, free) = (beside_a_writer(2000), beside_a_writer(0));
    assert_eq!(throttled.reads.len(), free.reads.len());
    assert!(throttled.throttled > 0 && throttled.told > 0);
    assert_eq!((free.throttled, free.told), (0, 0));
    let means = (mean(&throttled.reads), mean(&free.reads));
    assert!(means.0 < means.1, "{means:?} ns");
}
