//! fio goes where the installed fio goes: request by request, in direction, file, offset and
//! length.
//!
//! `fio_streams.txt` holds recordings of fio 3.33 with the options they were made with, so that
//! this is tested everywhere. Where fio is installed, `UPDATE_EXPECT=1` records anew, and fio is
//! asked about jobs that are made up at random as well: `PATERNOSTER_FIO_JOBS` says about how many,
//! `PATERNOSTER_FIO_FIRST` from which on.

#[path = "../../machine/tests/common/mod.rs"]
mod common;

use base::{Bytes, Duration, Rng};
use block::{Action, ContextId, Event, Op};
use common::{Steady, command, setup};
use expect_test::{ExpectFile, expect_file};
use machine::{Observer, TaskInfo};
use std::collections::BTreeMap;
use std::process::Command;
use testing::needs::FIO;

/// What a job works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// A file of 64 MiB, as large as the simulated disk.
    Disk,
    /// 1 MiB that fio only pretends to read, write and trim; the simulated disk is as large.
    Nothing,
    /// Files of the job's own that fio pretends to read.
    Files,
}

/// Direction (`r`, `w` or `t`), file, offset and length in bytes.
type Request = (char, u64, u64, u64);
/// The requests of each process.
type Streams = Vec<Vec<Request>>;

const MIB: u64 = 1 << 20;
/// Requests of a process that are compared.
const MOST: usize = 2_000;
/// Requests of a process that are recorded.
const RECORDED: usize = 40;
/// Jobs that are recorded: those that are made up with these numbers.
const RECORDED_JOBS: std::ops::Range<u64> = 0..24;
/// Files are laid out at multiples of this on the simulated disk.
const FILE: u64 = MIB;

/// Where the processes of a job go in the simulator.
fn simulated(target: Target, options: &str) -> Streams {
    let (disk, name) = match target {
        Target::Disk => (64 * MIB, "--filename=/dev/sda"),
        Target::Nothing => (MIB, "--filename=/dev/sda"),
        Target::Files => (64 * MIB, ""),
    };
    let line = format!("fio {name} --direct=1 {options}");
    let mut setup = setup("6.18", "none");
    let device = Steady::new(Duration::from_micros(10), 32);
    setup.device = Box::new(device.with(|facts| facts.capacity = Bytes(disk)));
    setup.jobs = vec![command(&line)];
    let mut seen = Seen { is_files: target == Target::Files, ..Seen::default() };
    let outcome = machine::run(setup, &mut seen).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(outcome.jobs[0].messages, [] as [String; 0], "{line}");
    // Whoever does nothing is no process of a job.
    let streams = seen.requests.into_values().filter(|requests| !requests.is_empty());
    streams.map(|requests| requests.into_iter().take(MOST).collect()).collect()
}

/// Keeps the requests of all tasks.
#[derive(Default)]
struct Seen {
    is_files: bool,
    requests: BTreeMap<ContextId, Vec<Request>>,
}

impl Observer for Seen {
    fn meet(&mut self, who: &TaskInfo) {
        self.requests.insert(who.context, Vec::new());
    }

    fn see(&mut self, event: &Event) {
        let Action::SyscallExit { .. } = event.action else { return };
        let direction = match event.op {
            Op::Read => 'r',
            Op::Write => 'w',
            Op::Discard => 't',
        };
        let (offset, length) = (event.sector.bytes().0, event.sectors.bytes().0);
        let (file, offset) = match self.is_files {
            true => (offset / FILE, offset % FILE),
            false => (0, offset),
        };
        let requests = self.requests.entry(event.context).or_default();
        requests.push((direction, file, offset, length));
    }
}

/// Where the processes of a job go in the installed fio.
fn real(target: Target, options: &str) -> Streams {
    let who = (std::process::id(), std::thread::current().id());
    let directory = std::env::temp_dir().join(format!("paternoster-fio-{who:?}"));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = std::fs::File::create(directory.join("disk")).expect("a file");
    file.set_len(64 * MIB).expect("a sparse file");
    let mut fio = Command::new("fio");
    fio.current_dir(&directory).args(["--debug=io", "--randrepeat=0", "--randseed=1"]);
    match target {
        Target::Disk => fio.args(["--ioengine=psync", "--filename=disk"]),
        Target::Nothing => fio.args(["--ioengine=null", "--size=1m"]),
        Target::Files => fio.arg("--ioengine=null"),
    };
    let output = fio.args(options.split_whitespace()).output().expect("fio");
    std::fs::remove_dir_all(&directory).expect("a directory");
    let mut streams: BTreeMap<u64, Vec<Request>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((process, request)) = issued(line) else { continue };
        let requests = streams.entry(process).or_default();
        if requests.len() < MOST {
            requests.push(request);
        }
    }
    streams.into_values().collect()
}

