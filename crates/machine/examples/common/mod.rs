//! What the measurements share: a machine with a scheduler by name, and the time that a run takes.

use block::Attach;
use device::Device;
use machine::{Host, Job, Setup};

/// Jobs under a scheduler of its default kernel, on a host by name.
pub fn setup(scheduler: &str, host: &str, device: Box<dyn Device>, jobs: Vec<Job>) -> Setup {
    let kernel = sched::default_kernel(scheduler).expect("a scheduler");
    let attach = Attach::of(sched::build(scheduler, kernel).expect("a scheduler of its kernel"));
    Setup::new(kernel, attach, device, Host::named(host).expect("a host"), jobs)
}

/// Nanoseconds that this thread has run: other load on the machine does not count.
pub fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number")
}
