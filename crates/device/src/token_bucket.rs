//! A cloud volume: a fast store behind limits on commands and bytes per second.
//!
//! Each limit is a leaky bucket: a peak rate with a short depth, and a baseline rate that refills
//! credits from which bursts above it are paid. A command leaves the gate when all buckets can
//! pay for it, in order of arrival. A provider may let out only every so often what has waited.
//! Then it takes a latency drawn from a distribution, with no limit on how many are served at
//! once. Leaves out what the provider does not document: what neighbours do, and merging of small
//! sequential commands.

use base::agenda::Agenda;
use base::{Duration, Instant, Rng};
use block::command::{Command, CommandOp, Facts, Stage, Tag};

use crate::Device;
use crate::distribution::{self, Jitter};
use crate::stages::Stages;
use params::Accept::{Rate, Real, Size, Time};
use params::Error;
use params::{Section, Table, spec};

const COMMANDS: Section = Section {
    name: "commands",
    required: true,
    specs: &[
        spec("baseline", Real(1.0, 1e8, "1/s")),
        spec("credits", Real(1.0, 1e12, "commands")),
        spec("peak", Real(1.0, 1e8, "1/s")),
        spec("peak_depth", Time(0.0, 1e10)),
        spec("unit", Size(512.0, 1e9)),
        spec("slice", Time(0.0, 1e10)),
    ],
};
const BYTES: Section = Section {
    name: "bytes",
    required: true,
    specs: &[
        spec("baseline", Rate(1e5, 1e12)),
        spec("credits", Size(4096.0, 1e16)),
        spec("peak", Rate(1e5, 1e12)),
        spec("peak_depth", Time(0.0, 1e10)),
    ],
};
const LATENCY: Section = Section {
    name: "latency",
    required: true,
    specs: &[
        spec("read", Time(0.0, 1e10)),
        spec("write", Time(0.0, 1e10)),
        spec("flush", Time(0.0, 1e10)),
        spec("rate", Rate(1e6, 1e12)),
    ],
};

/// The sections of a token-bucket model.
pub(crate) const SCHEMA: [&Section; 5] =
    [&COMMANDS, &BYTES, &LATENCY, &distribution::JITTER, &distribution::WRITE_JITTER];

/// What a cloud volume needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    commands: [Bucket; 2],
    bytes: [Bucket; 2],
    /// Bytes that cost one command.
    unit: u64,
    /// Picoseconds after which the provider lets out together what has waited; zero: at once.
    slice: u128,
    read: Duration,
    write: Duration,
    flush: Duration,
    /// Picoseconds a byte.
    byte_time: u64,
    jitter: Jitter,
    write_jitter: Jitter,
}

/// A leaky bucket: so many tokens at once, then one every so often.
#[derive(Clone, Debug)]
struct Bucket {
    /// Picoseconds in which one token flows in.
    interval: u128,
    /// Picoseconds in which the empty bucket fills.
    depth: u128,
    /// When the bucket would be full if nothing more were taken, in picoseconds.
    full_at: u128,
}

impl Bucket {
    fn new(rate: f64, tokens: f64) -> Bucket {
        let interval = libm::round(1e12 / rate) as u128;
        Bucket { interval, depth: libm::round(1e12 / rate * tokens) as u128, full_at: 0 }
    }

    /// When a command that costs `tokens` can pass, in picoseconds. A command may overdraw the
    /// bucket as long as there is something in it; the next ones then wait.
    fn passes_at(&self, now: u128, tokens: u64) -> u128 {
        let cost = (self.interval * u128::from(tokens)).min(self.depth);
        now.max((self.full_at + cost).saturating_sub(self.depth))
    }

    fn take(&mut self, at: u128, tokens: u64) {
        self.full_at = self.full_at.max(at) + self.interval * u128::from(tokens);
    }
}

impl Parameters {
    pub fn load(table: &Table) -> Result<Parameters, Error> {
        let pair = |section: &str, credits: f64| {
            let baseline = table.real(&format!("{section}.baseline"));
            let peak = table.real(&format!("{section}.peak"));
            if peak < baseline {
                let problem = format!("peak {peak} below baseline {baseline}");
                let accepted = "a peak of at least the baseline";
                return Err(table.refuse(&format!("{section}.peak"), problem, accepted));
            }
            let depth = table.real(&format!("{section}.peak_depth")) / 1e9;
            Ok([Bucket::new(baseline, credits), Bucket::new(peak, peak * depth)])
        };
        let jitter = Jitter::load(table, &distribution::JITTER)?;
        let write_jitter = match table.has(distribution::WRITE_JITTER.name) {
            true => Jitter::load(table, &distribution::WRITE_JITTER)?,
            false => jitter.clone(),
        };
        Ok(Parameters {
            commands: pair("commands", table.real("commands.credits"))?,
            bytes: pair("bytes", table.real("bytes.credits"))?,
            unit: table.size("commands.unit"),
            slice: u128::from(table.time("commands.slice").as_nanos()) * 1000,
            read: table.time("latency.read"),
            write: table.time("latency.write"),
            flush: table.time("latency.flush"),
            byte_time: libm::round(1e12 / table.real("latency.rate")) as u64,
            jitter,
            write_jitter,
        })
    }
}

/// A cloud volume in operation.
pub(crate) struct Volume {
    facts: Facts,
    parameters: Parameters,
    rng: Rng,
    passed: u128,
    in_flight: Agenda<Tag>,
    stages: Stages,
}

