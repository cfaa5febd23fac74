//! Tables that were generated, against what they were generated from.

use super::Complaint;
use super::tree::Tree;

/// Tables, and the directories of their experiments.
const TABLES: [(&str, &[&str]); 3] = [
    ("fidelity/results/raw.md", &["fidelity"]),
    ("fidelity/results/files.md", &["fidelity/files", "fidelity/files/outcomes"]),
    ("fidelity/results/long.md", &["fidelity/long"]),
];

/// The experiments of a directory.
fn experiments<'a>(tree: &'a Tree, directory: &str) -> Vec<&'a str> {
    let begin = format!("{directory}/");
    let files = tree.files("", ".toml").map(|(path, _)| path);
    let is_in = |path: &&str| path.strip_prefix(&begin).is_some_and(|name| !name.contains('/'));
    files.filter(is_in).collect()
}

/// Each experiment of a suite has its table, and each table its experiment.
pub fn stale(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (table, directories) in TABLES {
        let Some(text) = tree.text(table) else { continue };
        let all: Vec<&str> = directories.iter().flat_map(|it| experiments(tree, it)).collect();
        let headed = |path: &str| text.lines().any(|line| line == format!("`{path}`"));
        for path in all.iter().filter(|path| !headed(path)) {
            found.push(Complaint::new("stale table", table, 0, format!("{path} is not in it")));
        }
        for (index, line) in text.lines().enumerate() {
            let path = line.strip_prefix('`').and_then(|it| it.strip_suffix(".toml`"));
            let Some(path) = path.map(|it| format!("{it}.toml")) else { continue };
            if !all.contains(&path.as_str()) {
                let text = format!("{path} is not there");
                found.push(Complaint::new("stale table", table, index + 1, text));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_without_a_table_and_tables_without_an_experiment_are_found() {
        let tree = Tree::of(&[
            ("fidelity/a.toml", ""),
            ("fidelity/b.toml", ""),
            ("fidelity/worst/c.toml", ""),
            ("fidelity/results/raw.md", "# Results\n\n`fidelity/a.toml`\n\n`fidelity/d.toml`\n"),
        ]);
        let texts: Vec<String> = stale(&tree).into_iter().map(|it| it.text).collect();
        assert_eq!(texts, ["fidelity/b.toml is not in it", "fidelity/d.toml is not there"]);
    }
}
