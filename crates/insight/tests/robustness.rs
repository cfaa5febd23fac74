//! Recordings that are damaged, cut off, empty or none at all.

#[path = "../examples/fuzz_recordings.rs"]
mod fuzz;

use insight::recorded;
use std::path::{Path, PathBuf};

#[test]
fn no_damaged_recording_breaks_a_promise() {
    let fuzz::Outcome { read, refused, lives } = fuzz::run(1, 20_000);
    assert_eq!(read + refused, 20_000);
    assert!(refused > 100 && lives > 30_000, "{read} read, {refused} refused, {lives} lives");
}

/// A file of its own, gone when the test ends.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> File {
        let name = format!("insight-robustness-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).expect("there is room for a small file");
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // There is nobody left to tell that cleaning up failed.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn refusal(path: &Path) -> String {
    let read_all = |path| {
        let mut recording = recorded::open(path, None)?;
        while recording.read_some(|_| {})? {}
        Ok::<_, trace::Error>(())
    };
    read_all(path).expect_err("it is refused").to_string()
}

#[test]
fn a_file_that_is_no_recording_is_refused_in_one_line() {
    let foreign = File::new("foreign", b"PK\x03\x04 something else altogether");
    for (path, part) in [
        (foreign.0.as_path(), "no record begins with bytes 50 4b 03 04"),
        (Path::new("/no/such/recording"), "no such file"),
    ] {
        let said = refusal(path);
        assert!(said.contains(part) && said.contains("accepted: "), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn an_empty_recording_has_no_requests() {
    let empty = File::new("empty", b"");
    let mut recording = recorded::open(&empty.0, None).unwrap();
    assert!(!recording.read_some(|_| {}).unwrap());
    assert_eq!((recording.lives().count(), recording.stream().records()), (0, 0));
    assert_eq!(recording.stream().device(), None);
}
