//! The settings of one job as typed values, in the order in which fio would set them.
//!
//! A later setting replaces an earlier one; a list replaces only the parts it names
//! (`bs=,8k` leaves the size of reads alone). A refusal waits until all settings are read, because
//! a job may undo what a global section asked for.

use std::collections::BTreeMap;

use super::error::{ParseError, Place};
use super::options::{self, Kind, Row, Status};
use super::source::Setting;
use super::value::{self, Number, Unit, UnitBase};

/// A value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Any text.
    Text(String),
    /// A flag or a boolean.
    Switch(bool),
    /// A word of a list, and what stands behind its colon.
    Choice(&'static str, Option<String>),
    /// Up to three numbers; amounts in bytes, times in microseconds.
    Numbers([Option<i64>; 3]),
    /// Up to three ranges in bytes.
    Ranges([Option<(u64, u64)>; 3]),
    /// An amount that may depend on the size of the device.
    Share(Share),
    /// Decimal fractions in millionths.
    Fractions(Vec<i64>),
}

/// An amount that may depend on a size that is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Bytes.
    Bytes(u64),
    /// A percentage of the size of the file or device.
    Percent(u8),
}

/// A value and where it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The value.
    pub value: Value,
    /// The last place that set it.
    pub place: Place,
}

/// An option that was given and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its name.
    pub option: &'static str,
    /// Why it cannot matter.
    pub reason: &'static str,
    /// Where it was given.
    pub place: Place,
}

/// The settings of a job so far.
#[derive(Clone, Debug)]
pub struct Settings {
    values: BTreeMap<&'static str, Given>,
    ignored: BTreeMap<&'static str, Ignored>,
    refused: BTreeMap<&'static str, ParseError>,
    notes: Vec<String>,
    engine: String,
    base: UnitBase,
    /// What was typed with a value; the first ones in global sections.
    typed: Vec<(String, String)>,
    globals: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            values: BTreeMap::new(),
            ignored: BTreeMap::new(),
            refused: BTreeMap::new(),
            notes: Vec::new(),
            engine: options::of_all("ioengine").default.to_owned(),
            base: UnitBase::Compatible,
            typed: Vec::new(),
            globals: 0,
        }
    }
}

impl Settings {
    /// Applies the settings of a section of a job file. fio looks for the meaning of units and for
    /// the engine first, wherever they stand.
    pub fn apply_section(&mut self, settings: &[Setting]) -> Result<(), ParseError> {
        for early in ["kb_base", "ioengine"] {
            for setting in settings.iter().filter(|setting| setting.name == early) {
                self.apply(setting)?;
            }
        }
        let rest = settings.iter().filter(|s| s.name != "kb_base" && s.name != "ioengine");
        rest.into_iter().try_for_each(|setting| self.apply(setting))?;
        let engine = self.engine.clone();
        let named = |setting: &Setting| options::find(&setting.name, &engine).map(|row| row.name);
        let place = |name: &String| settings.iter().position(|it| named(it) == Some(name.as_str()));
        self.typed[self.globals..].sort_by_key(|(name, _)| place(name));
        Ok(())
    }

    /// The settings of a job that begins with these.
    pub fn of_job(&self) -> Settings {
        Settings { globals: self.typed.len(), ..self.clone() }
    }

    /// Options of the job as they were typed, under their first name, without those that had no
    /// value. fio lists them so.
    pub fn typed(&self) -> &[(String, String)] {
        &self.typed[self.globals..]
    }

    /// The same of global sections.
    pub fn typed_globally(&self) -> &[(String, String)] {
        &self.typed[..self.globals]
    }

    /// Remembers what was typed, in the place of an earlier value of the job.
    pub fn note_typed(&mut self, name: &str, value: &str) {
        match self.typed[self.globals..].iter_mut().find(|(other, _)| other == name) {
            Some((_, earlier)) => *earlier = value.to_owned(),
            None => self.typed.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Applies one setting.
    pub fn apply(&mut self, setting: &Setting) -> Result<(), ParseError> {
        let Some(row) = options::find(&setting.name, &self.engine) else {
            // An engine that is not modelled is refused if the job ends up with it.
            let foreign = options::engines_with(&setting.name).contains(&self.engine.as_str());
            let unknown = || self.unknown(&setting.name, &setting.place);
            return if foreign { Ok(()) } else { Err(unknown()) };
        };
        let given = setting.value.as_deref();
        let value = self.parse(row, given).map_err(|message| {
            let error = ParseError::new(&setting.place, message).option(&setting.name);
            error.accepts(row.accepted()).nearest(nearest_word(row, given))
        })?;
        self.note_ignored_text(row, setting);
        self.classify(row, &value, &setting.place);
        self.store(row.name, value, &setting.place);
        if let Some(text) = given {
            self.note_typed(row.name, text);
        }
        Ok(())
    }

    /// The value of the option `name`, if it was given.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name).map(|given| &given.value)
    }

    /// What is known of the option `name`, if the engine knows it.
    pub fn row(&self, name: &str) -> Option<&'static Row> {
        options::find(name, &self.engine)
    }

