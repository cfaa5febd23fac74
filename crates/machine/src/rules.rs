//! What kernels do differently above the block layer: one named field for each difference
//! (rules flags and direct-io). Whoever needs a difference asks for the field, never for a version.

use block::{Flags, Kernel, Op, Version};

/// What a kernel does in its own way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A synchronous read of one bio carries SYNC.
    single_read_is_sync: bool,
    /// A call of one bio is plugged like any other.
    pub plugs_single: bool,
    /// Of asynchronous requests that are submitted together so many are not plugged.
    pub unplugged_batch: usize,
    /// Writes carry IDLE.
    writes_idle: bool,
    /// Bios are built within the limits of the queue, because it does not split them.
    pub within_limits: bool,
    /// What pages carry that are written because somebody waits for them (fsync).
    pub synced_pages: Flags,
    /// Tasks share a core by deadlines (EEVDF), where computing is accounted for.
    pub shares_by_deadlines: bool,
    /// Control groups have writeback of their own, unless somebody says otherwise.
    pub cgroup_writeback: bool,
}

impl Rules {
    /// The rules of a kernel.
    pub fn of(kernel: &Kernel) -> Rules {
        // Read in 6.18, and assumed for 6.12; everything older as 4.19.
        let recent = kernel.version >= Version::V6_1;
        Rules {
            single_read_is_sync: recent,
            plugs_single: !recent,
            // Observed on 6.12: two go one by one, four are merged.
            unplugged_batch: if recent { 2 } else { 0 },
            writes_idle: kernel.direct_writes_idle,
            within_limits: !kernel.splits_bios,
            // assumed: 2.6.28 writes them as it writes its journal, plainly (rule sync-6);
            // that fsync marks its writes was proposed in March 2009 (LWN, "That massive
            // filesystem thread").
            synced_pages: match kernel.version < Version::V2_6_32 {
                true => Flags::NONE,
                false => Flags::SYNC,
            },
            shares_by_deadlines: recent,
            cgroup_writeback: recent,
        }
    }

    /// The flags of direct reads and writes.
    pub fn flags(&self, op: Op, is_synchronous_single: bool, durable: bool) -> Flags {
        match op {
            Op::Read if is_synchronous_single && self.single_read_is_sync => Flags::SYNC,
            Op::Read => Flags::NONE,
            Op::Discard => Flags::SYNC,
            Op::Write => {
                let idle = if self.writes_idle { Flags::IDLE } else { Flags::NONE };
                let fua = if durable { Flags::FUA } else { Flags::NONE };
                Flags::SYNC.with(idle).with(fua)
            }
        }
    }
}
