//! How good are the tests of the schedulers and of what throttles? Small mistakes are planted in
//! the files that are named, all at once, each behind a switch; the tests are built once and run
//! with each in turn. `cargo mutants` builds anew for each mistake, which takes a minute where this
//! takes a second.
//!
//! `cargo run --release --manifest-path mutants/Cargo.toml -- [--every N] [--from N] [--within S]
//! [--without TEST] [--like TEXT] PATH…`
//!
//! `equivalent.txt` lists those that no input can show. They are not run, and counted apart.

mod equivalent;
mod plant;
mod tests;

use plant::Mutant;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tests::{Fate, Tests};

/// A crate in which mistakes can be planted.
struct Tested {
    /// Its sources; the switch goes into `lib.rs` there.
    sources: &'static str,
    /// The packages that have its tests.
    packages: &'static [&'static str],
    /// The tests besides those within the packages.
    tests: &'static [&'static str],
}

/// The crates.
const CRATES: [Tested; 2] = [
    Tested {
        sources: "crates/sched/src",
        packages: &["paternoster-sched"],
        tests: &[
            "loads",
            "scripts",
            "process_tunables",
            "cooperators",
            "kyber",
            "heed",
            "contract",
            "by_process",
            "starvation",
            "guarantees",
        ],
    },
    Tested {
        sources: "crates/block/src",
        packages: &["paternoster-block", "paternoster-sched"],
        tests: &["loads", "wbt", "single_queue", "multi_queue", "replay"],
    },
];

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
    let Arguments { every, from, within, without, like, paths } = arguments()?;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let tree = root.join("target/mutants");
    let files = rust_files(&root, &paths)?;
    let tested = crate_of(&files)?;
    copy_workspace(&root, &tree, tested, &files)?;
    let (mutants, left_out, tests) = build(&root, &tree, tested, &files)?;
    let is_asked = |mutant: &&Mutant| like.is_empty() || like.iter().any(|it| mutant.is_like(it));
    let chosen = mutants.iter().filter(is_asked).skip(from).step_by(every);
    let equivalent = equivalent::numbers(&root, &files, &mutants)?;
    let (spared, chosen): (Vec<_>, Vec<_>) =
        chosen.partition(|mutant| equivalent.contains(&mutant.number));
    println!(
        "{} mutants, {left_out} more do not compile; {} are run, {} equivalent ones are not",
        mutants.len(),
        chosen.len(),
        spared.len()
    );
    let tests = Tests::of(&tests, within, &without)?;
    println!("{}", tests.describe());
    let begun = Instant::now();
    let (missed, endless) = run_all(&chosen, &tests)?;
    let caught = chosen.len() - missed;
    let percent = 100.0 * caught as f64 / chosen.len().max(1) as f64;
    let (all, spared, time) = (chosen.len(), spared.len(), begun.elapsed());
    println!(
        "{caught} of {all} caught ({percent:.1} %), {endless} of them never end; {spared} more are \
         equivalent; {time:?}"
    );
    Ok(())
}

/// Runs the tests with each mutant, as many at once as there are cores; how many were missed, and
/// with how many a test did not end.
fn run_all(chosen: &[&Mutant], tests: &Tests) -> Outcome<(usize, usize)> {
    let [next, missed, endless] = [(); 3].map(|()| AtomicUsize::new(0));
    let work = || -> Result<(), String> {
        while let Some(mutant) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Mutant { number, file, line, what } = mutant;
            match tests.fate(*number).map_err(|error| error.to_string())? {
                Fate::Caught => {}
                Fate::Missed => {
                    missed.fetch_add(1, Ordering::Relaxed);
                    println!("missed: {file}:{line} {what}");
                }
                Fate::Endless => {
                    endless.fetch_add(1, Ordering::Relaxed);
                    println!("goes on for ever: {file}:{line} {what}");
                }
            }
        }
        Ok(())
    };
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
    })?;
    Ok((missed.into_inner(), endless.into_inner()))
}

/// What is asked for.
struct Arguments {
    /// One of so many mutants is run,
    every: usize,
    /// from this one on.
    from: usize,
    /// Tests that take longer are left out.
    within: Duration,
    /// So are these: whole files of tests, or functions.
    without: Vec<String>,
    /// Only mutants whose descriptions contain one of these, if there are any.
    like: Vec<String>,
    paths: Vec<String>,
}