    /// The value of the option `name`: as it was given, and where it was not, or not for all
    /// directions, the default; none if there is no default either.
    pub fn value(&self, name: &str) -> Option<Value> {
        let default = || self.row(name).and_then(|row| self.parse(row, Some(row.default)).ok());
        match self.get(name) {
            Some(Value::Numbers(given)) => match default() {
                Some(Value::Numbers(default)) => Some(Value::Numbers(merge(default, *given))),
                _ => Some(Value::Numbers(*given)),
            },
            Some(given) => Some(given.clone()),
            None => default(),
        }
    }

    /// Where the option `name` was given last, or `otherwise`.
    pub fn place_of(&self, name: &str, otherwise: &Place) -> Place {
        self.values.get(name).map_or_else(|| otherwise.clone(), |given| given.place.clone())
    }

    /// What the letters of units mean.
    pub fn unit_base(&self) -> UnitBase {
        self.base
    }

    /// The ioengine in force.
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// The first option that was given and is not modelled for what the job works on, in the order
    /// of the text.
    pub fn refusal(&self, has_files: bool) -> Option<&ParseError> {
        let counts = |(name, _): &(&&str, &ParseError)| !(has_files && is_of_files(name));
        let refused = self.refused.iter().filter(counts);
        refused.map(|(_, error)| error).min_by_key(|error| &error.place)
    }

    /// The options that were given and change nothing, by name.
    pub fn ignored(&self, has_files: bool) -> impl Iterator<Item = &Ignored> {
        self.ignored.values().filter(move |it| !(has_files && is_of_files(it.option)))
    }

