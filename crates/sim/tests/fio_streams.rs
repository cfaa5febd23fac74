//! fio goes where the installed fio goes: request by request, in direction, offset and length.
//!
//! `streams/*.txt` are short recordings of fio 3.33 with the options they were made with, so that
//! this is tested everywhere; where fio is installed, they are recorded again and compared, and so
//! are jobs that are made up at random (`PATERNOSTER_FIO_JOBS` says how many).

mod common;

use base::{Bytes, Rng};
use block::{Action, ContextId, Event, Op};
use common::{Steady, command, setup};
use sim::{Observer, Who};
use std::collections::BTreeMap;
use std::process::Command;

/// A request: `r`, `w` or `t`, offset and length in bytes.
type Request = (char, u64, u64);
/// The requests of each process.
type Streams = Vec<Vec<Request>>;

const DISK: u64 = 64 << 20;
/// Requests of a process that are compared.
const MOST: usize = 3_000;

/// Where the processes of a job go in the simulator; the disk is called `/dev/sda`.
fn simulated(options: &str, disk: u64) -> Streams {
    #[derive(Default)]
    struct Seen(BTreeMap<ContextId, Vec<Request>>);
    impl Observer for Seen {
        fn meet(&mut self, who: &Who) {
            self.0.insert(who.context, Vec::new());
        }
        fn see(&mut self, event: &Event) {
            let Action::SyscallExit { .. } = event.action else { return };
            let direction = match event.op {
                Op::Read => 'r',
                Op::Write => 'w',
                Op::Discard => 't',
            };
            let request = (direction, event.sector.bytes().0, event.sectors.bytes().0);
            self.0.entry(event.context).or_default().push(request);
        }
    }
    let line = format!("fio --filename=/dev/sda --direct=1 {options}");
    let mut setup = setup("6.18", "none");
    let device = Steady::new(base::Duration::from_micros(10), 32);
    setup.device = Box::new(device.with(|facts| facts.capacity = Bytes(disk)));
    setup.jobs = vec![command(&line)];
    let mut seen = Seen::default();
    let outcome = sim::run(setup, &mut seen).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(outcome.jobs[0].messages, [] as [String; 0], "{line}");
    // Whoever does nothing is no process of a job.
    let streams = seen.0.into_values().filter(|requests| !requests.is_empty());
    streams.map(|requests| requests.into_iter().take(MOST).collect()).collect()
}

