//! The files of a job, its pattern, and the priorities of its process.

use base::Bytes;

use super::super::engine::{self, Engine};
use super::super::error::ParseError;
use super::super::job::{
    CommandPriority, Direction, Directions, File, FileKind, Files, Modifier, Pattern,
    PriorityShare, Process, Service,
};
use super::super::mix::{self, BlockSizes, Distribution};
use super::super::random::Repeated;
use super::super::settings::Value;
use super::super::value::{self, Unit};
use super::Builder;

/// More files than this are refused: each of them is an extent to be laid out.
const MOST_FILES: u32 = 1_000_000;

impl Builder<'_, '_> {
    pub(super) fn files(&mut self) -> Result<Files, ParseError> {
        let directories = self.text("directory").map(split_names).unwrap_or_default();
        let list = match self.text("filename").map(split_names) {
            Some(names) => {
                let directory = directories.first().map(String::as_str);
                names
                    .iter()
                    .map(|name| self.file(directory, name))
                    .collect::<Result<Vec<_>, _>>()?
            }
            None => {
                let count = self.count("nrfiles")?;
                if count > MOST_FILES {
                    let message = format!("{count} files are more than {MOST_FILES}");
                    return Err(self.error("nrfiles", message));
                }
                self.generated_files(&directories, count)?
            }
        };
        if list.iter().any(|file| file.name == "-") {
            let message = "standard input and output are not modelled";
            return Err(self.error("filename", message));
        }
        if list.iter().any(|file| file.kind == FileKind::Sink) {
            self.note("/dev/null and /dev/zero move no data: the device stays idle");
        }
        let [from, to, _] = self.numbers("filesize");
        let bytes = |bytes: i64| Bytes(u64::try_from(bytes).unwrap_or(0));
        let size = from.map(|from| (from, to.unwrap_or(from)));
        let open = match self.count_or_zero("openfiles")? {
            0 => list.len() as u32,
            open => open.min(list.len() as u32),
        };
        Ok(Files {
            size: size.map(|(from, to)| (bytes(from.min(to)), bytes(from.max(to)))),
            service: self.service()?,
            open,
            list,
        })
    }

    /// The files that a clone makes up for itself; clones take the directories in turn.
    fn generated_files(&self, directories: &[String], count: u32) -> Result<Vec<File>, ParseError> {
        let directory = self.clone as usize % directories.len().max(1);
        let directory = directories.get(directory).map(String::as_str);
        let format = self.text("filename_format").unwrap_or_default();
        let name = self.text("name").unwrap_or(self.name);
        let name = |number| generated(format, name, self.clone, number);
        (0..count).map(|number| self.file(directory, &name(number))).collect()
    }

    /// What a name means: a disk, or a file where a file system is mounted, to which names are
    /// relative.
    pub(super) fn file(&self, directory: Option<&str>, name: &str) -> Result<File, ParseError> {
        let found = file(directory, name);
        let Some(mount) = self.context.mount.map(|it| it.point.as_str()) else { return Ok(found) };
        // What moves no data opens nothing.
        let is_idle = engine::find(self.settings.engine()).is_ok_and(|it| !it.does_block_io());
        if found.kind != FileKind::LaidOut || is_idle {
            return Ok(found);
        }
        let full = self.context.placed(&found.name);
        match full.strip_prefix(mount) {
            Some(rest) if rest.starts_with('/') && rest.len() > 1 => {
                Ok(File { name: full, kind: FileKind::File })
            }
            _ => {
                let option = if name.starts_with('/') { "filename" } else { "directory" };
                let message = format!("there is no place for the file {full}");
                let accepted = format!("files below {mount}, relative names, or the disk /dev/sda");
                Err(self.error(option, message).accepts(accepted))
            }
        }
    }

