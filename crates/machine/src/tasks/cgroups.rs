//! Control groups and what they weigh.
//!
//! Whoever is told of groups is told in the order in which they come into being and change.

use block::CgroupId;
use block::scheduler::Cgroup;

/// What a group weighs in version 2 of control groups that nobody gave a weight; the root twice
/// that.
const DEFAULT_WEIGHT: u32 = 100; // rule cfq-settings-3

/// All control groups, the root first.
pub(crate) struct Cgroups {
    groups: Vec<Cgroup>,
    /// There is a controller of block I/O; without it everybody is in the root.
    blkio: bool,
    /// What groups weigh that nobody gave a weight, if the scheduler does not know.
    default_weight: Option<u32>,
}

impl Cgroups {
    /// The root and nothing else.
    pub fn new(blkio: bool) -> Cgroups {
        let root = Cgroup { path: "/".to_string(), ..Cgroup::default() };
        Cgroups { groups: vec![root], blkio, default_weight: None }
    }

    /// All of them.
    pub fn all(&self) -> &[Cgroup] {
        &self.groups
    }

    /// Whether there is a controller of block I/O.
    pub fn has_controller(&self) -> bool {
        self.blkio
    }

    /// In version 2 of control groups weights are others, which kernels tell schedulers.
    pub fn use_version_2(&mut self, tell: impl FnOnce(CgroupId, &Cgroup)) {
        if self.blkio {
            self.default_weight = Some(DEFAULT_WEIGHT);
            self.groups[0].leaf_weight = Some(2 * DEFAULT_WEIGHT);
            tell(CgroupId::ROOT, &self.groups[0]);
        }
    }

    /// The control group of a path, which is made, with those above it, if need be, and given a
    /// weight if there is one. Without a controller of block I/O that is the root.
    pub fn define(
        &mut self,
        path: &str,
        weight: Option<u32>,
        mut tell: impl FnMut(CgroupId, &Cgroup),
    ) -> CgroupId {
        if !self.blkio {
            return CgroupId::ROOT;
        }
        let names = path.split('/').filter(|name| !name.is_empty());
        let mut group = CgroupId::ROOT;
        let mut path = String::new();
        for name in names {
            path = format!("{path}/{name}");
            group = self.child(group, &path, &mut tell);
        }
        let value = &mut self.groups[group.0 as usize];
        if weight.is_some() && weight != value.weight {
            value.weight = weight;
            tell(group, value);
        }
        group
    }

    /// What the own tasks of a group weigh against its children.
    pub fn set_leaf_weight(
        &mut self,
        group: CgroupId,
        weight: Option<u32>,
        tell: impl FnOnce(CgroupId, &Cgroup),
    ) {
        if self.blkio && weight.is_some() {
            let value = &mut self.groups[group.0 as usize];
            value.leaf_weight = weight;
            tell(group, value);
        }
    }

    fn child(
        &mut self,
        parent: CgroupId,
        path: &str,
        tell: &mut impl FnMut(CgroupId, &Cgroup),
    ) -> CgroupId {
        if let Some(known) = self.groups.iter().position(|group| group.path == path) {
            return CgroupId(known as u32);
        }
        let group = CgroupId(self.groups.len() as u32);
        let value = Cgroup {
            path: path.to_string(),
            parent: Some(parent),
            weight: self.default_weight,
            leaf_weight: self.default_weight,
        };
        tell(group, &value);
        self.groups.push(value);
        group
    }
}
