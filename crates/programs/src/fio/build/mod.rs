//! From the settings of a section to its [`Job`]: defaults, and the rules between options.
//!
//! The rules are those of the manual. Where fio changes a setting without a word (a queue depth
//! that a synchronous engine cannot keep), the job is changed the same way and carries a note.

mod donor;
mod logs;
mod pace;
mod parts;

use base::{Bytes, Duration};

use super::engine::{self, Engine};
use super::error::{ParseError, Place};
use super::job::{
    Caching, CpuLoad, Creation, Direction, Durability, ExitWhat, Extent, FileKind, Files, Goal,
    Job, Pattern, Queue, Room, Scsi, ScsiWrite, Share, SyncMode, Timing, Verify, Zones,
};
use super::mix::BlockSizes;
use super::settings::{Settings, Value};
use crate::Surroundings;
use machine::calls::RangeSync;
use machine::task::Advice;

/// The first clone of the job that `settings` describe; `place` is where its section begins.
pub fn build(
    name: &str,
    place: &Place,
    settings: &Settings,
    context: &Surroundings<'_>,
) -> Result<Job, ParseError> {
    let notes = settings.notes().to_vec();
    let mut builder = Builder { name, place, clone: 0, settings, context, notes };
    let files = builder.files();
    let in_files = |it: &Files| it.list.iter().any(|file| file.kind == FileKind::File);
    let has_files = files.as_ref().is_ok_and(in_files);
    if let Some(refusal) = settings.refusal(has_files) {
        return Err(refusal.clone());
    }
    let files = files?;
    let engine = builder.engine()?;
    let pattern = builder.pattern()?;
    let durability = builder.durability()?;
    if !has_files || durability.direct {
        builder.check_sectors(engine, &pattern)?;
    }
    let job = Job {
        name: builder.text("name").unwrap_or(name).to_owned(),
        place: place.clone(),
        number: 0,
        clone: 0,
        clones: builder.count("numjobs")?,
        group: 0,
        stage: 0,
        wait_for: builder.text("wait_for").map(str::to_owned),
        files,
        engine,
        queue: builder.queue(engine)?,
        extent: builder.extent()?,
        timing: builder.timing(),
        pace: builder.pace(&pattern)?,
        goal: Goal {
            latency: builder.latency()?,
            max_latency: builder.durations("max_latency"),
            steady: builder.steady()?,
        },
        durability,
        caching: builder.caching(&pattern),
        creation: builder.creation(),
        verify: builder.verify(),
        process: builder.process(engine)?,
        donor: builder.donor(engine)?,
        scsi: builder.scsi(),
        cpu: builder.cpu(engine)?,
        exit: builder.exit(),
        group_reporting: builder.switch("group_reporting"),
        reported: builder.switch("stats"),
        logs: builder.logs(),
        options: settings.typed().to_vec(),
        global_options: settings.typed_globally().to_vec(),
        ignored: settings.ignored(has_files).cloned().collect(),
        notes: builder.notes,
        pattern,
    };
    Ok(job)
}

/// The files of clone `clone` of the same job: each makes up names of its own.
pub fn files_of_clone(
    name: &str,
    place: &Place,
    clone: u32,
    settings: &Settings,
    context: &Surroundings<'_>,
) -> Result<Files, ParseError> {
    Builder { name, place, clone, settings, context, notes: Vec::new() }.files()
}

struct Builder<'a, 'c> {
    name: &'a str,
    place: &'a Place,
    clone: u32,
    settings: &'a Settings,
    context: &'a Surroundings<'c>,
    notes: Vec<String>,
}

impl Builder<'_, '_> {
    fn engine(&mut self) -> Result<Engine, ParseError> {
        let found = engine::find(self.settings.engine());
        let engine = found.map_err(|(message, nearest)| {
            self.error("ioengine", message).accepts(engine::accepted()).nearest(nearest)
        })?;
        match engine {
            Engine::Null => self.note("ioengine null moves no data: the device stays idle"),
            Engine::CpuIo => self.note("ioengine cpuio only keeps cores busy"),
            Engine::Mmap => self.check_offset()?,
            _ if engine.needs_files() && self.context.mount.is_none() => {
                let message = format!("ioengine {} needs a file system", self.settings.engine());
                let accepted = match engine {
                    Engine::Exchange => "fs = \"ext4\"",
                    _ => "fs = \"ext4\" or \"xfs\"",
                };
                return Err(self.error("ioengine", message).accepts(accepted));
            }
            Engine::Sg => self
                .note("SCSI commands run as direct I/O; on Linux they go past the I/O scheduler"),
            _ => {}
        }
        Ok(engine)
    }

