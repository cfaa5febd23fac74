//! Kernels that were built: where they are kept and how one is found again.
//!
//! A kernel's file is named by its version, the fingerprint of our configuration and its HZ. A
//! file appears there complete or not at all; what an interrupted build left is no kernel, and the
//! next build removes it. The time of its last change is that of its last use. Objects of a tree
//! stay, so that the next build of the tree compiles what has changed.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base::{Bytes, Fingerprint, Hz};
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Timespec, Timestamps, UTIME_NOW, flock, statvfs, utimensat,
};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::about::About;
use crate::configuration::{DEFAULT_SERIES, check_architecture, configuration_key, default_hz};
use crate::error::BuildError;

/// What a build takes in the cache directory, with a margin: 6.12.117 took 1.0 GB.
const ROOM: Bytes = Bytes(1_500_000_000);
/// How directories in which kernels are built begin.
const WORK: &str = "build-";
/// How directories begin that have the objects of a tree's build.
const OBJECTS: &str = "objects-";
/// How files begin that are locked while somebody builds.
const LOCK: &str = "lock-";

/// A kernel that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The program.
    pub binary: PathBuf,
    /// Its version, such as `6.12.117`; of a tree that was named, or with symbols that the user
    /// set, with `+` and a fingerprint of these.
    pub version: String,
    /// The frequency of its tick.
    pub hz: Hz,
    /// What else is known of it.
    pub about: About,
}

impl Kernel {
    /// How large the program is.
    pub fn size(&self) -> Bytes {
        Bytes(fs::metadata(&self.binary).map_or(0, |about| about.size()))
    }

    /// For how long nobody has used it, if the clock of this machine can tell.
    pub fn unused_for(&self) -> Option<std::time::Duration> {
        fs::metadata(&self.binary).ok()?.modified().ok()?.elapsed().ok()
    }

    /// Remembers what it said of the I/O schedulers that it offers, and of the files of a disk.
    pub fn offers(&mut self, said: About) {
        (self.about.schedulers, self.about.files) = (said.schedulers, said.files);
        // In a cache of somebody else's it is asked again.
        let _ = self.about.put(&self.binary);
    }

    /// Takes note that it is used.
    fn use_now(&self) {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        // In a cache of somebody else's there is nothing to note.
        let _ = utimensat(CWD, &self.binary, &times, AtFlags::empty());
    }

    fn is_called(&self, name: &str) -> bool {
        self.about.label.as_deref() == Some(name)
    }

    /// Whether its version is `version` or begins with it: `6.12` is the beginning of `6.12.117`,
    /// but `6.1` is not. Of a fingerprint any first characters will do.
    pub(crate) fn begins(&self, version: &str) -> bool {
        let rest = self.version.strip_prefix(version);
        let is_whole = |rest: &str| rest.is_empty() || rest.starts_with(['.', '-', TREE]);
        rest.is_some_and(|rest| is_whole(rest) || version.contains(TREE))
    }

    fn is_plain(&self) -> bool {
        !self.version.contains(TREE)
    }

