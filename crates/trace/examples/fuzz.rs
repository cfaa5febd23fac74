//! Mutated traces in every format: `cargo run --release --example fuzz -- 1000000 [SEED]`.
//!
//! Each input must be read or refused, never panic; what is read must keep the promises of
//! `Arrival`. The tests run a short form of the same loop.

use base::{Instant, Rng, Sector};
use std::io::Cursor;
use trace::blktrace::{Action, Categories, DevT, Layout, Payload, Record};
use trace::{Format, Op, Options, TimeUnit, Trace, read_stream};

/// What became of the inputs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many were traces.
    pub read: u64,
    /// How many were refused.
    pub refused: u64,
}

#[allow(dead_code, reason = "the tests include this file for `run`")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| match arguments.next() {
        Some(text) => text.parse().unwrap_or_else(|_| panic!("`{text}` is not a whole number")),
        None => default,
    };
    let (count, seed) = (number(100_000), number(1));
    let Outcome { read, refused } = run(seed, count);
    println!("{count} inputs from seed {seed}: {read} read, {refused} refused, no panic");
}

/// Reads `count` mutated inputs; panics when one of them breaks a promise.
pub fn run(seed: u64, count: u64) -> Outcome {
    let mut rng = Rng::stream(seed, "trace/fuzz");
    let seeds = seeds();
    let mut outcome = Outcome::default();
    for _ in 0..count {
        let mut bytes = seeds[rng.below(seeds.len() as u64) as usize].clone();
        for _ in 0..rng.below(6) {
            mutate(&mut rng, &mut bytes, &seeds);
        }
        let options = options(&mut rng);
        match read_stream(Box::new(Cursor::new(bytes)), "fuzzed", &options) {
            Ok(trace) => {
                check(&trace);
                outcome.read += 1;
            }
            Err(error) => {
                assert!(!error.cause.is_empty() && !error.accepted.is_empty(), "{error}");
                outcome.refused += 1;
            }
        }
    }
    outcome
}

fn options(rng: &mut Rng) -> Options {
    let format = Format::ALL.get(rng.below(2 * Format::ALL.len() as u64) as usize).copied();
    let unit = TimeUnit::ALL[rng.below(4) as usize];
    let told = format == Some(Format::DiskSim) || rng.chance(1, 20);
    Options { format, time_unit: told.then_some(unit), ..Options::default() }
}

fn check(trace: &Trace) {
    assert!(!trace.arrivals.is_empty());
    assert!(trace.arrivals.is_sorted_by_key(|arrival| arrival.at));
    for arrival in &trace.arrivals {
        assert_eq!(arrival.bytes.0 % Sector::SIZE, 0);
        assert_eq!(arrival.bytes.0 == 0, arrival.op == Op::Flush);
        assert!((arrival.sector + arrival.sectors()).0 <= 1 << 55);
        assert!(arrival.at.as_nanos() <= 1 << 62);
        assert!(trace.devices.contains_key(&arrival.device));
    }
}

/// Changes `bytes` in one of the ways in which files get damaged.
fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    if bytes.is_empty() {
        bytes.push(rng.next_u64() as u8);
        return;
    }
    let length = bytes.len() as u64;
    let at = rng.below(length) as usize;
    let end = at + rng.below((length - at as u64).min(64) + 1) as usize;
    match rng.below(9) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.next_u64() as u8,
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let copy = bytes[at..end].to_vec();
            let _ = bytes.splice(at..at, copy);
        }
        5 => {
            let other = &seeds[rng.below(seeds.len() as u64) as usize];
            let from = rng.below(other.len() as u64) as usize;
            let _ = bytes.splice(at.., other[from..].iter().copied());
        }
        6 => bytes[at..end].fill(if rng.chance(1, 2) { 0xff } else { 0 }),
        7 => replace_number(rng, bytes, at),
        _ => {
            let alphabet = b",; .\n-eRWrwx0123456789";
            bytes[at] = alphabet[rng.below(alphabet.len() as u64) as usize];
        }
    }
}

/// Replaces the run of digits around `at` by a number at some border.
fn replace_number(rng: &mut Rng, bytes: &mut Vec<u8>, at: usize) {
    let digit = |byte: &u8| byte.is_ascii_digit();
    let start = at - bytes[..at].iter().rev().take_while(|byte| digit(byte)).count();
    let end = at + bytes[at..].iter().take_while(|byte| digit(byte)).count();
    let border = 1u128 << rng.below(66);
    let number = (border + u128::from(rng.below(3))).saturating_sub(1);
    let _ = bytes.splice(start..end, number.to_string().into_bytes());
}

