//! Checks of what crates depend on.

use super::Complaint;
use super::tree::{Tree, lines};

/// Crates depend on crates of earlier layers only. `testing` is for tests.
const LAYERS: [&[&str]; 12] = [
    &["base", "testing"],
    &["params"],
    &["block", "guest"],
    &["sched", "trace", "device", "cache"],
    &["fs"],
    &["machine", "linux"],
    &["programs", "insight"],
    &["lab"],
    &["conform"],
    &["report"],
    &["cli"],
    &["xtask"],
];

/// The members: their name in the workspace, and their directory.
fn members(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let manifests = tree.files("", "/Cargo.toml").map(|(path, _)| path);
    manifests.filter_map(|path| {
        let directory = path.strip_suffix("/Cargo.toml")?;
        let name = directory.strip_prefix("crates/").unwrap_or(directory);
        (!name.contains('/') && (name != directory || name == "xtask")).then_some((name, directory))
    })
}

/// The dependencies of a manifest, in a table of it.
fn dependencies(tree: &Tree, directory: &str, table: &str) -> Vec<String> {
    let text = tree.text(&format!("{directory}/Cargo.toml")).unwrap_or_default();
    let manifest: toml::Table = text.parse().unwrap_or_default();
    let found = manifest.get(table).and_then(|it| it.as_table());
    found.map_or(Vec::new(), |it| it.keys().cloned().collect())
}

/// Whether code names a crate, as in `name::` or `use name`.
fn names(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let is_part = before.ends_with(|it: char| it.is_alphanumeric() || "_:.".contains(it));
        let is_use = before.ends_with("use ") && after.starts_with([';', ' ']);
        !is_part && (after.starts_with("::") || is_use)
    })
}

/// Each dependency is named in the sources of its crate, each of tests in sources or tests, and
/// each of the workspace by a member.
pub fn unused_dependencies(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut wanted = Vec::new();
    for (_, directory) in members(tree) {
        for (table, part) in [("dependencies", "/src/"), ("dev-dependencies", "/")] {
            for dependency in dependencies(tree, directory, table) {
                let name = dependency.replace('-', "_");
                let begin = format!("{directory}{part}");
                let mut files = tree.files(&begin, ".rs");
                let is_named =
                    files.any(|(path, text)| lines(path, text).any(|line| names(line.code, &name)));
                if !is_named {
                    let (path, text) =
                        (format!("{directory}/Cargo.toml"), format!("{dependency} in {table}"));
                    found.push(Complaint::new("unused dependency", &path, 0, text));
                }
                wanted.push(dependency);
            }
        }
    }
    let manifest: toml::Table =
        tree.text("Cargo.toml").unwrap_or_default().parse().unwrap_or_default();
    let workspace = manifest.get("workspace").and_then(|it| it.get("dependencies")?.as_table());
    let unwanted = workspace.into_iter().flat_map(|it| it.keys()).filter(|it| !wanted.contains(it));
    found.extend(unwanted.map(|it| Complaint::new("unused dependency", "Cargo.toml", 0, it)));
    found
}

/// Arrows between crates go down.
pub fn arrows_up(tree: &Tree) -> Vec<Complaint> {
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    let known: Vec<&str> = members(tree).map(|(name, _)| name).collect();
    let mut found = Vec::new();
    for (name, directory) in members(tree) {
        let path = format!("{directory}/Cargo.toml");
        let Some(own) = layer(name) else {
            found.push(Complaint::new("arrow up", &path, 0, format!("{name} is in no layer")));
            continue;
        };
        for dependency in dependencies(tree, directory, "dependencies") {
            // A crate in no layer is complained about by itself.
            let is_up = known.contains(&dependency.as_str())
                && layer(&dependency).is_some_and(|other| other >= own);
            if is_up {
                let text = format!("{name} -> {dependency}");
                found.push(Complaint::new("arrow up", &path, 0, text));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(complaints: Vec<Complaint>) -> Vec<String> {
        complaints.into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn a_dependency_that_nobody_names_is_found() {
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace.dependencies]\nbase = 1\nserde = 1\ntoml = 1\nzip = 1\n"),
            (
                "crates/lab/Cargo.toml",
                "[dependencies]\nbase = \"1\"\nserde = \"1\"\n[dev-dependencies]\ntoml = \"1\"\n",
            ),
            (
                "crates/lab/src/lib.rs",
                "use base::Bytes;\n// serde::Deserialize\nlet a = my_serde::x;\n",
            ),
            ("crates/lab/tests/a.rs", "use serde::Deserialize;\nlet a: toml::Table;\n"),
        ]);
        assert_eq!(texts(unused_dependencies(&tree)), ["serde in dependencies", "zip"]);
    }

    #[test]
    fn an_arrow_up_and_a_crate_without_a_layer_are_found() {
        let tree = Tree::of(&[
            ("crates/base/Cargo.toml", "[dependencies]\nlab = \"1\"\nlibm = \"1\"\n"),
            ("crates/lab/Cargo.toml", "[dependencies]\nbase = \"1\"\n"),
            ("crates/attic/Cargo.toml", "[dependencies]\n"),
        ]);
        assert_eq!(texts(arrows_up(&tree)), ["attic is in no layer", "base -> lab"]);
    }
}
