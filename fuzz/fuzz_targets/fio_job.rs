//! Any text, read as a fio job file: jobs or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::program::fio::{Context, parse_job_file};

fuzz_target!(|text: &str| {
    let context = Context {
        page_size: 4096,
        ncpus: 8,
        mb_memory: 16_384,
        environment: &|_| None,
        read_file: &|_| Err(std::io::ErrorKind::NotFound.into()),
    };
    let _ = parse_job_file("fuzz.fio", text, &context);
});
