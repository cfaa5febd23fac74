//! The tunables of the schedulers that know processes, on every kernel that has them: what sysfs
//! shows is what was written, within its range.

mod harness;

use base::Instant;
use harness::{Harness, Table};

#[test]
fn tunables_show_what_was_written() {
    let on = |name| sched::kernels(name).map(move |kernel| (name, kernel));
    for (name, kernel) in ["anticipatory", "cfq", "bfq", "kyber"].into_iter().flat_map(on) {
        let scheduler = sched::build(name, kernel).expect("on its kernel");
        let mut harness = Harness::new(kernel, Table::default(), scheduler);
        // `async_depth` is the queue's, follows `nr_requests` and goes no further.
        let all = sched::about_on(name, kernel).expect("it has it").tunables.iter();
        for tunable in all.filter(|tunable| tunable.name != "async_depth") {
            let tick = 1_000 / i64::from(kernel.hz.get());
            let is_in_ticks = tunable.name == "timeout_sync";
            // On a disk that rotates.
            let default = tunable.default.unwrap_or(match tunable.unit {
                _ if is_in_ticks => i64::from(kernel.hz.get() / 8) * tick,
                "us" => 8_000,
                _ => 8,
            });
            assert_eq!(harness.queue.get(tunable.name), Some(default), "{}", tunable.name);
            for value in [tunable.min, 7, tunable.max] {
                let accepted = harness.set(tunable.name, value).is_ok();
                assert_eq!(accepted, (tunable.min..=tunable.max).contains(&value));
                if accepted {
                    let shown = if is_in_ticks { (value + tick - 1) / tick * tick } else { value };
                    assert_eq!(harness.queue.get(tunable.name), Some(shown), "{}", tunable.name);
                }
            }
            harness.set(tunable.name, default).expect("within its range");
        }
        assert!(harness.now == Instant::ZERO);
    }
}
