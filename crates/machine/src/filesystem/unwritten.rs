//! The worker that says of blocks of files that they have their contents.
//!
//! Blocks that were made unwritten, or lie beyond what the disk says is the end of their file,
//! become a part of it when their data are on the disk: a worker changes the file, and only then
//! have its pages been written. So whoever waits for them goes on behind who was waiting for a tag
//! (observed on 6.12).

use super::FileIo;
use crate::task::Task;
use fs::Format;

/// What the worker does.
pub(crate) async fn run(task: Task) -> i32 {
    let io = FileIo::of(&task);
    loop {
        task.notified().await;
        loop {
            let next = task.files().next_to_convert();
            let Some((written, tokens)) = next else { break };
            match task.format() {
                Format::Ext4 => io.on_ext4().convert(written.file, written.blocks).await,
                Format::Xfs => io.on_xfs().convert(&written).await,
            }
            for token in tokens {
                let now = io.tick();
                let effects = task.storage().pages_done(token, now);
                task.apply(effects);
            }
        }
    }
}
