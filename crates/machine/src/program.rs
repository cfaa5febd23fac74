//! What the machine knows of a program: what it is called and how it begins. And what a program may
//! tell the machine of itself, beside its system calls.
//!
//! Which programs there are, what they are typed as and what they do is a matter of whoever makes
//! them; a [`Setup`](crate::Setup) takes any.

use crate::task::Task;
pub use crate::tasks::Running;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A program, ready to run, any number of times.
pub trait Program: fmt::Debug + Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;

    /// Begins to run in a task.
    fn run(&self, task: Task) -> Running;
}

/// What a native program starts with: its task.
type Start = dyn Fn(Task) -> Running + Send + Sync;

/// A program written in Rust against [`Task`], for one purpose.
#[derive(Clone)]
pub struct Native {
    name: String,
    start: Arc<Start>,
}

impl Native {
    /// A program that is an `async` function.
    pub fn new<F>(name: &str, start: impl Fn(Task) -> F + Send + Sync + 'static) -> Arc<Native>
    where
        F: Future<Output = i32> + 'static,
    {
        let start: Arc<Start> = Arc::new(move |task| Box::pin(start(task)));
        Arc::new(Native { name: name.to_string(), start })
    }
}

impl Program for Native {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, task: Task) -> Running {
        (self.start)(task)
    }
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Native").field("name", &self.name).finish_non_exhaustive()
    }
}
