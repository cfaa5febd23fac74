//! sysbench and dump as Debian ships them: sysbench gives the disk the commands that ours gives it,
//! dump runs. Needs a kernel in the cache and both programs.

mod common;

use common::{KERNEL, assert_same};
use lab::matrix;
use lab::plan::Plan;
use lab::{Experiment, World};
use testing::needs::{BUSYBOX, DUMP, MKFS_EXT4, SYSBENCH};

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

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, MKFS_EXT4, SYSBENCH] => sysbench_reads_in_sequence_as_ours_does,
            sysbench_prepares_its_files_and_makes_them_durable_as_ours_does;
        [KERNEL, BUSYBOX, MKFS_EXT4, DUMP] => dump_reads_a_file_system_that_is_there,
    ])
}
