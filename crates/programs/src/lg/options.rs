//! What was typed behind `lg`.

use base::{Duration, nearest};
use block::{Ioprio, IoprioClass};

/// A command line of lg, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lg {
    pub(super) jobs: Vec<Job>,
    /// In which order processes begin, by their numbers over all jobs; those that are not named
    /// come after them, the last first.
    pub(super) order: Vec<usize>,
}

/// A job: one word of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub name: String,
    pub copies: usize,
    pub file: String,
    pub mode: Mode,
    pub block: u64,
    pub offset: u64,
    /// Of the region behind the offset; to the end of the file if not given.
    pub size: Option<u64>,
    pub direct: bool,
    pub shares_position: bool,
    pub in_turn: bool,
    pub shares_io_context: bool,
    /// Begins again at the end of the region.
    pub loops: bool,
    /// From block to block, in blocks.
    pub stride: u64,
    /// Pause after each call.
    pub think: Duration,
    pub start: Duration,
    /// Until when, from the start of the program.
    pub duration: Option<Duration>,
    pub count: Option<u64>,
    /// An fsync after so many calls.
    pub sync_every: Option<u64>,
    pub ioprio: Option<Ioprio>,
    pub cgroup: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
    RandomRead,
    RandomWrite,
}

const NAMES: [&str; 20] = [
    "name", "copies", "file", "rw", "bs", "off", "size", "direct", "share", "turn", "ioc", "loop",
    "stride", "think", "start", "dur", "n", "fsync", "prio", "cg",
];
pub(super) const MODES: [(&str, Mode); 4] = [
    ("read", Mode::Read),
    ("write", Mode::Write),
    ("randread", Mode::RandomRead),
    ("randwrite", Mode::RandomWrite),
];
const SYNOPSIS: &str = "lg name=NAME,file=FILE,rw=read|write|randread|randwrite,bs=SIZE[,…] …";
/// More processes than any recording has.
const MOST_COPIES: u64 = 1024;

impl Lg {
    /// Understands the words behind `lg`, or says what is wrong with which, and what would do.
    pub fn parse(words: &[String]) -> Result<Lg, String> {
        if words.is_empty() {
            return Err(format!("lg: no job; accepted: {SYNOPSIS}"));
        }
        let mut lg = Lg { jobs: Vec::new(), order: Vec::new() };
        for word in words {
            match word.strip_prefix("--order=") {
                Some(order) => lg.order = parse_order(order)?,
                None => lg.jobs.push(Job::parse(word)?),
            }
        }
        Ok(lg)
    }
}

impl Job {
    fn parse(word: &str) -> Result<Job, String> {
        let mut job = Job {
            name: "job".to_string(),
            copies: 1,
            file: String::new(),
            mode: Mode::Read,
            block: 4096,
            offset: 0,
            size: None,
            direct: true,
            shares_position: false,
            in_turn: false,
            shares_io_context: false,
            loops: false,
            stride: 1,
            think: Duration::ZERO,
            start: Duration::ZERO,
            duration: None,
            count: None,
            sync_every: None,
            ioprio: None,
            cgroup: None,
        };
        for option in word.split(',') {
            let Some((name, value)) = option.split_once('=') else {
                return Err(bad(option, "", "options are written NAME=VALUE"));
            };
            job.set(name, value)?;
        }
        match job.file.is_empty() {
            true => Err(format!("lg: no file in \"{word}\"; accepted: {SYNOPSIS}")),
            false => Ok(job),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let whole = |least| number(name, value, least, 1 << 40);
        let micros = || whole(0).map(Duration::from_micros);
        let millis = || whole(0).map(Duration::from_millis);
        let flag = || number(name, value, 0, 1).map(|it| it == 1);
        match name {
            "name" => self.name = value.to_string(),
            "copies" => self.copies = number(name, value, 1, MOST_COPIES)? as usize,
            "file" => self.file = value.to_string(),
            "rw" => self.mode = mode(value)?,
            "bs" => self.block = size(name, value, 512)?,
            "off" => self.offset = size(name, value, 0)?,
            "size" => self.size = Some(size(name, value, 512)?),
            "direct" => self.direct = flag()?,
            "share" => self.shares_position = number(name, value, 0, 0).map(|_| true)?,
            "turn" => self.in_turn = flag()?,
            "ioc" => self.shares_io_context = flag()?,
            "loop" => self.loops = flag()?,
            "stride" => self.stride = whole(1)?,
            "think" => self.think = micros()?,
            "start" => self.start = millis()?,
            "dur" => self.duration = Some(millis()?),
            "n" => self.count = Some(whole(1)?),
            "fsync" => self.sync_every = Some(whole(1)?),
            "prio" => self.ioprio = Some(ioprio(value)?),
            "cg" => self.cgroup = Some(cgroup(value)),
            _ => {
                let known = NAMES.join(", ");
                return Err(format!(
                    "lg: {name}: no such option{}; accepted: {known}",
                    nearest(name, NAMES)
                ));
            }
        }
        Ok(())
    }
}

/// `5,6,4`: what the real program does not have; there the host decides.
fn parse_order(value: &str) -> Result<Vec<usize>, String> {
    let number = |word: &str| number("--order", word, 0, MOST_COPIES).map(|it| it as usize);
    value.split(',').map(number).collect()
}

fn bad(name: &str, value: &str, accepted: &str) -> String {
    format!("lg: {name} \"{value}\"; accepted: {accepted}")
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| bad(name, value, &format!("a whole number from {least} to {most}")))
}

