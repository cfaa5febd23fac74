//! Numbers, times and lists as fio reads them, traps included.
//!
//! The rules were established by giving values to fio 3.33 (`--parse-only --debug=parse`); the
//! table in the tests is the list of what it answered. fio silently ignores letters it does not
//! know: `runtime=3min` is three *microseconds*. The value is kept as fio understands it, and what
//! was ignored is returned with it, so that the caller can say so. Divergence: values that
//! overflow, and percentages above 100, are refused; fio wraps them.

use super::expression::{evaluate, split_while};

/// What the letters `k`, `m`, `g`, `t` and `p` stand for (option `kb_base`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitBase {
    /// `k` is 1024 and `kib` is 1000: the default, and the reverse of the standards.
    #[default]
    Compatible,
    /// `k` is 1000 and `kib` is 1024.
    Standard,
}

/// What kind of quantity a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain count or an amount of data.
    Count,
    /// A percentage of something that is not known yet.
    Percent,
    /// A number of zones.
    Zones,
}

/// A number as fio understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'t> {
    /// The value.
    pub value: i64,
    /// What it counts.
    pub unit: Unit,
    /// The end of the text that fio ignores without a word.
    pub ignored: &'t str,
}

/// The unit of a time without letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareTime {
    /// Seconds.
    Seconds,
    /// Microseconds.
    Microseconds,
}

/// Reads an integer with an optional unit of data, a percentage, or a number of zones.
pub fn number(text: &str, base: UnitBase) -> Result<Number<'_>, String> {
    if text.starts_with('(') {
        let unit = |letters: &str| factor(letters, base).map(|(factor, _)| factor);
        let value = evaluate(text, Some(&unit))?;
        return Ok(Number { value, unit: Unit::Count, ignored: "" });
    }
    let (value, behind) = digits(text)?;
    let count = |value, ignored| Ok(Number { value, unit: Unit::Count, ignored });
    match behind {
        Behind::Nothing => count(value, ""),
        Behind::Ignored(rest) => count(value, rest),
        Behind::Suffix("%") => Ok(Number { value, unit: Unit::Percent, ignored: "" }),
        Behind::Suffix("z") => Ok(Number { value, unit: Unit::Zones, ignored: "" }),
        Behind::Suffix(letters) => match factor(letters, base) {
            Some((factor, ignored)) => {
                let value = i64::try_from(factor).ok().and_then(|factor| value.checked_mul(factor));
                count(value.ok_or_else(|| too_large(text))?, ignored)
            }
            None => count(value, letters),
        },
    }
}

/// Reads a time; the value is in microseconds.
pub fn time(text: &str, bare: BareTime) -> Result<Number<'_>, String> {
    let count = |value, ignored| Ok(Number { value, unit: Unit::Count, ignored });
    if text.starts_with('(') {
        let unit = |letters: &str| time_factor(letters).and_then(|f| u64::try_from(f).ok());
        return count(evaluate(text, Some(&unit))?, "");
    }
    let (value, behind) = digits(text)?;
    let scaled = |factor: i64, ignored| {
        count(value.checked_mul(factor).ok_or_else(|| too_large(text))?, ignored)
    };
    let bare = match bare {
        BareTime::Seconds => 1_000_000,
        BareTime::Microseconds => 1,
    };
    match behind {
        // Seconds only stand behind decimal digits: `0x10` is sixteen microseconds.
        Behind::Nothing if is_hexadecimal(text) => count(value, ""),
        Behind::Ignored(rest) if is_hexadecimal(text) => count(value, rest),
        Behind::Nothing => scaled(bare, ""),
        Behind::Ignored(rest) => scaled(bare, rest),
        Behind::Suffix(letters) if letters.starts_with(|c: char| !c.is_ascii_alphabetic()) => {
            scaled(bare, letters)
        }
        Behind::Suffix(letters) => match time_factor(letters) {
            Some(factor) => scaled(factor, ""),
            None => count(value, letters),
        },
    }
}

/// The parts of a value for reads, writes and trims: separated by commas, or by colons, or by
/// minus signs. What fio reads as one part reaches to the next comma, whatever it is split at.
pub fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest.take() {
        let comma = text.find(',');
        parts.push(&text[..comma.unwrap_or(text.len())]);
        rest =
            comma.or_else(|| text.find(':')).or_else(|| text.find('-')).map(|at| &text[at + 1..]);
    }
    parts
}

/// Reads a list of decimal fractions separated by colons; values are in millionths.
pub fn floats(text: &str) -> Result<Vec<i64>, String> {
    text.split(':').map(|part| decimal(part).map(|(value, _)| value)).collect()
}

