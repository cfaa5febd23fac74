//! One file per format, each a function from lines or bytes to arrivals.

pub(crate) mod blkreplay;
pub(crate) mod blktrace;
pub(crate) mod columns;
pub(crate) mod disksim;
pub(crate) mod etw;
pub(crate) mod fio_iolog;
pub(crate) mod msr;
pub(crate) mod rwbs;
pub(crate) mod spc;
pub(crate) mod start_up;
pub(crate) mod vscsi;
