//! What is known of a built kernel beside its version and tick: a small file beside the program.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::BuildError;

/// How the file's name ends.
const SUFFIX: &str = ".about";

/// How a line with a tunable begins.
const TUNABLE: &str = "+";
/// Asks the kernel for its schedulers, and each for its tunables.
pub(crate) const ASK: &str = "cd /sys/block/vda/queue; \
    find $PWD/ $PWD/../bdi/ -maxdepth 1 -type f -perm -200 | sed 's,/queue/../,/,' | sort -r; \
    for s in $(tr -d '[]' < scheduler); do \
    echo $s > scheduler && echo $s; for f in iosched/*; do \
    test -f $f && echo +${f#iosched/} $(cat $f); done; done; true";

/// What a kernel was made from, and what it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The name that the user gave it.
    pub label: Option<String>,
    /// The tree that it was made from, unless that was Debian's.
    pub tree: Option<PathBuf>,
    /// Symbols that the user set, as `SYMBOL=VALUE`, in alphabetical order.
    pub configuration: Vec<String>,
    /// The directory with the objects of its build, if that is kept for the next one.
    pub objects: Option<String>,
    /// The I/O schedulers that it offered when it was asked; none if it was not.
    pub schedulers: Vec<Offered>,
    /// Files of a disk that can be written to, by their paths; none if it was not asked.
    pub files: Vec<String>,
}

/// An I/O scheduler as a kernel offers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// Its name in sysfs.
    pub name: String,
    /// Its tunables and what they say when it was just attached to a disk.
    pub tunables: Vec<(String, String)>,
}

impl Offered {
    /// Reads the lines about schedulers of what [`ASK`] prints.
    fn read(text: &str) -> Vec<Offered> {
        let mut all: Vec<Offered> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('/')) {
            match (line.strip_prefix(TUNABLE), all.last_mut()) {
                (Some(tunable), Some(last)) => {
                    let (name, value) = tunable.split_once(' ').unwrap_or((tunable, ""));
                    last.tunables.push((name.to_string(), value.to_string()));
                }
                _ => all.push(Offered { name: line.to_string(), ..Offered::default() }),
            }
        }
        all
    }
}

impl About {
    /// What a kernel said when it was asked for schedulers and files.
    pub(crate) fn said(text: &str) -> About {
        let files = text.lines().filter(|line| line.starts_with('/')).map(str::to_string);
        About { schedulers: Offered::read(text), files: files.collect(), ..About::default() }
    }

    /// What stands beside a program; nothing if there is no such file.
    pub(crate) fn beside(binary: &Path) -> About {
        let text = fs::read(file(binary)).unwrap_or_default();
        // Whoever damages the file loses what it says, not the kernel.
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Puts it beside a program.
    pub(crate) fn put(&self, binary: &Path) -> Result<(), BuildError> {
        let path = file(binary);
        let mut text = serde_json::to_string_pretty(self).expect("it has only texts");
        text.push('\n');
        // It appears complete or not at all.
        let new = path.with_extension("new");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|cause| BuildError::file("writing", &path, cause))
    }

    /// Removes it.
    pub(crate) fn remove(binary: &Path) {
        // There may be none.
        let _ = fs::remove_file(file(binary));
    }
}

fn file(binary: &Path) -> PathBuf {
    let mut name = binary.as_os_str().to_os_string();
    name.push(SUFFIX);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_are_read_with_their_tunables() {
        let text = "/sys/block/vda/queue/nomerges\nnone\nkyber\n+read_lat_nsec 2000000\n\
                    +write_lat_nsec 10000000\n";
        let About { schedulers: read, files, .. } = About::said(text);
        assert_eq!(files, ["/sys/block/vda/queue/nomerges"]);
        let names: Vec<&str> = read.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["none", "kyber"]);
        assert_eq!(read[0].tunables, []);
        assert_eq!(read[1].tunables[0], ("read_lat_nsec".to_string(), "2000000".to_string()));
    }
}
