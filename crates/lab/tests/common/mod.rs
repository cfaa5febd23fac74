//! Experiments in both worlds, for tests of whole runs.

use lab::fidelity::agreed;
use lab::matrix::{self, Report};
use lab::plan::Plan;
use lab::{Error, Experiment, World};

/// Runs an experiment in both worlds; says so where there is no kernel.
pub fn in_both_worlds(text: &str) -> Option<Report> {
    let mut experiment = Experiment::parse("test", text).unwrap();
    experiment.worlds = vec![World::Sim, World::Linux];
    experiment.seeds = vec![1];
    match matrix::run(Plan::new(experiment).unwrap(), None, 2, &|_| ()) {
        Err(Error::NoLinux(cause)) => {
            println!("skipped: {cause}");
            None
        }
        report => Some(report.unwrap()),
    }
}

/// Runs an experiment in both worlds; every row must agree in every command.
#[allow(dead_code)] // Not every test that uses this file compares commands.
pub fn assert_same(text: &str) {
    let Some(report) = in_both_worlds(text) else { return };
    let rows = agreed(&report);
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.agreement.same_commands(), "{row:?}");
    }
}
