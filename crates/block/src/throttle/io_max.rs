//! What a control group may do at most, as `io.max` says it.

use crate::bio::Direction;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// The limits of one direction; what is not there is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Bytes a second, at least one.
    pub bps: Option<u64>,
    /// Bios a second, at least one.
    pub iops: Option<u32>,
}

impl Limit {
    /// Whether nothing is limited.
    pub fn is_none(self) -> bool {
        self.bps.is_none() && self.iops.is_none()
    }
}

/// The limits of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoMax {
    /// Of reads.
    pub read: Limit,
    /// Of writes, discards and flushes.
    pub write: Limit,
}

/// The keys of `io.max`, and what each of them limits.
pub const IO_MAX_KEYS: [(&str, &str); 4] = [
    ("rbps", "bytes read a second"),
    ("wbps", "bytes written a second"),
    ("riops", "reads a second"),
    ("wiops", "writes a second"),
];

impl IoMax {
    /// Whether nothing is limited.
    pub fn is_none(self) -> bool {
        self.read.is_none() && self.write.is_none()
    }

    /// The limits of a direction.
    pub fn of(&self, direction: Direction) -> Limit {
        match direction {
            Direction::Read => self.read,
            Direction::Write => self.write,
        }
    }

    /// Reads limits as they are written to `io.max`, without the number of the device: pairs such
    /// as `rbps=1048576` and `wiops=max`, with spaces between them. The error says what is wrong,
    /// and what is accepted instead.
    pub fn parse(text: &str) -> Result<IoMax, (String, String)> {
        let mut limits = IoMax::default();
        for pair in text.split_whitespace() {
            let Some((key, value)) = pair.split_once('=') else {
                return Err((format!("\"{pair}\" has no value"), accepted()));
            };
            limits.set(key, value)?;
        }
        Ok(limits)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), (String, String)> {
        let (limit, is_bytes) = match key {
            "rbps" => (&mut self.read, true),
            "wbps" => (&mut self.write, true),
            "riops" => (&mut self.read, false),
            "wiops" => (&mut self.write, false),
            _ => {
                let hint = base::nearest(key, IO_MAX_KEYS.iter().map(|it| it.0));
                return Err((format!("\"{key}\" is no key of io.max{hint}"), accepted()));
            }
        };
        let most = if is_bytes { u64::MAX - 1 } else { u64::from(u32::MAX) - 1 };
        let number = match value {
            "max" => None,
            _ => match value.parse::<u64>() {
                Ok(number) if (1..=most).contains(&number) => Some(number),
                _ => {
                    let problem = format!("{key}={value} is no limit");
                    return Err((problem, format!("1 to {most}, or max")));
                }
            },
        };
        match is_bytes {
            true => limit.bps = number,
            false => limit.iops = number.map(|it| it as u32),
        }
        Ok(())
    }
}

fn accepted() -> String {
    "rbps=, wbps=, riops= and wiops= with a number a second or max, such as \"rbps=1048576 \
     wiops=100\""
        .to_string()
}

impl fmt::Display for IoMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = |limit: Limit| limit.bps.map_or("max".to_string(), |it| it.to_string());
        let iops = |limit: Limit| limit.iops.map_or("max".to_string(), |it| it.to_string());
        let (rbps, wbps) = (bps(self.read), bps(self.write));
        write!(f, "rbps={rbps} wbps={wbps} riops={} wiops={}", iops(self.read), iops(self.write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let limits = IoMax::parse("wbps=1048576 riops=100 rbps=max").unwrap();
        assert_eq!(limits.write, Limit { bps: Some(1_048_576), iops: None });
        assert_eq!(limits.read, Limit { bps: None, iops: Some(100) });
        assert_eq!(limits.to_string(), "rbps=max wbps=1048576 riops=100 wiops=max");
        assert_eq!(IoMax::parse(&limits.to_string()), Ok(limits));
        assert!(IoMax::parse("").unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refusal = |text| IoMax::parse(text).unwrap_err();
        assert!(refusal("riosp=1").0.contains("nearest: \"riops\""), "{:?}", refusal("riosp=1"));
        assert_eq!(refusal("riops=0").0, "riops=0 is no limit");
        assert_eq!(refusal("riops=4294967295").1, "1 to 4294967294, or max");
        assert_eq!(refusal("wbps").0, "\"wbps\" has no value");
        assert_eq!(refusal("wbps=1M").0, "wbps=1M is no limit");
    }
}
