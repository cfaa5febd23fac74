//! No input makes the readers panic, and what they accept keeps its promises.

#[path = "../examples/fuzz.rs"]
mod fuzz;

use proptest::prelude::*;
use std::io::Cursor;
use trace::{Format, Options, TimeUnit, read_stream};

#[test]
fn twenty_thousand_mutated_files_are_read_or_refused() {
    let outcome = fuzz::run(1, 20_000);
    // Both kinds must occur, or the mutations are too timid or too wild to prove anything.
    assert!(outcome.read > 2_000, "{outcome:?}");
    assert!(outcome.refused > 2_000, "{outcome:?}");
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_or_refused_as_every_format(
        bytes: Vec<u8>, which in prop::option::of(0..Format::ALL.len())
    ) {
        let format = which.map(|which| Format::ALL[which]);
        let time_unit = (format == Some(Format::DiskSim)).then_some(TimeUnit::Nanoseconds);
        let options = Options { format, time_unit, ..Options::default() };
        let _ = read_stream(Box::new(Cursor::new(bytes)), "x", &options);
    }

    #[test]
    fn arbitrary_lines_are_read_or_refused_as_every_format(
        lines in "([0-9a-zA-Z.,; -]{0,40}\n){0,5}", which in 0..Format::ALL.len()
    ) {
        let format = Format::ALL[which];
        let time_unit = (format == Format::DiskSim).then_some(TimeUnit::Seconds);
        let options = Options { format: Some(format), time_unit, ..Options::default() };
        let _ = read_stream(Box::new(Cursor::new(lines.into_bytes())), "x", &options);
    }
}
