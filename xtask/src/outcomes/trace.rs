//! Writes what happens in a run as text, a line an event, as `blkparse` has it: to be laid beside
//! the text of a recording.

use block::{Action, ContextId, Event, Op};
use machine::{Observer, TaskInfo};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A file that is written.
pub struct Writer {
    names: BTreeMap<ContextId, String>,
    out: BufWriter<File>,
    result: io::Result<()>,
}

impl Writer {
    /// A file of this name below a directory.
    pub fn create(directory: &Path, name: &str) -> io::Result<Writer> {
        fs::create_dir_all(directory)?;
        let out = BufWriter::new(File::create(directory.join(format!("{name}.txt")))?);
        Ok(Writer { names: BTreeMap::new(), out, result: Ok(()) })
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        self.result?;
        self.out.flush()
    }
}

impl Observer for Writer {
    fn meet(&mut self, who: &TaskInfo) {
        self.names.insert(who.context, who.name.clone());
    }

    fn see(&mut self, event: &Event) {
        let letter = match &event.action {
            Action::Queue => "Q",
            Action::BackMerge => "M",
            Action::FrontMerge => "F",
            Action::GetRequest => "G",
            Action::Sleep => "S",
            Action::Insert => "I",
            Action::Issue => "D",
            Action::Complete { .. } => "C",
            Action::Message { text, .. } => &format!("m {text}"),
            _ => return,
        };
        let op = match event.op {
            Op::Read => "R",
            Op::Write => "W",
            _ => "N",
        };
        let none = String::new();
        let name = self.names.get(&event.context).unwrap_or(&none);
        let seconds = event.at.as_nanos() as f64 / 1e9;
        let (sector, sectors) = (event.sector.0, event.sectors.0);
        let line = writeln!(
            self.out,
            "{seconds:.9} {} {name} {letter} {op} {sector} + {sectors}",
            event.context.0
        );
        if self.result.is_ok() {
            self.result = line;
        }
    }
}