/// A small valid file of every format.
fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "0,303567,3584,w,0.000000\n1, 55590, 3072, R, 0.026214, extra\n0,8,512,r,1.5\n",
        "128166372003061629,src1,0,Read,383496192,32768,113736\n\
         128166372003061129,src1,1,Write,1024,513,20\n",
        "0.000 0 200626176 4096 0\n223.412 0 3159347200 36864 1\n",
        "0 0 303567 7 0\n26214000 1 55590 6 1\n",
        "R Hit    1975456   4  15362.00000  56074.00000\nW Miss 1975280 8 3024.0 27896.0\n",
        "Free text.\n\nstart ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n\
         0.0 ;  37766853 ;  64 ; W ; 0.0 ; 0.0\n0.449518165 ; 14 ; 8 ; RA  ; 0.0 ; 0.25\n",
        "fio version 3 iolog\n0 /dev/a add\n1 /dev/a open\n301000 /dev/a read 4096 8192\n\
         301001 /dev/a trim 0 512\n301002 /dev/a sync 0 0\n301004 /dev/a close\n",
        "xterm-31657 \t   0     8   113314048  Rand    -427336      0        RM   4.666589 START\n\
         xterm-31657  .015820     8   113248520  Rand     -65536      0        RA   4.682409   C\n",
        "  8,0    0        1     0.000000000    77  Q FWS 100 + 8 [fio]\n\
           8,0    0        0     0.000002500     0  m   N bfq hello world\n\
           8,0    0        6     0.000003000    77  U   N [fio] 1\n\
           8,1    0       12     0.000108000    77  A   W 300 + 8 <- (253,3) 900\n\
           8,0    0       13     0.000109000    77  D   R 36 (12 00 00 00 24 00 ..) [fio]\n\
           8,0    0       15     0.000111000    77  C   W 100 + 8 [65531]\nCPU0 (sda):\n",
        "Timestamp,Response,IOType,LUN,Offset,Size\n1456106400.0098,0.000479,W,4,4096,512\n\
         1456106400.01,,,4,0,512\n1456106400.02,0.1,R,0,8192,512\n",
        "419,W,8792731648,16384,1577808000000018\n725,R,0,4096,1577808000000020\n",
        "1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n1538323202,0,8,0,1063\n",
        "7,0.000123,R,4096,8192\n9,1.5,W,0,512\n",
        "89966 4892 syslogd 904265560 8 W 6 0 531e779ad4bcd5f5a8c0ee5cd5f5a8c0\n\
         89967 2559 kjournald 57 16 R 6 1 531e779ad4bcd5f5a8c0ee5cd5f5a8c0\n",
        "BeginHeader\n  DiskRead, TimeStamp\nEndHeader\nDiskReadInit, 900, a.exe (2044)\n\
         DiskRead, 1500, a.exe (2044), 3580, 0xf, 0x2000, 0x1000, 600, 1, 0x06, 590\n",
        "fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 300 0\nf write 512 512\n",
    ];
    let mut seeds: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    seeds.extend(vscsi());
    seeds.extend(Layout::ALL.map(blktrace));
    seeds.extend([Layout::CUT_LITTLE, Layout::CUT_BIG].map(blktrace));
    seeds.push(gzip(texts[0].as_bytes()));
    seeds
}

fn vscsi() -> [Vec<u8>; 2] {
    let (mut one, mut two) = (vec![], vec![]);
    for (command, number) in [(0x2a, 0u64), (0x28, 1), (0x35, 2), (0x12, 3)] {
        one.extend([1, 0, 0, 0, 0, 16, 0, 0, 2, 0, 0, 0, command, 0, 0, 1]);
        two.extend([command, 0, 0, 2, 1, 0, 0, 0, 0, 16, 0, 0, 2, 0, 0, 0]);
        one.extend((number * 4096).to_le_bytes());
        two.extend((number * 4096).to_le_bytes());
        one.extend((1_000_000 + number).to_le_bytes());
        two.extend((1_000_000 + number).to_le_bytes());
        two.extend(750u64.to_le_bytes());
    }
    [one, two]
}

fn blktrace(layout: Layout) -> Vec<u8> {
    use Action::{Complete, Insert, Issue, Queue, Remap, Requeue, Unplug};
    let at = |nanos| Instant::from_nanos(1_000_000_000 + nanos);
    let device = DevT::new(8, 0);
    let mut records = vec![
        Record::timestamp(at(0), 1_700_000_000, 5),
        Record::process(at(1), 77, "fio"),
        Record::message(at(2), "bfq77SN add_rq"),
    ];
    for (number, action) in [Queue, Insert, Issue, Requeue, Issue, Complete].into_iter().enumerate()
    {
        let number = number as u32;
        records.push(Record {
            sector: Sector(2048),
            bytes: 4096,
            sequence: number + 1,
            device,
            cgroup: (number == 1).then_some(7),
            ..Record::event(action, at(u64::from(number) + 3)).with(Categories::WRITE)
        });
    }
    let remap = Payload::Remap { from: DevT::new(253, 0), to: device, sector: Sector(7) };
    records.push(Record { payload: Payload::Unplug(1), ..Record::event(Unplug, at(9)) });
    records.push(Record { payload: remap, ..Record::event(Remap, at(10)) });
    records.push(Record::event(Queue, at(11)).with(Categories::READ | Categories::FLUSH));
    let mut bytes = vec![];
    records.iter().for_each(|record| layout.encode(record, &mut bytes));
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    let mut encoder = flate2::read::GzEncoder::new(bytes, flate2::Compression::fast());
    std::io::Read::read_to_end(&mut encoder, &mut out).expect("memory can be read");
    out
}
