//! A scheduler of one's own, in forty lines: shortest seek first.
//!
//! It uses `block` and `base` alone. `main` holds it to the contract of all schedulers, and
//! compares it by name with others.
//!
//!     cargo run --release -p paternoster-sched --example own_scheduler

use base::Sector;
use block::scheduler::{Dispatched, HctxId, InsertAt, Placement};
use block::{
    About, Cx, DispatchReason, KERNELS, MergeLookup, RequestId, Scheduler, Shape, SharedLock,
    Version,
};
use lab::Experiment;

static ABOUT: About = About {
    name: "shortest-seek",
    shape: Shape::Multi,
    lock: SharedLock::All,
    lookup: MergeLookup::Index,
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

    fn queued(&self) -> u32 {
        self.queued.len() as u32
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
    honours_ioprio: None,
    build: |_| Some(Box::<ShortestSeek>::default()),
    backports: None,
};

/// Random reads, many at a time.
const EXPERIMENT: &str = r#"
    model = "hdd-7200-sata"
    schedulers = ["none", "noop@4.19", "shortest-seek"]
    seeds = 1
    [[job]]
    name = "load"
    run = """fio --name=load --filename=/dev/sda --rw=randread --bs=4k --direct=1 \
           --ioengine=libaio --iodepth=64 --time_based --runtime=5 --size=8G"""
"#;

fn main() -> Result<(), lab::Error> {
    for kernel in KERNELS.iter().filter(|kernel| ENTRY.is_on(kernel)) {
        for seed in 0..50 {
            block::contract::check(kernel, || Box::<ShortestSeek>::default(), seed, 300);
        }
        println!("{} keeps the contract on {}", ENTRY.name, kernel.version);
    }
    let mut experiment = Experiment::parse("own_scheduler", EXPERIMENT)?;
    experiment.known = sched::Schedulers::default().with(&ENTRY);
    let report = lab::matrix::run(lab::plan::Plan::new(experiment)?, None, 1, &|_| ())?;
    for result in &report.results {
        println!("{:<14} {} reads in {}", result.spec.name, result.disk.reads, result.elapsed);
    }
    Ok(())
}
