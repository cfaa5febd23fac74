//! Mixes: block sizes by percentage, skewed offset distributions, priorities by block size.

use base::Bytes;

use super::value::{self, Unit, UnitBase};

/// fio keeps at most this many block sizes per direction.
const MOST_SIZES: usize = 64;
/// fio keeps at most this many zones per direction.
const MOST_ZONES: usize = 256;
/// The skew of `zipf` when none is given. Assumed: the manual names none.
const ZIPF_THETA: i64 = 1_100_000;
/// The power of `pareto` when none is given. Assumed: the manual names none.
const PARETO_POWER: i64 = 200_000;

/// The sizes of a job's requests in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// Always the same.
    Fixed(Bytes),
    /// Multiples of the smallest, up to the largest, equally likely.
    Range(Bytes, Bytes),
    /// Sizes with the upper ends of their shares in percent, the rarest first; the last one is 100.
    Split(Vec<(Bytes, u8)>),
}

impl BlockSizes {
    /// The smallest size.
    pub fn least(&self) -> Bytes {
        match self {
            BlockSizes::Fixed(size) | BlockSizes::Range(size, _) => *size,
            BlockSizes::Split(sizes) => {
                sizes.iter().map(|(size, _)| *size).min().unwrap_or(Bytes(0))
            }
        }
    }

    /// Whether all sizes are multiples of so many bytes, as far as a range says.
    pub fn are_multiples_of(&self, bytes: u64) -> bool {
        let is_it = |size: &Bytes| size.0.is_multiple_of(bytes);
        match self {
            BlockSizes::Fixed(size) => is_it(size),
            BlockSizes::Range(least, most) => is_it(least) && is_it(most),
            BlockSizes::Split(sizes) => sizes.iter().all(|(size, _)| is_it(size)),
        }
    }

    /// The largest size.
    pub fn most(&self) -> Bytes {
        match self {
            BlockSizes::Fixed(size) | BlockSizes::Range(_, size) => *size,
            BlockSizes::Split(sizes) => {
                sizes.iter().map(|(size, _)| *size).max().unwrap_or(Bytes(0))
            }
        }
    }

    /// Whether all requests have one size.
    pub fn is_fixed(&self) -> bool {
        self.least() == self.most()
    }
}

/// Where random offsets fall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Everywhere alike.
    Uniform,
    /// Zipf's law with this exponent.
    Zipf(Skew),
    /// Pareto's law with this power.
    Pareto(Skew),
    /// A bell; the deviation is in percent of the range.
    Normal(Skew),
    /// Percent of the accesses, and the percent of the range that they fall into, in order.
    Zoned(Vec<(u8, u8)>),
    /// Percent of the accesses, and the amount of data that they fall into, in order.
    ZonedAbsolute(Vec<(u8, Bytes)>),
}

/// The parameters of a skewed distribution, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// Exponent, power or deviation.
    pub parameter: i64,
    /// Where in the range the most probable offset lies; chosen at random if `None`.
    pub center: Option<i64>,
}

/// A share of the requests of one size that are issued with a priority of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioritySplit {
    /// The size of the requests.
    pub size: Bytes,
    /// How many of them in percent.
    pub percent: u8,
    /// Their class and level, where the entry names them.
    pub priority: Option<(u8, u8)>,
}

/// Reads `bssplit`: a mix for each direction that is named.
pub fn block_sizes(text: &str, base: UnitBase) -> Result<[Option<BlockSizes>; 3], String> {
    per_direction(text, |part| {
        let mut entries = Vec::new();
        for entry in part.split(':').filter(|entry| !entry.is_empty()) {
            let (size, percent) = entry.split_once('/').unwrap_or((entry, ""));
            let size = amount(size, base)?;
            if size != Bytes(0) {
                entries.push((size, percentage(percent.split('/').next().unwrap_or_default())?));
            }
        }
        limit(entries.len(), MOST_SIZES, "block sizes")?;
        Ok(split(&entries))
    })
}