    fn service(&self) -> Result<Service, ParseError> {
        let (word, rest) = match self.settings.value("file_service_type") {
            Some(Value::Choice(word, rest)) => (word, rest),
            _ => ("", None),
        };
        let rest = rest.as_deref();
        let runs = || {
            let runs = rest.and_then(|rest| value::number(rest, self.settings.unit_base()).ok());
            runs.and_then(|runs| u32::try_from(runs.value).ok()).unwrap_or(1).max(1)
        };
        match word {
            "roundrobin" => Ok(Service::RoundRobin(runs())),
            "random" => Ok(Service::Random(runs())),
            "sequential" => Ok(Service::Sequential),
            skewed => {
                let skewed = if skewed == "gauss" { "normal" } else { skewed };
                mix::distributions(skewed, rest, self.settings.unit_base())
                    .map(|[distribution, ..]| Service::Skewed(distribution))
                    .map_err(|message| self.error("file_service_type", message))
            }
        }
    }

    pub(super) fn pattern(&mut self) -> Result<Pattern, ParseError> {
        let (word, rest) = match self.settings.value("rw") {
            Some(Value::Choice(word, rest)) => (word, rest),
            _ => ("", None),
        };
        let random = word.starts_with("rand");
        let reads = self.number("rwmixread").unwrap_or(0).min(100) as u8;
        let directions = match word.trim_start_matches("rand") {
            "write" => Directions::Only(Direction::Write),
            "trim" => Directions::Only(Direction::Trim),
            "rw" | "readwrite" => Directions::ReadWrite(reads),
            "trimwrite" => Directions::TrimWrite,
            _ => Directions::Only(Direction::Read),
        };
        let modifier = self.modifier(random, rest.as_deref())?;
        let sizes = self.sizes()?;
        let alignment = self.numbers("ba");
        let distribution = self.distribution()?;
        let uniform = distribution.iter().all(|one| *one == Distribution::Uniform);
        let alignment: [Bytes; 3] = std::array::from_fn(|direction| {
            let given = alignment[direction].and_then(|bytes| u64::try_from(bytes).ok());
            given.filter(|bytes| *bytes > 0).map_or(sizes[direction].least(), Bytes)
        });
        let aligned = alignment.iter().zip(&sizes).any(|(bytes, size)| *bytes != size.least());
        let shift_register = self.choice("random_generator") == "lfsr";
        if random && shift_register && !sizes.iter().all(BlockSizes::is_fixed) {
            self.note("random_generator=lfsr with several block sizes may visit blocks twice");
        }
        let seed = self.settings.get("randseed").and(self.number("randseed"));
        let repeated =
            Repeated { offsets: self.asks_for("randrepeat"), all: self.switch("allrandrepeat") };
        Ok(Pattern {
            directions,
            random,
            random_percent: self
                .numbers("percentage_random")
                .map(|percent| percent.map_or(0, |percent| percent.clamp(0, 100) as u8)),
            modifier,
            // A skewed distribution or an alignment of its own rules the map out.
            random_map: random && uniform && !aligned && !self.switch("norandommap"),
            shift_register: random && shift_register,
            distribution,
            alignment,
            sizes,
            sizes_by_randomness: self.switch("bs_is_seq_rand"),
            seed,
            repeated,
            long_draws: self.choice("random_generator") == "tausworthe64",
        })
    }

