//! The public corpora of clouds, desktops and servers, on fixtures small enough to check by eye.

mod common;

use base::Duration;
use common::{columns, read, refusal};
use trace::{Format, Op};

const SECOND: u64 = 1_000_000_000;

#[test]
fn systor_has_a_heading_and_operations_that_never_got_a_reply() {
    let trace = read(
        "Timestamp,Response,IOType,LUN,Offset,Size\n\
         1456106400.009813000,0.000479000,W,4,2748653568,4096\n\
         1456106400.010000000,,,4,0,512\n\
         1456106400.011813000,0.001000000,R,0,8192,512\n",
    );
    assert_eq!(trace.format, Format::Systor);
    let expected = [(0, Op::Write, 5_368_464, 4_096, 0), (2_000_000, Op::Read, 16, 512, 1)];
    assert_eq!(columns(&trace), expected);
    assert_eq!(trace.arrivals[0].service, Some(Duration::from_micros(479)));
    assert_eq!(trace.devices.values().collect::<Vec<_>>(), ["4", "0"]);
    assert_eq!(
        trace.remarks,
        ["1 operations without a reply, whose kind is unknown, were skipped"]
    );
}

#[test]
fn alibaba_counts_microseconds_and_bytes() {
    let trace = read("419,W,8792731648,16384,1577808000000018\n725,R,0,4096,1577808000000020\n");
    assert_eq!(trace.format, Format::Alibaba);
    let expected = [(0, Op::Write, 17_173_304, 16_384, 0), (2_000, Op::Read, 0, 4_096, 1)];
    assert_eq!(columns(&trace), expected);
    assert_eq!(trace.devices.values().collect::<Vec<_>>(), ["419", "725"]);
}

#[test]
fn tencent_counts_seconds_and_sectors_and_seconds_are_spread() {
    let trace = read(
        "1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n\
         1538323200,6338696,8,1,1627\n1538323200,6338704,8,1,1627\n1538323202,0,8,0,1063\n",
    );
    assert_eq!(trace.format, Format::Tencent);
    let expected = [
        (0, Op::Read, 12_910_952, 65_536, 0),
        (SECOND / 4, Op::Write, 6_338_688, 4_096, 1),
        (SECOND / 2, Op::Write, 6_338_696, 4_096, 1),
        (SECOND * 3 / 4, Op::Write, 6_338_704, 4_096, 1),
        (SECOND * 2, Op::Read, 0, 4_096, 0),
    ];
    assert_eq!(columns(&trace), expected);
    let remark = "times are whole seconds; the arrivals of each were spread over it evenly";
    assert_eq!(trace.remarks, [remark]);
}

#[test]
fn k5cloud_names_the_volume_first() {
    let trace = read("7,0.000123,R,4096,8192\n9,1.5,W,0,512\n");
    assert_eq!(trace.format, Format::K5Cloud);
    let later = 1_500_000_000 - 123_000;
    assert_eq!(columns(&trace), [(0, Op::Read, 8, 8_192, 0), (later, Op::Write, 0, 512, 1)]);
}

#[test]
fn fiu_counts_nanoseconds_and_sectors() {
    let hash = "531e779ad4bcd5f5a8c0ee5cd5f5a8c0";
    let trace = read(format!(
        "89966250995 4892 syslogd 904265560 8 W 6 0 {hash}\n\
         89966251995 2559 kjournald 57 16 R 6 1 {hash}\n"
    ));
    assert_eq!(trace.format, Format::Fiu);
    let expected = [(0, Op::Write, 904_265_560, 4_096, 0), (1_000, Op::Read, 57, 8_192, 1)];
    assert_eq!(columns(&trace), expected);
    assert_eq!(trace.arrivals[0].pid, Some(4892));
    assert_eq!(trace.devices.values().collect::<Vec<_>>(), ["6,0", "6,1"]);
}

#[test]
fn windows_writes_an_event_when_the_operation_is_done() {
    let trace = read(
        "BeginHeader\n  DiskRead,  TimeStamp,  Process Name ( PID), ThreadID, IrpPtr, ByteOffset\n\
         EndHeader\n\
         DiskReadInit, 900, sqlservr.exe (2044), 3580, 0xfffffa80\n\
         DiskRead, 1500, sqlservr.exe (2044), 3580, 0xfffffa80, 0x00002000, 0x00001000, 600, 1, \
         0x060043, 590, Normal, 0, 0xfffffa80, \"C:\\a, b\"\n\
         DiskWrite, 2000, System ( 4), 12, 0xfffffa81, 0x200, 0x400, 1000, 0, 0x0, 990\n",
    );
    assert_eq!(trace.format, Format::Etw);
    let expected = [(900_000, Op::Read, 16, 4_096, 1), (1_000_000, Op::Write, 1, 1_024, 0)];
    assert_eq!(columns(&trace), expected);
    assert_eq!(trace.arrivals[0].pid, Some(2044));
    assert_eq!(trace.arrivals[1].pid, Some(4));
    assert_eq!(trace.arrivals[1].service, Some(Duration::from_millis(1)));
    assert_eq!(trace.remarks, ["1 events other than DiskRead and DiskWrite were skipped"]);
}

#[test]
fn a_wrong_line_is_refused_with_its_number() {
    let cases = [
        (
            "419,W,8792731648,16384,1577808000000018\n419,W,8792731648,16384\n",
            "x:2: 4 columns in `419,W,8792731648,16384`; accepted: \
             device,R|W,offset,bytes,microseconds",
        ),
        (
            "1538323200,12910952,128,0,1063\n1538323200,12910952,128,2,1063\n",
            "x:2: operation `2`; accepted: 0 or 1",
        ),
        (
            "7,0.000123,R,4096,8192\n7,0.0a,R,4096,8192\n",
            "x:2: timestamp `0.0a`; accepted: a decimal number of at most 146 years, as 12 or 0.5",
        ),
        ("BeginHeader\nDiskRead\n", "x:3: definitions without an end; accepted: EndHeader"),
        (
            "BeginHeader\nEndHeader\nDiskRead, 1, a (1), 1, 0x0, 12, 0x200, 1, 0\n",
            "x:3: `12`; accepted: a hexadecimal number, as 0x1000",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text), expected);
    }
}
