//! The disk in operation: one command is served, the others wait.

use super::Parameters;
use super::arm::Head;
use super::buffer::Buffer;
use crate::Device;
use crate::stages::Stages;
use base::{Duration, Instant, Rng, Sector};
use block::command::{Command, CommandOp, Facts, Stage, Tag};
use std::sync::Arc;

/// A disk that does one thing at a time.
pub(crate) struct Server {
    facts: Facts,
    parameters: Arc<Parameters>,
    waiting: Vec<(Instant, Command)>,
    serving: Option<(Instant, Command)>,
    head: Head,
    buffer: Option<Buffer>,
    stages: Stages,
}

impl Server {
    pub fn new(facts: Facts, parameters: Arc<Parameters>, seed: u64) -> Server {
        let mut head = Head::default();
        if let Some(arm) = &parameters.arm {
            head.phase = Rng::stream(seed, "device/angle").below(arm.revolution());
        }
        let waiting = Vec::with_capacity(facts.queue_depth as usize);
        Server {
            facts,
            parameters,
            waiting,
            serving: None,
            head,
            buffer: None,
            stages: Stages::default(),
        }
    }

    /// Starts the command that goes next, if one waits.
    fn start(&mut self, now: Instant) {
        let Some(next) = self.choose(now) else { return };
        let (_, command) = self.waiting.remove(next);
        self.stages.enter_all(command.tag, &self.stages_of(now, &command));
        let service = self.service(now, &command);
        self.serving = Some((now + service, command));
    }

    /// What is done for a command that is served from now on.
    fn stages_of(&self, now: Instant, command: &Command) -> [(Instant, Stage); 4] {
        let begun = now + self.parameters.overhead;
        let waits = self.positioning(now, command);
        let arm = self.parameters.arm.as_ref().filter(|_| !waits.is_zero());
        let seek = arm.map_or(Duration::ZERO, |arm| arm.seek(&self.head, command.sector.0));
        [
            (now, Stage::Controller),
            (begun, Stage::Seek),
            (begun + seek, Stage::Rotation),
            (begun + waits, Stage::Media),
        ]
    }

    fn choose(&self, now: Instant) -> Option<usize> {
        let (oldest, _) = self.waiting.first()?;
        let is_old = now.saturating_since(*oldest) > self.parameters.ageing;
        if !self.parameters.by_positioning || is_old {
            return Some(0);
        }
        let reached = |n: &usize| self.positioning(now, &self.waiting[*n].1);
        (0..self.waiting.len()).min_by_key(reached)
    }

    /// How long until the data of a command can begin to flow.
    fn positioning(&self, now: Instant, command: &Command) -> Duration {
        let Some(arm) = &self.parameters.arm else { return Duration::ZERO };
        if command.op == CommandOp::Flush || self.continues(now, command) {
            return Duration::ZERO;
        }
        let Sector(first) = command.sector;
        let seek = arm.seek(&self.head, first);
        seek + arm.wait(&self.head, now + self.parameters.overhead + seek, first)
    }

    /// Whether a read finds what it wants under the head or in the buffer.
    fn continues(&self, now: Instant, command: &Command) -> bool {
        let Sector(first) = command.sector;
        if command.op != CommandOp::Read {
            return false;
        }
        let Some(arm) = &self.parameters.arm else { return false };
        let in_streak = self
            .head
            .read
            .is_some_and(|(end, at)| end == first && now.saturating_since(at) <= arm.streak);
        in_streak || self.buffered(first).is_some()
    }

    /// The buffer, if it has what is read from here on.
    fn buffered(&self, first: u64) -> Option<Buffer> {
        let ahead = self.parameters.ahead.as_ref()?;
        self.buffer.filter(|buffer| ahead.holds(buffer, first))
    }

    fn service(&mut self, now: Instant, command: &Command) -> Duration {
        let parameters = self.parameters.clone();
        let Sector(first) = command.sector;
        let sectors = u64::from(command.sectors.0);
        if command.op == CommandOp::Flush {
            return parameters.flush;
        }
        let is_read = command.op == CommandOp::Read;
        let end = first + sectors;
        let buffered = self.buffered(first).filter(|_| is_read);
        let service = match (buffered, &parameters.ahead) {
            (Some(mut buffer), Some(ahead)) => {
                let (missing, since) = ahead.ask(&mut buffer, end);
                self.buffer = Some(buffer);
                let passed = since + parameters.transfer(missing);
                parameters.overhead + passed.saturating_since(now)
            }
            _ => {
                let positioning = self.positioning(now, command);
                let service = parameters.overhead + positioning + parameters.transfer(sectors);
                let reads_on = parameters.ahead.as_ref().filter(|_| is_read);
                self.buffer = reads_on.map(|ahead| ahead.filled(first, end, now + service));
                service
            }
        };
        self.head.at = end;
        self.head.read = is_read.then_some((end, now + service));
        service
    }
}