impl Volume {
    pub fn new(facts: Facts, parameters: Parameters, seed: u64) -> Volume {
        let rng = Rng::stream(seed, "device/latency");
        Volume {
            facts,
            parameters,
            rng,
            passed: 0,
            in_flight: Agenda::new(),
            stages: Stages::default(),
        }
    }

    /// When the command passes the gate.
    fn admit(&mut self, now: Instant, bytes: u64) -> Instant {
        let now = (u128::from(now.as_nanos()) * 1000).max(self.passed);
        let commands = bytes.div_ceil(self.parameters.unit).max(1);
        let Parameters { commands: command_buckets, bytes: byte_buckets, .. } =
            &mut self.parameters;
        let mut at = now;
        for bucket in command_buckets.iter() {
            at = at.max(bucket.passes_at(now, commands));
        }
        for bucket in byte_buckets.iter() {
            at = at.max(bucket.passes_at(now, bytes));
        }
        command_buckets.iter_mut().for_each(|bucket| bucket.take(at, commands));
        byte_buckets.iter_mut().for_each(|bucket| bucket.take(at, bytes));
        self.passed = at;
        let slice = self.parameters.slice;
        let let_out = if at > now && slice > 0 { at.div_ceil(slice) * slice } else { at };
        Instant::from_nanos(let_out.div_ceil(1000) as u64)
    }
}

impl Device for Volume {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        let bytes = command.sectors.bytes().0;
        let (start, median) = match command.op {
            CommandOp::Read => (self.admit(now, bytes), self.parameters.read),
            CommandOp::Write => (self.admit(now, bytes), self.parameters.write),
            CommandOp::Flush | CommandOp::Discard => (now, self.parameters.flush),
        };
        let jitter = match command.op {
            CommandOp::Write => &self.parameters.write_jitter,
            _ => &self.parameters.jitter,
        };
        let latency = jitter.draw(&mut self.rng, median);
        let size = Duration::from_nanos(bytes * self.parameters.byte_time / 1000);
        let size = if command.op == CommandOp::Discard { Duration::ZERO } else { size };
        self.stages.enter(now, command.tag, Stage::Budget);
        self.stages.enter(start, command.tag, Stage::Service);
        self.in_flight.schedule(start + latency + size, command.tag);
    }

    fn next_event(&self) -> Option<Instant> {
        self.in_flight.next_at()
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        while let Some((_, tag)) = self.in_flight.pop_due(now) {
            completed.push(tag);
        }
    }

    fn keep_stages(&mut self) {
        self.stages.keep();
    }

    fn take_stages(&mut self, tag: Tag) -> Box<[(Instant, Stage)]> {
        self.stages.take(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lets_a_burst_through_and_then_its_rate() {
        let mut bucket = Bucket::new(1000.0, 3.0);
        let millisecond = 1_000_000_000;
        let passed: Vec<u128> = (0..6)
            .map(|_| {
                let at = bucket.passes_at(0, 1);
                bucket.take(at, 1);
                at / millisecond
            })
            .collect();
        assert_eq!(passed, [0, 0, 0, 1, 2, 3]);
    }

    /// Response times in microseconds of a closed loop of 4 KiB commands, in order of length.
    fn closed_loop(model: &str, depth: u32, count: usize, op: CommandOp) -> Vec<u64> {
        let mut volume = crate::Model::builtin(model).unwrap().build(1);
        let command = |tag| {
            let (sector, sectors) = (base::Sector(0), base::Sectors(8));
            Command { tag: Tag(tag), op, sector, sectors, fua: false }
        };
        let mut begun = vec![Instant::ZERO; depth as usize];
        (0..depth).for_each(|tag| volume.accept(Instant::ZERO, command(tag)));
        let (mut times, mut completed) = (Vec::new(), Vec::new());
        while times.len() < count {
            let now = volume.next_event().unwrap();
            volume.advance(now, &mut completed);
            for Tag(tag) in completed.drain(..) {
                times.push(now.since(begun[tag as usize]).as_nanos() / 1000);
                begun[tag as usize] = now;
                volume.accept(now, command(tag));
            }
        }
        times.sort_unstable();
        times
    }

    #[test]
    fn reads_and_writes_scatter_each_in_their_own_way() {
        let reads = closed_loop("cloud-gp2", 1, 40_000, CommandOp::Read);
        let published = [(20_000, 410), (36_000, 1432), (39_600, 3312)];
        for (place, time) in published {
            assert!(reads[place].abs_diff(time) < time / 10, "{place}: {}", reads[place]);
        }
        let writes = closed_loop("cloud-gp2", 1, 40_000, CommandOp::Write);
        assert!(writes[20_000].abs_diff(556) < 20, "{}", writes[20_000]);
        assert!(writes[39_600] < 1300, "{}", writes[39_600]);
    }

    #[test]
    fn at_its_limit_a_volume_is_a_queue_at_a_constant_rate() {
        let times = closed_loop("cloud-gp2", 1024, 100_000, CommandOp::Read);
        let queue = 1024 * 1_000_000 / 3000;
        for place in [10_000, 50_000, 90_000] {
            assert!(times[place].abs_diff(queue) < queue * 8 / 100, "{}", times[place]);
        }
    }

    #[test]
    fn a_limit_with_slices_lets_out_together_what_has_waited() {
        let times = closed_loop("cloud-sliced", 32, 2000, CommandOp::Read);
        let beyond = |time: &&u64| (**time + 8_000) % 250_000 > 16_000;
        let between = times.iter().filter(beyond).count();
        assert!(between < 40, "{between} of 2,000 between the slices");
        assert!(times[1900] > 492_000 && times[200] < 258_000, "{times:?}");
    }
}
