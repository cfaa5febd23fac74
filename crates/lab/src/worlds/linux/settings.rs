//! What is written to files of the guest before the jobs, and where somebody asked for it, so that
//! what its kernel refuses is told as any other wrong input.

use super::is_schedulers;
use crate::error::Error;
use crate::experiment::Setting as Asked;
use crate::experiment::cgroup::LIMITS;
use crate::experiment::setting::is_disk;
use crate::plan::{DISK, Number, Row, Written};
use base::nearest;
use block::throttle::IoMax;
use linux::script::group_directory;
use linux::{Cgroup, Refusal, Setting};

/// A value for a file, and where it was asked for.
pub(super) struct Placed {
    pub written: Setting,
    place: String,
}

impl Placed {
    fn new(file: impl Into<String>, value: impl Into<String>, place: &str) -> Placed {
        Placed { written: Setting::new(file, value), place: place.to_string() }
    }
}

/// Values for files of the disk and of the machine, in the order in which they are written.
pub(super) fn of_disk(row: &Row) -> Vec<Placed> {
    let number = |Number { name, value, place }: &Number| {
        if machine::MACHINE_SETTINGS.iter().any(|it| it.name == name) {
            return Placed::new(format!("/proc/sys/vm/{name}"), value.to_string(), place);
        }
        let is_own = row.spec.has_tunable(name)
            && (row.spec.guest.is_some() || is_schedulers(row.spec.kernel, name));
        let file = if is_own { format!("iosched/{name}") } else { name.clone() };
        Placed { written: Setting::queue(0, &file, value.to_string()), place: place.clone() }
    };
    let file = |Written { file, setting }: &Written| {
        Placed::new(file.clone(), setting.value.clone(), &setting.place)
    };
    row.settings.iter().map(number).chain(row.written.iter().map(file)).collect()
}

/// The control groups, parents before children.
pub(super) fn cgroups(row: &Row) -> Vec<Cgroup> {
    let mut cgroups: Vec<Cgroup> = Vec::new();
    let described = row.cgroups.iter().map(|group| &group.path);
    let named = row.jobs.iter().map(|job| &job.job.cgroup);
    for path in described.chain(named).filter(|_| row.blkio) {
        let path = path.trim_matches('/');
        if cgroups.iter().all(|it| it.path != path) {
            let settings = of_group(row, path).into_iter().map(|it| it.written).collect();
            cgroups.push(Cgroup { path: path.to_string(), settings });
        }
    }
    cgroups.sort_by(|one, other| one.path.cmp(&other.path));
    cgroups.retain(|it| !(it.path.is_empty() && it.settings.is_empty()));
    cgroups
}

/// Values for the files of a group, its weight first.
fn of_group(row: &Row, path: &str) -> Vec<Placed> {
    let Some(group) = row.cgroups.iter().find(|it| it.is_at(path)) else { return Vec::new() };
    let weight = group.weight.zip(weight_file(row));
    let weight = weight.map(|(it, file)| Placed::new(file, it.to_string(), &group.place));
    let files =
        group.files.iter().flat_map(|it| match it.name == LIMITS && !row.cgroup_writeback {
            true => of_version_1(group.limits(), it),
            false => vec![Placed::new(&it.name, for_the_disk(it), &it.place)],
        });
    weight.into_iter().chain(files).collect()
}

/// Limits as files of version 1 take them: zero for none.
fn of_version_1(limits: IoMax, asked: &Asked) -> Vec<Placed> {
    let file = |name: &str, value: Option<u64>| {
        let value = format!("{{{DISK}}} {}", value.unwrap_or(0));
        Placed::new(format!("blkio.throttle.{name}_device"), value, &asked.place)
    };
    let IoMax { read, write } = limits;
    vec![
        file("read_bps", read.bps),
        file("write_bps", write.bps),
        file("read_iops", read.iops.map(u64::from)),
        file("write_iops", write.iops.map(u64::from)),
    ]
}

