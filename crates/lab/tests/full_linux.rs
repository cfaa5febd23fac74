//! A disk that becomes full: who writes hears of it at the same byte as on the kernel.

use lab::matrix;
use lab::plan::Plan;
use lab::{Error, Experiment, World};
use std::fs;

/// A gibibyte of a disk that has forty.
fn small_disk() -> String {
    let whole = include_str!("../../../models/vm-ssd-m4.toml");
    let small = whole.replacen("value = 40, unit = \"GiB\"", "value = 1, unit = \"GiB\"", 1);
    assert_ne!(whole, small);
    small
}

/// What `dd` says of how much it has written is the same in both worlds.
fn assert_same_end(name: &str, jobs: &str) {
    let folder =
        std::env::temp_dir().join(format!("paternoster-full-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let model = folder.join("small.toml");
    fs::write(&model, small_disk()).unwrap();
    let text = format!("model = {:?}\nschedulers = [\"none\"]\n{jobs}", model.to_str().unwrap());
    let mut experiment = Experiment::parse("test", &text).unwrap();
    experiment.worlds = vec![World::Sim, World::Linux];
    experiment.seeds = vec![1];
    let report = matrix::run(Plan::new(experiment).unwrap(), None, 2, &|_| ());
    fs::remove_dir_all(&folder).unwrap();
    let report = match report {
        Err(Error::NoLinux(cause)) => return println!("skipped: {cause}"),
        report => report.unwrap(),
    };
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
    assert!(sim.iter().any(|(failed, _)| *failed), "{sim:?}");
    assert_eq!(sim, linux);
}

#[test]
fn one_file_fills_the_disk() {
    assert_same_end(
        "one",
        r#"
        [[job]]
        name = "writer"
        run = "dd if=/dev/zero of=/mnt/a bs=1M {how}"
        [axes]
        fs = ["ext4", "xfs"]
        how = ["", "oflag=direct"]
        "#,
    );
}

#[test]
fn what_was_given_up_is_used_again() {
    assert_same_end(
        "again",
        r#"
        [[job]]
        name = "writer"
        run = "dd if=/dev/zero of=/mnt/a bs=1M count=800 oflag={how}"
        [[job]]
        name = "again"
        run = "dd if=/dev/zero of=/mnt/a bs=1M count=850 oflag={how}"
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
