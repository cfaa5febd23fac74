//! `circles`: files of a crate that import one another, by their explicit `use crate::…`.

use super::Complaint;
use super::tree::{Tree, lines};
use crate::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

/// Files, by number, and which each imports.
struct Graph<'a> {
    files: Vec<&'a str>,
    imports: Vec<BTreeSet<usize>>,
}

/// Prints all circles: what `tidy` complains about, and those within a room.
pub fn main(arguments: Vec<String>) -> Outcome {
    let root = arguments.first().map_or(".", String::as_str);
    let tree = Tree::read(Path::new(root))?;
    for source in sources(&tree) {
        for circle in Graph::of(&tree, &source).circles() {
            println!("{source}: {} files of {}", circle.len(), rooms(&source, &circle).join(", "));
            circle.iter().for_each(|file| println!("    {file}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Files of different rooms import in one direction.
pub(super) fn across_rooms(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for source in sources(tree) {
        for circle in Graph::of(tree, &source).circles() {
            let rooms = rooms(&source, &circle);
            if rooms.len() > 1 {
                let text = format!("{} files of {}", circle.len(), rooms.join(", "));
                found.push(Complaint::new("circle", &source, 0, text));
            }
        }
    }
    found
}

/// The directories of sources.
fn sources(tree: &Tree) -> BTreeSet<String> {
    let source = |(path, _): (&str, &str)| Some(format!("{}/src", path.split_once("/src/")?.0));
    tree.files("crates/", ".rs").filter_map(source).collect()
}

/// The rooms of files: modules of the crate.
fn rooms(source: &str, files: &[&str]) -> Vec<String> {
    let room = |file: &&str| {
        let inner = file.strip_prefix(source).unwrap_or(file).trim_start_matches('/');
        inner.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_string()
    };
    files.iter().map(room).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The name of a file's module, such as `a::b`; empty for the root of the crate.
fn module(source: &str, file: &str) -> String {
    let inner = file.strip_prefix(source).unwrap_or(file).trim_start_matches('/');
    let inner = inner.trim_end_matches(".rs").trim_end_matches("/mod");
    if ["lib", "main"].contains(&inner) { String::new() } else { inner.replace('/', "::") }
}

/// The paths of a tree of imports such as `a::{b, c::{d, e}}`.
fn expand(tree: &str, prefix: &str, out: &mut Vec<String>) {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, it) in tree.char_indices() {
        match it {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[start..]);
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('{') {
            Some((head, rest)) => {
                let rest = rest.strip_suffix('}').unwrap_or(rest);
                expand(rest, &format!("{prefix}{head}"), out);
            }
            None => out.push(format!("{prefix}{}", part.split(" as ").next().unwrap_or(part))),
        }
    }
}

/// What a file imports from its crate, without what only its tests import.
fn imports(path: &str, text: &str) -> Vec<String> {
    let code: Vec<&str> = lines(path, text).filter(|it| !it.is_test).map(|it| it.code).collect();
    let code = code.join(" ");
    let mut found = Vec::new();
    for rest in code.split("use crate::").skip(1) {
        let statement = rest.split(';').next().unwrap_or_default();
        expand(statement, "", &mut found);
    }
    found
}

impl<'a> Graph<'a> {
    fn of(tree: &'a Tree, source: &str) -> Graph<'a> {
        let begin = format!("{source}/");
        let found: Vec<(&str, &str)> = tree.files(&begin, ".rs").collect();
        let modules: BTreeMap<String, usize> =
            found.iter().enumerate().map(|(n, (path, _))| (module(source, path), n)).collect();
        // The module in whose file a name is; none for the root, which only says names again.
        let home = |path: &str| {
            let mut path = path;
            loop {
                if let Some(number) = modules.get(path) {
                    return Some(*number);
                }
                path = path.rsplit_once("::")?.0;
            }
        };
        let of_file = |(number, (path, text)): (usize, &(&str, &str))| {
            let homes = imports(path, text).into_iter().filter_map(|it| home(&it));
            homes.filter(|other| *other != number).collect()
        };
        let imports = found.iter().enumerate().map(of_file).collect();
        Graph { files: found.into_iter().map(|(path, _)| path).collect(), imports }
    }

    /// Which files can be reached from one.
    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            next.extend(self.imports[file].iter().filter(|it| seen.insert(**it)));
        }
        seen
    }

    /// Sets of files each of which reaches all others of its set.
    fn circles(&self) -> Vec<Vec<&'a str>> {
        let reached: Vec<BTreeSet<usize>> =
            (0..self.files.len()).map(|it| self.reached(it)).collect();
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        for file in 0..self.files.len() {
            let is_one =
                |other: &usize| reached[file].contains(other) && reached[*other].contains(&file);
            let circle: Vec<usize> = (0..self.files.len()).filter(is_one).collect();
            if circle.len() > 1 && seen.insert(circle[0]) {
                found.push(circle.into_iter().map(|it| self.files[it]).collect());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_two_rooms_that_import_one_another_are_found() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "mod x; mod y;"),
            ("crates/a/src/x/mod.rs", "use crate::y::{\n    inner::{One, Two},\n    Three,\n};\n"),
            ("crates/a/src/y/mod.rs", "use crate::Root;\n"),
            ("crates/a/src/y/inner.rs", "use crate::x::Four;\n"),
            ("crates/a/src/z.rs", "use crate::x::Four;\n#[cfg(test)]\nuse crate::y::Five;\n"),
        ]);
        let found: Vec<String> = across_rooms(&tree).into_iter().map(|it| it.text).collect();
        assert_eq!(found, ["2 files of x, y"]);
    }

    #[test]
    fn imports_are_told_one_by_one() {
        let mut found = Vec::new();
        expand("a::{b, c::{d, e as f}, self}", "", &mut found);
        assert_eq!(found, ["a::b", "a::c::d", "a::c::e", "a::self"]);
    }
}
