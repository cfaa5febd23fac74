//! What an experiment says of the file system on its disk.

use crate::error::Error;
use sim::Mount;

const KINDS: &str = "raw, ext4";
const OPTIONS: &str = "barrier, nobarrier, barrier=0, barrier=1, data=ordered, data=writeback, \
                       commit=SECONDS";
/// The longest time between commits that is accepted.
const MOST_SECONDS: u64 = 300;

/// Understands the name of a file system.
pub fn parse(name: &str, place: &str) -> Result<Option<Mount>, Error> {
    match name {
        "raw" => Ok(None),
        "ext4" => Ok(Some(Mount::default())),
        "xfs" => Err(Error::not_yet(place, format!("file system {name}"), KINDS)),
        _ => {
            let hint = base::nearest(name, ["raw", "ext4", "xfs"]);
            Err(Error::bad(place, format!("unknown file system \"{name}\"{hint}"), KINDS))
        }
    }
}

/// The name of what is on the disk.
pub fn name(mount: Option<&Mount>) -> &'static str {
    if mount.is_some() { "ext4" } else { "raw" }
}

/// Understands mount options, separated by commas as in fstab.
pub fn set_options(mount: &mut Option<Mount>, text: &str, place: &str) -> Result<(), Error> {
    let Some(mount) = mount else {
        let problem = format!("mount_options \"{text}\" of a disk without file system");
        return Err(Error::bad(place, problem, "fs = \"ext4\""));
    };
    for option in text.split(',').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name, value) {
            ("barrier", "" | "1") => mount.barrier = true,
            ("barrier", "0") | ("nobarrier", "") => mount.barrier = false,
            ("data", "ordered") => mount.is_ordered = true,
            ("data", "writeback") => mount.is_ordered = false,
            ("defaults", "") => {}
            ("commit", seconds) => {
                let seconds = seconds.parse().ok().filter(|it| (1..=MOST_SECONDS).contains(it));
                let refuse = || Error::bad(place, option.to_string(), "commit=1 to commit=300");
                mount.commit_seconds = seconds.ok_or_else(refuse)?;
            }
            _ => {
                let problem = format!("unknown mount option \"{option}\"");
                return Err(Error::bad(place, problem, OPTIONS));
            }
        }
    }
    Ok(())
}

/// Understands what `queue/write_cache` says; the answer is whether the cache is volatile.
pub fn parse_write_cache(text: &str, place: &str) -> Result<bool, Error> {
    match text {
        "write back" => Ok(true),
        "write through" => Ok(false),
        _ => {
            let problem = format!("write_cache \"{text}\"");
            Err(Error::bad(place, problem, "\"write back\", \"write through\", as in sysfs"))
        }
    }
}

/// The options as `mount -o` takes them.
pub fn options(mount: &Mount) -> String {
    let barrier = u8::from(mount.barrier);
    let data = if mount.is_ordered { "ordered" } else { "writeback" };
    format!("barrier={barrier},data={data},commit={}", mount.commit_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood_and_written_again() {
        let mut mount = parse("ext4", "x").unwrap();
        set_options(&mut mount, "nobarrier,commit=30,data=writeback", "x").unwrap();
        assert_eq!(options(&mount.unwrap()), "barrier=0,data=writeback,commit=30");
    }

    #[test]
    fn what_is_not_modelled_is_refused() {
        let mut mount = parse("ext4", "x").unwrap();
        for option in ["data=journal", "commit=0", "discard", "nodelalloc"] {
            assert!(set_options(&mut mount, option, "x").is_err(), "{option}");
        }
        assert!(set_options(&mut None, "nobarrier", "x").is_err());
        assert!(parse_write_cache("through", "x").is_err());
        assert!(parse("ext3", "x").unwrap_err().to_string().contains("nearest: \"ext4\""));
    }
}