/// Where the processes of a job go in fio. The engine `null` does nothing but needs a size, files
/// of the size of the disk take no trims.
fn real(options: &str, disk: u64) -> Option<Streams> {
    let folder = std::env::temp_dir().join(format!("paternoster-fio-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let disk_file = folder.join("disk");
    let file = std::fs::File::create(&disk_file).expect("a file");
    file.set_len(disk).expect("a sparse file");
    let mut fio = Command::new("fio");
    fio.current_dir(&folder).args(["--debug=io", "--randrepeat=0", "--randseed=1"]);
    match options.contains("trim") {
        true => fio.arg("--ioengine=null").arg(format!("--size={disk}")),
        false => fio.arg("--ioengine=psync").arg("--filename=disk"),
    };
    let output = fio.args(options.split_whitespace()).output().ok()?;
    std::fs::remove_dir_all(&folder).expect("a folder");
    let mut streams: BTreeMap<u64, Vec<Request>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((process, request)) = fill(line) else { continue };
        let requests = streams.entry(process).or_default();
        if requests.len() < MOST {
            requests.push(request);
        }
    }
    Some(streams.into_values().collect())
}

/// The process and the request of a line such as
/// `io  4711  fill: io_u 0x55: off=0xf000,len=0x1000,ddir=0,file=disk`.
fn fill(line: &str) -> Option<(u64, Request)> {
    let (head, tail) = line.split_once(" fill: ")?;
    let process = head.split_whitespace().nth(1)?.parse().ok()?;
    let field = |name: &str| {
        let rest = &tail[tail.find(name)? + name.len()..];
        Some(rest.split(',').next()?.to_owned())
    };
    let hexadecimal = |text: String| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let direction = match field("ddir=")?.as_str() {
        "0" => 'r',
        "1" => 'w',
        "2" => 't',
        _ => return None,
    };
    Some((process, (direction, hexadecimal(field("off=")?)?, hexadecimal(field("len=")?)?)))
}

fn is_installed() -> bool {
    let version = Command::new("fio").arg("--version").output();
    let is_it = version.is_ok_and(|output| output.stdout.starts_with(b"fio-3.33"));
    if !is_it {
        println!("skipped: fio 3.33 is not installed");
    }
    is_it
}

/// The first requests that differ, as text; empty if none does.
fn difference(simulated: &Streams, real: &Streams) -> String {
    if simulated.len() != real.len() {
        return format!("{} processes, fio has {}", simulated.len(), real.len());
    }
    for (process, (mine, its)) in simulated.iter().zip(real).enumerate() {
        let at = mine.iter().zip(its).position(|(mine, its)| mine != its);
        let at = match at {
            None if mine.len() == its.len() => continue,
            None => mine.len().min(its.len()),
            Some(at) => at,
        };
        let around = |requests: &[Request]| {
            let (from, to) = (at.saturating_sub(3), (at + 4).min(requests.len()));
            format!("{:?}", &requests[from.min(to)..to])
        };
        return format!(
            "process {process}, request {at} of {} and {}:\n  {}\n  {} in fio",
            mine.len(),
            its.len(),
            around(mine),
            around(its)
        );
    }
    String::new()
}

/// A job at random.
fn made_up(rng: &mut Rng) -> String {
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
        "randrw:5 --rw_sequencer=identical",
    ];
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
    const CHOICES: &[&[&str]] = &[
        &["size=1m", "size=300k", "size=10m", "size=100k", "size=2000k"],
        &["offset=1m", "offset=36k", "offset=1000k"],
        &["io_size=3m", "io_size=200k", "io_size=700k"],
        &["loops=2", "loops=3"],
        &["number_ios=100", "number_ios=1000"],
        &["norandommap"],
        &["percentage_random=50", "percentage_random=20,80", "percentage_random=95"],
        &["rwmixread=10", "rwmixread=90", "rwmixread=70"],
        &["random_generator=lfsr", "random_generator=tausworthe64"],
        &["numjobs=2", "numjobs=3"],
        &["randseed=7", "randseed=123456789", "randrepeat=1", "allrandrepeat=1"],
        &["ba=512", "ba=16k", "ba=2k"],
        &["bs_is_seq_rand"],
        &[
            "random_distribution=zipf:1.2",
            "random_distribution=zipf:0.8:0.3",
            "random_distribution=pareto:0.2",
            "random_distribution=normal:10",
            "random_distribution=normal:30:0.2",
            "random_distribution=zoned:50/10:30/20:20/",
            "random_distribution=zoned:80/30:20/70",
            "random_distribution=zoned_abs:60/40k:40/60k",
        ],
    ];
    let pick =
        |rng: &mut Rng, from: &[&str]| from[rng.below(from.len() as u64) as usize].to_owned();
    let mut options = format!("--name=x --rw={} --{}", pick(rng, MODES), pick(rng, SIZES));
    for choices in CHOICES {
        if rng.chance(1, 5) {
            options += &format!(" --{}", pick(rng, choices));
        }
    }
    // Strided zones with sequential runs are known to differ (docs/fio.md).
    if !options.contains("--size=") && !options.contains("--offset=") && rng.chance(3, 4) {
        options += " --size=1m";
    }
    options
}

#[test]
fn jobs_at_random_go_where_fio_goes() {
    if !is_installed() {
        return;
    }
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|count| count.parse().ok()).unwrap_or(otherwise)
    };
    let (first, count) = (number("PATERNOSTER_FIO_FIRST", 0), number("PATERNOSTER_FIO_JOBS", 40));
    let mut failures = Vec::new();
    for seed in first..first + count {
        let mut rng = Rng::stream(seed, "test/fio/streams");
        let options = made_up(&mut rng);
        let Some(real) = real(&options, DISK) else { continue };
        if sim::program::parse(&format!("fio --filename=/dev/sda {options}")).is_err() {
            continue;
        }
        let result = std::panic::catch_unwind(|| simulated(&options, DISK));
        let difference = match result {
            Ok(s) => difference(&s, &real),
            Err(_) => "panic".to_owned(),
        };
        if !difference.is_empty() {
            failures.push(format!("{seed}: {options}: {difference}"));
        }
    }
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}
