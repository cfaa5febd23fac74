//! A shell: what runs one program after the other.
//!
//! When it starts a program, files are looked for in the directories of `PATH` and by the dynamic
//! linker, and the clock is looked at ([`ShellHabits`]). The host's `exec` is the start of a shell
//! and of its first program, if that needs no more than `dd`.

use crate::Program;
use guest::ShellHabits;
use machine::program::Running;
use machine::task::Task;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Several programs, one after the other.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// They, in order.
    pub steps: Vec<Step>,
    /// What their shell does between them.
    pub habits: ShellHabits,
}

/// A program of a sequence.
#[derive(Clone, Debug)]
pub struct Step {
    /// It runs only if the one before has succeeded (`&&` rather than `;`).
    pub needs_success: bool,
    /// What runs.
    pub program: Arc<dyn Program>,
}

/// Lines that run one after the other in one shell until one of them fails, as a machine is
/// prepared.
#[derive(Clone, Debug)]
pub struct Script {
    /// They, in order.
    pub lines: Vec<Line>,
    /// What the shell does between them.
    pub habits: ShellHabits,
}

/// A line of a script.
#[derive(Clone, Debug)]
pub struct Line {
    /// As it was written.
    pub text: String,
    /// What runs.
    pub program: Arc<dyn Program>,
}

impl machine::Program for Sequence {
    fn name(&self) -> &str {
        "sh"
    }

    fn run(&self, task: Task) -> Running {
        let sequence = self.clone();
        Box::pin(async move { Shell::new(sequence.habits).run(&sequence, &task).await })
    }
}

impl Program for Sequence {
    fn files(&self) -> Vec<&str> {
        self.steps.iter().flat_map(|step| step.program.files()).collect()
    }

    fn copies_files(&self) -> bool {
        self.steps.iter().any(|step| step.program.copies_files())
    }
}

impl Script {
    /// What prepares a machine with these lines, if there are any.
    pub fn of(lines: Vec<Line>, habits: ShellHabits) -> Option<Arc<dyn machine::Program>> {
        let is_something = !lines.is_empty();
        is_something.then(|| Arc::new(Script { lines, habits }) as Arc<dyn machine::Program>)
    }

    async fn work(self, task: Task) -> i32 {
        let mut shell = Shell::new(self.habits);
        for Line { text, program } in &self.lines {
            let status = shell.run(&**program, &task).await;
            if status != 0 {
                task.blame(text);
                return status;
            }
        }
        0
    }
}

impl machine::Program for Script {
    fn name(&self) -> &str {
        "setup"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

/// What a shell has run.
struct Shell {
    habits: ShellHabits,
    known: Vec<String>,
}

impl Shell {
    fn new(habits: ShellHabits) -> Shell {
        Shell { habits, known: Vec::new() }
    }

    /// Runs a program, or those of a sequence; the answer is the exit status of the last one.
    fn run<'a>(
        &'a mut self,
        program: &'a dyn Program,
        task: &'a Task,
    ) -> Pin<Box<dyn Future<Output = i32> + 'a>> {
        Box::pin(async move {
            let Some(Sequence { steps, .. }) = program.downcast() else {
                self.load(program, task).await;
                return program.run(task.clone()).await;
            };
            let mut status = 0;
            for Step { needs_success, program } in steps {
                if status == 0 || !needs_success {
                    status = self.run(&**program, task).await;
                }
            }
            status
        })
    }

    async fn load(&mut self, program: &dyn Program, task: &Task) {
        let name = program.name();
        let is_known = self.known.iter().any(|it| it == name);
        let is_first = self.known.is_empty();
        if !is_known {
            self.known.push(name.to_string());
        }
        let ShellHabits { files, directories, looks, is_disturbed, own_files } = self.habits;
        let own = program.own_files(&own_files);
        if is_first {
            return task.look_for_files(own).await;
        }
        let directories = if is_known { directories } else { 0 };
        task.look_for_files(files - directories + own).await;
        task.look_at_clock(looks).await;
        if is_disturbed {
            task.be_disturbed().await;
        }
    }
}