/// Upper ends of shares: what is left blank shares the rest evenly; the last one gets what is
/// left over, and shares above 100 % in all are cut off, as fio does.
fn split(entries: &[(Bytes, Option<u8>)]) -> BlockSizes {
    if let [(size, _)] = entries {
        return BlockSizes::Fixed(*size);
    }
    let given: u32 = entries.iter().filter_map(|(_, percent)| *percent).map(u32::from).sum();
    let blank = entries.iter().filter(|(_, percent)| percent.is_none()).count().max(1);
    let rest = 100_u32.saturating_sub(given) / u32::try_from(blank).unwrap_or(1);
    let mut shares: Vec<(Bytes, u32)> =
        entries.iter().map(|(size, percent)| (*size, percent.map_or(rest, u32::from))).collect();
    // The rarest first, equals in the order of the text.
    shares.sort_by_key(|(_, share)| *share);
    let mut end = 0;
    let mut sizes: Vec<(Bytes, u8)> = shares
        .into_iter()
        .map(|(size, share)| {
            end = (end + share).min(100);
            (size, end as u8)
        })
        .collect();
    if let Some(last) = sizes.last_mut() {
        last.1 = 100;
    }
    BlockSizes::Split(sizes)
}

/// Reads `random_distribution`: `word` and what stands behind its colon.
pub fn distributions(
    word: &str,
    rest: Option<&str>,
    base: UnitBase,
) -> Result<[Distribution; 3], String> {
    let one = |distribution: Distribution| Ok(std::array::from_fn(|_| distribution.clone()));
    match (word, rest) {
        ("zipf", rest) => {
            let skew = skew(rest, ZIPF_THETA)?;
            if skew.parameter == 1_000_000 {
                return Err("the exponent of zipf cannot be 1".to_owned());
            }
            one(Distribution::Zipf(skew))
        }
        ("pareto", rest) => {
            let skew = skew(rest, PARETO_POWER)?;
            if !(1..1_000_000).contains(&skew.parameter) {
                return Err("the power of pareto lies between 0 and 1, both excluded".to_owned());
            }
            one(Distribution::Pareto(skew))
        }
        ("normal", rest) => {
            let skew = skew(rest, 0)?;
            if !(0..100_000_000).contains(&skew.parameter) {
                return Err("the deviation of normal lies from 0 to below 100".to_owned());
            }
            one(Distribution::Normal(skew))
        }
        ("zoned" | "zoned_abs", rest) => {
            let absolute = word == "zoned_abs";
            let rest = rest.filter(|rest| !rest.is_empty());
            let text = rest.ok_or_else(|| format!("{word} needs zones such as 60/10:40/90"))?;
            let parts = per_direction(text, |part| {
                if absolute { zones_absolute(part, base) } else { zones(part) }
            })?;
            let fallback = parts.iter().flatten().next().cloned();
            let fallback = fallback.unwrap_or(Distribution::Uniform);
            Ok(parts.map(|part| part.unwrap_or_else(|| fallback.clone())))
        }
        _ => one(Distribution::Uniform),
    }
}

fn skew(text: Option<&str>, otherwise: i64) -> Result<Skew, String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(Skew { parameter: otherwise, center: None });
    };
    let (parameter, behind) = value::decimal(text)?;
    let center = match behind.strip_prefix(':') {
        Some(center) => Some(value::decimal(center)?.0),
        None => None,
    };
    if center.is_some_and(|center| !(0..=1_000_000).contains(&center)) {
        return Err("the center of a distribution lies from 0 to 1".to_owned());
    }
    Ok(Skew { parameter, center })
}

