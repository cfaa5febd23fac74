//! Who called and where their time went: a table with bars below the numbers, and words below
//! those.

use super::escape::text;
use super::{CallerRow, Callers, Page};

/// Parts with less of the time are not told in words.
const LEAST: f64 = 0.01;
/// What stands over the columns.
const HEADINGS: [&str; 6] = ["who", "calls", "number", "mean", "median", "longest"];

/// Adds all tables.
pub(super) fn push(page: &Page, out: &mut String) {
    for it in &page.callers {
        push_table(it, out);
    }
}

fn push_table(it: &Callers, out: &mut String) {
    let caption = text(&it.caption);
    let open = "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=";
    out.push_str(&format!("{open}\"Callers: {caption}\"><table class=\"callers\">\n"));
    out.push_str(&format!("<caption>{caption}</caption>\n<thead><tr>"));
    for heading in HEADINGS {
        out.push_str(&format!("<th scope=\"col\">{heading}</th>"));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    it.rows.iter().for_each(|row| push_row(row, out));
    out.push_str("</tbody></table></div>\n");
}

fn push_row(row: &CallerRow, out: &mut String) {
    out.push_str(&format!("<tr><th scope=\"row\" rowspan=\"2\">{}</th>", text(&row.who)));
    for cell in &row.cells {
        out.push_str(&format!("<td>{}</td>", text(cell)));
    }
    // Colours are the scripts', as those of the timeline are.
    out.push_str("</tr>\n<tr><td colspan=\"5\"><div class=\"stack\" aria-hidden=\"true\">");
    for (layer, share, words) in &row.parts {
        let (layer, words) = (text(layer), text(words));
        let width = format!("style=\"width:{:.2}%\"", 100.0 * share);
        out.push_str(&format!("<span data-layer=\"{layer}\" title=\"{words}\" {width}></span>"));
    }
    out.push_str("</div><ul class=\"parts\">");
    for (layer, _, words) in row.parts.iter().filter(|it| it.1 >= LEAST) {
        let patch = format!("<span class=\"patch\" data-layer=\"{}\"></span>", text(layer));
        out.push_str(&format!("<li>{patch}{}</li>", text(words)));
    }
    out.push_str("</ul></td></tr>\n");
}
