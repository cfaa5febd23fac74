//! sysbench's threads of the report of 2009 on machines that differ in what is not known of that
//! one: HZ, how far the drive looks ahead, what a block costs the processor, and how evenly tasks
//! wake.
//!
//! `sysbench_sweep [SEEDS]` prints the table of docs/trust.md: what was published, what comes out
//! of the models as they are (the mean of so many seeds), and the least, the middle and the most of
//! all machines.

use base::Hz;
use block::Kernel;
use device::Model;
use lab::metrics::CallKind;
use lab::plan::Plan;
use lab::{Experiment, matrix};
use machine::Host;
use std::error::Error;

/// Threads, and MB/s as published, of CFQ.
const PUBLISHED: [(u32, f64); 5] = [(1, 77.8), (3, 32.4), (5, 43.3), (7, 55.8), (9, 58.5)];
const HZ: [u16; 2] = [250, 1000];
/// Sectors that the drive reads ahead.
const LOOK_AHEAD: [u32; 4] = [128, 256, 512, 1024];
/// Copying a page of 4 KiB, in microseconds: from a cache, from memory, and while others use that.
const COPY: [f64; 3] = [0.75, 1.5, 5.0];
/// How much longer than at best waking a task takes, in microseconds.
const SPREAD: [u32; 3] = [5, 26, 100];

const MODEL: &str = include_str!("../../../models/hdd-sas-2009.toml");
const HOST: &str = include_str!("../../../hosts/host-2009.toml");

/// A machine as it may have been.
struct Machine {
    kernel: &'static Kernel,
    model: Model,
    host: Host,
}

fn main() -> Result<(), Box<dyn Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(5), |it| it.parse())?;
    let mut all = Vec::new();
    for machine in machines()? {
        let mut rates = Vec::new();
        for (threads, _) in PUBLISHED {
            rates.push(bandwidth(threads, 1, Some(&machine))?);
        }
        all.push(rates);
    }
    println!("| threads | published | here | lowest | median | highest | inside |");
    println!("|---|---|---|---|---|---|---|");
    for (index, (threads, published)) in PUBLISHED.into_iter().enumerate() {
        let here = bandwidth(threads, seeds, None)?;
        let mut rates: Vec<f64> = all.iter().map(|it| it[index]).collect();
        rates.sort_by(f64::total_cmp);
        let (lowest, highest) = (rates[0], rates[rates.len() - 1]);
        let median = (rates[(rates.len() - 1) / 2] + rates[rates.len() / 2]) / 2.0;
        let inside = match (lowest..=highest).contains(&published) {
            true => "yes".to_string(),
            false if published < lowest => format!("no, {:.1} % below", off(published, lowest)),
            false => format!("no, {:.1} % above", off(published, highest)),
        };
        println!(
            "| {threads} | {published} | {here:.1} | {lowest:.1} | {median:.1} | {highest:.1} | \
             {inside} |"
        );
    }
    let is_slowest = |it: &&Vec<f64>| it.iter().all(|rate| *rate >= it[1]);
    let recovers = |it: &&Vec<f64>| it[1..].windows(2).all(|pair| pair[0] <= pair[1]);
    println!(
        "\n{} machines; three threads are slowest on {}, and from there on more are faster on {}.",
        all.len(),
        all.iter().filter(is_slowest).count(),
        all.iter().filter(recovers).count()
    );
    Ok(())
}

fn off(value: f64, of: f64) -> f64 {
    100.0 * (value / of - 1.0).abs()
}

/// The mean bandwidth in MB/s, on the experiment's machine or another one.
fn bandwidth(threads: u32, seeds: u64, on: Option<&Machine>) -> Result<f64, Box<dyn Error>> {
    let text = format!(
        "model = \"hdd-sas-2009\"\nhost = \"host-2009\"\nkernel = \"2.6.28\"\n\
         schedulers = [\"cfq\"]\nseeds = {seeds}\n[[job]]\nname = \"sysbench\"\n\
         run = \"sysbench --test=fileio --file-test-mode=seqrd --num-threads={threads} run\"\n"
    );
    let mut plan = Plan::new(Experiment::parse("sysbench_sweep", &text)?)?;
    for row in &mut plan.rows {
        if let Some(machine) = on {
            row.spec.kernel = machine.kernel;
            row.model = machine.model.clone();
            row.host = machine.host.clone();
        }
    }
    let results = matrix::run(plan, None, 2, &|_| ())?.results;
    let rate = |run: &lab::RunResult| run.jobs[0].call(CallKind::Read).bw_bytes / 1e6;
    Ok(results.iter().map(rate).sum::<f64>() / results.len() as f64)
}

/// Every combination of what is not known.
fn machines() -> Result<Vec<Machine>, Box<dyn Error>> {
    let known = Kernel::named("2.6.28").ok_or("2.6.28 is not modelled")?;
    let mut machines = Vec::new();
    for hz in HZ {
        let hz = Hz::new(hz).ok_or("HZ is not zero")?;
        let kernel = known.with_hz(hz);
        for sectors in LOOK_AHEAD {
            let text = with(MODEL, "maximum", &sectors.to_string())?;
            let model = Model::from_text("hdd-sas-2009", &text)?;
            for (copy, spread) in COPY.iter().flat_map(|copy| SPREAD.map(|it| (copy, it))) {
                let text = with(HOST, "copy", &copy.to_string())?;
                let text = with(&text, "switch_spread", &spread.to_string())?;
                let host = Host::parse("host-2009", &text)?;
                machines.push(Machine { kernel, model: model.clone(), host });
            }
        }
    }
    Ok(machines)
}

/// A model or host with another value of one parameter.
fn with(text: &str, name: &str, value: &str) -> Result<String, Box<dyn Error>> {
    let is_it = |line: &&str| line.split_whitespace().next() == Some(name);
    let line = text.lines().find(is_it).ok_or_else(|| format!("no parameter {name}"))?;
    let (before, rest) = line.split_once("value = ").ok_or("a parameter without a value")?;
    let (_, after) = rest.split_once(',').ok_or("a value without a source")?;
    Ok(text.replace(line, &format!("{before}value = {value},{after}")))
}