    /// What the user should know about how their settings were read.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn unknown(&self, name: &str, place: &Place) -> ParseError {
        let engines = options::engines_with(name);
        if !engines.is_empty() {
            let message = format!("only exists with ioengine={}", engines.join(" or "));
            return ParseError::new(place, message).option(name);
        }
        ParseError::new(place, "no such option of fio 3.33")
            .option(name)
            .nearest(options::nearest(name, &self.engine))
    }

    fn parse(&self, row: &Row, given: Option<&str>) -> Result<Value, String> {
        let Some(text) = given else {
            return match row.kind {
                Kind::Flag => Ok(Value::Switch(true)),
                _ if matches!(row.name, "write_bw_log" | "write_lat_log")
                    || matches!(row.name, "write_iops_log" | "write_hist_log") =>
                {
                    Ok(Value::Text(String::new()))
                }
                Kind::Deprecated => Ok(Value::Text(String::new())),
                _ => Err("needs a value".to_owned()),
            };
        };
        if text.is_empty() && row.kind != Kind::Deprecated {
            return Err("the value is empty".to_owned());
        }
        match row.kind {
            Kind::Text | Kind::Deprecated => Ok(Value::Text(text.to_owned())),
            Kind::Choice(words) => choice(words, text, false),
            Kind::ChoiceAndMore(words) => choice(words, text, true),
            Kind::Flag | Kind::Bool => {
                let number = value::number(text, self.base)?.value;
                within(number, if row.kind == Kind::Bool { row.range } else { (0, i64::MAX) })?;
                Ok(Value::Switch(number != 0))
            }
            Kind::Integers(most) | Kind::Amounts(most) => {
                numbers(text, most, row, |part| value::number(part, self.base))
            }
            Kind::Times(most, bare) => numbers(text, most, row, |part| value::time(part, bare)),
            Kind::Share => share(text, self.base),
            Kind::Ranges => ranges(text, self.base),
            Kind::Fractions => {
                let list = value::floats(text)?;
                list.iter().try_for_each(|&part| within_fraction(part, row.range))?;
                Ok(Value::Fractions(list))
            }
        }
    }

    /// Says what fio leaves out of a number without a word.
    fn note_ignored_text(&mut self, row: &Row, setting: &Setting) {
        let Some(text) = setting.value.as_deref() else { return };
        let part = value::parts(text)[0];
        let number: Result<Number<'_>, String> = match row.kind {
            Kind::Integers(_) | Kind::Amounts(_) | Kind::Share | Kind::Bool | Kind::Flag => {
                value::number(part, self.base)
            }
            Kind::Times(_, bare) => value::time(part, bare),
            _ => return,
        };
        let Ok(Number { value, ignored, .. }) = number else { return };
        if ignored.is_empty() || (value::parts(text).len() > 1 && !part.starts_with(' ')) {
            return;
        }
        let unit = if matches!(row.kind, Kind::Times(..)) { " us" } else { "" };
        self.notes.push(format!(
            "{}: fio reads {}={} as {value}{unit} and ignores '{}'",
            setting.place,
            setting.name,
            text,
            ignored.trim()
        ));
    }

    fn classify(&mut self, row: &'static Row, value: &Value, place: &Place) {
        let harmless = self.parse(row, Some(row.default)).as_ref() == Ok(value)
            || matches!((value, row.default), (Value::Switch(false), ""));
        self.ignored.remove(row.name);
        self.refused.remove(row.name);
        match row.status {
            _ if harmless => {}
            Status::Modelled => {}
            Status::Ignored(reason) | Status::Files(reason) => {
                let ignored = Ignored { option: row.name, reason, place: place.clone() };
                self.ignored.insert(row.name, ignored);
            }
            Status::Refused(reason) => {
                self.refuse(row.name, place, format!("cannot be had here: {reason}"));
            }
            Status::NeedsFileSystem(reason) | Status::OnlyFiles(reason) => {
                let message =
                    format!("not available on a raw device: needs a file system: {reason}");
                self.refuse(row.name, place, message);
            }
        }
    }

    fn refuse(&mut self, name: &'static str, place: &Place, message: String) {
        self.refused.insert(name, ParseError::new(place, message).option(name));
    }

    fn store(&mut self, name: &'static str, value: Value, place: &Place) {
        let (name, value) = match (name, value) {
            ("buffered", Value::Switch(buffered)) => ("direct", Value::Switch(!buffered)),
            // The share of reads follows from that of writes, and the later setting wins.
            ("rwmixwrite", Value::Numbers([Some(writes), ..])) => {
                ("rwmixread", Value::Numbers([Some(100 - writes), None, None]))
            }
            other => other,
        };
        match (name, &value) {
            ("kb_base", Value::Choice(base, _)) => {
                self.base = if *base == "1000" { UnitBase::Standard } else { UnitBase::Compatible };
            }
            ("ioengine", Value::Text(engine)) => {
                let engine = engine.split(':').next().unwrap_or_default();
                if engine != self.engine {
                    self.forget_engine();
                    self.engine = engine.to_owned();
                }
            }
            _ => {}
        }
        let value = match (self.values.get(name).map(|given| &given.value), value) {
            (Some(Value::Numbers(old)), Value::Numbers(new)) => Value::Numbers(merge(*old, new)),
            (Some(Value::Ranges(old)), Value::Ranges(new)) => Value::Ranges(merge(*old, new)),
            (_, new) => new,
        };
        self.values.insert(name, Given { value, place: place.clone() });
    }

    /// Another engine has options of its own; those of the engine before are lost.
    fn forget_engine(&mut self) {
        for row in options::all().filter(|row| !row.engines.is_empty()) {
            self.values.remove(row.name);
            self.ignored.remove(row.name);
            self.refused.remove(row.name);
        }
    }
}

/// Whether an option is modelled where a job has files.
fn is_of_files(name: &str) -> bool {
    let of_files = |row: &Row| matches!(row.status, Status::Files(_) | Status::OnlyFiles(_));
    options::all().any(|row| row.name == name && of_files(row))
}

fn merge<T: Copy>(old: [Option<T>; 3], new: [Option<T>; 3]) -> [Option<T>; 3] {
    std::array::from_fn(|part| new[part].or(old[part]))
}

