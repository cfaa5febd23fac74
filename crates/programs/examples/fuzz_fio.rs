//! Mutated fio job files and command lines, as many as wanted: none may make the parser panic.
//!
//!     cargo run --release -p paternoster-programs --example fuzz_fio -- [INPUTS [FIRST SEED]]

use programs::fio::fuzz::fuzz_once;

fn main() {
    let number = |n| std::env::args().nth(n).map(|arg| arg.parse().expect("a number"));
    let (inputs, first): (u64, u64) = (number(1).unwrap_or(1_000_000), number(2).unwrap_or(0));
    let accepted = (first..first + inputs).filter(|seed| fuzz_once(*seed).is_ok()).count();
    println!("{inputs} inputs, {accepted} of them accepted, no panic");
}
