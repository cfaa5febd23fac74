//! How a kernel is configured: our symbols, the I/O schedulers of its tree, what the user sets, the
//! ticks it can have, and what is meant when nothing is named.

use base::{Fingerprint, Hz};

use crate::error::BuildError;
use crate::link::PTRACE;

/// What differs from a kernel with everything off.
const CONFIGURATION: &str = include_str!("../kernel.config");

/// The fingerprint of our configuration and of what is linked in, a part of a kernel's key.
pub(crate) fn configuration_key() -> String {
    let mut fingerprint = Fingerprint::new();
    fingerprint.mix_bytes(CONFIGURATION.as_bytes());
    fingerprint.mix_bytes(PTRACE.as_bytes());
    fingerprint.to_string()
}

/// The series of kernels that is meant when none is named.
pub const DEFAULT_SERIES: &str = "6.12";

/// The ticks that a kernel can be built with.
pub const TICKS: [u16; 3] = [100, 250, 1000];

/// Symbols without which a guest is of no use; the configuration is checked for them, as they
/// vanish silently when something they depend on is missing.
const ESSENTIAL: [&str; 8] = [
    "UML_TIME_TRAVEL_SUPPORT",
    "STATIC_LINK",
    "VIRTIO_UML",
    "VIRTIO_BLK",
    "HOSTFS",
    "IOSCHED_BFQ",
    "MQ_IOSCHED_DEADLINE",
    "BLK_DEV_IO_TRACE",
];

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

/// Reads symbols as they are typed, `SYMBOL=VALUE` with or without `CONFIG_`, into alphabetical
/// order.
pub fn settings(typed: &[String]) -> Result<Vec<String>, BuildError> {
    let mut settings = Vec::new();
    for text in typed {
        let bad = || BuildError::NoSymbol { text: text.clone() };
        let (symbol, value) = text.split_once('=').ok_or_else(bad)?;
        let symbol = symbol.strip_prefix("CONFIG_").unwrap_or(symbol);
        let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let is_plain = !value.is_empty() && !value.contains(char::is_control);
        if symbol.is_empty() || !symbol.chars().all(is_part) || !is_plain {
            return Err(bad());
        }
        settings.push(format!("{symbol}={value}"));
    }
    settings.sort();
    Ok(settings)
}

/// The symbols of I/O schedulers in a tree's `block/Kconfig.iosched`, with what belongs to them.
pub(crate) fn schedulers(kconfig: &str) -> Vec<String> {
    let mut symbols: Vec<String> = Vec::new();
    let mut current = None;
    for line in kconfig.lines() {
        if let Some(symbol) = line.strip_prefix("config ") {
            current = Some(symbol.trim());
        }
        let Some(symbol) = current else { continue };
        let line = line.trim_start();
        // Switches that are no schedulers, such as those for debugging, stay as they are.
        let is_scheduler = line.starts_with("tristate");
        let belongs = line.starts_with("bool") && symbol.contains("IOSCHED");
        if is_scheduler || belongs {
            symbols.push(symbol.to_string());
            current = None;
        }
    }
    symbols
}

/// Everything that is set: ours, the schedulers, and what the user wants, which counts most.
pub(crate) fn fragment(schedulers: &[String], settings: &[String]) -> String {
    let mut text = CONFIGURATION.to_string();
    for symbol in schedulers {
        text.push_str(&format!("CONFIG_{symbol}=y\n"));
    }
    for setting in settings {
        let symbol = setting.split('=').next().unwrap_or_default();
        let line = format!("CONFIG_{symbol}=");
        let others = text.lines().filter(|it| !it.starts_with(&line));
        text = others.map(|it| format!("{it}\n")).collect();
        text.push_str(&format!("CONFIG_{setting}\n"));
    }
    text
}

/// Whether a finished configuration has what is needed and what the user wants.
pub(crate) fn check(text: &str, hz: Hz, settings: &[String]) -> Result<(), BuildError> {
    let mut expected: Vec<String> =
        ESSENTIAL.iter().map(|symbol| format!("CONFIG_{symbol}=y")).collect();
    expected.push(format!("CONFIG_HZ={}", hz.get()));
    expected.retain(|line| !has(text, line));
    if !expected.is_empty() {
        return Err(BuildError::Configuration { missing: expected.join(", ") });
    }
    let refused = settings.iter().find(|setting| match setting.strip_suffix("=n") {
        Some(symbol) => text.lines().any(|line| line.starts_with(&format!("CONFIG_{symbol}="))),
        None => !has(text, &format!("CONFIG_{setting}")),
    });
    match refused {
        None => Ok(()),
        Some(setting) => Err(BuildError::Refused { setting: setting.clone() }),
    }
}

