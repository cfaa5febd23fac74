//! The table of every option of fio 3.33: its name, how its value is written, its limits and
//! default, and what becomes of it here.
//!
//! The names, kinds, ranges and defaults are those that `fio --cmdhelp=OPTION` and
//! `--debug=parse` show. An option whose status is `Refused` or `NeedsFileSystem` is still
//! accepted when it is set to the value it has anyway.

#[cfg(test)]
mod chapter;
mod engine_specific;
mod reporting;
mod workload;

use super::error::{self, ParseError};
use super::value::BareTime;

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name by which the option is known here.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// How its value is written.
    pub kind: Kind,
    /// The smallest and the largest value allowed, in the units of the value: fio's, or less where
    /// more would take more memory than there is.
    pub range: (i64, i64),
    /// The value it has when it is not given; empty where that means "not set".
    pub default: &'static str,
    /// The ioengines that know the option; empty for all.
    pub engines: &'static [&'static str],
    /// What becomes of it.
    pub status: Status,
}

/// How the value of an option is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, and more text behind a colon.
    ChoiceAndMore(&'static [&'static str]),
    /// Nothing, or a number that is zero for "off".
    Flag,
    /// 0 or 1.
    Bool,
    /// Up to this many integers with units of data.
    Integers(u8),
    /// Up to this many amounts of data that must fit 64 bits.
    Amounts(u8),
    /// An amount of data, a percentage or a number of zones.
    Share,
    /// Up to this many times.
    Times(u8, BareTime),
    /// Up to three ranges of sizes.
    Ranges,
    /// Decimal fractions separated by colons.
    Fractions,
    /// Accepted for the sake of old job files.
    Deprecated,
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does what it does in fio.
    Modelled,
    /// It cannot change which blocks are read or written when; the reason.
    Ignored(&'static str),
    /// It could, and is not modelled; the reason.
    Refused(&'static str),
    /// It is modelled for files of a file system, and changes nothing on a raw device; the reason.
    Files(&'static str),
    /// It is modelled for files of a file system, and means nothing elsewhere; the reason.
    OnlyFiles(&'static str),
    /// It means something for files only; the reason.
    NeedsFileSystem(&'static str),
}

const ANY: (i64, i64) = (i64::MIN, i64::MAX);
const NATURAL: (i64, i64) = (0, u32::MAX as i64);
const SECONDS: Kind = Kind::Times(1, BareTime::Seconds);
const MICROS: Kind = Kind::Times(1, BareTime::Microseconds);
const INTEGER: Kind = Kind::Integers(1);

const fn row(name: &'static str, kind: Kind, default: &'static str, status: Status) -> Row {
    let range = match kind {
        Kind::Bool => (0, 1),
        Kind::Integers(_) => NATURAL,
        Kind::Amounts(_) | Kind::Share | Kind::Times(..) | Kind::Ranges => (0, i64::MAX),
        _ => ANY,
    };
    Row { name, aliases: &[], kind, range, default, engines: &[], status }
}

const fn modelled(name: &'static str, kind: Kind, default: &'static str) -> Row {
    row(name, kind, default, Status::Modelled)
}

impl Row {
    const fn alias(mut self, aliases: &'static [&'static str]) -> Row {
        self.aliases = aliases;
        self
    }

    const fn range(mut self, least: i64, most: i64) -> Row {
        self.range = (least, most);
        self
    }

    const fn engines(mut self, engines: &'static [&'static str]) -> Row {
        self.engines = engines;
        self
    }

    /// Whether this is the option called `name`.
    fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Whether the option exists for jobs that run on `engine`.
    pub fn belongs_to(&self, engine: &str) -> bool {
        self.engines.is_empty() || self.engines.contains(&engine)
    }

    /// How its value is written, as a message says it.
    pub fn accepted(&self) -> String {
        match self.kind {
            Kind::Choice(words) | Kind::ChoiceAndMore(words) => words.join(", "),
            Kind::Bool => "0 or 1".to_owned(),
            Kind::Flag => "no value, 0 or 1".to_owned(),
            Kind::Integers(_) if self.range.1 < i64::from(i32::MAX) => {
                format!("an integer from {} to {}", self.range.0, self.range.1)
            }
            Kind::Integers(_) => "an integer such as 16 or 4k".to_owned(),
            Kind::Amounts(_) => "an amount such as 4096, 4k or 1m".to_owned(),
            Kind::Share => "an amount such as 4096 or 10g, or a percentage".to_owned(),
            Kind::Times(..) => "a time such as 30s, 500ms or 10us".to_owned(),
            Kind::Ranges => "ranges such as 4k-64k or 4k-64k,8k-8k".to_owned(),
            Kind::Fractions => "numbers such as 99.9 or 50:99:99.9".to_owned(),
            Kind::Text | Kind::Deprecated => "a text as fio(1) describes it".to_owned(),
        }
    }

    /// What would be accepted instead of this option as it was given.
    fn instead(&self) -> String {
        let name = self.name;
        match (self.status, self.default) {
            (Status::NeedsFileSystem(_) | Status::OnlyFiles(_), _) => {
                format!("fs = \"ext4\" or \"xfs\", or a job without {name}")
            }
            (Status::Refused(_), "") => format!("a job without {name}"),
            (Status::Refused(_), default) => format!("{name}={default}, or a job without it"),
            _ => self.accepted(),
        }
    }

    /// Whether the option may stand on a command line without a value.
    pub fn takes_value(&self) -> bool {
        !matches!(self.kind, Kind::Flag)
    }
}

/// Every option, in fio's own groups.
pub fn all() -> impl Iterator<Item = &'static Row> {
    workload::ROWS.iter().chain(reporting::ROWS).chain(engine_specific::ROWS)
}

/// The option called `name` for jobs that run on `engine`.
pub fn find(name: &str, engine: &str) -> Option<&'static Row> {
    all().find(|row| row.is(name) && row.belongs_to(engine))
}

