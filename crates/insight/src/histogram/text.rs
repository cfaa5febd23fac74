//! Histograms as `bpftrace` and `bcc` print them.

use super::Distribution;
use base::Duration;
use std::fmt::Write;

/// In what unit a histogram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanos,
    /// Microseconds.
    Micros,
}

/// In what form a histogram is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What `hist()` of bpftrace prints.
    Bpftrace,
    /// What `biolatency` of bcc prints.
    Bcc,
    /// What `bpftrace -f json` prints of a map, a line each.
    Json,
}

impl Unit {
    /// The one that tells most of some durations: half of them must not lie below two microseconds
    /// to be shown in microseconds.
    pub fn of(times: &Distribution) -> Unit {
        match times.histogram().quantile(1, 2) < Duration::from_micros(2) {
            true => Unit::Nanos,
            false => Unit::Micros,
        }
    }

    pub(super) const fn nanos(self) -> u64 {
        match self {
            Unit::Nanos => 1,
            Unit::Micros => 1_000,
        }
    }

    /// What both tools call it.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Nanos => "nsecs",
            Unit::Micros => "usecs",
        }
    }
}

const BPFTRACE_WIDTH: u64 = 52;
const BCC_WIDTH: u64 = 40;

impl Distribution {
    /// What `hist()` of bpftrace prints: `[64, 128)  12 |@@@   |`, from the first row that is not
    /// empty to the last.
    pub fn bpftrace(&self, unit: Unit) -> String {
        // Its rows are zero, one, and then doublings.
        let counts = self.doublings(unit);
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let mut text = String::new();
        for (place, count) in counts.iter().enumerate().skip(first) {
            let label = match place {
                0 => "[0]".to_owned(),
                1 => "[1]".to_owned(),
                _ => format!("[{}, {})", short(1 << (place - 1)), short(1 << place)),
            };
            let bar = "@".repeat((count * BPFTRACE_WIDTH / most) as usize);
            let _ = writeln!(text, "{label:<16}{count:>8} |{bar:<52}|");
        }
        text
    }

    /// What `biolatency` of bcc prints: `64 -> 127 : 12 |***   |`, from zero to the last row that
    /// is not empty.
    pub fn bcc(&self, unit: Unit) -> String {
        let mut counts = self.doublings(unit).to_vec();
        let mut text = format!("     {:<19} : count     distribution\n", unit.name());
        if counts.is_empty() {
            return text;
        }
        // Its first row is zero and one together.
        let zeros = counts.remove(0);
        match counts.first_mut() {
            Some(ones) => *ones += zeros,
            None => counts.push(zeros),
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        for (place, count) in counts.iter().enumerate() {
            let from = if place == 0 { 0 } else { 1u64 << place };
            let to = (2u64 << place) - 1;
            let bar = "*".repeat((count * BCC_WIDTH / most) as usize);
            let _ = writeln!(text, "{from:>10} -> {to:<10} : {count:<8} |{bar:<40}|");
        }
        text
    }

    /// What `bpftrace -f json` prints of a map of this name.
    pub fn bpftrace_json(&self, map: &str, unit: Unit) -> String {
        let row = |(place, count): (usize, &u64)| match place {
            0 => format!("{{\"min\": 0, \"max\": 0, \"count\": {count}}}"),
            _ => {
                let (min, max) = (1u64 << (place - 1), (1u64 << place) - 1);
                format!("{{\"min\": {min}, \"max\": {max}, \"count\": {count}}}")
            }
        };
        let counts = self.doublings(unit);
        let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let rows: Vec<String> = counts.iter().enumerate().skip(first).map(row).collect();
        let rows = rows.join(", ");
        format!("{{\"type\": \"hist\", \"data\": {{\"@{map}\": [{rows}]}}}}")
    }
}

/// A power of two, with the suffixes of bpftrace.
fn short(number: u64) -> String {
    let (mut number, mut suffix) = (number, "");
    for next in ["K", "M", "G", "T"] {
        if number < 1024 {
            break;
        }
        (number, suffix) = (number / 1024, next);
    }
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Distribution {
        let mut some = Distribution::default();
        for micros in [1, 3, 3, 700] {
            some.add(Duration::from_micros(micros));
        }
        some
    }

    #[test]
    fn it_reads_as_bpftrace_prints_it() {
        let text = some().bpftrace(Unit::Micros);
        let lines: Vec<&str> = text.lines().collect();
        let half = "@".repeat(26);
        assert_eq!(lines[0], format!("[1]                    1 |{half:<52}|"));
        assert_eq!(lines[1], format!("[2, 4)                 2 |{}|", "@".repeat(52)));
        assert_eq!(lines[9], format!("[512, 1K)              1 |{half:<52}|"));
        assert_eq!(lines.len(), 10);
        let json: serde_json::Value =
            serde_json::from_str(&some().bpftrace_json("usecs", Unit::Micros)).unwrap();
        assert_eq!(json["data"]["@usecs"][1]["max"], 3);
    }

    #[test]
    fn it_reads_as_biolatency_prints_it() {
        let text = some().bcc(Unit::Micros);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "     usecs               : count     distribution");
        let half = "*".repeat(20);
        assert_eq!(lines[1], format!("         0 -> 1          : 1        |{half:<40}|"));
        assert_eq!(lines[10], format!("       512 -> 1023       : 1        |{half:<40}|"));
        assert_eq!(Distribution::default().bcc(Unit::Nanos).lines().count(), 1);
    }

    #[test]
    fn what_is_written_as_json_has_its_modes() {
        let json = serde_json::to_value(some()).unwrap();
        assert_eq!((json["count"].as_u64(), json["max_ns"].as_u64()), (Some(4), Some(700_000)));
        assert_eq!(json["modes"].as_array().map(Vec::len), Some(3));
    }
}
