//! Every script in `tests/scripts` does what it says. `UPDATE_EXPECT=1 cargo test` writes what
//! happens into the scripts instead; look at the difference before you keep it.
//!
//! Those of BFQ set `nr_requests` twice: some kernels tell it of a change before they make it.

mod harness;

use expect_test::expect_file;
use harness::script;
use std::fs;
use std::path::PathBuf;

#[test]
fn scripts_happen_as_written() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are scripts");
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        let happened = script::run(path, &text).unwrap_or_else(|difference| panic!("{difference}"));
        expect_file![path].assert_eq(&happened);
    }
}
