//! The detectors, a file for each place where time is lost. Each looks at a [`Case`] and says
//! what it found, if anything.

mod device;
mod idling;
pub mod limits;
mod neighbours;

use super::case::Case;
use super::finding::Finding;

/// A detector.
type Detector = fn(&Case) -> Vec<Finding>;

/// All of them.
const DETECTORS: [Detector; 4] =
    [idling::detect, limits::detect, neighbours::detect, device::detect];

/// What all of them say, the causes first and among these the dearest.
pub fn detect(case: &Case) -> Vec<Finding> {
    let mut findings: Vec<Finding> = DETECTORS.iter().flat_map(|it| it(case)).collect();
    findings.sort_by_key(|it| (it.weight, std::cmp::Reverse(it.cost)));
    findings
}
