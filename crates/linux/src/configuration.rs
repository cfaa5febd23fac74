//! How a kernel is configured: our symbols, the ticks it can have, and what is meant when nothing
//! is named.

use base::{Fingerprint, Hz};

use crate::error::BuildError;

/// What differs from a kernel with everything off.
pub(crate) const CONFIGURATION: &str = include_str!("../kernel.config");

/// The fingerprint of our configuration, a part of a kernel's key.
pub(crate) fn configuration_key() -> String {
    let mut fingerprint = Fingerprint::new();
    fingerprint.mix_bytes(CONFIGURATION.as_bytes());
    fingerprint.to_string()
}

/// The series of kernels that is meant when none is named.
pub const DEFAULT_SERIES: &str = "6.12";

/// The ticks that a kernel can be built with.
pub const TICKS: [u16; 3] = [100, 250, 1000];

/// The tick that is meant when none is named (Debian's kernels have 250).
pub fn default_hz() -> Hz {
    Hz::new(250).expect("a tick that kernels have")
}

pub(crate) fn check_architecture() -> Result<(), BuildError> {
    match std::env::consts::ARCH {
        "x86_64" => Ok(()),
        found => Err(BuildError::Architecture { found }),
    }
}
