//! Formats told apart by content.

use crate::format::Format;
use crate::formats::{blkreplay, columns, etw, vscsi};
use crate::text::{decimal, shown};
use crate::{blkparse, blktrace};

/// The format of a file that starts with `head`; else the reason why that cannot be told.
pub(crate) fn detect(head: &[u8]) -> Result<Format, String> {
    if head.is_empty() {
        return Err("the file is empty".to_owned());
    }
    if blktrace::looks_like_blktrace(head) {
        return Ok(Format::Blktrace);
    }
    if vscsi::version(head).is_some() {
        return Ok(Format::Vscsi);
    }
    let text = String::from_utf8_lossy(head);
    if text.starts_with("fio version ") {
        return Ok(Format::FioIolog);
    }
    if text.lines().any(blkreplay::is_heading) {
        return Ok(Format::Blkreplay);
    }
    let mut filled = text.lines().filter(|line| !line.trim().is_empty());
    if filled.clone().find(|line| !blkparse::may_precede(line)).is_some_and(blkparse::is_event) {
        return Ok(Format::Blkparse);
    }
    match filled.next() {
        Some(line) => detect_line(line),
        None => Err("the file is blank".to_owned()),
    }
}

/// The format of a text file whose first line is `line`.
fn detect_line(line: &str) -> Result<Format, String> {
    let number = |field: &str| decimal(field, 1).is_some();
    let commas: Vec<&str> = line.split(',').map(str::trim).collect();
    if commas.len() == 7 && matches!(commas[3], "Read" | "Write") {
        return Ok(Format::Msr);
    }
    if let Some(format) = detect_columns(line, &commas) {
        return Ok(format);
    }
    if commas.len() >= 5 && matches!(commas[3], "r" | "R" | "w" | "W") && number(commas[4]) {
        return Ok(Format::Spc);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() == 6 && matches!(words[0], "R" | "W") && matches!(words[1], "Hit" | "Miss") {
        return Ok(Format::DiskSimValidation);
    }
    if words.len() == 10 && matches!(words[4], "Seq" | "Rand") {
        return Ok(Format::StartUp);
    }
    let begin = shown(line);
    if words.len() == 5 && words.iter().all(|word| number(word)) {
        let (one, other) = (Format::DiskSim, Format::MsrCut);
        return Err(format!(
            "five columns as in `{begin}` are {one} ({}) or {other} ({}), and nothing in the file \
             tells which",
            one.columns(),
            other.columns()
        ));
    }
    Err(format!("no known format begins with `{begin}`"))
}

/// The corpus whose columns these are.
fn detect_columns(line: &str, commas: &[&str]) -> Option<Format> {
    let is_op = |field: &str| matches!(field, "R" | "W");
    let numbers = |fields: &[&str]| fields.iter().all(|field| decimal(field, 1).is_some());
    if line.trim() == etw::HEADING[0] {
        return Some(Format::Etw);
    }
    if line.starts_with(columns::SYSTOR_HEADING) {
        return Some(Format::Systor);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_hash = |word: &str| word.len() == 32 && word.bytes().all(|it| it.is_ascii_hexdigit());
    match (commas, words.as_slice()) {
        ([time, response, op, lun, rest @ ..], _)
            if rest.len() == 2 && (is_op(op) || op.is_empty()) =>
        {
            numbers(&[time, response, lun]).then_some(Format::Systor)
        }
        ([_, op, rest @ ..], _) if rest.len() == 3 && is_op(op) => {
            numbers(rest).then_some(Format::Alibaba)
        }
        ([_, time, op, rest @ ..], _) if rest.len() == 2 && is_op(op) => {
            numbers(&[time, rest[0], rest[1]]).then_some(Format::K5Cloud)
        }
        ([_, _, _, "0" | "1", _], _) if numbers(commas) => Some(Format::Tencent),
        (_, [_, _, _, _, _, op, _, _, hash]) if is_op(op) && is_hash(hash) => Some(Format::Fiu),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_formats_are_told_apart_by_their_first_line() {
        let cases: [(&str, Format); 14] = [
            ("0,303567,3584,w,0.000000\n", Format::Spc),
            ("0, 303567, 3584, R, 0.5, more, fields\n", Format::Spc),
            ("128166372003061629,src1,0,Read,383496192,32768,113736\n", Format::Msr),
            ("R Hit    1975456   4  15362.00000  56074.00000\n", Format::DiskSimValidation),
            ("fio version 3 iolog\n", Format::FioIolog),
            ("fio version 1 iolog\n", Format::FioIolog),
            ("Timestamp,Response,IOType,LUN,Offset,Size\n", Format::Systor),
            ("1456106400.001,0.0005,,4,1,2\n", Format::Systor),
            ("419,W,8792731648,16384,1577808000000018\n", Format::Alibaba),
            ("1538323200,12910952,128,0,1063\n", Format::Tencent),
            ("7,0.000123,R,4096,8192\n", Format::K5Cloud),
            ("89 4892 syslogd 904265560 8 W 6 0 531e779ad4bcd5f5a8c0ee5cd5f5a8c0\n", Format::Fiu),
            ("BeginHeader\n", Format::Etw),
            ("Made by\n\nstart ; sector; length ; op ;  replay_delay=0\n", Format::Blkreplay),
        ];
        for (text, format) in cases {
            assert_eq!(detect(text.as_bytes()), Ok(format), "{text}");
        }
    }

    #[test]
    fn five_columns_are_ambiguous_and_never_guessed() {
        let reason = detect(b"0.000 0 200626176 4096 0\n").unwrap_err();
        assert!(reason.contains("disksim (time") && reason.contains("msr-cut (milli"), "{reason}");
    }

    #[test]
    fn what_is_no_trace_is_said_to_be_none() {
        assert!(detect(b"").unwrap_err().contains("empty"));
        assert!(detect(b"\n \n").unwrap_err().contains("blank"));
        assert!(detect(b"\x7fELF\x02").unwrap_err().contains("no known format"));
    }
}
