//! The tasks that a file system has of its own.

use super::{FileSystem, ext4, unwritten, xfs};
use crate::world::World;

/// Creates them, in a control group if somebody moved them there.
pub(crate) fn spawn(world: &mut World, cgroup: Option<&str>) {
    let mut tasks = match &world.fs {
        None => return,
        Some(FileSystem::Ext4(_)) => vec![ext4::spawn_committer(world)],
        Some(FileSystem::Xfs(_)) => xfs::tasks::spawn(world),
    };
    tasks.push(unwritten::spawn(world));
    let Some(path) = cgroup.filter(|path| !path.is_empty()) else { return };
    let cgroup = world.define_cgroup(path, None);
    for task in tasks {
        world.tasks.enter_cgroup(task, cgroup);
    }
}