/// The schedulers that a finished configuration leaves out, for something they depend on is off.
pub(crate) fn left_out(text: &str, schedulers: &[String]) -> Vec<String> {
    let is_on = |symbol: &&String| has(text, &format!("CONFIG_{symbol}=y"));
    schedulers.iter().filter(|symbol| !is_on(symbol)).cloned().collect()
}

fn has(text: &str, line: &str) -> bool {
    text.lines().any(|present| present == line)
}

/// The top-level Kconfig with our default for HZ before all others: the first default counts.
pub(crate) fn with_hz(kconfig: &str, hz: Hz) -> Option<String> {
    let title = kconfig.lines().find(|line| line.starts_with("mainmenu "))?;
    let ours = format!("{title}\n\nconfig HZ\n\tint\n\tdefault {}\n", hz.get());
    Some(kconfig.replacen(title, &ours, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_default_of_hz_stands_before_everything_that_is_sourced() {
        let text = "# x\nmainmenu \"Linux\"\n\nsource \"init/Kconfig\"\n";
        let changed = with_hz(text, Hz::new(250).unwrap()).unwrap();
        let at = |what: &str| changed.find(what).unwrap();
        assert!(at("mainmenu") < at("default 250") && at("default 250") < at("source"));
        assert_eq!(with_hz("source \"x\"\n", Hz::new(250).unwrap()), None);
    }

    #[test]
    fn a_configuration_without_time_travel_is_refused() {
        let mut text: String = ESSENTIAL.iter().map(|name| format!("CONFIG_{name}=y\n")).collect();
        text.push_str("CONFIG_HZ=100\n");
        check(&text, Hz::new(100).unwrap(), &[]).unwrap();
        let refused = check(&text.replace("TIME", "TEA"), Hz::new(250).unwrap(), &[]);
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("CONFIG_UML_TIME_TRAVEL_SUPPORT=y, CONFIG_HZ=250"), "{message}");
        let wanted = settings(&["CONFIG_SMP=y".into(), "HOSTFS=y".into()]).unwrap();
        let message = check(&text, Hz::new(100).unwrap(), &wanted).unwrap_err().to_string();
        assert!(message.contains("--config SMP=y"), "{message}");
    }

    #[test]
    fn schedulers_of_any_name_are_found_and_switches_for_debugging_are_not() {
        let text = "if BLOCK\n\nmenu \"IO\"\n\nconfig MQ_IOSCHED_ODD\n\ttristate \"Odd\"\n\
                    \tdefault y\n\nconfig ODD_GROUP_IOSCHED\n       bool \"Odd's groups\"\n\
                    config ODD_DEBUG\n\tbool \"Odd's debugging\"\n\nconfig EVEN\n\ttristate\n";
        let found = schedulers(text);
        assert_eq!(found, ["MQ_IOSCHED_ODD", "ODD_GROUP_IOSCHED", "EVEN"]);
        let configured = "CONFIG_MQ_IOSCHED_ODD=y\n# CONFIG_EVEN is not set\n";
        assert_eq!(left_out(configured, &found), ["ODD_GROUP_IOSCHED", "EVEN"]);
    }

    #[test]
    fn what_the_user_sets_counts_most() {
        let set = settings(&["CONFIG_XFS_FS=n".into(), "BTRFS_FS=y".into()]).unwrap();
        assert_eq!(set, ["BTRFS_FS=y", "XFS_FS=n"]);
        let text = fragment(&["EVEN".to_string()], &set);
        assert!(text.contains("CONFIG_EVEN=y\n") && text.contains("CONFIG_XFS_FS=n\n"));
        assert!(!text.contains("CONFIG_XFS_FS=y") && !text.contains("CONFIG_BTRFS_FS=n"));
        for bad in ["XFS_FS", "xfs=y", "=y", "XFS_FS=", "A=\"x\n\""] {
            let message = settings(&[bad.to_string()]).unwrap_err().to_string();
            assert!(message.contains("SYMBOL=VALUE"), "{message}");
        }
    }
}
