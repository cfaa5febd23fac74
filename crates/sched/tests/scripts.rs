//! Every script in `tests/scripts` does what it says. `UPDATE_SCRIPTS=1 cargo test` writes what
//! happens into the scripts instead; look at the difference before you keep it.

mod harness;

use harness::script;
use std::fs;
use std::path::PathBuf;

#[test]
fn scripts_happen_as_written() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let update = std::env::var_os("UPDATE_SCRIPTS").is_some();
    let mut differences = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        match script::run(path, &text) {
            Err(difference) => differences.push(difference),
            Ok(actual) if actual == text => {}
            Ok(actual) if update => fs::write(path, actual).unwrap(),
            Ok(actual) => differences.push(script::difference(path, &text, &actual)),
        }
    }
    assert!(!paths.is_empty(), "there are scripts");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
