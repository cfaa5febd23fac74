//! The runs that a page shows request by request.

use insight::timeline::Recorded;

/// Says which runs are shown; nothing if none is.
pub(super) fn which(recorded: &[Recorded], seed: u64) -> Option<String> {
    let shown = match recorded {
        [] => return None,
        [only] => format!("Shown is {}", only.title),
        [one, other, ..] => format!("Shown are {} and {}", one.title, other.title),
    };
    let parts = recorded.iter().filter_map(part).collect::<Vec<_>>();
    Some([vec![format!("{shown} with seed {seed}.")], parts].concat().join(" "))
}

/// What of a run is there request by request, if that is not all of it.
pub(super) fn part(run: &Recorded) -> Option<String> {
    run.is_cut().then(|| {
        format!(
            "Of {} requests of {}, {} are there one by one, where the line above the lanes is \
             thick: the first, those around the slowest, and some from all over. The rest is \
             summed up.",
            run.requests(),
            run.title,
            run.lives.len()
        )
    })
}

/// The same, and what arrows mean there.
pub(super) fn remark(shown: Option<String>, arrows: &str) -> String {
    let nothing = || "No run can be shown request by request.".to_string();
    shown.map_or_else(nothing, |shown| format!("{shown} {arrows}"))
}
