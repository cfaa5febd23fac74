//! What tests need that a host may lack, how to find out, and how to get it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Something a host may lack.
#[derive(Clone, Copy)]
pub struct Need {
    /// What it is, as in "12 need a kernel".
    pub name: &'static str,
    /// How to get it.
    pub how: &'static str,
    /// Whether it is here.
    pub is_there: fn() -> bool,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.how)
    }
}

/// A kernel of the world linux. Who knows where kernels are kept says whether there is one.
pub const fn kernel(is_there: fn() -> bool) -> Need {
    Need { name: "a kernel", how: "paternoster linux build", is_there }
}

/// The fio whose options, streams and JSON are modelled.
pub const FIO: Need = Need {
    name: "fio 3.33",
    how: "apt-get install fio on Debian 12",
    is_there: || version("fio").starts_with("fio-3.33"),
};

/// The dd whose words are modelled.
pub const DD: Need = Need {
    name: "dd of coreutils 9.1",
    how: "Debian 12",
    is_there: || version("dd").starts_with("dd (coreutils) 9.1"),
};

/// The tools that read recordings of the block layer.
pub const BLKTRACE: Need =
    Need { name: "blkparse", how: "apt-get install blktrace", is_there: || in_path("blkparse") };

/// The programs of a guest.
pub const BUSYBOX: Need = Need {
    name: "busybox",
    how: "apt-get install busybox-static",
    is_there: || in_path("busybox"),
};

/// The program that makes ext4.
pub const MKFS_EXT4: Need =
    Need { name: "mkfs.ext4", how: "apt-get install e2fsprogs", is_there: || in_path("mkfs.ext4") };

/// The program that makes XFS.
pub const MKFS_XFS: Need =
    Need { name: "mkfs.xfs", how: "apt-get install xfsprogs", is_there: || in_path("mkfs.xfs") };

/// sysbench.
pub const SYSBENCH: Need =
    Need { name: "sysbench", how: "apt-get install sysbench", is_there: || in_path("sysbench") };

/// A browser that can be driven.
pub const CHROMIUM: Need =
    Need { name: "chromium", how: "apt-get install chromium", is_there: || in_path("chromium") };

/// dump of ext4.
pub const DUMP: Need =
    Need { name: "dump", how: "apt-get install dump", is_there: || in_path("dump") };

/// A compiler of C.
pub const CC: Need =
    Need { name: "cc", how: "apt-get install gcc libc6-dev", is_there: || in_path("cc") };

/// Debian's User-Mode Linux, which has no virtual time.
pub const DEBIANS_UML: Need = Need {
    name: "Debian's User-Mode Linux",
    how: "apt-get install user-mode-linux",
    is_there: || Path::new("/usr/bin/linux.uml").exists(),
};

/// Recorded traces that belong to others.
pub const TRACES: Need = Need {
    name: "recorded traces",
    how: "PATERNOSTER_TRACES=DIRECTORY",
    is_there: || named_directory("PATERNOSTER_TRACES").is_some(),
};

/// Recordings of real kernels.
pub const ORACLE: Need = Need {
    name: "recordings of real kernels",
    how: "PATERNOSTER_ORACLE=DIRECTORY",
    is_there: || named_directory("PATERNOSTER_ORACLE").is_some(),
};

/// The directory of recorded traces, of a test that needs [`TRACES`].
pub fn traces() -> PathBuf {
    named_directory("PATERNOSTER_TRACES").expect("the test names TRACES as what it needs")
}

/// The directory of recordings of real kernels, of a test that needs [`ORACLE`].
pub fn oracle() -> PathBuf {
    named_directory("PATERNOSTER_ORACLE").expect("the test names ORACLE as what it needs")
}

fn named_directory(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_dir())
}

/// Whether a program is there, for a user or for root.
fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(sbin).any(|directory| directory.join(program).is_file())
}

/// What a program says of its version; empty if it does not run.
fn version(program: &str) -> String {
    let output = Command::new(program)
        .arg("--version")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    output.map_or(String::new(), |it| String::from_utf8_lossy(&it.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_path_is_found_and_what_is_not_is_not() {
        assert!(in_path("sh"));
        assert!(!in_path("no-such-program-anywhere"));
        assert_eq!(version("no-such-program-anywhere"), "");
    }

    #[test]
    fn a_variable_that_names_no_directory_names_nothing() {
        assert!(named_directory("PATERNOSTER_NO_SUCH_VARIABLE").is_none());
    }
}
