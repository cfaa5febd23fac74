//! Experiments in both worlds, for tests of whole runs.

use lab::fidelity::agreed;
use lab::matrix::{self, Report};
use lab::plan::Plan;
use lab::{Experiment, World};
use testing::Need;

/// The kernel of the user's cache.
pub const KERNEL: Need = testing::needs::kernel(linux::has_kernel);

/// Runs an experiment in both worlds.
pub fn in_both_worlds(text: &str) -> Report {
    let mut experiment = Experiment::parse("test", text).unwrap();
    experiment.worlds = vec![World::Sim, World::Linux];
    experiment.seeds = vec![1];
    experiment.watches_bios = true;
    matrix::run(Plan::new(experiment).unwrap(), None, 2, &|_| ()).unwrap()
}

/// Runs an experiment in both worlds; every row must agree in every command.
#[allow(dead_code)] // Not every test that uses this file compares commands.
pub fn assert_same(text: &str) {
    let rows = agreed(&in_both_worlds(text));
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.agreement.same_commands(), "{row:?}");
        let [_, (bios, of), _] = row.alike;
        assert_eq!(bios, of, "bios, with flags and task: {row:?}");
    }
}
