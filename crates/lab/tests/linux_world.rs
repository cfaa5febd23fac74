//! The world `linux`: the same twice, and close to the simulator. Needs a kernel in the cache.

use lab::fidelity::errors::errors;
use lab::figure::Figure;
use lab::matrix::{self, Report};
use lab::plan::Plan;
use lab::{Experiment, World};
use testing::Need;
use testing::needs::{BUSYBOX, FIO};

/// The kernel of the user's cache.
const KERNEL: Need = testing::needs::kernel(linux::has_kernel);

const EXPERIMENT: &str = r#"
model = "hdd-7200-sata"
schedulers = ["mq-deadline:fifo_batch=4"]
seeds = [7]
queue_depth = 4
[[job]]
name = "load"
cgroup = "db"
ioprio = "be/2"
run = """fio --name=load --filename=/dev/sda --direct=1 --rw=randread --bs=4k --size=1G \
         --ioengine=libaio --iodepth=16 --number_ios=300"""
[[job]]
name = "copy"
start = "10ms"
run = "dd if=/dev/zero of=/dev/sda bs=64k count=20 seek=1000 oflag=direct"
"#;

const WEIGHTS: &str = r#"
model = "ssd-sata-m4"
schedulers = ["bfq@6.12:low_latency=0"]
seeds = [1]
[[job]]
name = "heavy"
cgroup = "heavy"
weight = 800
run = "fio --name=a --filename=/dev/sda --direct=1 --rw=read --bs=1M --size=1G --runtime=1"
[[job]]
name = "light"
cgroup = "light"
weight = 100
background = true
run = "fio --name=b --filename=/dev/sda --direct=1 --rw=read --bs=1M --offset=4G --size=1G"
"#;

const TARGETS: &str = r#"
model = "ssd-sata-m4"
schedulers = ["kyber@6.12", "kyber@6.12:read_lat_nsec=200000000,write_lat_nsec=2000000"]
seeds = [1]
[[job]]
name = "reader"
run = """fio --name=r --filename=/dev/sda --direct=1 --rw=randread --bs=4k --size=1G \
         --ioengine=libaio --iodepth=32 --runtime=2 --time_based"""
[[job]]
name = "writer"
run = """fio --name=w --filename=/dev/sda --direct=1 --rw=randwrite --bs=64k --size=1G \
         --offset=4G --ioengine=libaio --iodepth=32 --runtime=2 --time_based"""
"#;

const LIMITS: &str = r#"
model = "nvme-980pro"
schedulers = ["none@6.12", "mq-deadline@6.12"]
seeds = [1]
[axes]
cgroup_writeback = [true, false]
[[cgroup]]
path = "a"
io.max = "wbps=2000000"
[[cgroup]]
path = "b"
io.max = "riops=100 wiops=50"
[[job]]
name = "writer"
cgroup = "a"
run = "dd if=/dev/zero of=/dev/sda bs=64k count=100 oflag=direct"
[[job]]
name = "mixed"
cgroup = "b"
run = """fio --name=m --filename=/dev/sda --direct=1 --rw=randrw --bs=4k --size=64M --offset=4G \
         --io_size=1M --ioengine=libaio --iodepth=8"""
"#;

const READ_AHEAD: &str = r#"
model = "ssd-sata-m4"
schedulers = ["mq-deadline@6.12"]
seeds = [1]
[[cgroup]]
path = "a"
io.max = "rbps=1048576"
[[job]]
name = "reader"
cgroup = "a"
run = "dd if=/dev/sda of=/dev/null bs=64k count=20"
"#;

fn run(worlds: &[World]) -> Report {
    run_text(EXPERIMENT, worlds)
}

fn run_text(text: &str, worlds: &[World]) -> Report {
    let mut experiment = Experiment::parse("test", text).unwrap();
    experiment.worlds = worlds.to_vec();
    matrix::run(Plan::new(experiment).unwrap(), None, 1, &|_| ()).unwrap()
}

fn the_kernel_does_the_same_twice() {
    let (one, other) = (run(&[World::Linux]), run(&[World::Linux]));
    let (one, other) = (&one.results[0], &other.results[0]);
    assert!(one.succeeded(), "{:?}", one.exits);
    assert_eq!(one.fingerprint, other.fingerprint);
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}

fn the_disk_gets_as_many_requests_as_in_the_simulator() {
    let report = run(&[World::Sim, World::Linux]);
    let errors = errors(&report);
    assert_eq!(errors.len(), 2);
    assert!(errors.iter().all(|error| error.same_requests), "{errors:?}");
    // dd is done in the guest before fio, which looks at the clock for a while first, begins.
    let bandwidth = errors[0].bandwidth.unwrap().percent();
    assert!(bandwidth.abs() < 10.0, "{errors:?}");
}

fn weights_of_groups_divide_the_disk_in_both_worlds() {
    let report = run_text(WEIGHTS, &[World::Sim, World::Linux]);
    let light = Figure::parse("light.read_bw", &["light".to_string()], "test").unwrap();
    let heavy = Figure { job: Some("heavy".to_string()), ..light.clone() };
    for result in &report.results {
        assert!(result.job("heavy").is_some() && result.succeeded(), "{:?}", result.exits);
        let [heavy, light] = [&heavy, &light].map(|it| it.value(result).expect("it read"));
        let share = 100.0 * heavy / (heavy + light);
        assert!((share - 88.9).abs() < 3.0, "{share} %");
    }
}

fn targets_of_kyber_divide_the_disk_in_both_worlds() {
    let report = run_text(TARGETS, &[World::Sim, World::Linux]);
    let errors = errors(&report);
    assert_eq!(errors.len(), 4);
    for error in &errors {
        // In the guest fio begins a little later.
        let pairs = [error.bandwidth, error.p50, error.p99].map(|it| it.unwrap().percent());
        assert!(pairs.iter().all(|percent| percent.abs() < 4.0), "{pairs:?} of {error:?}");
    }
    let reads = |at: usize| errors[at].bandwidth.unwrap();
    assert!(errors[0].job == "reader" && errors[2].job == "reader");
    // The device is bad by what writes miss, and tokens of reads, which are good, become few.
    for (usual, few) in [(reads(0).sim, reads(2).sim), (reads(0).linux, reads(2).linux)] {
        assert!(few < usual / 2.0, "{few} of {usual} B/s");
    }
}

fn limits_of_groups_hold_in_both_worlds_and_hierarchies() {
    let report = run_text(LIMITS, &[World::Sim, World::Linux]);
    let errors = errors(&report);
    assert_eq!(errors.len(), 8);
    for error in &errors {
        assert!(error.same_requests, "{error:?}");
        // A tick in three seconds.
        let bandwidth = error.bandwidth.unwrap().percent();
        assert!(bandwidth.abs() < 0.2, "{bandwidth} % of {error:?}");
    }
}

fn dd_waits_for_what_is_read_ahead_in_both_worlds() {
    let report = run_text(READ_AHEAD, &[World::Sim, World::Linux]);
    let errors = errors(&report);
    assert!(errors.iter().all(|error| error.same_requests), "{errors:?}");
    let bandwidth = errors[0].bandwidth.unwrap().percent();
    assert!(bandwidth.abs() < 0.1, "{bandwidth} %");
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO] => the_kernel_does_the_same_twice,
            the_disk_gets_as_many_requests_as_in_the_simulator,
            weights_of_groups_divide_the_disk_in_both_worlds,
            targets_of_kyber_divide_the_disk_in_both_worlds,
            limits_of_groups_hold_in_both_worlds_and_hierarchies,
            dd_waits_for_what_is_read_ahead_in_both_worlds,
    ])
}
