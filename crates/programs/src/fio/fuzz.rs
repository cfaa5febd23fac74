//! Random job files and command lines: the parser answers every one of them with jobs or with an
//! error that names a place, and never panics.
//!
//! A seed is one input, so whatever fails can be repeated.

use std::io;
use std::path::Path;

use base::Rng;

use super::error::ParseError;
use super::job::Job;
use super::{options, parse_command_line, parse_job_file};
use crate::Surroundings;

/// Job files that between them use every part of the grammar.
const SEEDS: [&str; 4] = [
    "; a comment\n[global]\nioengine=libaio\ndirect=1\nbs=4k,8k:16k\nsize=20%\nruntime=30s\n\
     group_reporting\n[reads]\nrw=randread:8\niodepth=32\nrandom_distribution=zipf:1.2:0.25\n\
     numjobs=3\n[writes]\nstonewall\nrw=randwrite\nbssplit=4k/50:64k/30:1m/20,8k/\nfsync=32\n\
     rate=1m,500k\nthinktime=3ms\n",
    "[a]\nrw=randrw\nrwmixread=70\nbsrange=4k-64k,8k-8k\nfilename=/dev/sda:b\\:c\nverify=crc32c\n\
     zonemode=strided\nzonesize=1m\nzoneskip=2m\nsize=$mb_memory*2\n[b]\nwait_for=a\n\
     random_distribution=zoned:60/10:30/20:10/\ncpus_allowed=0-1\nprioclass=2\nprio=3\n",
    "[globalx]\ninclude more.inc\nfilename=${DISK}\n[x]\nioengine=io_uring\ncmdprio_bssplit=\
     4k/50/1/0:64k/\nlatency_target=10ms\nlatency_window=5s\nss=iops_slope:0.3%\nss_dur=10\n\
     [y]\nname=z\nnew_group\nioengine=cpuio\ncpuload=50\nexitall\nflow=3\nnrfiles=7\n",
    "[t]\nrw=trimwrite\noffset=10%\noffset_increment=1g\noffset_align=4k\nnumber_ios=1000\n\
     loops=2\nstartdelay=1-3\nio_size=2g\nzonemode=zbd\nzonesize=256M\nblockalign=4k\n",
];

/// Pieces of text that mean something to the parser.
const PIECES: [&str; 40] = [
    "0",
    "1",
    "-1",
    "4k",
    "4kib",
    "1g",
    "100%",
    "101%",
    "5z",
    "0x10",
    "3min",
    "10us",
    "9e18",
    "9223372036854775807",
    "99999999999999999999",
    ",",
    ":",
    "-",
    "/",
    "=",
    "=\n",
    "[",
    "]",
    "\n[",
    "${",
    "}",
    "${DISK}",
    "$ncpus",
    "$pagesize*",
    "(",
    ")",
    "^",
    "*",
    "#",
    ";",
    "\n",
    "\r\n",
    " ",
    "\u{fe0f}",
    "include more.inc\n",
];

/// Parses the input that belongs to `seed`, as a job file or as a command line.
pub fn fuzz_once(seed: u64) -> Result<Vec<Job>, ParseError> {
    let mut rng = Rng::stream(seed, "fuzz/fio");
    let mut text: Vec<char> = SEEDS[rng.below(SEEDS.len() as u64) as usize].chars().collect();
    // Mostly small changes, so that what lies behind the first error is reached too.
    let most = [1, 2, 8][rng.below(3) as usize];
    for _ in 0..rng.below(most + 1) {
        mutate(&mut text, &mut rng);
    }
    let text: String = text.into_iter().collect();
    let environment = |name: &str| (name == "DISK").then(|| "/dev/sda".to_owned());
    let read_file = |path: &Path| match path.to_str() {
        Some("more.inc") => Ok("iodepth=4\ninclude deeper.inc\n".to_owned()),
        Some("deeper.inc") => Ok("bs=$pagesize\n".to_owned()),
        Some("job.fio") => Ok("[j]\nrw=read\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let context = Surroundings {
        page_size: 4096,
        ncpus: 4,
        mb_memory: 16_384,
        habits: &guest::Profile::uml().habits,
        mount: None,
        environment: &environment,
        read_file: &read_file,
    };
    if rng.below(4) > 0 {
        return parse_job_file("fuzz.fio", &text, &context);
    }
    let words: Vec<String> = text.lines().map(|line| word(line, &mut rng)).collect();
    parse_command_line(&words, &context).map(|line| line.jobs)
}

/// A line of a job file as a word of a command line.
fn word(line: &str, rng: &mut Rng) -> String {
    match line.strip_prefix('[') {
        Some(name) => format!("--name={}", name.trim_end_matches(']')),
        None if rng.below(50) == 0 => {
            ["job.fio", "--", "-", "--readonly", "--section=a"][rng.below(5) as usize].to_owned()
        }
        None => format!("--{line}"),
    }
}

fn mutate(text: &mut Vec<char>, rng: &mut Rng) {
    let at = |text: &Vec<char>, rng: &mut Rng| rng.below(text.len() as u64 + 1) as usize;
    let (start, end) = (at(text, rng), at(text, rng));
    let (start, end) = (start.min(end), start.max(end).min(start.min(end) + 40));
    match rng.below(7) {
        0 => {
            text.drain(start..end);
        }
        1 => {
            let copied: Vec<char> = text[start..end].to_vec();
            let to = at(text, rng);
            text.splice(to..to, copied);
        }
        2 | 3 => {
            let piece = PIECES[rng.below(PIECES.len() as u64) as usize];
            text.splice(start..start, piece.chars());
        }
        4 => {
            let piece = PIECES[rng.below(PIECES.len() as u64) as usize];
            text.splice(start..(start + 3).min(text.len()), piece.chars());
        }
        5 => {
            if let Some(character) = text.get_mut(start) {
                *character = char::from(rng.below(128) as u8);
            }
        }
        _ => {
            // A line with a random option, at the start of some line.
            let count = options::all().count() as u64;
            let row = options::all().nth(rng.below(count) as usize);
            let name = row.map_or("name", |row| row.name);
            let value = PIECES[rng.below(PIECES.len() as u64) as usize];
            let line_start = text[..start].iter().rposition(|c| *c == '\n').map_or(0, |at| at + 1);
            text.splice(line_start..line_start, format!("{name}={value}\n").chars());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_input_makes_the_parser_panic() {
        let (mut accepted, mut refused) = (0, 0);
        for seed in 0..20_000 {
            match fuzz_once(seed) {
                Ok(jobs) => {
                    assert!(!jobs.is_empty());
                    accepted += 1;
                }
                Err(error) => {
                    assert!(error.place.line > 0 && !error.message.is_empty(), "{error}");
                    assert!(error.to_string().contains("; accepted: "), "{error}");
                    refused += 1;
                }
            }
        }
        // A target that only ever sees refusals, or none, would prove little.
        assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
    }

    #[test]
    fn every_seed_is_a_good_job_file_before_it_is_changed() {
        let (environment, read_file) = (|_: &str| None, |_: &Path| Ok("iodepth=4\n".to_owned()));
        let context = Surroundings {
            page_size: 4096,
            ncpus: 4,
            mb_memory: 16_384,
            habits: &guest::Profile::uml().habits,
            mount: None,
            environment: &environment,
            read_file: &read_file,
        };
        for (index, text) in SEEDS.iter().enumerate() {
            let text = text.replace("${DISK}", "/dev/sda");
            if let Err(error) = parse_job_file("seed.fio", &text, &context) {
                panic!("seed {index}: {error}");
            }
        }
    }
}
