//! Bad input: one message with place, cause and what is accepted; exit status 2; nothing written.

use crate::directory::Directory;

const DD: [&str; 5] = ["--", "dd", "if=/dev/zero", "of=/dev/sda", "count=1"];

/// Runs `compare` with outputs wanted, which must be refused before any is written; the message.
fn refusal(directory: &Directory, arguments: &[&str]) -> String {
    let before = directory.names();
    let outputs = ["--json=out.json", "--fio-json", "fio", "--record", "recorded"];
    let all = [&["compare"][..], &outputs, arguments].concat();
    let output = directory.run(&all);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed something");
    assert_eq!(directory.names(), before, "{arguments:?} wrote something");
    assert_eq!(message.lines().count(), 1, "{arguments:?}: one message: {message}");
    assert!(message.contains("accepted: ") || message.contains("there are "), "{message}");
    message.trim_end().to_string()
}

fn refused_dd(directory: &Directory, options: &[&str]) -> String {
    refusal(directory, &[options, &DD].concat())
}

const EXPERIMENT: &str = "[[job]]\nname = \"dd\"\nrun = \"dd if=/dev/zero of=/dev/sda count=1\"\n";

fn an_unknown_scheduler_is_answered_with_the_nearest() {
    let directory = Directory::new("scheduler");
    assert_eq!(
        refused_dd(&directory, &["-s", "deadlin"]),
        "paternoster: --scheduler: unknown scheduler \"deadlin\"; nearest: \"deadline\"; \
         accepted: noop, deadline, anticipatory, cfq, none, mq-deadline, kyber, bfq, all"
    );
}

fn an_unknown_kernel_is_answered_with_those_there_are() {
    let directory = Directory::new("kernel");
    let message = refused_dd(&directory, &["--kernel", "6.81"]);
    assert!(
        message.contains("--kernel: unknown kernel \"6.81\"; nearest: \"6.1\", \"6.18\""),
        "{message}"
    );
    let message = refused_dd(&directory, &["-s", "noop@6.18"]);
    assert!(message.contains("kernel 6.18 does not have noop; accepted: 2.6.28, "), "{message}");
}

