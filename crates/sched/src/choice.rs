//! Which of two requests of one queue goes first: CFQ and BFQ choose alike.

use base::Sector;
use block::{Cx, Flags, Request, RequestId};

/// How requests of one queue are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// Longest way back that counts as near, in KiB.
    pub back_max: i64,
    /// How much farther the way back counts.
    pub penalty: i64,
    /// What carries this flag goes first.
    pub favoured: Flags,
}

/// Which of two requests is served first when the last one was at `last` (rules cfq-choose).
pub(crate) fn choose(
    cx: &Cx<'_>,
    ways: &Ways,
    one: Option<RequestId>,
    two: Option<RequestId>,
    last: Sector,
) -> Option<RequestId> {
    let (Some(one), Some(two)) = (one, two) else { return one.or(two) };
    let (first, second) = (cx.request(one), cx.request(two));
    let rank = |request: &Request| {
        u8::from(request.is_sync()) << 1 | u8::from(request.flags.intersects(ways.favoured))
    };
    let (a, b) = (rank(first), rank(second));
    if a != b {
        return Some(if a > b { one } else { two });
    }
    let (d1, d2) = (way(ways, first.sector, last), way(ways, second.sector, last));
    // Without a branch: requests of a random load come in any order.
    let first_wins = (d1 < d2) | ((d1 == d2) & (first.sector >= second.sector));
    Some(if first_wins { one } else { two })
}

/// What is too far back comes after everything else, the lowest sector first.
const TOO_FAR: u64 = 1 << 63;

/// How far it is from `last` to `sector`, such that the shorter way is the one to take.
fn way(ways: &Ways, sector: Sector, last: Sector) -> u64 {
    // Two sectors in a KiB.
    let back_max = 2 * ways.back_max as u64;
    let back = last.0.wrapping_sub(sector.0);
    let behind = if back <= back_max { back * ways.penalty as u64 } else { TOO_FAR | sector.0 };
    if sector >= last { sector.0 - last.0 } else { behind }
}
