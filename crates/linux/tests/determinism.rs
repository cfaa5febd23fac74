//! A run is a function of its description: twice the same to the byte. `cargo xtask determinism`
//! tries twenty more kinds of runs, harder.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use testing::needs::{BUSYBOX, FIO};

use common::{KERNEL, KERNEL_7, directory, finish, guest, machine, modelled, recording};
use device::Model;
use linux::{
    Cache, Cgroup, Finished, Guest, Job, Kernel, Protocol, Recording, Script, Setting, Trace,
};

/// A writer with flushes, random readers in two weighted cgroups, under BFQ.
fn busy(trace: Trace) -> Script {
    let job = |name: &str, command: &str, cgroup: &str| Job {
        name: name.into(),
        command: command.into(),
        cgroup: Some(cgroup.into()),
        ..Job::default()
    };
    let group = |path: &str, weight: &str| Cgroup {
        path: path.into(),
        settings: vec![Setting::new("io.bfq.weight", weight)],
    };
    let readers = "for i in $(seq 12); do
        dd if=/dev/vda of=/dev/null bs=4k count=12 skip=$((i * 77777)) iflag=direct & done; wait";
    Script {
        settings: vec![Setting::queue(0, "scheduler", "bfq"), Setting::queue(0, "rotational", "1")],
        cgroups: vec![group("db", "800"), group("batch", "100")],
        jobs: vec![
            job("write", "dd if=/dev/zero of=/dev/vda bs=8k count=30 oflag=dsync", "db"),
            job("read", readers, "batch"),
            job("fast", readers, "db"),
        ],
        trace,
        ..Script::default()
    }
}

/// The busy guest on a disk that turns, eight requests at a time.
fn busy_guest<'a>(machine: &'a (linux::Kernel, linux::Root), trace: Trace) -> Guest<'a> {
    let model = Model::builtin("hdd-7200-sata").expect("it is built in");
    guest(machine, vec![modelled(&model)], 8, busy(trace))
}

fn assert_same(one: &Finished, other: &Finished) {
    assert_eq!(one.ended, other.ended);
    assert_eq!(one.jobs, other.jobs);
    assert!(one.log == other.log, "device logs differ");
    assert!(one.trace == other.trace, "traces differ");
    assert_eq!(one.priorities, other.priorities);
    assert_eq!(one.timers, other.timers);
}

fn the_same_guest_twice_is_the_same_to_the_byte() {
    let machine = machine();
    let recorded = Recording { priorities: true, ..recording() };
    for trace in [Trace::Off, Trace::Perturbing(recorded), Trace::Free(recorded)] {
        let one = finish(busy_guest(machine, trace));
        assert!(one.log.served.len() > 250, "{} commands", one.log.served.len());
        assert_eq!(one.lost_events, 0);
        assert_same(&one, &finish(busy_guest(machine, trace)));
    }
}

fn the_directory_makes_no_difference() {
    let machine = machine();
    let one = finish(busy_guest(machine, Trace::Off));
    let directory = directory(&format!("another directory/{}", "with a long name ".repeat(10)));
    let other = busy_guest(machine, Trace::Off).run_in(&directory).unwrap();
    assert_same(&one, &other);
}

fn neither_do_busy_cores() {
    let machine = machine();
    let one = finish(busy_guest(machine, Trace::Off));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let other = busy_guest(machine, Trace::Off).run();
        over.store(true, Ordering::Relaxed);
        assert_same(&one, &other.unwrap());
    });
}

fn neither_does_the_core() {
    let machine = machine();
    let one = finish(busy_guest(machine, Trace::Off));
    assert_same(&one, &finish(Guest { core: Some(0), ..busy_guest(machine, Trace::Off) }));
}

fn messages_and_shared_memory_tell_the_same_time() {
    let machine = machine();
    let trace = Trace::Perturbing(recording());
    let one = finish(busy_guest(machine, trace));
    let by_messages = Guest { protocol: Protocol::Messages, ..busy_guest(machine, trace) };
    assert_same(&one, &finish(by_messages));
}

fn a_free_recording_changes_nothing() {
    let machine = machine();
    let one = finish(busy_guest(machine, Trace::Off));
    let other = finish(busy_guest(machine, Trace::Free(recording())));
    assert!(!other.trace.is_empty());
    assert_eq!(one.begun, other.begun);
    let served = |finished: &Finished| {
        let all = finished.log.served.iter().copied();
        all.filter(|one| one.accepted >= finished.begun).collect::<Vec<_>>()
    };
    assert_eq!(served(&one), served(&other));
}

fn processes_under_seccomp_do_what_they_do_under_ptrace() {
    let kernel = Cache::of_user().unwrap().require("7.3", machine().0.hz).unwrap();
    // A kernel that does not explain the word is not given it.
    let mut program = std::fs::read(&kernel.binary).unwrap();
    let help = program.windows(10).position(|it| it == b"\0seccomp=<").expect("7.3 has it");
    program[help + 1] = b'S';
    let binary = directory("ptrace").join("kernel");
    std::fs::copy(&kernel.binary, &binary).unwrap();
    std::fs::write(&binary, program).unwrap();
    let by_ptrace = (Kernel { binary, ..kernel.clone() }, machine().1.clone());
    let by_seccomp = (kernel, machine().1.clone());
    let one = finish(busy_guest(&by_ptrace, Trace::Off));
    assert_same(&one, &finish(busy_guest(&by_seccomp, Trace::Off)));
}

fn another_seed_is_another_run() {
    let machine = machine();
    let one = finish(busy_guest(machine, Trace::Perturbing(recording())));
    let other = Guest { seed: 1, ..busy_guest(machine, Trace::Perturbing(recording())) };
    assert!(one.trace != finish(other).trace);
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO] => the_same_guest_twice_is_the_same_to_the_byte,
            the_directory_makes_no_difference,
            neither_do_busy_cores,
            neither_does_the_core,
            messages_and_shared_memory_tell_the_same_time,
            a_free_recording_changes_nothing,
            another_seed_is_another_run;
        [KERNEL, KERNEL_7, BUSYBOX, FIO] => processes_under_seccomp_do_what_they_do_under_ptrace,
    ])
}
