//! Public items that nobody names.

use super::Complaint;
use super::tree::{Tree, lines, words};
use std::collections::BTreeMap;

/// How a public item begins.
const KINDS: [&str; 8] = ["const fn", "async fn", "fn", "struct", "enum", "const", "trait", "type"];

/// The name of the public item that is defined in a line.
fn defined(code: &str) -> Option<&str> {
    let rest = code.trim_start().strip_prefix("pub ")?;
    let rest = KINDS.iter().find_map(|kind| rest.strip_prefix(kind)?.strip_prefix(' '))?;
    words(rest).next().filter(|name| rest.starts_with(name))
}

/// Public items whose name stands nowhere but where they are defined.
pub fn dead(tree: &Tree) -> Vec<Complaint> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, text) in tree.files("", ".rs") {
        for line in lines(path, text) {
            words(line.code).for_each(|word| *counts.entry(word).or_default() += 1);
        }
    }
    let mut found = Vec::new();
    for (path, text) in tree.files("crates/", ".rs").filter(|(path, _)| path.contains("/src/")) {
        for line in lines(path, text).filter(|line| !line.is_test) {
            if let Some(name) = defined(line.code).filter(|name| counts[name] == 1) {
                found.push(Complaint::new("dead item", path, line.number, name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_is_named_in_comments_only_is_found() {
        let tree = Tree::of(&[
            (
                "crates/a/src/lib.rs",
                "pub fn used() {}\npub const fn unused() {}\npub struct Idle;\n",
            ),
            ("crates/b/src/lib.rs", "// unused() was here, Idle too\nlet a = a::used();\n"),
        ]);
        let names: Vec<String> = dead(&tree).into_iter().map(|it| it.text).collect();
        assert_eq!(names, ["unused", "Idle"]);
    }
}
