//! How good are the tests of the schedulers? Small mistakes are planted in the files that are
//! named, all at once, each behind a switch; the tests are built once and run with each in turn.
//! `cargo mutants` builds anew for each mistake, which takes a minute where this takes a second.
//!
//! `cargo run --release --manifest-path mutants/Cargo.toml -- [--every N] PATH…`

mod plant;

use plant::Mutant;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// What the tests of the crate are; those that are quick first.
const TESTS: [&str; 7] = [
    "scripts",
    "process_tunables",
    "cooperators",
    "contract",
    "by_process",
    "starvation",
    "guarantees",
];
/// Seconds of processor time after which a test is taken to go on for ever. How busy the machine is
/// does not matter.
const PATIENCE: u32 = 300;
/// Seconds of real time, for a test that waits for ever.
const LONGEST_WAIT: u32 = 20 * PATIENCE;
/// SIGXCPU, the signal at the end of the processor time.
const OUT_OF_TIME: i32 = 24;

/// Where the switch goes.
const LIBRARY: &str = "crates/sched/src/lib.rs";
/// The switch, put into the crate that is mutated.
const SWITCH: &str = "
#[doc(hidden)]
#[allow(missing_docs)]
pub mod planted {
    extern crate std;
    pub fn on(number: u32) -> bool {
        static WHICH: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        let read = || std::env::var(\"MUTANT\").ok()?.parse().ok();
        *WHICH.get_or_init(|| read().unwrap_or(0)) == number
    }
}
";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Outcome<()> {
    let (every, paths) = arguments()?;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let tree = root.join("target/mutants");
    let files = rust_files(&root, &paths)?;
    copy_workspace(&root, &tree, &files)?;
    let (mutants, left_out, tests) = build(&root, &tree, &files)?;
    let chosen: Vec<&Mutant> = mutants.iter().step_by(every).collect();
    println!("{} mutants, {left_out} more do not compile; {} are run", mutants.len(), chosen.len());
    let begun = Instant::now();
    let (mut missed, mut endless) = (0, 0);
    for mutant in &chosen {
        let Mutant { file, line, what, .. } = mutant;
        match fate(mutant, &tests)? {
            Fate::Caught => {}
            Fate::Missed => {
                missed += 1;
                println!("missed: {file}:{line} {what}");
            }
            Fate::Endless => {
                endless += 1;
                println!("goes on for ever: {file}:{line} {what}");
            }
        }
    }
    let caught = chosen.len() - missed;
    let percent = 100.0 * caught as f64 / chosen.len().max(1) as f64;
    let (all, time) = (chosen.len(), begun.elapsed());
    println!("{caught} of {all} caught ({percent:.1} %), {endless} of them never end; {time:?}");
    Ok(())
}

fn arguments() -> Outcome<(usize, Vec<String>)> {
    let mut every = 1;
    let mut paths = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--every" {
            let number = words.next().unwrap_or_default();
            every = number.parse().ok().filter(|every| *every > 0).ok_or("--every N, from 1 on")?;
        } else {
            paths.push(word);
        }
    }
    if paths.is_empty() {
        return Err("name files or directories of crates/sched/src".into());
    }
    Ok((every, paths))
}

/// The workspace without what was built in it and what will be planted. What is there already is
/// not touched, so that it is not built again.
fn copy_workspace(root: &Path, tree: &Path, planted: &[String]) -> Outcome<()> {
    fs::create_dir_all(tree)?;
    for name in ["Cargo.toml", "Cargo.lock"] {
        write_new(&tree.join(name), &fs::read(root.join(name))?)?;
    }
    let mut skipped: BTreeSet<PathBuf> = planted.iter().map(|file| root.join(file)).collect();
    skipped.insert(root.join(LIBRARY));
    for name in ["crates", "xtask", "experiments", "guests", "hosts", "models"] {
        copy_directory(&root.join(name), &tree.join(name), &skipped)?;
    }
    Ok(())
}

