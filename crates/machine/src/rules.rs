//! What kernels do differently above the block layer: one named field for each difference
//! (rules flags and direct-io). Whoever needs a difference asks for the field, never for a version.

use block::changes::{Table, change};
use block::{Flags, Kernel, Op, Version};

/// What a kernel does in its own way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A synchronous read of one bio carries SYNC.
    single_read_is_sync: bool,
    /// A call of one bio is plugged like any other.
    pub plugs_single: bool,
    /// A direct write to the raw disk is plugged as a whole: who waits for it leaves what is in the
    /// plug to a worker. Observed: on 6.1.192 dd plugs each write and unplugs it when it sleeps; on
    /// 6.12.117 it issues the write itself, and on 7.3.4 it has no plug.
    pub plugs_writes: bool,
    /// A task that submits several requests lets others that go first have the core before each,
    /// before each part of a direct request of a file, and before it waits for the disk. Observed:
    /// on 6.1.192 and 7.3.4 a worker issues each of two reads that fio submits together, on 7.3.4
    /// if the worker is owed time; there a task that waits for its write leaves the core before it
    /// sleeps (sched_switch, prev_state R+); on 6.1.192 a task that others write a file with, and
    /// that has woken one, has looked up the place (xfs_iunlock) when it leaves the core. On
    /// 6.12.117 the task issues such requests itself; it is taken to do as the others do.
    pub yields_between: bool,
    /// Of asynchronous requests that are submitted together so many are not plugged.
    pub unplugged_batch: usize,
    /// Writes carry IDLE.
    writes_idle: bool,
    /// Bios are built within the limits of the queue, because it does not split them.
    pub within_limits: bool,
    /// What pages carry that are written because somebody waits for them (fsync).
    pub synced_pages: Flags,
    /// Who writes the raw disk through the page cache keeps others from setting its size meanwhile
    /// (ftruncate, which fails, and with which dd begins that does not write from the start).
    /// Observed: of two dd on 6.12.117 and 7.3.4 one writes for two ticks, and the other one is
    /// woken in vain at the end of each write; then they write in turn. On 6.1.192 they do at once.
    pub shares_disk: bool,
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
            plugs_writes: kernel.version == Version::V6_1,
            yields_between: recent,
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
            shares_disk: kernel.version > Version::V6_1,
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

/// What changed between the kernels that judge: above the block layer, in the page cache, and in
/// file systems.
pub fn changes() -> impl Iterator<Item = &'static Table> {
    [&CHANGES].into_iter().chain(&cache::rules::CHANGES).chain([&fs::rules::CHANGES])
}

static CHANGES: Table = Table {
    about: "system calls",
    shows: |kernel| format!("{:#?}", Rules::of(kernel)),
    rows: &[
        change("plugs_writes", "a direct write to the raw disk is plugged as a whole", JUDGES),
        change(
            "shares_disk",
            "who writes the raw disk through the page cache has its lock",
            JUDGES,
        ),
    ],
};

const JUDGES: &[Version] = &[Version::V6_1, Version::V6_12, Version::V7_3];
