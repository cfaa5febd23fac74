//! `sync`: writes everything that is dirty to the disk.

use crate::Program;
use machine::program::Running;
use machine::task::Task;

/// It has no options here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync;

impl Sync {
    /// What the words behind `sync` mean.
    pub fn parse(words: &[String]) -> Result<Sync, String> {
        match words {
            [] => Ok(Sync),
            _ => Err("sync: operands are not modelled; accepted: sync alone".to_string()),
        }
    }
}

impl machine::Program for Sync {
    fn name(&self) -> &str {
        "sync"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(async move {
            task.sync().await;
            0
        })
    }
}

impl Program for Sync {}
