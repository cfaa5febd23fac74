//! What an experiment says of the file system on its disk.

use crate::error::Error;
use block::Kernel;
use machine::Format;
use machine::Mount;

const KINDS: &str = "raw, ext4, xfs";
const EXT4_OPTIONS: &str = "barrier, nobarrier, barrier=0, barrier=1, data=ordered, \
                            data=writeback, commit=SECONDS, auto_da_alloc, noauto_da_alloc, \
                            noatime, relatime";
const XFS_OPTIONS: &str = "logbsize=16k, 32k, 64k, 128k or 256k; noatime, relatime";
/// Sizes of a log buffer that XFS takes, in bytes (xfs(5)).
const LOG_BUFFERS: [(&str, u64); 5] = [
    ("16k", 16 << 10),
    ("32k", 32 << 10),
    ("64k", 64 << 10),
    ("128k", 128 << 10),
    ("256k", 256 << 10),
];
/// Directories that a system needs for itself, so that nothing is mounted over them.
const TAKEN: [&str; 13] = [
    "bin", "boot", "busybox", "dev", "etc", "guest", "lib", "lib64", "proc", "run", "sbin", "sys",
    "usr",
];
/// The longest time between commits that is accepted.
const MOST_SECONDS: u64 = 300;

/// Understands the name of a file system.
pub fn parse(name: &str, place: &str) -> Result<Option<Mount>, Error> {
    match name {
        "raw" => Ok(None),
        "ext4" => Ok(Some(Mount::default())),
        "xfs" => Ok(Some(Mount { format: Format::Xfs, ..Mount::default() })),
        _ => {
            let hint = base::nearest(name, ["raw", "ext4", "xfs"]);
            Err(Error::bad(place, format!("unknown file system \"{name}\"{hint}"), KINDS))
        }
    }
}

/// The name of what is on the disk.
pub fn name(mount: Option<&Mount>) -> &'static str {
    match mount.map(|it| it.format) {
        None => "raw",
        Some(Format::Ext4) => "ext4",
        Some(Format::Xfs) => "xfs",
    }
}

/// Understands where the file system is mounted.
pub fn parse_point(text: &str, place: &str) -> Result<String, Error> {
    let point = text.trim_end_matches('/');
    let is_part = |part: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        !matches!(part, "" | "." | "..") && part.chars().all(plain)
    };
    let mut parts = point.strip_prefix('/').unwrap_or_default().split('/');
    let is_plain = parts.clone().all(is_part);
    if !is_plain || parts.next().is_some_and(|first| TAKEN.contains(&first)) {
        let accepted = "a directory such as /mnt, /tmp or /srv/data, of letters, digits, \".\", \
                        \"_\" and \"-\", not below /dev, /proc, /sys, /usr or others of the system";
        return Err(Error::bad(place, format!("mount_point \"{text}\""), accepted));
    }
    Ok(point.to_string())
}

/// Understands mount options, separated by commas as in fstab.
pub fn set_options(mount: &mut Option<Mount>, text: &str, place: &str) -> Result<(), Error> {
    let Some(mount) = mount else {
        let problem = format!("mount_options \"{text}\" of a disk without file system");
        return Err(Error::bad(place, problem, "fs = \"ext4\" or \"xfs\""));
    };
    for option in text.split(',').filter(|option| !matches!(*option, "" | "defaults")) {
        match (option, mount.format) {
            ("noatime", _) => mount.notes_access = false,
            ("relatime", _) => mount.notes_access = true,
            (_, Format::Ext4) => set_ext4(mount, option, place)?,
            (_, Format::Xfs) => set_xfs(mount, option, place)?,
        }
    }
    Ok(())
}

fn set_ext4(mount: &mut Mount, option: &str, place: &str) -> Result<(), Error> {
    match option.split_once('=').unwrap_or((option, "")) {
        ("barrier", "" | "1") => mount.barrier = true,
        ("barrier", "0") | ("nobarrier", "") => mount.barrier = false,
        ("data", "ordered") => mount.is_ordered = true,
        ("data", "writeback") => mount.is_ordered = false,
        ("auto_da_alloc", "" | "1") => mount.writes_replaced = true,
        ("auto_da_alloc", "0") | ("noauto_da_alloc", "") => mount.writes_replaced = false,
        ("commit", seconds) => {
            let seconds = seconds.parse().ok().filter(|it| (1..=MOST_SECONDS).contains(it));
            let refuse = || Error::bad(place, option.to_string(), "commit=1 to commit=300");
            mount.commit_seconds = seconds.ok_or_else(refuse)?;
        }
        _ => return Err(unknown(option, EXT4_OPTIONS, place)),
    }
    Ok(())
}

