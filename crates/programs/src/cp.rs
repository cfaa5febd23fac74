//! `cp [--reflink=never] SOURCE COPY`: copies a file of the file system.
//!
//! Observed with strace of coreutils 9.1 and on 6.12: the source is advised to be read in order,
//! and `copy_file_range` copies it within the kernel, as much at a time as a pipe holds; a copy
//! that must not share blocks with its source is read and written.
//!
// Divergence: each such piece is a read and a write here, with the cost of two system calls.

use crate::Program;
use guest::OwnFiles;
use machine::calls::Creation;
use machine::program::Running;
use machine::task::{Advice, Errno, OpenFlags, Task};

/// What a pipe holds: 16 pages.
const PIPE: u64 = 16 * 4096;

/// What is read and written at a time (strace shows it).
const BUFFER: u64 = 128 << 10;
const NEVER: &str = "--reflink=never";
const ACCEPTED: &str = "cp: options and several sources are not modelled; accepted: cp SOURCE \
                        COPY, cp --reflink=never SOURCE COPY";

/// A copy of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cp {
    files: [String; 2],
    /// Whether the copy may share the blocks of its source.
    pub may_share: bool,
}

impl machine::Program for Cp {
    fn name(&self) -> &str {
        "cp"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

impl Program for Cp {
    fn files(&self) -> Vec<&str> {
        self.files.iter().map(String::as_str).collect()
    }

    fn typed_files(&mut self) -> Vec<&mut String> {
        self.files.iter_mut().collect()
    }

    fn copies_files(&self) -> bool {
        self.may_share
    }

    fn own_files(&self, known: &OwnFiles) -> u32 {
        known.cp
    }
}

impl Cp {
    /// What the words behind `cp` mean.
    pub fn parse(words: &[String]) -> Result<Cp, String> {
        let (options, files): (Vec<&String>, Vec<&String>) =
            words.iter().partition(|word| word.starts_with('-'));
        match files.as_slice() {
            [from, to] if options.iter().all(|it| *it == NEVER) => {
                let files = [from.to_string(), to.to_string()];
                Ok(Cp { files, may_share: options.is_empty() })
            }
            _ => Err(ACCEPTED.into()),
        }
    }

    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        match self.copy(&task).await {
            Ok(()) => 0,
            Err(errno) => {
                task.print(format!("cp: cannot stat '{}': {errno}", self.files[0]));
                1
            }
        }
    }

    /// The copy within the directory that is named.
    fn within(&self) -> String {
        let name = self.files[0].rsplit('/').next().unwrap_or_default();
        format!("{}/{name}", self.files[1].trim_end_matches('/'))
    }

    async fn copy(&self, task: &Task) -> Result<(), Errno> {
        let flags = OpenFlags::default();
        let from = task.open_file(&self.files[0], flags, Creation::READ).await?;
        let creation = Creation { truncates: true, ..Creation::WRITE };
        let to = match task.status(&self.files[1]).await {
            Ok(status) if status.is_directory => self.within(),
            _ => self.files[1].clone(),
        };
        let to = task.open_file(&to, flags, creation).await?;
        task.advise(&from, Advice::Sequential);
        let mut at = 0;
        loop {
            let most = if self.may_share { PIPE } else { BUFFER };
            let length = task.pread(&from, at, most).await?;
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
    fn a_copy_has_two_names_and_may_be_forbidden_to_share() {
        let parse = |line: &str| {
            Cp::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
        };
        assert_eq!(parse("/mnt/a /mnt/b").unwrap().files(), ["/mnt/a", "/mnt/b"]);
        assert!(parse("/mnt/a /mnt/b").unwrap().may_share);
        assert!(!parse("--reflink=never /mnt/a /mnt/b").unwrap().may_share);
        for bad in ["/mnt/a", "-r /mnt/a /mnt/b", "/mnt/a /mnt/b /mnt/c"] {
            assert!(parse(bad).unwrap_err().contains("accepted: cp SOURCE COPY"), "{bad}");
        }
    }
}
