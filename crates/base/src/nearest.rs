//! The nearest right names for a wrong one, for messages.
//!
//! Every crate that reads what people type needs this; it is here so that all of them suggest
//! alike.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// `; nearest: "x", "y"` for the names that take the fewest edits, or nothing when all are far.
pub fn nearest<'a>(name: &str, among: impl IntoIterator<Item = &'a str>) -> String {
    let length = name.chars().count();
    let most = length.max(3) / 2;
    let mut near: Vec<(usize, &str)> = among
        .into_iter()
        // What is much longer is far, and need not be compared letter by letter.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= most)
        .map(|candidate| (edits(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    near.sort();
    near.dedup();
    let Some((least, _)) = near.first().copied() else { return String::new() };
    let named: Vec<String> = near
        .iter()
        .take_while(|(distance, _)| *distance <= least + 1)
        .take(3)
        .map(|(_, candidate)| format!("\"{candidate}\""))
        .collect();
    format!("; nearest: {}", named.join(", "))
}

/// The number of single-letter insertions, deletions, substitutions and swaps of neighbours between
/// two words.
pub fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            if i == 0 || j == 0 {
                rows[i][j] = i + j;
                continue;
            }
            let substituted = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            rows[i][j] = substituted.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                rows[i][j] = rows[i][j].min(rows[i - 2][j - 2] + 1);
            }
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_listed_and_far_ones_are_not() {
        let names = ["none", "mq-deadline", "deadline", "noop"];
        assert_eq!(nearest("deadlin", names), "; nearest: \"deadline\"");
        assert_eq!(nearest("non", names), "; nearest: \"none\"");
        assert_eq!(nearest("nop", names), "; nearest: \"noop\"");
        assert_eq!(nearest("6.81", ["4.19", "6.12", "6.18"]), "; nearest: \"6.18\", \"6.12\"");
        assert_eq!(nearest("zzzzzzzz", names), "");
    }
}
