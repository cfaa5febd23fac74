//! How results are shown where they go: `COLUMNS` or the width of the terminal, the letters of the
//! locale, and colour where a terminal takes it and `NO_COLOR` does not forbid it.

use report::Style;
use std::io::IsTerminal;

/// A table of narrower lines says nothing.
const NARROWEST: usize = 40;
/// Sentences in wider lines cannot be read.
const WIDEST: usize = 160;

/// How the standard output is shown.
pub fn style() -> Style {
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    let is_terminal = std::io::stdout().is_terminal();
    let size = || rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let seen = || size().map(|it| usize::from(it.ws_col)).filter(|it| *it > 0);
    Style {
        width: width(variable("COLUMNS").as_deref(), seen().filter(|_| is_terminal)),
        ascii: is_ascii(["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).as_deref()),
        colour: is_terminal
            && variable("NO_COLOR").is_none()
            && variable("TERM").is_some_and(|it| it != "dumb"),
    }
}

/// The width that is asked for, or else that of the terminal.
fn width(asked: Option<&str>, seen: Option<usize>) -> usize {
    let asked = asked.and_then(|it| it.parse().ok()).filter(|it| *it > 0);
    asked.or(seen).map_or(Style::WIDTH, |it| it.clamp(NARROWEST, WIDEST))
}

/// Whether a locale has the letters of ASCII only. One that is not named says nothing.
fn is_ascii(locale: Option<&str>) -> bool {
    let is_wide = |it: &str| it.to_ascii_lowercase().replace('-', "").contains("utf8");
    locale.is_some_and(|it| !is_wide(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_that_of_the_variable_or_of_the_terminal() {
        assert_eq!(width(None, None), Style::WIDTH);
        assert_eq!(width(Some("80"), Some(120)), 80);
        assert_eq!((width(None, Some(60)), width(Some("x"), Some(120))), (60, 120));
        assert_eq!((width(Some("1"), None), width(Some("0"), None)), (NARROWEST, Style::WIDTH));
    }

    #[test]
    fn only_a_locale_of_wide_letters_gets_them() {
        assert!(is_ascii(Some("C")) && is_ascii(Some("POSIX")) && is_ascii(Some("de_DE")));
        assert!(!is_ascii(Some("C.UTF-8")) && !is_ascii(Some("en_US.utf8")) && !is_ascii(None));
    }
}
