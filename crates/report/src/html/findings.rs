//! What was found, and the slowest calls: each with a button that shows it in the timeline.

use super::escape::text;
use super::{Finding, Page, Place, sections};

/// Adds all findings, those of one run together.
pub(super) fn push(page: &Page, out: &mut String) {
    for group in page.findings.chunk_by(|one, other| one.whose == other.whose) {
        if !group[0].whose.is_empty() {
            out.push_str(&format!("<h3>{}</h3>\n", text(&group[0].whose)));
        }
        out.push_str("<ol class=\"findings\">\n");
        group.iter().for_each(|it| push_finding(it, out));
        out.push_str("</ol>\n");
    }
}

fn push_finding(finding: &Finding, out: &mut String) {
    let told = !finding.cost.is_empty();
    let class = if told { " class=\"title\"" } else { "" };
    out.push_str(&format!("<li><p{class}>{}</p>", text(&finding.title)));
    let one = |it: &String| Some(it.clone()).filter(|it| !it.is_empty()).into_iter().collect();
    let parts: [(&str, Vec<String>); 4] = [
        ("Cost", one(&finding.cost)),
        ("Why", one(&finding.mechanism)),
        ("Evidence", finding.evidence.clone()),
        ("Change", finding.changes.clone()),
    ];
    if parts.iter().any(|(_, said)| !said.is_empty()) {
        out.push_str("<dl>");
        for (name, said) in parts.iter().filter(|(_, said)| !said.is_empty()) {
            out.push_str(&format!("<dt>{name}</dt>"));
            said.iter().for_each(|it| out.push_str(&format!("<dd>{}</dd>", text(it))));
        }
        out.push_str("</dl>");
    }
    push_button(finding.place, "Show where it is first", out);
    out.push_str("</li>\n");
}

/// Adds the slowest calls.
pub(super) fn push_slow(page: &Page, out: &mut String) {
    for (table, place) in &page.slow {
        out.push_str("<div class=\"slow\">\n");
        sections::push_table(table, out);
        let words = match place {
            Some(Place::Chain { .. }) => "Show its critical path",
            _ => "Show it on the timeline",
        };
        push_button(*place, words, out);
        out.push_str("</div>\n");
    }
}

fn push_button(place: Option<Place>, words: &str, out: &mut String) {
    let data = match place {
        None => return,
        Some(Place::Time { run, from, to }) => {
            format!("data-run=\"{run}\" data-from=\"{from}\" data-to=\"{to}\"")
        }
        Some(Place::Chain { run, number }) => {
            format!("data-run=\"{run}\" data-chain=\"{number}\"")
        }
    };
    out.push_str(&format!("<button type=\"button\" class=\"show\" {data}>{words}</button>"));
}
