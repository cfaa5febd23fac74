//! A file of the guest that did not take what the script wrote to it, in the kernel's own words.

use std::fmt;

use base::nearest;

use crate::script::GROUPS;

/// A value that a file did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The path of the file in the guest.
    pub file: String,
    /// What was written to it.
    pub value: String,
    /// Why it was refused.
    pub cause: String,
    /// What could be written to instead, if there is no such file.
    pub there: Vec<String>,
    /// What the file says, if there is one.
    pub says: Option<String>,
}

impl Refusal {
    /// Reads what the script leaves: file, value and cause, and then what the file says or what
    /// others there are, each in its line.
    pub(crate) fn read(text: &str) -> Option<Refusal> {
        let mut lines = text.lines().map(str::trim);
        let mut next = || lines.next().map(str::to_string);
        let (file, value, cause) = (next()?, next()?, next()?);
        let rest: Vec<String> = lines.map(str::to_string).collect();
        let is_there = cause != MISSING;
        let says = is_there.then(|| rest.join(" "));
        let there = if is_there { Vec::new() } else { alike(&file, rest) };
        Some(Refusal { file, value, cause, there, says })
    }

    /// The name of the file, without its directory.
    pub fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or_default()
    }

    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        self.says.is_none()
    }
}

/// What the script says where there is no such file.
const MISSING: &str = "no such file";

/// Of the files of a control group those of the same controller, if there are any, and in any case
/// not those that are about the group itself.
fn alike(file: &str, mut there: Vec<String>) -> Vec<String> {
    if !file.starts_with(GROUPS) {
        return there;
    }
    there.retain(|it| !it.starts_with("cgroup."));
    let name = file.rsplit('/').next().unwrap_or_default();
    let controller = name.split('.').next().unwrap_or_default();
    let is_alike = |it: &String| it.split('.').next() == Some(controller);
    if there.iter().any(is_alike) {
        there.retain(is_alike);
    }
    there
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { file, value, cause, there, says } = self;
        write!(f, "writing {value} to {file}: {cause}")?;
        match says {
            Some(says) => write!(f, "; it says: {says}"),
            None => {
                let hint = nearest(self.name(), there.iter().map(String::as_str));
                write!(f, "{hint}; there are: {}", there.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_answered_with_those_of_the_same_controller() {
        let text = "/sys/fs/cgroup/db/io.mxa\nriops=1\nno such file\ncgroup.procs\nio.max\n\
                    io.weight\nmemory.max\n";
        let refusal = Refusal::read(text).unwrap();
        assert!(refusal.is_missing());
        assert_eq!(
            refusal.to_string(),
            "writing riops=1 to /sys/fs/cgroup/db/io.mxa: no such file; nearest: \"io.max\"; \
             there are: io.max io.weight"
        );
    }

    #[test]
    fn a_value_that_is_refused_is_told_with_what_the_file_says() {
        let refusal = Refusal::read("/q/scheduler\ncfq\nInvalid argument\n[none] bfq \n").unwrap();
        let expected = "writing cfq to /q/scheduler: Invalid argument; it says: [none] bfq";
        assert_eq!(refusal.to_string(), expected);
        assert_eq!(Refusal::read("/q/scheduler\n"), None);
    }
}
