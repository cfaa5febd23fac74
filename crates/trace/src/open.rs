//! The way in: from a path, or a stream, to a [`Trace`].

use crate::arrival::{Clock, Draft, Trace};
use crate::blkparse;
use crate::blktrace::{Merge, Reader, recording_files};
use crate::detect::detect;
use crate::error::{Error, Place};
use crate::format::{Format, TimeUnit};
use crate::formats::blktrace::{self, Records};
use crate::formats::{blkreplay, columns, disksim, etw, fio_iolog, msr, spc, start_up, vscsi};
use crate::text::{Lines, shown};
use base::{Bytes, Sector};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// What the caller knows of a trace that the trace may not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Its format, where content alone does not tell.
    pub format: Option<Format>,
    /// The unit of its times: needed by formats in which it varies, refused by all others.
    pub time_unit: Option<TimeUnit>,
    /// The size of the blocks in which an SPC trace counts addresses; 512 bytes when not given.
    pub spc_block: Option<Bytes>,
    /// Keep only the device of this name, one of [`Trace::devices`].
    pub device: Option<String>,
}

/// Bytes from anywhere, which another thread may read.
pub type Source = Box<dyn Read + Send>;

/// As much of a file as is looked at to tell its format; free text before the heading of a
/// blkreplay file is longer than one might think.
const HEAD: u64 = 64 * 1024;

/// A stream with its beginning, which was read to look at and will be read again.
type Peeked = io::Chain<Cursor<Vec<u8>>, Source>;

/// Reads the trace at `path`.
///
/// A path that names no file but a recording, `NAME` of `NAME.blktrace.0` and so on, is all files
/// of the recording, merged. A file compressed with gzip is decompressed on the way.
pub fn read_trace(path: &Path, options: &Options) -> Result<Trace, Error> {
    let name = path.display().to_string();
    if path.is_file() {
        let mut trace = read_stream(Box::new(open(path)?), &name, options)?;
        if trace.format == Format::Blktrace {
            trace.remarks.extend(siblings(path));
        }
        return Ok(trace);
    }
    let files = recording_files(path);
    if files.is_empty() {
        let cause = why_no_file(path);
        let accepted = "a trace file, or NAME where NAME.blktrace.0 exists";
        return Err(Error::new(&name, Place::Whole, cause, accepted));
    }
    let mut readers = vec![];
    for file in files {
        let name = file.display().to_string();
        let (_, stream) = peek(Box::new(open(&file)?), &name)?;
        readers.push(Reader::new(stream, &name));
    }
    let format = options.format.unwrap_or(Format::Blktrace);
    if format != Format::Blktrace {
        let cause = format!("is a recording of several files, which {format} is not");
        return Err(Error::new(&name, Place::Whole, cause, Format::Blktrace.name()));
    }
    check_options(&name, format, options)?;
    let mut draft = Draft::default();
    blktrace::read(Records::Binary(Merge::new(readers)), &mut draft)?;
    keep_device(&name, draft.finish(&name, format, Clock::Absolute)?, options)
}

/// What a path is that leads to no file.
fn why_no_file(path: &Path) -> &'static str {
    match path.metadata() {
        Ok(it) if it.is_dir() => "is a directory",
        Ok(_) => "is no regular file",
        Err(_) => "no such file",
    }
}

/// The records of a recording of the kernel's format, with everything that is in them: those of
/// the file at `path`, or, where that is no file, of all files of the recording called so.
pub fn read_records(path: &Path) -> Result<Merge<Source>, Error> {
    let files = if path.is_file() { vec![path.to_path_buf()] } else { recording_files(path) };
    if files.is_empty() {
        let accepted = "a blktrace file, or NAME where NAME.blktrace.0 exists";
        let name = path.display().to_string();
        return Err(Error::new(&name, Place::Whole, why_no_file(path), accepted));
    }
    let mut readers: Vec<Reader<Source>> = vec![];
    for file in files {
        let name = file.display().to_string();
        let (_, stream) = peek(Box::new(open(&file)?), &name)?;
        readers.push(Reader::new(Box::new(stream), &name));
    }
    Ok(Merge::new(readers))
}