fn choice(words: &[&'static str], text: &str, more: bool) -> Result<Value, String> {
    let (word, rest) = match text.split_once(':') {
        Some((word, rest)) if more => (word, Some(rest.to_owned())),
        _ => (text, None),
    };
    match words.iter().find(|known| **known == word) {
        Some(known) => Ok(Value::Choice(known, rest)),
        None => Err(format!("'{text}' is not a known value")),
    }
}

/// Up to `most` numbers. The last one given stands for those behind it, unless a comma follows.
fn numbers<'t>(
    text: &'t str,
    most: u8,
    row: &Row,
    read: impl Fn(&'t str) -> Result<Number<'t>, String>,
) -> Result<Value, String> {
    let mut values = [None; 3];
    let mut last = None;
    let parts = value::parts(text);
    for (slot, part) in (0..most.into()).zip(parts.iter().map(Some).chain(std::iter::repeat(None)))
    {
        match part {
            Some(&"") if parts.len() == 1 || most == 1 => {
                return Err("the value is empty".to_owned());
            }
            Some(&"") => last = None,
            Some(part) => {
                let number = read(part)?;
                match number.unit {
                    Unit::Count => {}
                    Unit::Percent => return Err("a percentage is not accepted here".to_owned()),
                    Unit::Zones => return Err("zones are not accepted here".to_owned()),
                }
                within(number.value, row.range)?;
                last = Some(number.value);
            }
            // Pairs have no value to repeat: `filesize=4k` is one size, not a range.
            None if most == 2 && !row.name.starts_with("cmdprio") => last = None,
            None => {}
        }
        values[slot] = last;
    }
    if values == [None; 3] {
        return Err("no value is given".to_owned());
    }
    Ok(Value::Numbers(values))
}

fn share(text: &str, base: UnitBase) -> Result<Value, String> {
    let number = value::number(value::parts(text)[0], base)?;
    match number.unit {
        Unit::Zones => Err("the simulated devices have no zones to count".to_owned()),
        Unit::Percent => u8::try_from(number.value)
            .ok()
            .filter(|percent| *percent <= 100)
            .map(|percent| Value::Share(Share::Percent(percent)))
            .ok_or_else(|| format!("{}% is not between 0% and 100%", number.value)),
        Unit::Count => u64::try_from(number.value)
            .map(|bytes| Value::Share(Share::Bytes(bytes)))
            .map_err(|_| format!("{} is below zero", number.value)),
    }
}

fn ranges(text: &str, base: UnitBase) -> Result<Value, String> {
    let mut ranges = [None; 3];
    let mut last = None;
    let mut parts = text.split(',');
    for slot in &mut ranges {
        match parts.next() {
            Some("") => last = None,
            Some(part) => last = range(part, base)?,
            None => {}
        }
        *slot = last;
    }
    match ranges {
        [None, None, None] => Err(format!("'{text}' is not a range")),
        _ => Ok(Value::Ranges(ranges)),
    }
}

/// One range; the ends may stand in any order. A part that is no range leaves the default.
fn range(text: &str, base: UnitBase) -> Result<Option<(u64, u64)>, String> {
    let Some((low, high)) = text.split_once(['-', ':']) else {
        return Err(format!("'{text}' is not a range such as 4k-64k"));
    };
    let end = |text| {
        let number = value::number(text, base)?;
        u64::try_from(number.value)
            .ok()
            .filter(|end| *end > 0 && number.unit == Unit::Count)
            .ok_or_else(|| format!("'{text}' is not a size above zero"))
    };
    let (low, high) = (end(low)?, end(high)?);
    Ok(Some((low.min(high), low.max(high))))
}

fn within(value: i64, (least, most): (i64, i64)) -> Result<(), String> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(match (least, most) {
        (least, i64::MAX) => format!("{value} is below {least}"),
        (least, most) => format!("{value} is not between {least} and {most}"),
    })
}

fn within_fraction(value: i64, (least, most): (i64, i64)) -> Result<(), String> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(format!("not between {} and {}", least / 1_000_000, most / 1_000_000)),
    }
}

