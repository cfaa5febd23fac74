//! The detectors, a file for each place where time is lost. Each looks at a [`Case`] and says what
//! it found, if anything.

mod device;
mod idling;
pub mod limits;
mod neighbours;

use super::case::Case;
use super::finding::{Finding, Weight};
use insight::Confidence;

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

/// What they say of a recording. What a detector finds for several is told once, for whoever lost
/// most, and what rests on a guess of low confidence is no cause.
pub fn detect_in_recording(case: &Case) -> Vec<Finding> {
    let mut all = detect(case);
    for found in all.iter_mut().filter(|it| it.confidence == Some(Confidence::Low)) {
        found.weight = Weight::Note;
    }
    all.sort_by_key(|it| (it.weight, std::cmp::Reverse(it.cost)));
    let mut findings: Vec<Finding> = Vec::new();
    for found in all {
        match findings.iter_mut().find(|it| it.name == found.name) {
            Some(first) => first.add_victim(&found),
            None => findings.push(found),
        }
    }
    findings
}