    fn modifier(&self, random: bool, text: Option<&str>) -> Result<Modifier, ParseError> {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(Modifier::None);
        };
        let number = value::number(text, self.settings.unit_base())
            .ok()
            .filter(|number| number.unit == Unit::Count)
            .ok_or_else(|| self.error("rw", format!("'{text}' behind the colon is no number")))?;
        let identical = self.choice("rw_sequencer") == "identical";
        let runs = || {
            u32::try_from(number.value)
                .map_err(|_| self.error("rw", format!("{} is no number of requests", number.value)))
        };
        Ok(match (random, identical) {
            (true, true) => Modifier::Repeat(runs()?.max(1)),
            (true, false) => Modifier::Run(runs()?.max(1)),
            // Without random offsets the sequencer has no effect.
            (false, _) if number.value == 0 => Modifier::None,
            (false, _) if number.value % base::Sector::SIZE as i64 != 0 => {
                return Err(self
                    .error("rw", "holes on a raw device are whole sectors of 512 bytes")
                    .accepts("multiples of 512 behind the colon"));
            }
            (false, _) => Modifier::Skip(number.value),
        })
    }

    /// Sizes by percentage rule out ranges, and ranges rule out single sizes, in any order.
    fn sizes(&self) -> Result<[BlockSizes; 3], ParseError> {
        let single = self.numbers("bs");
        let ranges = match self.settings.get("bsrange") {
            Some(Value::Ranges(ranges)) => *ranges,
            _ => [None; 3],
        };
        let splits = match self.text("bssplit") {
            Some(text) => mix::block_sizes(text, self.settings.unit_base())
                .map_err(|message| self.error("bssplit", message).accepts("4k/60:64k/40"))?,
            None => [None, None, None],
        };
        let mut sizes = splits;
        for (direction, size) in sizes.iter_mut().enumerate() {
            let single = single[direction].and_then(|bytes| u64::try_from(bytes).ok());
            size.get_or_insert(match ranges[direction] {
                Some((least, most)) if least < most => BlockSizes::Range(Bytes(least), Bytes(most)),
                Some((size, _)) => BlockSizes::Fixed(Bytes(size)),
                None => BlockSizes::Fixed(Bytes(single.unwrap_or(0))),
            });
        }
        Ok(sizes.map(|size| size.expect("each direction has a size")))
    }

    fn distribution(&self) -> Result<[Distribution; 3], ParseError> {
        let (word, rest) = match self.settings.value("random_distribution") {
            Some(Value::Choice(word, rest)) => (word, rest),
            _ => ("", None),
        };
        mix::distributions(word, rest.as_deref(), self.settings.unit_base())
            .map_err(|message| self.error("random_distribution", message))
    }

    pub(super) fn process(&mut self, engine: Engine) -> Result<Process, ParseError> {
        let level = self.settings.get("prio").and(self.number("prio"));
        let class = self.settings.get("prioclass").and(self.number("prioclass"));
        let ioprio = match (class, level) {
            (None, None) => None,
            // A level alone belongs to the best-effort class, a class alone to its first level.
            (class, level) => Some((class.unwrap_or(2) as u8, level.unwrap_or(0) as u8)),
        };
        Ok(Process {
            nice: self.numbers("nice")[0].unwrap_or(0).clamp(-20, 19) as i8,
            ioprio,
            command_priority: self.command_priority(engine)?,
            cpus: self.cpus()?,
            cgroup: self.text("cgroup").map(str::to_owned),
            cgroup_weight: self
                .settings
                .get("cgroup_weight")
                .and(self.number("cgroup_weight").and_then(|weight| u32::try_from(weight).ok())),
        })
    }

    fn command_priority(&self, engine: Engine) -> Result<Option<[CommandPriority; 2]>, ParseError> {
        if !matches!(engine, Engine::Libaio | Engine::IoUring) {
            return Ok(None);
        }
        let percentages = self.numbers("cmdprio_percentage");
        let splits = match self.text("cmdprio_bssplit") {
            Some(text) => Some(
                mix::priority_splits(text, self.settings.unit_base())
                    .map_err(|message| self.error("cmdprio_bssplit", message))?,
            ),
            None => None,
        };
        let shares: [PriorityShare; 2] = match (percentages[0].or(percentages[1]), splits) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                let message = "cannot be combined with cmdprio_percentage";
                return Err(self.error("cmdprio_bssplit", message));
            }
            (_, Some(splits)) => splits.map(PriorityShare::BySize),
            (Some(_), None) => std::array::from_fn(|direction| {
                let percent = percentages[direction].unwrap_or(0).clamp(0, 100);
                PriorityShare::Percent(percent as u8)
            }),
        };
        let (classes, levels) = (self.numbers("cmdprio_class"), self.numbers("cmdprio"));
        let mut direction = 0;
        Ok(Some(shares.map(|which| {
            // Without a class, the highest one.
            let class = classes[direction].unwrap_or(1) as u8;
            let level = levels[direction].unwrap_or(0) as u8;
            direction += 1;
            CommandPriority { class, level, which }
        })))
    }

    fn cpus(&self) -> Result<Option<Vec<u32>>, ParseError> {
        let cores = self.context.ncpus;
        let (option, cpus) = if let Some(text) = self.text("cpus_allowed") {
            let cpus = parse_cpus(text, cores).ok_or_else(|| {
                let message = format!("'{text}' is not a list of cores");
                self.error("cpus_allowed", message).accepts("lists such as 0,2-3 or all")
            })?;
            ("cpus_allowed", cpus)
        } else if self.settings.get("cpumask").is_some() {
            let mask = self.number("cpumask").unwrap_or(0);
            ("cpumask", (0..64).filter(|cpu| mask & (1 << cpu) != 0).collect())
        } else {
            return Ok(None);
        };
        match cpus.iter().find(|cpu| **cpu >= cores) {
            Some(cpu) => {
                let message = format!("core {cpu} does not exist");
                Err(self.error(option, message).accepts(format!("cores 0 to {}", cores - 1)))
            }
            None if cpus.is_empty() => Err(self.error(option, "no core is left")),
            None => Ok(Some(cpus)),
        }
    }
}

