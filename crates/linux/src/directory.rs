//! A directory for one run in the host's directory for temporary files.
//!
//! It is removed when it is not needed any more, also if whoever made it was killed: the next one
//! that is made removes what nobody holds. A lock tells, as numbers of processes mean nothing to
//! somebody in another container.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// How all of them are called once they have their locks.
const NAME: &str = "paternoster-guest-";
/// How they are called before.
const NEW: &str = "paternoster-new-guest-";
/// A directory may be this old before it has its lock.
const UNLOCKED: Duration = Duration::from_secs(60);

/// A directory that is removed when dropped.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Locked while the directory is in use.
    _held: fs::File,
}

impl Directory {
    /// An empty directory.
    pub fn make() -> io::Result<Directory> {
        Directory::make_in(&std::env::temp_dir())
    }

    /// The same elsewhere.
    pub(crate) fn make_in(all: &Path) -> io::Result<Directory> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        static CLEARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        if CLEARED.lock().expect("nobody panics with it").insert(all.to_path_buf()) {
            remove_leftovers(all);
        }
        let own = format!("{}-{number}", std::process::id());
        let (new, path) = (all.join(format!("{NEW}{own}")), all.join(format!("{NAME}{own}")));
        let made = || {
            fs::create_dir(&new)?;
            let held = fs::File::open(&new)?;
            flock(&held, FlockOperation::NonBlockingLockShared)?;
            // Whoever finds it without a lock from now on may remove it.
            fs::rename(&new, &path)?;
            Ok(Directory { path: path.clone(), _held: held })
        };
        made().map_err(|cause: io::Error| {
            io::Error::new(cause.kind(), format!("{}: {cause}", path.display()))
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is litter, not a failure of the run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes directories that nobody holds. Those of other users stay, and so does whatever else goes
/// wrong: it is litter.
fn remove_leftovers(all: &Path) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let age = entry.metadata().and_then(|about| about.modified()).map(|made| made.elapsed());
        let old = matches!(age, Ok(Ok(age)) if age > UNLOCKED);
        let free = |directory: fs::File| flock(directory, FlockOperation::NonBlockingLockExclusive);
        let is_left = name.starts_with(NAME) || (name.starts_with(NEW) && old);
        if is_left && fs::File::open(entry.path()).is_ok_and(|it| free(it).is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_there_until_it_is_dropped() {
        let (one, other) = (Directory::make().unwrap(), Directory::make().unwrap());
        assert_ne!(one.path(), other.path());
        fs::write(one.path().join("file"), "text").unwrap();
        let path = one.path().to_path_buf();
        assert!(path.exists());
        drop(one);
        assert!(!path.exists());
    }

    #[test]
    fn only_directories_that_nobody_holds_or_will_hold_are_removed() {
        let all = Directory::make().unwrap();
        let make = |name: &str, age: u64| {
            let path = all.path().join(name);
            fs::create_dir(&path).unwrap();
            let made = fs::File::open(&path).unwrap();
            let now = made.metadata().unwrap().modified().unwrap();
            made.set_modified(now - Duration::from_secs(age)).unwrap();
            (path, made)
        };
        let (left, _) = make(&format!("{NAME}1-1"), 1);
        let (young, _) = make(&format!("{NEW}1-2"), 1);
        let (begun, _) = make(&format!("{NEW}1-4"), 100);
        let (other, _) = make("other", 100);
        let (held, file) = make(&format!("{NAME}1-3"), 100);
        flock(&file, FlockOperation::NonBlockingLockShared).unwrap();
        remove_leftovers(all.path());
        let there = [&left, &begun, &young, &other, &held].map(|path| path.exists());
        assert_eq!(there, [false, false, true, true, true]);
    }
}
