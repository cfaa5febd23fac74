//! Any text, read as a fio job file: jobs or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use programs::Surroundings;
use programs::fio::parse_job_file;

fuzz_target!(|text: &str| {
    let context = Surroundings {
        page_size: 4096,
        ncpus: 8,
        mb_memory: 16_384,
        habits: &guest::Profile::uml().habits,
        mount: None,
        environment: &|_| None,
        read_file: &|_| Err(std::io::ErrorKind::NotFound.into()),
    };
    let _ = parse_job_file("fuzz.fio", text, &context);
});
