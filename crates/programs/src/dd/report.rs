//! dd's closing line: how much was copied, how long it took, how fast that was.
//!
//! Written as GNU dd writes it, in integer arithmetic.

use base::Duration;

const NANOS: u64 = 1_000_000_000;
const SI: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const IEC: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// `5120000 bytes (5.1 MB, 4.9 MiB) copied, 0.00221579 s, 2.3 GB/s`.
pub(super) fn closing_line(bytes: u64, elapsed: Duration) -> String {
    let amount = match bytes {
        1 => "1 byte".to_string(),
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_024 => format!("{bytes} bytes ({}B)", size(bytes, 1_000, &SI)),
        _ => format!("{bytes} bytes ({}B, {}B)", size(bytes, 1_000, &SI), size(bytes, 1_024, &IEC)),
    };
    format!("{amount} copied, {} s, {}/s", seconds(elapsed), rate(bytes, elapsed))
}

/// A whole number of bytes: one decimal below ten, none above.
fn size(bytes: u64, base: u64, prefixes: &[&str; 7]) -> String {
    let mut unit = 1u128;
    let mut prefix = 0;
    while rounded(u128::from(bytes), unit) >= u128::from(base) && prefix < 6 {
        unit *= u128::from(base);
        prefix += 1;
    }
    let tenths = rounded(u128::from(bytes) * 10, unit);
    match tenths {
        0..100 => format!("{}.{} {}", tenths / 10, tenths % 10, prefixes[prefix]),
        _ => format!("{} {}", rounded(u128::from(bytes), unit), prefixes[prefix]),
    }
}

/// Bytes per second in powers of a thousand, at least in kB: one decimal below a hundred.
fn rate(bytes: u64, elapsed: Duration) -> String {
    let nanos = elapsed.as_nanos();
    if nanos == 0 {
        return "Infinity B".to_string();
    }
    let amount = u128::from(bytes) * u128::from(NANOS);
    let mut unit = u128::from(nanos) * 1_000;
    let mut prefix = 1;
    while amount / unit >= 1_000 && prefix < 6 {
        unit *= 1_000;
        prefix += 1;
    }
    let tenths = rounded(amount * 10, unit);
    match tenths {
        0..1_000 => format!("{}.{} {}B", tenths / 10, tenths % 10, SI[prefix]),
        _ => format!("{} {}B", rounded(amount, unit), SI[prefix]),
    }
}

/// Seconds with six significant digits, as the `%g` of C writes them.
fn seconds(elapsed: Duration) -> String {
    let nanos = u128::from(elapsed.as_nanos());
    if nanos == 0 {
        return "0".to_string();
    }
    let digits = nanos.ilog10() as i32 + 1;
    let mut exponent = digits - 1 - 9;
    // Six digits, the first of them not zero.
    let mut mantissa = match digits {
        0..=6 => nanos * 10u128.pow((6 - digits) as u32),
        _ => rounded(nanos, 10u128.pow((digits - 6) as u32)),
    };
    if mantissa == 1_000_000 {
        mantissa /= 10;
        exponent += 1;
    }
    let text = mantissa.to_string();
    let significant = text.trim_end_matches('0');
    if !(-4..6).contains(&exponent) {
        let (first, rest) = significant.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{first}{point}{rest}e{sign}{:02}", exponent.abs());
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("0.{zeros}{significant}");
    }
    let whole = exponent as usize + 1;
    let fraction = text[whole..].trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}", &text[..whole])
}

/// A quotient, rounded to the nearest whole number.
fn rounded(amount: u128, by: u128) -> u128 {
    (amount + by / 2) / by
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_gnu_dd() {
        // Lines printed by dd 9.1.
        let lines = [
            (0, 65_147, "0 bytes copied, 6.5147e-05 s, 0.0 kB/s"),
            (1, 27_972, "1 byte copied, 2.7972e-05 s, 35.8 kB/s"),
            (1, 33_350, "1 byte copied, 3.335e-05 s, 30.0 kB/s"),
            (999, 74_081, "999 bytes copied, 7.4081e-05 s, 13.5 MB/s"),
            (1000, 26_420, "1000 bytes (1.0 kB) copied, 2.642e-05 s, 37.9 MB/s"),
            (1024, 45_738, "1024 bytes (1.0 kB, 1.0 KiB) copied, 4.5738e-05 s, 22.4 MB/s"),
            (9949, 21_652, "9949 bytes (9.9 kB, 9.7 KiB) copied, 2.1652e-05 s, 459 MB/s"),
            (9950, 23_475, "9950 bytes (10 kB, 9.7 KiB) copied, 2.3475e-05 s, 424 MB/s"),
            (999_499, 485_023, "999499 bytes (999 kB, 976 KiB) copied, 0.000485023 s, 2.1 GB/s"),
            (999_500, 763_007, "999500 bytes (1.0 MB, 976 KiB) copied, 0.000763007 s, 1.3 GB/s"),
            (
                5_120_000,
                2_215_790,
                "5120000 bytes (5.1 MB, 4.9 MiB) copied, 0.00221579 s, 2.3 GB/s",
            ),
            (
                9_999_999_999,
                747_020_000,
                "9999999999 bytes (10 GB, 9.3 GiB) copied, 0.74702 s, 13.4 GB/s",
            ),
            (
                2_147_479_552,
                5_310_490_000,
                "2147479552 bytes (2.1 GB, 2.0 GiB) copied, 5.31049 s, 404 MB/s",
            ),
            (5, 1_503_720_000, "5 bytes copied, 1.50372 s, 0.0 kB/s"),
            (512, 1_003_770_000, "512 bytes copied, 1.00377 s, 0.5 kB/s"),
        ];
        for (bytes, nanos, line) in lines {
            assert_eq!(closing_line(bytes, Duration::from_nanos(nanos)), line);
        }
    }

    #[test]
    fn seconds_have_six_digits_and_no_trailing_zeros() {
        let shown = |nanos| seconds(Duration::from_nanos(nanos));
        assert_eq!(shown(1), "1e-09");
        assert_eq!(shown(99_999), "9.9999e-05");
        assert_eq!(shown(100_000), "0.0001");
        assert_eq!(shown(1_000_000_000), "1");
        assert_eq!(shown(1_999_999_900), "2");
        assert_eq!(shown(60_123_456_789), "60.1235");
        assert_eq!(shown(999_999_600_000_000), "1e+06");
    }
}
