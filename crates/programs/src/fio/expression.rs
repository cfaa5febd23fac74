//! Arithmetic in option values, done with integers.
//!
//! fio pipes a value that holds one of its keywords (`$ncpus`, …) and an operator through `bc`;
//! this evaluator gives the same answers without starting a program. The manual also allows
//! arithmetic in parentheses, with units inside; Debian's build of fio leaves that out, here it
//! works. Divergence: `bc` takes an unknown word for zero, which silently turns the file name
//! `a-$ncpus` into `-2`; here a word is refused.

/// A fraction of this many parts stands behind the decimal point of a number.
const PARTS: i128 = 1_000_000;
/// A larger exponent leaves the range of integers for every base but 0 and 1.
const MAX_EXPONENT: i128 = 64;

/// Turns the letters behind a number into a factor.
pub type UnitOf<'u> = &'u dyn Fn(&str) -> Option<u64>;

/// The value of `text`, truncated to an integer as `bc` and the number parser of fio together do.
/// `unit` is `None` where units are not allowed.
pub fn evaluate(text: &str, unit: Option<UnitOf<'_>>) -> Result<i64, String> {
    let mut reader = Reader { rest: text.trim(), unit, depth: 0 };
    let value = reader.sum()?;
    if !reader.rest.is_empty() {
        return Err(format!("cannot calculate '{text}': '{}' is not expected", reader.rest));
    }
    i64::try_from(value / PARTS).map_err(|_| format!("'{text}' is too large"))
}

struct Reader<'t, 'u> {
    rest: &'t str,
    unit: Option<UnitOf<'u>>,
    depth: u32,
}

impl Reader<'_, '_> {
    fn sum(&mut self) -> Result<i128, String> {
        let mut left = self.product()?;
        loop {
            if self.take('+') {
                left = bounded(left.checked_add(self.product()?))?;
            } else if self.take('-') {
                left = bounded(left.checked_sub(self.product()?))?;
            } else {
                return Ok(left);
            }
        }
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut left = self.power()?;
        loop {
            if self.take('*') {
                left = bounded(left.checked_mul(self.power()?))? / PARTS;
            } else if self.take('/') {
                let divisor = self.power()?;
                if divisor == 0 {
                    return Err("division by zero".to_owned());
                }
                // bc divides with scale 0: the quotient is a whole number.
                left = bounded((left / divisor).checked_mul(PARTS))?;
            } else if self.take('%') {
                let divisor = self.power()?;
                if divisor == 0 {
                    return Err("division by zero".to_owned());
                }
                left %= divisor;
            } else {
                return Ok(left);
            }
        }
    }

    fn power(&mut self) -> Result<i128, String> {
        let base = self.atom()?;
        if !self.take('^') {
            return Ok(base);
        }
        self.enter()?;
        let exponent = self.power()? / PARTS;
        self.depth -= 1;
        if !(0..=MAX_EXPONENT).contains(&exponent) {
            return Err(format!("the exponent is not between 0 and {MAX_EXPONENT}"));
        }
        (0..exponent).try_fold(PARTS, |power, _| Ok(bounded(power.checked_mul(base))? / PARTS))
    }

    fn atom(&mut self) -> Result<i128, String> {
        if self.take('-') {
            self.enter()?;
            let value = -self.atom()?;
            self.depth -= 1;
            return Ok(value);
        }
        if self.take('(') {
            self.enter()?;
            let value = self.sum()?;
            self.depth -= 1;
            return if self.take(')') { Ok(value) } else { Err("')' is missing".to_owned()) };
        }
        self.number()
    }

    fn number(&mut self) -> Result<i128, String> {
        let (whole, behind) = split_while(self.rest, |c| c.is_ascii_digit());
        self.rest = behind;
        let mut value = match whole {
            "" => return Err(format!("a number is expected at '{behind}'")),
            _ => whole.parse::<i128>().ok().and_then(|whole| whole.checked_mul(PARTS)),
        };
        if let Some(fraction) = self.rest.strip_prefix('.') {
            let (fraction, behind) = split_while(fraction, |c| c.is_ascii_digit());
            self.rest = behind;
            let parts = fraction.bytes().take(6).fold((0, PARTS), |(sum, scale), digit| {
                (sum + i128::from(digit - b'0') * (scale / 10), scale / 10)
            });
            value = value.and_then(|value| value.checked_add(parts.0));
        }
        let (letters, behind) = split_while(self.rest, |c| c.is_ascii_alphabetic());
        if !letters.is_empty() {
            let factor = self
                .unit
                .and_then(|unit| unit(letters))
                .ok_or_else(|| format!("'{letters}' is not expected in a calculation"))?;
            value = value.and_then(|value| value.checked_mul(i128::from(factor)));
        }
        self.rest = behind.trim_start();
        bounded(value)
    }

    fn take(&mut self, symbol: char) -> bool {
        match self.rest.trim_start().strip_prefix(symbol) {
            Some(behind) => {
                self.rest = behind.trim_start();
                true
            }
            None => false,
        }
    }

    /// Nesting is bounded so that no input can exhaust the stack.
    fn enter(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > 64 { Err("nested too deeply".to_owned()) } else { Ok(()) }
    }
}

/// The longest start of `text` whose characters all satisfy `keep`, and what follows it.
pub fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !keep(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn bounded(value: Option<i128>) -> Result<i128, String> {
    value
        .filter(|value| value.unsigned_abs() < 1 << 100)
        .ok_or_else(|| "the calculation leaves the range of integers".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_bc() {
        // Each pair as Debian's fio 3.33 shows it with --debug=parse.
        for (text, value) in [
            ("8*24105", 192_840),
            ("2*4096+2", 8194),
            ("(4096-1)*2", 8190),
            ("3*2.5", 7),
            ("7/2", 3),
            ("2^10", 1024),
            ("1-2", -1),
            ("10/2/3", 1),
            ("1.5*2", 3),
            ("-2", -2),
            (" 2 * 2 ", 4),
        ] {
            assert_eq!(evaluate(text, None), Ok(value), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for text in ["", "2**2", "4096/3k", "a-2", "2/0", "(1", "1)", "9^9^9", "2^-1", "1 2"] {
            assert!(evaluate(text, None).is_err(), "{text}");
        }
        assert!(evaluate(&"(".repeat(100_000), None).is_err());
        assert!(evaluate(&"-".repeat(100_000), None).is_err());
        assert!(evaluate(&format!("1{}", "^1".repeat(100_000)), None).is_err());
    }

    #[test]
    fn units_count_inside_parentheses() {
        let kilo = |letters: &str| (letters == "k").then_some(1024);
        assert_eq!(evaluate("(4k*2)+1", Some(&kilo)), Ok(8193));
    }
}
