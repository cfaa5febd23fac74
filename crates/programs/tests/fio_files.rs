//! fio on files: what is made before a job begins, and what is not.

#[path = "../../machine/tests/common/mod.rs"]
mod common;

use block::{Action, Event, Op};
use common::setup;
use machine::Format;
use machine::{Exit, Job, Mount, Observer, run};
use programs::Surroundings;

/// Bios: what and sectors, and calls that programs were told the end of.
#[derive(Default)]
struct Seen {
    bios: Vec<(Op, u32)>,
    calls: usize,
}

impl Observer for Seen {
    fn see(&mut self, event: &Event) {
        match event.action {
            Action::Queue => self.bios.push((event.op, event.sectors.0)),
            Action::SyscallExit { .. } => self.calls += 1,
            _ => {}
        }
    }
}

const FORMATS: [Format; 2] = [Format::Ext4, Format::Xfs];

fn context(mount: &Mount) -> Surroundings<'_> {
    Surroundings {
        page_size: 4096,
        ncpus: 1,
        mb_memory: 1024,
        habits: &guest::Profile::uml().habits,
        mount: Some(mount),
        environment: &|_| None,
        read_file: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    }
}

/// Runs fio with these options on a fresh file system; the exit, what it said, and what was seen.
fn fio(format: Format, options: &str) -> (Exit, Vec<String>, Seen) {
    let mount = Mount { format, ..Mount::default() };
    let context = context(&mount);
    let line = format!("fio --name=x --directory=/mnt --size=256k --bs=64k {options}");
    let job = Job::new("fio", programs::parse_in(&line, &context).unwrap().program);
    let mut seen = Seen::default();
    let mount = Some(mount.clone());
    let outcome =
        run(machine::Setup { jobs: vec![job], mount, ..setup("6.12", "none") }, &mut seen).unwrap();
    let job = &outcome.jobs[0];
    (job.exit, job.messages.clone(), seen)
}

fn sectors(seen: &Seen, op: Op) -> u32 {
    // Metadata are read and written in blocks of eight sectors.
    seen.bios.iter().filter(|it| it.0 == op && it.1 > 64).map(|it| it.1).sum()
}

#[test]
fn a_file_that_is_read_is_written_before_which_is_no_call_of_the_job() {
    for format in FORMATS {
        let (exit, _, seen) = fio(format, "--rw=read");
        assert_eq!(exit, Exit::Status(0));
        assert_eq!((sectors(&seen, Op::Write), sectors(&seen, Op::Read)), (512, 512));
        assert_eq!(seen.calls, 4);
    }
}

#[test]
fn a_file_that_is_written_is_only_given_room() {
    for format in FORMATS {
        let (exit, _, seen) = fio(format, "--rw=write --end_fsync=1");
        assert_eq!(exit, Exit::Status(0));
        assert_eq!((sectors(&seen, Op::Write), sectors(&seen, Op::Read)), (512, 0));
        assert_eq!(seen.calls, 5);
        let (_, _, seen) = fio(format, "--rw=write --end_fsync=1 --overwrite=1");
        assert_eq!(sectors(&seen, Op::Write), 1024);
    }
}

#[test]
fn create_only_makes_files_and_nothing_else() {
    for format in FORMATS {
        let (exit, _, seen) = fio(format, "--rw=read --create_only=1");
        assert_eq!(exit, Exit::Status(0));
        assert_eq!((sectors(&seen, Op::Write), sectors(&seen, Op::Read)), (512, 0));
    }
}

#[test]
fn direct_io_by_every_engine_reaches_the_file() {
    for format in FORMATS {
        for engine in ["psync", "libaio", "io_uring", "posixaio"] {
            let options = format!("--rw=randwrite --direct=1 --ioengine={engine} --iodepth=4");
            let (exit, said, seen) = fio(format, &options);
            assert_eq!(exit, Exit::Status(0), "{engine}: {said:?}");
            assert_eq!(sectors(&seen, Op::Write), 512, "{engine}");
        }
    }
}

/// Observed on 6.12: workers wait for them, of XFS one after the other.
#[test]
fn direct_writes_that_must_be_durable_share_commits_of_ext4_and_no_log_writes_of_xfs() {
    let logged = |format, depth: u32| {
        let options = "--rw=write --direct=1 --ioengine=libaio --sync=dsync";
        let (exit, said, seen) = fio(format, &format!("{options} --iodepth={depth}"));
        assert_eq!(exit, Exit::Status(0), "{said:?}");
        assert_eq!(sectors(&seen, Op::Write), 512);
        seen.bios.iter().filter(|it| it.0 == Op::Write && (1..=64).contains(&it.1)).count()
    };
    // Who comes while a commit is under way waits for the next one: two instead of four.
    assert_eq!((logged(Format::Ext4, 4), logged(Format::Ext4, 1)), (9, 18));
    assert_eq!(logged(Format::Xfs, 4), logged(Format::Xfs, 1));
}

