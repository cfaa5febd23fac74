//! Pages of experiments of any kind: nothing that a run may do is too strange for a timeline.

use insight::requests::Requests;
use insight::{Layer, Life};
use lab::explain::Options;
use lab::fidelity::random::whole::experiment;
use lab::plan::Plan;
use lab::summary::Summary;
use lab::{Error, Experiment, matrix, picture, worlds};
use report::html;
use std::collections::BTreeMap;
use std::time::Duration;

/// Slow calls on a page.
const SLOW: usize = 5;

pub fn tests() -> Vec<testing::Test> {
    testing::tests![[] => random_runs_become_pages, order_changes_no_sum]
}

/// The plan of a random experiment; what fio refuses is none.
fn plan(number: u64) -> Result<Plan, Error> {
    Plan::new(Experiment::parse("random.toml", &experiment(7, number))?)
}

/// Both pages of a random experiment; how long they are together.
pub fn pages(number: u64) -> Result<usize, Error> {
    let report = matrix::run(plan(number)?, None, 1, &|_| ())?;
    let summary = Summary::of(&report);
    let recorded = picture::recorded(&report, &summary)?;
    let compared = html::compare::page(&report, &summary, Duration::ZERO, recorded);
    let plan = plan(number)?;
    let explained =
        lab::explain::explain(&plan, Options { slowest: SLOW, ..Options::default() }, &|_, _| ())?;
    let recorded = picture::explained(&plan, &explained, SLOW)?;
    let page = html::explain::page(&plan, &explained, recorded, SLOW);
    for timeline in page.timelines.iter().chain(&compared.timelines) {
        let lanes = timeline.lanes.len();
        assert!(timeline.requests.task.iter().all(|it| (1..lanes).contains(it)));
        assert!(timeline.calls.task.iter().all(|it| (1..lanes).contains(it)));
        let mut links = timeline.chains.iter().flat_map(|it| &it.links);
        assert!(links.all(|it| (1..lanes).contains(&it.lane)));
    }
    Ok(compared.to_html().len() + page.to_html().len())
}

fn random_runs_become_pages() {
    let made = (0..12).filter(|number| pages(*number).is_ok_and(|length| length > 1000)).count();
    assert!(made > 6, "{made}");
}

/// How long each request is in which layer.
fn sums(lives: impl Iterator<Item = Life>) -> Vec<BTreeMap<Layer, u64>> {
    let sum = |life: Life| {
        let mut sums = BTreeMap::new();
        for (layer, time) in life.layers {
            *sums.entry(layer).or_default() += time.as_nanos();
        }
        sums
    };
    lives.map(sum).collect()
}

fn order_changes_no_sum() {
    let mut requests = 0;
    for number in 0..12 {
        let Ok(plan) = plan(number) else { continue };
        let row = &plan.rows[0];
        let depth = Some(row.facts().queue_depth);
        let follow = |mut requests: Requests| {
            let mut lives = Vec::new();
            let seen = worlds::watch(&plan, row, 1, &mut requests);
            requests.finish();
            lives.extend(requests.done());
            seen.map(|_| sums(lives.into_iter()))
        };
        let Ok(plain) = follow(Requests::new(depth)) else { continue };
        assert_eq!(follow(Requests::new(depth).in_order()).unwrap(), plain);
        requests += plain.len();
    }
    assert!(requests > 1000, "{requests}");
}