/// Reads a decimal fraction in millionths and returns what stands behind it.
pub fn decimal(text: &str) -> Result<(i64, &str), String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, rest) = split_while(rest, |c| c.is_ascii_digit());
    let (fraction, behind) = match rest.strip_prefix('.') {
        Some(rest) => split_while(rest, |c| c.is_ascii_digit()),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(format!("'{text}' is not a number"));
    }
    let whole = format!("0{whole}").parse::<i64>().map_err(|_| too_large(text))?;
    let millionths = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(6)
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    whole
        .checked_mul(1_000_000)
        .and_then(|value| value.checked_add(millionths))
        .map(|value| (sign * value, behind))
        .ok_or_else(|| too_large(text))
}

enum Behind<'t> {
    Nothing,
    /// Text that can be a unit: it begins right behind digits that begin the value.
    Suffix(&'t str),
    /// Text that cannot be a unit.
    Ignored(&'t str),
}

/// The leading integer of `text`, as the C library's `strtoll` reads it.
fn digits(text: &str) -> Result<(i64, Behind<'_>), String> {
    let stripped = text.trim_start();
    let indented = stripped.len() != text.len();
    let (negative, unsigned) = match stripped.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, stripped.strip_prefix('+').unwrap_or(stripped)),
    };
    let hexadecimal = is_hexadecimal(text);
    let (digits, behind, radix) = if hexadecimal {
        let (digits, behind) = split_while(&unsigned[2..], |c| c.is_ascii_hexdigit());
        (digits, behind, 16)
    } else {
        let (digits, behind) = split_while(unsigned, |c| c.is_ascii_digit());
        (digits, behind, 10)
    };
    if digits.is_empty() {
        return Err(if text.is_empty() {
            "the value is empty".to_owned()
        } else {
            format!("'{text}' is not a number")
        });
    }
    let value = i64::from_str_radix(digits, radix).map_err(|_| too_large(text))?;
    let behind = match behind {
        "" => Behind::Nothing,
        // A blank before the number hides the unit from fio: `bs = 4k` is four bytes.
        _ if indented || hexadecimal => Behind::Ignored(behind),
        _ if behind.starts_with(['%', 'z']) => Behind::Suffix(behind),
        _ if behind.starts_with(|c: char| c.is_ascii_alphabetic()) => Behind::Suffix(behind),
        _ => Behind::Ignored(behind),
    };
    Ok((if negative { -value } else { value }, behind))
}

fn is_hexadecimal(text: &str) -> bool {
    let text = text.trim_start().trim_start_matches(['-', '+']);
    text.starts_with("0x") || text.starts_with("0X")
}

/// The factor of a unit of data and the letters behind it that mean nothing.
fn factor(letters: &str, base: UnitBase) -> Option<(u64, &str)> {
    let power = match letters.bytes().next()?.to_ascii_lowercase() {
        b'k' => 1,
        b'm' => 2,
        b'g' => 3,
        b't' => 4,
        b'p' => 5,
        b'b' => return Some((1, &letters[1..])),
        _ => return None,
    };
    let rest = &letters[1..];
    // Only the full `ib` makes the other kind: `4kib` is 4000, `4ki` is 4096.
    let full = rest.get(..2).is_some_and(|two| two.eq_ignore_ascii_case("ib"));
    let ignored =
        if full { &rest[2..] } else { rest.strip_prefix(['b', 'B', 'i', 'I']).unwrap_or(rest) };
    let thousand = match base {
        UnitBase::Compatible => full,
        UnitBase::Standard => !full,
    };
    Some((if thousand { 1000_u64.pow(power) } else { 1024_u64.pow(power) }, ignored))
}

/// The factor of a unit of time in microseconds.
fn time_factor(letters: &str) -> Option<i64> {
    let letters = letters.to_ascii_lowercase();
    match letters.as_str() {
        "d" => Some(86_400_000_000),
        "h" => Some(3_600_000_000),
        "m" => Some(60_000_000),
        "s" => Some(1_000_000),
        _ if letters.starts_with("ms") => Some(1_000),
        _ if letters.starts_with("us") => Some(1),
        _ => None,
    }
}

