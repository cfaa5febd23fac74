//! Links of documents to files and headings of the project.

use super::Complaint;
use super::tree::Tree;

/// The lines of a document that are not code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence && !line.starts_with("    ")).then_some((index + 1, line))
    })
}

/// The targets of links in a line, without what is between backticks.
fn targets(line: &str) -> Vec<String> {
    let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let links = plain.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.map(|link| link.split(' ').next().unwrap_or_default().to_string()).collect()
}

/// The anchor of a heading, as it is shown by the hosts of repositories.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim();
    // Of a link, its text.
    let text: String = text.split("](").enumerate().fold(String::new(), |all, (index, part)| {
        let part = if index > 0 { part.split_once(')').map_or("", |it| it.1) } else { part };
        all + part
    });
    let kept = text.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
    kept.map(|it| if it == ' ' { '-' } else { it.to_ascii_lowercase() }).collect()
}

/// The anchors of a document; of headings that are alike, later ones are numbered.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let plain = anchor(line);
        let same = found.iter().filter(|it| **it == plain).count();
        found.push(if same > 0 { format!("{plain}-{same}") } else { plain });
    }
    let named = text.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next());
    found.extend(named.map(str::to_string));
    found
}

/// A path from a document, from the root; none above the root.
fn resolved(document: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Every link leads somewhere.
pub fn dead(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (document, text) in tree.files("", ".md") {
        for (line, link) in
            prose(text).flat_map(|(n, it)| targets(it).into_iter().map(move |t| (n, t)))
        {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, place) = link.split_once('#').unwrap_or((&link, ""));
            let path = match path {
                "" => Some(document.to_string()),
                path => resolved(document, path),
            };
            let is_there = path.is_some_and(|path| {
                let has_place = || anchors(tree.text(&path).unwrap_or_default());
                tree.has(&path)
                    && (place.is_empty()
                        || !path.ends_with(".md")
                        || has_place().iter().any(|it| it == place))
            });
            if !is_there {
                found.push(Complaint::new("dead link", document, line, link));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_headings_that_are_not_there_are_found() {
        let tree = Tree::of(&[
            (
                "README.md",
                "[a](docs/a.md) [b](docs/b.md)\n[c](docs/a.md#the-first-one)\n\
                 [d](docs/a.md#second)\n",
            ),
            (
                "docs/a.md",
                "# The `first`, one\n\n[up](../README.md) [web](https://a.b/c)\n\n\
                 ```\n[x](y)\n```\n`[x](y)`\n",
            ),
        ]);
        let links: Vec<String> = dead(&tree).into_iter().map(|it| it.text).collect();
        assert_eq!(links, ["docs/b.md", "docs/a.md#second"]);
    }
}
