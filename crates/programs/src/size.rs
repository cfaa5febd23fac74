//! Sizes as most programs have them typed.

/// Units, each 1024 times the one before.
const UNITS: &str = "kmgt";

/// Bytes: a number, and perhaps one of `units` behind it, which are of `kKmMgGtT`. Nothing if it is
/// no such number, or has no room in 64 bits.
pub(crate) fn bytes(value: &str, units: &str) -> Option<u64> {
    let Some(unit) = value.chars().last().filter(|last| units.contains(*last)) else {
        return whole(value);
    };
    let power = UNITS.find(unit.to_ascii_lowercase())? as u32 + 1;
    whole(value.strip_suffix(unit)?)?.checked_mul(1 << (10 * power))
}

/// Digits alone; a sign is none.
fn whole(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|_| digits.bytes().all(|it| it.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024_and_those_that_are_known() {
        let of = |value: &str| bytes(value, "kKmMgG");
        assert_eq!([of("12"), of("3k"), of("3K")], [Some(12), Some(3072), Some(3072)]);
        assert_eq!([of("2m"), of("1g")], [Some(2 << 20), Some(1 << 30)]);
        for wrong in ["", "k", "1t", "+1k", "-1", "1.5g", "9é", "99999999999999999999", "1kk"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!([bytes("1t", "t"), bytes("16777216t", "t")], [Some(1 << 40), None]);
        assert_eq!(bytes("3K", "k"), None);
    }
}
