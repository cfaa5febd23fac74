//! The sections of a page, which say everything without a script but what a timeline shows.

use super::escape::text;
use super::{Page, Table, callers, findings};
use crate::style::Paint;

/// Adds a section's content.
type Push = fn(&Page, &mut String);

/// Adds all that has something in it.
pub(super) fn push_all(page: &Page, out: &mut String) {
    let has_timeline = !page.timelines.is_empty() || !page.remark.is_empty();
    let has_callers = !page.callers.is_empty();
    let mut sections: [(&str, &str, bool, Push); 8] = [
        ("answer", "Answer", true, push_answer),
        ("figures", "Figures", !page.tables.is_empty(), push_tables),
        ("callers", "Who calls, and where the time goes", has_callers, callers::push),
        ("throughput", "Throughput over time", !page.curves.is_empty(), push_curves),
        ("latency", "Latency by layer", !page.distributions.is_empty(), push_distributions),
        ("findings", "Findings", !page.findings.is_empty(), findings::push),
        ("slow", "The slowest calls", !page.slow.is_empty(), findings::push_slow),
        ("timeline", "Timeline", has_timeline, push_timelines),
    ];
    // What was explained comes before curves.
    if has_callers {
        sections[3..].rotate_left(2);
    }
    let sections = sections.iter().filter(|(_, _, has, _)| *has);
    out.push_str(&format!("<header>\n<h1>{}</h1>\n", text(&page.title)));
    out.push_str(&format!("<p class=\"about\">{}</p>\n", text(&page.about)));
    out.push_str("<nav aria-label=\"Sections\">");
    for (id, title, _, _) in sections.clone() {
        out.push_str(&format!("<a href=\"#{id}\">{title}</a> "));
    }
    out.push_str("</nav>\n<button type=\"button\" id=\"theme\">Colours: as the system</button>\n");
    out.push_str("</header>\n<main>\n");
    for (id, title, _, push) in sections {
        let open = format!("<section id=\"{id}\" aria-labelledby=\"{id}-title\">");
        out.push_str(&format!("{open}\n<h2 id=\"{id}-title\">{title}</h2>\n"));
        push(page, out);
        out.push_str("</section>\n");
    }
    out.push_str("</main>\n");
}

fn push_answer(page: &Page, out: &mut String) {
    for sentence in page.answer.lines() {
        out.push_str(&format!("<p class=\"answer\">{}</p>\n", text(sentence)));
    }
    if page.story.is_empty() {
        return;
    }
    out.push_str("<details open><summary>What was asked</summary>\n");
    page.story.iter().for_each(|it| out.push_str(&format!("<p>{}</p>\n", text(it))));
    out.push_str("</details>\n");
}

fn push_tables(page: &Page, out: &mut String) {
    page.tables.iter().for_each(|it| push_table(it, out));
}

/// A table that scrolls by itself where it is too wide.
pub(super) fn push_table(table: &Table, out: &mut String) {
    let caption = text(&table.caption);
    let open = "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=";
    out.push_str(&format!("{open}\"{caption}\"><table>\n<caption>{caption}</caption>\n<thead>"));
    if table.groups.iter().any(|(title, _)| !title.is_empty()) {
        out.push_str("<tr>");
        for (title, span) in &table.groups {
            match title.is_empty() {
                true => out.push_str(&format!("<td colspan=\"{span}\"></td>")),
                false => {
                    let head = format!("<th scope=\"colgroup\" colspan=\"{span}\">");
                    out.push_str(&format!("{head}{}</th>", text(title)));
                }
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("<tr>");
    for (title, heading) in titles(table).chain(std::iter::repeat("")).zip(&table.headings) {
        // A column under a group's title alone is called like the group.
        let shown = if heading.is_empty() { "" } else { heading };
        let label = if heading.is_empty() { title } else { "" };
        match (shown.is_empty(), label.is_empty()) {
            (true, true) => out.push_str("<td></td>"),
            (true, false) => {
                let label = text(label);
                out.push_str(&format!("<th scope=\"col\" aria-label=\"{label}\"></th>"));
            }
            _ => out.push_str(&format!("<th scope=\"col\">{}</th>", text(shown))),
        }
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        push_row(row, table.keys, out);
    }
    out.push_str("</tbody></table></div>\n");
}

/// The group's title of each column.
fn titles(table: &Table) -> impl Iterator<Item = &str> {
    table.groups.iter().flat_map(|(title, span)| std::iter::repeat_n(title.as_str(), *span))
}

fn push_row(row: &[(String, Option<Paint>)], keys: usize, out: &mut String) {
    out.push_str("<tr>");
    for (at, (cell, paint)) in row.iter().enumerate() {
        let class = match paint {
            Some(Paint::Good) => " class=\"good\"",
            Some(Paint::Bad) => " class=\"bad\"",
            _ => "",
        };
        let cell = text(cell);
        out.push_str(&match at < keys {
            true => format!("<th scope=\"row\">{cell}</th>"),
            false => format!("<td{class}>{cell}</td>"),
        });
    }
    out.push_str("</tr>\n");
}

/// Places for uPlot's drawings, with their values in a table for those who do not see them.
fn push_curves(page: &Page, out: &mut String) {
    for (number, curves) in page.curves.iter().enumerate() {
        push_chart("curves", number, &curves.title, out);
    }
}

fn push_chart(class: &str, number: usize, title: &str, out: &mut String) {
    let title = text(title);
    let open = format!("<figure class=\"chart\" data-chart=\"{class}\" data-number=\"{number}\">");
    out.push_str(&format!("{open}<figcaption>{title}</figcaption>"));
    out.push_str(&format!("<div class=\"plot\" role=\"img\" aria-label=\"{title}\"></div>"));
    out.push_str("<p class=\"words\"></p></figure>\n");
}

fn push_distributions(page: &Page, out: &mut String) {
    for (number, it) in page.distributions.iter().enumerate() {
        push_chart("distributions", number, &it.title, out);
        push_table(&it.table, out);
    }
}

/// What stands around the timelines; the scripts fill it.
const TOOLS: &str = include_str!("../../assets/tools.html");

fn push_timelines(page: &Page, out: &mut String) {
    if !page.timelines.is_empty() {
        push_runs(page, out);
    }
    if !page.remark.is_empty() {
        out.push_str(&format!("<p class=\"remark\">{}</p>\n", text(&page.remark)));
    }
}

fn push_runs(page: &Page, out: &mut String) {
    out.push_str(TOOLS);
    for (number, timeline) in page.timelines.iter().enumerate() {
        let title = text(&timeline.title);
        out.push_str(&format!("<div class=\"run\" data-number=\"{number}\">\n"));
        out.push_str(&format!("<h3>{title}</h3>\n<div class=\"lanes\" aria-hidden=\"true\">"));
        out.push_str("</div>\n<div class=\"stage\" role=\"application\" tabindex=\"0\" ");
        out.push_str("aria-roledescription=\"timeline\" aria-describedby=\"timeline-help shown\" ");
        out.push_str(&format!("aria-label=\"Timeline of {title}\"><canvas></canvas></div>\n"));
        out.push_str("</div>\n");
    }
    out.push_str("<div id=\"tip\" role=\"tooltip\" hidden></div>\n");
    out.push_str("<details id=\"text\"><summary>What is shown, as a table</summary></details>\n");
}
