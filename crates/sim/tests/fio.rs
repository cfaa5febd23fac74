//! fio at work on a simulated disk: what it transfers, when, in which order.

mod common;

use base::Duration;
use common::{checked, command, setup};

#[test]
fn a_time_based_job_runs_for_its_time_at_its_depth() {
    let mut setup = setup("6.18", "mq-deadline");
    setup.jobs = vec![command(
        "fio --name=x --filename=/dev/sda --rw=randread --bs=4k --direct=1 --ioengine=libaio \
         --iodepth=16 --runtime=1 --time_based",
    )];
    let (outcome, counts) = checked(setup);
    assert_eq!(outcome.elapsed, Duration::from_secs(1));
    assert_eq!(counts.most_in_flight, 16);
    // 16 requests every 100 us.
    assert_eq!(counts.calls, 160_000);
}
