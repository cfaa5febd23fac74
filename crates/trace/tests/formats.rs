//! Every replay format on fixtures small enough to check by eye, its traps, and its refusals.

use base::{Bytes, Duration, Instant, Sector};
use std::io::{Cursor, Write};
use trace::blktrace::{Action, Categories, DevT, Layout, Payload, Record};
use trace::{Arrival, Error, Flags, Format, Op, Options, TimeUnit, Trace, read_stream};

fn read_with(bytes: &[u8], options: &Options) -> Result<Trace, Error> {
    read_stream(Box::new(Cursor::new(bytes.to_vec())), "x", options)
}

fn read(bytes: impl AsRef<[u8]>) -> Trace {
    read_with(bytes.as_ref(), &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(bytes: impl AsRef<[u8]>) -> String {
    read_with(bytes.as_ref(), &Options::default()).unwrap_err().to_string()
}

fn as_format(format: Format, time_unit: Option<TimeUnit>) -> Options {
    Options { format: Some(format), time_unit, ..Options::default() }
}

/// Nanoseconds, operation, sector, bytes, device: the columns that all formats have.
fn columns(trace: &Trace) -> Vec<(u64, Op, u64, u64, u32)> {
    let row = |a: &Arrival| (a.at.as_nanos(), a.op, a.sector.0, a.bytes.0, a.device);
    trace.arrivals.iter().map(row).collect()
}

mod spc {
    use super::*;

    #[test]
    fn addresses_are_blocks_but_sizes_are_bytes() {
        let trace = read("0,303567,3584,w,0.000000\n1, 55590, 3072, R, 0.026214, extra, 7\n");
        assert_eq!(trace.format, Format::Spc);
        let expected =
            [(0, Op::Write, 303_567, 3_584, 0), (26_214_000, Op::Read, 55_590, 3_072, 1)];
        assert_eq!(columns(&trace), expected);
        assert_eq!(trace.devices.values().collect::<Vec<_>>(), ["0", "1"]);
    }

    #[test]
    fn another_size_of_block_is_an_option() {
        let options = Options { spc_block: Some(Bytes(4096)), ..Options::default() };
        let trace = read_with(b"0,100,8192,r,1.5\n", &options).unwrap();
        assert_eq!(columns(&trace), [(1_500_000_000, Op::Read, 800, 8192, 0)]);
        let wrong = Options { spc_block: Some(Bytes(1000)), ..Options::default() };
        let message = read_with(b"0,100,8192,r,1.5\n", &wrong).unwrap_err().to_string();
        assert_eq!(message, "x: block size 1000; accepted: a multiple of 512 bytes");
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_number() {
        let head = "0,1,512,r,0.0\n\n";
        assert_eq!(
            refusal(format!("{head}0,1,512,q,0.5\n")),
            "x:3: opcode `q`; accepted: r, R, w or W"
        );
        assert_eq!(
            refusal(format!("{head}0,1,51")),
            "x:3: 3 fields in `0,1,51`; accepted: ASU,LBA,bytes,r|w,seconds and any further fields"
        );
        assert_eq!(
            refusal(format!("{head}0,-1,512,r,0.5")),
            "x:3: LBA `-1`; accepted: a whole number from 0"
        );
        assert_eq!(
            refusal(format!("{head}0,18446744073709551615,512,r,0.5")),
            "x:3: extent of `0,18446744073709551615,512,r,0.5`; accepted: fewer than 2^32 \
             sectors that end before sector 2^55"
        );
    }
}

mod msr {
    use super::*;

    #[test]
    fn times_are_ticks_of_100_ns_and_may_be_out_of_order() {
        let trace = read(
            "128166372003061629,src1,0,Read,383496192,32768,113736\n\
             128166372003061129,src1,1,Write,1024,513,20\n",
        );
        assert_eq!(trace.format, Format::Msr);
        let expected = [(0, Op::Write, 2, 1_024, 1), (50_000, Op::Read, 749_016, 32_768, 0)];
        assert_eq!(columns(&trace), expected);
        assert_eq!(trace.arrivals[1].service, Some(Duration::from_nanos(11_373_600)));
        assert_eq!(trace.devices.values().collect::<Vec<_>>(), ["src1.0", "src1.1"]);
        assert_eq!(
            trace.remarks,
            [
                "1 arrivals were earlier than the one before: sorted",
                "1 arrivals were widened to whole sectors"
            ]
        );
    }

    #[test]
    fn a_device_is_chosen_by_name() {
        let text = "1,src1,0,Read,0,512,0\n2,src1,1,Write,0,512,0\n";
        let choose = |name: &str| Options { device: Some(name.into()), ..Options::default() };
        let trace = read_with(text.as_bytes(), &choose("src1.1")).unwrap();
        assert_eq!(columns(&trace), [(100, Op::Write, 0, 512, 1)]);
        let message = read_with(text.as_bytes(), &choose("sda")).unwrap_err().to_string();
        assert_eq!(message, "x: no device `sda` in it; accepted: src1.0 or src1.1");
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_number() {
        let head = "128166372003061629,src1,0,Read,0,512,0\n";
        assert_eq!(
            refusal(format!("{head}128166372003061629,src1,0,Flush,0,512,0\n")),
            "x:2: type `Flush`; accepted: Read or Write"
        );
        assert_eq!(
            refusal(format!("{head}200000000000000000,src1,0,Read,0,512,0\n")),
            "x:2: timestamp `200000000000000000`; accepted: FILETIME ticks before the year 2185"
        );
    }
}

mod disksim {
    use super::*;

    const TEXT: &str = "0 0 303567 7 0\n26214000 1 55590 6 1\n";

    #[test]
    fn the_unit_of_time_is_told_and_never_guessed() {
        let message = refusal(TEXT);
        assert!(message.starts_with("x: five columns as in `0 0 303567 7 0` are disksim"));
        let options = as_format(Format::DiskSim, None);
        assert_eq!(
            read_with(TEXT.as_bytes(), &options).unwrap_err().to_string(),
            "x: disksim files differ in their unit of time and do not state it; accepted: the \
             time unit s, ms (DiskSim's own), us or ns (ssdsim's)"
        );
        for unit in TimeUnit::ALL {
            let options = as_format(Format::DiskSim, Some(unit));
            let trace = read_with(TEXT.as_bytes(), &options).unwrap();
            let at = 26_214_000 * unit.nanos();
            let expected = [(0, Op::Write, 303_567, 3_584, 0), (at, Op::Read, 55_590, 3_072, 1)];
            assert_eq!(columns(&trace), expected);
        }
    }

    #[test]
    fn a_unit_for_a_format_that_has_its_own_is_refused() {
        let options = Options { time_unit: Some(TimeUnit::Seconds), ..Options::default() };
        assert_eq!(
            read_with(b"0,1,512,r,0.0\n", &options).unwrap_err().to_string(),
            "x: time unit s, but spc has a unit of its own; accepted: no time unit for this format"
        );
    }

    #[test]
    fn a_cut_of_msr_counts_milliseconds_and_bytes() {
        let text = b"0.000 0 200626176 4096 0\n223.412 0 3159347200 36864 1\n";
        let trace = read_with(text, &as_format(Format::MsrCut, None)).unwrap();
        let expected =
            [(0, Op::Write, 391_848, 4_096, 0), (223_412_000, Op::Read, 6_170_600, 36_864, 0)];
        assert_eq!(columns(&trace), expected);
    }

    #[test]
    fn pauses_of_the_validation_form_lie_behind_completions() {
        let trace = read(
            "R Hit    1975456   4  15362.00000  56074.00000\n\
             W Hit    1975280   8   3024.00000  27896.00000\n",
        );
        assert_eq!(trace.format, Format::DiskSimValidation);
        let second = (56_074 + 15_362 + 27_896) * 1_000;
        let expected =
            [(56_074_000, Op::Read, 1_975_456, 2_048, 0), (second, Op::Write, 1_975_280, 4_096, 0)];
        assert_eq!(columns(&trace), expected);
        assert_eq!(trace.arrivals[1].service, Some(Duration::from_micros(3_024)));
        assert_eq!(trace.arrivals[1].think, Some(Duration::from_micros(27_896)));
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_number() {
        let options = as_format(Format::DiskSim, Some(TimeUnit::Milliseconds));
        let message = |text: &str| read_with(text.as_bytes(), &options).unwrap_err().to_string();
        assert_eq!(
            message("0 0 8 8 0\n1 0 8 8\n"),
            "x:2: 4 columns in `1 0 8 8`; accepted: time device sector sectors flags (bit 0 reads)"
        );
        assert_eq!(
            message("1e3 0 8 8 0\n"),
            "x:1: time `1e3`; accepted: a decimal number of at most 146 years, as 12 or 0.5"
        );
        assert_eq!(
            refusal("R Hit 8 8 1.0 1.0\nX Hit 8 8 1.0 1.0\n"),
            "x:2: direction `X`; accepted: R or W"
        );
    }
}

mod blkreplay {
    use super::*;

    const HEADING: &str = "Any text.\n\nstart ; sector; length ; op ;  replay_delay=0\n";

    #[test]
    fn free_text_ends_at_the_heading() {
        let trace = read(format!(
            "{HEADING}      0.000000000 ;  37766853 ;  64 ; W ; 0.0 ; 0.0\n\
             0.449518165 ; 14 ; 8 ; RA  ; 0.0 ; 0.25\n"
        ));
        assert_eq!(trace.format, Format::Blkreplay);
        let expected =
            [(0, Op::Write, 37_766_853, 32_768, 0), (449_518_165, Op::Read, 14, 4_096, 0)];
        assert_eq!(columns(&trace), expected);
        assert_eq!(trace.arrivals[0].service, None);
        assert_eq!(trace.arrivals[1].service, Some(Duration::from_millis(250)));
        assert_eq!(trace.arrivals[1].flags, Flags { readahead: true, ..Flags::default() });
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_number() {
        assert_eq!(
            refusal(format!("{HEADING}0.0 ; 8 ; 8 ; T\n")),
            "x:4: operation `T`; accepted: [F]R|W|D|N[F][A][S][M], as R, RA, WS or FWS"
        );
        let options = as_format(Format::Blkreplay, None);
        assert_eq!(
            read_with(b"no heading\n", &options).unwrap_err().to_string(),
            "x:2: end of file; accepted: a heading `start ; sector; …`"
        );
    }
}

mod fio {
    use super::*;

    #[test]
    fn version_3_has_microseconds() {
        let trace = read(
            "fio version 3 iolog\n0 /dev/a add\n0 /dev/b add\n1 /dev/a open\n2 /dev/b open\n\
             301000 /dev/b read 4096 8192\n301001 /dev/a trim 0 512\n301002 /dev/a sync 0 0\n\
             301003 /dev/a write 0 512\n301004 /dev/a close\n",
        );
        assert_eq!(trace.format, Format::FioIolog);
        let expected = [
            (301_000_000, Op::Read, 8, 8_192, 1),
            (301_001_000, Op::Discard, 0, 512, 0),
            (301_002_000, Op::Flush, 0, 0, 0),
            (301_003_000, Op::Write, 0, 512, 0),
        ];
        assert_eq!(columns(&trace), expected);
        assert_eq!(trace.devices.values().collect::<Vec<_>>(), ["/dev/a", "/dev/b"]);
    }

    #[test]
    fn wait_of_version_2_is_milliseconds_since_the_start() {
        let trace = read(
            "fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 300 0\nf read 512 512\n\
             f wait 1500\nf datasync 0 0\nf wait 900 0\nf write 0 512\n",
        );
        let times: Vec<_> = columns(&trace).iter().map(|row| row.0 / 1_000_000).collect();
        assert_eq!(times, [0, 300, 1500, 1500]);
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_number() {
        let three = "fio version 3 iolog\n0 f add\n";
        let actions = "add, open, close, read, write, trim, sync, datasync, wait (version 2)";
        assert_eq!(
            refusal("fio version 1 iolog\n"),
            "x:1: first line `fio version 1 iolog`; accepted: `fio version 2 iolog` or \
             `fio version 3 iolog`"
        );
        assert_eq!(
            refusal(format!("{three}5 f read 0 512\n")),
            "x:3: file `f` is not open; accepted: a file after its line `open`"
        );
        assert_eq!(
            refusal(format!("{three}5 g open\n")),
            "x:3: file `g` was not added; accepted: a file after its line `add`"
        );
        assert_eq!(
            refusal(format!("{three}5 f wait 0 512\n")),
            format!("x:3: action `wait`; accepted: {actions}")
        );
        assert_eq!(
            refusal(format!("{three}5 f\n")),
            format!("x:3: `5 f`; accepted: FILE ACTION [OFFSET LENGTH], where ACTION is {actions}")
        );
    }
}

mod vscsi {
    use super::*;

    /// command, bytes, sector, microseconds
    type Row = (u16, u32, u64, u64);

    fn version_1((command, length, sector, micros): Row) -> Vec<u8> {
        let mut out = vec![];
        [1u32, length, 2].iter().for_each(|field| out.extend(field.to_le_bytes()));
        [command, 0x0100].iter().for_each(|field| out.extend(field.to_le_bytes()));
        [sector, micros].iter().for_each(|field| out.extend(field.to_le_bytes()));
        out
    }

    fn version_2((command, length, sector, micros): Row) -> Vec<u8> {
        let mut out = vec![];
        [command, 0x0200].iter().for_each(|field| out.extend(field.to_le_bytes()));
        [1u32, length, 2].iter().for_each(|field| out.extend(field.to_le_bytes()));
        [sector, micros, 750].iter().for_each(|field| out.extend(field.to_le_bytes()));
        out
    }

    const ROWS: [Row; 4] = [
        (0x2a, 512, 42_932_745, 5_000_100),
        (0x12, 36, 0, 5_000_150),
        (0x28, 8192, 7, 5_000_200),
        (0x35, 0, 0, 5_000_300),
    ];

    #[test]
    fn the_versions_have_their_fields_in_another_order() {
        let one: Vec<u8> = ROWS.into_iter().flat_map(version_1).collect();
        let two: Vec<u8> = ROWS.into_iter().flat_map(version_2).collect();
        let expected = [
            (0, Op::Write, 42_932_745, 512, 0),
            (100_000, Op::Read, 7, 8_192, 0),
            (200_000, Op::Flush, 0, 0, 0),
        ];
        for (bytes, service) in [(one, None), (two, Some(Duration::from_micros(750)))] {
            let trace = read(bytes);
            assert_eq!(trace.format, Format::Vscsi);
            assert_eq!(columns(&trace), expected);
            assert!(trace.arrivals.iter().all(|arrival| arrival.service == service));
            let skipped = "1 SCSI commands that neither read, write nor flush were skipped";
            assert_eq!(trace.remarks, [skipped]);
        }
    }

    #[test]
    fn a_torn_last_record_is_reported_and_a_damaged_one_refused() {
        let mut bytes: Vec<u8> = ROWS.into_iter().flat_map(version_1).collect();
        bytes.truncate(100);
        let trace = read(&bytes);
        assert_eq!(trace.arrivals.len(), 2);
        assert_eq!(trace.remarks[0], "x: the last record, at byte 96, is cut off after 4 bytes");
        bytes[64 + 15] = 9;
        assert_eq!(
            refusal(&bytes),
            "x at byte 64: damaged: a record of another version; accepted: the version of the \
             first records"
        );
    }
}

mod blktrace {
    use super::*;

    const DISK: DevT = DevT::new(8, 0);

    fn event(micros: u64, action: Action, sector: u64, bytes: u32, flags: Categories) -> Record {
        let at = Instant::from_nanos(1_000_000_000 + micros * 1_000);
        let sector = Sector(sector);
        Record { sector, bytes, pid: 77, device: DISK, ..Record::event(action, at) }.with(flags)
    }

    fn numbered(mut records: Vec<Record>) -> Vec<Record> {
        let events = records.iter_mut().filter(|record| !record.action.is_note());
        events.zip(1..).for_each(|(record, number)| record.sequence = number);
        records
    }

    fn file(layout: Layout, records: &[Record]) -> Vec<u8> {
        let mut bytes = vec![];
        records.iter().for_each(|record| layout.encode(record, &mut bytes));
        bytes
    }

    /// A read that is split over two completions, a write with everything, a pure flush.
    fn story() -> Vec<Record> {
        use Action::{Complete, GetRequest, Insert, Issue, Plug, Queue};
        let (read, write) = (Categories::READ, Categories::WRITE);
        let durable = write | Categories::FLUSH | Categories::FUA | Categories::META;
        let start = Instant::from_nanos(900_000_000);
        let none = Categories::NONE;
        numbered(vec![
            Record::timestamp(start, 1_700_000_000, 123),
            Record::process(start, 77, "fio"),
            event(1, Queue, 100, 65_536, read | Categories::SYNC),
            event(2, GetRequest, 100, 65_536, read | Categories::SYNC),
            event(3, Plug, 0, 0, none),
            event(4, Insert, 100, 65_536, read | Categories::SYNC),
            event(5, Issue, 100, 65_536, read | Categories::SYNC),
            event(6, Queue, 0, 0, read | Categories::FLUSH),
            event(7, Queue, 500, 4_096, durable),
            event(8, Queue, 900, 8_192, write | Categories::DISCARD),
            event(9, Queue, u64::MAX, 36, read | Categories::PC),
            event(50, Complete, 100, 32_768, read),
            event(90, Complete, 164, 32_768, read),
        ])
    }

    fn expected() -> Vec<(u64, Op, u64, u64, u32)> {
        let device = DISK.to_bits();
        vec![
            (0, Op::Read, 100, 65_536, device),
            (5_000, Op::Flush, 0, 0, device),
            (6_000, Op::Write, 500, 4_096, device),
            (7_000, Op::Discard, 900, 8_192, device),
        ]
    }

    #[test]
    fn all_versions_and_byte_orders_give_the_same_arrivals() {
        for layout in Layout::ALL {
            let trace = read(file(layout, &story()));
            assert_eq!(trace.format, Format::Blktrace);
            assert_eq!(columns(&trace), expected(), "{layout:?}");
            assert_eq!(trace.devices.values().collect::<Vec<_>>(), ["8,0"]);
            let skipped = "1 Q events without data, as passthrough commands, were skipped";
            assert_eq!(trace.remarks, [skipped]);
        }
    }

    #[test]
    fn a_cgroup_before_the_payload_changes_nothing() {
        let grouped = story().into_iter().map(|record| Record { cgroup: Some(4242), ..record });
        let trace = read(file(Layout::V7_LITTLE, &grouped.collect::<Vec<_>>()));
        assert_eq!(columns(&trace), expected());
    }

    #[test]
    fn service_ends_when_the_last_sector_is_complete() {
        let trace = read(file(Layout::V7_LITTLE, &story()));
        assert_eq!(trace.arrivals[0].service, Some(Duration::from_micros(89)));
        assert_eq!(trace.arrivals[2].service, None);
    }

    #[test]
    fn flags_come_from_categories() {
        let trace = read(file(Layout::V7_LITTLE, &story()));
        let flags: Vec<Flags> = trace.arrivals.iter().map(|arrival| arrival.flags).collect();
        let none = Flags::default();
        assert_eq!(flags[0], Flags { sync: true, ..none });
        assert_eq!(flags[1], none);
        assert_eq!(flags[2], Flags { preflush: true, fua: true, metadata: true, ..none });
        assert_eq!(trace.arrivals[0].pid, Some(77));
    }

    #[test]
    fn without_q_events_arrivals_are_i_events_and_without_those_d_events() {
        let is = |actions: &[Action]| {
            let keep = |record: &Record| actions.contains(&record.action);
            file(Layout::V7_LITTLE, &numbered(story().into_iter().filter(keep).collect()))
        };
        let inserted = read(is(&[Action::Insert, Action::Issue, Action::Complete]));
        assert_eq!(columns(&inserted), expected()[..1]);
        assert_eq!(inserted.arrivals[0].service, Some(Duration::from_micros(86)));
        assert_eq!(
            inserted.remarks,
            ["device 8,0 has no Q events: arrivals are I events, of merged requests"]
        );
        let issued = read(is(&[Action::Issue, Action::Complete]));
        assert_eq!(issued.arrivals[0].service, Some(Duration::from_micros(85)));
        assert_eq!(
            issued.remarks,
            ["device 8,0 has no Q or I events: arrivals are D events, as the scheduler left them"]
        );
    }

    #[test]
    fn a_request_that_was_requeued_arrives_once() {
        use Action::{Complete, Issue, Requeue};
        let read_of = |micros, action| event(micros, action, 8, 4_096, Categories::READ);
        let records =
            [read_of(1, Issue), read_of(2, Requeue), read_of(3, Issue), read_of(9, Complete)];
        let trace = read(file(Layout::V7_LITTLE, &numbered(records.to_vec())));
        assert_eq!(columns(&trace), [(0, Op::Read, 8, 4_096, DISK.to_bits())]);
        assert_eq!(trace.arrivals[0].service, Some(Duration::from_micros(8)));
    }

    #[test]
    fn torn_and_lost_records_are_reported() {
        let mut records = story();
        records.remove(5);
        let mut bytes = file(Layout::V7_LITTLE, &records);
        bytes.truncate(bytes.len() - 5);
        let trace = read(&bytes);
        let at = bytes.len() - 43;
        assert_eq!(
            trace.remarks[0],
            format!("x: the last record, at byte {at}, is cut off after 43 bytes")
        );
        assert_eq!(trace.remarks[1], "the recording lost 1 events");
    }

    #[test]
    fn an_extent_that_no_disk_has_is_refused_with_its_byte() {
        let records = vec![
            event(1, Action::Queue, 8, 4_096, Categories::READ),
            event(2, Action::Queue, 1 << 60, 4_096, Categories::READ),
        ];
        assert_eq!(
            refusal(file(Layout::V7_LITTLE, &records)),
            "x at byte 48: the extent of the record; accepted: fewer than 2^32 sectors that end \
             before sector 2^55"
        );
    }

    #[test]
    fn only_version_8_knows_zones_and_zeroes() {
        let zone = Categories::WRITE | Categories::from_bits(1 << 17);
        let zeroes = Categories::WRITE | Categories::WRITE_ZEROES;
        let records = vec![
            event(1, Action::Queue, 8, 4_096, zeroes),
            event(2, Action::Queue, 8, 4_096, zone),
        ];
        let trace = read(file(Layout::V8_LITTLE, &records));
        assert_eq!(columns(&trace), [(0, Op::Write, 8, 4_096, DISK.to_bits())]);
        assert_eq!(
            trace.remarks,
            [
                "1 events of writes of zeroes were taken for writes, as version 7 has them",
                "1 operations on zones were skipped"
            ]
        );
    }

    #[test]
    fn the_payload_of_an_event_is_no_arrival() {
        let unplug = Record {
            payload: Payload::Unplug(16),
            ..event(1, Action::Unplug, 0, 0, Categories::NONE)
        };
        let message = refusal(file(Layout::V7_LITTLE, &[unplug]));
        assert!(message.starts_with("x: nothing to replay in it (read as blktrace)"), "{message}");
    }
}

mod compression {
    use super::*;
    use flate2::{Compression, write::GzEncoder};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(vec![], Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_compressed_file_is_decompressed_on_the_way() {
        let text = b"0,303567,3584,w,0.000000\n";
        assert_eq!(read(gzip(text)), read(text));
        let two = [gzip(text), gzip(b"0,8,512,r,1.0\n")].concat();
        assert_eq!(read(two).arrivals.len(), 2);
    }

    #[test]
    fn a_damaged_compressed_file_is_refused() {
        let mut lines = String::new();
        for number in 0..20_000 {
            lines += &format!("0,{},512,r,{number}.0\n", number * 7919 % 100_003);
        }
        let mut bytes = gzip(lines.as_bytes());
        bytes.truncate(bytes.len() / 2);
        let message = refusal(&bytes);
        assert!(message.starts_with("x:") && message.contains("accepted"), "{message}");
    }
}