/// The process and the request of a line such as
/// `io  4711  fill: io_u 0x55: off=0xf000,len=0x1000,ddir=0,file=x.0.3`.
fn issued(line: &str) -> Option<(u64, Request)> {
    let (head, tail) = line.split_once(" fill: ")?;
    let process = head.split_whitespace().nth(1)?.parse().ok()?;
    let field = |name: &str| {
        let rest = &tail[tail.find(name)? + name.len()..];
        rest.split(',').next()
    };
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let direction = match field("ddir=")? {
        "0" => 'r',
        "1" => 'w',
        "2" => 't',
        _ => return None,
    };
    let file = field("file=")?.rsplit('.').next()?.trim().parse().unwrap_or(0);
    Some((process, (direction, file, number(field("off=")?)?, number(field("len=")?)?)))
}

/// The first requests that differ, as text; empty if none does.
fn difference(simulated: &Streams, real: &Streams) -> String {
    if simulated.len() != real.len() {
        return format!("{} processes, fio has {}", simulated.len(), real.len());
    }
    for (process, (mine, its)) in simulated.iter().zip(real).enumerate() {
        let shorter = mine.len().min(its.len());
        let differ = mine.iter().zip(its).position(|(mine, its)| mine != its);
        let at = differ.unwrap_or(shorter);
        if differ.is_none() && mine.len() == its.len() {
            continue;
        }
        let around = |requests: &[Request]| {
            let (from, to) = (at.saturating_sub(3), (at + 4).min(requests.len()));
            format!("{:?}", &requests[from.min(to)..to])
        };
        return format!(
            "process {process}, request {at} of {}, {} in fio:\n  {}\n  {} in fio",
            mine.len(),
            its.len(),
            around(mine),
            around(its)
        );
    }
    String::new()
}

/// A job at random.
fn made_up(rng: &mut Rng) -> (Target, String) {
    let target = match rng.below(10) {
        0..6 => Target::Disk,
        6..8 => Target::Nothing,
        _ => Target::Files,
    };
    let pick = |rng: &mut Rng, of: &[&str]| of[rng.below(of.len() as u64) as usize].to_owned();
    let modes = if target == Target::Nothing && rng.chance(1, 3) { TRIMS } else { MODES };
    let is_strided = target == Target::Disk && rng.chance(1, 10);
    let sizes = if is_strided { "bs=4k".to_owned() } else { pick(rng, SIZES) };
    let modes = if is_strided { &MODES[..MODES.len() - 2] } else { modes };
    let mut options = format!("--name=x --rw={} --{sizes}", pick(rng, modes));
    for choices in CHOICES {
        let choice = pick(rng, choices);
        // What is trimmed before it is written has oddities of its own.
        if rng.chance(1, 5) && !(options.contains("trim") && choice.starts_with("bs_is")) {
            options += &format!(" --{choice}");
        }
    }
    match target {
        Target::Files => {
            options += &format!(" --{} --{}", pick(rng, SERVICES), pick(rng, FILES));
        }
        Target::Disk if is_strided => options += &format!(" --{}", pick(rng, ZONES)),
        Target::Disk if rng.chance(5, 6) => options += &format!(" --{}", pick(rng, EXTENTS)),
        _ => {}
    }
    if target == Target::Disk && !is_strided && !options.contains(":-8k") && rng.chance(1, 5) {
        options += &format!(" --{}", pick(rng, OFFSETS));
    }
    if target != Target::Files && rng.chance(1, 5) {
        options += &format!(" --{}", pick(rng, &["numjobs=2", "numjobs=3"]));
    }
    (target, options)
}

const MODES: &[&str] = &[
    "randread",
    "randread",
    "randwrite",
    "randrw",
    "randrw",
    "read",
    "write",
    "rw",
    "randread:4",
    "randrw:3",
    "read:8k",
    "read:4k",
    "rw:4k",
    "read:-8k",
    "randrw:5 --rw_sequencer=identical",
];
const TRIMS: &[&str] = &["randtrim", "randtrimwrite", "trimwrite", "trim"];
const SIZES: &[&str] = &[
    "bs=4k",
    "bs=4k",
    "bs=4k,8k",
    "bs=12k",
    "bs=8k,4k",
    "bsrange=4k-32k",
    "bsrange=1k-9728",
    "bsrange=4k-16k,8k-24k",
    "bssplit=4k/60:16k/40",
    "bssplit=4k/10:8k/:64k/30",
    "bssplit=8k/50:12k/50,4k/20:16k/80",
    "bssplit=16k/50:4k/50",
];
const EXTENTS: &[&str] =
    &["size=1m", "size=1m", "size=300k", "size=10m", "size=100k", "size=2000k"];
