//! Our dd against the installed one: the same operands, the same words.

#[path = "../../machine/tests/common/mod.rs"]
mod common;

use common::{checked, command, setup};
use programs::{CommandError, parse};
use std::process::{Command, Stdio};
use testing::needs::DD;

/// Runs the installed dd in the C locale.
fn installed(operands: &[&str]) -> Vec<String> {
    let mut dd = Command::new("dd");
    let output = dd.args(operands).env("LC_ALL", "C").stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().map(str::to_string).collect()
}

/// What our dd says: when it refuses, or at the end.
fn ours(operands: &[&str]) -> Vec<String> {
    match parse(&format!("dd {}", operands.join(" "))) {
        Err(CommandError::Refused(message)) => message.lines().map(str::to_string).collect(),
        Err(other) => panic!("{other}"),
        Ok(_) => {
            let mut setup = setup("6.18", "none");
            setup.jobs.push(command(&format!("dd {}", operands.join(" "))));
            checked(setup).0.jobs[0].messages.clone()
        }
    }
}

/// The closing line without what depends on time.
fn without_speed(lines: Vec<String>) -> Vec<String> {
    lines
        .into_iter()
        .map(|line| line.split(" copied,").next().unwrap_or_default().to_string())
        .collect()
}

fn the_words_are_those_of_the_installed_dd() {
    // A count first, so that nothing that turns out to be accepted runs for ever.
    let zero_to_null = ["if=/dev/zero", "of=/dev/null", "count=0"];
    let cases: [&[&str]; 42] = [
        &["oflags=dsync"],
        &["bs=1z"],
        &["count="],
        &["foo"],
        &["bs=0"],
        &["count=-1"],
        &["conv=foo"],
        &["conv=sync,"],
        &["iflag=foo"],
        &["oflag=direct,foo"],
        &["oflag=fullblock"],
        &["iflag=binary"],
        &["status=x"],
        &["--foo"],
        &["-x"],
        &["bs=99999999999999999999"],
        &["bs=9223372036854775807"],
        &["conv=excl,nocreat"],
        &["conv=lcase,ucase"],
        &["conv=ebcdic,ibm"],
        &["iflag=direct,nocache"],
        &["count=2x3x4"],
        &["skip=1KiBB"],
        &["count=3"],
        &["bs=1M", "count=2"],
        &["bs=1kB", "count=1"],
        &["bs=1000", "count=1500B"],
        &["bs=512", "count=1KB"],
        &["bs=512", "count=5Bx2"],
        &["count=2", "bs=1000", "iflag=count_bytes"],
        &["bs=3G", "count=1"],
        &["ibs=3", "obs=7", "count=10"],
        &["ibs=1M", "obs=1k", "count=1"],
        &["ibs=1000", "obs=512", "count=3"],
        &["count=1", "count=2"],
        &["count=0"],
        &["count=1", "status=none"],
        &["count=1", "status=noxfer"],
        &["count=1", "conv=fsync"],
        &["count=1", "conv=fdatasync"],
        &["count=1", "conv=excl"],
        &["count=1", "iflag=direct"],
    ];
    for case in cases {
        let operands: Vec<&str> = zero_to_null.iter().chain(case).copied().collect();
        let expected = installed(&operands);
        assert_eq!(without_speed(ours(&operands)), without_speed(expected), "{case:?}");
    }
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [DD] => the_words_are_those_of_the_installed_dd,
    ])
}
