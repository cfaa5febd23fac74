//! What the tests of schedulers share: the disk on a table (`block::contract`), scripts, and naive
//! twins.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod load;
pub mod naive_anticipatory;
pub mod naive_bfq;
pub mod naive_cfq;
pub mod naive_early_cfq;
pub mod naive_kyber;
pub mod script;
pub mod shadow;
pub mod twin;
pub mod watched;

pub use block::contract::{Harness, KERNEL, Table};

use base::{Sector, Sectors};
use block::{Bio, CgroupId, ContextId, Flags, IoContextId, Ioprio, Op, Origin};
use proptest::prelude::ProptestConfig;

/// A read of 4 KiB by a process, counted from zero, that has an io_context of its own.
pub fn read(process: u32, sector: u64, token: u64) -> Bio {
    Bio {
        op: Op::Read,
        flags: Flags::NONE,
        sector: Sector(sector),
        sectors: Sectors(8),
        ioprio: Ioprio::NONE,
        origin: Origin {
            context: ContextId(process + 1),
            io_context: IoContextId(process),
            cgroup: CgroupId::ROOT,
            cpu: 0,
        },
        token,
    }
}

/// How often a random test runs: as `PROPTEST_CASES` says.
pub fn cases() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(300),
        // What was found is kept as a script, which says what happens and why.
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