fn zones(text: &str) -> Result<Distribution, String> {
    let mut zones: Vec<(u8, Option<u8>)> = Vec::new();
    for entry in text.split(':').filter(|entry| !entry.is_empty()) {
        let (access, size) = entry.split_once('/').unwrap_or((entry, ""));
        zones.push((access_percentage(access)?, percentage(size)?));
    }
    let given: u32 = zones.iter().filter_map(|(_, size)| *size).map(u32::from).sum();
    if given > 100 {
        return Err(format!("the sizes of the zones add up to {given} %"));
    }
    accesses(zones.iter().map(|(access, _)| *access))?;
    let blank = zones.iter().filter(|(_, size)| size.is_none()).count().max(1);
    let rest = (100 - given) / u32::try_from(blank).unwrap_or(1);
    let sized = |(access, size): &(u8, Option<u8>)| (*access, size.unwrap_or(rest as u8));
    Ok(Distribution::Zoned(zones.iter().map(sized).collect()))
}

fn zones_absolute(text: &str, base: UnitBase) -> Result<Distribution, String> {
    let mut zones = Vec::new();
    for entry in text.split(':').filter(|entry| !entry.is_empty()) {
        let (access, size) = entry.split_once('/').unwrap_or((entry, ""));
        zones.push((access_percentage(access)?, amount(size, base)?));
    }
    accesses(zones.iter().map(|(access, _)| *access))?;
    Ok(Distribution::ZonedAbsolute(zones))
}

fn access_percentage(text: &str) -> Result<u8, String> {
    percentage(text)?.ok_or_else(|| "a zone needs its share of the accesses".to_owned())
}

fn accesses(shares: impl Iterator<Item = u8>) -> Result<(), String> {
    let shares: Vec<u32> = shares.map(u32::from).collect();
    limit(shares.len(), MOST_ZONES, "zones")?;
    match shares.iter().sum::<u32>() {
        100 => Ok(()),
        sum => Err(format!("the accesses of the zones add up to {sum} %, not to 100 %")),
    }
}

/// Reads `cmdprio_bssplit` for reads and writes.
pub fn priority_splits(text: &str, base: UnitBase) -> Result<[Vec<PrioritySplit>; 2], String> {
    let parts = per_direction(text, |part| {
        let mut splits = Vec::new();
        for entry in part.split(':').filter(|entry| !entry.is_empty()) {
            splits.push(priority_split(entry, base)?);
        }
        limit(splits.len(), MOST_SIZES, "block sizes")?;
        Ok(splits)
    })?;
    let [reads, writes, _] = parts;
    Ok([reads.unwrap_or_default(), writes.unwrap_or_default()])
}

fn priority_split(entry: &str, base: UnitBase) -> Result<PrioritySplit, String> {
    let fields: Vec<&str> = entry.split('/').collect();
    let priority = match fields[..] {
        [_] | [_, _] => None,
        [_, _, class, level] => {
            let parse = |text: &str, range: std::ops::RangeInclusive<u8>| {
                text.parse().ok().filter(|value| range.contains(value))
            };
            let (class, level) = (parse(class, 1..=3), parse(level, 0..=7));
            Some(class.zip(level).ok_or("a priority is a class from 1 to 3 and a level to 7")?)
        }
        _ => return Err(format!("'{entry}' is not size/percent or size/percent/class/level")),
    };
    Ok(PrioritySplit {
        size: amount(fields[0], base)?,
        percent: percentage(fields.get(1).copied().unwrap_or_default())?.unwrap_or(100),
        priority,
    })
}

/// Applies `read` to the parts of `text` between commas; the last one repeats unless a comma
/// follows it.
fn per_direction<T: Clone>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<[Option<T>; 3], String> {
    let mut parts = text.split(',');
    let mut values = [None, None, None];
    let mut last = None;
    for slot in &mut values {
        match parts.next() {
            Some("") => last = None,
            Some(part) => last = Some(read(part)?),
            None => {}
        }
        slot.clone_from(&last);
    }
    Ok(values)
}

