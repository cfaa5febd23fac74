//! Turns one form of trace into another: `convert FILE|NAME OUT FORM`.
//!
//! FILE or NAME is a recording, or text of blkparse. FORM is `v7`, `v8`, `v7-big` or `v8-big` for
//! the kernel's records, of which `v7-plain` is what Debian's blkparse and fio read of any (without
//! control groups); `blkparse` for its text; `fio` for an I/O log of version 3, which takes every
//! format there is.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use trace::blktrace::{Conversion, Layout};
use trace::{Format, Options, blkparse, read_records, read_trace};

fn main() -> ExitCode {
    match convert() {
        Ok(text) => {
            eprintln!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("convert: {error}");
            ExitCode::from(2)
        }
    }
}

fn convert() -> Result<String, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, form] = arguments.as_slice() else {
        return Err("usage: convert FILE|NAME OUT FORM".into());
    };
    let conversion = match form.as_str() {
        "v7" => Some(Conversion { layout: Layout::V7_LITTLE, cgroups: true }),
        "v7-plain" => Some(Conversion { layout: Layout::V7_LITTLE, cgroups: false }),
        "v7-big" => Some(Conversion { layout: Layout::V7_BIG, cgroups: true }),
        "v8" => Some(Conversion { layout: Layout::V8_LITTLE, cgroups: true }),
        "v8-big" => Some(Conversion { layout: Layout::V8_BIG, cgroups: true }),
        "blkparse" | "fio" => None,
        _ => {
            let accepted = "v7, v7-plain, v7-big, v8, v8-big, blkparse, fio";
            return Err(format!("form `{form}`; accepted: {accepted}").into());
        }
    };
    let (name, from) = (from.clone(), Path::new(from));
    if form == "fio" {
        let trace = read_trace(from, &Options::default())?;
        let mut out = BufWriter::new(File::create(to)?);
        trace.write_fio_iolog(&mut out)?;
        out.flush()?;
        return Ok(format!("{} operations", trace.arrivals.len()));
    }
    // Text has no magic number.
    let format = read_trace(from, &Options::default()).map(|trace| trace.format);
    let records: Box<dyn Iterator<Item = _>> = match format {
        Ok(Format::Blkparse) => Box::new(blkparse::Reader::new(File::open(from)?, &name)),
        _ => Box::new(read_records(from)?),
    };
    let mut out = BufWriter::new(File::create(to)?);
    let said = match conversion {
        Some(conversion) => {
            let done = conversion.write(records, &mut out, to)?;
            let (written, left_out, simplified) = (done.written, done.left_out, done.simplified);
            format!("{written} records, {left_out} left out, {simplified} simplified")
        }
        None => format!("{} lines", blkparse::write(records, &mut out, to)?),
    };
    out.flush()?;
    Ok(said)
}
