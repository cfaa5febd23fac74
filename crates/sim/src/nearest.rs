//! The nearest right name for a wrong one, for messages.

/// `; nearest: "x"` for the name that takes the fewest edits, or nothing when all are far.
pub(crate) fn nearest<'a>(name: &str, among: impl IntoIterator<Item = &'a str>) -> String {
    let best = among.into_iter().map(|candidate| (edits(name, candidate), candidate)).min();
    match best {
        Some((distance, candidate)) if distance <= name.len().max(3) / 2 => {
            format!("; nearest: \"{candidate}\"")
        }
        _ => String::new(),
    }
}

/// The number of single-letter insertions, deletions and substitutions between two words.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        assert_eq!(nearest("host-2010", ["vm-2019", "host-2011"]), "; nearest: \"host-2011\"");
        assert_eq!(nearest("zzzzzzzzz", ["vm-2019", "host-2011"]), "");
    }
}