/// The generated file `number` of clone `clone`.
fn generated(format: &str, job: &str, clone: u32, number: u32) -> String {
    let expanded = format
        .replace("$jobname", job)
        .replace("$clientuid", "localhost")
        .replace("$jobnum", &clone.to_string())
        .replace("$filenum", &number.to_string());
    if expanded == format && number > 0 { format!("{job}.{clone}.{number}") } else { expanded }
}

fn file(directory: Option<&str>, name: &str) -> File {
    let name = match directory {
        Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
        None => name.to_owned(),
    };
    let kind = match name.as_str() {
        "/dev/null" | "/dev/zero" => FileKind::Sink,
        _ if name.starts_with("/dev/") => FileKind::Device,
        _ => FileKind::LaidOut,
    };
    File { name, kind }
}

/// The names in a list separated by colons; a backslash keeps the colon behind it.
pub(in super::super) fn split_names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&':') => {
                characters.next();
                names.last_mut().unwrap_or(&mut String::new()).push(':');
            }
            ':' => names.push(String::new()),
            other => {
                if let Some(name) = names.last_mut() {
                    name.push(other);
                }
            }
        }
    }
    if names.len() > 1 {
        names.retain(|name| !name.is_empty());
    }
    if names.is_empty() { vec![text.to_owned()] } else { names }
}

fn parse_cpus(text: &str, cores: u32) -> Option<Vec<u32>> {
    if text == "all" {
        return Some((0..cores).collect());
    }
    let mut cpus = Vec::new();
    for part in text.split([',', ':']) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= 4096 {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_at_colons_that_are_not_escaped() {
        assert_eq!(split_names("/dev/sda:/dev/sdb"), ["/dev/sda", "/dev/sdb"]);
        assert_eq!(split_names("/dev/dsk/foo@3,0\\:c"), ["/dev/dsk/foo@3,0:c"]);
        assert_eq!(split_names("F\\:\\filename"), ["F:\\filename"]);
        assert_eq!(split_names("a::b:"), ["a", "b"]);
        assert_eq!(split_names(":"), [":"]);
    }

    #[test]
    fn names_are_made_from_the_format() {
        let name = |format| generated(format, "job", 2, 3);
        assert_eq!(name("$jobname.$jobnum.$filenum"), "job.2.3");
        assert_eq!(name("test.$filenum"), "test.3");
        assert_eq!(file(Some("d/"), "x").name, "d/x");
    }

    #[test]
    fn everything_under_dev_is_the_device() {
        assert_eq!(file(None, "/dev/nvme0n1").kind, FileKind::Device);
        assert_eq!(file(None, "/dev/zero").kind, FileKind::Sink);
        assert_eq!(file(None, "128m").kind, FileKind::LaidOut);
        assert_eq!(file(Some("/dev"), "sda").kind, FileKind::Device);
    }

    #[test]
    fn cores_are_listed_by_ranges() {
        assert_eq!(parse_cpus("0,5", 8), Some(vec![0, 5]));
        assert_eq!(parse_cpus("2-3,0,3", 8), Some(vec![0, 2, 3]));
        assert_eq!(parse_cpus("all", 2), Some(vec![0, 1]));
        for bad in ["", "x", "3-1", "0-", "0-4000000000"] {
            assert_eq!(parse_cpus(bad, 8), None, "{bad}");
        }
    }
}
