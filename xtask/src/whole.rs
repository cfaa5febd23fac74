//! Runs experiments made up at random in the simulator: each has to end, without a panic.
//!
//! `whole [COUNT [SEED [FIRST]]]`: so many experiments of any kind, with schedulers that check
//! themselves. Each process has some of them, so that one that is aborted, refused or does not end
//! is known by its number; the others go on. Exit code 1 if there is one.

use crate::Outcome;
use lab::fidelity::random::whole;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// No run takes longer, on a busy machine either.
const PATIENCE: Duration = Duration::from_secs(120);
/// Experiments of one process.
const BATCH: u64 = 200;

/// Runs the command.
pub fn main(mut arguments: Vec<String>) -> Outcome {
    let is_child = arguments.first().is_some_and(|it| it == "--these");
    arguments.drain(..usize::from(is_child));
    let arguments: Vec<u64> = arguments.iter().map(|it| it.parse()).collect::<Result<_, _>>()?;
    let of = |place: usize, otherwise| arguments.get(place).copied().unwrap_or(otherwise);
    let (count, seed, first) = (of(0, 10_000), of(1, 1), of(2, 0));
    if is_child {
        return these(seed, first..first + count);
    }
    let (next, failed) = (AtomicU64::new(first), AtomicU64::new(0));
    let work = || loop {
        let from = next.fetch_add(BATCH, Ordering::Relaxed);
        if from >= first + count {
            return;
        }
        let to = (from + BATCH).min(first + count);
        failed.fetch_add(batch(seed, from, to), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner();
    println!("{count} experiments of seed {seed}: {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs experiments in this process. Before each its number is printed.
fn these(seed: u64, numbers: std::ops::Range<u64>) -> Outcome {
    for number in numbers {
        println!("{number}");
        std::io::stdout().flush()?;
        whole::run(seed, number)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How many of a batch fail. Each that does takes its process along, and the next one goes on.
fn batch(seed: u64, mut from: u64, to: u64) -> u64 {
    let mut failed = 0;
    while from < to {
        let reached = match process(seed, from, to) {
            Ok(()) => return failed,
            Err((reached, why)) => {
                println!("number {reached} of seed {seed}: {why}");
                reached
            }
        };
        failed += 1;
        from = reached + 1;
    }
    failed
}

/// Runs a batch in a process of its own; otherwise which experiment it reached, and what happened.
fn process(seed: u64, from: u64, to: u64) -> Result<(), (u64, String)> {
    let program = std::env::current_exe().expect("a program knows its file");
    let numbers = [to - from, seed, from].map(|it| it.to_string());
    let command = Command::new(program)
        .args(["whole", "--these"])
        .args(numbers)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child: Child = command.map_err(|error| (from, error.to_string()))?;
    let (sender, lines) = channel();
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    std::thread::spawn(move || {
        output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let mut reached = from;
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => reached = line.parse().unwrap_or(reached),
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err((reached, format!("not over after {PATIENCE:?}")));
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err((reached, status.to_string())),
        Err(error) => Err((reached, error.to_string())),
    }
}
