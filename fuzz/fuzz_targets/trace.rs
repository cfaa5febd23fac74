//! Any bytes, read as any trace format: an answer or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::{Options, read_stream};

fuzz_target!(|bytes: &[u8]| {
    let stream = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let _ = read_stream(stream, "fuzz", &Options::default());
});
