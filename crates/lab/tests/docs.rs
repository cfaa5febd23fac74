//! Tables of the documentation are those of the code; `UPDATE_DOCS=1` writes them anew.

use lab::experiment::keys;
use lab::figure;
use std::path::Path;

/// The document with a block between its markers made anew.
fn with_block(document: &str, name: &str, block: &str) -> String {
    let begin = format!("<!-- generated: {name} -->\n");
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (_, after) = rest.split_once("<!-- end -->").expect("a generated block ends");
    format!("{before}{begin}{block}<!-- end -->{after}")
}

#[test]
fn tables_of_the_documentation_are_those_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments.md");
    let document = std::fs::read_to_string(&path).expect("the document is there");
    let blocks = keys::markdown().into_iter().chain([figure::markdown()]);
    let made = blocks.fold(document.clone(), |text, (name, block)| with_block(&text, name, &block));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &made).expect("the document can be written");
    }
    assert!(made == document, "docs/experiments.md is not as the code has it: UPDATE_DOCS=1");
}
