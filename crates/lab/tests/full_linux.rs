//! A disk that becomes full: who writes hears of it at the same byte as on the kernel.

mod common;

use common::KERNEL;

use lab::World;
use std::fs;
use testing::needs::{BUSYBOX, FIO, MKFS_EXT4, MKFS_XFS};

/// 640 MiB of a disk that has 40 GiB.
fn small_disk() -> String {
    let whole = include_str!("../../../models/vm-ssd-m4.toml");
    let small = whole.replacen("value = 40, unit = \"GiB\"", "value = 640, unit = \"MiB\"", 1);
    assert_ne!(whole, small);
    small
}

/// What programs say of how much they have written is the same in both worlds.
fn assert_same_end(name: &str, jobs: &str) {
    let directory =
        std::env::temp_dir().join(format!("paternoster-full-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let model = directory.join("small.toml");
    fs::write(&model, small_disk()).unwrap();
    let text = format!("model = {:?}\nschedulers = [\"none\"]\n{jobs}", model.to_str().unwrap());
    let report = common::in_both_worlds(&text);
    fs::remove_dir_all(&directory).unwrap();
    let ends = |world| {
        let rows = report.plan.rows.iter().enumerate().filter(move |(_, row)| row.world == world);
        let exits = rows.flat_map(|(row, _)| &report.results_of(row)[0].exits);
        let mut said = Vec::new();
        for exit in exits {
            // How long it took is another matter.
            let bytes = |line: &String| line.split(" copied").next().unwrap_or("").to_string();
            said.push((exit.failed, exit.messages.iter().map(bytes).collect::<Vec<_>>()));
        }
        said
    };
    let (sim, linux) = (ends(World::Sim), ends(World::Linux));
    assert!(sim.iter().any(|(_, said)| said.iter().any(|it| it.contains("No space"))), "{sim:?}");
    assert_eq!(sim, linux);
}

/// Runs `job` with each of `ways` for `{how}` on ext4, and on XFS with the last of them, which is
/// direct: what XFS has set aside beyond a file when little is left is not modelled.
fn assert_same_end_on_each(name: &str, job: &str, ways: [&str; 2]) {
    let job = format!("[[job]]\nname = \"writer\"\nrun = {job:?}\n");
    let [_, direct] = ways;
    assert_same_end(name, &format!("{job}[axes]\nfs = [\"ext4\"]\nhow = {ways:?}\n"));
    assert_same_end(name, &format!("{job}[axes]\nfs = [\"xfs\"]\nhow = [{direct:?}]\n"));
}

fn one_file_fills_the_disk() {
    let job = "dd if=/dev/zero of=/mnt/a bs=1M {how}";
    assert_same_end_on_each("one", job, ["", "oflag=direct"]);
}

fn fio_fills_a_file_system_and_reads_what_is_there() {
    let job = "fio --directory=/mnt --filename=f --bs=1M --direct={how} --name=w --rw=write \
               --fill_device=1 --name=r --stonewall --create_serialize=0 --rw=read";
    assert_same_end_on_each("fio", job, ["0", "1"]);
}

fn what_was_given_up_is_used_again() {
    assert_same_end(
        "again",
        r#"
        [[job]]
        name = "writer"
        run = "dd if=/dev/zero of=/mnt/a bs=1M count=420 oflag={how}"
        [[job]]
        name = "again"
        run = "dd if=/dev/zero of=/mnt/a bs=1M count=450 oflag={how}"
        start = "10s"
        [[job]]
        name = "more"
        run = "dd if=/dev/zero of=/mnt/b bs=1M oflag={how}"
        start = "20s"
        [axes]
        fs = ["ext4", "xfs"]
        how = ["direct", "sync"]
        "#,
    );
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO, MKFS_EXT4, MKFS_XFS] => one_file_fills_the_disk,
            fio_fills_a_file_system_and_reads_what_is_there,
            what_was_given_up_is_used_again,
    ])
}
