//! The tree is tidy.

use std::process::Command;

#[test]
fn nothing_is_there_that_a_check_complains_about() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["tidy", root]).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
}
