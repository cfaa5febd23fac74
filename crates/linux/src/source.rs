//! Where the source of a kernel comes from: a tree that somebody has, a package of Debian's that is
//! installed, or its archive.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base::Fingerprint;

use crate::archive;
use crate::cache::TREE;
use crate::error::BuildError;
use crate::tool::{run, tool};

/// Parts of a tarball that nothing of ours is built from: two thirds of it.
const NOT_UNPACKED: [&str; 9] = [
    "*/drivers/gpu/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/sound/*.[ch]",
    "*/Documentation/*.rst",
    "*/tools/testing/*",
    "*.dts",
    "*.dtsi",
];

/// Where the source comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Debian's package `linux-source-` of this series or version, such as `6.12`.
    Debian {
        /// The series or version.
        kernel: String,
        /// The suite of the archive that it is fetched from; the installed package, or those that
        /// this machine's apt knows, if not told.
        suite: Option<String>,
    },
    /// An unpacked tree, which is only read.
    Tree(PathBuf),
}

/// A source that was found.
pub(crate) enum Origin {
    /// A tree with its name in full.
    Tree(PathBuf),
    /// A packed one.
    Tarball(PathBuf),
}

impl Source {
    /// The source if it is on this machine.
    pub(crate) fn here(&self) -> Result<Option<Origin>, BuildError> {
        match self {
            Source::Tree(tree) => {
                let no_tree = |cause| BuildError::NoTree { tree: tree.clone(), cause };
                tree.canonicalize().map_err(no_tree).map(|tree| Some(Origin::Tree(tree)))
            }
            Source::Debian { suite: Some(_), .. } => Ok(None),
            Source::Debian { kernel, suite: None } => {
                let stem = format!("/usr/src/linux-source-{kernel}");
                let tarball = PathBuf::from(format!("{stem}.tar.xz"));
                let tree = PathBuf::from(stem);
                Ok(match (tarball.exists(), tree.join("Makefile").exists()) {
                    (true, _) => Some(Origin::Tarball(tarball)),
                    (false, true) => Some(Origin::Tree(tree)),
                    (false, false) => None,
                })
            }
        }
    }

    /// Fetches the source from Debian's archive into an empty directory.
    pub(crate) fn fetch(&self, directory: &Path) -> Result<Origin, BuildError> {
        match self {
            Source::Tree(tree) => Ok(Origin::Tree(tree.clone())),
            Source::Debian { kernel, suite } => {
                archive::fetch(kernel, suite.as_deref(), directory).map(Origin::Tarball)
            }
        }
    }
}

impl Origin {
    /// The version that the top-level makefile names, and which tree of that version it is.
    pub(crate) fn version(&self) -> Result<String, BuildError> {
        match self {
            Origin::Tree(tree) => {
                let file = tree.join("Makefile");
                let text = fs::read_to_string(&file)
                    .map_err(|cause| BuildError::NoTree { tree: tree.clone(), cause })?;
                let version = version_in(&text).ok_or(BuildError::NoVersion { file })?;
                Ok(format!("{version}{TREE}{}", tree_key(tree)?))
            }
            Origin::Tarball(tarball) => {
                // The makefile is near the beginning; tar stops there.
                let mut tar = tool("tar");
                tar.args([
                    "--extract",
                    "--to-stdout",
                    "--occurrence=1",
                    "--wildcards",
                    "--no-wildcards-match-slash",
                ]);
                tar.arg("--file").arg(tarball).arg("linux-*/Makefile");
                let text = run("reading the version of the source", &mut tar)?;
                version_in(&text).ok_or(BuildError::NoVersion { file: tarball.clone() })
            }
        }
    }

    /// The tree, if the source is one that somebody named.
    pub(crate) fn tree(&self) -> Option<&Path> {
        match self {
            Origin::Tree(tree) => Some(tree),
            Origin::Tarball(_) => None,
        }
    }
}

/// The version in the first lines of a kernel's makefile: `6.12.117`.
fn version_in(makefile: &str) -> Option<String> {
    let value = |name: &str| {
        makefile.lines().take(20).find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim().to_string())
        })
    };
    let (version, patch, sub) = (value("VERSION")?, value("PATCHLEVEL")?, value("SUBLEVEL")?);
    let extra = value("EXTRAVERSION").unwrap_or_default();
    let number = format!("{version}.{patch}.{sub}{extra}");
    // The version names a directory of the cache.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    (!version.is_empty() && number.chars().all(plain)).then_some(number)
}

/// A fingerprint of the names, sizes and times of all files of a tree.
fn tree_key(tree: &Path) -> Result<String, BuildError> {
    let mut fingerprint = Fingerprint::new();
    let mut directories = vec![tree.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let failed = |cause| BuildError::file("reading", &directory, cause);
        let mut entries = fs::read_dir(&directory)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            // What git remembers of the tree is not the tree; in a linked worktree it is a file.
            if entry.file_name() == ".git" {
                continue;
            }
            let about = entry.metadata().map_err(failed)?;
            match about.is_dir() {
                true => directories.push(entry.path()),
                false => {
                    let path = entry.path();
                    let name = path.strip_prefix(tree).expect("it is in the tree");
                    fingerprint.mix_bytes(name.as_os_str().as_encoded_bytes());
                    fingerprint.mix(about.size());
                    fingerprint.mix(about.mtime() as u64);
                    fingerprint.mix(about.mtime_nsec() as u64);
                }
            }
        }
    }
    Ok(fingerprint.to_string())
}

/// Unpacks `tarball` into `directory` and returns the tree in it.
pub(crate) fn unpack(tarball: &Path, directory: &Path) -> Result<PathBuf, BuildError> {
    let mut tar = tool("nice");
    tar.arg("tar").arg("--extract").arg("--file").arg(tarball).arg("--directory").arg(directory);
    tar.args(["--strip-components=1"]);
    tar.args(NOT_UNPACKED.map(|pattern| format!("--exclude={pattern}")));
    run("unpacking the source", &mut tar)?;
    Ok(directory.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_makefile() {
        let text = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\nNAME = x";
        assert_eq!(version_in(text).as_deref(), Some("6.12.117"));
        assert_eq!(
            version_in(&text.replace("VERSION =\n", "VERSION = -rc1\n")).as_deref(),
            Some("6.12.117-rc1")
        );
        assert_eq!(version_in("all:\n\techo"), None);
        assert_eq!(version_in(&text.replace("117", "../..")), None);
    }

    #[test]
    fn a_tree_that_was_changed_is_another_version() {
        let tree = std::env::temp_dir().join(format!("paternoster-tree-{}", std::process::id()));
        fs::create_dir_all(tree.join("block")).unwrap();
        fs::write(tree.join("block/a.c"), "one").unwrap();
        let before = tree_key(&tree).unwrap();
        assert_eq!(tree_key(&tree).unwrap(), before);
        fs::write(tree.join("block/a.c"), "more").unwrap();
        let after = tree_key(&tree).unwrap();
        fs::remove_dir_all(&tree).unwrap();
        assert_ne!(after, before);
    }
}
