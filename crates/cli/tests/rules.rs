//! Every citation of a rule resolves to a heading of `docs/rules`, every rule is there once, and
//! nothing cites what is not in the tree.
//!
//! A citation is the word "rule" and a name, or "rules" and a list of names. A name without a
//! number is a subject. What is cited in comments may go over the end of a line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where citations are looked for.
const SEARCHED: [&str; 9] =
    ["crates", "docs", "experiments", "fidelity", "fuzz", "hosts", "models", "mutants", "xtask"];

/// The rules that are written down.
#[derive(Default)]
struct Rules {
    /// Names of rules, and how often each is a heading.
    headings: BTreeMap<String, usize>,
    subjects: BTreeSet<String>,
}

impl Rules {
    fn add(&mut self, page: &str) {
        for line in page.lines() {
            if let Some(name) = line.strip_prefix("### ") {
                *self.headings.entry(name.to_string()).or_default() += 1;
            } else if let Some(name) = line.strip_prefix("## ") {
                self.subjects.insert(name.to_string());
            }
        }
    }

    /// What is wrong with the rules themselves.
    fn faults(&self) -> Vec<String> {
        let twice = self.headings.iter().filter(|(_, times)| **times > 1);
        let twice = twice.map(|(name, times)| format!("{name} is there {times} times"));
        let alone = self.headings.keys().filter(|name| {
            let subject = name.rsplit_once('-').map(|(subject, _)| subject);
            !subject.is_some_and(|subject| self.subjects.contains(subject))
        });
        twice.chain(alone.map(|name| format!("{name} is below no subject of its own"))).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.headings.contains_key(name) || self.subjects.contains(name)
    }

    /// Names that a text cites and nobody wrote down.
    fn unresolved(&self, text: &str) -> Vec<String> {
        citations(text).into_iter().filter(|name| !self.has(name)).collect()
    }
}

/// The words of a text without the signs of comments and tables.
fn words(text: &str) -> Vec<&str> {
    let signs = ["//", "///", "//!", "#", "|"];
    text.split_whitespace().filter(|word| !signs.contains(word)).collect()
}

/// The names that a text cites.
fn citations(text: &str) -> Vec<String> {
    let words = words(text);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let bare = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        if !["rule", "rules", "Rule", "Rules"].contains(&bare) {
            continue;
        }
        // In brackets nothing else is meant; elsewhere the word is English, too.
        let only_cites = word.starts_with('(');
        let mut after = ",";
        for next in &words[at + 1..] {
            let is_joined = after.is_empty() && ["and", "to"].contains(next);
            if is_joined {
                after = ",";
                continue;
            }
            let name = next.trim_matches(|c: char| !c.is_alphanumeric());
            let is_name = looks_like_name(name) || only_cites && looks_like_subject(name);
            if after != "," || !is_name {
                break;
            }
            found.push(name.to_string());
            after = next.strip_prefix(name).unwrap_or(".");
        }
    }
    found
}

fn looks_like_subject(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

fn looks_like_name(word: &str) -> bool {
    let numbered = word
        .rsplit_once('-')
        .filter(|(subject, number)| looks_like_subject(subject) && number.parse::<u32>().is_ok());
    numbered.is_some()
}

/// What a text cites of a document that is not in the tree.
fn foreign(text: &str) -> Vec<String> {
    let words = words(text);
    let cites = |pair: &[&str]| {
        let document = pair[0].trim_start_matches(['(', '`']).to_lowercase();
        let section = pair[1].trim_end_matches(|c: char| !c.is_alphanumeric());
        let is_number = section.starts_with(|c: char| c.is_ascii_digit())
            && section.chars().all(|c| c.is_ascii_digit() || c == '.');
        let is_letter = section.strip_prefix(['A', 'B', 'C']).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('.') && rest[1..].starts_with(char::is_numeric)
        });
        let bare = ["spec", "specification", "filesystems", "formats"];
        let is_numbered = ["rule", "rules"].contains(&document.as_str())
            && section.starts_with(|c: char| c.is_ascii_digit());
        is_numbered
            || document == "addendum" && (is_number || is_letter)
            || bare.contains(&document.as_str()) && (is_number || is_letter && section.len() > 1)
    };
    let pairs = words.windows(2).filter(|pair| cites(pair));
    pairs.map(|pair| format!("{} {}", pair[0], pair[1])).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn written() -> Rules {
    let mut rules = Rules::default();
    for entry in fs::read_dir(root().join("docs/rules")).expect("docs/rules is there") {
        let path = entry.expect("it can be listed").path();
        if path.file_name().is_some_and(|name| name != "README.md") {
            rules.add(&fs::read_to_string(path).expect("a page can be read"));
        }
    }
    rules
}

/// All texts of the tree that may cite rules.
fn texts(directory: &Path, into: &mut Vec<(PathBuf, String)>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.expect("it can be listed").path()) {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                texts(&path, into);
            }
        } else if extension.is_some_and(|e| ["rs", "md", "txt", "toml"].contains(&e))
            && !path.ends_with("cli/tests/rules.rs")
            && let Ok(text) = fs::read_to_string(&path)
        {
            into.push((path, text));
        }
    }
}

#[test]
fn every_rule_is_there_once_below_its_subject() {
    let rules = written();
    assert!(rules.headings.len() > 400, "only {} rules were found", rules.headings.len());
    assert_eq!(rules.faults(), [""; 0]);
}

#[test]
fn every_citation_resolves() {
    let rules = written();
    let mut all = Vec::new();
    SEARCHED.iter().for_each(|name| texts(&root().join(name), &mut all));
    let mut cited = 0;
    let mut wrong = Vec::new();
    for (path, text) in &all {
        cited += citations(text).len();
        wrong.extend(rules.unresolved(text).into_iter().map(|name| (path, name)));
        wrong.extend(foreign(text).into_iter().map(|name| (path, name)));
    }
    assert!(cited > 500, "only {cited} citations were found");
    assert!(wrong.is_empty(), "no such rule in docs/rules: {wrong:#?}");
}

#[test]
fn a_planted_citation_of_nothing_is_found() {
    let mut rules = Rules::default();
    rules.add("## plug\n\n### plug-1\n\n### plug-2\n");
    assert_eq!(rules.faults(), [""; 0]);
    let good = "/// Held back (rules plug-1 and\n/// plug-2). Rule plug-1: so it is (rules plug).";
    assert_eq!(citations(good), ["plug-1", "plug-2", "plug-1", "plug"]);
    assert_eq!(rules.unresolved(good), [""; 0]);
    assert_eq!(rules.unresolved("// Rule plug-3, as a rule of thumb."), ["plug-3"]);
    assert_eq!(rules.unresolved("// (rules plug and\n// plugs), and so on"), ["plugs"]);
    assert_eq!(foreign("/// As it says (spec 9.4)."), ["(spec 9.4)."]);
    assert_eq!(foreign("# CFQ, addendum\n# A.1.9: and so on"), ["addendum A.1.9:"]);
    assert_eq!(foreign("/// Rule 4: and so on"), ["Rule 4:"]);
    rules.add("### plug-2\n\n### hold-1\n");
    let faults = ["plug-2 is there 2 times", "hold-1 is below no subject of its own"];
    assert_eq!(rules.faults(), faults);
}