    /// The first two numbers of its version.
    fn series(&self) -> Vec<u32> {
        numbers(&self.version).into_iter().take(2).collect()
    }
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
    /// `~/.cache`. A relative one lies where the program was started, not where a guest runs.
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
        Ok(Cache { directory: std::path::absolute(&directory).unwrap_or(directory) })
    }

    /// The cache in a directory, which need not exist yet.
    pub fn at(directory: &Path) -> Cache {
        Cache { directory: directory.to_path_buf() }
    }

    /// Where kernels are kept.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The kernel with this label, or whose version is `name` or alone begins with it. Of a series
    /// of Debian's the newest is meant: `6.12` finds `6.12.117`.
    pub fn find(&self, name: &str, hz: Hz) -> Result<Option<Kernel>, BuildError> {
        let kernels = self.kernels()?.into_iter();
        choose(name, kernels.filter(|kernel| kernel.hz == hz).collect())
    }

    /// The kernel that [`Cache::find`] finds, or how to get one.
    pub fn require(&self, name: &str, hz: Hz) -> Result<Kernel, BuildError> {
        check_architecture()?;
        if let Some(kernel) = self.find(name, hz)? {
            kernel.use_now();
            return Ok(kernel);
        }
        let kernels = self.kernels()?;
        let there = match kernels.is_empty() {
            true => String::new(),
            false => format!(", which has {}", described(&kernels)),
        };
        let mut options = String::new();
        if name != DEFAULT_SERIES {
            options = format!(" --kernel {name}");
        }
        if hz != default_hz() {
            options += &format!(" --hz {}", hz.get());
        }
        let (name, directory) = (name.to_string(), self.directory.clone());
        Err(BuildError::NoKernel { name, hz, directory, there, options })
    }

    /// The kernel of exactly this version.
    pub(crate) fn of_version(&self, version: &str, hz: Hz) -> Result<Option<Kernel>, BuildError> {
        let is_it = |kernel: &Kernel| kernel.version == version && kernel.hz == hz;
        Ok(self.kernels()?.into_iter().find(is_it))
    }

    /// The kernel that was made from Debian's source of a series or version with these symbols.
    pub(crate) fn of_debian(
        &self,
        version: &str,
        hz: Hz,
        configuration: &[String],
    ) -> Result<Option<Kernel>, BuildError> {
        let is_it = |kernel: &Kernel| {
            let about = &kernel.about;
            kernel.hz == hz
                && about.tree.is_none()
                && about.configuration == configuration
                && kernel.begins(version)
        };
        Ok(self.kernels()?.into_iter().rfind(is_it))
    }

    /// Refuses a label that is the name of a kernel which `is_same` does not know as the one that
    /// is being built anew.
    pub(crate) fn check_label(
        &self,
        label: &str,
        is_same: &dyn Fn(&Kernel) -> bool,
    ) -> Result<(), BuildError> {
        let kernels = self.kernels()?;
        match kernels.into_iter().find(|it| it.is_called(label) && !is_same(it)) {
            None => Ok(()),
            Some(other) => {
                Err(BuildError::LabelTaken { label: label.to_string(), version: other.version })
            }
        }
    }

    /// Removes the kernel that a name means, and the objects of its build.
    pub fn remove(&self, name: &str, hz: Option<Hz>) -> Result<Kernel, BuildError> {
        let mut kernels = self.kernels()?;
        kernels.retain(|kernel| hz.is_none_or(|hz| kernel.hz == hz));
        let all = described(&kernels);
        let named: Vec<Kernel> = kernels.iter().filter(|it| it.is_called(name)).cloned().collect();
        if named.is_empty() {
            kernels.retain(|kernel| kernel.begins(name));
        } else {
            kernels = named;
        }
        if kernels.len() > 1 {
            let (name, kernels) = (name.to_string(), described(&kernels));
            return Err(BuildError::Ambiguous { name, kernels });
        }
        let nothing = || BuildError::Unknown { name: name.to_string(), kernels: all };
        let kernel = kernels.pop().ok_or_else(nothing)?;
        self.discard(&kernel)?;
        Ok(kernel)
    }

    /// Removes a kernel that is of no use; the objects of its build stay until the next build.
    pub fn withdraw(&self, kernel: &Kernel) -> Result<(), BuildError> {
        let failed = |cause| BuildError::file("removing", &kernel.binary, cause);
        fs::remove_file(&kernel.binary).map_err(failed)?;
        About::remove(&kernel.binary);
        Ok(())
    }

    fn discard(&self, kernel: &Kernel) -> Result<(), BuildError> {
        self.withdraw(kernel)?;
        self.remove_unused_objects()?;
        self.remove_locks();
        Ok(())
    }

    /// All kernels of our configuration, by version and HZ.
    pub fn kernels(&self) -> Result<Vec<Kernel>, BuildError> {
        let mut kernels = Vec::new();
        for (name, binary) in self.entries()? {
            if let Some((version, hz)) = read_name(&name).filter(|_| is_program(&binary)) {
                let about = About::beside(&binary);
                kernels.push(Kernel { binary, version, hz, about });
            }
        }
        kernels.sort_by_key(|kernel| (numbers(&kernel.version), kernel.version.clone(), kernel.hz));
        Ok(kernels)
    }

    /// Puts a finished kernel into the cache. An earlier one with its label and tick makes room.
    pub(crate) fn keep(
        &self,
        file: &Path,
        version: &str,
        hz: Hz,
        about: About,
    ) -> Result<Kernel, BuildError> {
        let binary = self.directory.join(name(version, hz));
        // What is named like a kernel is one, also after a power failure.
        fs::File::open(file)
            .and_then(|open| open.sync_all())
            .and_then(|()| fs::rename(file, &binary))
            .map_err(|cause| BuildError::file("creating", &binary, cause))?;
        self.name(
            Kernel { binary, version: version.to_string(), hz, about: About::default() },
            about,
        )
    }

    /// Says what a kernel is. An earlier one with its label and tick makes room.
    pub(crate) fn name(&self, kernel: Kernel, about: About) -> Result<Kernel, BuildError> {
        about.put(&kernel.binary)?;
        let named = Kernel { about, ..kernel };
        if let Some(label) = &named.about.label {
            let is_earlier =
                |it: &Kernel| it.is_called(label) && it.hz == named.hz && it.binary != named.binary;
            let earlier = self.kernels()?.into_iter().find(is_earlier);
            earlier.map_or(Ok(()), |earlier| self.discard(&earlier))?;
        }
        Ok(named)
    }

    /// The empty directory in which a kernel is built, and nobody else builds it. `busy` is called
    /// if somebody does; then this waits.
    pub(crate) fn work(
        &self,
        version: &str,
        hz: Hz,
        busy: &mut dyn FnMut(),
    ) -> Result<Work, BuildError> {
        let name = name(version, hz);
        let lock = self.lock(&name, busy)?;
        self.remove_leftovers(&name)?;
        let directory = self.top()?.join(format!("{WORK}{name}"));
        let work = Work { directory, is_kept: false, _lock: lock };
        work.clear()?;
        Ok(work)
    }

    /// The directory with the objects of a tree that is built with this configuration, kept from
    /// build to build.
    pub(crate) fn objects(
        &self,
        tree: &Path,
        hz: Hz,
        fragment: &str,
        busy: &mut dyn FnMut(),
    ) -> Result<Work, BuildError> {
        let mut fingerprint = Fingerprint::new();
        fingerprint.mix_bytes(tree.as_os_str().as_encoded_bytes());
        fingerprint.mix(u64::from(hz.get()));
        fingerprint.mix_bytes(fragment.as_bytes());
        let name = format!("{OBJECTS}{fingerprint}");
        let lock = self.lock(&name, busy)?;
        let directory = self.top()?.join(&name);
        let is_kept = directory.exists();
        Ok(Work { directory, is_kept, _lock: lock })
    }

    /// The directory by its full name: a build changes its working directory.
    fn top(&self) -> Result<PathBuf, BuildError> {
        let unusable = |cause| BuildError::NoDirectory { directory: self.directory.clone(), cause };
        fs::create_dir_all(&self.directory).map_err(unusable)?;
        self.directory.canonicalize().map_err(unusable)
    }

    fn lock(&self, name: &str, busy: &mut dyn FnMut()) -> Result<Lock, BuildError> {
        Lock::take(&self.top()?, name, busy)
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
        self.remove_unused_objects()
    }

    /// Removes the files of locks that nobody has.
    pub(crate) fn remove_locks(&self) {
        for (name, path) in self.entries().unwrap_or_default() {
            let Some(kernel) = name.strip_prefix(LOCK) else { continue };
            if let Ok(Some(_lock)) = Lock::take_if_free(&self.directory, kernel) {
                // An empty file that cannot be removed does no harm.
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes objects that no kernel was made from, and that nobody makes.
    fn remove_unused_objects(&self) -> Result<(), BuildError> {
        let kernels = self.kernels()?;
        for (name, path) in self.entries()? {
            let is_used = |it: &Kernel| it.about.objects.as_deref() == Some(name.as_str());
            if !name.starts_with(OBJECTS) || kernels.iter().any(is_used) {
                continue;
            }
            if let Some(_lock) = Lock::take_if_free(&self.directory, &name)? {
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

/// The one of these kernels that a name means.
fn choose(name: &str, mut kernels: Vec<Kernel>) -> Result<Option<Kernel>, BuildError> {
    let is_it = |kernel: &Kernel| kernel.is_called(name) || kernel.version == name;
    if let Some(at) = kernels.iter().position(is_it) {
        return Ok(Some(kernels.swap_remove(at)));
    }
    kernels.retain(|kernel| kernel.begins(name));
    let is_one_series = kernels.windows(2).all(|two| two[0].series() == two[1].series());
    let newest = kernels.iter().rposition(Kernel::is_plain).filter(|_| is_one_series);
    match (newest, kernels.len()) {
        (Some(at), _) => Ok(Some(kernels.swap_remove(at))),
        (None, 0 | 1) => Ok(kernels.pop()),
        (None, _) => {
            Err(BuildError::Ambiguous { name: name.to_string(), kernels: described(&kernels) })
        }
    }
}

/// Kernels as a message names them.
fn described(kernels: &[Kernel]) -> String {
    let describe = |kernel: &Kernel| {
        let label =
            kernel.about.label.iter().map(|label| format!(" ({label})")).collect::<String>();
        format!("{}{label} with HZ={}", kernel.version, kernel.hz.get())
    };
    kernels.iter().map(describe).collect::<Vec<_>>().join(", ")
}

/// Stands between the version of a kernel and the fingerprint of what is its own: tree and symbols.
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

/// Whether a file is what stands at a path.
fn is_at(file: &fs::File, path: &Path) -> bool {
    let number = |about: fs::Metadata| (about.dev(), about.ino());
    let both = (file.metadata().map(number), fs::metadata(path).map(number));
    matches!(both, (Ok(one), Ok(other)) if one == other)
}

/// A directory in which one kernel is built; removed when dropped, unless it is kept.
pub(crate) struct Work {
    directory: PathBuf,
    is_kept: bool,
    _lock: Lock,
}

impl Work {
    /// Its name in the cache.
    pub fn name(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// It stays for the next build.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }

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
        if !self.is_kept {
            // What cannot be removed now is removed by the next build.
            let _ = self.clear();
        }
    }
}

/// The right to build a kernel.
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
        loop {
            let (path, file) = Lock::open(directory, kernel)?;
            flock(&file, FlockOperation::LockExclusive)
                .map_err(|cause| BuildError::file("locking", &path, cause.into()))?;
            // Whoever had it may have removed the file.
            if is_at(&file, &path) {
                return Ok(Lock::held(file));
            }
        }
    }

    fn take_if_free(directory: &Path, kernel: &str) -> Result<Option<Lock>, BuildError> {
        loop {
            let (path, file) = Lock::open(directory, kernel)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path) => return Ok(Some(Lock::held(file))),
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(cause) => return Err(BuildError::file("locking", &path, cause.into())),
            }
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
    fn the_file_of_a_lock_is_removed_when_nobody_has_it() {
        let directory = Directory::new("locks");
        let cache = Cache::at(&directory.0);
        let lock = Lock::take(&directory.0, "x", &mut || ()).unwrap();
        let (path, waiting) = Lock::open(&directory.0, "x").unwrap();
        cache.remove_locks();
        assert!(path.exists());
        drop(lock);
        cache.remove_locks();
        assert!(!path.exists() && !is_at(&waiting, &path));
        assert!(Lock::take_if_free(&directory.0, "x").unwrap().is_some());
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
        assert_eq!(found("7.4.0+1", 250).as_deref(), Some("7.4.0+11"));
        assert_eq!((found("7.30", 250), found("7.3", 100)), (None, None));
        for ambiguous in ["7.4", "7", "6"] {
            let message = cache.find(ambiguous, hz(250)).map(|it| it.is_some());
            assert_eq!(message.is_err(), ambiguous != "6", "{ambiguous}");
        }
    }

    /// A kernel of a tree, put into the cache as a build does.
    fn put(cache: &Cache, version: &str, label: Option<&str>, tree: &Path) -> Kernel {
        let about = About {
            label: label.map(str::to_string),
            tree: Some(tree.to_path_buf()),
            ..About::default()
        };
        let file = cache.directory().join("made");
        fs::write(&file, b"\x7fELF").unwrap();
        cache.keep(&file, version, hz(250), about).unwrap()
    }

    #[test]
    fn a_label_is_a_name_that_one_tree_has() {
        let directory = Directory::new("labels");
        let cache = Cache::at(&directory.0);
        let (mine, other) = (Path::new("/src/mine"), Path::new("/src/other"));
        put(&cache, "7.3.4+11", Some("mine"), mine);
        put(&cache, "7.3.4+22", None, other);
        let found = |name: &str| cache.find(name, hz(250)).unwrap().map(|kernel| kernel.version);
        assert_eq!(found("mine").as_deref(), Some("7.3.4+11"));
        let check = |label: &str, tree: Option<&Path>| {
            cache.check_label(label, &|it| it.about.tree.as_deref() == tree)
        };
        check("mine", Some(mine)).unwrap();
        check("new", None).unwrap();
        for tree in [Some(other), None] {
            let message = check("mine", tree).unwrap_err().to_string();
            assert!(message.contains("linux remove mine"), "{message}");
        }
        // The same tree was changed: what was called so before makes room.
        put(&cache, "7.3.4+33", Some("mine"), mine);
        assert_eq!(found("mine").as_deref(), Some("7.3.4+33"));
        assert_eq!((found("7.3.4+11"), cache.kernels().unwrap().len()), (None, 2));
    }

    #[test]
    fn what_is_removed_is_gone_with_the_objects_that_nobody_else_has() {
        let directory = Directory::new("remove");
        let cache = Cache::at(&directory.0);
        let tree = Path::new("/src/mine");
        let mut work = cache.objects(tree, hz(250), "x", &mut || ()).unwrap();
        let objects = work.directory("").unwrap();
        for (version, label) in [("7.3.4+11", None), ("7.3.4+22", Some("mine"))] {
            let kernel = put(&cache, version, label, tree);
            let about = About { objects: Some(work.name()), ..kernel.about.clone() };
            cache.name(kernel, about).unwrap();
        }
        work.keep();
        drop(work);
        let message = cache.remove("7.3", None).unwrap_err().to_string();
        assert!(message.contains("7.3.4+11") && message.contains("(mine)"), "{message}");
        assert_eq!(cache.remove("mine", None).unwrap().version, "7.3.4+22");
        assert!(objects.exists(), "the other one was made from them, too");
        assert_eq!(cache.remove("7.3", Some(hz(250))).unwrap().version, "7.3.4+11");
        assert!(!objects.exists());
        let message = cache.remove("7.3", None).unwrap_err().to_string();
        assert!(message.contains("nothing has been built"), "{message}");
    }

    #[test]
    fn objects_of_a_build_that_failed_are_kept_only_if_there_were_some_before() {
        let directory = Directory::new("objects");
        let cache = Cache::at(&directory.0);
        let objects = |fragment: &str| {
            cache.objects(Path::new("/src/mine"), hz(250), fragment, &mut || ()).unwrap()
        };
        let path = objects("x").directory("").unwrap();
        assert!(!path.exists());
        let mut work = objects("x");
        work.directory("").unwrap();
        work.keep();
        drop(work);
        drop(objects("x"));
        assert!(path.exists());
        assert_ne!(objects("y").name(), objects("x").name());
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