/// The events of a recording in the kernel's format or as `blkparse` printed them.
///
/// The content tells which; a file of another format is refused.
pub fn read_events(path: &Path, format: Option<Format>) -> Result<Records<Source>, Error> {
    if !path.is_file() {
        return read_records(path).map(Records::Binary);
    }
    let name = path.display().to_string();
    let (head, source) = peek(Box::new(open(path)?), &name)?;
    match format.map_or_else(|| tell_format(&head, &name), Ok)? {
        Format::Blktrace => read_records(path).map(Records::Binary),
        Format::Blkparse => Ok(Records::Text(blkparse::Reader::new(Box::new(source), &name))),
        other => {
            let cause = format!("is of the format {other}, which has no events of requests");
            let accepted = "a recording of blktrace, or what blkparse prints of one; with -s \
                            SCHEDULER any trace, to be replayed";
            Err(Error::new(&name, Place::Whole, cause, accepted))
        }
    }
}

/// Reads a trace from a stream, which errors call `name`.
pub fn read_stream(source: Source, name: &str, options: &Options) -> Result<Trace, Error> {
    let (head, source) = peek(source, name)?;
    let format = match options.format {
        Some(format) => format,
        None => tell_format(&head, name)?,
    };
    check_options(name, format, options)?;
    let mut draft = Draft::default();
    let mut clock = Clock::FromStart;
    match format {
        Format::Blktrace => {
            clock = Clock::Absolute;
            let records = Merge::new(vec![Reader::new(source, name)]);
            blktrace::read(Records::Binary(records), &mut draft)?;
        }
        Format::Blkparse => {
            clock = Clock::Absolute;
            blktrace::read(Records::Text(blkparse::Reader::new(source, name)), &mut draft)?;
        }
        Format::StartUp => {
            clock = Clock::Absolute;
            start_up::read(&mut Lines::new(source, name), &mut draft)?;
        }
        Format::Vscsi => {
            clock = Clock::Absolute;
            vscsi::read(source, name, &head, &mut draft)?;
        }
        Format::Msr => {
            clock = Clock::Absolute;
            msr::read(&mut Lines::new(source, name), &mut draft)?;
        }
        Format::FioIolog => fio_iolog::read(&mut Lines::new(source, name), &mut draft)?,
        Format::Spc => {
            let block = options.spc_block.map_or(1, |block| block.0 / Sector::SIZE);
            spc::read(&mut Lines::new(source, name), &mut draft, block)?;
        }
        Format::MsrCut => disksim::read_msr_cut(&mut Lines::new(source, name), &mut draft)?,
        Format::DiskSim => {
            let unit = options.time_unit.expect("the options were checked");
            disksim::read_ascii(&mut Lines::new(source, name), &mut draft, unit)?;
        }
        Format::DiskSimValidation => {
            disksim::read_validation(&mut Lines::new(source, name), &mut draft)?;
        }
        Format::Blkreplay => blkreplay::read(&mut Lines::new(source, name), &mut draft)?,
        Format::Etw => etw::read(&mut Lines::new(source, name), &mut draft)?,
        Format::Systor | Format::Alibaba | Format::Tencent | Format::K5Cloud | Format::Fiu => {
            clock = Clock::Absolute;
            columns::read(format, &mut Lines::new(source, name), &mut draft)?;
        }
    }
    keep_device(name, draft.finish(name, format, clock)?, options)
}

/// The format of a file, by its beginning; where that is damaged, by the name of the file.
fn tell_format(head: &[u8], name: &str) -> Result<Format, Error> {
    match detect(head) {
        Ok(format) => Ok(format),
        Err(_) if is_recording_name(name) && !head.is_empty() => Ok(Format::Blktrace),
        Err(cause) => {
            let accepted = format!("a trace of known format, or the format: {}", Format::names());
            Err(Error::new(name, Place::Whole, cause, accepted))
        }
    }
}

