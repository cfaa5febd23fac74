//! Every replay format on fixtures small enough to check by eye, its traps, and its refusals.

mod common;

use base::{Bytes, Duration};
use common::{columns, read, read_with, refusal};
use std::io::Write;
use trace::{Flags, Format, Op, Options, TimeUnit};

fn as_format(format: Format, time_unit: Option<TimeUnit>) -> Options {
    Options { format: Some(format), time_unit, ..Options::default() }
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
    fn what_is_written_is_read() {
        let source = "1,src 1,0,Read,4096,8192,0\n31,src 1,1,Write,0,512,0\n";
        let trace = read(source);
        let mut log = vec![];
        trace.write_fio_iolog(&mut log).unwrap();
        let expected = "fio version 3 iolog\n0 src_1.0 add\n0 src_1.1 add\n0 src_1.0 open\n\
            0 src_1.1 open\n0 src_1.0 read 4096 8192\n3 src_1.1 write 0 512\n3 src_1.0 close\n\
            3 src_1.1 close\n";
        assert_eq!(String::from_utf8_lossy(&log), expected);
        assert_eq!(columns(&read(&log)), columns(&trace));
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

mod start_up {
    use super::*;

    #[test]
    fn start_ups_name_their_threads() {
        let line = "xterm-31657 \t   0     8   113314048  Rand  -427336   0   RM   4.666589 START";
        let next = "gnome-terminal.-7658  .015820  16  8  Seq  -65536  0  RA  4.682409  C";
        let trace = read(format!("{line}\n{next}\n"));
        assert_eq!(trace.format, Format::StartUp);
        let expected = [(0, Op::Read, 113_314_048, 4_096, 0), (15_820_000, Op::Read, 8, 8_192, 0)];
        assert_eq!(columns(&trace), expected);
        assert_eq!(trace.arrivals[1].pid, Some(7_658));
        assert_eq!(trace.arrivals[0].flags, Flags { metadata: true, ..Flags::default() });
        let wrong = line.replace("START", "X");
        assert!(refusal(wrong).starts_with("x:1: `xterm-31657"));
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
