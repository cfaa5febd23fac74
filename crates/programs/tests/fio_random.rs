//! Random fio jobs on random hosts and kernels: whatever fio accepts runs, loses nothing, keeps its
//! depths, and does the same when it is run again.

#[path = "../../machine/tests/common/mod.rs"]
mod common;

use base::{Duration, Instant, Rng};
use block::{Action, Event};
use common::{Steady, command, setup};
use machine::Exit;
use machine::{Checker, Host, Observer, Setup};

/// Options by what they are about; one or none of each line is used.
const CHOICES: [&[&str]; 22] = [
    &[
        "rw=read",
        "rw=write",
        "rw=randread",
        "rw=randwrite",
        "rw=randrw",
        "rw=rw",
        "rw=trimwrite",
        "rw=randtrim",
        "rw=randread:4",
        "rw=write:8k",
        "rw=read:-12k",
        "rw=randtrimwrite",
    ],
    &[
        "ioengine=psync",
        "ioengine=libaio",
        "ioengine=io_uring",
        "ioengine=posixaio",
        "ioengine=vsync",
        "ioengine=sg",
        "ioengine=null",
        "ioengine=libaio",
    ],
    &["iodepth=4", "iodepth=17", "iodepth=64"],
    &["iodepth_batch=3", "iodepth_batch=16", "iodepth_batch_complete_min=0"],
    &["iodepth_low=2", "iodepth_batch_complete_max=8", "io_submit_mode=offload"],
    &["bs=512", "bs=4k,16k", "bssplit=4k/60:32k/40", "bsrange=4k-64k", "bs=1m"],
    &["size=1m", "size=4m", "size=20%", "io_size=3m", "filesize=1m-4m"],
    &["numjobs=3", "nrfiles=3", "filename=a:b", "offset=1m", "offset_increment=2m"],
    &["loops=3", "number_ios=40", "runtime=5ms", "time_based"],
    &["runtime=8ms", "ramp_time=2ms", "startdelay=1ms-3ms"],
    &["thinktime=300us", "thinktime=1ms", "rate=4m", "rate_iops=3000,500", "rate=1m,"],
    &[
        "thinktime_blocks=5",
        "thinktime_spin=100us",
        "rate_process=poisson",
        "thinktime_blocks_type=issue",
    ],
    &["fsync=3", "fdatasync=1", "sync=1", "end_fsync=1", "sync=dsync"],
    &["verify=crc32c", "verify=md5", "serialize_overlap=1"],
    &["verify_backlog=4", "verify_backlog=9", "verify_only", "do_verify=0"],
    &[
        "norandommap",
        "random_generator=lfsr",
        "random_distribution=zipf:1.2",
        "percentage_random=40",
        "rw_sequencer=identical",
    ],
    &["zonemode=strided", "zonesize=64k", "zonemode=zbd", "zonerange=1m"],
    &["stonewall", "exitall", "wait_for=j0", "new_group", "group_reporting"],
    &["flow=3", "flow=1", "flow_sleep=200", "exit_what=all"],
    &["latency_target=150us", "max_latency=1ms", "steadystate=iops:1%"],
    &["prio=3", "prioclass=3", "nice=10", "cgroup=a", "cgroup=b/c", "cpus_allowed=0"],
    &[
        "latency_window=1ms",
        "steadystate_duration=2",
        "file_service_type=random",
        "file_service_type=zipf:1.1",
        "file_service_type=sequential",
    ],
];

fn random_line(rng: &mut Rng) -> String {
    let mut line = "fio --direct=1 --size=2m".to_string();
    for job in 0..rng.between(1, 3) {
        line += &format!(" --name=j{job}");
        if rng.chance(2, 3) {
            line += " --filename=/dev/sda";
        }
        for choices in CHOICES {
            if rng.chance(1, 3) {
                let choice = choices[rng.below(choices.len() as u64) as usize];
                line += &format!(" --{choice}");
            }
        }
    }
    line
}

/// Counts calls under way.
#[derive(Default)]
struct Depth {
    now: usize,
    most: usize,
}

impl Observer for Depth {
    fn see(&mut self, event: &Event) {
        match event.action {
            Action::SyscallEnter(_) => self.now += 1,
            Action::SyscallExit { .. } | Action::SyscallUnfinished { .. } => self.now -= 1,
            _ => {}
        }
        self.most = self.most.max(self.now);
    }
}

fn prepared(line: &str, rng: &mut Rng) -> Setup {
    let kernels = [("4.19", "deadline"), ("5.2", "mq-deadline"), ("6.18", "none")];
    let (kernel, scheduler) = kernels[rng.below(3) as usize];
    let mut setup = setup(kernel, scheduler);
    setup.host = Host::named(["free", "host-2009"][rng.below(2) as usize]).unwrap();
    setup.device = Box::new(Steady::new(Duration::from_micros(100), 32));
    setup.jobs = vec![command(line)];
    setup.until = Some(Instant::from_nanos(40_000_000));
    setup
}

#[test]
fn whatever_is_accepted_runs_and_loses_nothing() {
    let (mut accepted, mut ended, mut failed) = (0, 0, 0);
    for seed in 0..3_000 {
        let mut rng = Rng::stream(seed, "test/fio/random");
        let line = random_line(&mut rng);
        if programs::parse(&line).is_err() {
            continue;
        }
        accepted += 1;
        let run = |mut rng: Rng| {
            let setup = prepared(&line, &mut rng);
            let mut checker = Checker::new(setup.device.facts(), setup.attach.shape);
            let mut depth = Depth::default();
            let mut both = machine::Several(vec![&mut checker, &mut depth]);
            let outcome = machine::run(setup, &mut both).unwrap_or_else(|error| {
                panic!("seed {seed}: {line}: {error}");
            });
            let exit = outcome.jobs[0].exit;
            if exit != Exit::CutOff {
                checker.finish();
            }
            // Three jobs of three clones, 64 deep, and a flush of each.
            assert!(depth.most <= 9 * 65, "seed {seed}: {line}: {} calls", depth.most);
            (exit, outcome.fingerprint.finish(), outcome.jobs[0].messages.clone())
        };
        let first = run(rng.clone());
        assert_eq!(first, run(rng), "seed {seed}: {line}");
        ended += usize::from(first.0 == Exit::Status(0));
        failed += usize::from(matches!(first.0, Exit::Status(status) if status != 0));
    }
    assert!(accepted > 1_000 && ended > 300, "{accepted} accepted, {ended} ended, {failed} failed");
}
