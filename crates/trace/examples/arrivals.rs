//! What a trace asks of a disk: `cargo run --example arrivals -- FILE [FORMAT [TIME-UNIT]]`.

use std::path::Path;
use std::process::ExitCode;
use trace::{Op, Options, read_trace};

fn main() -> ExitCode {
    match summary() {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn summary() -> Result<String, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("FILE is missing")?;
    let format = arguments.next().map(|name| name.parse()).transpose()?;
    let time_unit = arguments.next().map(|name| name.parse()).transpose()?;
    let trace = read_trace(Path::new(&path), &Options { format, time_unit, ..Options::default() })?;

    let devices: Vec<&str> = trace.devices.values().map(String::as_str).collect();
    let last = trace.arrivals.last().ok_or("a trace is never empty")?.at;
    let mut text = format!("{}: devices {}, {last} s", trace.format, devices.join(" "));
    for op in [Op::Read, Op::Write, Op::Flush, Op::Discard] {
        let of_op = || trace.arrivals.iter().filter(|arrival| arrival.op == op);
        let bytes: u64 = of_op().map(|arrival| arrival.bytes.0).sum();
        text += &format!("; {} {op:?} {} KiB", of_op().count(), bytes / 1024);
    }
    let served = trace.arrivals.iter().filter(|arrival| arrival.service.is_some()).count();
    text += &format!("; {served} with service time");
    for remark in &trace.remarks {
        text += &format!("\n  {remark}");
    }
    Ok(text)
}
