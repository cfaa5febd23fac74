//! What is written to files of the machine before the jobs begin: as people say it, and what it is
//! a file of.
//!
//! A name with a dot is a file of a control group, such as `io.max`; `GROUP/io.max` says of which.
//! Every other name is a file of the disk's queue, a tunable of a scheduler, or a limit of
//! writeback. A value is a text that the kernel understands; what is modelled takes whole numbers.

use super::document::{Document, Value};
use crate::error::Error;
use serde_json::Value as Json;
use toml::de::DeTable;

/// Controllers whose files a guest's control groups have.
const CONTROLLERS: [&str; 5] = ["blkio", "cpu", "io", "memory", "pids"];

/// A setting and where it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, as it was written.
    pub value: String,
    /// File and line, or the option.
    pub place: String,
}

impl Setting {
    /// Understands `NAME=VALUE`; a value may stand in quotes, and `vm.` before the name, as sysctl
    /// has it.
    pub fn parse(text: &str, place: &str) -> Result<Setting, Error> {
        let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = pair
            .ok_or_else(|| Error::bad(place, format!("\"{text}\" has no value"), "NAME=VALUE"))?;
        let name = name.trim();
        let name = name.strip_prefix("vm.").unwrap_or(name);
        let (name, value) = (name.to_string(), unquoted(value).to_string());
        Ok(Setting { name, value, place: place.to_string() })
    }

    /// Understands `NAME=VALUE,…`.
    pub fn parse_list(text: &str, place: &str) -> Result<Vec<Setting>, Error> {
        let parts = split(text).into_iter().filter(|part| !part.is_empty());
        parts.map(|part| Setting::parse(&part, place)).collect()
    }

    /// Its value, where that must be a whole number.
    pub fn number(&self) -> Result<i64, Error> {
        self.value.trim().parse().map_err(|_| {
            let problem = format!("{}: \"{}\" is no whole number", self.name, self.value);
            Error::bad(&self.place, problem, "a whole number, as in sysfs")
        })
    }

    /// The group, if one is named, and the file of it, if a name means a file of a control group.
    pub fn group_file(name: &str) -> Option<(Option<&str>, &str)> {
        let (group, file) = match name.rsplit_once('/') {
            Some((group, file)) => (Some(group), file),
            None => (None, name),
        };
        is_group_file(file).then_some((group, file))
    }
}

/// Whether a file is one of a control group, by its name.
pub fn is_group_file(name: &str) -> bool {
    name.split_once('.').is_some_and(|(first, _)| CONTROLLERS.contains(&first))
}

/// Cuts a list at commas that are not within quotes.
pub fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (None, ',') => {
                parts.push(String::new());
                continue;
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        parts.last_mut().expect("there is always one").push(letter);
    }
    parts
}

/// Whether a word is the number or the name of a disk.
pub(crate) fn is_disk(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|it| it.is_ascii_digit());
    let by_number = word.split_once(':').is_some_and(|(a, b)| is_number(a) && is_number(b));
    by_number || word.starts_with("/dev/") || matches!(word, "{vda}" | "vda" | "sda")
}

/// A value without the quotes around it.
pub fn unquoted(text: &str) -> &str {
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or(within('\'')).unwrap_or(text)
}

/// As they are in results; whole numbers are numbers.
pub fn to_json(settings: &[Setting]) -> Json {
    let value = |it: &Setting| it.number().map_or(it.value.as_str().into(), Json::from);
    Json::Object(settings.iter().map(|it| (it.name.clone(), value(it))).collect())
}

/// Every setting of a table.
pub(crate) fn read(document: &Document<'_>, table: &DeTable<'_>) -> Result<Vec<Setting>, Error> {
    let mut settings = Vec::new();
    for (key, value) in table {
        add(document, key.get_ref(), value, &mut settings)?;
    }
    Ok(settings)
}

/// The files of control groups among the keys of a table.
pub(crate) fn read_files(
    document: &Document<'_>,
    table: &DeTable<'_>,
) -> Result<Vec<Setting>, Error> {
    let mut settings = Vec::new();
    for (key, value) in table.iter().filter(|(key, value)| begins_file(key.get_ref(), value)) {
        add(document, key.get_ref(), value, &mut settings)?;
    }
    Ok(settings)
}

/// Whether a key is a file of a control group: TOML reads `io.max = …` without quotes as a table
/// `io` with a key `max`.
pub(crate) fn begins_file(key: &str, value: &Value<'_>) -> bool {
    is_group_file(key) || (CONTROLLERS.contains(&key) && value.get_ref().is_table())
}

fn add(
    document: &Document<'_>,
    name: &str,
    value: &Value<'_>,
    settings: &mut Vec<Setting>,
) -> Result<(), Error> {
    if let Some(table) = value.get_ref().as_table() {
        return table.iter().try_for_each(|(key, value)| {
            add(document, &format!("{name}.{}", key.get_ref()), value, settings)
        });
    }
    let place = document.place(&value.span());
    let value = document.as_word(name, value)?;
    settings.push(Setting { name: name.to_string(), value, place });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_have_equals_signs_blanks_and_commas() {
        let list =
            Setting::parse_list("wbt_lat_usec=0,io.max=\"riops=1 wiops=2,\",a/b=x y", "--set");
        let list: Vec<(String, String)> =
            list.unwrap().into_iter().map(|it| (it.name, it.value)).collect();
        let expected = [("wbt_lat_usec", "0"), ("io.max", "riops=1 wiops=2,"), ("a/b", "x y")];
        assert_eq!(list, expected.map(|(name, value)| (name.to_string(), value.to_string())));
        assert!(Setting::parse("nr_requests", "--set").is_err());
        assert!(Setting::parse("=5", "--set").is_err());
        let number = Setting::parse("nr_requests=five", "--set").unwrap().number();
        assert!(number.unwrap_err().to_string().contains("\"five\" is no whole number"));
    }

    #[test]
    fn a_name_with_a_dot_is_a_file_of_a_group() {
        assert_eq!(Setting::group_file("io.max"), Some((None, "io.max")));
        assert_eq!(Setting::group_file("a/b/io.max"), Some((Some("a/b"), "io.max")));
        assert_eq!(Setting::group_file("/io.cost.qos"), Some((Some(""), "io.cost.qos")));
        assert_eq!(Setting::group_file("nr_requests"), None);
        assert_eq!(Setting::group_file("oi.max"), None);
    }
}
