//! Checks of single lines.

use super::Complaint;
use super::tree::{Line, Tree, lines, words};

/// The longest line of Rust.
const COLUMNS: usize = 100;
/// Names that things had before they got the field's.
const OLD_WORDS: [&str; 6] = ["Strand", "Birth", "Happening", "whos", "AtHand", "HeldMap"];
/// Names that tasks have on one guest and on its disk.
const GUEST_NAMES: [&str; 3] = ["jbd2/vda", "kworker/u4:1", "xfsaild/vda"];
/// Where the words that are looked for must stand.
const OURSELVES: &str = "xtask/src/tidy/";

/// Lines of which `is_bad` says why, in files of Rust whose path begins so.
fn complaints(
    tree: &Tree,
    begin: &str,
    check: &'static str,
    is_bad: impl Fn(&str, &Line<'_>) -> Option<String>,
) -> Vec<Complaint> {
    complaints_of(tree.files(begin, ".rs"), check, is_bad)
}

/// The same of any files.
fn complaints_of<'a>(
    files: impl Iterator<Item = (&'a str, &'a str)>,
    check: &'static str,
    is_bad: impl Fn(&str, &Line<'_>) -> Option<String>,
) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, text) in files.filter(|(it, _)| !it.starts_with(OURSELVES)) {
        let bad = |line: Line<'_>| {
            let text = is_bad(path, &line)?;
            Some(Complaint::new(check, path, line.number, text))
        };
        found.extend(lines(path, text).filter_map(bad));
    }
    found
}

/// No line has more columns than a page.
pub fn long_lines(tree: &Tree) -> Vec<Complaint> {
    complaints(tree, "", "long line", |_, line| {
        let columns = line.whole.chars().count();
        (columns > COLUMNS).then(|| format!("{columns} columns"))
    })
}

/// Whether code compares something with a version by its name.
fn compares_versions(code: &str) -> bool {
    const SIGNS: [&str; 6] = ["<", ">", "<=", ">=", "==", "!="];
    let parts: Vec<&str> = code.split_whitespace().collect();
    let is_version = |part: &str| part.trim_start_matches(['(', '&']).contains("Version::V");
    parts.windows(2).any(|pair| {
        (SIGNS.contains(&pair[0]) && is_version(pair[1]))
            || (is_version(pair[0]) && SIGNS.contains(&pair[1]))
    })
}

/// What depends on the version of a kernel stands in tables of rules, and code asks for the rule.
pub fn version_comparisons(tree: &Tree) -> Vec<Complaint> {
    complaints(tree, "crates/", "version comparison", |path, line| {
        let is_table = path.ends_with("/kernel.rs") || path.ends_with("/rules.rs");
        let is_bad = compares_versions(line.code) && !is_table && !line.is_test;
        is_bad.then(|| line.code.trim().to_string())
    })
}

/// Names that hang on the guest that was looked at are data of that guest.
pub fn names_of_one_guest(tree: &Tree) -> Vec<Complaint> {
    complaints(tree, "crates/", "name of one guest", |_, line| {
        let name = GUEST_NAMES.iter().find(|name| line.code.contains(**name))?;
        (!line.is_test).then(|| name.to_string())
    })
}

/// Things have one name.
pub fn old_words(tree: &Tree) -> Vec<Complaint> {
    complaints_of(tree.files("", ""), "old word", |_, line| {
        let word = words(line.whole).find(|word| OLD_WORDS.contains(word))?;
        Some(word.to_string())
    })
}

/// Documentation that shows a comment's slashes to its reader.
pub fn comments_in_documentation(tree: &Tree) -> Vec<Complaint> {
    complaints(tree, "", "comment in documentation", |_, line| {
        let whole = line.whole.trim_start();
        let text = whole.strip_prefix("///").or(whole.strip_prefix("//!"))?;
        // What is between backticks is code that is shown.
        let shown = text.split('`').step_by(2).any(|it| it.contains(" // "));
        shown.then(|| text.trim().to_string())
    })
}

/// Paths of the machine on which somebody worked.
pub fn machine_paths(tree: &Tree) -> Vec<Complaint> {
    complaints_of(tree.files("", ""), "machine path", |_, line| {
        let path =
            ["/home/", "/root/", "/Users/"].into_iter().find(|it| line.whole.contains(*it))?;
        Some(path.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::super::Check;
    use super::*;

    /// The line numbers of complaints about one file.
    fn found(check: Check, path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).iter().map(|it| it.line).collect()
    }

    #[test]
    fn each_planted_line_is_found() {
        let long = format!("// short\n// {}\n", "x".repeat(COLUMNS));
        assert_eq!(found(long_lines, "crates/a/src/a.rs", &long), [2]);
        let version = "kernel.version >= Version::V6_12;\nif Version::V4_19 == v {\n\
                       since: Version::V4_19,\n#[cfg(test)]\nv < Version::V1;\n";
        assert_eq!(found(version_comparisons, "crates/a/src/a.rs", version), [1, 2]);
        assert_eq!(found(version_comparisons, "crates/a/src/rules.rs", version), [0; 0]);
        let name = "/// As `jbd2/vda-8`.\nconst NAME: &str = \"jbd2/vda-8\";\n";
        assert_eq!(found(names_of_one_guest, "crates/a/src/a.rs", name), [2]);
        assert_eq!(found(names_of_one_guest, "crates/a/tests/a.rs", name), [0; 0]);
        assert_eq!(found(old_words, "crates/a/src/a.rs", "struct Strand;\nBirthday\n"), [1]);
        assert_eq!(found(old_words, "docs/a.md", "A Strand runs.\n"), [1]);
        let shown = "/// A disk. // measured\n/// A `// comment` shown.\nlet a = 1; // one\n";
        assert_eq!(found(comments_in_documentation, "crates/a/src/a.rs", shown), [1]);
        let path = "const A: &str = \"/home/me\";\n";
        assert_eq!(found(machine_paths, "crates/a/src/a.rs", path), [1]);
        assert_eq!(found(machine_paths, "docs/a.md", "In `/home/me`.\n"), [1]);
    }
}
