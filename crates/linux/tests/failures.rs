//! Every way in which a run is known to fail has an error that says what to do.

mod common;

use std::path::PathBuf;
use std::time::Duration as WallTime;
use testing::needs::{BUSYBOX, DEBIANS_UML, FIO};

use base::{Bytes, Duration};
use common::{KERNEL, constant, guest, machine};
use linux::{Cgroup, Guest, Job, Kernel, Root, RunError, Script, Setting, Watchdog};

fn job(command: &str) -> Script {
    let job = Job { name: "job".into(), command: command.into(), ..Job::default() };
    Script { jobs: vec![job], ..Script::default() }
}

fn failure(guest: Guest<'_>) -> String {
    guest.run().expect_err("this run must fail").to_string()
}

fn patient(seconds: u64) -> Watchdog {
    Watchdog { silence: WallTime::from_secs(seconds), ..Watchdog::default() }
}

fn a_guest_that_spins_is_killed() {
    let machine = machine();
    let spinning = guest(machine, Vec::new(), 1, job("while :; do :; done"));
    let message = failure(Guest { watchdog: patient(2), ..spinning });
    assert!(message.contains("said nothing for 2 s"), "{message}");
}

fn a_guest_that_sleeps_for_ever_meets_its_limit() {
    let machine = machine();
    let sleeping = guest(machine, Vec::new(), 1, job("sleep 1000000"));
    let lifetime = Duration::from_secs(5000);
    let watchdog = Watchdog { lifetime, ..Watchdog::default() };
    let message = failure(Guest { watchdog, ..sleeping });
    assert!(message.contains("stopped after 5000 s"), "{message}");
}

fn a_program_that_is_no_kernel_is_refused() {
    let (kernel, root) = machine();
    let cases = [
        ("/bin/true", "ended without a word, as one does that is damaged; accepted: one that"),
        ("/bin/sleep", "ended before its script did"),
        ("/nonexistent", "/nonexistent cannot be started: No such file"),
    ];
    for (program, expected) in cases {
        let machine = (Kernel { binary: PathBuf::from(program), ..kernel.clone() }, root.clone());
        let message = failure(guest(&machine, vec![constant(1, 1)], 1, Script::default()));
        assert!(message.contains(expected), "{program}: {message}");
    }
}

fn a_root_without_a_first_program_is_a_panic_of_the_kernel() {
    let (kernel, root) = machine();
    let directory = common::directory("empty-root");
    std::os::unix::fs::symlink(root.directory().join("busybox"), directory.join("busybox"))
        .unwrap();
    let empty = Root::make(&directory.join("root"), &[]).unwrap();
    std::fs::remove_file(empty.directory().join("init")).unwrap();
    let machine = (kernel.clone(), empty);
    let message = failure(guest(&machine, Vec::new(), 1, Script::default()));
    assert!(message.contains("kernel panicked: Requested init /init failed"), "{message}");
}

fn a_guest_that_does_not_end_as_it_should_is_no_result() {
    let machine = machine();
    for (command, last_words) in [
        ("poweroff -f", "reboot: Power down"),
        ("halt -f", "reboot: System halted"),
        ("reboot -f", "reboot: Restarting system"),
    ] {
        let message = failure(guest(machine, vec![constant(1, 1)], 1, job(command)));
        assert!(message.starts_with("the guest ended before its script did\n"), "{message}");
        assert!(message.contains(last_words) && !message.contains("ubd"), "{message}");
    }
}

fn a_kernel_without_time_travel_is_told_from_others() {
    let (kernel, root) = machine();
    // Debian's.
    let binary = PathBuf::from("/usr/bin/linux.uml");
    let machine = (Kernel { binary, ..kernel.clone() }, root.clone());
    let message = failure(guest(&machine, vec![constant(1, 1)], 1, Script::default()));
    assert!(message.contains("built without UML_TIME_TRAVEL_SUPPORT"), "{message}");
}

