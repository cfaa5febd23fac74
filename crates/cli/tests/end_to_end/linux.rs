//! `paternoster linux`, and what the program does where there is no kernel.

use crate::directory::{Directory, workspace};
use std::process::{Command, Output};
use testing::Need;
use testing::needs::{BLKTRACE, BUSYBOX, FIO, MKFS_EXT4};

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim_end().to_string()
}

/// The kernel of the user's cache.
pub const KERNEL: Need = testing::needs::kernel(linux::has_kernel);
/// What a kernel is built with.
const BUILD_TOOLS: Need = Need {
    name: "the tools that build a kernel",
    how: "apt-get install make gcc binutils flex bison bc tar xz-utils, on x86-64",
    is_there: || cfg!(target_arch = "x86_64") && linux::build::missing_tools().is_empty(),
};

/// A source tree that a test may copy and build, which takes some minutes.
const TREE: Need = Need {
    name: "the source tree of a kernel",
    how: "PATERNOSTER_TREE names one; the test copies and builds it",
    is_there: || std::env::var_os("PATERNOSTER_TREE").is_some(),
};

/// Runs a command in a guest.
fn run(directory: &Directory, options: &[&str], command: &[&str]) -> Output {
    directory.run(&[&["linux", "run"], options, &["--"], command].concat())
}

/// A cache without a kernel, and nothing else changed.
const EMPTY_CACHE: [(&str, &str); 1] = [("PATERNOSTER_CACHE", "/nonexistent/cache")];

fn without_a_kernel_it_says_how_to_get_one_and_the_simulator_goes_on() {
    let directory = Directory::new("no-kernel");
    let dd = ["--", "dd", "if=/dev/zero", "of=/dev/sda", "count=1"];
    let compare = ["compare", "--json=out.json", "-s", "none", "--runs", "1", "--world"];
    let both = [&compare[..], &["sim,linux"], &dd].concat();
    let output = directory.run_with(&EMPTY_CACHE, &both);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty() && directory.names().is_empty(), "nothing is done by half");
    if cfg!(target_arch = "x86_64") {
        assert_eq!(
            message(&output),
            "paternoster: world linux: there is no kernel 6.12 with HZ=250 in /nonexistent/cache; \
             accepted: one that `paternoster linux build` has built, once, in some minutes, or \
             --world sim"
        );
    }
    let other = [&compare[..], &["linux", "--vary", "hz=1000"], &dd].concat();
    let output = directory.run_with(&EMPTY_CACHE, &other);
    assert_eq!(output.status.code(), Some(2));
    if cfg!(target_arch = "x86_64") {
        let message = message(&output);
        assert!(message.contains("there is no kernel 6.12 with HZ=1000"), "{message}");
        assert!(message.contains("`paternoster linux build --hz 1000`"), "{message}");
    }
    let output = directory.run_with(&EMPTY_CACHE, &[&compare[..], &["sim"], &dd].concat());
    assert!(output.status.success(), "{}", message(&output));
    let run = ["linux", "run", "--hz", "100", "--kernel", "6.1", "--", "true"];
    let output = directory.run_with(&EMPTY_CACHE, &run);
    assert_eq!(output.status.code(), Some(2));
    if cfg!(target_arch = "x86_64") {
        assert!(message(&output).contains("`paternoster linux build --kernel 6.1 --hz 100`"));
    }
}