    /// Observed: fio 3.33 maps the beginning of a file, whatever the offset, and maps it once more
    /// for each request.
    fn check_offset(&self) -> Result<(), ParseError> {
        let has = |option: &&str| self.share(option).is_some_and(|it| it != Share::Bytes(0));
        match ["offset", "offset_increment"].into_iter().find(has) {
            Some(option) => {
                let message = "fio 3.33 goes to the beginning of a file that it maps";
                Err(self.error(option, message).accepts("0 with ioengine=mmap"))
            }
            None => Ok(()),
        }
    }

    /// A raw device is read and written in whole sectors.
    fn check_sectors(
        &mut self,
        engine: Engine,
        pattern: &super::job::Pattern,
    ) -> Result<(), ParseError> {
        if !engine.does_block_io() {
            return Ok(());
        }
        if self.switch("bs_unaligned") {
            return Err(self.error(
                "bs_unaligned",
                "not available on a raw device: it is read and written in sectors of 512 bytes",
            ));
        }
        let whole = |bytes: Bytes| bytes.0.is_multiple_of(base::Sector::SIZE) && bytes.0 > 0;
        for direction in Direction::ALL {
            let sizes = &pattern.sizes[direction as usize];
            let all_whole = match sizes {
                BlockSizes::Fixed(size) | BlockSizes::Range(size, _) => whole(*size),
                BlockSizes::Split(sizes) => sizes.iter().all(|(size, _)| whole(*size)),
            };
            if pattern.directions.include(direction) && !all_whole {
                let option = ["bssplit", "bsrange", "bs"]
                    .into_iter()
                    .find(|option| self.settings.get(option).is_some())
                    .unwrap_or("bs");
                return Err(self
                    .error(option, "a raw device is read and written in sectors of 512 bytes")
                    .accepts("multiples of 512"));
            }
        }
        if pattern.alignment.iter().any(|alignment| !whole(*alignment)) {
            let message = "random offsets on a raw device are multiples of 512 bytes";
            return Err(self.error("ba", message).accepts("multiples of 512"));
        }
        Ok(())
    }

    fn queue(&mut self, engine: Engine) -> Result<Queue, ParseError> {
        let mut depth = self.count("iodepth")?;
        if depth > 1 && !engine.is_asynchronous() {
            self.note(format!(
                "iodepth={depth} has no effect: ioengine {} waits for each request",
                self.settings.engine()
            ));
            depth = 1;
        }
        let batch = match self.count_or_zero("iodepth_batch")? {
            0 => depth,
            batch => batch.min(depth),
        };
        let complete_min = self.count_or_zero("iodepth_batch_complete_min")?.min(depth);
        let complete_max = match self.count_or_zero("iodepth_batch_complete_max")? {
            0 => complete_min.max(1),
            most if most < complete_min => {
                let message = format!("{most} is below iodepth_batch_complete_min={complete_min}");
                return Err(self.error("iodepth_batch_complete_max", message));
            }
            most => most.min(depth),
        };
        let low = match self.count_or_zero("iodepth_low")? {
            0 => depth,
            low => low.min(depth),
        };
        Ok(Queue {
            depth,
            batch,
            complete_min,
            complete_max,
            low,
            serialize_overlap: self.switch("serialize_overlap"),
            offload: self.choice("io_submit_mode") == "offload",
        })
    }

    fn extent(&mut self) -> Result<Extent, ParseError> {
        if self.switch("fill_device") {
            self.note("fill_device: the job goes on until the device is full");
        }
        let number_ios = self.number("number_ios").filter(|number| *number > 0);
        Ok(Extent {
            size: self.share("size").filter(|size| *size != Share::Bytes(0)),
            io_size: self.share("io_size").filter(|size| *size != Share::Bytes(0)),
            offset: self.share("offset").unwrap_or(Share::Bytes(0)),
            offset_increment: self.share("offset_increment").unwrap_or(Share::Bytes(0)),
            offset_align: Bytes(self.number("offset_align").unwrap_or(0)),
            fill_device: self.switch("fill_device"),
            number_ios,
            loops: self.count("loops")?,
            zones: self.zones()?,
        })
    }

