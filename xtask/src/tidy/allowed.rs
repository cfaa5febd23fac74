//! What is allowed although a check complains: entries of `xtask/tidy.toml`.

use super::Complaint;
use super::tree::Tree;
use std::error::Error;

/// The file of entries.
const FILE: &str = "xtask/tidy.toml";

struct Entry {
    check: String,
    path: String,
    text: String,
    is_used: bool,
}

/// All entries.
pub struct Allowed(Vec<Entry>);

impl Allowed {
    pub fn of(tree: &Tree) -> Result<Allowed, Box<dyn Error>> {
        let table: toml::Table = tree.text(FILE).unwrap_or_default().parse()?;
        let entries = table.get("allow").and_then(|it| it.as_array()).into_iter().flatten();
        let entry = |value: &toml::Value| {
            let word = |key| value.get(key).and_then(|it| it.as_str()).unwrap_or_default();
            if word("reason").is_empty() || word("check").is_empty() {
                return Err(format!("{FILE}: an entry needs a check and a reason: {value}"));
            }
            let [check, path, text] = ["check", "path", "text"].map(|key| word(key).to_string());
            Ok(Entry { check, path, text, is_used: false })
        };
        Ok(Allowed(entries.map(entry).collect::<Result<_, _>>()?))
    }

    /// Whether an entry has the check, the beginning of the path and a part of the text.
    pub fn covers(&mut self, complaint: &Complaint) -> bool {
        let fits = |it: &&mut Entry| {
            it.check == complaint.check
                && complaint.path.starts_with(&it.path)
                && complaint.text.contains(&it.text)
        };
        let mut found = false;
        self.0.iter_mut().filter(fits).for_each(|entry| {
            entry.is_used = true;
            found = true;
        });
        found
    }

    /// Entries that nothing needed.
    pub fn unused(&self) -> impl Iterator<Item = String> {
        let unused = self.0.iter().filter(|it| !it.is_used);
        unused.map(|it| format!("{} {} {}", it.check, it.path, it.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_covers_what_it_names_and_needs_a_reason() {
        let text = "[[allow]]\ncheck = \"dead item\"\npath = \"crates/a\"\nreason = \"soon\"\n";
        let mut allowed = Allowed::of(&Tree::of(&[(FILE, text)])).unwrap();
        assert_eq!(allowed.unused().count(), 1);
        assert!(allowed.covers(&Complaint::new("dead item", "crates/a/src/x.rs", 1, "it")));
        assert!(!allowed.covers(&Complaint::new("dead item", "crates/b/src/x.rs", 1, "it")));
        assert_eq!(allowed.unused().count(), 0);
        let without = Tree::of(&[(FILE, "[[allow]]\ncheck = \"dead item\"\n")]);
        assert!(Allowed::of(&without).is_err());
    }
}