fn a_setting_that_is_refused_is_named() {
    let machine = machine();
    let script =
        Script { settings: vec![Setting::queue(0, "scheduler", "cfq")], ..Script::default() };
    let message = failure(guest(machine, vec![constant(1, 1)], 1, script));
    assert!(message.contains("writing cfq to /sys/block/vda/queue/scheduler"), "{message}");
    assert!(message.contains("Invalid argument"), "{message}");
    let group = Cgroup { path: "a/b".into(), settings: vec![Setting::new("io.no", "1")] };
    let script = Script { cgroups: vec![group], ..Script::default() };
    let message = failure(guest(machine, vec![constant(1, 1)], 1, script));
    assert!(message.contains("writing 1 to /sys/fs/cgroup/a/b/io.no"), "{message}");
}

fn a_guest_that_mounts_the_hosts_files_finds_them_closed() {
    if !linux::fence::is_there() {
        return;
    }
    let host = common::directory("not-the-guests");
    std::fs::write(host.join("secret"), "of the caller").unwrap();
    let shown = format!("mount -t hostfs none /run/h -o {}", host.display());
    let command = format!("mkdir -p /run/h; {shown}; cat /run/h/secret; echo >/run/h/ESCAPED");
    let finished = guest(machine(), Vec::new(), 1, job(&command)).run().unwrap();
    let said = String::from_utf8_lossy(&finished.jobs[0].output);
    assert!(!said.contains("of the caller") && finished.jobs[0].exit != 0, "{:?}", finished.jobs);
    assert!(!host.join("ESCAPED").exists());
    // What is its own it has.
    let finished = guest(machine(), Vec::new(), 1, job("ls /busybox")).run().unwrap();
    assert_eq!(finished.jobs[0].exit, 0, "{:?}", finished.jobs);
}

fn a_program_that_prints_more_than_there_is_memory_is_told_so() {
    let prints = guest(machine(), Vec::new(), 1, job("dd if=/dev/zero bs=1M count=200"));
    let message = failure(Guest { memory: Bytes(128 << 20), ..prints });
    assert!(message.contains("that it printed fill the memory; accepted: less"), "{message}");
}

fn a_set_up_command_that_fails_ends_the_run_with_its_output() {
    let machine = machine();
    let script = Script { setup: vec!["true".into(), "ls /nowhere".into()], ..Script::default() };
    let message = failure(guest(machine, Vec::new(), 1, script));
    assert!(message.contains("ls /nowhere: ") && message.contains("No such file"), "{message}");
}

fn a_guest_that_makes_no_sense_is_refused() {
    let machine = machine();
    let refused = |guest: Guest<'_>, expected: &str| match guest.run() {
        Err(error @ RunError::Bad { .. }) => assert_eq!(error.to_string(), expected),
        other => panic!("{other:?}"),
    };
    let plain = |depth| guest(machine, vec![constant(1, 31)], depth, Script::default());
    refused(plain(0), "a queue depth of 0; accepted: 1 to 31, which these disks can take");
    refused(plain(32), "a queue depth of 32; accepted: 1 to 31, which these disks can take");
    let small = Guest { memory: Bytes(1 << 20), ..plain(1) };
    refused(small, "1048576 bytes of memory; accepted: 64 MiB to 1 TiB");
    match (Guest { core: Some(100_000), ..plain(1) }).run() {
        Err(RunError::Bad { problem, .. }) => assert_eq!(problem, "core 100000 of the host"),
        other => panic!("{other:?}"),
    }
    let mut astray = plain(1);
    astray.script = job("true");
    astray.script.jobs[0].cgroup = Some("db".into());
    refused(astray, "job job in cgroup db; accepted: a cgroup of the script");
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO] => a_guest_that_spins_is_killed,
            a_guest_that_sleeps_for_ever_meets_its_limit,
            a_program_that_is_no_kernel_is_refused,
            a_root_without_a_first_program_is_a_panic_of_the_kernel,
            a_guest_that_does_not_end_as_it_should_is_no_result,
            a_setting_that_is_refused_is_named,
            a_guest_that_mounts_the_hosts_files_finds_them_closed,
            a_program_that_prints_more_than_there_is_memory_is_told_so,
            a_set_up_command_that_fails_ends_the_run_with_its_output,
            a_guest_that_makes_no_sense_is_refused;
        [KERNEL, BUSYBOX, FIO, DEBIANS_UML] => a_kernel_without_time_travel_is_told_from_others,
    ])
}
