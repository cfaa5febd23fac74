//! Which of two requests is nearer (rule as-order-1).

use base::Sector;
use block::{Cx, RequestId};

/// Longest way back that does not count as a new sweep, in sectors.
const BACK_MAX: u64 = 1_048_576;
/// How much more a way back counts.
const BACK_PENALTY: u64 = 2;

/// The nearer of two requests of one kind when the last one ended at `last`.
pub(super) fn choose(
    cx: &Cx<'_>,
    one: Option<RequestId>,
    two: Option<RequestId>,
    last: Sector,
) -> Option<RequestId> {
    let (Some(first), Some(second)) = (one, two) else { return one.or(two) };
    let is_first = is_nearer(cx.request(first).sector, cx.request(second).sector, last);
    Some(if is_first { first } else { second })
}

fn is_nearer(one: Sector, two: Sector, last: Sector) -> bool {
    match (way(one, last), way(two, last)) {
        (Some(first), Some(second)) if first != second => first < second,
        (Some(_), Some(_)) => one >= two,
        (None, None) => one <= two,
        (first, _) => first.is_some(),
    }
}

/// How far it is; `None` if the sweep would have to begin anew.
fn way(sector: Sector, last: Sector) -> Option<u64> {
    if sector >= last {
        Some(sector.0 - last.0)
    } else if sector.0 + BACK_MAX >= last.0 {
        Some((last.0 - sector.0) * BACK_PENALTY)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_counts_twice_and_far_back_is_a_new_sweep() {
        let last = Sector(2_000_000);
        let nearer = |one, two| is_nearer(Sector(one), Sector(two), last);
        assert!(nearer(2_000_010, 1_999_990));
        assert!(nearer(1_999_990, 2_000_021));
        assert!(nearer(2_000_020, 1_999_990), "of equals the higher");
        assert!(nearer(9_000_000, 900_000), "not behind the sweep");
        assert!(nearer(100, 200), "a new sweep begins below");
        assert!(nearer(2_000_000 - BACK_MAX, 2_000_000 - BACK_MAX - 1));
    }
}