#[test]
fn what_a_file_cannot_do_fails_with_a_message() {
    for format in FORMATS {
        let (exit, said, _) = fio(format, "--rw=trim");
        assert_eq!(exit, Exit::Status(1));
        assert!(said[0].contains("Inappropriate ioctl for device"), "{said:?}");
        let (exit, said, _) = fio(format, "--rw=write --allow_file_create=0");
        assert_eq!(exit, Exit::Status(1));
        assert!(said[0].contains("No such file"), "{said:?}");
    }
}

const DEFRAG: &str = "--ioengine=e4defrag --donorname=donor --filesize=256k";

#[test]
fn blocks_without_contents_change_places_and_nothing_is_read_or_written() {
    for inplace in 0..2 {
        let (exit, said, seen) =
            fio(Format::Ext4, &format!("{DEFRAG} --rw=write --inplace={inplace}"));
        assert_eq!(exit, Exit::Status(0), "{said:?}");
        assert_eq!((sectors(&seen, Op::Write), sectors(&seen, Op::Read)), (0, 0));
    }
}

#[test]
fn the_engine_with_a_donor_writes_and_does_nothing_else() {
    for (options, error) in [
        ("--rw=read --inplace=1", "Invalid argument: read offset=0"),
        ("--rw=write --inplace=1 --fsync=1", "Invalid argument: sync"),
        ("--rw=write --inplace=1 --fallocate=none", "Invalid argument: write offset=0"),
    ] {
        let (exit, said, _) = fio(Format::Ext4, &format!("{DEFRAG} {options}"));
        assert_eq!(exit, Exit::Status(1), "{options}");
        assert!(said[0].contains(error), "{said:?}");
    }
}

#[test]
fn a_donor_is_refused_where_fio_would_fail() {
    let refused = |format, options: &str| {
        let mount = Mount { format, ..Mount::default() };
        let line = format!("fio --name=x --rw=write --ioengine=e4defrag {options}");
        programs::parse_in(&line, &context(&mount)).unwrap_err().to_string()
    };
    assert!(refused(Format::Xfs, "--donorname=d --inplace=1").contains("only ext4"));
    assert!(refused(Format::Ext4, "--inplace=1").contains("needs a donorname"));
    assert!(refused(Format::Ext4, "--donorname=d --size=1m").contains("filesize"));
    assert!(
        refused(Format::Ext4, "--donorname=/x/d --inplace=1").contains("no place for the file")
    );
}

/// Runs fio with these options in a run of so many milliseconds, under a checker.
fn fio_cut_off(options: &str, millis: u64) {
    let mount = Mount::default();
    let context = context(&mount);
    let line = format!("fio --name=x --directory=/mnt {options}");
    let job = Job::new("fio", programs::parse_in(&line, &context).unwrap().program);
    let until = Some(base::Instant::from_nanos(millis * 1_000_000));
    let host = machine::Host::named("host-2009").unwrap();
    let mount = Some(Mount::default());
    let setup = machine::Setup { jobs: vec![job], mount, until, host, ..setup("6.18", "none") };
    common::checked_to_the_cut(setup);
}

#[test]
fn what_the_journal_has_under_way_at_the_cut_is_no_call() {
    for millis in [5, 10, 20, 30, 40, 50] {
        fio_cut_off("--ioengine=filedelete --filesize=4k --nrfiles=200 --unlink=0", millis);
    }
}

#[test]
fn names_are_made_looked_for_and_removed() {
    for format in FORMATS {
        for engine in ["filecreate --create_on_open=1 --fallocate=none", "filestat", "filedelete"] {
            let options =
                format!("--bs=4k --filesize=4k --nrfiles=3 --unlink=0 --ioengine={engine}");
            let (exit, said, seen) = fio(format, &options);
            assert_eq!((exit, seen.calls), (Exit::Status(0), 0), "{engine}: {said:?}");
        }
    }
}

#[test]
fn room_and_size_change_by_the_engines_for_that() {
    for format in FORMATS {
        let engines = ["ftruncate --rw=write", "ftruncate --rw=randwrite", "falloc --rw=write"];
        for engine in engines.into_iter().chain(["falloc --rw=randtrim", "falloc --rw=randrw"]) {
            let (exit, said, _) = fio(format, &format!("--bs=4k --ioengine={engine}"));
            assert_eq!(exit, Exit::Status(0), "{engine}: {said:?}");
        }
        let (exit, said, _) = fio(format, "--bs=4k --ioengine=ftruncate --rw=read");
        assert_eq!(exit, Exit::Status(1));
        assert!(said[0].contains("Invalid argument: read offset=0"), "{said:?}");
    }
}
