//! Every file of the directory of recordings is read, or refused with the reason that is known.
//!
//! The files belong to others; the environment variable PATERNOSTER_TRACES names the directory.

use std::path::{Path, PathBuf};
use testing::needs::TRACES;
use trace::blktrace::Layout;
use trace::{Format, Options, TimeUnit, read_records, read_trace};

/// What becomes of a file.
enum Fate {
    Read(Format),
    /// Refused, as no format can be told from its content; read when told which it is.
    ReadAs(Format, Option<TimeUnit>),
    Refused(&'static str),
}

/// The fate of files by the beginning of their path, or their end.
fn fate(path: &str) -> Option<Fate> {
    let known = [
        ("app_startup/", Fate::Read(Format::StartUp)),
        ("blkparse_text/oxdeadmeat_nvme_dmcrypt/README", NO_FORMAT),
        // Text of somebody's own making.
        ("blkparse_text/oxdeadmeat_nvme_dmcrypt/nvme0n1.blktrace.merged.txt", NO_FORMAT),
        ("blkparse_text/", Fate::Read(Format::Blkparse)),
        ("block_csv/Financial_mini.spc", Fate::Read(Format::Spc)),
        ("block_csv/cheetah9LP.trace", Fate::Read(Format::DiskSimValidation)),
        ("block_csv/cloudPhysicsIO.vscsi", Fate::Read(Format::Vscsi)),
        ("block_csv/example.ascii", Fate::ReadAs(Format::DiskSim, Some(TimeUnit::Nanoseconds))),
        ("block_csv/linux-mysql.load.gz", Fate::Read(Format::Blkreplay)),
        ("block_csv/msr.cut", Fate::ReadAs(Format::MsrCut, None)),
        ("keks_zfs_ssd/", Fate::Read(Format::Blktrace)),
        ("loop0_blktst/", Fate::Read(Format::Blktrace)),
        ("mynotes_sda_vm/", Fate::Read(Format::Blktrace)),
        ("viewer_sample_nvme/", Fate::Read(Format::Blktrace)),
    ];
    if path.ends_with("README.md") || path.ends_with("COPYING") {
        return Some(NO_FORMAT);
    }
    known.into_iter().find(|(start, _)| path.starts_with(start)).map(|(_, fate)| fate)
}

const NO_FORMAT: Fate = Fate::Refused("no known format begins with");

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in directory.read_dir().unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

fn every_file_is_read_or_refused_with_its_reason() {
    let directory = testing::needs::traces();
    let mut read = 0;
    for path in files(&directory) {
        let name = path.strip_prefix(&directory).unwrap().display().to_string();
        let result = read_trace(&path, &Options::default());
        let said = result.as_ref().map(|trace| trace.format).map_err(ToString::to_string);
        match fate(&name) {
            // A file that came later: either is right, as long as it is one of them.
            None => println!("{name}: {said:?}"),
            Some(Fate::Read(format)) => {
                assert_eq!(said, Ok(format), "{name}");
                read += 1;
            }
            Some(Fate::Refused(reason)) => {
                let message = said.expect_err(&name);
                assert!(message.contains(reason), "{name}: {message}");
            }
            Some(Fate::ReadAs(format, time_unit)) => {
                let message = said.expect_err(&name);
                assert!(message.contains("nothing in the file tells which"), "{name}: {message}");
                let options = Options { format: Some(format), time_unit, ..Options::default() };
                read_trace(&path, &options).unwrap_or_else(|error| panic!("{error}"));
                read += 1;
            }
        }
    }
    assert!(read > 20, "only {read} files are there");
}

fn damage_in_a_recording_is_refused_at_its_byte() {
    let directory = testing::needs::traces();
    let damaged = Path::new(env!("CARGO_TARGET_TMPDIR")).join("damaged.bin");
    for path in files(&directory) {
        let name = path.strip_prefix(&directory).unwrap().display().to_string();
        if !matches!(fate(&name), Some(Fate::Read(Format::Blktrace))) {
            continue;
        }
        let mut bytes = std::fs::read(&path).unwrap();
        // The record in the middle is found as a reader finds it.
        let layout = Layout::of_magic(*bytes.first_chunk().unwrap()).unwrap();
        let (mut at, length) = (0, bytes.len());
        while at < length / 2 {
            let header = layout.header_length();
            at += header + layout.payload_length(&bytes[at..at + header]);
        }
        bytes[at] ^= 0xff;
        std::fs::write(&damaged, &bytes).unwrap();
        let message = read_trace(&damaged, &Options::default()).unwrap_err().to_string();
        assert!(message.contains(&format!(" at byte {at}: damaged: a record begins")), "{message}");
        let records = read_records(&damaged).unwrap();
        let error = records.filter_map(Result::err).next().unwrap().to_string();
        assert_eq!(error, message, "{name}");
    }
    std::fs::remove_file(damaged).unwrap();
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [TRACES] => every_file_is_read_or_refused_with_its_reason,
            damage_in_a_recording_is_refused_at_its_byte,
    ])
}