/// The option called `name`, which all engines know.
pub fn of_all(name: &str) -> &'static Row {
    all().find(|row| row.name == name).expect("the table has it")
}

/// The ioengines that know an option called `name`, where not all engines do.
pub fn engines_with(name: &str) -> Vec<&'static str> {
    let here = all().filter(|row| row.is(name)).flat_map(|row| row.engines);
    let elsewhere = engine_specific::ELSEWHERE.iter();
    let elsewhere = elsewhere.filter(|(names, _)| names.contains(&name));
    here.chain(elsewhere.flat_map(|(_, engines)| *engines)).copied().collect()
}

/// An error that says what would be accepted: what it says itself, or else what the table does.
pub fn complete(error: ParseError) -> ParseError {
    if error.accepted.is_some() {
        return error;
    }
    let row = error.option.as_ref().and_then(|name| all().find(|row| row.is(name)));
    let accepted = match row {
        Some(row) => row.instead(),
        None if error.option.is_some() => "an option of fio 3.33 (docs/fio.md)".to_owned(),
        None => "a job as docs/fio.md describes it".to_owned(),
    };
    error.accepts(accepted)
}

/// The known name that is nearest to `name`.
pub fn nearest(name: &str, engine: &str) -> Option<&'static str> {
    let known = all().filter(|row| row.belongs_to(engine));
    error::nearest(name, known.flat_map(|row| row.aliases.iter().chain([&row.name])).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_is_taken_twice_for_one_engine() {
        for engine in ["libaio", "io_uring", "pvsync2", "sg", "cpuio", "psync"] {
            let mut names = BTreeSet::new();
            for row in all().filter(|row| row.belongs_to(engine)) {
                for name in row.aliases.iter().chain([&row.name]) {
                    assert!(names.insert(name), "{name} twice for {engine}");
                }
            }
        }
    }

    #[test]
    fn every_reason_is_a_phrase() {
        for row in all() {
            let (Status::Ignored(reason)
            | Status::Refused(reason)
            | Status::Files(reason)
            | Status::OnlyFiles(reason)
            | Status::NeedsFileSystem(reason)) = row.status
            else {
                continue;
            };
            assert!(reason.len() > 10 && !reason.ends_with('.'), "{}: {reason}", row.name);
        }
    }

    #[test]
    fn options_are_found_by_alias_and_by_engine() {
        assert_eq!(find("blocksize", "psync").unwrap().name, "bs");
        assert!(find("userspace_reap", "psync").is_none());
        assert!(find("userspace_reap", "libaio").is_some());
        assert_eq!(engines_with("userspace_reap"), ["libaio"]);
        assert_eq!(engines_with("uri"), ["nbd"]);
        assert_eq!(nearest("iodepht", "psync"), Some("iodepth"));
    }
}
