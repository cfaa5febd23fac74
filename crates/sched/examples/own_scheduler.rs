//! A scheduler of one's own, in forty lines: shortest seek first.
//!
//! It uses `block` and `base` alone. Then it is held to the contract of all schedulers, and compared
//! by name with others.
//!
//!     cargo run --release -p paternoster-sched --example own_scheduler

use base::Sector;
use block::scheduler::{Dispatched, HctxId, InsertAt, Placement};
use block::{About, Cx, DispatchReason, KERNELS, RequestId, Scheduler, Shape, Version};
use lab::{Experiment, JobSpec};

static ABOUT: About = About {
    name: "shortest-seek",
    shape: Shape::Multi,
    summary: "serves what is nearest to where the last request ended",
    tunables: &[],
};

#[derive(Default)]
struct ShortestSeek {
    queued: Vec<RequestId>,
    head: Sector,
}

impl Scheduler for ShortestSeek {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn get(&self, _cx: &Cx<'_>, _tunable: &str) -> i64 {
        unreachable!("it has no tunables")
    }

    fn set(&mut self, _cx: &mut Cx<'_>, _tunable: &str, _value: i64) {}

    fn insert(&mut self, _cx: &mut Cx<'_>, rq: RequestId, _at: InsertAt) {
        self.queued.push(rq);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, _force: bool) -> Dispatched {
        let seek = |rq: &RequestId| cx.request(*rq).sector.0.abs_diff(self.head.0);
        let Some(nearest) = self.queued.iter().copied().min_by_key(seek) else {
            return Dispatched::Empty;
        };
        self.queued.retain(|rq| *rq != nearest);
        self.head = cx.request(nearest).end();
        cx.issue(nearest, Placement::Tail, DispatchReason::BatchContinues);
        Dispatched::Some(1)
    }

    fn requests_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, next: RequestId) {
        self.queued.retain(|rq| *rq != next);
    }

    fn has_work(&self, _hctx: HctxId) -> bool {
        !self.queued.is_empty()
    }

    fn queued(&self) -> u32 {
        self.queued.len() as u32
    }

    fn check(&self, cx: &Cx<'_>) {
        self.queued.iter().for_each(|rq| assert!(!cx.request(*rq).sectors.is_zero()));
    }

    fn describe(&self, _cx: &Cx<'_>) -> String {
        format!("{} queued, head at {}", self.queued.len(), self.head)
    }
}

/// What it takes to be asked for by name.
static ENTRY: sched::Entry = sched::Entry {
    name: "shortest-seek",
    about: |_| &ABOUT,
    since: Version::V4_19,
    until: None,
    default_kernel: Version::V6_18,
    honours_weights: None,
    build: |_| Some(Box::new(ShortestSeek::default())),
};

fn main() -> Result<(), lab::Error> {
    for kernel in KERNELS.iter().filter(|kernel| ENTRY.is_on(kernel)) {
        let build = || -> Box<dyn Scheduler> { Box::new(ShortestSeek::default()) };
        (0..50).for_each(|seed| block::contract::check(kernel, build, seed, 300));
        println!("{} keeps the contract on {}", ENTRY.name, kernel.version);
    }
    let load = "fio --name=load --filename=/dev/sda --rw=randread --bs=4k --direct=1 \
                --ioengine=libaio --iodepth=64 --time_based --runtime=5 --size=8G";
    let mut experiment = Experiment::of_jobs("own", vec![JobSpec::parse("load", load)?]);
    experiment.model = "hdd-7200-sata".to_string();
    experiment.known = sched::Schedulers::default().with(&ENTRY);
    for name in ["none", "noop@4.19", ENTRY.name] {
        experiment.schedulers.push((name.to_string(), "this example".to_string()));
    }
    experiment.seeds = vec![1];
    let report = lab::matrix::run(lab::plan::Plan::new(experiment)?, None, 1, &|_| ())?;
    for result in &report.results {
        println!("{:<14} {} reads in {}", result.spec.name, result.disk.reads, result.elapsed);
    }
    Ok(())
}
