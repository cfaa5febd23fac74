//! What was seen of one guest and follows from no rule: what its boot leaves in memory, what a
//! mount does there, how often one version of fio looks at the clock.
//!
//! A profile is a TOML file in `guests/` in which every fact has a value, a unit, a source, a date
//! and the experiment that showed it. A host names its profile; the host `guest` names `uml-6.12`.
//! Every other host has the profile `neutral`, which assumes nothing of one guest.

#![forbid(unsafe_code)]

mod boot;
mod habits;
mod profile;

pub use boot::{Boot, BootMemory, Files, FirstLists, Footprint, Left, LeftBehind, Lists};
pub use habits::{
    FioHabits, Habits, HelperHabits, OwnFiles, ProcessHabits, ShellHabits, SysbenchHabits,
};
pub use profile::Profile;
