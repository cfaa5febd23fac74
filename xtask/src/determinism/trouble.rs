//! What a run must not notice: busy cores, and being stopped at any moment.

use std::fs;
use std::io::{self, Read};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Waits for `child` while all cores are busy, and it or one of its children is stopped and
/// continued at random.
pub fn wait_with_trouble(child: &mut Child) -> io::Result<ExitStatus> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| spin(&over));
        }
        let status = loop {
            match child.try_wait() {
                Ok(None) => stop_and_continue(child.id()),
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(error),
            }
        };
        over.store(true, Ordering::Relaxed);
        status
    })
}

fn spin(over: &AtomicBool) {
    let mut number = 0u64;
    while !over.load(Ordering::Relaxed) {
        for _ in 0..10_000 {
            number = std::hint::black_box(number.wrapping_mul(3).wrapping_add(1));
        }
    }
}

fn stop_and_continue(process: u32) {
    pause(30);
    let mut victims = children(process);
    victims.push(process);
    let victim = victims[chance(victims.len() as u64) as usize];
    let victim = i32::try_from(victim).ok().and_then(Pid::from_raw);
    let victim = victim.expect("a process id is positive");
    // It may have ended meanwhile.
    if kill_process(victim, Signal::STOP).is_ok() {
        pause(10);
        let _ = kill_process(victim, Signal::CONT);
    }
}

/// The processes that `parent` has started.
fn children(parent: u32) -> Vec<u32> {
    let file = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// A pause of some milliseconds at most.
fn pause(at_most: u64) {
    std::thread::sleep(Duration::from_micros(chance(1000 * at_most)));
}

/// A number below `limit`, by chance: no two runs are disturbed alike.
fn chance(limit: u64) -> u64 {
    let mut bytes = [0; 8];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.expect("the host has chance");
    u64::from_ne_bytes(bytes) % limit
}
