//! What differs between kernels (rules cfq-group-1, cfq-idle-3 and cfq-message-1).

use block::{Kernel, Version};

/// The rules of one kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// It divides the disk among control groups (they came between 2.6.32 and 2.6.34).
    pub has_groups: bool,
    /// A new group starts behind the last one by less where groups pay by requests (4.12 on).
    pub new_group_by_mode: bool,
    /// Groups are waited for on flash disks that queue commands too (4.14 on).
    pub idles_groups_on_flash: bool,
    /// Messages name the control group's path (until 4.14).
    pub names_paths: bool,
    /// Metadata that others wait for lifts its queue's priority.
    pub boosts_by_prio: bool,
}

impl Rules {
    pub fn of(kernel: &Kernel) -> Rules {
        let is_late = kernel.version >= Version::V4_19;
        Rules {
            has_groups: kernel.version > Version::V2_6_32,
            new_group_by_mode: is_late,
            idles_groups_on_flash: is_late,
            names_paths: !is_late,
            boosts_by_prio: true,
        }
    }
}
