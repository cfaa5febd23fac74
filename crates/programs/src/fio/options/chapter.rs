//! The table of options in `docs/fio.md` is this table.

use super::{Kind, Row, Status, all};
use testing::document::assert_block;

/// How the value is written.
fn kind(kind: Kind) -> String {
    let several = |what: &str, most: u8| match most {
        1 => what.to_owned(),
        _ => format!("up to {most} {what}s"),
    };
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Choice(words) | Kind::ChoiceAndMore(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        Kind::Flag => "flag".to_owned(),
        Kind::Bool => "0 or 1".to_owned(),
        Kind::Integers(most) => several("integer", most),
        Kind::Amounts(most) => several("amount", most),
        Kind::Share => "amount or percentage".to_owned(),
        Kind::Times(most, _) => several("time", most),
        Kind::Ranges => "ranges".to_owned(),
        Kind::Fractions => "numbers".to_owned(),
        Kind::Deprecated => "anything".to_owned(),
    }
}

/// What becomes of it.
fn status(status: Status) -> String {
    match status {
        Status::Modelled => "modelled".to_owned(),
        Status::Ignored(reason) => format!("ignored: {reason}"),
        Status::Refused(reason) => format!("refused: {reason}"),
        Status::Files(reason) => format!("modelled for files; ignored on a raw device: {reason}"),
        Status::OnlyFiles(reason) => {
            format!("modelled for files; refused on a raw device: {reason}")
        }
        Status::NeedsFileSystem(reason) => format!("needs a file system: {reason}"),
    }
}

fn line(row: &Row) -> String {
    let names = row
        .aliases
        .iter()
        .fold(format!("`{}`", row.name), |names, alias| format!("{names}, `{alias}`"));
    let engines = match row.engines {
        [] => String::new(),
        engines => format!(" ({})", engines.join(", ")),
    };
    let default = match row.default {
        "" => "–".to_owned(),
        default => format!("`{default}`"),
    };
    format!("| {names}{engines} | {} | {default} | {} |\n", kind(row.kind), status(row.status))
}

#[test]
fn the_table_of_options_in_the_chapter_is_current() {
    let mut rows: Vec<&Row> = all().collect();
    rows.sort_by_key(|row| row.name);
    let lines: String = rows.into_iter().map(line).collect();
    let table = format!("| option | value | default | here |\n|---|---|---|---|\n{lines}");
    assert_block("docs/fio.md", "fio options", &table);
}
