//! What an experiment expects: published or measured figures, to be set beside ours.
//!
//! Written as `[expect]` with a scheduler on the left and figures on the right:
//! `"cfq@4.19 threads=3" = { write_bw = "60 kB/s ± 10 %", "db.read_p99" = "< 20 ms" }`.

use crate::error::Error;
use crate::figure::Figure;
use crate::quantity::{Kind, Quantity};

/// One expected figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The scheduler as it is written in the list of schedulers.
    pub scheduler: String,
    /// The values of axes for which it holds; all values of the others.
    pub axes: Vec<(String, String)>,
    /// Which figure.
    pub figure: Figure,
    /// What is expected of it.
    pub bound: Bound,
    /// As it was written.
    pub text: String,
    /// Where it was written.
    pub place: String,
}

/// What is expected of a figure, in base units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Between these, both included.
    Between(f64, f64),
    /// Less than this.
    Below(f64),
    /// More than this.
    Above(f64),
}

const ACCEPTED: &str = "\"60 kB/s ± 10 %\", \"12 ms ± 2 ms\", \"< 20 ms\" or \"> 100 MB/s\"";

impl Bound {
    /// Understands an expectation about a figure of this kind.
    pub fn parse(text: &str, kind: Kind, place: &str) -> Result<Bound, Error> {
        let refuse = || Error::bad(place, format!("\"{text}\" is no expectation"), ACCEPTED);
        let amount = |text: &str| -> Result<f64, Error> {
            let quantity = Quantity::parse(text).ok_or_else(refuse)?;
            if quantity.kind != kind {
                let problem = format!("\"{text}\" is not what the figure measures");
                return Err(Error::bad(place, problem, accepted_unit(kind)));
            }
            Ok(quantity.value)
        };
        if let Some(rest) = text.strip_prefix('<') {
            return Ok(Bound::Below(amount(rest)?));
        }
        if let Some(rest) = text.strip_prefix('>') {
            return Ok(Bound::Above(amount(rest)?));
        }
        let (middle, tolerance) = text.split_once('±').ok_or_else(refuse)?;
        let middle = amount(middle)?;
        let tolerance = match Quantity::parse(tolerance).ok_or_else(refuse)? {
            Quantity { value, kind: Kind::Percent } if kind != Kind::Percent => {
                middle * value / 100.0
            }
            Quantity { value, kind: of } if of == kind => value,
            _ => return Err(refuse()),
        };
        Ok(Bound::Between(middle - tolerance, middle + tolerance))
    }

    /// Whether a value is as expected.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bound::Between(least, most) => (least..=most).contains(&value),
            Bound::Below(limit) => value < limit,
            Bound::Above(limit) => value > limit,
        }
    }
}

fn accepted_unit(kind: Kind) -> &'static str {
    match kind {
        Kind::Time => "a time: ns, us, ms, s",
        Kind::Size => "an amount of data: B, kB, MiB, …",
        Kind::Rate => "a rate: B/s, kB/s, MB/s, MiB/s, …",
        Kind::Operations => "operations a second: IOPS",
        Kind::Percent => "a percentage: %",
        Kind::Count => "a plain number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_written_with_tolerance_or_direction() {
        let parse = |text| Bound::parse(text, Kind::Rate, "x.toml:1").unwrap();
        assert_eq!(parse("60 kB/s ± 10 %"), Bound::Between(54_000.0, 66_000.0));
        assert_eq!(parse("60 kB/s ± 1 kB/s"), Bound::Between(59_000.0, 61_000.0));
        assert_eq!(parse("> 100 MB/s"), Bound::Above(1e8));
        assert!(parse("< 2 MB/s").holds(1e6) && !parse("< 2 MB/s").holds(2e6));
    }

    #[test]
    fn a_bound_without_tolerance_or_of_another_kind_is_refused() {
        for text in ["60 kB/s", "60 ms ± 10 %", "fast", "60 kB/s ± 10 ms"] {
            assert!(Bound::parse(text, Kind::Rate, "x.toml:1").is_err(), "{text}");
        }
    }
}
