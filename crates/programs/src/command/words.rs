//! A line as a shell sees it: commands that follow each other, and the words of each, without
//! expansions.

use super::CommandError;

/// Cuts a line at each `;` and `&&` that is not quoted, and says before which of the parts there is
/// an `&&`. An empty part at the end is left out.
pub fn split_sequence(line: &str) -> Vec<(bool, String)> {
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
    if parts.len() > 1 && parts.last().is_some_and(|(_, part)| part.trim().is_empty()) {
        parts.pop();
    }
    parts
}

/// Splits a line into words, as a shell does.
pub fn split(line: &str) -> Result<Vec<String>, CommandError> {
    let fail = |problem: &str| {
        Err(CommandError::Quoting { line: line.to_string(), problem: problem.to_string() })
    };
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
