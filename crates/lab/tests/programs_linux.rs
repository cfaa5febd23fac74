//! sysbench and dump as Debian ships them: sysbench gives the disk the commands that ours gives it,
//! dump runs; and pgioperf, made here from C, does what ours does. Needs a kernel in the cache and
//! the programs.

mod common;

use common::{KERNEL, assert_same};
use lab::matrix;
use lab::metrics::CallKind;
use lab::plan::Plan;
use lab::result::RunResult;
use lab::{Experiment, World};
use testing::needs::{BUSYBOX, CC, DUMP, MKFS_EXT4, SYSBENCH};

fn sysbench(how: &str) -> String {
    let files = "fileio --file-num=4 --file-total-size=4M";
    format!(
        "model = \"vm-ssd-m4\"\nfs = \"ext4\"\nschedulers = [\"none\"]\n\
         setup = [\"sysbench {files} prepare\", \"sync\", \"drop_caches\"]\n\
         [[job]]\nname = \"load\"\nrun = \"sysbench {files} --time=0 --events=300 {how} run\"\n"
    )
}

fn sysbench_reads_in_sequence_as_ours_does() {
    assert_same(&sysbench("--file-test-mode=seqrd"));
}

fn sysbench_prepares_its_files_and_makes_them_durable_as_ours_does() {
    let files = "fileio --file-num=3 --file-total-size=12M {how}";
    assert_same(&format!(
        "model = \"vm-ssd-m4\"\nfs = \"ext4\"\nschedulers = [\"none\"]\n[[job]]\n\
         name = \"load\"\nrun = \"sysbench {files} prepare && sysbench {files} --time=0 \
         --events=200 --file-test-mode=seqrewr run\"\n[axes]\nhow = [\"--file-block-size=4K\", \
         \"--file-fsync-all=on\", \"--file-fsync-mode=fdatasync\", \"--file-extra-flags=direct\"]\n"
    ));
}

fn dump_reads_a_file_system_that_is_there() {
    let text = "model = \"vm-ssd-m4\"\nfs = \"ext4\"\nschedulers = [\"none\"]\nseeds = 1\n\
                setup = [\"dd if=/dev/zero of=/mnt/a bs=1M count=3\", \"sync\", \"drop_caches\"]\n\
                [[job]]\nname = \"dump\"\nrun = \"dump -0uf /dev/null /dev/sda\"\n";
    let in_worlds = |worlds: &[World]| {
        let mut experiment = Experiment::parse("test", text).unwrap();
        experiment.worlds = worlds.to_vec();
        Plan::new(experiment)
    };
    let refusal = in_worlds(&[World::Sim, World::Linux]).unwrap_err().to_string();
    assert!(refusal.contains("accepted: --population=COUNTxSIZE"), "{refusal}");
    let report = matrix::run(in_worlds(&[World::Linux]).unwrap(), None, 1, &|_| ()).unwrap();
    let result = &report.results[0];
    assert!(result.succeeded(), "{:?}", result.exits);
    assert!(result.disk.read_bytes.0 >= 3 << 20, "{:?}", result.disk);
}

fn pgioperf_does_what_ours_does() {
    let text = "model = \"ssd-sata-m4\"\nfs = \"ext4\"\nmemory = \"256 MiB\"\n\
                schedulers = [\"mq-deadline\"]\nseeds = 1\n\
                setup = [\"pgioperf --prepare --size 96m\", \"drop_caches\"]\n\
                [[job]]\nname = \"pg\"\nrun = \"pgioperf --readers 4 --size 96m\"\n\
                duration = \"2s\"\n";
    let mut experiment = Experiment::parse("test", text).unwrap();
    experiment.worlds = vec![World::Sim, World::Linux];
    let report = matrix::run(Plan::new(experiment).unwrap(), None, 1, &|_| ()).unwrap();
    let [ours, theirs] = &report.results[..] else { panic!("two worlds") };
    for (job, kind) in [("reader", CallKind::Read), ("checkpointer", CallKind::Write)]
        .into_iter()
        .chain([("wal", CallKind::Write), ("wal", CallKind::Sync)])
    {
        let count = |it: &RunResult| {
            let name = format!("pg/{job}");
            let of_job = it.jobs.iter().find(|it| it.name == name);
            of_job.unwrap_or_else(|| panic!("{name}: {:?}", it.exits)).call(kind).count as f64
        };
        let (ours, theirs) = (count(ours), count(theirs));
        assert!((0.9..1.1).contains(&(ours / theirs)), "{job}: {ours} {kind:?}s, {theirs}");
    }
    // All draw from the same sequence, and after so long all data have been read.
    let read = |it: &RunResult| it.disk.read_bytes.0 as f64;
    assert!((0.98..1.02).contains(&(read(ours) / read(theirs))), "{}", read(ours));
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, MKFS_EXT4, SYSBENCH] => sysbench_reads_in_sequence_as_ours_does,
            sysbench_prepares_its_files_and_makes_them_durable_as_ours_does;
        [KERNEL, BUSYBOX, MKFS_EXT4, CC] => pgioperf_does_what_ours_does;
        [KERNEL, BUSYBOX, MKFS_EXT4, DUMP] => dump_reads_a_file_system_that_is_there,
    ])
}
