//! Kernels that were built: where they are kept and how one is found again.
//!
//! A kernel's file is named by its version, the fingerprint of our configuration and its HZ. A
//! file appears there complete or not at all; what an interrupted build left is no kernel, and the
//! next build removes it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use base::{Bytes, Hz};
use rustix::fs::{FlockOperation, flock, statvfs};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::configuration::{DEFAULT_SERIES, check_architecture, configuration_key, default_hz};
use crate::error::BuildError;

/// What a build takes in the cache directory, with a margin: 6.12.117 took 1.0 GB.
const ROOM: Bytes = Bytes(1_500_000_000);
/// How directories in which kernels are built begin.
const WORK: &str = "build-";
/// How files begin that are locked while somebody builds.
const LOCK: &str = "lock-";

/// A kernel that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The program.
    pub binary: PathBuf,
    /// Its version, such as `6.12.117`; of a tree that was named, with `+` and a fingerprint of
    /// the tree.
    pub version: String,
    /// The frequency of its tick.
    pub hz: Hz,
}

/// Whether the user's cache has the kernel that guests run unless another is named.
pub fn has_kernel() -> bool {
    let found = Cache::of_user().and_then(|cache| cache.require(DEFAULT_SERIES, default_hz()));
    found.is_ok()
}

/// A directory of kernels.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The user's cache: `$PATERNOSTER_CACHE`, or `paternoster` in `$XDG_CACHE_HOME` or
    /// `~/.cache`.
    pub fn of_user() -> Result<Cache, BuildError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let directory = match variable("PATERNOSTER_CACHE") {
            Some(directory) => PathBuf::from(directory),
            None => match (variable("XDG_CACHE_HOME"), variable("HOME")) {
                (Some(cache), _) => PathBuf::from(cache).join("paternoster"),
                (None, Some(home)) => PathBuf::from(home).join(".cache/paternoster"),
                (None, None) => return Err(BuildError::NoCache),
            },
        };
        Ok(Cache { directory })
    }

    /// The cache in a directory, which need not exist yet.
    pub fn at(directory: &Path) -> Cache {
        Cache { directory: directory.to_path_buf() }
    }

    /// Where kernels are kept.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The newest kernel whose version is `version` or begins with it: `6.12` finds `6.12.117`.
    /// One that was built from a tree is found by its whole version, or where no other begins so.
    pub fn find(&self, version: &str, hz: Hz) -> Result<Option<Kernel>, BuildError> {
        let kernels: Vec<Kernel> =
            self.kernels()?.into_iter().filter(|kernel| kernel.hz == hz).collect();
        let of_series = |kernel: &&Kernel| {
            let part_of_series = |rest: &str| rest.starts_with('.') && !rest.contains(TREE);
            let rest = kernel.version.strip_prefix(version);
            rest.is_some_and(|rest| rest.is_empty() || part_of_series(rest))
        };
        let begins = |kernel: &&Kernel| {
            let rest = kernel.version.strip_prefix(version);
            rest.is_some_and(|rest| rest.starts_with(['.', TREE]))
        };
        let only = || match kernels.iter().filter(begins).collect::<Vec<_>>().as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        Ok(kernels.iter().rfind(of_series).or_else(only).cloned())
    }

    /// The kernel that [`Cache::find`] finds, or how to get one.
    pub fn require(&self, series: &str, hz: Hz) -> Result<Kernel, BuildError> {
        check_architecture()?;
        if let Some(kernel) = self.find(series, hz)? {
            return Ok(kernel);
        }
        let describe = |kernel: &Kernel| format!("{} with HZ={}", kernel.version, kernel.hz.get());
        let there: Vec<String> = self.kernels()?.iter().map(describe).collect();
        let there = match there.is_empty() {
            true => String::new(),
            false => format!(", which has {}", there.join(", ")),
        };
        let mut options = String::new();
        if series != DEFAULT_SERIES {
            options = format!(" --kernel {series}");
        }
        if hz != default_hz() {
            options += &format!(" --hz {}", hz.get());
        }
        let (series, directory) = (series.to_string(), self.directory.clone());
        Err(BuildError::NoKernel { series, hz, directory, there, options })
    }

    /// All kernels of our configuration, by version and HZ.
    pub fn kernels(&self) -> Result<Vec<Kernel>, BuildError> {
        let mut kernels = Vec::new();
        for (name, binary) in self.entries()? {
            if let Some((version, hz)) = read_name(&name).filter(|_| is_program(&binary)) {
                kernels.push(Kernel { binary, version, hz });
            }
        }
        kernels.sort_by_key(|kernel| (numbers(&kernel.version), kernel.version.clone(), kernel.hz));
        Ok(kernels)
    }

    /// Puts a finished kernel into the cache.
    pub(crate) fn keep(&self, file: &Path, version: &str, hz: Hz) -> Result<Kernel, BuildError> {
        let binary = self.directory.join(name(version, hz));
        // What is named like a kernel is one, also after a power failure.
        fs::File::open(file)
            .and_then(|open| open.sync_all())
            .and_then(|()| fs::rename(file, &binary))
            .map_err(|cause| BuildError::file("creating", &binary, cause))?;
        Ok(Kernel { binary, version: version.to_string(), hz })
    }

    /// The empty directory in which a kernel is built, and nobody else builds it. `busy` is called
    /// if somebody does; then this waits.
    pub(crate) fn work(
        &self,
        version: &str,
        hz: Hz,
        busy: &mut dyn FnMut(),
    ) -> Result<Work, BuildError> {
        let unusable = |cause| BuildError::NoDirectory { directory: self.directory.clone(), cause };
        fs::create_dir_all(&self.directory).map_err(unusable)?;
        // The build changes its working directory.
        let top = self.directory.canonicalize().map_err(unusable)?;
        let name = name(version, hz);
        let lock = Lock::take(&top, &name, busy)?;
        self.remove_leftovers(&name)?;
        let work = Work { directory: top.join(format!("{WORK}{name}")), _lock: lock };
        work.clear()?;
        Ok(work)
    }

    /// Whether there is room for a build.
    pub(crate) fn check_room(&self) -> Result<(), BuildError> {
        let about = statvfs(&self.directory)
            .map_err(|cause| BuildError::file("looking at", &self.directory, cause.into()))?;
        let free = Bytes(about.f_bavail.saturating_mul(about.f_frsize));
        match free < ROOM {
            true => {
                Err(BuildError::NoRoom { directory: self.directory.clone(), free, needed: ROOM })
            }
            false => Ok(()),
        }
    }

    /// Removes what interrupted builds of other kernels left, a gigabyte each.
    fn remove_leftovers(&self, ours: &str) -> Result<(), BuildError> {
        for (name, path) in self.entries()? {
            let Some(kernel) = name.strip_prefix(WORK).filter(|kernel| *kernel != ours) else {
                continue;
            };
            if let Some(_lock) = Lock::take_if_free(&self.directory, kernel)? {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Names and paths in the directory, if there is one.
    fn entries(&self) -> Result<Vec<(String, PathBuf)>, BuildError> {
        let failed = |cause| BuildError::file("reading", &self.directory, cause);
        match fs::read_dir(&self.directory) {
            Ok(entries) => entries
                .map(|entry| {
                    let entry = entry.map_err(failed)?;
                    Ok((entry.file_name().to_string_lossy().into_owned(), entry.path()))
                })
                .collect(),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(cause) => Err(failed(cause)),
        }
    }
}

/// Stands between the version of a kernel and the fingerprint of the tree that it is of.
pub(crate) const TREE: char = '+';

fn name(version: &str, hz: Hz) -> String {
    format!("linux-{version}-hz{}-{}", hz.get(), configuration_key())
}

fn read_name(name: &str) -> Option<(String, Hz)> {
    let rest =
        name.strip_prefix("linux-")?.strip_suffix(&configuration_key())?.strip_suffix('-')?;
    let (version, hz) = rest.rsplit_once("-hz")?;
    Some((version.to_string(), Hz::new(hz.parse().ok()?)?))
}

/// The numbers in a version, by which versions are ordered.
fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// Whether a file begins as programs do.
fn is_program(file: &Path) -> bool {
    let mut magic = [0; 4];
    let read = fs::File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

fn remove(directory: &Path) -> Result<(), BuildError> {
    match fs::remove_dir_all(directory) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(BuildError::file("removing", directory, cause))
        }
        _ => Ok(()),
    }
}

/// A directory in which one kernel is built; removed when dropped.
pub(crate) struct Work {
    directory: PathBuf,
    _lock: Lock,
}

impl Work {
    /// A directory in it, made if it is not there.
    pub fn directory(&self, name: &str) -> Result<PathBuf, BuildError> {
        let directory = self.directory.join(name);
        fs::create_dir_all(&directory)
            .map_err(|cause| BuildError::file("creating", &directory, cause))?;
        Ok(directory)
    }

    /// Removes what an interrupted build left.
    fn clear(&self) -> Result<(), BuildError> {
        remove(&self.directory)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next build.
        let _ = self.clear();
    }
}

/// The right to build a kernel. The file stays, for its removal could race with somebody who has
/// just opened it.
struct Lock {
    _file: fs::File,
}

impl Lock {
    /// Takes the lock, after calling `busy` and waiting if somebody else has it.
    fn take(directory: &Path, kernel: &str, busy: &mut dyn FnMut()) -> Result<Lock, BuildError> {
        if let Some(lock) = Lock::take_if_free(directory, kernel)? {
            return Ok(lock);
        }
        busy();
        let (path, file) = Lock::open(directory, kernel)?;
        match flock(&file, FlockOperation::LockExclusive) {
            Ok(()) => Ok(Lock::held(file)),
            Err(cause) => Err(BuildError::file("locking", &path, cause.into())),
        }
    }

    fn take_if_free(directory: &Path, kernel: &str) -> Result<Option<Lock>, BuildError> {
        let (path, file) = Lock::open(directory, kernel)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock::held(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(cause) => Err(BuildError::file("locking", &path, cause.into())),
        }
    }

    /// Programs that the build starts hold the lock, too: one may still write when the build has
    /// been killed. Where that cannot be had, they do not.
    fn held(file: fs::File) -> Lock {
        let _ = fcntl_setfd(&file, FdFlags::empty());
        Lock { _file: file }
    }

    fn open(directory: &Path, kernel: &str) -> Result<(PathBuf, fs::File), BuildError> {
        let path = directory.join(format!("{LOCK}{kernel}"));
        match fs::File::create(&path) {
            Ok(file) => Ok((path, file)),
            Err(cause) => {
                Err(BuildError::NoDirectory { directory: directory.to_path_buf(), cause })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hz(hz: u16) -> Hz {
        Hz::new(hz).unwrap()
    }

    /// An empty directory, removed when dropped.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let name = format!("paternoster-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            fs::create_dir_all(&directory).unwrap();
            Directory(directory)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_program_of_a_build_that_was_killed_is_waited_for() {
        let directory = crate::Directory::make().unwrap();
        let lock = Lock::take(directory.path(), "x", &mut || ()).unwrap();
        let mut left = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        drop(lock);
        assert!(Lock::take_if_free(directory.path(), "x").unwrap().is_none());
        left.kill().unwrap();
        left.wait().unwrap();
        assert!(Lock::take_if_free(directory.path(), "x").unwrap().is_some());
    }

    #[test]
    fn a_kernel_is_found_by_its_series_and_its_hz() {
        let directory = Directory::new("found");
        let cache = Cache::at(&directory.0);
        assert_eq!(Cache::at(&directory.0.join("none")).find("6.12", hz(250)).unwrap(), None);
        let kernels =
            [("6.12.9", 250), ("6.12.117", 250), ("6.12.117+0a1b", 250), ("6.12.118", 100)];
        for (version, ticks) in kernels {
            fs::write(directory.0.join(name(version, hz(ticks))), b"\x7fELF").unwrap();
        }
        fs::write(directory.0.join("linux-6.12.200-hz250-0123456789abcdef"), b"\x7fELF").unwrap();
        let found =
            |version, ticks| cache.find(version, hz(ticks)).unwrap().map(|kernel| kernel.version);
        assert_eq!(found("6.12", 250).as_deref(), Some("6.12.117"));
        assert_eq!(found("6.12.9", 250).as_deref(), Some("6.12.9"));
        assert_eq!(found("6.12", 100).as_deref(), Some("6.12.118"));
        assert_eq!(found("6.12.117+0a1b", 250).as_deref(), Some("6.12.117+0a1b"));
        assert_eq!(found("6.1", 250), None);
        for version in ["7.3.4+52c1", "7.4.0+11", "7.4.0+22"] {
            fs::write(directory.0.join(name(version, hz(250))), b"\x7fELF").unwrap();
        }
        assert_eq!(found("7.3", 250).as_deref(), Some("7.3.4+52c1"));
        assert_eq!(found("7.3.4", 250).as_deref(), Some("7.3.4+52c1"));
        assert_eq!((found("7.4", 250), found("7", 250), found("7.3", 100)), (None, None, None));
    }

    #[test]
    fn what_an_interrupted_build_left_is_no_kernel_and_is_removed() {
        let directory = Directory::new("left");
        let cache = Cache::at(&directory.0);
        for (version, ticks) in [("6.12.117", 100), ("6.1.192", 250)] {
            let left = directory.0.join(format!("{WORK}{}", name(version, hz(ticks))));
            fs::create_dir_all(left.join("object")).unwrap();
            fs::write(left.join("object/linux"), b"\x7fELF").unwrap();
        }
        fs::write(directory.0.join(name("6.12.117", hz(100))), "").unwrap();
        assert_eq!(cache.kernels().unwrap(), []);
        let work = cache.work("6.12.117", hz(100), &mut || panic!("nobody builds it")).unwrap();
        assert_eq!(fs::read_dir(work.directory("object").unwrap()).unwrap().count(), 0);
        let left = |cache: &Cache| {
            let entries = cache.entries().unwrap().into_iter();
            entries.filter(|(name, _)| name.starts_with(WORK)).count()
        };
        assert_eq!(left(&cache), 1, "the other one is gone");
        drop(work);
        assert_eq!(left(&cache), 0);
    }

    #[test]
    fn two_builds_of_one_kernel_take_turns_and_those_of_two_do_not() {
        let directory = Directory::new("turns");
        let cache = Cache::at(&directory.0);
        let idle = &mut || panic!("nobody builds it");
        let first = cache.work("6.12.117", hz(100), idle).unwrap();
        let kept = first.directory("object").unwrap();
        let _second = cache.work("6.12.117", hz(250), idle).unwrap();
        assert!(kept.exists(), "a build under way is no leftover");
        let (waits, waiting) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let third = scope.spawn(|| {
                cache.work("6.12.117", hz(100), &mut || waits.send(()).unwrap()).map(drop)
            });
            waiting.recv().unwrap();
            drop(first);
            third.join().unwrap().unwrap();
        });
    }
}
