//! Which bars lie above which: those of a lane that overlap have rows of their own.

use super::lanes::{Lane, LaneKind};
use super::requests::Requests;

/// More bars than this do not lie one above the other; what comes then covers another bar.
const MOST_ROWS: usize = 32;

/// Gives each request its rows, and each lane as many as it needs.
pub(super) fn assign(requests: &mut Requests, lanes: &mut [Lane]) {
    let device = lanes.iter().position(|it| it.kind == LaneKind::Device).expect("there is one");
    let spans = |of: fn(&Requests, usize) -> (u64, u64)| -> Vec<(u64, u64)> {
        (0..requests.len()).map(|at| of(requests, at)).collect()
    };
    let whole = spans(|all, at| (all.queued[at], all.completed(at)));
    let waiting = spans(|all, at| {
        let since = all.inserted[at].saturating_sub(1);
        (all.queued[at] + since, all.queued[at] + all.issued[at])
    });
    let served = spans(|all, at| (all.queued[at] + all.issued[at], all.completed(at)));
    let rows = [
        pack(&whole, &requests.task, lanes),
        pack(&waiting, &requests.queue, lanes),
        pack(&served, &vec![device; requests.len()], lanes),
    ];
    requests.rows = rows;
    stack_groups(requests, lanes);
}

/// A row for each span: the first in its lane that is free when it begins.
fn pack(spans: &[(u64, u64)], lane_of: &[usize], lanes: &mut [Lane]) -> Vec<u8> {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|at| spans[*at]);
    let mut free: Vec<Vec<u64>> = vec![Vec::new(); lanes.len()];
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
            None => (0..MOST_ROWS).min_by_key(|row| ends[*row]).expect("there are some"),
        };
        ends[row] = to.max(ends[row]);
        rows[at] = row as u8;
    }
    for (lane, ends) in lanes.iter_mut().zip(&free) {
        lane.rows = lane.rows.max(ends.len() as u8);
    }
    rows
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
        let lane = Lane { name: String::new(), kind: LaneKind::Task, rows: 1, group: None };
        let mut lanes = [lane];
        let rows = pack(&[(0, 4), (2, 6), (4, 5), (3, 3)], &[0; 4], &mut lanes);
        assert_eq!((rows, lanes[0].rows), (vec![0, 1, 0, 2], 3));
    }
}
