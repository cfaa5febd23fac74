//! The inode tables that ext4 initialises after a disk was mounted, beside whatever else is done.
//!
//! `mkfs.ext4` leaves that to the kernel, whose task `ext4lazyinit` writes zeros for as long as it
//! takes. Who measures a disk meanwhile measures that task, too.

use std::fmt;

/// The kernel's task that does it.
const TASK: &str = "ext4lazyinit";

/// What was seen of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LazyTables {
    /// How many it initialised, where they were counted.
    pub tables: u64,
    /// The task was still there when the jobs had ended.
    pub goes_on: bool,
}

impl LazyTables {
    /// Reads the counts of a buffer of events, and the name of the task if there is one.
    pub(crate) fn read(text: &str) -> LazyTables {
        let counts = text.lines().filter_map(|line| line.split_once(": "));
        let numbers = counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok());
        let goes_on = text.lines().any(|line| line.ends_with(TASK));
        LazyTables { tables: numbers.sum(), goes_on }
    }

    /// Whether it wrote anything beside the jobs. The task is there for some seconds where nothing
    /// is to be done, too.
    pub fn was_seen(&self) -> bool {
        self.tables > 0
    }
}

impl fmt::Display for LazyTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.tables {
            1 => "1 inode table".to_string(),
            tables => format!("{tables} inode tables"),
        };
        let end = if self.goes_on { " and had not finished" } else { "" };
        write!(
            f,
            "beside the command the kernel's task {TASK} initialised {what} of ext4{end}, which \
             slows the command down; to avoid that: mkfs.ext4 -E \
             lazy_itable_init=0,lazy_journal_init=0, or mount -o noinit_itable"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_the_task_are_read() {
        let read = LazyTables::read("entries: 5\noverrun: 20\n/proc/70/comm:ext4lazyinit\n");
        assert_eq!(read, LazyTables { tables: 25, goes_on: true });
        assert!(read.to_string().contains("25 inode tables of ext4 and had not finished"));
        let idle = LazyTables::read("entries: 0\noverrun: 0\n/proc/70/comm:ext4lazyinit\n");
        assert!(idle.goes_on && !idle.was_seen());
    }
}