fn arguments() -> Outcome<Arguments> {
    let within = Duration::MAX;
    let [without, like, paths] = [(); 3].map(|()| Vec::new());
    let mut asked = Arguments { every: 1, from: 0, within, without, like, paths };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let texts = match word.as_str() {
            "--like" => Some(&mut asked.like),
            "--without" => Some(&mut asked.without),
            _ => None,
        };
        if let Some(texts) = texts {
            texts.push(words.next().ok_or_else(|| format!("{word} TEXT"))?);
            continue;
        }
        let mut number = || words.next().unwrap_or_default().parse().ok();
        match word.as_str() {
            "--every" => {
                asked.every = number().filter(|every| *every > 0).ok_or("--every N, from 1 on")?;
            }
            "--from" => asked.from = number().ok_or("--from N, from 0 on")?,
            "--within" => {
                let seconds = number().ok_or("--within S, in seconds")?;
                asked.within = Duration::from_secs(seconds as u64);
            }
            _ => asked.paths.push(word),
        }
    }
    if asked.paths.is_empty() {
        let sources: Vec<&str> = CRATES.iter().map(|tested| tested.sources).collect();
        return Err(format!("name files or directories of {}", sources.join(" or ")).into());
    }
    Ok(asked)
}

/// The crate that all the files are in.
fn crate_of(files: &[String]) -> Outcome<&'static Tested> {
    let has_all = |tested: &&Tested| files.iter().all(|file| file.starts_with(tested.sources));
    Ok(CRATES.iter().find(has_all).ok_or("the files shall be in one crate that has tests here")?)
}

/// The workspace without what was built in it and what will be planted. What is there already is
/// not touched, so that it is not built again; what the workspace has no more goes.
fn copy_workspace(root: &Path, tree: &Path, tested: &Tested, planted: &[String]) -> Outcome<()> {
    fs::create_dir_all(tree)?;
    for name in ["Cargo.toml", "Cargo.lock"] {
        write_new(&tree.join(name), &fs::read(root.join(name))?)?;
    }
    let mut skipped: BTreeSet<PathBuf> = planted.iter().map(|file| root.join(file)).collect();
    skipped.insert(root.join(tested.root_file()));
    for name in ["crates", "xtask", "experiments", "guests", "hosts", "models"] {
        copy_directory(&root.join(name), &tree.join(name), &skipped)?;
    }
    Ok(())
}

fn copy_directory(from: &Path, to: &Path, skipped: &BTreeSet<PathBuf>) -> Outcome<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let there = entry?;
        if !from.join(there.file_name()).exists() {
            match there.file_type()?.is_dir() {
                true => fs::remove_dir_all(there.path())?,
                false => fs::remove_file(there.path())?,
            }
        }
    }
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
    tested: &Tested,
    files: &[String],
) -> Outcome<(Vec<Mutant>, usize, Vec<PathBuf>)> {
    let root_file = tested.root_file();
    let text = fs::read_to_string(root.join(&root_file))?;
    write_new(&tree.join(&root_file), (text + SWITCH).as_bytes())?;
    let mut left_out = BTreeSet::new();
    for _ in 0..12 {
        let mut mutants = Vec::new();
        for file in files {
            let source = fs::read_to_string(root.join(file))?;
            let planted = plant::plant(file, &source, &left_out, &mut mutants)
                .map_err(|error| format!("{file}: {error}"))?;
            write_new(&tree.join(file), planted.as_bytes())?;
        }
        let (wrong, tests) = compile(tree, tested)?;
        if wrong.is_empty() {
            mutants.retain(|mutant| !left_out.contains(&mutant.number));
            return Ok((mutants, left_out.len(), tests));
        }
        left_out.extend(wrong);
    }
    Err("it does not compile, whatever is left out".into())
}

/// The tests, or the mutants on whose lines the compiler found mistakes.
fn compile(tree: &Path, tested: &Tested) -> Outcome<(BTreeSet<u32>, Vec<PathBuf>)> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(tree).args(["test", "--no-run", "--lib"]);
    tested.packages.iter().for_each(|package| {
        cargo.args(["-p", package]);
    });
    tested.tests.iter().for_each(|test| {
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

impl Tested {
    fn root_file(&self) -> String {
        format!("{}/lib.rs", self.sources)
    }
}
