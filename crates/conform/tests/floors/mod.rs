//! The floors of agreement that `docs/conform.md` publishes.

use conform::Conformity;

const CHAPTER: &str = include_str!("../../../../docs/conform.md");

/// The published floor of a scheduler, in percent of contested decisions: the last column of its
/// row in the table of floors.
pub fn floor(scheduler: &str) -> f64 {
    let row = CHAPTER.lines().find(|line| line.starts_with(&format!("| {scheduler} |")));
    let row = row.unwrap_or_else(|| panic!("docs/conform.md has no floor for {scheduler}"));
    let last = row.trim_end_matches('|').rsplit('|').next().expect("a row has columns");
    last.trim().trim_end_matches(" %").parse().expect("a floor is a number in percent")
}

/// Asserts that recordings of a scheduler agree as much as is published, if there are any, and that
/// no disagreement is without a name.
pub fn assert_above(scheduler: &str, results: &[Conformity]) {
    let contested: u64 = results.iter().map(|it| it.contested).sum();
    let agreed: u64 = results.iter().map(|it| it.agreed).sum();
    let floor = floor(scheduler);
    for result in results {
        let unexplained = result.classes.keys().any(|class| class.name() == "unexplained");
        assert!(!unexplained, "{result:#?}");
    }
    let agreement = 100.0 * agreed as f64 / contested as f64;
    assert!(contested == 0 || agreement >= floor, "{scheduler}: {agreement} of {floor} %");
}