/// What XFS had to switch off barriers went with 4.19, and it has nothing like ext4's `commit`.
fn set_xfs(mount: &mut Mount, option: &str, place: &str) -> Result<(), Error> {
    let size = option.strip_prefix("logbsize=");
    let size = size.ok_or_else(|| unknown(option, XFS_OPTIONS, place))?;
    let is_it = |it: &&(&str, u64)| it.0 == size || it.1.to_string() == size;
    let known = LOG_BUFFERS.iter().find(is_it);
    let bad = || Error::bad(place, option.to_string(), XFS_OPTIONS);
    mount.log_buffer = known.ok_or_else(bad)?.1;
    Ok(())
}

fn unknown(option: &str, accepted: &str, place: &str) -> Error {
    Error::bad(place, format!("unknown mount option \"{option}\""), accepted)
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

/// Whether control groups have writeback of their own, which is as the kernel has it unless that is
/// said.
pub fn cgroup_writeback(
    asked: Option<&str>,
    kernel: &Kernel,
    mount: Option<&Mount>,
    place: &str,
) -> Result<bool, Error> {
    let rules = kernel.cgroup_writeback;
    let is_xfs = mount.is_some_and(|it| it.format == Format::Xfs);
    let is_there = if is_xfs { rules.on_xfs } else { rules.on_ext4 };
    match asked {
        None => Ok(rules.is_usual),
        Some("false") => Ok(false),
        Some("true") if is_there => Ok(true),
        Some("true") => {
            let problem = format!("cgroup_writeback with kernel {}", kernel.version);
            let accepted = "false; true from 4.10 on with ext4, from 6.12 on with XFS";
            Err(Error::bad(place, problem, accepted))
        }
        Some(other) => {
            Err(Error::bad(place, format!("cgroup_writeback \"{other}\""), "true, false"))
        }
    }
}

/// The options as `mount -o` takes them.
pub fn options(mount: &Mount) -> String {
    let access = if mount.notes_access { "" } else { ",noatime" };
    if mount.format == Format::Xfs {
        return format!("logbsize={}{access}", mount.log_buffer);
    }
    let barrier = u8::from(mount.barrier);
    let data = if mount.is_ordered { "ordered" } else { "writeback" };
    let replaced = if mount.writes_replaced { "" } else { ",noauto_da_alloc" };
    format!("barrier={barrier},data={data},commit={}{replaced}{access}", mount.commit_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::Version;

    #[test]
    fn groups_have_writeback_where_the_kernel_has_it_for_them() {
        let of = |asked, version, fs| {
            let mount = parse(fs, "x").unwrap();
            cgroup_writeback(asked, Kernel::of(version), mount.as_ref(), "x")
        };
        assert!(of(None, Version::V6_12, "xfs").unwrap());
        assert!(!of(None, Version::V4_19, "ext4").unwrap());
        assert!(of(Some("true"), Version::V4_19, "ext4").unwrap());
        assert!(!of(Some("false"), Version::V6_18, "ext4").unwrap());
        let refused = of(Some("true"), Version::V4_19, "xfs").unwrap_err().to_string();
        assert!(refused.contains("from 6.12 on with XFS"), "{refused}");
        assert!(of(Some("on"), Version::V6_12, "ext4").is_err());
    }

    #[test]
    fn options_are_understood_and_written_again() {
        let mut mount = parse("ext4", "x").unwrap();
        set_options(&mut mount, "nobarrier,commit=30,data=writeback", "x").unwrap();
        assert_eq!(options(mount.as_ref().unwrap()), "barrier=0,data=writeback,commit=30");
        set_options(&mut mount, "noauto_da_alloc", "x").unwrap();
        assert!(options(&mount.unwrap()).ends_with(",commit=30,noauto_da_alloc"));
    }

    #[test]
    fn a_file_system_is_mounted_where_nobody_needs_the_directory() {
        for (text, point) in [("/scratch/", "/scratch"), ("/srv/a-b/c.d", "/srv/a-b/c.d")] {
            assert_eq!(parse_point(text, "x").unwrap(), point);
        }
        for text in ["", "/", "mnt", "/a/../b", "/a//b", "/dev", "/usr/local", "/a b", "/a;b"] {
            assert!(parse_point(text, "x").is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_modelled_is_refused() {
        let mut mount = parse("ext4", "x").unwrap();
        for option in ["data=journal", "commit=0", "discard", "nodelalloc"] {
            assert!(set_options(&mut mount, option, "x").is_err(), "{option}");
        }
        let mut mount = parse("xfs", "x").unwrap();
        set_options(&mut mount, "defaults,logbsize=64k", "x").unwrap();
        assert_eq!(options(mount.as_ref().unwrap()), "logbsize=65536");
        for option in ["nobarrier", "logbsize=8k", "data=ordered", "commit=5"] {
            assert!(set_options(&mut mount, option, "x").is_err(), "{option}");
        }
        assert!(set_options(&mut None, "nobarrier", "x").is_err());
        assert!(parse_write_cache("through", "x").is_err());
        assert!(parse("ext3", "x").unwrap_err().to_string().contains("nearest: \"ext4\""));
    }
}
