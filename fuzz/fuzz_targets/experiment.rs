//! Any text, read as an experiment: one or an error, never a panic.
#![no_main]

use lab::Experiment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Experiment::parse("fuzz.toml", text);
});
