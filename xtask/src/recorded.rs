//! An experiment that is recorded in both worlds, for commands that read recordings.

use block::Version;
use lab::plan::Plan;
use lab::{Experiment, matrix};
use std::error::Error;
use std::path::{Path, PathBuf};

/// A run in both worlds.
pub struct Pair {
    /// How its recording is called.
    pub name: String,
    /// The simulator's recording.
    pub sim: PathBuf,
    /// The kernel's.
    pub linux: PathBuf,
}

impl Pair {
    /// The files of blktrace: the simulator's, and the kernel's.
    pub fn traces(&self) -> [PathBuf; 2] {
        [self.sim.join("sda"), self.linux.join("vda")]
    }
}

/// Runs an experiment in both worlds and shows its recordings, which are gone after that; how many
/// pairs there were.
pub fn in_both(
    name: &str,
    text: &str,
    judge: Version,
    see: impl FnMut(&Pair) -> Result<(), Box<dyn Error>>,
) -> Result<usize, Box<dyn Error>> {
    let mut experiment = Experiment::parse(name, text)?;
    crate::in_both(&mut experiment, judge);
    let process = std::process::id();
    let directory = std::env::temp_dir().join(format!("paternoster-recorded-{process}"));
    let recorded = matrix::run(Plan::new(experiment)?, Some(&directory), 2, &|_| ());
    let shown = recorded.map_err(Into::into).and_then(|_| show(&directory, see));
    std::fs::remove_dir_all(&directory).ok();
    shown
}

fn show(
    directory: &Path,
    mut see: impl FnMut(&Pair) -> Result<(), Box<dyn Error>>,
) -> Result<usize, Box<dyn Error>> {
    let mut pairs = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let sim = entry?.path();
        let name = sim.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let linux = sim.with_file_name(format!("{name}-linux"));
        if linux.exists() {
            pairs.push(Pair { name, sim, linux });
        }
    }
    pairs.sort_by(|one, other| one.name.cmp(&other.name));
    pairs.iter().try_for_each(&mut see)?;
    Ok(pairs.len())
}
