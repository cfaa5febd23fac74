//! Tables in documents that are made from the code: `UPDATE_EXPECT=1 cargo test` writes them anew.

use expect_test::expect_file;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Tests run side by side, and two blocks may stand in one document.
static WRITING: Mutex<()> = Mutex::new(());

/// Asserts that the block called `name` of a document of the workspace reads like this. A block
/// stands between `<!-- generated: NAME -->` and `<!-- end -->`.
///
/// # Panics
///
/// If it does not, or there is no such document or block.
pub fn assert_block(document: &str, name: &str, block: &str) {
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let file = expect_file![path];
    let made = with_block(&file.data(), name, block);
    file.assert_eq(&made.unwrap_or_else(|| panic!("{document} has no block \"{name}\"")));
}

/// A document with another block in the place of an old one.
fn with_block(document: &str, name: &str, block: &str) -> Option<String> {
    let begin = format!("<!-- generated: {name} -->\n");
    let (before, rest) = document.split_once(&begin)?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}{begin}{block}<!-- end -->{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_block_of_that_name_changes() {
        let one = "a\n<!-- generated: x -->\n1\n<!-- end -->\nb\n";
        let two = "<!-- generated: y -->\n<!-- end -->\n";
        let made = with_block(&format!("{one}{two}"), "x", "2\n");
        assert_eq!(made, Some(format!("{}{two}", one.replace('1', "2"))));
        assert_eq!(with_block(one, "y", ""), None);
    }
}