    fn zones(&mut self) -> Result<Option<Zones>, ParseError> {
        let bytes = |builder: &Self, name| Bytes(builder.number(name).unwrap_or(0));
        let size = bytes(self, "zonesize");
        let skip = self.share("zoneskip").unwrap_or(Share::Bytes(0));
        // Before there was a zonemode, giving a size was enough.
        let is_given = self.settings.get("zonemode").is_some();
        let mode = if is_given || size == Bytes(0) { self.choice("zonemode") } else { "strided" };
        if mode == "none" {
            return Ok(None);
        }
        if size == Bytes(0) {
            return Err(self.error("zonemode", format!("{mode} needs a zonesize")));
        }
        if size.0 % base::Sector::SIZE != 0 {
            let message = "zones are whole sectors of 512 bytes";
            return Err(self.error("zonesize", message));
        }
        if mode == "strided" {
            let range = match bytes(self, "zonerange") {
                Bytes(0) => size,
                range => range,
            };
            return Ok(Some(Zones::Strided { size, range, skip }));
        }
        if skip != Share::Bytes(0) {
            return Err(self.error("zoneskip", "must be 0 with zonemode=zbd"));
        }
        let capacity = match bytes(self, "zonecapacity") {
            Bytes(0) => size,
            capacity => Bytes(capacity.0.min(size.0)),
        };
        let open = self.count_or_zero("max_open_zones")?;
        let own = self.count_or_zero("job_max_open_zones")?;
        let open = if open == 0 || own == 0 { open.max(own) } else { open.min(own) };
        self.note("zonemode=zbd: the device is conventional; its zones are emulated, all full");
        Ok(Some(Zones::Emulated { size, capacity, open }))
    }

    fn timing(&mut self) -> Timing {
        let [from, to, _] = self.numbers("startdelay");
        let from = from.unwrap_or(0);
        let to = to.unwrap_or(from);
        let delay = |micros: i64| Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        let runtime = self.duration("runtime").filter(|runtime| !runtime.is_zero());
        let mut time_based = self.switch("time_based");
        if time_based && runtime.is_none() {
            self.note("time_based has no effect without runtime");
            time_based = false;
        }
        Timing {
            start_delay: (delay(from.min(to)), delay(from.max(to))),
            runtime,
            time_based,
            ramp: self.duration("ramp_time").unwrap_or(Duration::ZERO),
        }
    }

    fn durability(&mut self) -> Result<Durability, ParseError> {
        let direct = self.switch("direct");
        let every = |builder: &Self, name| {
            let every = builder.number(name).unwrap_or(0);
            u32::try_from(every).ok().filter(|every| *every > 0)
        };
        Ok(Durability {
            range: self.range_sync()?,
            sync: match self.choice("sync") {
                "sync" | "1" => SyncMode::Sync,
                "dsync" => SyncMode::DataSync,
                _ => SyncMode::None,
            },
            fsync: every(self, "fsync"),
            fdatasync: every(self, "fdatasync"),
            end_fsync: self.switch("end_fsync"),
            fsync_on_close: self.switch("fsync_on_close"),
            direct,
        })
    }

    fn range_sync(&self) -> Result<Option<(RangeSync, u32)>, ParseError> {
        let Some(text) = self.text("sync_file_range").filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        let refuse = || {
            self.error("sync_file_range", format!("'{text}' is not understood"))
                .accepts("wait_before, write, wait_after, with commas, then :NUMBER")
        };
        let (words, every) = text.split_once(':').unwrap_or((text, ""));
        let mut sync = RangeSync::default();
        for word in words.split(',') {
            match word {
                "wait_before" => sync.waits_before = true,
                "write" => sync.writes = true,
                "wait_after" => sync.waits_after = true,
                _ => return Err(refuse()),
            }
        }
        let every = if every.is_empty() { Ok(0) } else { every.parse() };
        let every: u32 = every.map_err(|_| refuse())?;
        Ok((every > 0).then_some((sync, every)))
    }

    fn creation(&self) -> Creation {
        // Observed: with fill_device nothing is set aside.
        let room = match self.choice("fallocate") {
            _ if self.switch("fill_device") => Room::None,
            "none" | "0" => Room::None,
            "keep" => Room::KeepSize,
            "truncate" => Room::Truncate,
            _ => Room::Reserve,
        };
        Creation {
            room,
            is_serial: self.switch("create_serialize"),
            fsync: self.switch("create_fsync"),
            on_open: self.switch("create_on_open"),
            only: self.switch("create_only"),
            is_allowed: self.switch("allow_file_create"),
            pre_read: self.switch("pre_read"),
            overwrite: self.switch("overwrite"),
            append: self.switch("file_append"),
            unlinks: self.switch("unlink"),
            unlinks_each_loop: self.switch("unlink_each_loop"),
        }
    }

    fn caching(&self, pattern: &Pattern) -> Caching {
        let hint = match self.choice("fadvise_hint") {
            "0" => None,
            "random" => Some(Advice::Random),
            "sequential" => Some(Advice::Sequential),
            _ if pattern.random => Some(Advice::Random),
            _ => Some(Advice::Sequential),
        };
        // Observed: what was read beforehand is not dropped.
        let invalidate = self.switch("invalidate") && !self.switch("pre_read");
        Caching { invalidate, hint }
    }

