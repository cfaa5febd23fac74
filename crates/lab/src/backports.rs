//! Backports as they are asked for: `KERNEL+NAME+NAME`.

use crate::error::Error;
use crate::kernels::{Kernels, Named};
use base::nearest;
use sched::{Backport, Entry};

/// A kernel with what it is given: the kernel, and the names. A kernel that was built may have a
/// name with a `+` in it.
pub fn kernel_and_backports<'a>(
    kernels: Kernels,
    text: &'a str,
    place: &str,
) -> Result<(Named, Vec<&'a str>), Error> {
    match (kernels, text.split_once('+')) {
        (Kernels::Modelled, Some((kernel, names))) => {
            Ok((kernels.find(kernel, place)?, names.split('+').collect()))
        }
        _ => Ok((kernels.find(text, place)?, Vec::new())),
    }
}

/// The backports of these names that a scheduler has for a kernel.
pub fn find(
    entry: &'static Entry,
    kernel: &Named,
    names: &[&str],
    place: &str,
) -> Result<Vec<&'static Backport>, Error> {
    let mut found: Vec<&Backport> = Vec::new();
    for name in names {
        let backport = find_one(entry, kernel, name, place)?;
        if let Some(other) = found.iter().find(|other| backport.excludes.contains(&other.name)) {
            let problem = format!("{name} with {} of {}", other.name, entry.name);
            return Err(Error::bad(place, problem, "one of both"));
        }
        if !found.contains(&backport) {
            found.push(backport);
        }
    }
    Ok(found)
}

fn find_one(
    entry: &'static Entry,
    kernel: &Named,
    name: &str,
    place: &str,
) -> Result<&'static Backport, Error> {
    let version = kernel.rules.version;
    let fitting = || entry.backports().iter().filter(|it| it.on.contains(&version));
    if let Some(found) = fitting().find(|it| it.name == name) {
        return Ok(found);
    }
    let known: Vec<&str> = fitting().map(|it| it.name).collect();
    let hint = nearest(name, known.iter().copied());
    let problem = format!("{} of {version} can be given no \"{name}\"{hint}", entry.name);
    let accepted = match known.is_empty() {
        true => format!("{}@{version}", entry.name),
        false => known.join(", "),
    };
    Err(Error::bad(place, problem, accepted))
}

#[cfg(test)]
mod tests {
    use crate::scheduler_spec::SchedulerSpec;

    #[test]
    fn a_kernel_is_given_changes_of_later_ones() {
        let parse = |text| SchedulerSpec::parse(text, "-s", None);
        let spec = parse("bfq@5.1+no-merge-on-flash+idle-raised-20ms:low_latency=0").unwrap();
        let label = "bfq@5.1+no-merge-on-flash+idle-raised-20ms:low_latency=0";
        assert_eq!(spec.label(), label);
        assert_eq!(spec.kernel_name(), "5.1+no-merge-on-flash+idle-raised-20ms");
        assert_eq!(spec.kernel.version.to_string(), "5.1");
        assert!(!spec.has_tunable("no-merge-on-flash"));
        assert_ne!(spec, parse("bfq@5.1:low_latency=0").unwrap());
        let refusal = |text| parse(text).unwrap_err().to_string();
        assert_eq!(
            refusal("bfq@5.1+idle-raised-20"),
            "-s: bfq of 5.1 can be given no \"idle-raised-20\"; nearest: \"idle-raised-20ms\"; \
             accepted: inject-by-service-time, inject-by-service-time-5.3, no-merge-on-flash, \
             idle-raised-20ms, no-idling-for-lightest, no-bursts-while-busy, \
             seeky-not-real-time, seeky-not-real-time-5.2-rc"
        );
        assert_eq!(
            refusal("bfq@5.2+idle-raised-20ms"),
            "-s: bfq of 5.2 can be given no \"idle-raised-20ms\"; accepted: bfq@5.2"
        );
        assert!(refusal("none@5.1+x").contains("none of 5.1 can be given no \"x\""));
        let both = "bfq@5.1+inject-by-service-time+inject-by-service-time-5.3";
        assert!(refusal(both).contains("one of both"));
    }
}
