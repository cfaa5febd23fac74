//! Tests that need what a host may lack. A test that cannot run here is ignored, with the reason;
//! the last line of its target says how many tests need what, and how to get it.
//!
//! A target of such tests has `harness = false` and names its tests in [`tests!`], by what they
//! need. A function that is not named there is dead code, which the compiler reports.

pub mod document;
pub mod needs;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Completion, Trial};

pub use needs::Need;

/// A test and what it needs.
#[derive(Clone)]
pub struct Test {
    name: String,
    needs: Vec<Need>,
    body: fn(),
}

impl Test {
    /// A test of a module of a test target.
    pub fn new(module: &str, name: &str, needs: &[Need], body: fn()) -> Test {
        let name = match module.split_once("::") {
            Some((_, inner)) => format!("{inner}::{name}"),
            None => name.to_string(),
        };
        Test { name, needs: needs.to_vec(), body }
    }
}

/// The tests of a module, by what they need: `tests![[KERNEL, FIO] => one, two; [] => three]`.
#[macro_export]
macro_rules! tests {
    ($($needs:expr => $($body:ident),+ $(,)?);+ $(;)?) => {{
        let mut tests = Vec::new();
        $(
            let needs: Vec<$crate::Need> = Vec::from($needs);
            $(tests.push($crate::Test::new(module_path!(), stringify!($body), &needs, $body));)+
        )+
        tests
    }};
}

/// How many tests did not run, by what they lack and how to get it.
type NotRun = BTreeMap<(&'static str, &'static str), usize>;

/// Runs tests as the command line says, and says what was not run.
pub fn run(tests: Vec<Test>) -> ExitCode {
    let mut checked = BTreeMap::new();
    let not_run = Arc::new(Mutex::new(NotRun::new()));
    let mut trial = |test: Test| {
        let mut lacking = test.needs;
        lacking.retain(|need| !*checked.entry(need.name).or_insert_with(need.is_there));
        let (body, not_run) = (test.body, not_run.clone());
        Trial::ignorable_test(test.name, move || {
            if lacking.is_empty() {
                body();
                return Ok(Completion::Completed);
            }
            let mut counts = not_run.lock().expect("nothing panics with it");
            lacking.iter().for_each(|it| *counts.entry((it.name, it.how)).or_default() += 1);
            let reasons: Vec<String> = lacking.iter().map(|it| it.to_string()).collect();
            Ok(Completion::ignored_with(format!("needs {}", reasons.join(", "))))
        })
    };
    let trials = tests.into_iter().map(&mut trial).collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    let summary = summary(&not_run.lock().expect("no test is left"));
    if !summary.is_empty() {
        println!("{summary}\n");
    }
    conclusion.exit_code()
}

/// The last line: empty if everything was run.
fn summary(not_run: &NotRun) -> String {
    let parts: Vec<String> = not_run
        .iter()
        .map(|((name, how), count)| match count {
            1 => format!("1 needs {name} ({how})"),
            _ => format!("{count} need {name} ({how})"),
        })
        .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("not run: {}", parts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Need = Need { name: "nothing", how: "by waiting", is_there: || false };

    fn a_test() {
        assert!(!(NOTHING.is_there)());
    }

    #[test]
    fn tests_are_named_by_their_module_and_know_what_they_need() {
        let tests = tests![[NOTHING, needs::FIO] => a_test; [] => a_test];
        let seen: Vec<_> = tests.iter().map(|test| (&*test.name, test.needs.len())).collect();
        assert_eq!(seen, [("tests::a_test", 2), ("tests::a_test", 0)]);
        tests.iter().for_each(|test| (test.body)());
    }

    #[test]
    fn the_last_line_counts_by_what_is_lacking() {
        let mut not_run = NotRun::new();
        assert_eq!(summary(&not_run), "");
        not_run.insert(("a kernel", "paternoster linux build"), 12);
        not_run.insert(("fio", "apt-get install fio"), 1);
        let expected = "not run: 12 need a kernel (paternoster linux build), \
                        1 needs fio (apt-get install fio)";
        assert_eq!(summary(&not_run), expected);
    }
}
