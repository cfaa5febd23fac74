//! Amounts as people write them: `500ms`, `1 GiB`, `60 kB/s`.

use base::{Bytes, Duration};

/// A number with what its unit measures, in base units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Nanoseconds, bytes, bytes per second, operations per second, percent or a plain count.
    pub value: f64,
    /// What it measures.
    pub kind: Kind,
}

/// What an amount measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A time, in nanoseconds.
    Time,
    /// An amount of data, in bytes.
    Size,
    /// A rate of data, in bytes per second.
    Rate,
    /// Operations per second.
    Operations,
    /// A percentage.
    Percent,
    /// A plain number.
    Count,
}

const UNITS: [(&str, f64, Kind); 23] = [
    ("ns", 1.0, Kind::Time),
    ("us", 1e3, Kind::Time),
    ("µs", 1e3, Kind::Time),
    ("ms", 1e6, Kind::Time),
    ("s", 1e9, Kind::Time),
    ("min", 60e9, Kind::Time),
    ("B", 1.0, Kind::Size),
    ("kB", 1e3, Kind::Size),
    ("MB", 1e6, Kind::Size),
    ("GB", 1e9, Kind::Size),
    ("KiB", 1024.0, Kind::Size),
    ("MiB", 1_048_576.0, Kind::Size),
    ("GiB", 1_073_741_824.0, Kind::Size),
    ("TiB", 1_099_511_627_776.0, Kind::Size),
    ("B/s", 1.0, Kind::Rate),
    ("kB/s", 1e3, Kind::Rate),
    ("MB/s", 1e6, Kind::Rate),
    ("GB/s", 1e9, Kind::Rate),
    ("KiB/s", 1024.0, Kind::Rate),
    ("MiB/s", 1_048_576.0, Kind::Rate),
    ("IOPS", 1.0, Kind::Operations),
    ("%", 1.0, Kind::Percent),
    ("", 1.0, Kind::Count),
];

/// What [`duration`] accepts, for messages.
pub const ACCEPTED_DURATION: &str = "a time such as \"500ms\" or \"2s\"";
/// What [`span`] accepts, for messages.
pub const ACCEPTED_SPAN: &str = "a time above zero such as \"500ms\" or \"2s\"";
/// What [`size`] accepts, for messages.
pub const ACCEPTED_SIZE: &str = "a size such as \"512 MiB\" or \"1 GiB\"";

impl Quantity {
    /// Reads a number, blanks or none, and a unit.
    pub fn parse(text: &str) -> Option<Quantity> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim();
        let (_, factor, kind) = UNITS.iter().find(|(name, ..)| *name == unit)?;
        let number: f64 = number.parse().ok()?;
        Some(Quantity { value: number * factor, kind: *kind })
    }
}

/// A time in which something can happen.
pub fn span(text: &str) -> Option<Duration> {
    duration(text).filter(|it| !it.is_zero())
}

/// A time.
pub fn duration(text: &str) -> Option<Duration> {
    let quantity = Quantity::parse(text).filter(|quantity| quantity.kind == Kind::Time)?;
    let fits = quantity.value < 1e18;
    fits.then(|| Duration::from_nanos(quantity.value.round() as u64))
}

/// An amount of data.
pub fn size(text: &str) -> Option<Bytes> {
    let quantity = Quantity::parse(text).filter(|quantity| quantity.kind == Kind::Size)?;
    let fits = quantity.value < 1e18;
    fits.then(|| Bytes(quantity.value.round() as u64))
}

/// An amount as people read it, with three digits: `1.23 ms`, `48.1 MB/s`, `31 %`.
pub fn human(value: f64, kind: Kind) -> String {
    let (number, unit) = human_parts(value, kind);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// A mean and its half-width in one unit: `48.1 ± 7.2 ms`; without the latter where it is nothing.
pub fn human_spread(mean: f64, half_width: f64, kind: Kind) -> String {
    let (factor, unit) = unit_for(mean, kind);
    let middle = digits(mean / factor);
    let spread = digits(half_width / factor);
    // A spread that would be printed as 0 beside this mean says nothing.
    let visible = half_width > mean.abs() * 0.000_5 && half_width > 0.0;
    let number = if visible { format!("{middle} ± {spread}") } else { middle };
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// The number and the unit of [`human`].
pub fn human_parts(value: f64, kind: Kind) -> (String, &'static str) {
    let (factor, unit) = unit_for(value, kind);
    (digits(value / factor), unit)
}

/// Three significant digits, and never an exponent.
pub fn digits(value: f64) -> String {
    match value.abs() {
        x if x >= 99.95 || x == 0.0 => format!("{value:.0}"),
        x if x >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn unit_for(value: f64, kind: Kind) -> (f64, &'static str) {
    let scales: &[(f64, &str)] = match kind {
        Kind::Time => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
        Kind::Size => &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
        Kind::Rate => &[(1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
        Kind::Operations => &[(1.0, "IOPS")],
        Kind::Percent => &[(1.0, "%")],
        Kind::Count => &[(1.0, "")],
    };
    let fits = scales.iter().find(|(factor, _)| value.abs() >= *factor);
    let smallest = scales[scales.len() - 1];
    let unit = if value == 0.0 { smallest } else { fits.copied().unwrap_or(smallest) };
    (unit.0, unit.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_told_apart() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("1.5 s"), Some(Duration::from_millis(1500)));
        assert_eq!(size("1 GiB"), Some(Bytes(1 << 30)));
        assert_eq!(size("2 kB"), Some(Bytes(2000)));
        let rate = Quantity::parse("60 kB/s").unwrap();
        assert_eq!((rate.value, rate.kind), (60_000.0, Kind::Rate));
        assert_eq!(Quantity::parse("31 %").unwrap().kind, Kind::Percent);
    }

    #[test]
    fn amounts_are_printed_with_three_digits() {
        assert_eq!(human(1_234_000.0, Kind::Time), "1.23 ms");
        assert_eq!(human(48_123.0, Kind::Time), "48.1 µs");
        assert_eq!(human(121e6, Kind::Rate), "121 MB/s");
        assert_eq!(human(0.0, Kind::Percent), "0 %");
        assert_eq!(human_spread(48e6, 7.25e6, Kind::Time), "48.0 ± 7.25 ms");
        assert_eq!(human_spread(48e6, 0.0, Kind::Time), "48.0 ms");
        assert_eq!(human(0.4, Kind::Time), "0.40 ns");
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "ms", "5 parsecs", "-3s", "1.2.3s", "5", "nan"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(size("5 s"), None);
        assert_eq!(duration("99999999999999999999s"), None);
    }
}
