//! How text is shown where it is read: how wide, in which letters, with colour or without.

use std::borrow::Cow;

/// What a reader's terminal, file or pipe takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Lines have at most so many letters, as far as their words allow.
    pub width: usize,
    /// Only letters of ASCII.
    pub ascii: bool,
    /// With colours, as terminals understand them.
    pub colour: bool,
}

/// What a colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// What stands over a column.
    Heading,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
}

impl Style {
    /// The width where nobody says any.
    pub const WIDTH: usize = 99;

    /// For a file or a pipe.
    pub const PLAIN: Style = Style { width: Style::WIDTH, ascii: false, colour: false };

    /// The same for lines of any length.
    pub const UNBROKEN: Style = Style { width: usize::MAX, ..Style::PLAIN };

    /// A text as it may be shown: what a terminal would obey is made visible.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = printable(text);
        match self.ascii && !text.is_ascii() {
            true => Cow::Owned(text.chars().map(ascii).collect()),
            false => text,
        }
    }

    /// A text in a colour.
    pub fn painted(&self, text: &str, paint: Option<Paint>) -> String {
        let code = match paint {
            None => return text.to_string(),
            Some(_) if !self.colour || text.is_empty() => return text.to_string(),
            Some(Paint::Heading) => "1",
            Some(Paint::Good) => "32",
            Some(Paint::Bad) => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A text without what a terminal would obey: such letters are written as `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    // Marks that turn the direction of what follows hide text as well as escape sequences do.
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || turns(c);
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match is_obeyed(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// The letter of ASCII that stands for another: one for one, so that columns stay aligned.
fn ascii(letter: char) -> char {
    match letter {
        'µ' => 'u',
        '–' | '−' | '—' => '-',
        '±' => '~',
        '·' => '|',
        '…' => '.',
        '“' | '”' => '"',
        '‘' | '’' => '\'',
        '×' => 'x',
        it if it.is_ascii() => it,
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        assert_eq!(printable("a\x1b[31mb\u{202e}"), "a\\u{1b}[31mb\\u{202e}");
        assert!(matches!(printable("plain µ\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn letters_are_replaced_one_for_one() {
        let style = Style { ascii: true, ..Style::PLAIN };
        assert_eq!(style.text("48.1 ± 7.2 µs · –"), "48.1 ~ 7.2 us | -");
    }

    #[test]
    fn colours_are_for_those_who_want_them() {
        assert_eq!(Style::PLAIN.painted("x", Some(Paint::Bad)), "x");
        let colour = Style { colour: true, ..Style::PLAIN };
        assert_eq!(colour.painted("x", Some(Paint::Bad)), "\x1b[31mx\x1b[0m");
    }
}
