//! Files of control groups that are known here, for those who look for one. The kernel of the guest
//! says which there are.

/// A file of a control group.
pub struct FileKey {
    /// Its name.
    pub name: &'static str,
    /// A value that it takes.
    pub example: &'static str,
    /// Whether only the root group has it.
    pub is_of_root: bool,
    /// What it does.
    pub about: &'static str,
}

/// What stands for any of them among the keys of a job and of a group.
pub const FILE: &str = "CONTROLLER.FILE";

const fn file(name: &'static str, example: &'static str, about: &'static str) -> FileKey {
    FileKey { name, example, is_of_root: false, about }
}

/// The files, as the kernel's manual of control groups has them.
pub static FILES: [FileKey; 9] = [
    file("io.max", "riops=100 wbps=1048576", "Limits of requests and of bytes a second."),
    file("io.latency", "target=20000", "Others wait while its requests take longer, in µs."),
    file("io.weight", "1 to 10000", "Its weight where `io.cost.qos` is enabled."),
    file("io.bfq.weight", "1 to 1000", "Its weight under bfq, which `weight` sets."),
    file("io.prio.class", "promote-to-rt", "What becomes of its I/O priorities."),
    FileKey {
        is_of_root: true,
        ..file("io.cost.qos", "enable=1", "Sharing by cost, and the latencies it aims at.")
    },
    FileKey {
        is_of_root: true,
        ..file("io.cost.model", "ctrl=user rbps=…", "What a request is taken to cost.")
    },
    file("memory.high", "64M", "Memory beyond which its tasks are slowed down."),
    file("memory.max", "64M", "Memory that it may have."),
];

/// Whether only the root group has a file of this name.
pub fn is_of_root(name: &str) -> bool {
    FILES.iter().any(|it| it.is_of_root && it.name == name)
}

/// Their names.
pub fn file_names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|it| it.name)
}
