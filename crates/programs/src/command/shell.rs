//! A line that is given to a shell as its argument, as in `sh -c 'LINE'`: it means the line itself.

use super::words::{split, split_sequence};
use super::{file_name, without_prefixes};

/// The shells whose `-c` is seen through.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "ash"];

/// What a line means without the shells that it names: `sudo sh -c 'a; b'` is `a; b`, and
/// `nice sh -c 'a'` is `nice a`. What cannot be said without a shell stays as it is.
pub fn without_shell(line: &str) -> String {
    let mut line = line.to_string();
    while let Some(inner) = inner(&line) {
        line = inner;
    }
    line
}

fn inner(line: &str) -> Option<String> {
    let words = split(line).ok()?;
    let (found, rest) = without_prefixes(&words).ok()?;
    let [shell, option, text] = rest else { return None };
    if !SHELLS.contains(&file_name(shell)) || option != "-c" {
        return None;
    }
    let before = &words[..words.len() - rest.len()];
    match split_sequence(text).len() {
        _ if found.is_nothing() => Some(text.clone()),
        1 => Some(format!(
            "{} {text}",
            before.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" ")
        )),
        _ => None,
    }
}

/// A word as it has to be written so that a shell reads it as one.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_a_shell_is_the_line() {
        assert_eq!(without_shell("sh -c 'dd of=/dev/sda'"), "dd of=/dev/sda");
        assert_eq!(without_shell("sudo bash -c \"sh -c 'sync; sync'\""), "sync; sync");
        assert_eq!(without_shell("A='x y' ionice -c3 sh -c 'dd'"), "'A=x y' ionice -c3 dd");
        for same in ["nice sh -c 'sync; sync'", "sh x.sh", "sh -c", "dd", "a 'b", "sh -c 'a' b"] {
            assert_eq!(without_shell(same), same);
        }
    }
}
