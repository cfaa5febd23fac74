//! The worker that says of blocks of files that they have their contents.
//!
//! Blocks that were made unwritten, or lie beyond what the disk says is the end of their file, become
//! a part of it when their data are on the disk: a worker changes the file, and only then have its
//! pages been written. So whoever waits for them goes on behind who was waiting for a tag (observed
//! on 6.12).

use super::Format;
use super::writeback::Written;
use crate::task::Task;
use crate::tasks::KernelTask;
use crate::world::World;
use block::ContextId;

/// A write whose data are on the disk.
#[derive(Debug)]
pub(super) struct Ended {
    written: Written,
    /// The bios that wrote its pages.
    tokens: Vec<u64>,
}

/// Creates the worker.
pub(super) fn spawn(world: &mut World) -> ContextId {
    let converter = world.spawn_kernel_task(KernelTask::Converter);
    world.files().converter = converter;
    converter
}

/// What it does.
pub(crate) async fn run(task: Task) -> i32 {
    loop {
        task.notified().await;
        while let Some(Ended { written, tokens }) = task.next_ended() {
            match task.format() {
                Format::Ext4 => task.convert(written.file, written.blocks).await,
                Format::Xfs => task.convert_on_xfs(&written).await,
            }
            let mut world = task.world();
            tokens.into_iter().for_each(|it| world.pages_done(it, task.id()));
        }
    }
}

impl Task {
    fn next_ended(&self) -> Option<Ended> {
        self.world().files().ended.pop_front()
    }
}

impl World {
    /// Data are on the disk, of which the file does not know yet.
    pub(super) fn leave_to_converter(&mut self, written: Written, tokens: Vec<u64>, by: ContextId) {
        let files = self.files();
        files.ended.push_back(Ended { written, tokens });
        let converter = files.converter;
        self.notify_by(by, converter);
    }
}
