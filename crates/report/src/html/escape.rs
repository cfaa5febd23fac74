//! Words as they may stand in a page.

use crate::style::printable;

/// A text between tags or within quotes.
pub(super) fn text(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for letter in printable(words).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// JSON within a script: nothing in it ends the script.
pub(super) fn script(json: &serde_json::Value) -> String {
    json.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_a_tag() {
        assert_eq!(text("<b> & \"'"), "&lt;b&gt; &amp; &quot;&#39;");
        assert_eq!(text("a\u{1b}[1m"), "a\\u{1b}[1m");
        assert_eq!(script(&serde_json::json!("</script>")), "\"\\u003c/script>\"");
    }
}
