//! Kernels that were built: where they are kept and how one is found again.
//!
//! A kernel's file is named by its version, the fingerprint of our configuration and its HZ. A
//! file appears there complete or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use base::Hz;
use rustix::fs::{FlockOperation, flock};

use crate::build::configuration_key;
use crate::error::BuildError;

/// A kernel that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The program.
    pub binary: PathBuf,
    /// Its version, such as `6.12.117`.
    pub version: String,
    /// The frequency of its tick.
    pub hz: Hz,
}

/// A folder of kernels.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The user's cache: `$PATERNOSTER_CACHE`, or `paternoster` in `$XDG_CACHE_HOME` or
    /// `~/.cache`.
    pub fn of_user() -> Result<Cache, BuildError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = match variable("PATERNOSTER_CACHE") {
            Some(folder) => PathBuf::from(folder),
            None => match (variable("XDG_CACHE_HOME"), variable("HOME")) {
                (Some(cache), _) => PathBuf::from(cache).join("paternoster"),
                (None, Some(home)) => PathBuf::from(home).join(".cache/paternoster"),
                (None, None) => return Err(BuildError::NoCache),
            },
        };
        Ok(Cache { folder })
    }

    /// The cache in a folder, which need not exist yet.
    pub fn at(folder: &Path) -> Cache {
        Cache { folder: folder.to_path_buf() }
    }

    /// Where kernels are kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The newest kernel whose version is `version` or begins with it: `6.12` finds `6.12.117`.
    pub fn find(&self, version: &str, hz: Hz) -> Result<Option<Kernel>, BuildError> {
        let fits = |kernel: &Kernel| {
            let rest = kernel.version.strip_prefix(version);
            kernel.hz == hz && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        Ok(self.kernels()?.into_iter().rfind(fits))
    }

    /// All kernels of our configuration, by version and HZ.
    pub fn kernels(&self) -> Result<Vec<Kernel>, BuildError> {
        let names = match fs::read_dir(&self.folder) {
            Ok(names) => names,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(BuildError::file("reading", &self.folder, cause)),
        };
        let mut kernels = Vec::new();
        for name in names {
            let name = name.map_err(|cause| BuildError::file("reading", &self.folder, cause))?;
            if let Some((version, hz)) = read_name(&name.file_name().to_string_lossy()) {
                kernels.push(Kernel { binary: name.path(), version, hz });
            }
        }
        kernels.sort_by_key(|kernel| (numbers(&kernel.version), kernel.version.clone(), kernel.hz));
        Ok(kernels)
    }

    /// Puts a finished kernel into the cache.
    pub(crate) fn keep(&self, file: &Path, version: &str, hz: Hz) -> Result<Kernel, BuildError> {
        let binary = self.folder.join(name(version, hz));
        fs::rename(file, &binary).map_err(|cause| BuildError::file("creating", &binary, cause))?;
        Ok(Kernel { binary, version: version.to_string(), hz })
    }

    /// The folder in which a kernel is built.
    pub(crate) fn work_folder(&self, version: &str, hz: Hz) -> Result<Work, BuildError> {
        let folder = self.folder.join(format!("build-{}", name(version, hz)));
        fs::create_dir_all(&folder)
            .map_err(|cause| BuildError::file("creating", &folder, cause))?;
        // The build changes its working directory.
        let folder = folder
            .canonicalize()
            .map_err(|cause| BuildError::file("looking for", &folder, cause))?;
        Ok(Work { folder })
    }
}

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

/// A folder in which one kernel is built.
pub(crate) struct Work {
    folder: PathBuf,
}

impl Work {
    /// Waits until nobody else builds the same kernel.
    pub fn lock(&self) -> Result<fs::File, BuildError> {
        let path = self.folder.join("lock");
        let failed = |cause| BuildError::file("locking", &path, cause);
        let file = fs::File::create(&path).map_err(failed)?;
        flock(&file, FlockOperation::LockExclusive).map_err(|cause| failed(cause.into()))?;
        Ok(file)
    }

    /// A folder in it, made if it is not there.
    pub fn folder(&self, name: &str) -> Result<PathBuf, BuildError> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)
            .map_err(|cause| BuildError::file("creating", &folder, cause))?;
        Ok(folder)
    }

    /// Removes what an interrupted build left.
    pub fn clear(&self) -> Result<(), BuildError> {
        for name in ["source", "object"] {
            let folder = self.folder(name)?;
            fs::remove_dir_all(&folder)
                .map_err(|cause| BuildError::file("removing", &folder, cause))?;
        }
        Ok(())
    }

    /// Removes everything.
    pub fn remove(&self) -> Result<(), BuildError> {
        fs::remove_dir_all(&self.folder)
            .map_err(|cause| BuildError::file("removing", &self.folder, cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hz(hz: u16) -> Hz {
        Hz::new(hz).unwrap()
    }

    #[test]
    fn a_kernel_is_found_by_its_series_and_its_hz() {
        let folder = std::env::temp_dir().join(format!("paternoster-cache-{}", std::process::id()));
        let cache = Cache::at(&folder);
        assert_eq!(cache.find("6.12", hz(250)).unwrap(), None);
        fs::create_dir_all(&folder).unwrap();
        for (version, ticks) in [("6.12.9", 250), ("6.12.117", 250), ("6.12.118", 100)] {
            fs::write(folder.join(name(version, hz(ticks))), "").unwrap();
        }
        fs::write(folder.join("linux-6.12.200-hz250-0123456789abcdef"), "").unwrap();
        let found =
            |version, ticks| cache.find(version, hz(ticks)).unwrap().map(|kernel| kernel.version);
        assert_eq!(found("6.12", 250).as_deref(), Some("6.12.117"));
        assert_eq!(found("6.12.9", 250).as_deref(), Some("6.12.9"));
        assert_eq!(found("6.12", 100).as_deref(), Some("6.12.118"));
        assert_eq!(found("6.1", 250), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