const FILES: &[&str] = &["nrfiles=3 --size=3m", "nrfiles=8 --size=1m", "nrfiles=5 --size=1280k"];
const SERVICES: &[&str] = &[
    "file_service_type=roundrobin",
    "file_service_type=roundrobin:3",
    "file_service_type=random",
    "file_service_type=random:2",
    "file_service_type=sequential",
    "file_service_type=zipf:1.2",
    "file_service_type=pareto:0.3",
    "file_service_type=gauss:20",
];
const OFFSETS: &[&str] = &["offset=1m", "offset=36k", "offset=1000k"];
const ZONES: &[&str] = &["zonemode=strided --zonesize=512k --zonerange=1m --zoneskip=3m"];
const CHOICES: &[&[&str]] = &[
    &["io_size=3m", "io_size=200k", "io_size=700k"],
    &["loops=2", "loops=3"],
    &["number_ios=100", "number_ios=1000"],
    &["norandommap"],
    &["percentage_random=50", "percentage_random=20,80", "percentage_random=95"],
    &["rwmixread=10", "rwmixread=90", "rwmixread=70"],
    &["random_generator=lfsr", "random_generator=tausworthe64"],
    &["randseed=7", "randseed=123456789", "randrepeat=1", "allrandrepeat=1"],
    &["ba=512", "ba=16k", "ba=2k"],
    &["bs_is_seq_rand=1"],
    &[
        "random_distribution=zipf:1.2",
        "random_distribution=zipf:0.8:0.3",
        "random_distribution=zipf",
        "random_distribution=pareto:0.2",
        "random_distribution=pareto",
        "random_distribution=normal:10",
        "random_distribution=normal:30:0.2",
        "random_distribution=zoned:50/10:30/20:20/",
        "random_distribution=zoned:80/30:20/70",
        "random_distribution=zoned_abs:60/40k:40/60k",
    ],
];

fn jobs_at_random_go_where_fio_goes() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|count| count.parse().ok()).unwrap_or(otherwise)
    };
    let (first, count) = (number("PATERNOSTER_FIO_FIRST", 0), number("PATERNOSTER_FIO_JOBS", 20));
    let mut failures = Vec::new();
    for seed in first..first + count {
        let (target, options) = made_up(&mut Rng::stream(seed, "test/fio/streams"));
        let difference = difference(&simulated(target, &options), &real(target, &options));
        if !difference.is_empty() {
            failures.push(format!("{seed}: {target:?} {options}: {difference}"));
        }
    }
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}

fn recorded() -> ExpectFile {
    expect_file!["fio_streams.txt"]
}

/// A recording: a line of the target and the options, and one for each process.
fn recording(target: Target, options: &str, streams: &Streams) -> String {
    let request = |(direction, file, offset, length): &Request| {
        format!(" {direction}{file}:{offset}+{length}")
    };
    let mut text = format!("{target:?} {options}\n");
    for stream in streams {
        let requests: String = stream.iter().take(RECORDED).map(request).collect();
        text += &format!("{requests}\n");
    }
    text
}

/// The recordings of all jobs, asking the one or the other.
fn recordings(ask: fn(Target, &str) -> Streams) -> String {
    let jobs = RECORDED_JOBS.map(|seed| made_up(&mut Rng::stream(seed, "test/fio/streams")));
    jobs.map(|(target, it)| recording(target, &it, &ask(target, &it))).collect()
}

fn jobs_go_where_fio_was_recorded_to_go() {
    // Never `assert_eq` of the file: it would take what is simulated for a recording.
    for (mine, its) in recordings(simulated).lines().zip(recorded().data().lines()) {
        assert_eq!(mine, its);
    }
}

fn fio_goes_where_it_was_recorded_to_go() {
    recorded().assert_eq(&recordings(real));
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [FIO] => jobs_at_random_go_where_fio_goes, fio_goes_where_it_was_recorded_to_go;
        [] => jobs_go_where_fio_was_recorded_to_go,
    ])
}
