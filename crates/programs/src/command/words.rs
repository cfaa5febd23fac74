//! A line as a shell sees it: commands that follow each other, and the words of each, without
//! expansions.

use super::{CommandError, quoting};

/// Cuts a line at each `;` and `&&` that is not quoted, and says before which of the parts there is
/// an `&&`. Nothing has to follow the last `;`.
pub fn split_sequence(line: &str) -> Vec<(bool, String)> {
    let mut parts = cut(line);
    if parts.len() > 1 && parts.last().is_some_and(may_be_last) {
        parts.pop();
    }
    parts
}

/// Whether nothing stands behind the last `;` of a line.
fn may_be_last((is_and, part): &(bool, String)) -> bool {
    !is_and && part.trim().is_empty()
}

/// Where a command is missing in a line of several, in words.
pub fn missing(line: &str) -> Option<&'static str> {
    let parts = cut(line);
    let at = parts.iter().position(|(_, part)| part.trim().is_empty())?;
    match parts.get(at + 1) {
        Some((true, _)) => Some("nothing stands before \"&&\""),
        Some((false, _)) => Some("nothing stands before \";\""),
        None if may_be_last(&parts[at]) => None,
        None => Some("nothing follows the last \"&&\""),
    }
}

/// The parts with all that stands between separators.
fn cut(line: &str) -> Vec<(bool, String)> {
    let mut parts = vec![(false, String::new())];
    let (mut quote, mut letters) = (None, line.chars().peekable());
    while let Some(letter) = letters.next() {
        let is_and = letter == '&' && letters.peek() == Some(&'&');
        match (quote, letter) {
            (None, ';') => {
                parts.push((false, String::new()));
                continue;
            }
            (None, '&') if is_and => {
                letters.next();
                parts.push((true, String::new()));
                continue;
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        let part = &mut parts.last_mut().expect("there is always one").1;
        part.push(letter);
        if letter == '\\' && quote != Some('\'') {
            part.extend(letters.next());
        }
    }
    parts
}

/// Splits a line into words, as a shell does.
pub fn split(line: &str) -> Result<Vec<String>, CommandError> {
    let fail = |problem: &str| Err(quoting(line, problem));
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(inner) => word.push(inner),
                        None => return fail("a ' is not closed"),
                    }
                }
            }
            '"' => match quoted(&mut letters) {
                Some(inner) => word.get_or_insert_default().push_str(&inner),
                None => return fail("a \" is not closed"),
            },
            '\\' => match letters.next() {
                Some(inner) => word.get_or_insert_default().push(inner),
                None => return fail("nothing follows the \\"),
            },
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '`' | '$' => {
                return fail(&format!("\"{letter}\" means something to a shell"));
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The rest of a word in double quotes.
fn quoted(letters: &mut std::str::Chars<'_>) -> Option<String> {
    let mut word = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(word),
            '\\' => match letters.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}
