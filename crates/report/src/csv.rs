//! Results as CSV (RFC 4180): a line for each figure of each row, as a spreadsheet or a data frame
//! takes them. It has what `summary` of the JSON has.

use lab::matrix::Report;
use lab::summary::Summary;

/// The whole table, with headings.
pub fn compare(report: &Report, summary: &Summary) -> String {
    let axes = || report.plan.experiment.axes.iter().map(|axis| axis.name.clone());
    let words = |words: &[&str]| words.iter().map(|it| it.to_string()).collect::<Vec<_>>();
    let mut out = String::new();
    let heads = words(&["world", "kernel", "scheduler", "label"]);
    let figures =
        words(&["figure", "mean", "half_width_95", "min", "max", "n", "at_least", "judged"]);
    push(&mut out, heads.into_iter().chain(axes()).chain(figures));
    for line in &summary.lines {
        let row = &report.plan.rows[line.row];
        let spec = &row.spec;
        let world = row.world.to_string();
        let heads = [world, spec.kernel_name(), spec.name.to_string(), spec.label()];
        let values = line.axes.iter().map(|(_, value)| value.clone());
        let heads: Vec<String> = heads.into_iter().chain(values).collect();
        for (figure, it) in &line.figures {
            let judged = summary.main.as_ref() == Some(figure);
            let numbers = [it.mean, it.half_width, it.min, it.max].map(|it| it.to_string());
            let rest = [it.count.to_string(), it.at_least.to_string(), judged.to_string()];
            let figure = std::iter::once(figure.to_string());
            push(&mut out, heads.iter().cloned().chain(figure).chain(numbers).chain(rest));
        }
    }
    out
}

fn push(out: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(|it| quoted(&it)).collect();
    out.push_str(&cells.join(","));
    out.push_str("\r\n");
}

/// A cell, in quotes if it needs them.
fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_only_if_need_be() {
        assert_eq!(quoted("none@6.18"), "none@6.18");
        assert_eq!(quoted("mq-deadline:a=1,b=2"), "\"mq-deadline:a=1,b=2\"");
        assert_eq!(quoted("say \"so\""), "\"say \"\"so\"\"\"");
    }
}
