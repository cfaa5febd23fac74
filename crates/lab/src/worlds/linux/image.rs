//! A file system for a guest: made on this host, always the same one, and mounted before the jobs.
//!
//! `mkfs.ext4` or `mkfs.xfs` of this host makes it in a sparse file; what is in there becomes the
//! contents of the disk. So nothing of it takes any of the guest's time, and identifiers that a
//! file system draws at random are fixed. Before the jobs begin the guest has mounted it, dropped
//! what it read, and been idle for long enough to have written everything.

use crate::error::Error;
use crate::experiment::filesystem;
use crate::virtio::QUIET;
use base::Bytes;
use linux::Contents;
use machine::Format;
use machine::Mount;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// What the disk may hold besides, but zeros, which cost nothing.
const MOST_DATA: Bytes = Bytes(2 << 30);
const IDENTIFIER: &str = "6a1f3c52-0000-4000-8000-000000000001";
const HASH_SEED: &str = "6a1f3c52-0000-4000-8000-000000000002";
const XFS_PACKAGE: &str = "xfsprogs";
/// The root directory, and two inodes of what XFS calls realtime (observed: mkfs.xfs 6.1).
const XFS_FIRST_INODES: [u64; 3] = [128, 129, 130];
/// The date of an ext4: this many seconds after 1970.
const DATE: &str = "1600000000";

/// A fresh file system on a disk of so many bytes. It is made once in a process, and one after the
/// other: while mkfs is at work, its file takes up to half a gigabyte of the directory for
/// temporary files.
pub(super) fn fresh(format: Format, capacity: Bytes) -> Result<Contents, Error> {
    static MADE: Mutex<BTreeMap<(Format, u64), Contents>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().expect("nobody panicked with the lock");
    if let Some(contents) = made.get(&(format, capacity.0)) {
        return Ok(contents.clone());
    }
    let name = format!("paternoster-{format:?}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let result = make(format, &path, capacity);
    // A file that cannot be removed is litter, not a failure of the run.
    let _ = std::fs::remove_file(&path);
    let contents = result?;
    made.insert((format, capacity.0), contents.clone());
    Ok(contents)
}

fn make(format: Format, path: &Path, capacity: Bytes) -> Result<Contents, Error> {
    let unwritable = |cause| Error::unwritable(path, cause);
    let image = File::create_new(path).map_err(unwritable)?;
    image.set_len(capacity.0).map_err(unwritable)?;
    match format {
        Format::Ext4 => make_ext4(path)?,
        Format::Xfs => make_xfs(path)?,
    }
    let image = File::open(path).map_err(|cause| Error::unreadable(path, cause))?;
    Contents::of_image(&image, MOST_DATA).map_err(|cause| Error::unreadable(path, cause))
}

fn make_ext4(path: &Path) -> Result<(), Error> {
    // The file is new, so it is all zeros: told so, mkfs leaves the journal and the inode tables as
    // holes. It would reserve a gigabyte for them otherwise.
    let extended = format!("hash_seed={HASH_SEED},assume_storage_prezeroed=1");
    let mut command = Command::new(program("mkfs.ext4"));
    command
        .args(["-q", "-F", "-b", "4096", "-i", "16384", "-I", "256", "-U", IDENTIFIER])
        .args(["-E", &extended])
        .arg(path)
        .env("E2FSPROGS_FAKE_TIME", DATE)
        .env("MKE2FS_SYNC", "0");
    run(command, "e2fsprogs")
}

/// The first inodes say when they were made, which is put back afterwards.
fn make_xfs(path: &Path) -> Result<(), Error> {
    let mut command = Command::new(program("mkfs.xfs"));
    let identifier = format!("uuid={IDENTIFIER}");
    command.args(["-q", "-f", "-b", "size=4096", "-s", "size=512", "-m", &identifier]).arg(path);
    run(command, XFS_PACKAGE)?;
    let mut command = Command::new(program("xfs_db"));
    command.arg("-x");
    for inode in XFS_FIRST_INODES {
        command.args(["-c", &format!("inode {inode}")]);
        for time in ["core.mtime", "core.ctime", "v3.crtime"] {
            for part in ["sec", "nsec"] {
                command.args(["-c", &format!("write {time}.{part} 0")]);
            }
        }
    }
    command.arg(path);
    run(command, XFS_PACKAGE)
}

/// A program of this host, which is perhaps not in the path of a user.
fn program(name: &str) -> PathBuf {
    linux::rootfs::find_program(name).unwrap_or(PathBuf::from(name))
}

fn run(mut command: Command, package: &str) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|cause| {
        Error::NoLinux(format!("{name}: {cause}; on Debian: apt-get install {package}"))
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::linux(format!("{name}: {}", said.trim())));
    }
    Ok(())
}

/// What the guest does before the jobs.
pub(super) fn mounting(mount: &Mount, warm_up: &str) -> Vec<String> {
    let (options, point) = (filesystem::options(mount), &mount.point);
    let kind = filesystem::name(Some(mount));
    vec![
        format!("mount -t {kind} -o {options} /dev/vda {point}"),
        "sync; echo 3 >/proc/sys/vm/drop_caches".to_string(),
        warm_up.to_string(),
        format!("read up rest </proc/uptime; sleep $(({QUIET} - ${{up%.*}}))"),
    ]
}
