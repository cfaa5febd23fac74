//! Small programs on names: `touch`, `mkdir`, `mv`, `rm`, `rmdir`, `ls`, `stat`, `truncate`,
//! `fallocate`.
//!
//! What they call, and what they say of bad words and of failures, was observed with strace of
//! coreutils 9.1 and util-linux 2.38. What `ls` and `stat` print is left out.

mod words;

use crate::Program;
use guest::OwnFiles;
use machine::calls::Creation;
use machine::program::Running;
use machine::task::{Errno, OpenFlags, Task};
use std::future::Future;
use std::pin::Pin;
use words::Words;

/// One of them, with what it is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    name: &'static str,
    deed: Deed,
    paths: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Deed {
    Touch,
    Mkdir { parents: bool },
    Move,
    Remove { recursive: bool, force: bool },
    RemoveDirectory,
    List,
    Stat,
    Truncate { size: u64 },
    Fallocate { length: u64, keeps_size: bool },
}

impl machine::Program for Tool {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

impl Program for Tool {
    fn files(&self) -> Vec<&str> {
        self.paths.iter().map(String::as_str).collect()
    }

    fn typed_files(&mut self) -> Vec<&mut String> {
        self.paths.iter_mut().collect()
    }

    fn own_files(&self, known: &OwnFiles) -> u32 {
        match self.deed {
            Deed::List => known.ls,
            Deed::Mkdir { .. } => known.mkdir,
            Deed::Move => known.mv,
            Deed::Remove { .. } => known.rm,
            Deed::Stat => known.stat,
            _ => 0,
        }
    }
}

impl Tool {
    /// What the words behind `touch` mean.
    pub fn touch(words: &[String]) -> Result<Tool, String> {
        Tool::of("touch", Words { words }.touch())
    }

    /// What the words behind `mkdir` mean.
    pub fn mkdir(words: &[String]) -> Result<Tool, String> {
        Tool::of("mkdir", Words { words }.mkdir())
    }

    /// What the words behind `mv` mean.
    pub fn mv(words: &[String]) -> Result<Tool, String> {
        Tool::of("mv", Words { words }.mv())
    }

    /// What the words behind `rm` mean.
    pub fn rm(words: &[String]) -> Result<Tool, String> {
        Tool::of("rm", Words { words }.rm())
    }

    /// What the words behind `rmdir` mean.
    pub fn rmdir(words: &[String]) -> Result<Tool, String> {
        Tool::of("rmdir", Words { words }.rmdir())
    }

    /// What the words behind `ls` mean.
    pub fn ls(words: &[String]) -> Result<Tool, String> {
        Tool::of("ls", Words { words }.ls())
    }

    /// What the words behind `stat` mean.
    pub fn stat(words: &[String]) -> Result<Tool, String> {
        Tool::of("stat", Words { words }.stat())
    }

    /// What the words behind `truncate` mean.
    pub fn truncate(words: &[String]) -> Result<Tool, String> {
        Tool::of("truncate", Words { words }.truncate())
    }

    /// What the words behind `fallocate` mean.
    pub fn fallocate(words: &[String]) -> Result<Tool, String> {
        Tool::of("fallocate", Words { words }.fallocate())
    }

    fn of(name: &'static str, parsed: Result<(Deed, Vec<String>), String>) -> Result<Tool, String> {
        match parsed {
            Ok((deed, paths)) => Ok(Tool { name, deed, paths }),
            Err(problem) => Err(format!("{name}: {problem}")),
        }
    }

    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        let mut status = 0;
        let (paths, target) = match (&self.deed, self.paths.as_slice()) {
            (Deed::Move, [paths @ .., target]) => (paths, target.as_str()),
            (_, paths) => (paths, ""),
        };
        if paths.len() > 1 && self.deed == Deed::Move {
            let problem = match task.status(target).await {
                Ok(it) if it.is_directory => None,
                Ok(_) => Some(Errno::Enotdir),
                Err(errno) => Some(errno),
            };
            if let Some(errno) = problem {
                task.print(format!("mv: target '{target}': {errno}"));
                return 1;
            }
        }
        for path in paths {
            if let Err(problem) = self.apply(&task, path, target).await {
                task.print(format!("{}: {problem}", self.name));
                status = 1;
            }
        }
        status
    }

    async fn apply(&self, task: &Task, path: &str, target: &str) -> Result<(), String> {
        let cannot = |what: &'static str| move |errno| format!("{what} '{path}': {errno}");
        match self.deed {
            Deed::Touch => touch(task, path).await.map_err(cannot("cannot touch")),
            Deed::Mkdir { parents: true } => {
                make_all(task, path).await.map_err(cannot("cannot create directory"))
            }
            Deed::Mkdir { parents: false } => {
                task.mkdir(path).await.map_err(cannot("cannot create directory"))
            }
            Deed::Move => rename(task, path, target).await,
            Deed::Remove { recursive, force } => match remove(task, path, recursive).await {
                Err(Errno::Enoent) if force => Ok(()),
                result => result.map_err(cannot("cannot remove")),
            },
            Deed::RemoveDirectory => task.rmdir(path).await.map_err(cannot("failed to remove")),
            Deed::List => list(task, path).await.map_err(cannot("cannot access")),
            Deed::Stat => task.status(path).await.map(drop).map_err(cannot("cannot statx")),
            Deed::Truncate { size } => {
                let file = open(task, path).await;
                let file = file.map_err(|it| format!("cannot open '{path}' for writing: {it}"))?;
                let result = task.truncate(&file, size).await;
                task.close(&file).await;
                result.map_err(cannot("failed to truncate"))
            }
            Deed::Fallocate { length, keeps_size } => {
                let file = open(task, path).await;
                let file = file.map_err(|it| format!("cannot open {path}: {it}"))?;
                let result = task.fallocate(&file, 0..length, keeps_size).await;
                let synced = match result {
                    Ok(()) => task.fsync(&file).await,
                    failed => failed,
                };
                task.close(&file).await;
                synced.map_err(|errno| format!("fallocate failed: {errno}"))
            }
        }
    }
}