fn amount(text: &str, base: UnitBase) -> Result<Bytes, String> {
    let number = value::number(text, base)?;
    match u64::try_from(number.value) {
        Ok(bytes) if number.unit == Unit::Count => Ok(Bytes(bytes)),
        _ => Err(format!("'{text}' is not a size")),
    }
}

/// A percentage; nothing is `None`.
fn percentage(text: &str) -> Result<Option<u8>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.trim_end_matches('%').parse::<u8>() {
        Ok(percent) if percent <= 100 => Ok(Some(percent)),
        _ => Err(format!("'{text}' is not a percentage from 0 to 100")),
    }
}

fn limit(count: usize, most: usize, what: &str) -> Result<(), String> {
    match count {
        0 => Err(format!("no {what} are given")),
        count if count > most => Err(format!("{count} {what} are more than {most}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Vec<(u64, u8)> {
        match block_sizes(text, UnitBase::Compatible).unwrap()[0].clone().unwrap() {
            BlockSizes::Split(sizes) => sizes.iter().map(|(size, end)| (size.0, *end)).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn blanks_share_what_is_left() {
        assert_eq!(sizes("4k/10:64k/50:32k/40"), [(4096, 10), (32_768, 50), (65_536, 100)]);
        assert_eq!(sizes("4k/50:1k/:32k/"), [(1024, 25), (32_768, 50), (4096, 100)]);
        assert_eq!(sizes("4k:8k"), [(4096, 50), (8192, 100)]);
    }

    #[test]
    fn shares_that_do_not_add_up_are_cut_or_filled_as_fio_does() {
        assert_eq!(sizes("4k/60:8k/60"), [(4096, 60), (8192, 100)]);
        assert_eq!(sizes("4k/20:8k/20"), [(4096, 20), (8192, 100)]);
    }

    #[test]
    fn mixes_are_per_direction() {
        let [reads, writes, trims] =
            block_sizes("4k/50:8k/50,16k/100", UnitBase::Compatible).unwrap();
        assert_eq!(
            (reads.clone().unwrap().least(), reads.unwrap().most()),
            (Bytes(4096), Bytes(8192))
        );
        assert_eq!((writes, trims.clone()), (trims, Some(BlockSizes::Fixed(Bytes(16_384)))));
    }

    #[test]
    fn zoned_distributions_must_add_up() {
        let read = |text| distributions("zoned", Some(text), UnitBase::Compatible);
        assert_eq!(
            read("50/5:30/15:20/").unwrap()[2],
            Distribution::Zoned(vec![(50, 5), (30, 15), (20, 80)])
        );
        assert!(read("50/10").unwrap_err().contains("50 %"));
        assert!(read("50/60:50/60").unwrap_err().contains("120 %"));
        for bad in ["", "60/10:/90", "x", "101/100"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn skews_keep_to_their_ranges() {
        let read = |word: &str, text: &str| distributions(word, Some(text), UnitBase::Compatible);
        let skew = Skew { parameter: 1_200_000, center: Some(250_000) };
        assert_eq!(read("zipf", "1.2:0.25").unwrap()[0], Distribution::Zipf(skew));
        for (word, text) in [
            ("zipf", "1"),
            ("zipf", "1.0"),
            ("zipf", "x"),
            ("zipf", "1.2:2"),
            ("pareto", "0"),
            ("pareto", "1.5"),
            ("normal", "101"),
            ("normal", "-1"),
        ] {
            assert!(read(word, text).is_err(), "{word}:{text}");
        }
    }

    #[test]
    fn priorities_stand_behind_sizes() {
        let [reads, writes] =
            priority_splits("64k/25/1/1:64k/75/3/2:1024k/0,1024k/0", UnitBase::Compatible).unwrap();
        assert_eq!(reads[1].priority, Some((3, 2)));
        assert_eq!((writes[0].size, writes[0].percent, writes.len()), (Bytes(1 << 20), 0, 1));
        assert!(priority_splits("64k/25/4/1", UnitBase::Compatible).is_err());
    }
}
