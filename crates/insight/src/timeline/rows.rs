//! Which bars lie above which: those of a lane that overlap have rows of their own.

use super::lanes::{Lane, LaneKind};
use super::requests::Requests;

/// More bars than this do not lie one above the other; what comes then covers another bar.
const MOST_ROWS: usize = 32;

/// Gives each request its rows, and each lane as many as it needs.
pub(super) fn assign(requests: &mut Requests, lanes: &mut [Lane]) {
    let device = lanes.iter().position(|it| it.kind == LaneKind::Device).unwrap_or(0);
    let spans = |of: fn(&Requests, usize) -> (u64, u64)| -> Vec<(u64, u64)> {
        (0..requests.len()).map(|at| of(requests, at)).collect()
    };
    let whole = spans(|all, at| (all.queued[at], all.ended(at)));
    let waiting = spans(|all, at| {
        let since = all.inserted[at].saturating_sub(1);
        (all.queued[at] + since, all.queued[at] + all.issued[at])
    });
    let served = spans(|all, at| (all.queued[at] + all.issued[at], all.completed(at)));
    let devices = vec![device; requests.len()];
    let each = [(&whole, &requests.task), (&waiting, &requests.queue), (&served, &devices)];
    let packed = each.map(|(spans, lane_of)| {
        let (packed, most) = pack(spans, lane_of, lanes.len());
        lanes.iter_mut().zip(most).for_each(|(lane, most)| lane.rows = lane.rows.max(most));
        packed
    });
    requests.rows = packed;
    stack_groups(requests, lanes);
}

/// A row for each span: the first in its lane that is free when it begins; and how many rows each
/// lane needs.
pub(super) fn pack(spans: &[(u64, u64)], lane_of: &[usize], lanes: usize) -> (Vec<u8>, Vec<u8>) {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|at| spans[*at]);
    let mut free: Vec<Vec<u64>> = vec![Vec::new(); lanes];
    let mut rows = vec![0; spans.len()];
    for at in order {
        let ((from, to), lane) = (spans[at], lane_of[at]);
        let ends = &mut free[lane];
        let row = match ends.iter().position(|end| *end <= from) {
            Some(row) => row,
            None if ends.len() < MOST_ROWS => {
                ends.push(0);
                ends.len() - 1
            }
            None => (0..MOST_ROWS).min_by_key(|row| ends[*row]).unwrap_or(0),
        };
        ends[row] = to.max(ends[row]);
        rows[at] = row as u8;
    }
    (rows, free.iter().map(|ends| ends.len() as u8).collect())
}

/// A group has the rows of all its tasks.
fn stack_groups(requests: &Requests, lanes: &mut [Lane]) {
    if requests.is_empty() {
        return;
    }
    for group in 0..lanes.len() {
        let of_group = lanes.iter().filter(|it| it.group == Some(group));
        let rows: usize = of_group.map(|it| usize::from(it.rows)).sum();
        lanes[group].rows = lanes[group].rows.max(rows.min(MOST_ROWS) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_has_rows_of_its_own() {
        let rows = pack(&[(0, 4), (2, 6), (4, 5), (3, 3)], &[0; 4], 1);
        assert_eq!(rows, (vec![0, 1, 0, 2], vec![3]));
    }
}
