//! The runs that a page shows request by request.

use insight::timeline::Recorded;

/// A timeline has so many requests at most, so that the page stays below 20 MB.
pub(super) const MOST: usize = 500_000;

/// Cuts runs that are too long to be shown whole, and says which are shown; nothing if none is.
pub(super) fn cut(recorded: &mut [Recorded], seed: u64) -> Option<String> {
    let is_cut: Vec<bool> = recorded.iter_mut().map(|run| run.cut(MOST)).collect();
    let shown = match recorded {
        [] => return None,
        [only] => format!("Shown is {}", only.title),
        [one, other, ..] => format!("Shown are {} and {}", one.title, other.title),
    };
    let cut = match is_cut.contains(&true) {
        true => format!(", of each run the first {MOST} requests"),
        false => String::new(),
    };
    Some(format!("{shown} with seed {seed}{cut}."))
}

/// The same, and what arrows mean there.
pub(super) fn remark(shown: Option<String>, arrows: &str) -> String {
    let nothing = || "No run can be shown request by request.".to_string();
    shown.map_or_else(nothing, |shown| format!("{shown} {arrows}"))
}
