//! Which names below `/dev` stand for the disk: there is one, and it has one name and those of its
//! partitions.

use super::{PlannedJob, Planner};
use crate::error::Error;
use crate::experiment::DEFAULT_MODEL;

/// Names that are no disk's, by how they begin, and what they are.
const OTHERS: [(&str, &str); 15] = [
    ("bcache", "a cache in front of a disk"),
    ("dm-", "a mapped device"),
    ("drbd", "a replicated device"),
    ("fd/", "an open file"),
    ("full", "no disk"),
    ("loop", "a file that stands for a disk"),
    ("mapper/", "a mapped device"),
    ("md", "an array of disks"),
    ("ram", "memory"),
    ("random", "a source of random bytes"),
    ("shm/", "memory"),
    ("std", "an open file"),
    ("tty", "a terminal"),
    ("urandom", "a source of random bytes"),
    ("zram", "memory"),
];
/// What the disk is called in examples.
const USUAL: &str = "/dev/sda";
/// What may be named instead.
pub(super) const ACCEPTED: &str =
    "one disk under one name, such as /dev/sda or /dev/nvme0n1; /dev/zero, /dev/null";

/// The disk that a name stands for, if it is one; refused if it is something else.
pub(super) fn disk(path: &str, place: &str) -> Result<Option<String>, Error> {
    let Some(name) = device(path) else { return Ok(None) };
    match OTHERS.iter().find(|(start, _)| name.starts_with(start)) {
        Some((_, what)) => {
            Err(Error::bad(place, format!("{path} is {what}, not modelled"), ACCEPTED))
        }
        None => Ok(Some(format!("/dev/{}", whole(name)))),
    }
}

/// The disk's name without `/dev/`, if a path is that of it or of a partition.
pub(super) fn name_of(path: &str) -> Option<&str> {
    device(path).map(whole)
}

/// What a path names below `/dev`, if that is not a mere source or sink of bytes.
fn device(path: &str) -> Option<&str> {
    path.strip_prefix("/dev/").filter(|it| !matches!(*it, "zero" | "null"))
}

/// The name of the disk that a partition is of: `sda` of `sda6`, `nvme0n1` of `nvme0n1p2`.
fn whole(name: &str) -> &str {
    let base = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if base.len() == name.len() {
        return name;
    }
    let before = base.strip_suffix('p').or(base.strip_suffix("-part"));
    let by_number = |it: &&str| it.ends_with(|letter: char| letter.is_ascii_digit());
    let by_letter = ["sd", "hd", "vd", "xvd"].iter().any(|it| base.starts_with(it));
    match before.filter(|it| by_number(it) || base.ends_with("-part")) {
        Some(disk) => disk,
        None if by_letter => base,
        None => name,
    }
}

impl Planner {
    /// All jobs must mean the same disk. What is merely assumed of it is noted with the first job.
    pub(super) fn check_disks(&self, jobs: &mut [PlannedJob]) -> Result<(), Error> {
        let named = self.one_disk(jobs)?;
        let model = &self.experiment.model;
        if self.experiment.places.contains_key("model") || *model != DEFAULT_MODEL {
            return Ok(());
        }
        let disk = named.filter(|it| it != USUAL).unwrap_or("the disk".to_string());
        let note = format!("No model is named (--model): {disk} is assumed to be {model}.");
        if let Some(first) = jobs.first_mut() {
            first.notes.insert(0, note);
        }
        Ok(())
    }

    fn one_disk(&self, jobs: &[PlannedJob]) -> Result<Option<String>, Error> {
        let mut found: Vec<String> = Vec::new();
        for (planned, spec) in jobs.iter().zip(&self.experiment.jobs) {
            for path in planned.program.files() {
                let Some(disk) = disk(path, &spec.place)? else { continue };
                if !found.contains(&disk) {
                    found.push(disk);
                }
                if found.len() > 1 {
                    let problem = format!("several disks: {}", found.join(", "));
                    return Err(Error::bad(&spec.place, problem, ACCEPTED));
                }
            }
        }
        Ok(found.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_of_its_disk() {
        let pairs = [
            ("sda6", "sda"),
            ("vdb", "vdb"),
            ("nvme0n1", "nvme0n1"),
            ("nvme0n1p12", "nvme0n1"),
            ("mmcblk0p1", "mmcblk0"),
            ("disk/by-id/ata-X_1-part2", "disk/by-id/ata-X_1"),
            ("sr0", "sr0"),
        ];
        for (name, expected) in pairs {
            assert_eq!(whole(name), expected);
        }
    }

    #[test]
    fn what_is_no_disk_is_refused_by_name() {
        assert_eq!(disk("/dev/zero", "x").unwrap(), None);
        assert_eq!(disk("/mnt/a", "x").unwrap(), None);
        assert_eq!(disk("/dev/sdb1", "x").unwrap().as_deref(), Some("/dev/sdb"));
        for other in ["md0", "mapper/vg-data", "urandom", "loop0"] {
            let refused = disk(&format!("/dev/{other}"), "x:1").unwrap_err().to_string();
            assert!(refused.starts_with(&format!("x:1: /dev/{other} is ")), "{refused}");
            assert!(refused.contains("accepted: one disk under one name"), "{refused}");
        }
    }
}