fn what_a_build_lacks_is_named_with_its_package() {
    let directory = Directory::new("build");
    let refused = |variables: &[(&str, &str)], options: &[&str], expected: &str| {
        let output = directory.run_with(variables, &[&["linux", "build"], options].concat());
        let message = message(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
    };
    refused(&[], &["--hz", "60"], "--hz: 60; accepted: 100, 250, 1000");
    let cache = [("PATERNOSTER_CACHE", directory.path().to_str().unwrap())];
    refused(&cache, &["--source", "/nonexistent"], "/nonexistent is not the source tree");
    refused(&cache, &["--source", "/"], "/ is not the source tree");
    // It is not there, and cannot be made, even by root.
    let wrong = [("PATERNOSTER_CACHE", "/proc/cache")];
    directory.write("Makefile", "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\nEXTRAVERSION =\n");
    refused(&wrong, &["--source", "."], "/proc/cache, where kernels are kept, cannot be used: ");
    assert_eq!(directory.names(), ["Makefile"]);
}

fn output_and_exit_status_are_those_of_the_command() {
    let directory = Directory::new("linux-run");
    let line = "cat there; dd if=/dev/sda of=/dev/null bs=4k count=3; exit 7";
    directory.write("there", "a file of the directory\n");
    let output = run(&directory, &["--log", "log"], &[line]);
    assert_eq!(output.status.code(), Some(7), "{}", message(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a file of the directory\n");
    assert!(message(&output).contains("3+0 records in"), "{}", message(&output));
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(log.lines().any(|line| line.contains(" Read 0+")), "{log}");
    let words = run(&directory, &[], &["echo", "a  b", "$HOME"]);
    assert_eq!(String::from_utf8_lossy(&words.stdout), "a  b $HOME\n");
}

fn fio_measures_time_and_any_name_is_the_disk() {
    let directory = Directory::new("linux-fio");
    let job = "[global]\nfilename=/dev/nvme0n1\ntime_based\nruntime=1\ndirect=1\n[a]\nrw=read\n";
    directory.write("jobs.fio", job);
    let output = run(&directory, &["--model", "nvme-980pro"], &["fio", "--minimal", "jobs.fio"]);
    assert!(output.status.success(), "{}", message(&output));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("3;fio-"));
}

fn what_is_written_beyond_the_memory_for_it_goes_to_a_file() {
    let directory = Directory::new("linux-data");
    // Pages of zeros are not kept.
    let line = "tr '\\0' x </dev/zero | dd of=/dev/sda bs=64k count=64 iflag=fullblock \
                oflag=direct && dd if=/dev/sda bs=64k count=64 iflag=direct | tr -d x | wc -c";
    let with = |variables: &[(&str, &str)]| {
        let arguments = ["linux", "run", "--data", "1 MiB", "--", line];
        directory.run_with(variables, &arguments)
    };
    let output = with(&[]);
    assert!(output.status.success(), "{}", message(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    let output = with(&[("TMPDIR", "/nonexistent")]);
    let message = message(&output);
    assert!(message.contains("TMPDIR") || message.contains("/nonexistent"), "{message}");
    assert!(!output.status.success());
}

fn schedulers_of_the_kernel_alone_are_compared_there() {
    let directory = Directory::new("linux-offered");
    let compare = ["compare", "--json", "--runs", "1", "--world"];
    let job = ["--job", "a:cgroup=x,weight=300", "dd if=/dev/sda of=/dev/null count=9"];
    let linux = [&compare[..], &["linux", "-s", "bfq:slice_idle=1,kyber"], &job].concat();
    let document: serde_json::Value = serde_json::from_str(&directory.print(&linux)).unwrap();
    assert_eq!(document["results"][0]["label"], "bfq@6.12:slice_idle=1");
    assert_eq!(document["results"][1]["label"], "kyber@6.12");
    let wrong = [&compare[..], &["linux", "-s", "bfq:slice=1"], &job].concat();
    let output = directory.run(&wrong);
    assert!(message(&output).contains("bfq on 6.12 has no \"slice\""), "{}", message(&output));
}

/// Some reads of the disk, one after the other.
const READS: &str = "dd if=/dev/sda of=/dev/null bs=4k count=50 iflag=direct";

fn settings_reach_the_kernel() {
    let directory = Directory::new("linux-settings");
    let compare = ["compare", "--world", "linux", "--runs", "1", "-s", "none", "--csv"];
    let job = ["--job", "a:cgroup=my db,io.max=8:0 riops={n}", READS, "--vary", "n=50,100"];
    let set = ["--set", "wbt_lat_usec=0,io.cost.qos=enable=1 rpct=95.00"];
    let table = directory.print(&[&compare[..], &set, &job].concat());
    let elapsed = |n: &str| -> f64 {
        let is_it = |line: &&str| line.contains(&format!(",{n},a.elapsed,"));
        let line = table.lines().find(is_it).unwrap_or_else(|| panic!("{n}: {table}"));
        line.split(',').find_map(|it| it.parse::<f64>().ok().filter(|it| *it > 1e8)).unwrap()
    };
    assert!((1.8..2.6).contains(&(elapsed("50") / elapsed("100"))), "{table}");
    let group =
        "schedulers = [\"none\"]\nseeds = 1\n[[cgroup]]\npath = \"db\"\nio.max = \"riops={n}\"\n";
    let job = format!(
        "[[job]]\nname = \"a\"\ncgroup = \"db\"\nrun = \"{READS}\"\n[axes]\nn = [50, \"x\"]\n"
    );
    directory.write("x.toml", format!("{group}{job}"));
    let before = directory.names();
    let output = directory.run(&["compare", "--world", "linux", "--json=out.json", "x.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        message(&output),
        "paternoster: x.toml:5: writing \"254:0 riops=x\" to /sys/fs/cgroup/db/io.max: Invalid \
         argument; accepted: what kernel 6.12 takes there"
    );
    assert_eq!(directory.names(), before);
}

fn what_the_kernel_does_not_have_is_told_with_what_it_has() {
    let directory = Directory::new("linux-no-setting");
    let refused = |options: &[&str], expected: &str| {
        let compare = ["compare", "--world", "linux", "--runs", "1", "-s", "mq-deadline"];
        let output = directory.run(&[&compare[..], options].concat());
        let message = message(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.lines().count() == 1 && message.contains(expected), "{message}");
    };
    let job = |head| ["--job", head, READS];
    refused(&job("a:cgroup=a,io.mxa=riops=1"), "io.mxa; nearest: \"io.max\"; accepted: io.");
    refused(&job("a:io.max=riops=1"), "io.max of job a, which is in no group; accepted: cgroup=");
    refused(&job("a:cgroup=a,io.cost.qos=enable=1"), "which alone has it: --set io.cost.qos=");
    let plain = ["--cgroup", "a/b", "--", "dd", "if=/dev/sda", "of=/dev/null", "count=1"];
    let set = |text| [&["--set", text][..], &plain].concat();
    refused(&set("rq_afinity=1"), "6.12 has no \"rq_afinity\"; nearest: \"rq_affinity\"");
    refused(&set("rq_affinity=x"), "writing \"x\" to /sys/block/vda/queue/rq_affinity: Invalid");
    refused(&set("scheduler=bfq"), "scheduler as a setting; accepted: --scheduler");
    refused(&set("c/io.max=riops=1"), "no job is in /c or below it; accepted: a/b/io.max");
    let both = [&job("a:cgroup=a,io.max=riops=1")[..], &job("b:cgroup=b,io.max=riops=2")].concat();
    refused(
        &[&["--set", "io.max=riops=9"][..], &both].concat(),
        "io.max of which group; accepted: a/",
    );
    refused(
        &[&["--set", "a/io.max=riops=9"][..], &both].concat(),
        "io.max=riops=9 of /a, which has",
    );
    let nested = [&job("a:cgroup=a")[..], &job("b:cgroup=a/b")].concat();
    refused(&nested, "job a is in /a, which has /a/b below it");
    refused(&job("a:cgroup=../a"), "control group \"../a\"; accepted: names of directories");
}

fn any_path_below_dev_is_the_disk() {
    let directory = Directory::new("linux-names");
    for name in ["vdb", "disk/by-id/ata-A_1-part2", "disk/by-path/pci-0000:00:1f.2-ata-1"] {
        let dd = format!("dd if=/dev/{name} of=/dev/null bs=4k count=10 iflag=direct");
        let output = run(&directory, &[], &[&dd]);
        assert!(output.status.success(), "{name}: {}", message(&output));
        let job = ["compare", "--world", "linux", "--runs", "1", "-s", "none", "--job", "a", &dd];
        let output = directory.run(&job);
        assert!(output.status.success(), "{name}: {}", message(&output));
    }
}

fn fio_has_the_clock_of_the_guest_however_it_is_called() {
    let directory = Directory::new("linux-clock");
    let line = "env -i fio --name=x --filename=/dev/sda --rw=randread --bs=4k --direct=1 \
                --runtime=1 --time_based --minimal";
    let output = run(&directory, &[], &[line]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate: u32 = text.split(';').nth(7).and_then(|it| it.parse().ok()).unwrap_or_default();
    assert!((50..150).contains(&rate), "a disk of 7200 rpm does {rate} reads a second: {text}");
}

fn a_load_without_end_is_ended_and_sums_up() {
    let directory = Directory::new("linux-endless");
    let dd = "dd if=/dev/sda of=/dev/null bs=4k iflag=direct";
    let fio = "fio --name=a --filename=/dev/sda --rw=randread --bs=4k --direct=1";
    for line in [dd, fio] {
        let asked = ["compare", "--world", "linux", "--model", "ssd-sata-m4", "-s", "none"];
        let limits = ["--runs", "1", "--calls", "300", "--job", "a", line];
        let output = directory.run(&[&asked[..], &limits[..]].concat());
        assert!(output.status.success(), "{}", message(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("ended after 300 commands of the disk"), "{text}");
        let row = text.lines().find(|it| it.starts_with("none ")).expect("a row of the scheduler");
        let rates = row.split_whitespace().filter_map(|it| it.parse::<f64>().ok());
        assert!(rates.clone().any(|rate| rate > 1.0), "it says what it has read: {row}");
    }
}

/// What ends a load without end waits for a read of another disk, and so takes its only request.
fn a_disk_with_one_request_ends_too() {
    let directory = Directory::new("linux-one-request");
    let text = "title = \"t\"\nmodel = \"null\"\nqueue_depth = 1\nschedulers = [\"none\"]\n\
        [[job]]\nname = \"a\"\nrun = \"dd if=/dev/sda of=/dev/null bs=4k count=9 iflag=direct\"\n";
    std::fs::write(directory.path().join("one.toml"), text).unwrap();
    for calls in ["5", "500"] {
        let output = directory.run(&["compare", "--world", "linux", "--calls", calls, "one.toml"]);
        assert!(output.status.success(), "{}", message(&output));
    }
}

fn inode_tables_that_ext4_initialises_beside_a_command_are_told_of() {
    let directory = Directory::new("linux-lazy");
    let noted = |options: &str| {
        let line =
            format!("mkfs.ext4 -q {options} /dev/sda 600m && mount /dev/sda /mnt && sleep 4");
        let output = run(&directory, &[], &[&line]);
        assert!(output.status.success(), "{}", message(&output));
        message(&output).contains("ext4lazyinit initialised")
    };
    assert!(noted(""));
    assert!(!noted("-E lazy_itable_init=0,lazy_journal_init=0"));
}

fn a_guest_that_cannot_be_had_is_refused() {
    let directory = Directory::new("linux-refused");
    let cases: [(&[&str], &str); 7] = [
        (
            &["-s", "cfq"],
            "writing cfq to /sys/block/vda/queue/scheduler: Invalid argument; it says: ",
        ),
        (
            &["-s", "bfq:slice=1"],
            "writing 1 to /sys/block/vda/queue/iosched/slice: no such file; there",
        ),
        (&["-s", "bfq:slice"], "--scheduler: \"slice\"; accepted: NAME=VALUE"),
        (&["--set", "nr_requests"], "--set: \"nr_requests\"; accepted: NAME=VALUE"),
        (&["--depth", "0"], "a queue depth of 0; accepted: 1 to 32"),
        (&["--model", "fnord"], "unknown model \"fnord\""),
        (&["--bring", "/nonexistent"], "looking for /nonexistent: No such file"),
    ];
    for (options, expected) in cases {
        let output = run(&directory, options, &["true"]);
        let message = message(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{options:?}: {message}");
    }
    let output = directory.run(&["linux", "shell"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).contains("is no terminal; accepted: a terminal"));
}

fn a_recording_is_what_blkparse_reads() {
    let directory = Directory::new("linux-record");
    let dd = ["dd", "if=/dev/sda", "of=/dev/null", "bs=4k", "count=20", "iflag=direct"];
    let output = run(&directory, &["-s", "bfq", "--record", "reads"], &dd);
    assert!(output.status.success(), "{}", message(&output));
    assert_eq!(directory.names(), ["reads"]);
    let blkparse = std::process::Command::new("blkparse")
        .args(["-q", "-i", "vda"])
        .current_dir(directory.path().join("reads"))
        .output();
    let printed = blkparse.unwrap();
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let completed = printed.lines().filter(|line| line.contains("  C  RS "));
    assert_eq!(completed.count(), 20, "{printed}");
    assert!(printed.contains("  m   N bfq"), "{printed}");
}

fn a_recording_is_judged_by_conform() {
    let directory = Directory::new("linux-conform");
    let dd = ["dd", "if=/dev/sda", "of=/dev/null", "bs=4k", "count=20", "iflag=direct"];
    for how in [&["--record", "own"][..], &["--record", "disk", "--unperturbed"]] {
        let output = run(&directory, how, &dd);
        assert!(output.status.success(), "{}", message(&output));
        let output = directory.run(&["conform", how[1]]);
        assert!(output.status.success(), "{}", message(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("mq-deadline@6.12  20 "), "{text}");
    }
}

fn kernels_may_lie_below_the_current_directory() {
    let directory = Directory::new("linux-relative");
    let kernels = linux::cache::Cache::of_user().unwrap();
    std::os::unix::fs::symlink(kernels.directory(), directory.path().join("cache")).unwrap();
    let cache = [("PATERNOSTER_CACHE", "cache")];
    let output = directory.run_with(&cache, &["linux", "run", "--", "echo it runs"]);
    assert!(output.status.success(), "{}", message(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "it runs\n");
}

fn a_tree_with_one_more_elevator_is_built_listed_and_compared() {
    let directory = Directory::new("odd-elevator");
    let tree = std::env::var("PATERNOSTER_TREE").unwrap();
    let copied = Command::new("cp").args(["-a", &tree]).arg(directory.path().join("tree")).status();
    assert!(copied.unwrap().success());
    let script = workspace().join("crates/linux/tests/odd_elevator.sh");
    let made = Command::new("sh").arg(script).arg(directory.path().join("tree")).status();
    assert!(made.unwrap().success());
    let run = |arguments: &[&str]| {
        let output = directory.run_with(&[("PATERNOSTER_CACHE", "cache")], arguments);
        assert!(output.status.success(), "{arguments:?}: {}", message(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["linux", "build", "--source", "tree", "--as", "odd"]);
    let listed = run(&["linux", "kernels"]);
    assert!(listed.contains("mq-oddline"), "{listed}");
    let schedulers = "none,mq-deadline,mq-oddline:fifo_batch=1";
    let compare =
        ["compare", "--world", "linux", "--kernel", "odd", "--runs", "1", "-s", schedulers];
    let dd = ["--", "dd", "if=/dev/sda", "of=/dev/null", "bs=4k", "count=50", "iflag=direct"];
    let table = run(&[&compare[..], &dd].concat());
    assert!(table.contains("mq-oddline:fifo_batch=1"), "{table}");
}

/// The tests of this file.
pub fn tests() -> Vec<testing::Test> {
    testing::tests![
        [] => without_a_kernel_it_says_how_to_get_one_and_the_simulator_goes_on;
        [BUILD_TOOLS, BUSYBOX, TREE] => a_tree_with_one_more_elevator_is_built_listed_and_compared;
        [BUILD_TOOLS] => what_a_build_lacks_is_named_with_its_package;
        [KERNEL, BUSYBOX, FIO] => fio_measures_time_and_any_name_is_the_disk,
            fio_has_the_clock_of_the_guest_however_it_is_called,
            a_load_without_end_is_ended_and_sums_up,
            a_disk_with_one_request_ends_too;
        [KERNEL, BUSYBOX, MKFS_EXT4] =>
            inode_tables_that_ext4_initialises_beside_a_command_are_told_of;
        [KERNEL, BUSYBOX] => settings_reach_the_kernel,
            what_the_kernel_does_not_have_is_told_with_what_it_has,
            any_path_below_dev_is_the_disk,
            output_and_exit_status_are_those_of_the_command,
            what_is_written_beyond_the_memory_for_it_goes_to_a_file,
            schedulers_of_the_kernel_alone_are_compared_there,
            a_guest_that_cannot_be_had_is_refused,
            kernels_may_lie_below_the_current_directory,
            a_recording_is_judged_by_conform;
        [KERNEL, BUSYBOX, BLKTRACE] => a_recording_is_what_blkparse_reads,
    ]
}
