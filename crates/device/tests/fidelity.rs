//! The calibration disk against its measured service times: the second half of the trace, to
//! which nothing was fitted.

use base::{Duration, Instant, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::Model;
use testing::needs::TRACES;

fn cheetah9lp_keeps_its_demerit_on_the_half_nothing_was_fitted_to() {
    let path = testing::needs::traces().join("block_csv/cheetah9LP.trace");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|it| panic!("{path:?}: {it}"));
    let mut device = Model::builtin("cheetah9lp").unwrap().build(1);
    let (mut now, mut completed) = (Instant::ZERO, Vec::new());
    let (mut measured, mut modelled) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let micros = |index: usize| fields[index].parse::<f64>().unwrap();
        let op = if fields[0] == "R" { CommandOp::Read } else { CommandOp::Write };
        let (sector, sectors) = (fields[2].parse().unwrap(), fields[3].parse().unwrap());
        while let Some(at) = device.next_event().filter(|at| *at <= now) {
            device.advance(at, &mut completed);
        }
        let start = now;
        let (sector, sectors) = (Sector(sector), Sectors(sectors));
        device.accept(now, Command { tag: Tag(0), op, sector, sectors, fua: false });
        while completed.is_empty() {
            now = device.next_event().unwrap();
            device.advance(now, &mut completed);
        }
        completed.clear();
        measured.push(micros(4) / 1e3);
        modelled.push(now.since(start).as_nanos() as f64 / 1e6);
        now += Duration::from_nanos((micros(5) * 1e3) as u64);
    }
    let demerit = demerit(measured.split_off(5000), modelled.split_off(5000));
    assert!(demerit <= 0.107, "demerit {demerit} ms, DiskSim's own is 0.107 ms");
}

/// Root mean square of the horizontal distance between two distributions.
fn demerit(mut measured: Vec<f64>, mut modelled: Vec<f64>) -> f64 {
    measured.sort_by(f64::total_cmp);
    modelled.sort_by(f64::total_cmp);
    let squares: f64 = measured.iter().zip(&modelled).map(|(a, b)| (a - b) * (a - b)).sum();
    (squares / measured.len() as f64).sqrt()
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [TRACES] => cheetah9lp_keeps_its_demerit_on_the_half_nothing_was_fitted_to,
    ])
}
