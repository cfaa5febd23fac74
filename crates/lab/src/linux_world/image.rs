//! A file system for a guest: made on this host, always the same one, and mounted before the jobs.
//!
//! `mkfs.ext4` of this host makes it in a sparse file; what is in there becomes the contents of the
//! disk. So nothing of it takes any of the guest's time, and identifiers that a file system draws
//! at random are fixed. Before the jobs begin the guest has mounted it, dropped what it read, and
//! been idle for long enough to have written everything.

use crate::error::Error;
use crate::filesystem;
use base::Bytes;
use linux::Contents;
use sim::Mount;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the disk may hold besides, but zeros, which cost nothing.
const MOST_DATA: Bytes = Bytes(2 << 30);
const IDENTIFIER: &str = "6a1f3c52-0000-4000-8000-000000000001";
const HASH_SEED: &str = "6a1f3c52-0000-4000-8000-000000000002";
/// The date of the file system: this many seconds after 1970.
const DATE: &str = "1600000000";
/// Jobs begin two seconds after this one of the guest's clock; by then all has long been quiet.
const QUIET: u64 = 10;

/// File systems that were made, by the size of their disk.
#[derive(Debug, Default)]
pub(super) struct Images(Mutex<BTreeMap<u64, Contents>>);

impl Images {
    /// A fresh ext4 on a disk of so many bytes.
    pub fn ext4(&self, capacity: Bytes) -> Result<Contents, Error> {
        let mut made = self.0.lock().expect("nobody panicked with the lock");
        if let Some(contents) = made.get(&capacity.0) {
            return Ok(contents.clone());
        }
        // Several worlds of one process may make theirs at the same time.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("paternoster-ext4-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let result = make(&path, capacity);
        // A file that cannot be removed is litter, not a failure of the run.
        let _ = std::fs::remove_file(&path);
        let contents = result?;
        made.insert(capacity.0, contents.clone());
        Ok(contents)
    }
}

fn make(path: &Path, capacity: Bytes) -> Result<Contents, Error> {
    let unwritable = |cause| Error::unwritable(path, cause);
    let image = File::create_new(path).map_err(unwritable)?;
    image.set_len(capacity.0).map_err(unwritable)?;
    let program = linux::rootfs::find_program("mkfs.ext4").unwrap_or(PathBuf::from("mkfs.ext4"));
    let extended = format!("hash_seed={HASH_SEED},lazy_itable_init=0,lazy_journal_init=0");
    let output = Command::new(program)
        .args(["-q", "-F", "-b", "4096", "-i", "16384", "-I", "256", "-U", IDENTIFIER])
        .args(["-E", &extended])
        .arg(path)
        .env("E2FSPROGS_FAKE_TIME", DATE)
        .env("MKE2FS_SYNC", "0")
        .output()
        .map_err(|cause| {
            Error::NoLinux(format!("mkfs.ext4: {cause}; on Debian: apt-get install e2fsprogs"))
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::linux(format!("mkfs.ext4 of {} bytes: {}", capacity.0, said.trim())));
    }
    let image = File::open(path).map_err(|cause| Error::unreadable(path, cause))?;
    Contents::of_image(&image, MOST_DATA).map_err(|cause| Error::unreadable(path, cause))
}

/// What the guest does before the jobs.
pub(super) fn mounting(mount: &Mount, warm_up: &str) -> Vec<String> {
    let (options, point) = (filesystem::options(mount), &mount.point);
    vec![
        format!("mount -t ext4 -o {options} /dev/vda {point}"),
        "sync; echo 3 >/proc/sys/vm/drop_caches".to_string(),
        warm_up.to_string(),
        format!("read up rest </proc/uptime; sleep $(({QUIET} - ${{up%.*}}))"),
    ]
}
