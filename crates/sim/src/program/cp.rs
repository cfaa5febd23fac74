//! `cp SOURCE COPY`: copies a file of the file system.
//!
//! Observed with strace of coreutils 9.1 and on 6.12: the source is advised to be read in order,
//! and `copy_file_range` copies it within the kernel, as much at a time as a pipe holds.
//!
// Divergence: each such piece is a read and a write here, with the cost of two system calls.

use crate::filesystem::Creation;
use crate::task::{Advice, Errno, OpenFlags, Task};

/// What a pipe holds: 16 pages.
const PIPE: u64 = 16 * 4096;

/// A copy of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cp {
    files: [String; 2],
}

impl Cp {
    /// What the words behind `cp` mean.
    pub fn parse(words: &[String]) -> Result<Cp, String> {
        match words {
            [from, to] if ![from, to].iter().any(|word| word.starts_with('-')) => {
                Ok(Cp { files: [from.clone(), to.clone()] })
            }
            _ => Err("cp: options and folders are not modelled; accepted: cp SOURCE COPY".into()),
        }
    }

    /// The files that it names.
    pub fn files(&self) -> Vec<&str> {
        self.files.iter().map(String::as_str).collect()
    }

    /// Runs; the answer is the exit status.
    pub(crate) async fn run(self, task: Task) -> i32 {
        match self.copy(&task).await {
            Ok(()) => 0,
            Err(errno) => {
                task.print(format!("cp: cannot copy '{}': {errno}", self.files[0]));
                1
            }
        }
    }

    async fn copy(&self, task: &Task) -> Result<(), Errno> {
        let flags = OpenFlags::default();
        let from = task.open_file(&self.files[0], flags, Creation::READ).await?;
        let creation = Creation { truncates: true, ..Creation::WRITE };
        let to = task.open_file(&self.files[1], flags, creation).await?;
        task.advise(&from, Advice::Sequential);
        let mut at = 0;
        loop {
            let length = task.pread(&from, at, PIPE).await?;
            if length == 0 {
                break;
            }
            at += task.pwrite(&to, at, length).await?;
        }
        task.close(&to).await;
        task.close(&from).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_two_names_and_no_options() {
        let parse = |line: &str| {
            Cp::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
        };
        assert_eq!(parse("/mnt/a /mnt/b").unwrap().files(), ["/mnt/a", "/mnt/b"]);
        for bad in ["/mnt/a", "-r /mnt/a /mnt/b", "/mnt/a /mnt/b /mnt/c"] {
            assert!(parse(bad).unwrap_err().contains("accepted: cp SOURCE COPY"), "{bad}");
        }
    }
}