fn nearest_word(row: &Row, given: Option<&str>) -> Option<&'static str> {
    match row.kind {
        Kind::Choice(words) | Kind::ChoiceAndMore(words) => {
            super::error::nearest(given?.split(':').next()?, words.iter().copied())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place::new(&"job.fio".into(), 1)
    }

    fn setting(text: &str) -> Setting {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        Setting { name: name.to_owned(), value, place: place() }
    }

    fn apply(text: &str) -> Result<Settings, ParseError> {
        let mut settings = Settings::default();
        let lines: Vec<Setting> = text.split('|').map(setting).collect();
        settings.apply_section(&lines).map(|()| settings)
    }

    fn numbers_of(text: &str, name: &str) -> [Option<i64>; 3] {
        match apply(text).unwrap().get(name) {
            Some(Value::Numbers(numbers)) => *numbers,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_last_value_of_a_list_repeats_unless_a_comma_follows() {
        let bs = |text: &str| numbers_of(text, "bs");
        assert_eq!(bs("bs=4k"), [Some(4096); 3]);
        assert_eq!(bs("bs=4k,8k"), [Some(4096), Some(8192), Some(8192)]);
        assert_eq!(bs("bs=8k,32k,"), [Some(8192), Some(32_768), None]);
        assert_eq!(bs("bs=,8k"), [None, Some(8192), Some(8192)]);
        assert_eq!(bs("bs=8k,,2k"), [Some(8192), None, Some(2048)]);
        assert_eq!(bs("bs=4k|bs=,8k"), [Some(4096), Some(8192), Some(8192)]);
        assert_eq!(bs("bs=8k,32k|bs=2k"), [Some(2048); 3]);
        assert_eq!(bs("bs=4k-8k"), [Some(4096), Some(8192), Some(8192)]);
        assert_eq!(bs("bs=1k,2k,3k,4k"), [Some(1024), Some(2048), Some(3072)]);
    }

    #[test]
    fn pairs_do_not_repeat() {
        assert_eq!(numbers_of("filesize=4k", "filesize"), [Some(4096), None, None]);
        assert_eq!(numbers_of("filesize=1k-4k", "filesize"), [Some(1024), Some(4096), None]);
        assert_eq!(
            numbers_of("startdelay=1-3", "startdelay"),
            [Some(1_000_000), Some(3_000_000), None]
        );
    }

    #[test]
    fn the_later_of_the_two_mix_options_wins() {
        assert_eq!(numbers_of("rwmixread=70|rwmixwrite=70", "rwmixread")[0], Some(30));
        assert_eq!(numbers_of("rwmixwrite=70|rwmixread=70", "rwmixread")[0], Some(70));
    }

    #[test]
    fn ranges_are_put_in_order() {
        let ranges = |text| match apply(text).unwrap().get("bsrange") {
            Some(Value::Ranges(ranges)) => *ranges,
            other => panic!("{other:?}"),
        };
        assert_eq!(ranges("bsrange=4k-1k"), [Some((1024, 4096)); 3]);
        assert_eq!(ranges("bsrange=,1k:4k"), [None, Some((1024, 4096)), Some((1024, 4096))]);
        assert_eq!(ranges("bsrange=1k-4k,"), [Some((1024, 4096)), None, None]);
        for bad in ["bsrange=4k", "bsrange=,", "bsrange=1k-", "bsrange=-4k", "bsrange=1k-x"] {
            assert!(apply(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_say_what_is_accepted() {
        let error = |text: &str| apply(text).unwrap_err().to_string();
        assert_eq!(
            error("iodepht=4"),
            "job.fio:1: option 'iodepht': no such option of fio 3.33; did you mean 'iodepth'?"
        );
        assert!(error("rw=randred").ends_with("did you mean 'randread'?"));
        let deep = error("iodepth=2147483647");
        assert!(deep.contains("accepted: an integer from 1 to 65536"), "{deep}");
        assert!(error("direct=2").contains("2 is not between 0 and 1; accepted: 0 or 1"));
        assert!(error("uri=nbd://x").contains("only exists with ioengine=nbd"));
        for bad in ["bs", "bs=", "direct", "prio=8", "rw= read", "iodepth=0", "size=101%"] {
            assert!(apply(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_can_be_undone_and_defaults_are_never_refused() {
        assert!(apply("atomic=1").unwrap().refusal(false).is_some());
        assert!(apply("atomic=1|atomic=0").unwrap().refusal(false).is_none());
        assert!(
            apply("lockfile=none|pre_read=0|hipri=0|ioengine=io_uring")
                .unwrap()
                .refusal(false)
                .is_none()
        );
    }

    #[test]
    fn engine_options_go_with_their_engine() {
        let settings = apply("cmdprio_percentage=5|ioengine=libaio").unwrap();
        assert!(settings.get("cmdprio_percentage").is_some());
        let mut job = settings.clone();
        job.apply(&setting("ioengine=psync")).unwrap();
        assert!(job.get("cmdprio_percentage").is_none());
        assert!(apply("cmdprio_percentage=5").is_err());
    }

    #[test]
    fn what_fio_drops_from_a_number_is_noted() {
        assert_eq!(
            apply("runtime=3min").unwrap().notes(),
            ["job.fio:1: fio reads runtime=3min as 3 us and ignores 'min'"]
        );
        assert_eq!(apply("bs=4k,8k").unwrap().notes(), [""; 0]);
        assert_eq!(apply("bs= 4k").unwrap().notes().len(), 1);
    }

    #[test]
    fn ignored_options_are_listed_with_their_reason() {
        let settings = apply("thread|write_hist_log|buffer_pattern=0x01").unwrap();
        let names: Vec<_> = settings.ignored(false).map(|ignored| ignored.option).collect();
        assert_eq!(names, ["buffer_pattern", "thread", "write_hist_log"]);
    }
}