/// Whether a file is called as the recorder of the kernel calls its files.
fn is_recording_name(name: &str) -> bool {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.rsplit_once(".blktrace.").is_some_and(|(_, cpu)| cpu.parse::<u32>().is_ok())
}

fn check_options(name: &str, format: Format, options: &Options) -> Result<(), Error> {
    let refuse = |cause: String, accepted: &str| {
        Err(Error::new(name, Place::Whole, cause, accepted.to_owned()))
    };
    let units = "the time unit s, ms (DiskSim's own), us or ns (ssdsim's)";
    if format.needs_time_unit() && options.time_unit.is_none() {
        let cause = format!("{format} files differ in their unit of time and do not state it");
        return refuse(cause, units);
    }
    if let Some(unit) = options.time_unit.filter(|_| !format.needs_time_unit()) {
        let cause = format!("time unit {unit}, but {format} has a unit of its own");
        return refuse(cause, "no time unit for this format");
    }
    if let Some(block) = options.spc_block {
        if format != Format::Spc {
            return refuse(
                format!("block size {}, but not an spc trace", block.0),
                "no block size",
            );
        }
        let whole = block.0 > 0 && block.0.is_multiple_of(Sector::SIZE);
        if !whole {
            return refuse(format!("block size {}", block.0), "a multiple of 512 bytes");
        }
    }
    Ok(())
}

fn keep_device(name: &str, mut trace: Trace, options: &Options) -> Result<Trace, Error> {
    let Some(wanted) = &options.device else { return Ok(trace) };
    let Some(device) = trace.devices.iter().find(|device| device.1 == wanted).map(|d| *d.0) else {
        let names: Vec<&str> = trace.devices.values().map(String::as_str).collect();
        let cause = format!("no device `{}` in it", shown(wanted));
        return Err(Error::new(name, Place::Whole, cause, names.join(" or ")));
    };
    trace.arrivals.retain(|arrival| arrival.device == device);
    trace.devices.retain(|number, _| *number == device);
    if trace.arrivals.is_empty() {
        let cause = format!("nothing to replay of device `{}`", shown(wanted));
        return Err(Error::new(name, Place::Whole, cause, "a device that was used"));
    }
    Ok(trace)
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|error| Error::io(&path.display().to_string(), Place::Whole, &error))
}

/// Reads the beginning of a stream, behind its compression if it has one.
fn peek(source: Source, name: &str) -> Result<(Vec<u8>, Peeked), Error> {
    let (head, source) = take_head(source, 2, name)?;
    let compressed = head == [0x1f, 0x8b];
    let source = source_again(&head, source);
    let plain: Source =
        if compressed { Box::new(MultiGzDecoder::new(source)) } else { Box::new(source) };
    let (head, source) = take_head(plain, HEAD, name)?;
    Ok((head.clone(), source_again(&head, source)))
}

fn take_head(source: Source, length: u64, name: &str) -> Result<(Vec<u8>, Source), Error> {
    let mut head = vec![];
    let mut limited = source.take(length);
    limited
        .read_to_end(&mut head)
        .map_err(|error| Error::io(name, Place::Byte(head.len() as u64), &error))?;
    Ok((head, limited.into_inner()))
}

fn source_again(head: &[u8], source: Source) -> Peeked {
    Cursor::new(head.to_vec()).chain(source)
}

/// A remark when the file at `path` is one of several of a recording.
fn siblings(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (base, _) = name.rsplit_once(".blktrace.")?;
    let base = path.with_file_name(base);
    let files = recording_files(&base).len();
    (files > 1).then(|| {
        let base = base.display();
        format!("one of the {files} files of a recording; {base} is all of them")
    })
}
