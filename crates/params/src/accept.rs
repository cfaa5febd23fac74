//! Which values a parameter takes, and in which units they may be written.

use base::{Duration, nearest};
use toml::de::DeValue;

/// What values a parameter takes. Bounds of times are in nanoseconds, of sizes in bytes, of rates
/// in bytes per second; all bounds are inclusive.
#[derive(Clone, Copy, Debug)]
pub enum Accept {
    /// A time.
    Time(f64, f64),
    /// A size.
    Size(f64, f64),
    /// A rate.
    Rate(f64, f64),
    /// A whole number, in this unit.
    Whole(u64, u64, &'static str),
    /// A list of so many whole numbers up to this one, in this unit.
    Wholes(usize, u64, &'static str),
    /// A number, in this unit.
    Real(f64, f64, &'static str),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The name of a table beside the model file.
    File,
    /// The name of another model.
    Model,
    /// Any text in quotes.
    Text,
    /// A list of rows, each of this many numbers, with a unit for the reader.
    Rows(usize, &'static str),
}

const TIME_UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZE_UNITS: [(&str, f64); 8] = [
    ("bytes", 1.0),
    ("sectors", 512.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
];
const RATE_UNITS: [(&str, f64); 3] = [("MB/s", 1e6), ("MiB/s", 1_048_576.0), ("GB/s", 1e9)];

/// A value in base units.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Number(f64),
    Whole(u64),
    Wholes(Vec<u64>),
    Text(String),
    Flag(bool),
    Rows(Vec<Vec<f64>>),
}

impl Accept {
    /// The value in base units, or what is wrong with it.
    pub(crate) fn convert(&self, value: &DeValue<'_>, unit: &str) -> Result<Value, String> {
        match self {
            Accept::Time(low, high) => scaled(value, unit, &TIME_UNITS, *low, *high),
            Accept::Size(low, high) => scaled(value, unit, &SIZE_UNITS, *low, *high),
            Accept::Rate(low, high) => scaled(value, unit, &RATE_UNITS, *low, *high),
            Accept::Real(low, high, expected) => {
                scaled(value, unit, &[(*expected, 1.0)], *low, *high)
            }
            Accept::Whole(low, high, expected) => {
                unit_is(unit, expected)?;
                whole(value, *low, *high).map(Value::Whole)
            }
            Accept::Wholes(count, high, expected) => {
                unit_is(unit, expected)?;
                let list =
                    value.as_array().ok_or_else(|| format!("value is {}", article(value)))?;
                let list: Vec<u64> = list
                    .iter()
                    .map(|it| whole(it.get_ref(), 0, *high))
                    .collect::<Result<_, _>>()?;
                match list.len() == *count {
                    true => Ok(Value::Wholes(list)),
                    false => Err(format!("value has {} numbers", list.len())),
                }
            }
            Accept::Flag => match value {
                DeValue::Boolean(flag) => Ok(Value::Flag(*flag)),
                other => Err(format!("value is {}", article(other))),
            },
            Accept::Choice(choices) => match value {
                DeValue::String(text) if choices.contains(&text.as_ref()) => {
                    Ok(Value::Text(text.to_string()))
                }
                DeValue::String(text) => {
                    Err(format!("value \"{text}\"{}", nearest(text, choices.iter().copied())))
                }
                other => Err(format!("value is {}", article(other))),
            },
            Accept::File | Accept::Model | Accept::Text => match value {
                DeValue::String(text) => Ok(Value::Text(text.to_string())),
                other => Err(format!("value is {}", article(other))),
            },
            Accept::Rows(columns, expected) => rows(value, unit, *columns, expected),
        }
    }

    /// What is accepted, as the end of an error message.
    pub(crate) fn describe(&self) -> String {
        let units = |units: &[(&str, f64)]| {
            let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
            names.join(", ")
        };
        match self {
            Accept::Time(low, high) => format!(
                "a time from {} to {} in one of {}",
                Duration::from_nanos(*low as u64),
                Duration::from_nanos(*high as u64),
                units(&TIME_UNITS)
            ),
            Accept::Size(low, high) => {
                format!("a size from {low} to {high} bytes in one of {}", units(&SIZE_UNITS))
            }
            Accept::Rate(low, high) => format!(
                "a rate from {} to {} MB/s in one of {}",
                low / 1e6,
                high / 1e6,
                units(&RATE_UNITS)
            ),
            Accept::Whole(low, high, unit) => {
                format!("a whole number from {low} to {high}, unit \"{unit}\"")
            }
            Accept::Wholes(count, high, unit) => {
                format!("a list of {count} whole numbers from 0 to {high}, unit \"{unit}\"")
            }
            Accept::Real(low, high, unit) => {
                format!("a number from {low} to {high}, unit \"{unit}\"")
            }
            Accept::Flag => "true or false".to_string(),
            Accept::Choice(choices) => format!("one of {}", choices.join(", ")),
            Accept::File => "the name of a table beside the model file".to_string(),
            Accept::Model => "the name of a model".to_string(),
            Accept::Text => "a text in quotes".to_string(),
            Accept::Rows(columns, unit) => {
                format!("a list of rows of {columns} numbers, unit \"{unit}\"")
            }
        }
    }
}

fn whole(value: &DeValue<'_>, low: u64, high: u64) -> Result<u64, String> {
    let text = match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        other => return Err(format!("value is {}", article(other))),
    };
    let whole: u64 = text.parse().map_err(|_| format!("value {text}"))?;
    if (low..=high).contains(&whole) {
        Ok(whole)
    } else {
        Err(format!("value {whole} is out of range"))
    }
}

fn scaled(
    value: &DeValue<'_>,
    unit: &str,
    units: &[(&str, f64)],
    low: f64,
    high: f64,
) -> Result<Value, String> {
    let number = number(value)?;
    let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(|| {
        format!("unit \"{unit}\"{}", nearest(unit, units.iter().map(|(name, _)| *name)))
    })?;
    let scaled = number * factor.1;
    if scaled >= low && scaled <= high {
        Ok(Value::Number(scaled))
    } else {
        Err(format!("value {number} is out of range"))
    }
}

fn rows(value: &DeValue<'_>, unit: &str, columns: usize, expected: &str) -> Result<Value, String> {
    unit_is(unit, expected)?;
    let array = value.as_array().ok_or_else(|| format!("value is {}", article(value)))?;
    let mut rows = Vec::new();
    for row in array.iter() {
        let row = row.get_ref();
        let cells = row.as_array().ok_or_else(|| format!("a row is {}", article(row)))?;
        let cells: Vec<f64> =
            cells.iter().map(|cell| number(cell.get_ref())).collect::<Result<_, _>>()?;
        if cells.len() != columns {
            return Err(format!("a row has {} numbers", cells.len()));
        }
        rows.push(cells);
    }
    Ok(Value::Rows(rows))
}

fn number(value: &DeValue<'_>) -> Result<f64, String> {
    let text = match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => return Err(format!("value is {}", article(other))),
    };
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("value {text}")),
    }
}

fn unit_is(unit: &str, expected: &str) -> Result<(), String> {
    if unit == expected { Ok(()) } else { Err(format!("unit \"{unit}\"")) }
}

/// What type it has, with its article.
pub(crate) fn article(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let vowel = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}
