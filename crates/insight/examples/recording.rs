//! What a recording tells: the layers of its requests, and the tables of `btt`.
//!
//!     cargo run --release -p paternoster-insight --example recording -- DIR/sda

use insight::phases::Phases;
use insight::recorded;
use insight::requests::Summary;
use std::process::ExitCode;

fn main() -> ExitCode {
    for path in std::env::args().skip(1) {
        if let Err(error) = tell(&path) {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn tell(path: &str) -> Result<(), trace::Error> {
    let mut recording = recorded::open(path.as_ref(), None)?;
    let (mut summary, mut phases) = (Summary::default(), Phases::default());
    let mut longest = None;
    let mut guesses = 0;
    loop {
        let goes_on = recording.read_some(|told| phases.hear(told))?;
        for life in recording.lives() {
            summary.see(&life);
            guesses += u64::from(life.guess.is_some());
            let is_longer =
                longest.as_ref().is_none_or(|it: &insight::Life| life.total() > it.total());
            if is_longer {
                longest = Some(life);
            }
        }
        if !goes_on {
            break;
        }
    }
    println!("{} requests, {} of which some time is a guess", summary.requests, guesses);
    for (layer, part) in summary.layers() {
        let percent = 100.0 * part.time.as_nanos() as f64 / summary.total.as_nanos() as f64;
        let (layer, longest) = (layer.name(), part.longest.to_string());
        println!("{layer:<22} {percent:>7.3} %  {:>9} requests, at most {longest}", part.requests);
    }
    println!("\n{:?}", recording.stream().misfits());
    println!("lost records {}", recording.source().lost());
    println!("the longest: {longest:#?}\n\n{phases}");
    Ok(())
}
