use super::super::parse::parse_job_file;
use super::*;
use crate::Surroundings;
use base::Bytes;
use std::collections::BTreeSet;
use std::io;

const MIB: u64 = 1 << 20;

/// The job of one section, over one range of `len` bytes for each of its files.
fn walk(options: &str, len: u64) -> Walk {
    walk_within(options, len, len)
}

/// The same in files that go on to `room` bytes.
fn walk_within(options: &str, len: u64, room: u64) -> Walk {
    let whole = Range { start: MIB, end: MIB + room };
    walk_of(options, Range { start: MIB, end: MIB + len }, whole)
}

/// The walk of a job over parts of files.
fn walk_of(options: &str, part: Range, whole: Range) -> Walk {
    let context = Surroundings {
        page_size: 4096,
        ncpus: 2,
        mb_memory: 1024,
        habits: &guest::Profile::uml().habits,
        mount: None,
        environment: &|_| None,
        read_file: &|_| Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let text = format!("[job]\ndirect=1\n{options}\n");
    let job = parse_job_file("job.fio", &text, &context).unwrap().remove(0);
    let count = job.files.list.len();
    let amount = Bytes(part.size());
    let ranges = Ranges { files: vec![part; count], whole: vec![whole; count], amount };
    Walk::new(&job, &ranges, &Seeds::new(&job, 1))
}

fn take(walk: &mut Walk, count: usize) -> Vec<(Direction, Place)> {
    let mut places = Vec::new();
    while places.len() < count {
        let direction = walk.direction();
        match walk.next(direction) {
            Some(found) => places.push(found),
            None => break,
        }
    }
    places
}

/// The offsets within the range, in KiB.
fn offsets(options: &str, len: u64, count: usize) -> Vec<u64> {
    let places = take(&mut walk(options, len), count);
    places.iter().map(|(_, place)| (place.offset - MIB) / 1024).collect()
}

#[test]
fn very_many_zones_take_no_memory_until_they_are_written() {
    let options = "rw=randwrite\nbs=512\nzonemode=zbd\nzonesize=512";
    assert_eq!(take(&mut walk(options, 1 << 50), 100).len(), 100);
}

#[test]
fn very_many_blocks_take_no_memory_until_they_are_visited() {
    let places = take(&mut walk("rw=randread\nbs=512", 1 << 60), 1000);
    let different: BTreeSet<u64> = places.iter().map(|(_, place)| place.offset).collect();
    assert_eq!(different.len(), 1000);
}

#[test]
fn sequential_requests_follow_each_other_to_the_end() {
    assert_eq!(offsets("rw=read\nbs=4k", 16 << 10, 9), [0, 4, 8, 12]);
    assert_eq!(offsets("rw=write\nbs=4k", 18 << 10, 9), [0, 4, 8, 12]);
}

#[test]
fn holes_go_forward_and_backward() {
    // As fio 3.33 was seen to go: holes lead around the end of a file, but not to its very end,
    // and not around the end of a range within a file.
    assert_eq!(offsets("rw=read:8k\nbs=4k", 32 << 10, 5), [0, 12, 24, 0, 12]);
    assert_eq!(offsets("rw=read:8k\nbs=4k", 28 << 10, 5), [0, 12, 24]);
    let places = take(&mut walk_within("rw=read:8k\nbs=4k", 32 << 10, MIB), 9);
    assert_eq!(places.len(), 3);
    // Nor around the end of one that does not begin with its file.
    let part = Range { start: MIB, end: MIB + (32 << 10) };
    let whole = Range { start: MIB - (32 << 10), ..part };
    assert_eq!(take(&mut walk_of("rw=read:8k\nbs=4k", part, whole), 9).len(), 3);
    assert_eq!(offsets("rw=read:-8k\nbs=4k", 32 << 10, 9), [0, 24, 20, 16, 12, 8, 4, 0, 24]);
}

#[test]
fn the_random_map_visits_every_block_once() {
    for options in [
        "rw=randread\nbs=4k",
        "rw=randwrite\nbs=4k\nrandom_generator=lfsr\nnorandommap",
        "rw=randrw\nbs=4k",
        "rw=randread\nbs=4k\npercentage_random=50",
        "rw=randread:8\nbs=4k",
    ] {
        let places = take(&mut walk(options, MIB), 3000);
        let seen: BTreeSet<u64> = places.iter().map(|(_, place)| place.offset).collect();
        assert_eq!(seen.len(), 256, "{options}");
        let twice = options.contains("percentage") || options.contains(":8");
        assert!(twice || places.len() == 256, "{options}: {}", places.len());
    }
}

#[test]
fn blocks_of_several_sizes_cover_the_range_without_overlap() {
    let places = take(&mut walk("rw=randwrite\nbssplit=4k/50:16k/30:64k/20", MIB), 1000);
    let mut ranges: Vec<(u64, u64)> =
        places.iter().map(|(_, place)| (place.offset, place.length)).collect();
    ranges.sort_unstable();
    assert_eq!(ranges.iter().map(|(_, length)| length).sum::<u64>(), MIB);
    assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
}

#[test]
fn without_a_map_blocks_repeat_and_never_end() {
    let places = take(&mut walk("rw=randread\nbs=4k\nnorandommap", MIB), 10_000);
    assert_eq!(places.len(), 10_000);
    assert!(places.iter().all(|(_, place)| place.offset >= MIB && place.offset + 4096 <= 2 * MIB));
}

#[test]
fn runs_and_repetitions_follow_a_random_offset() {
    let run = offsets("rw=randread:4\nbs=4k\nnorandommap", 64 * MIB, 8);
    assert!((0..4).all(|i| run[i] == run[0] + 4 * i as u64), "{run:?}");
    assert_ne!(run[4], run[3] + 4);
    let same = offsets("rw=randread:3\nrw_sequencer=identical\nbs=4k", 64 * MIB, 6);
    assert!(same[0] == same[1] && same[1] == same[2] && same[2] != same[3], "{same:?}");
}

#[test]
fn the_mix_keeps_its_share() {
    let places = take(&mut walk("rw=randrw\nrwmixread=70\nbs=4k", 40 * MIB), 10_240);
    let reads = places.iter().filter(|(direction, _)| *direction == Direction::Read).count();
    assert_eq!(places.len(), 10_240);
    assert!((7_000..7_340).contains(&reads), "{reads}");
}

#[test]
fn trims_come_before_the_write_of_the_same_block() {
    let places = take(&mut walk("rw=randtrimwrite\nbs=4k", MIB), 1000);
    assert_eq!(places.len(), 512);
    for pair in places.chunks(2) {
        assert_eq!((pair[0].0, pair[1].0), (Direction::Trim, Direction::Write));
        assert_eq!(pair[0].1, pair[1].1);
    }
}

#[test]
fn strides_leave_out_what_lies_between() {
    let options = "rw=read\nbs=4k\nzonemode=strided\nzonesize=8k\nzoneskip=16k";
    assert_eq!(offsets(options, 64 << 10, 8), [0, 4, 24, 28, 48, 52, 0, 4]);
    let options = "rw=randread\nbs=4k\nzonemode=strided\nzonesize=8k\nzonerange=16k\nzoneskip=0";
    let zones: Vec<u64> = offsets(options, 64 << 10, 10).iter().map(|kib| kib / 16).collect();
    assert_eq!(zones, [0, 0, 1, 1, 2, 2, 3, 3, 0, 0]);
}

#[test]
fn emulated_zones_are_written_from_start_to_end() {
    let options = "rw=randwrite\nbs=4k\nzonemode=zbd\nzonesize=64k\nmax_open_zones=2";
    let places = take(&mut walk(options, 8 * (64 << 10)), 200);
    let mut pointer = [0_u64; 8];
    for (_, place) in &places {
        let (zone, inside) = ((place.offset - MIB) / 65_536, (place.offset - MIB) % 65_536);
        let expected = &mut pointer[zone as usize];
        assert!(inside == *expected || inside == 0, "zone {zone}: {inside} after {expected}");
        *expected = inside + 4096;
    }
    let recent: BTreeSet<u64> =
        places[..8].iter().map(|(_, place)| (place.offset - MIB) / 65_536).collect();
    assert!(recent.len() <= 2, "{recent:?}");
    let options = "rw=read\nbs=4k\nzonemode=zbd\nzonesize=64k\nzonecapacity=8k";
    assert_eq!(offsets(options, 2 * (64 << 10), 9), [0, 4, 64, 68]);
}

#[test]
fn files_take_turns_as_asked() {
    let files = |options: &str, count| -> Vec<usize> {
        let places = take(&mut walk(&format!("bs=4k\nnrfiles=3\n{options}"), 8 << 10), count);
        places.iter().map(|(_, place)| place.file).collect()
    };
    assert_eq!(files("rw=read", 9), [0, 1, 2, 0, 1, 2]);
    assert_eq!(files("rw=read\nfile_service_type=roundrobin:2", 9), [0, 0, 1, 1, 2, 2]);
    assert_eq!(files("rw=read\nfile_service_type=sequential", 9), [0, 0, 1, 1, 2, 2]);
    let random = files("rw=read\nfile_service_type=random", 9);
    assert_eq!(random.len(), 6);
}

#[test]
fn the_same_seed_walks_the_same_way_and_a_round_begins_anew() {
    let options = "rw=randrw\nbsrange=4k-16k\nrandom_distribution=zipf:1.1";
    let mut first = walk(options, 64 * MIB);
    assert_eq!(take(&mut first, 500), take(&mut walk(options, 64 * MIB), 500));
    let mut whole = walk("rw=randread\nbs=4k", MIB);
    // The walk ends with a request that finds no place, and begins anew.
    let once = take(&mut whole, 999);
    let again = take(&mut whole, 999);
    assert_eq!(again.len(), once.len());
    assert_ne!(again, once);
}