async fn open(task: &Task, path: &str) -> Result<machine::task::File, Errno> {
    task.has_directory(path)?;
    task.open_file(path, OpenFlags::default(), Creation::WRITE).await
}

async fn touch(task: &Task, path: &str) -> Result<(), Errno> {
    let file = open(task, path).await?;
    let result = task.set_times(&file).await;
    task.close(&file).await;
    result
}

/// The directory with all those that it is in.
async fn make_all(task: &Task, path: &str) -> Result<(), Errno> {
    let mut ends: Vec<usize> = path.match_indices('/').skip(1).map(|(at, _)| at).collect();
    ends.push(path.len());
    for end in ends {
        match task.mkdir(&path[..end]).await {
            Ok(()) | Err(Errno::Eexist) => {}
            // Above the mount point everything is there.
            Err(Errno::Enoent) if end < path.len() => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

async fn rename(task: &Task, path: &str, target: &str) -> Result<(), String> {
    let from = task.status(path).await;
    let from = from.map_err(|errno| format!("cannot stat '{path}': {errno}"))?;
    let to = task.status(target).await;
    if let Ok(to) = to
        && from.is_directory
        && !to.is_directory
    {
        return Err(format!("cannot overwrite non-directory '{target}' with directory '{path}'"));
    }
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let target = match to {
        Ok(to) if to.is_directory => format!("{}/{name}", target.trim_end_matches('/')),
        _ => target.to_string(),
    };
    let result = task.rename(path, &target).await;
    result.map_err(|errno| format!("cannot move '{path}' to '{target}': {errno}"))
}

fn remove<'a>(
    task: &'a Task,
    path: &'a str,
    recursive: bool,
) -> Pin<Box<dyn Future<Output = Result<(), Errno>> + 'a>> {
    Box::pin(async move {
        if !task.status(path).await?.is_directory {
            return task.unlink(path).await;
        }
        if !recursive {
            return Err(Errno::Eisdir);
        }
        for name in task.list(path).await? {
            remove(task, &format!("{}/{name}", path.trim_end_matches('/')), true).await?;
        }
        task.rmdir(path).await
    })
}

async fn list(task: &Task, path: &str) -> Result<(), Errno> {
    match task.status(path).await?.is_directory {
        true => task.list(path).await.map(drop),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Tool, String> {
        let command = crate::parse(line).map_err(|error| error.to_string())?;
        Ok(command.program.downcast::<Tool>().expect("it is one of them").clone())
    }

    #[test]
    fn words_mean_what_they_mean_to_the_programs() {
        let deed = |line| parse(line).unwrap().deed;
        assert_eq!(deed("touch /mnt/a /mnt/b"), Deed::Touch);
        assert_eq!(deed("mkdir -p /mnt/a/b"), Deed::Mkdir { parents: true });
        assert_eq!(deed("rm -rf /mnt/a"), Deed::Remove { recursive: true, force: true });
        assert_eq!(deed("ls -l /mnt"), Deed::List);
        assert_eq!(deed("truncate -s 1M /mnt/a"), Deed::Truncate { size: 1 << 20 });
        assert_eq!(deed("truncate --size=3KB /mnt/a"), Deed::Truncate { size: 3000 });
        let room = Deed::Fallocate { length: 2 << 20, keeps_size: true };
        assert_eq!(deed("fallocate -n -l 2MiB /mnt/a"), room);
        assert_eq!(parse("mv /mnt/a /mnt/b").unwrap().files(), ["/mnt/a", "/mnt/b"]);
    }

    #[test]
    fn bad_words_are_refused_as_the_programs_do() {
        for (line, problem) in [
            ("touch", "touch: missing file operand"),
            ("mkdir", "mkdir: missing operand"),
            ("mkdir -z x", "mkdir: invalid option -- 'z'"),
            ("mv /mnt/a", "mv: missing destination file operand after '/mnt/a'"),
            ("rm", "rm: missing operand"),
            ("stat", "stat: missing operand"),
            ("truncate /mnt/x", "truncate: you must specify either '--size' or '--reference'"),
            ("truncate -s", "truncate: option requires an argument -- 's'"),
            ("truncate -s 5", "truncate: missing file operand"),
            ("truncate -s q /mnt/x", "truncate: Invalid number: 'q'"),
            ("fallocate /mnt/x", "fallocate: no length argument specified"),
            ("fallocate -l 5", "fallocate: no filename specified"),
            ("fallocate -l 0 /mnt/x", "fallocate: invalid length value specified"),
        ] {
            let refusal = parse(line).unwrap_err();
            assert!(refusal.starts_with(problem), "{line}: {refusal}");
        }
    }
}
