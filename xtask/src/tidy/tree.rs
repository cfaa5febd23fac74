//! A tree of files, as checks see it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Files by their path from the root, with their text; others than text are empty.
pub struct Tree {
    files: BTreeMap<String, String>,
}

/// What is no part of the project: what is built, and what others keep in a checkout.
const LEFT_OUT: [&str; 2] = ["target", ".git"];
const WITH_TEXT: [&str; 4] = [".rs", ".md", ".toml", ".txt"];

impl Tree {
    /// Reads a directory.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree { files: BTreeMap::new() };
        tree.add(root, "")?;
        Ok(tree)
    }

    fn add(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.add(&entry.path(), &format!("{path}/"))?;
                continue;
            }
            let mut text = String::new();
            if WITH_TEXT.iter().any(|ending| name.ends_with(ending)) {
                text = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
            }
            self.files.insert(path, text);
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let owned = |(path, text): &(&str, &str)| (path.to_string(), text.to_string());
        Tree { files: files.iter().map(owned).collect() }
    }

    /// The files whose path begins and ends like this, with their text.
    pub fn files(&self, begin: &str, end: &str) -> impl Iterator<Item = (&str, &str)> {
        let fits = move |path: &str| path.starts_with(begin) && path.ends_with(end);
        let all = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        all.filter(move |(path, _)| fits(path))
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether there is a file or a directory.
    pub fn has(&self, path: &str) -> bool {
        let below = format!("{path}/");
        path.is_empty() || self.text(path).is_some() || self.files(&below, "").next().is_some()
    }
}

/// A line of Rust.
pub struct Line<'a> {
    pub number: usize,
    /// As it stands there.
    pub whole: &'a str,
    /// Without its comment.
    pub code: &'a str,
    /// Whether only tests have it.
    pub is_test: bool,
}

/// The lines of a file. What follows `#[cfg(test)] mod` is of tests: by custom it is last.
pub fn lines<'a>(path: &str, text: &'a str) -> impl Iterator<Item = Line<'a>> {
    let of_tests = ["/tests/", "/examples/", "/benches/", "/tests.rs"];
    let mut is_test = of_tests.iter().any(|part| path.contains(part));
    text.lines().enumerate().map(move |(index, whole)| {
        is_test |= whole == "#[cfg(test)]";
        Line { number: index + 1, whole, code: without_comment(whole), is_test }
    })
}

fn without_comment(line: &str) -> &str {
    let outside = |at: &usize| line[..*at].matches('"').count().is_multiple_of(2);
    let at = line.match_indices("//").map(|(at, _)| at).find(outside);
    at.map_or(line, |at| &line[..at])
}

/// The words of a text: what could be a name.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric() && it != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_told_from_addresses() {
        assert_eq!(without_comment("let a = 1; // one"), "let a = 1; ");
        assert_eq!(without_comment("let a = \"http://x\";"), "let a = \"http://x\";");
    }

    #[test]
    fn directories_are_there_with_their_files() {
        let tree = Tree::of(&[("docs/rules/a.md", "")]);
        assert!(tree.has("docs/rules") && tree.has("docs/rules/a.md"));
        assert!(!tree.has("docs/rul"));
    }
}