impl Device for Server {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        self.stages.enter(now, command.tag, Stage::Queue);
        self.waiting.push((now, command));
        if self.serving.is_none() {
            self.start(now);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        self.serving.as_ref().map(|(end, _)| *end)
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        while let Some((end, command)) = self.serving.take_if(|(end, _)| *end <= now) {
            completed.push(command.tag);
            // Whoever looks later keeps the disk waiting.
            self.start(now.max(end) + self.parameters.turnaround);
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
    use crate::Model;
    use base::Sectors;

    /// A disk whose medium stands at its beginning when time begins.
    fn disk(name: &str) -> Server {
        let mut server = Model::builtin(name).expect("it is built in").build_single_server();
        server.head.phase = 0;
        server
    }

    fn read(tag: u32, sector: u64, sectors: u32) -> Command {
        let (op, sector, sectors) = (CommandOp::Read, Sector(sector), Sectors(sectors));
        Command { tag: Tag(tag), op, sector, sectors, fua: false }
    }

    /// When each of the commands is done that are given at the same time, in order of completion.
    fn done(disk: &mut Server, at: u64, commands: &[Command]) -> Vec<(u32, u64)> {
        for command in commands {
            disk.accept(Instant::from_nanos(at), *command);
        }
        let mut all = Vec::new();
        while let Some(at) = disk.next_event() {
            let mut tags = Vec::new();
            disk.advance(at, &mut tags);
            all.extend(tags.iter().map(|Tag(tag)| (*tag, at.as_nanos())));
        }
        all
    }

    #[test]
    fn without_an_arm_commands_take_their_size_one_after_the_other() {
        let mut disk = disk("recorded-fast");
        let times = done(&mut disk, 0, &[read(0, 0, 8), read(1, 80_000, 8)]);
        assert_eq!(times, [(0, 108_192), (1, 108_192 + 700 + 108_192)]);
    }

    #[test]
    fn an_arm_seeks_by_the_root_of_the_distance_and_waits_for_the_sector() {
        let mut disk = disk("recorded-hdd");
        // A quarter of the disk: 0.6 ms and half of 6 ms; then the rest of a revolution.
        let times = done(&mut disk, 0, &[read(0, 524_288, 8)]);
        assert_eq!(times, [(0, 8_333_333 + 8 * 4_069)]);
    }

    #[test]
    fn a_read_that_goes_on_at_once_finds_the_head_there() {
        let mut disk = disk("recorded-hdd");
        let first = done(&mut disk, 0, &[read(0, 0, 8)])[0].1;
        let second = done(&mut disk, first + 1000, &[read(1, 8, 8)])[0].1;
        assert_eq!(second - first, 1000 + 100_000 + 32_552);
    }

    #[test]
    fn what_waits_goes_by_positioning_unless_it_is_old() {
        let far = [read(0, 0, 8), read(1, 1_900_000, 8), read(2, 100, 8)];
        let order = |name: &str| -> Vec<u32> {
            done(&mut disk(name), 0, &far).iter().map(|(tag, _)| *tag).collect()
        };
        assert_eq!(order("recorded-hdd"), [0, 2, 1]);
        assert_eq!(order("recorded-hdd-fifo"), [0, 1, 2]);
        let mut disk = disk("recorded-hdd");
        disk.waiting.push((Instant::ZERO, read(1, 1_900_000, 8)));
        disk.waiting.push((Instant::from_nanos(200_000_000), read(2, 100, 8)));
        assert_eq!(disk.choose(Instant::from_nanos(200_000_001)), Some(0));
    }

    #[test]
    fn a_read_of_what_was_read_ahead_waits_for_the_medium_only() {
        let mut disk = disk("recorded-hddra");
        let first = done(&mut disk, 0, &[read(0, 0, 64)])[0].1;
        // Long after, everything up to the limit is there.
        let second = done(&mut disk, first + 50_000_000, &[read(1, 256, 64)])[0].1;
        assert_eq!(second - first, 50_000_000 + 100_000);
        let mut disk = self::disk("recorded-hddra");
        let first = done(&mut disk, 0, &[read(0, 0, 64)])[0].1;
        let second = done(&mut disk, first, &[read(1, 256, 64)])[0].1;
        assert_eq!(second - first, 100_000 + (320 - 64) * 4_069_010 / 1000);
    }
}
