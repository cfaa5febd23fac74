//! What timelines are made of: of a comparison the runs of the best and of the worst scheduler, of
//! what was explained the first two rows; each with the first seed.

use crate::error::Error;
use crate::explain::Explained;
use crate::matrix::Report;
use crate::parallel;
use crate::plan::Plan;
use crate::summary::Summary;
use crate::world::World;
use crate::worlds;
use insight::timeline::Recorded;

/// So many runs are shown.
const SHOWN: usize = 2;

/// Records the rows that are farthest apart, or else the first two, once more; in the order of the
/// plan. What runs on a kernel cannot be told request by request.
pub fn recorded(report: &Report, summary: &Summary) -> Result<Vec<Recorded>, Error> {
    let plan = &report.plan;
    let simulated = |row: &usize| plan.rows[*row].world == World::Sim;
    let apart = summary.pairs.first().map(|it| vec![it.best, it.worst]);
    let mut rows = apart.unwrap_or_else(|| (0..plan.rows.len()).collect());
    rows.retain(simulated);
    rows.truncate(SHOWN);
    rows.sort_unstable();
    let seed = plan.experiment.seeds[0];
    record_rows(plan, &rows, seed)
}

/// Records the first rows of a plan that was explained, with the paths of their slowest calls.
pub fn explained(
    plan: &Plan,
    explained: &[Explained],
    slowest: usize,
) -> Result<Vec<Recorded>, Error> {
    let mut rows: Vec<usize> = (0..plan.rows.len()).collect();
    rows.retain(|row| plan.rows[*row].world == World::Sim);
    rows.truncate(SHOWN.min(explained.len()));
    let mut recorded = record_rows(plan, &rows, plan.experiment.seeds[0])?;
    for (it, explained) in recorded.iter_mut().zip(explained) {
        it.title = explained.label();
        it.paths = explained.slowest(slowest).into_iter().map(|(_, call)| call.clone()).collect();
    }
    Ok(recorded)
}

fn record_rows(plan: &Plan, rows: &[usize], seed: u64) -> Result<Vec<Recorded>, Error> {
    let same = rows.iter().all(|row| plan.rows[*row].axes == plan.rows[rows[0]].axes);
    let title = |row| if same { plan.row_name(row) } else { plan.row_title(row) };
    let record = |row: usize| {
        let recorded = worlds::timeline(plan, &plan.rows[row], seed)?;
        Ok(recorded.map(|it| Recorded { title: title(row), ..it }))
    };
    let all = parallel::each(rows, SHOWN, |row| record(*row), || ());
    Ok(all?.into_iter().flatten().collect())
}