/// Runs a verb of `linux` on an empty cache; the message.
fn refused_by_linux(directory: &Directory, arguments: &[&str]) -> String {
    let output = directory.run_with(&[("PATERNOSTER_CACHE", "cache")], arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed something");
    let left = std::fs::read_dir(directory.path().join("cache"));
    let left = left.map_or(0, |all| {
        let names = all.map(|it| it.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with("lock-")).count()
    });
    assert_eq!(left, 0, "{arguments:?} left something");
    message.trim_end().to_string()
}

fn kernels_that_cannot_be_built_or_removed_are_refused() {
    let directory = Directory::new("kernels");
    std::fs::create_dir_all(directory.path().join("tree")).unwrap();
    let makefile = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n";
    std::fs::create_dir_all(directory.path().join("lame")).unwrap();
    std::fs::write(directory.path().join("lame/Makefile"), makefile).unwrap();
    std::fs::create_dir_all(directory.path().join("other/block")).unwrap();
    for (file, text) in [("Makefile", makefile), ("Kconfig", "mainmenu \"x\"\n")] {
        std::fs::write(directory.path().join("other").join(file), text).unwrap();
    }
    let cases: [(&[&str], &str); 10] = [
        (&["build", "--source", "other"], "is not the source tree of a kernel: it has no arch/um"),
        (&["build", "--source", "none"], "none is not the source tree of a kernel: No such file"),
        (&["build", "--source", "tree"], "is not the source tree of a kernel"),
        (&["build", "--source", "lame"], "is not the source tree of a kernel"),
        (&["build", "--source", "tree", "--as", "7x"], "--as 7x: accepted: a word that begins"),
        (&["build", "--config", "XFS_FS"], "--config XFS_FS: accepted: SYMBOL=VALUE"),
        (&["build", "--hz", "300"], "--hz: 300; accepted: 100, 250, 1000"),
        (&["remove", "mine"], "there is no kernel mine; accepted: none: nothing has been built"),
        (&["run", "--kernel", "mine", "--", "true"], "there is no kernel mine with HZ=250"),
        (&["build", "--source", "tree", "--suite", "sid"], "cannot be used with"),
    ];
    for (arguments, expected) in cases {
        let message = refused_by_linux(&directory, &[&["linux"], arguments].concat());
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

fn an_unknown_model_is_answered_with_those_there_are() {
    let directory = Directory::new("model");
    let output = directory.run(&[&["compare", "--model", "hdd-7200-sat"][..], &DD].concat());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let expected = "unknown model \"hdd-7200-sat\"; nearest: \"hdd-7200-sata\"";
    assert!(message.contains(expected), "{message}");
}

fn an_unknown_host_is_refused() {
    let directory = Directory::new("host");
    let output = directory.run(&[&["compare", "--host", "vm-2091"][..], &DD].concat());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("nearest: \"vm-2019\""), "{message}");
}

fn a_tunable_out_of_range_names_range_and_unit() {
    let directory = Directory::new("tunable");
    assert_eq!(
        refused_dd(&directory, &["-s", "mq-deadline:read_expire=-1"]),
        "paternoster: --scheduler: read_expire=-1 of mq-deadline is out of range; \
         accepted: 0 to 2147483647 ms"
    );
    let message = refused_dd(&directory, &["-s", "mq-deadline:fifo_bacth=1"]);
    assert!(message.contains("has no \"fifo_bacth\"; nearest: \"fifo_batch\""), "{message}");
    let message = refused_dd(&directory, &["-s", "none", "--set", "nr_requests=64"]);
    assert!(message.contains("--set: nr_requests=64 of none on hdd-7200-sata"), "{message}");
    assert!(message.ends_with("accepted: 1 to 32 requests"), "{message}");
    let message = refused_dd(&directory, &["--set", "rq_affinity=0"]);
    assert!(message.contains("rq_affinity is not simulated; accepted: --world linux"), "{message}");
    let message = refused_dd(&directory, &["-s", "cfq@2.6.32", "--set", "wbt_lat_usec=0"]);
    assert!(message.contains("cfq on 2.6.32 has no \"wbt_lat_usec\"; accepted: "), "{message}");
    let limit = ["--job", "a:cgroup=a,io.latency=target=9", "dd if=/dev/sda of=/dev/null count=1"];
    let message = refusal(&directory, &limit);
    assert!(message.contains("io.latency is not simulated; accepted: --world linux"), "{message}");
    let message = refusal(&directory, &[&["--world", "sim,linux"], &limit[..]].concat());
    assert!(message.contains("io.latency is not simulated; accepted: --world linux"), "{message}");
    let message = refused_dd(&directory, &["--set", "io.cost.qos=enable=1"]);
    assert!(message.contains("io.cost.qos is not simulated; accepted: --world linux"), "{message}");
}

fn limits_of_groups_that_are_none_are_refused() {
    let directory = Directory::new("limits");
    let limited = |limit: &str, more: &[&str]| {
        let set = ["--cgroup", "db", "--set", limit];
        refused_dd(&directory, &[&set[..], more].concat())
    };
    let message = limited("io.max=riosp=9", &[]);
    assert!(message.contains("\"riosp\" is no key of io.max; nearest: \"riops\""), "{message}");
    assert!(message.contains("accepted: rbps=, wbps=, riops= and wiops="), "{message}");
    let message = limited("io.max=wbps=1M", &[]);
    let expected = "paternoster: --set: wbps=1M is no limit; accepted: 1 to ";
    assert!(message.starts_with(expected) && message.ends_with(", or max"), "{message}");
    let message = limited("io.max=riops=0", &["--world", "sim,linux"]);
    assert!(
        message.contains("riops=0 is no limit; accepted: 1 to 4294967294, or max"),
        "{message}"
    );
    let message = limited("io.max=riops=9", &["--kernel", "2.6.32", "-s", "cfq"]);
    assert!(message.ends_with("io.max of /db with kernel 2.6.32; accepted: kernels from 4.10 on"));
    let message = limited("/io.max=riops=9", &["--kernel", "6.12", "-s", "none"]);
    assert!(message.contains("io.max of the root; accepted: a group below it"), "{message}");
    let message = limited("blkio.throttle.read_iops_device=9", &[]);
    assert!(message.contains("is not simulated; accepted: --world linux"), "{message}");
    assert!(message.contains("io.max"), "{message}");
}

fn where_nothing_can_be_written_nothing_is_run() {
    let directory = Directory::new("outputs");
    directory.write("file", "kept");
    std::os::unix::fs::symlink("nowhere", directory.path().join("link")).unwrap();
    let refused = |verb: &str, option: &str| {
        let before = directory.names();
        let output = directory.run(&[&[verb, option][..], &DD].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}: {message}");
        assert!(output.stdout.is_empty(), "{option} printed something");
        assert_eq!(directory.names(), before, "{option} wrote something");
        let name = option.split('=').next().unwrap();
        assert!(message.starts_with(&format!("paternoster: {name}: ")), "{option}: {message}");
        assert_eq!((message.lines().count(), message.matches("; accepted: ").count()), (1, 1));
    };
    for option in ["json", "csv", "html", "perfetto"] {
        for place in ["none/x", "file/x", ".", "link", "/proc/x"] {
            refused("compare", &format!("--{option}={place}"));
        }
    }
    for option in ["record", "fio-json"] {
        for place in ["file", "file/x/y", "link", "/proc/x"] {
            refused("compare", &format!("--{option}={place}"));
        }
    }
    // Several results would be in the directory `file`; one is a file of its own.
    for verb in ["compare", "explain"] {
        for place in ["none/x.csv", "file.csv", "/proc/x.csv", "x.json"] {
            refused(verb, &format!("--events={place}"));
        }
    }
    refused("explain", "--html=none/x");
    for option in ["--record=file/x", "--log=none/x"] {
        let message = refused_by_linux(&directory, &["linux", "run", option, "--", "true"]);
        let name = option.split('=').next().unwrap();
        assert!(message.starts_with(&format!("paternoster: {name}: ")), "{message}");
    }
    assert_eq!(std::fs::read_to_string(directory.path().join("file")).unwrap(), "kept");
}

fn malformed_toml_is_refused_with_its_line() {
    let directory = Directory::new("toml");
    directory.write("x.toml", "title = \"x\"\nmodel = \n");
    let message = refusal(&directory, &["x.toml"]);
    assert!(message.starts_with("paternoster: x.toml:2: not TOML: "), "{message}");
    directory.write("y.toml", format!("shcedulers = [\"none\"]\n{EXPERIMENT}"));
    let message = refusal(&directory, &["y.toml"]);
    assert!(message.contains("y.toml:1: an experiment has no key \"shcedulers\""), "{message}");
    assert!(message.contains("nearest: \"schedulers\""), "{message}");
    directory.write("z.toml", EXPERIMENT.replace("of=/dev/sda", "oflags=direct"));
    let message = {
        let output = directory.run(&["compare", "z.toml"]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(message.starts_with("paternoster: z.toml:3: dd: "), "{message}");
}

fn a_model_with_a_missing_parameter_is_refused_with_file_and_name() {
    let directory = Directory::new("parameter");
    let model = include_str!("../../../../models/null.toml");
    let lines: Vec<&str> = model.lines().filter(|line| !line.starts_with("queue_depth")).collect();
    directory.write("broken.toml", lines.join("\n"));
    let output = directory.run(&[&["compare", "--model", "broken.toml"][..], &DD].concat());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("broken.toml:"), "{message}");
    assert!(message.contains("queue_depth"), "{message}");
    assert_eq!(directory.names(), ["broken.toml"]);
}

fn a_command_that_is_not_modelled_is_refused_by_name() {
    let directory = Directory::new("command");
    let message = refusal(&directory, &["--", "rsync", "-a", "x", "y"]);
    assert!(message.contains("rsync: this program is not modelled"), "{message}");
    let on_a_disk = refusal(&directory, &["--", "pgioperf"]);
    assert!(on_a_disk.contains("pgioperf: no file system; accepted: fs = "), "{on_a_disk}");
    let sizes = refusal(&directory, &["--fs=ext4", "--", "pgioperf", "--size=9x"]);
    assert!(sizes.contains("--size \"9x\"; accepted: 384k to 4t, in bytes"), "{sizes}");
    assert!(message.contains("dd"), "{message}");
}

fn a_damaged_trace_is_refused_with_the_place_of_the_damage() {
    let directory = Directory::new("trace");
    directory.write("cut.spc", "0,303567,3584,w,0.000000\n0,55590,3072,w,zero\n");
    let message = refusal(&directory, &["cut.spc"]);
    assert!(message.starts_with("paternoster: cut.spc:2: "), "{message}");
    // The first record of a blktrace recording, cut short and continued with rubbish.
    let mut bytes = vec![0x07, 0x74, 0x61, 0x65];
    bytes.extend([0x55; 60]);
    directory.write("sda.blktrace.0", &bytes);
    let message = refusal(&directory, &["sda.blktrace.0"]);
    assert!(message.contains("sda.blktrace.0"), "{message}");
    let message = refusal(&directory, &["nowhere.blktrace"]);
    assert!(message.contains("nowhere.blktrace: no such file"), "{message}");
}

fn a_job_file_with_a_typo_is_refused_with_option_and_line() {
    let directory = Directory::new("jobfile");
    directory.write("x.fio", "[global]\nfilename=/dev/sda\n[a]\nrw=randread\niodpeth=4\n");
    let output = directory.run(&["compare", "x.fio"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("x.fio:5: ") && message.contains("iodpeth"), "{message}");
    assert!(message.contains("iodepth"), "{message}");
    assert_eq!(directory.names(), ["x.fio"]);
}

fn what_is_planned_says_so() {
    let directory = Directory::new("later");
    for options in [&["--world", "live"][..], &["--dev", "/dev/sdb"]] {
        let message = refused_dd(&directory, options);
        assert!(message.contains("not available yet"), "{message}");
    }
    for verb in ["emulate", "record", "whatif", "doctor", "calibrate", "apply"] {
        let output = directory.run(&[verb, "--anything", "x"]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{verb}: {message}");
        assert!(message.contains("not available yet"), "{message}");
    }
}

fn more_than_one_disk_is_refused_by_name() {
    let directory = Directory::new("disks");
    let fio = |disk: &str| format!("fio --name=x --filename={disk} --rw=read --size=1m");
    let message = refusal(&directory, &["--job", "a", &fio("/dev/sda1"), "--", &fio("/dev/sdb")]);
    assert!(message.contains("--: several disks: /dev/sda, /dev/sdb; accepted: "), "{message}");
    let message = refusal(&directory, &["--", &fio("/dev/md0")]);
    assert!(message.contains("/dev/md0 is an array of disks, not modelled"), "{message}");
    let message = refusal(&directory, &["--", "dd", "if=/dev/urandom", "of=/dev/sda"]);
    assert!(message.contains("/dev/urandom is a source of random bytes"), "{message}");
}

fn what_is_neither_file_nor_experiment_is_refused_with_what_is_near() {
    let directory = Directory::new("neither");
    let message = refusal(&directory, &["journal-pingpon"]);
    assert!(message.contains("no such file or experiment; nearest: \"journal-"), "{message}");
    let message = refusal(&directory, &["-"]);
    assert!(message.contains("compare -: the standard input is not read"), "{message}");
    let message = refusal(&directory, &["--", "dd", "if=/dev/zero", "of=test.img"]);
    assert!(message.contains("where relative names begin"), "{message}");
}

fn bad_usage_is_refused() {
    let directory = Directory::new("usage");
    let message = refusal(&directory, &[]);
    assert!(message.contains("nothing to run"), "{message}");
    let message = refused_dd(&directory, &["--vary", "fifo_bacth=1,2"]);
    assert!(
        message.contains("\"fifo_bacth\" changes nothing; nearest: \"fifo_batch\""),
        "{message}"
    );
    let message = refusal(&directory, &["--", "dd", "of=/dev/sda", "count={n}"]);
    assert!(message.contains("no axis \"n\""), "{message}");
    let message = refused_dd(&directory, &["--depth", "3"]);
    assert!(message.contains("the replay is not closed"), "{message}");
    let message = refusal(&directory, &["--job", "a:wieght=1", "dd of=/dev/sda count=1"]);
    assert!(message.contains("nearest: \"weight\""), "{message}");
    let message = refused_dd(&directory, &["--seed", "18446744073709551615"]);
    assert!(message.starts_with("paternoster: --seed: "), "{message}");
    let message = refused_dd(&directory, &["--metric", "bulk.read_p99"]);
    assert!(message.starts_with("paternoster: --metric: "), "{message}");
    let message = refused_dd(&directory, &["--metric", "read_p99"]);
    let said = "paternoster: --metric: no run has dd.read_p99; accepted: dd.write_p99, ";
    assert!(message.starts_with(said) && !message.contains("sync"), "{message}");
    let message = refused_dd(&directory, &["--csv=out.json/x"]);
    assert!(message.starts_with("paternoster: --csv: out.json/x: "), "{message}");
    let message = refused_dd(&directory, &["--runs", "10000000000000"]);
    assert!(message.contains("; accepted: 1 to 100000"), "{message}");
    assert_eq!(directory.run(&["compare", "--modle", "x"]).status.code(), Some(2));
    assert_eq!(directory.run(&["list", "schdulers"]).status.code(), Some(2));
    assert_eq!(directory.run(&[]).status.code(), Some(2));
}

fn a_load_without_end_leaves_nothing_behind() {
    let directory = Directory::new("endless");
    let message = {
        let endless = ["--calls", "all", "--host", "free"];
        let options =
            [&["compare"], &endless[..], &["--record", "rec", "--json=out.json"]].concat();
        let output =
            directory.run(&[&options[..], &["--", "dd", "if=/dev/zero", "of=/dev/null"]].concat());
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(message.contains("without end"), "{message}");
    assert!(directory.names().is_empty(), "{:?}", directory.names());
}

/// The tests of this file.
pub fn tests() -> Vec<testing::Test> {
    testing::tests![
        [] => an_unknown_scheduler_is_answered_with_the_nearest,
            an_unknown_kernel_is_answered_with_those_there_are,
            kernels_that_cannot_be_built_or_removed_are_refused,
            an_unknown_model_is_answered_with_those_there_are,
            an_unknown_host_is_refused,
            a_tunable_out_of_range_names_range_and_unit,
            limits_of_groups_that_are_none_are_refused,
            where_nothing_can_be_written_nothing_is_run,
            malformed_toml_is_refused_with_its_line,
            a_model_with_a_missing_parameter_is_refused_with_file_and_name,
            a_command_that_is_not_modelled_is_refused_by_name,
            a_damaged_trace_is_refused_with_the_place_of_the_damage,
            a_job_file_with_a_typo_is_refused_with_option_and_line,
            what_is_planned_says_so,
            more_than_one_disk_is_refused_by_name,
            what_is_neither_file_nor_experiment_is_refused_with_what_is_near,
            bad_usage_is_refused,
            a_load_without_end_leaves_nothing_behind,
    ]
}