fn copy_directory(from: &Path, to: &Path, skipped: &BTreeSet<PathBuf>) -> Outcome<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &target, skipped)?;
        } else if !skipped.contains(&entry.path()) {
            write_new(&target, &fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

fn write_new(path: &Path, contents: &[u8]) -> Outcome<()> {
    if fs::read(path).ok().is_none_or(|there| there != contents) {
        fs::write(path, contents)?;
    }
    Ok(())
}

/// The files below the paths, by their names from the root on.
fn rust_files(root: &Path, paths: &[String]) -> Outcome<Vec<String>> {
    let mut files = BTreeSet::new();
    let mut waiting: Vec<PathBuf> = paths.iter().map(|path| root.join(path)).collect();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                waiting.push(entry?.path());
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let path =
                path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
            files.insert(path.strip_prefix(root)?.display().to_string());
        }
    }
    if files.is_empty() {
        return Err(format!("no Rust files: {}", paths.join(" ")).into());
    }
    Ok(files.into_iter().collect())
}

/// Plants, and builds the tests; what does not compile is left out, and it is built again.
fn build(
    root: &Path,
    tree: &Path,
    files: &[String],
) -> Outcome<(Vec<Mutant>, usize, Vec<PathBuf>)> {
    let text = fs::read_to_string(root.join(LIBRARY))?;
    write_new(&tree.join(LIBRARY), (text + SWITCH).as_bytes())?;
    let mut left_out = BTreeSet::new();
    for _ in 0..12 {
        let mut mutants = Vec::new();
        for file in files {
            let source = fs::read_to_string(root.join(file))?;
            let planted = plant::plant(file, &source, &left_out, &mut mutants)
                .map_err(|error| format!("{file}: {error}"))?;
            write_new(&tree.join(file), planted.as_bytes())?;
        }
        let (wrong, tests) = compile(tree)?;
        if wrong.is_empty() {
            mutants.retain(|mutant| !left_out.contains(&mutant.number));
            return Ok((mutants, left_out.len(), tests));
        }
        left_out.extend(wrong);
    }
    Err("it does not compile, whatever is left out".into())
}

/// The tests, or the mutants on whose lines the compiler found mistakes.
fn compile(tree: &Path) -> Outcome<(BTreeSet<u32>, Vec<PathBuf>)> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(tree).args(["test", "--no-run", "-p", "paternoster-sched", "--lib"]);
    TESTS.iter().for_each(|test| {
        cargo.args(["--test", test]);
    });
    cargo.arg("--message-format=short").env("CARGO_TARGET_DIR", tree.join("target"));
    cargo.env("RUSTFLAGS", "--cap-lints=allow");
    let output = cargo.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut wrong = BTreeSet::new();
    for line in said.lines().filter(|line| line.contains(": error")) {
        let mut parts = line.split(':');
        let (Some(file), Some(Ok(number))) = (parts.next(), parts.next().map(str::parse)) else {
            continue;
        };
        wrong.extend(mutants_near(&fs::read_to_string(tree.join(file))?, number));
    }
    if wrong.is_empty() && !output.status.success() {
        return Err(said.into());
    }
    let built = |line: &str| Some(tree.join(line.split('(').nth(1)?.strip_suffix(')')?));
    let tests = said.lines().filter(|line| line.trim_start().starts_with("Executable"));
    Ok((wrong, tests.filter_map(built).collect()))
}

/// The mutants of a line, or else those of the nearest lines before it that have any.
fn mutants_near(text: &str, line: usize) -> Vec<u32> {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let on_line = |line: &&str| -> Vec<u32> {
        let parts = line.split("planted::on(").skip(1);
        parts.filter_map(|part| part.split(['u', ')']).next()?.parse().ok()).collect()
    };
    lines.iter().rev().map(on_line).find(|found| !found.is_empty()).unwrap_or_default()
}

/// What became of a mutant.
enum Fate {
    Caught,
    /// A test did not end, which is noticed as well.
    Endless,
    Missed,
}

fn fate(mutant: &Mutant, tests: &[PathBuf]) -> Outcome<Fate> {
    for test in tests {
        let limits = format!("ulimit -v 4000000; ulimit -S -t {PATIENCE}");
        let script = format!("{limits}; exec timeout {LONGEST_WAIT} \"$0\" -q");
        let status = Command::new("sh")
            .args(["-c", &script])
            .arg(test)
            .env("MUTANT", mutant.number.to_string())
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        match (status.code(), status.signal()) {
            (Some(0), _) => {}
            // What `timeout` says.
            (Some(124), _) | (_, Some(OUT_OF_TIME)) => return Ok(Fate::Endless),
            _ => return Ok(Fate::Caught),
        }
    }
    Ok(Fate::Missed)
}
