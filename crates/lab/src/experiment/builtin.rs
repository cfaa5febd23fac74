//! The experiments that come with the program, so that they can be listed and run anywhere.

use super::Experiment;
use crate::error::Error;

/// Name and text of each, by name.
const EXPERIMENTS: [(&str, &str); 28] = [
    ("bfq-2019-cost", include_str!("../../../../experiments/bfq-2019-cost.toml")),
    ("bfq-2019-dbench", include_str!("../../../../experiments/bfq-2019-dbench.toml")),
    ("bfq-2019-late", include_str!("../../../../experiments/bfq-2019-late.toml")),
    ("bfq-2019-startup", include_str!("../../../../experiments/bfq-2019-startup.toml")),
    ("bfq-cgroup-journal", include_str!("../../../../experiments/bfq-cgroup-journal.toml")),
    ("bfq-interleaved", include_str!("../../../../experiments/bfq-interleaved.toml")),
    ("dump-cooperation", include_str!("../../../../experiments/dump-cooperation.toml")),
    (
        "dump-cooperation-streaming",
        include_str!("../../../../experiments/dump-cooperation-streaming.toml"),
    ),
    ("first-light", include_str!("../../../../experiments/first-light.toml")),
    ("fsync-neighbour", include_str!("../../../../experiments/fsync-neighbour.toml")),
    ("journal-pingpong", include_str!("../../../../experiments/journal-pingpong.toml")),
    ("journal-pingpong-n", include_str!("../../../../experiments/journal-pingpong-n.toml")),
    ("journal-pingpong-xfs", include_str!("../../../../experiments/journal-pingpong-xfs.toml")),
    ("latency-layers", include_str!("../../../../experiments/latency-layers.toml")),
    ("latency-tasks", include_str!("../../../../experiments/latency-tasks.toml")),
    ("limits", include_str!("../../../../experiments/limits.toml")),
    (
        "mq-deadline-async-depth",
        include_str!("../../../../experiments/mq-deadline-async-depth.toml"),
    ),
    ("nvme-scaling", include_str!("../../../../experiments/nvme-scaling.toml")),
    ("s-suite-fairness", include_str!("../../../../experiments/s-suite-fairness.toml")),
    ("s-suite-latency", include_str!("../../../../experiments/s-suite-latency.toml")),
    ("s-suite-player", include_str!("../../../../experiments/s-suite-player.toml")),
    ("s-suite-throughput", include_str!("../../../../experiments/s-suite-throughput.toml")),
    ("s-suite-urgent", include_str!("../../../../experiments/s-suite-urgent.toml")),
    ("sysbench-threads", include_str!("../../../../experiments/sysbench-threads.toml")),
    ("wbt-default-lost", include_str!("../../../../experiments/wbt-default-lost.toml")),
    ("wbt-drives", include_str!("../../../../experiments/wbt-drives.toml")),
    ("wbt-starvation", include_str!("../../../../experiments/wbt-starvation.toml")),
    ("wbt-today", include_str!("../../../../experiments/wbt-today.toml")),
];

/// The names of all.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    EXPERIMENTS.iter().map(|(name, _)| *name)
}

/// The text of one.
pub fn text(name: &str) -> Option<&'static str> {
    EXPERIMENTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// One of them, if there is such a one.
pub fn load(name: &str) -> Option<Result<Experiment, Error>> {
    text(name).map(|text| Experiment::parse(&format!("{name}.toml"), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_experiment_of_the_directory_comes_along() {
        let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments"));
        let entries = std::fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
        // What is below stays there: `experiments/threads` has a test of its own.
        let entries = entries.filter(|path| path.is_file());
        let stem = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut there: Vec<String> = entries.map(|it| stem(&it)).collect();
        there.sort();
        assert_eq!(names().collect::<Vec<_>>(), there);
        assert!(names().all(|name| load(name).unwrap().is_ok()));
        assert!(load("nothing").is_none());
    }
}
