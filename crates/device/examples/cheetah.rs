//! scratch
use base::{Duration, Instant, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::Model;
fn main() {
    let m = match Model::find(&std::env::args().nth(1).unwrap()) {
        Ok(m) => m,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(2)
        }
    };
    let text = std::fs::read_to_string("/work/shared/traces/block_csv/cheetah9LP.trace").unwrap();
    let mut d = m.build(1);
    let mut now = Instant::ZERO;
    let mut done = vec![];
    for line in text.lines() {
        let f: Vec<&str> = line.split_whitespace().collect();
        let op = if f[0] == "R" { CommandOp::Read } else { CommandOp::Write };
        while d.next_event().is_some_and(|at| at <= now) {
            let at = d.next_event().unwrap();
            d.advance(at, &mut done);
        }
        let start = now;
        d.accept(
            now,
            Command {
                tag: Tag(0),
                op,
                sector: Sector(f[2].parse().unwrap()),
                sectors: Sectors(f[3].parse().unwrap()),
                fua: false,
            },
        );
        while done.is_empty() {
            now = d.next_event().unwrap();
            d.advance(now, &mut done);
        }
        done.clear();
        println!(
            "{} {} {} {} {:.4}",
            f[0],
            f[2],
            f[3],
            f[4].parse::<f64>().unwrap() / 1e3,
            now.since(start).as_nanos() as f64 / 1e6
        );
        now += Duration::from_nanos((f[5].parse::<f64>().unwrap() * 1000.0) as u64);
    }
}