fn too_large(text: &str) -> String {
    format!("'{text}' is too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Option<i64> {
        number(text, UnitBase::Compatible).ok().map(|number| number.value)
    }

    #[test]
    fn amounts_are_what_fio_says_they_are() {
        for (text, value) in [
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4KB", 4096),
            ("4kib", 4000),
            ("4KiB", 4000),
            ("4ki", 4096),
            ("4Ki", 4096),
            ("4m", 4 << 20),
            ("4mib", 4_000_000),
            ("4mi", 4 << 20),
            ("4g", 4 << 30),
            ("4t", 4 << 40),
            ("4tib", 4_000_000_000_000),
            ("4p", 4 << 50),
            ("0x10", 16),
            ("0X10", 16),
            ("010", 10),
            ("4b", 4),
            ("4B", 4),
            ("+4k", 4096),
            ("-4k", -4096),
            ("9223372036854775807", i64::MAX),
        ] {
            assert_eq!(count(text), Some(value), "{text}");
        }
    }

    #[test]
    fn what_fio_ignores_is_reported() {
        for (text, value, ignored) in [
            (" 4k", 4, "k"),
            ("4 k", 4, " k"),
            ("4kk", 4096, "k"),
            ("4kx", 4096, "x"),
            ("4kibx", 4000, "x"),
            ("4e", 4, "e"),
            ("1e3", 1, "e3"),
            ("4.5k", 4, ".5k"),
            ("2*4k", 2, "*4k"),
            ("0x10k", 16, "k"),
            ("12abc", 12, "abc"),
            ("20%k", 20, "%k"),
            ("5Z", 5, "Z"),
            ("8k/4k", 8192, "/4k"),
        ] {
            let number = number(text, UnitBase::Compatible).expect(text);
            assert_eq!((number.value, number.ignored), (value, ignored), "{text}");
        }
    }

    #[test]
    fn values_without_a_number_and_overflows_are_refused() {
        for text in ["", "k", "x", ",", "$FOO", "0x", "9223372036854775808", "1000000p", "%"] {
            assert_eq!(count(text), None, "{text}");
        }
    }

    #[test]
    fn a_standard_base_turns_prefixes_round() {
        let standard = |text| number(text, UnitBase::Standard).unwrap().value;
        assert_eq!(standard("4k"), 4000);
        assert_eq!(standard("4kb"), 4000);
        assert_eq!(standard("4ki"), 4000);
        assert_eq!(standard("4kib"), 4096);
        assert_eq!(standard("4m"), 4_000_000);
    }

    #[test]
    fn percentages_and_zones_are_marked() {
        assert_eq!(number("20%", UnitBase::Compatible).unwrap().unit, Unit::Percent);
        assert_eq!(number("5z", UnitBase::Compatible).unwrap().unit, Unit::Zones);
    }

    #[test]
    fn times_are_what_fio_says_they_are() {
        let seconds = |text| time(text, BareTime::Seconds).ok().map(|number| number.value);
        for (text, micros) in [
            ("3", 3_000_000),
            ("3s", 3_000_000),
            ("3S", 3_000_000),
            ("3sec", 3),
            ("3ms", 3_000),
            ("3msec", 3_000),
            ("3MS", 3_000),
            ("3us", 3),
            ("3usec", 3),
            ("3m", 180_000_000),
            ("3M", 180_000_000),
            ("3min", 3),
            ("3h", 10_800_000_000),
            ("3hours", 3),
            ("3d", 259_200_000_000),
            ("3k", 3),
            ("1m30s", 1),
            ("3.5s", 3_000_000),
            ("3.5ms", 3_000_000),
            (" 3ms", 3_000_000),
            ("+3ms", 3_000),
            ("0x10", 16),
            ("0x10s", 16),
            ("3 s", 3_000_000),
            ("1s-3s", 1),
            ("1ms:3ms", 1_000),
            ("100000d", 8_640_000_000_000_000),
        ] {
            assert_eq!(seconds(text), Some(micros), "{text}");
        }
        assert_eq!(time("3", BareTime::Microseconds).unwrap().value, 3);
        assert_eq!(time("3s", BareTime::Microseconds).unwrap().value, 3_000_000);
        assert_eq!(seconds("s"), None);
    }

    #[test]
    fn lists_split_at_commas_then_colons_then_minus_signs() {
        assert_eq!(parts("4k,8k,16k"), ["4k", "8k", "16k"]);
        assert_eq!(parts("8k,32k,"), ["8k", "32k", ""]);
        assert_eq!(parts(",8k"), ["", "8k"]);
        assert_eq!(parts("4k,8k:16k"), ["4k", "8k:16k", "16k"]);
        assert_eq!(parts("1s:3ms"), ["1s:3ms", "3ms"]);
    }

    #[test]
    fn arithmetic_stands_in_parentheses() {
        assert_eq!(count("(4k*2)"), Some(8192));
        assert_eq!(time("(2*500ms)", BareTime::Seconds).unwrap().value, 1_000_000);
        assert_eq!(count("(4k*2"), None);
    }

    #[test]
    fn fractions_are_millionths() {
        assert_eq!(floats("99.0:99.9:99.99"), Ok(vec![99_000_000, 99_900_000, 99_990_000]));
        assert_eq!(decimal("0.1%"), Ok((100_000, "%")));
        assert_eq!(decimal("-1"), Ok((-1_000_000, "")));
        assert!(decimal("x").is_err());
        assert!(decimal("99999999999999").is_err());
    }
}
