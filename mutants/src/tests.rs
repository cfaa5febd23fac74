//! The tests, one function at a time. Those that are quick run first, and before them the one that
//! caught something last: mistakes of one file are mostly noticed by the same test.

use crate::Outcome;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A test is taken to go on for ever after as much processor time as so many times the time that it
/// takes without a mistake, of all cores.
const PATIENCE: u64 = 5;
/// And at least after so many seconds.
const LEAST_PATIENCE: u64 = 30;
/// So much longer in real time, for a test that waits for ever.
const LONGEST_WAIT: u64 = 20;
/// SIGXCPU, the signal at the end of the processor time.
const OUT_OF_TIME: i32 = 24;

/// What became of a mutant.
pub enum Fate {
    Caught,
    /// A test did not end, which is noticed as well.
    Endless,
    Missed,
}

/// A function of a test that was built.
struct Test {
    path: PathBuf,
    name: String,
    /// What it takes without a mistake.
    takes: Duration,
}

/// All of them.
pub struct Tests {
    all: Vec<Test>,
    /// Places in the list, in the order in which they are to run.
    order: Mutex<Vec<usize>>,
}

impl Tests {
    /// The functions of tests that were built, but for those that are named and those that take
    /// longer than a limit.
    pub fn of(built: &[PathBuf], within: Duration, without: &[String]) -> Outcome<Tests> {
        let mut all = Vec::new();
        for path in built {
            for name in names(path)? {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                if without.iter().any(|it| *it == name || file.starts_with(it.as_str())) {
                    println!("left out: {name}");
                    continue;
                }
                match Test::of(path.clone(), name.clone(), within)? {
                    Some(test) => all.push(test),
                    None => println!("takes too long: {name}"),
                }
            }
        }
        all.sort_by_key(|test| test.takes);
        let order = Mutex::new((0..all.len()).collect());
        Ok(Tests { all, order })
    }

    /// How many there are, and what they take one after the other.
    pub fn describe(&self) -> String {
        let time: Duration = self.all.iter().map(|test| test.takes).sum();
        format!("{} tests of {} s", self.all.len(), time.as_secs())
    }

    /// Runs them with a mutant.
    pub fn fate(&self, number: u32) -> Outcome<Fate> {
        let order = self.order.lock().expect("nobody panics").clone();
        for at in order {
            let status = self.all[at].run(number)?;
            if status.success() {
                continue;
            }
            let mut order = self.order.lock().expect("nobody panics");
            order.retain(|other| *other != at);
            order.insert(0, at);
            return Ok(if is_out_of_time(status) { Fate::Endless } else { Fate::Caught });
        }
        Ok(Fate::Missed)
    }
}

/// A test took more time than it may.
fn is_out_of_time(status: ExitStatus) -> bool {
    // 124 is what `timeout` says.
    status.code() == Some(124) || status.signal() == Some(OUT_OF_TIME)
}

/// The functions of a test.
fn names(path: &Path) -> Outcome<Vec<String>> {
    let listed = Command::new(path).args(["--list", "--format=terse"]).output()?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(listed.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect())
}

impl Test {
    /// Runs it without a mistake; none if it takes longer than a limit.
    fn of(path: PathBuf, name: String, within: Duration) -> Outcome<Option<Test>> {
        let begun = Instant::now();
        let test = Test { path, name, takes: within.min(Duration::from_secs(3_600)) };
        let status = test.run(0)?;
        let takes = begun.elapsed();
        if is_out_of_time(status) || takes > within {
            return Ok(None);
        }
        if !status.success() {
            return Err(format!("{} fails without a mistake", test.name).into());
        }
        Ok(Some(Test { takes, ..test }))
    }

    fn run(&self, number: u32) -> Outcome<ExitStatus> {
        let patience = match number {
            0 => self.takes.as_secs(),
            _ => (self.takes.as_secs() * PATIENCE).max(LEAST_PATIENCE),
        };
        let limits = format!("ulimit -v 4000000; ulimit -S -t {patience}");
        let longest = LONGEST_WAIT * patience;
        let script = format!("{limits}; exec timeout {longest} \"$0\" -q --exact \"$1\"");
        let status = Command::new("sh")
            .args(["-c", &script])
            .arg(&self.path)
            .arg(&self.name)
            .env("MUTANT", number.to_string())
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(status)
    }
}
