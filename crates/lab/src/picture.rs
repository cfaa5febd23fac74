//! What timelines of a comparison are made of: the runs of the best and of the worst scheduler
//! with the first seed.

use crate::error::Error;
use crate::matrix::Report;
use crate::summary::Summary;
use crate::world::World;
use crate::worlds;
use insight::timeline::Recorded;

/// Records the rows that are farthest apart, or else the first two, once more; in the order of the
/// plan. What runs on a kernel cannot be told request by request.
pub fn recorded(report: &Report, summary: &Summary) -> Result<Vec<Recorded>, Error> {
    let plan = &report.plan;
    let simulated = |row: &usize| plan.rows[*row].world == World::Sim;
    let apart = summary.pairs.first().map(|it| vec![it.best, it.worst]);
    let mut rows = apart.unwrap_or_else(|| (0..plan.rows.len()).collect());
    rows.retain(simulated);
    rows.truncate(2);
    rows.sort_unstable();
    let seed = plan.experiment.seeds[0];
    let same = rows.iter().all(|row| plan.rows[*row].axes == plan.rows[rows[0]].axes);
    let title = |row| if same { plan.row_name(row) } else { plan.row_title(row) };
    let record = |row: usize| {
        let recorded = worlds::timeline(plan, &plan.rows[row], seed)?;
        Ok(recorded.map(|it| Recorded { title: title(row), ..it }))
    };
    let record = &record;
    let all: Result<Vec<Option<Recorded>>, Error> = std::thread::scope(|scope| {
        let each: Vec<_> = rows.iter().map(|row| scope.spawn(move || record(*row))).collect();
        each.into_iter().map(|it| it.join().expect("a run does not panic")).collect()
    });
    Ok(all?.into_iter().flatten().collect())
}
