//! Tables of the documentation are those of the code.

use block::changes::{Change, Table};
use block::{Kernel, Version};
use lab::experiment::keys;
use lab::plan::Plan;
use lab::{Experiment, figure, matrix};
use sched::Backport;
use std::collections::BTreeMap;
use std::fmt::Write;
use testing::document::assert_block;

#[test]
fn tables_of_the_documentation_are_those_of_the_code() {
    for (name, block) in keys::markdown().into_iter().chain([figure::markdown()]) {
        assert_block("docs/experiments.md", name, &block);
    }
}

/// The examples of experiments, as they stand between text.
fn examples(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(line) => blocks.last_mut().unwrap().push_str(&format!("{line}\n")),
            None if line.is_empty() => blocks.last_mut().unwrap().push('\n'),
            None => blocks.push(String::new()),
        }
    }
    blocks.retain(|it| it.contains("[[job]]"));
    blocks
}

#[test]
fn examples_of_experiments_run_as_they_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments.md");
    let examples = examples(&std::fs::read_to_string(path).unwrap());
    let [whole, files] = examples.as_slice() else { panic!("{examples:?}") };
    let mut experiment = Experiment::parse("docs/experiments.md", whole).unwrap();
    experiment.seeds.truncate(1);
    let written = keys::EXPERIMENT.iter().filter(|it| it.form != keys::Form::Unwritten);
    for key in written.filter(|key| !matches!(key.name, "mount_point" | "calls" | "metric")) {
        assert!(experiment.places.contains_key(key.name), "{} is not in the example", key.name);
    }
    let report = matrix::run(Plan::new(experiment).unwrap(), None, 2, &|_| ()).unwrap();
    assert!(report.results.iter().all(lab::RunResult::succeeded));
    // What only a guest has is not simulated: it is understood, and refused where it would run.
    let files = Experiment::parse("docs/experiments.md", files).unwrap();
    let refused = Plan::new(files).unwrap_err().to_string();
    assert!(refused.contains("is not simulated; accepted: --world linux"), "{refused}");
}

#[test]
fn findings_are_those_that_detectors_know() {
    let (name, block) = lab::explain::detectors::markdown();
    assert_block("docs/explain.md", name, &block);
}

/// The kernels that judge, and one between them.
const KERNELS: [Version; 4] = [Version::V6_1, Version::V6_12, Version::V6_18, Version::V7_3];
/// Those between which BFQ changed.
const OF_BFQ: [Version; 6] =
    [Version::V4_19, Version::V5_1, Version::V5_2, Version::V6_1, Version::V6_12, Version::V7_3];

#[test]
fn what_changed_between_kernels_is_what_their_tables_say() {
    let tables =
        block::changes::TABLES.iter().chain([&sched::mq_deadline::CHANGES, &sched::kyber::CHANGES]);
    let text = rows(&KERNELS, tables.chain(machine::changes()));
    assert_block("docs/kernels.md", "changes", &text);
    assert_block("docs/kernels.md", "bfq", &rows(&OF_BFQ, sched::bfq::CHANGES.iter()));
}

#[test]
fn backports_are_those_of_the_schedulers() {
    let mut text =
        String::from("| scheduler | backport | on | says | since |\n|---|---|---|---|---|\n");
    for entry in &sched::LIST {
        for Backport { name, says, since, on, .. } in entry.backports() {
            let on: Vec<String> = on.iter().map(Version::to_string).collect();
            let (scheduler, on) = (entry.name, on.join(", "));
            writeln!(text, "| {scheduler} | `{name}` | {on} | {says} | {since} |").unwrap();
        }
    }
    assert_block("docs/kernels.md", "backports", &text);
}

/// The rows of tables, for some kernels.
fn rows<'a>(kernels: &[Version], tables: impl Iterator<Item = &'a Table>) -> String {
    let names: Vec<String> = kernels.iter().map(Version::to_string).collect();
    let mut text = format!("| about | field | says | {} |\n|---|---|---|", names.join(" | "));
    kernels.iter().for_each(|_| text.push_str("---|"));
    text.push('\n');
    tables.for_each(|table| add_rows(&mut text, kernels, table));
    text
}

/// The rows of a table of rules. Each field that changed has one, and no other field has.
fn add_rows(text: &mut String, kernels: &[Version], table: &Table) {
    let of = |version: &Version| fields(&(table.shows)(Kernel::of(*version)));
    let values: Vec<_> = kernels.iter().map(of).collect();
    let changed = |field: &str| {
        let own = |values: &BTreeMap<String, String>| values.get(field).cloned();
        // What has fields of its own has a table of its own.
        let is_plain = values.iter().all(|it| own(it).is_some_and(|it| !it.contains('{')));
        is_plain && field != "version" && values.iter().any(|it| own(it) != own(&values[0]))
    };
    for field in values[0].keys().filter(|field| changed(field)) {
        let has_row = table.rows.iter().any(|row| row.field == field);
        assert!(has_row, "{}: {field} changed, and no row says so", table.about);
    }
    for Change { field, says, observed } in table.rows {
        assert!(changed(field), "{}: {field} is not a field that changed", table.about);
        let cell = |number: usize| {
            let value = values[number][*field].as_str();
            let inner = value.strip_prefix("Some(").and_then(|it| it.strip_suffix(')'));
            let value = match inner.unwrap_or(value) {
                "true" => "yes",
                "false" => "no",
                other => other,
            };
            let mark =
                if observed.contains(&kernels[number]) || value == "–" { "" } else { " *" };
            format!("{value}{mark}")
        };
        let cells: Vec<String> = (0..kernels.len()).map(cell).collect();
        writeln!(text, "| {} | `{field}` | {says} | {} |", table.about, cells.join(" | ")).unwrap();
    }
}

/// The fields of a record and their values, from what `{:#?}` writes of it.
fn fields(shown: &str) -> BTreeMap<String, String> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in shown.trim_end_matches('}').lines().skip(1) {
        let own = line.strip_prefix("    ").filter(|it| !it.starts_with([' ', '}', ')']));
        match own.and_then(|it| it.split_once(": ")) {
            Some((name, value)) => fields.push((name.to_string(), value.to_string())),
            None => fields.iter_mut().last().into_iter().for_each(|it| it.1.push_str(line.trim())),
        }
    }
    let plain = |value: String| value.replace(",)", ")").trim_end_matches(',').to_string();
    fields.into_iter().map(|(name, value)| (name, plain(value))).collect()
}
