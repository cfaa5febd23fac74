//! A shell: what runs one program after the other.
//!
//! When it starts a program, files are looked for in the directories of `PATH` and by the dynamic
//! linker, and the clock is looked at. Measured in the world linux, where a file that is looked for
//! takes 1 us: the time between two direct reads by `dd`, with another program in between. The
//! host's `exec` is the start of a shell and of its first program, if that needs no more than `dd`.

use super::{Program, Step};
use crate::task::Task;
use std::future::Future;
use std::pin::Pin;

/// Files for a program that needs none but the C library.
const FILES: u32 = 26;
/// Of these, those that a shell does not look for again when it has found the program before.
const DIRECTORIES: u32 = 3;
/// Looks at the clock.
const LOOKS: u32 = 5;

/// What a shell has run.
#[derive(Default)]
pub(crate) struct Shell {
    known: Vec<&'static str>,
}

impl Shell {
    /// Runs a program, or those of a sequence; the answer is the exit status of the last one.
    pub fn run<'a>(
        &'a mut self,
        program: Program,
        task: &'a Task,
    ) -> Pin<Box<dyn Future<Output = i32> + 'a>> {
        Box::pin(async move {
            let Program::Sequence(steps) = program else {
                self.load(&program, task).await;
                return program.run(task.clone()).await;
            };
            let mut status = 0;
            for Step { needs_success, program } in steps {
                if status == 0 || !needs_success {
                    status = self.run(program, task).await;
                }
            }
            status
        })
    }

    async fn load(&mut self, program: &Program, task: &Task) {
        let name = program.name();
        let is_known = self.known.contains(&name);
        let is_first = self.known.is_empty();
        if !is_known {
            self.known.push(name);
        }
        if is_first {
            return task.look_for_files(program.own_files()).await;
        }
        let directories = if is_known { DIRECTORIES } else { 0 };
        task.look_for_files(FILES - directories + program.own_files()).await;
        task.look_at_clock(LOOKS).await;
    }
}

impl Program {
    /// Files that it looks for beside those of every program.
    fn own_files(&self) -> u32 {
        match self.name() {
            "cp" => 5,
            "ls" | "mv" => 4,
            "mkdir" => 3,
            "stat" => 11,
            "rm" => 1,
            _ => 0,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Program::Dd(_) => "dd",
            Program::Dump(_) => "dump",
            Program::Fio(_) => "fio",
            Program::Lg(_) => "lg",
            Program::Sync => "sync",
            Program::Cp(_) => "cp",
            Program::Sleep(_) => "sleep",
            Program::Sequence(_) => "sh",
            Program::Replay(_) => "replay",
            Program::Sysbench(_) => "sysbench",
            Program::Tool(tool) => tool.name(),
            Program::Native(_) => "native",
        }
    }
}
