//! Experiments in both worlds, for tests of whole runs.

use lab::fidelity::agreed;
use lab::matrix;
use lab::plan::Plan;
use lab::{Error, Experiment, World};

/// Runs an experiment in both worlds; every row must agree in every command.
pub fn assert_same(text: &str) {
    let mut experiment = Experiment::parse("test", text).unwrap();
    experiment.worlds = vec![World::Sim, World::Linux];
    experiment.seeds = vec![1];
    let report = match matrix::run(Plan::new(experiment).unwrap(), None, 2, &|_| ()) {
        Err(Error::NoLinux(cause)) => return println!("skipped: {cause}"),
        report => report.unwrap(),
    };
    let rows = agreed(&report);
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.agreement.same_commands(), "{row:?}");
    }
}