/// A size with k, m or g.
fn size(name: &str, value: &str, least: u64) -> Result<u64, String> {
    let bytes = crate::size::bytes(value, "kmg")
        .filter(|bytes| bytes.is_multiple_of(512) && (least..=1 << 50).contains(bytes));
    bytes.ok_or_else(|| {
        bad(name, value, &format!("multiples of 512 bytes from {least} on, with k, m or g"))
    })
}

fn mode(value: &str) -> Result<Mode, String> {
    let found = MODES.into_iter().find(|(name, _)| *name == value);
    found
        .map(|(_, mode)| mode)
        .ok_or_else(|| bad("rw", value, &MODES.map(|(name, _)| name).join(", ")))
}

/// `CLASS:LEVEL`, by number.
fn ioprio(value: &str) -> Result<Ioprio, String> {
    let accepted = "1:0 to 1:7 (real time), 2:0 to 2:7 (best effort), 3:0 to 3:7 (idle)";
    let refused = || bad("prio", value, accepted);
    let (class, level) = value.split_once(':').ok_or_else(refused)?;
    let class = match class {
        "1" => IoprioClass::RealTime,
        "2" => IoprioClass::BestEffort,
        "3" => IoprioClass::Idle,
        _ => return Err(refused()),
    };
    let level = level.parse::<u8>().ok().filter(|level| *level < 8).ok_or_else(refused)?;
    Ok(Ioprio { class, level })
}

/// The path of a control group below where the recordings have the controller's mount point.
fn cgroup(value: &str) -> String {
    value.strip_prefix("/cg/blkio/").unwrap_or(value).trim_start_matches("./").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Lg, String> {
        Lg::parse(&line.split(' ').map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_command_line_of_a_recording_is_understood() {
        let lg = parse(
            "name=p,copies=3,file=/dev/sda,rw=read,bs=32k,size=400m,direct=1,share=0,think=500,\
             dur=5000,ioc=1 name=o,prio=1:4,cg=/cg/blkio/A,file=/dev/sda,rw=randread,bs=4k",
        );
        let lg = lg.expect("it is well formed");
        let [p, o] = lg.jobs.as_slice() else { panic!("two jobs") };
        assert_eq!((p.copies, p.block, p.size), (3, 32 << 10, Some(400 << 20)));
        assert!(p.shares_position && p.shares_io_context && !p.in_turn && p.direct);
        assert_eq!(p.think, Duration::from_micros(500));
        assert_eq!(o.cgroup.as_deref(), Some("A"));
        assert_eq!(o.ioprio, Some(Ioprio { class: IoprioClass::RealTime, level: 4 }));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_do() {
        let refusal = |line: &str| parse(line).expect_err("it is wrong");
        assert!(refusal("file=x,rw=trim").contains("accepted: read, write, randread, randwrite"));
        assert!(refusal("file=x,bz=4k").contains("nearest: \"bs\""));
        assert!(refusal("file=x,bs=1000").contains("multiples of 512 bytes"));
        assert!(refusal("name=a").contains("no file"));
        assert!(refusal("file=x,prio=4:0").contains("1:0 to 1:7"));
    }
}