    fn verify(&mut self) -> Option<Verify> {
        let method = self.choice("verify");
        if method == "0" {
            return None;
        }
        if method != "null" {
            self.note("verify: blocks are read back, their contents are not compared");
        }
        Some(Verify {
            only: self.switch("verify_only"),
            after_writes: self.switch("do_verify"),
            backlog: self.number("verify_backlog").filter(|backlog| *backlog > 0),
            backlog_batch: self
                .number("verify_backlog_batch")
                .and_then(|batch| u32::try_from(batch).ok())
                .filter(|batch| *batch > 0),
        })
    }

    fn scsi(&mut self) -> Scsi {
        let mode = self.choice("sg_write_mode");
        let write = match mode {
            "write_and_verify" | "verify" => ScsiWrite::WriteAndVerify,
            _ if mode.starts_with("verify_bytchk") => {
                self.note("VERIFY reads the medium; what it holds is not compared");
                ScsiWrite::Verify
            }
            _ => ScsiWrite::Write,
        };
        Scsi { write, fua: self.switch("writefua") }
    }

    fn cpu(&mut self, engine: Engine) -> Result<Option<CpuLoad>, ParseError> {
        if engine != Engine::CpuIo {
            return Ok(None);
        }
        let percent = self.number("cpuload").and_then(|load| u8::try_from(load).ok());
        let percent = percent.filter(|load| *load > 0).ok_or_else(|| {
            self.error("ioengine", "cpuio needs cpuload, the percentage of time to keep busy")
        })?;
        let chunk = self.number("cpuchunks").unwrap_or(0).max(1);
        Ok(Some(CpuLoad {
            percent,
            chunk: Duration::from_micros(chunk),
            exit_on_io_done: self.switch("exit_on_io_done"),
        }))
    }

    fn exit(&self) -> Option<ExitWhat> {
        self.switch("exitall").then(|| match self.choice("exit_what") {
            "all" => ExitWhat::All,
            "stonewall" => ExitWhat::Stonewall,
            _ => ExitWhat::Group,
        })
    }
}

/// Reading settings.
impl Builder<'_, '_> {
    fn error(&self, option: &str, message: impl Into<String>) -> ParseError {
        ParseError::new(&self.settings.place_of(option, self.place), message).option(option)
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// A text that is not empty unless it was given so.
    fn text(&self, name: &str) -> Option<&str> {
        match self.settings.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => self.settings.row(name).map(|row| row.default).filter(|it| !it.is_empty()),
        }
    }

    fn switch(&self, name: &str) -> bool {
        self.settings.value(name) == Some(Value::Switch(true))
    }

    /// Whether a switch was given and is on, whatever it is otherwise.
    fn asks_for(&self, name: &str) -> bool {
        self.settings.get(name) == Some(&Value::Switch(true))
    }

    /// A word of a list; none where the engine does not know the option.
    fn choice(&self, name: &str) -> &'static str {
        match self.settings.value(name) {
            Some(Value::Choice(word, _)) => word,
            _ => "",
        }
    }

    fn share(&self, name: &str) -> Option<Share> {
        match self.settings.value(name) {
            Some(Value::Share(share)) => Some(share),
            _ => None,
        }
    }

    fn numbers(&self, name: &str) -> [Option<i64>; 3] {
        match self.settings.value(name) {
            Some(Value::Numbers(numbers)) => numbers,
            _ => [None; 3],
        }
    }

    /// A number that cannot be below zero; 0 where none is set.
    fn number(&self, name: &str) -> Option<u64> {
        self.numbers(name)[0].map_or(Some(0), |number| u64::try_from(number).ok())
    }

    fn count_or_zero(&self, name: &str) -> Result<u32, ParseError> {
        let number = self.number(name).unwrap_or(0);
        u32::try_from(number).map_err(|_| self.error(name, format!("{number} is too large")))
    }

    /// A number of times; fio takes 0 for 1.
    fn count(&self, name: &str) -> Result<u32, ParseError> {
        self.count_or_zero(name).map(|count| count.max(1))
    }

    fn duration(&self, name: &str) -> Option<Duration> {
        self.durations(name)[0]
    }

    fn durations(&self, name: &str) -> [Option<Duration>; 3] {
        let micros = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        // Longer than anything that happens; the conversion to nanoseconds must not overflow.
        const LONGEST: u64 = u64::MAX / 1_000_000;
        self.numbers(name)
            .map(|number| micros(number).map(|micros| Duration::from_micros(micros.min(LONGEST))))
    }
}
