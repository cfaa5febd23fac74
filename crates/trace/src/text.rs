//! What the text formats share: lines with their numbers, and numbers without floating point.

use crate::error::{Error, Place};
use std::io::{BufRead, BufReader, Read};

/// No line of any of these formats comes near this length; it bounds what a damaged file can
/// make the reader hold.
const LONGEST_LINE: u64 = 64 * 1024;

/// The lines of a text file, one at a time.
pub(crate) struct Lines<R> {
    source: BufReader<R>,
    name: String,
    number: u64,
    buffer: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// Lines of `source`, which errors call `name`.
    pub(crate) fn new(source: R, name: &str) -> Self {
        Lines { source: BufReader::new(source), name: name.to_owned(), number: 0, buffer: vec![] }
    }

    /// The next line without its line end; bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn next_line(&mut self) -> Result<Option<String>, Error> {
        self.buffer.clear();
        self.number += 1;
        let mut limited = (&mut self.source).take(LONGEST_LINE);
        let read = limited.read_until(b'\n', &mut self.buffer);
        match read {
            Err(error) => return Err(Error::io(&self.name, self.place(), &error)),
            Ok(0) => return Ok(None),
            Ok(length) if length as u64 == LONGEST_LINE => {
                return Err(self.error("line without an end", "lines of at most 64 KiB"));
            }
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&self.buffer);
        Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
    }

    /// The next line that is not blank.
    pub(crate) fn next_filled_line(&mut self) -> Result<Option<String>, Error> {
        while let Some(line) = self.next_line()? {
            if !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// An error at the line that was read last.
    pub(crate) fn error(&self, cause: impl Into<String>, accepted: impl Into<String>) -> Error {
        Error::new(&self.name, self.place(), cause, accepted)
    }

    /// A field of the line that was read last as a whole number.
    pub(crate) fn integer(&self, what: &str, field: &str) -> Result<u64, Error> {
        field
            .parse()
            .map_err(|_| self.error(format!("{what} `{}`", shown(field)), "a whole number from 0"))
    }

    /// A field of the line that was read last as an identifier.
    pub(crate) fn identifier(&self, what: &str, field: &str) -> Result<u32, Error> {
        field.parse().map_err(|_| {
            self.error(format!("{what} `{}`", shown(field)), "a whole number from 0 to 4294967295")
        })
    }

    /// A field of the line that was read last, in units of `unit` nanoseconds, in nanoseconds.
    pub(crate) fn nanos(&self, what: &str, field: &str, unit: u64) -> Result<u64, Error> {
        decimal(field, unit).filter(|nanos| *nanos <= LATEST).ok_or_else(|| {
            let accepted = "a decimal number of at most 146 years, as 12 or 0.5";
            self.error(format!("{what} `{}`", shown(field)), accepted)
        })
    }

    fn place(&self) -> Place {
        Place::Line(self.number)
    }
}

/// The latest time that is accepted, in nanoseconds: 146 years, a quarter of what an `Instant`
/// holds, so that whoever adds to it need not fear.
pub(crate) const LATEST: u64 = 1 << 62;

/// A piece of a foreign file as it may stand in a message: short, without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        out.push('…');
    }
    out
}

/// `text`, a decimal number, times `unit` (a power of ten), rounded down; no sign, no exponent.
pub(crate) fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = whole.checked_mul(unit)?;
    let mut weight = unit;
    for digit in fraction.bytes() {
        weight /= 10;
        value = value.checked_add(u64::from(digit - b'0') * weight)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_to_the_nanosecond() {
        assert_eq!(decimal("0.449518165", 1_000_000_000), Some(449_518_165));
        assert_eq!(decimal("223.412", 1_000_000), Some(223_412_000));
        assert_eq!(decimal("15362.00000", 1_000), Some(15_362_000));
        assert_eq!(decimal("26214000", 1), Some(26_214_000));
        assert_eq!(decimal(".000479", 1_000_000_000), Some(479_000));
        assert_eq!(decimal("0.0000000019", 1_000_000_000), Some(1));
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        for text in ["", ".", "-1", "+1", "1e5", "1.2.3", "0x10", "nan", "18446744073709551616"] {
            assert_eq!(decimal(text, 1), None, "{text}");
        }
        assert_eq!(decimal("18446744073709551615", 10), None);
    }

    #[test]
    fn a_line_without_an_end_is_refused_with_its_number() {
        let text = [b"first\n".to_vec(), vec![b'x'; 70_000]].concat();
        let mut lines = Lines::new(&text[..], "long.spc");
        assert_eq!(lines.next_line().unwrap().unwrap(), "first");
        let message = lines.next_line().unwrap_err().to_string();
        assert_eq!(message, "long.spc:2: line without an end; accepted: lines of at most 64 KiB");
    }
}
