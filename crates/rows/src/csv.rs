//! Rows as text with commas; no cell has any, or a quote, so nothing is quoted.

use crate::columns::Cell;
use std::fs::File;
use std::io::{self, BufWriter, Write};

pub(crate) struct Writer {
    sink: BufWriter<File>,
    names: Vec<&'static str>,
    has_heading: bool,
}

impl Writer {
    pub fn new(file: File, names: Vec<&'static str>) -> Writer {
        Writer { sink: BufWriter::new(file), names, has_heading: false }
    }

    fn heading(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.has_heading, true) {
            return Ok(());
        }
        writeln!(self.sink, "{}", self.names.join(","))
    }

    pub fn add(&mut self, cells: impl Iterator<Item = Cell>) -> io::Result<()> {
        self.heading()?;
        for (place, cell) in cells.enumerate() {
            if place > 0 {
                self.sink.write_all(b",")?;
            }
            match cell {
                Cell::Number(number) => write!(self.sink, "{number}")?,
                Cell::Text(text) => self.sink.write_all(text.as_bytes())?,
                Cell::Nothing => {}
            }
        }
        self.sink.write_all(b"\n")
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.heading()?;
        self.sink.flush()
    }
}
