//! Several closed loops on the same drives, each with its own distribution of response times.

use base::{Duration, Instant, Rng, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::{Device, Model};

/// What a loop asks for next.
pub struct Ask {
    pub op: CommandOp,
    pub sector: u64,
    pub sectors: u32,
    pub fua: bool,
}

/// A closed loop: so many commands in flight, drive by drive in turn.
pub struct Loop {
    pub depth: u32,
    /// The loop's core takes so long for a command.
    pub core: Duration,
    /// After so many commands it rests for so long.
    pub rest: Option<(u64, Duration)>,
    pub next: Box<dyn FnMut(&mut Rng) -> Ask>,
}

/// What a loop saw after the warm-up: response times in the order of their ends, or sorted.
pub struct Seen {
    in_order: Vec<u64>,
    sorted: Vec<u64>,
    pub per_second: f64,
}

impl Seen {
    fn new(in_order: Vec<u64>, span: Duration) -> Seen {
        let mut sorted = in_order.clone();
        sorted.sort_unstable();
        let per_second = sorted.len() as f64 / span.as_nanos() as f64 * 1e9;
        Seen { in_order, sorted, per_second }
    }

    pub fn mean_us(&self) -> f64 {
        self.sorted.iter().sum::<u64>() as f64 / self.sorted.len() as f64 / 1e3
    }

    /// The time that this share of the commands stayed within.
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.sorted[(share * (self.sorted.len() - 1) as f64) as usize] as f64 / 1e3
    }

    /// The share of the commands that stayed within this time.
    pub fn share_within_us(&self, time: f64) -> f64 {
        let within = self.sorted.partition_point(|nanos| *nanos as f64 <= time * 1e3);
        within as f64 / self.sorted.len() as f64
    }

    /// Two commands each, one after the other, as one.
    pub fn in_pairs(&self) -> Seen {
        let pairs = self.in_order.chunks_exact(2).map(|pair| pair[0] + pair[1]);
        Seen::new(pairs.collect(), Duration::from_secs(1))
    }
}

/// A load as it runs.
struct Running {
    drives: Vec<Box<dyn Device>>,
    /// By tag: of which loop a command in flight is, and when it began.
    in_flight: Vec<(usize, Instant)>,
    free_tags: Vec<Tag>,
    times: Vec<Vec<u64>>,
    turns: Vec<u64>,
    core_free: Vec<Instant>,
    /// Commands that wait for the core of their loop, by when it is free.
    waiting: Vec<(Instant, usize)>,
    rng: Rng,
}

/// Runs the loops on so many drives of a model; what ends before `from` does not count.
pub fn compete(
    model: &Model,
    drives: u64,
    mut loops: Vec<Loop>,
    (from, until): (Duration, Duration),
) -> Vec<Seen> {
    let most: u32 = loops.iter().map(|it| it.depth).sum();
    let mut running = Running {
        drives: (1..=drives).map(|seed| model.build(seed)).collect(),
        in_flight: vec![(0, Instant::ZERO); most as usize],
        free_tags: (0..most).map(Tag).collect(),
        times: loops.iter().map(|_| Vec::new()).collect(),
        turns: vec![0; loops.len()],
        core_free: vec![Instant::ZERO; loops.len()],
        waiting: Vec::new(),
        rng: Rng::stream(1, "validate"),
    };
    for (index, it) in loops.iter().enumerate() {
        (0..it.depth).for_each(|_| running.want(Instant::ZERO, index, it.core));
    }
    running.run(&mut loops, Instant::ZERO + from, Instant::ZERO + until);
    running.times.into_iter().map(|times| Seen::new(times, until.saturating_sub(from))).collect()
}

impl Running {
    /// A loop wants to submit: when its core is free.
    fn want(&mut self, now: Instant, index: usize, core: Duration) {
        let free = self.core_free[index].max(now) + core;
        self.core_free[index] = free;
        let place = self.waiting.partition_point(|(at, _)| *at > free);
        self.waiting.insert(place, (free, index));
    }

    fn run(&mut self, loops: &mut [Loop], from: Instant, until: Instant) {
        let mut completed = Vec::new();
        loop {
            let events = self.drives.iter().filter_map(|drive| drive.next_event());
            let submits = self.waiting.last().map(|(at, _)| *at);
            let now = events.chain(submits).min().expect("commands are in flight");
            if now > until {
                return;
            }
            for drive in &mut self.drives {
                drive.advance(now, &mut completed);
            }
            for tag in completed.drain(..) {
                let (index, begun) = self.in_flight[tag.0 as usize];
                self.free_tags.push(tag);
                if now >= from {
                    self.times[index].push(now.since(begun).as_nanos());
                }
                self.want(now, index, loops[index].core);
            }
            while let Some((_, index)) = self.waiting.pop_if(|(at, _)| *at <= now) {
                self.submit(now, index, &mut loops[index]);
            }
        }
    }

    fn submit(&mut self, now: Instant, index: usize, it: &mut Loop) {
        let Ask { op, sector, sectors, fua } = (it.next)(&mut self.rng);
        let tag = self.free_tags.pop().expect("a tag for each command");
        self.in_flight[tag.0 as usize] = (index, now);
        let (sector, sectors) = (Sector(sector), Sectors(sectors));
        let drive = self.turns[index] as usize % self.drives.len();
        self.turns[index] += 1;
        if let Some((after, rest)) = it.rest
            && self.turns[index].is_multiple_of(after)
        {
            self.core_free[index] = now + rest;
        }
        self.drives[drive].accept(now, Command { tag, op, sector, sectors, fua });
    }
}