/// The file for the weight of a group: that of a scheduler which honours weights, or of sharing by
/// cost where it is enabled.
fn weight_file(row: &Row) -> Option<String> {
    let controller = if row.cgroup_writeback { "io" } else { "blkio" };
    match row.spec.has_own_weights() {
        true => Some(format!("{controller}.{}.weight", row.spec.name)),
        false => row.shares_by_cost().then(|| "io.weight".to_string()),
    }
}

/// A value with the number of the disk where the file wants one: before keys with values, unless
/// one stands there already, which can only mean the one disk that there is.
fn for_the_disk(asked: &Asked) -> String {
    let value = asked.value.trim();
    let (first, rest) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    let disk = format!("{{{DISK}}}");
    if is_disk(first) {
        return format!("{disk} {}", rest.trim_start()).trim_end().to_string();
    }
    if first.contains('=') { format!("{disk} {value}") } else { asked.value.clone() }
}

/// Whether anything is written that the kernel alone can check.
pub(super) fn are_for_the_kernel(row: &Row) -> bool {
    let has_files = row.cgroups.iter().any(|it| !it.files.is_empty() || it.weight.is_some());
    let has_tunables = row.spec.is_offered() && !row.settings.is_empty();
    has_files || has_tunables || !row.written.is_empty()
}

/// A value that the kernel refuses, told as wrong input where it was asked for.
pub(super) fn refused(row: &Row, refusal: &Refusal) -> Error {
    let of_groups = row.cgroups.iter().flat_map(|group| {
        let path = group.path.trim_matches('/').to_string();
        of_group(row, &path).into_iter().map(move |mut it| {
            it.written.file = format!("{}/{}", group_directory(&path), it.written.file);
            it
        })
    });
    let mut all = of_disk(row).into_iter().chain(of_groups);
    let found = all.find(|it| it.written.file == refusal.file);
    let Some(Placed { place, .. }) = found else { return Error::NoLinux(refusal.to_string()) };
    let (kernel, Refusal { file, value, cause, there, says }) = (row.spec.kernel_name(), refusal);
    match says {
        None => {
            let hint = nearest(refusal.name(), there.iter().map(String::as_str));
            Error::bad(place, format!("kernel {kernel} has no {file}{hint}"), there.join(", "))
        }
        Some(says) => {
            let problem = format!("writing \"{value}\" to {file}: {cause}");
            let says = if says.is_empty() { String::new() } else { format!(", which says {says}") };
            Error::bad(place, problem, format!("what kernel {kernel} takes there{says}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_has_a_file_for_each_limit() {
        let (name, place) = ("io.max".to_string(), "--set".to_string());
        let asked = Asked { name, value: String::new(), place };
        let limits = IoMax::parse("wbps=1048576 riops=100").unwrap();
        let written: Vec<(String, String)> = of_version_1(limits, &asked)
            .into_iter()
            .map(|it| (it.written.file, it.written.value))
            .collect();
        let of = |name: &str, value: &str| {
            (format!("blkio.throttle.{name}_device"), format!("{{vda}} {value}"))
        };
        let expected = [
            of("read_bps", "0"),
            of("write_bps", "1048576"),
            of("read_iops", "100"),
            of("write_iops", "0"),
        ];
        assert_eq!(written, expected);
    }

    #[test]
    fn the_disk_is_named_where_the_file_wants_it() {
        let of = |value: &str| {
            let (name, place) = ("io.max".to_string(), String::new());
            for_the_disk(&Asked { name, value: value.to_string(), place })
        };
        assert_eq!(of("riops=100 wiops=5"), "{vda} riops=100 wiops=5");
        assert_eq!(of("8:0 riops=100"), "{vda} riops=100");
        assert_eq!(of("/dev/nvme0n1 riops=100"), "{vda} riops=100");
        assert_eq!(of("{vda} riops=100"), "{vda} riops=100");
        assert_eq!(of("default 100"), "default 100");
        assert_eq!(of("300"), "300");
        assert_eq!(of("8:16 300"), "{vda} 300");
    }
}
