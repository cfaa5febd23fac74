//! A run of any length in little room: how many requests are in which state, between which sectors
//! they are and how many bytes are done, in buckets of time; and how long requests spend where.
//!
//! When a run outgrows its buckets, two become one, which is twice as wide.

use super::Held;
use super::lanes::{Lanes, queue_of};
use crate::histogram::Distribution;
use crate::layer::Layer;
use crate::life::Life;
use base::{Duration, Instant};
use block::ContextId;
use std::collections::BTreeMap;

/// So many buckets there are, of which at least half are used once a run is long.
pub(super) const BUCKETS: usize = 1 << 14;
/// A bucket at first, in nanoseconds: whole ticks of every timeline.
const FIRST_WIDTH: u64 = 100_000;
/// So many tasks are told apart.
const MOST_TASKS: usize = 256;
/// What tasks are called that are not told apart.
const OTHERS: ContextId = ContextId(u32::MAX);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// The scheduler withholds requests, for this reason.
    Withheld(Layer),
    /// Requests of a task are in a layer.
    Task(ContextId, Layer),
    /// Requests in one of the scheduler's queues are in a layer.
    Queue(usize, Layer),
    /// The device does requests with this operation.
    Device(usize),
}

/// The outline of a run.
#[derive(Clone, Debug)]
pub struct Outline {
    /// When the first request began.
    origin: Option<Instant>,
    /// Nanoseconds of a bucket.
    width: u64,
    /// Nanoseconds in each bucket.
    states: BTreeMap<State, Vec<u64>>,
    /// The lowest first sector of each bucket, or the greatest number; and the highest.
    sectors: [Vec<u64>; 2],
    /// One behind the last sector of all.
    behind: u64,
    /// Done in each bucket.
    bytes: Vec<u64>,
    /// How many requests each task has, and when the first one began.
    asking: BTreeMap<ContextId, (usize, Instant)>,
    /// How long requests spend in a layer; none for the whole time.
    times: BTreeMap<Option<Layer>, Distribution>,
}

impl Default for Outline {
    fn default() -> Outline {
        Outline {
            origin: None,
            width: FIRST_WIDTH,
            states: BTreeMap::new(),
            sectors: [vec![u64::MAX; BUCKETS], vec![0; BUCKETS]],
            behind: 1,
            bytes: vec![0; BUCKETS],
            asking: BTreeMap::new(),
            times: BTreeMap::new(),
        }
    }
}

impl Outline {
    /// A request is done. The first one of all is where time begins; what was before it counts for
    /// its bucket.
    pub fn see(&mut self, life: &Life) {
        self.reach(life.queued, life.end());
        let task = self.task(life);
        let (since, until) = (life.inserted, life.issued);
        let mut from = life.queued;
        for (layer, time) in &life.layers {
            let to = from + *time;
            self.add(State::Task(task, *layer), from, to);
            if let Some(since) = since.filter(|since| from.max(*since) < to.min(until)) {
                let queue = State::Queue(queue_of(life), *layer);
                self.add(queue, from.max(since), to.min(until));
            }
            from = to;
        }
        let operation = super::requests::operation_of(life);
        self.add(State::Device(operation), until, life.completed);
        self.place(life);
        super::spread::note(&mut self.times, life);
    }

    /// The scheduler has withheld requests.
    pub(super) fn see_held(&mut self, held: &Held) {
        self.reach(held.from, held.to);
        self.add(State::Withheld(Layer::Held(held.reason)), held.from, held.to);
    }

    /// By which name a request's task is counted; it has one more.
    fn task(&mut self, life: &Life) -> ContextId {
        let is_known = self.asking.contains_key(&life.context);
        let task = if is_known || self.asking.len() < MOST_TASKS { life.context } else { OTHERS };
        let asking = self.asking.entry(task).or_insert((0, life.queued));
        *asking = (asking.0 + 1, asking.1.min(life.queued));
        task
    }

    /// Where a request is, and what it did.
    fn place(&mut self, life: &Life) {
        let (issued, done) = (self.bucket(life.issued), self.bucket(life.completed));
        self.bytes[done] += life.sectors.bytes().0;
        if !life.sectors.is_zero() {
            let [lowest, highest] = &mut self.sectors;
            lowest[issued] = lowest[issued].min(life.sector.0);
            highest[issued] = highest[issued].max(life.sector.0);
            self.behind = self.behind.max(life.sector.0 + u64::from(life.sectors.0));
        }
    }

    /// Sees to it that a time lies in a bucket.
    fn reach(&mut self, begun: Instant, end: Instant) {
        let origin = *self.origin.get_or_insert(begun);
        while end.saturating_since(origin).as_nanos() >= self.width * BUCKETS as u64 {
            self.width *= 2;
            let sum = |one: u64, other: u64| one + other;
            self.states.values_mut().for_each(|it| halve(it, 0, sum));
            halve(&mut self.bytes, 0, sum);
            halve(&mut self.sectors[0], u64::MAX, u64::min);
            halve(&mut self.sectors[1], 0, u64::max);
        }
    }

    fn since_origin(&self, at: Instant) -> u64 {
        self.origin.map_or(0, |origin| at.saturating_since(origin).as_nanos())
    }

    fn bucket(&self, at: Instant) -> usize {
        (self.since_origin(at) / self.width) as usize
    }

    fn add(&mut self, state: State, from: Instant, to: Instant) {
        let (from, to) = (self.since_origin(from), self.since_origin(to));
        if to <= from {
            return;
        }
        let width = self.width;
        let sums = self.states.entry(state).or_insert_with(|| vec![0; BUCKETS]);
        for bucket in from / width..=(to - 1) / width {
            let begin = bucket * width;
            sums[bucket as usize] += to.min(begin + width) - from.max(begin);
        }
    }

    /// How long requests spend in a layer; none for the whole time.
    pub fn times(&self) -> &BTreeMap<Option<Layer>, Distribution> {
        &self.times
    }

    /// Bytes that are done in each of so many equal windows from the beginning to `end`.
    pub fn bytes_over_time(&self, end: Instant, windows: usize) -> (Duration, Vec<u64>) {
        let width = (end.as_nanos() / windows.max(1) as u64 + 1).max(1);
        let mut all = vec![0; windows];
        let begun = self.origin.unwrap_or_default().as_nanos();
        for (bucket, bytes) in self.bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            // What a bucket has is spread over its time.
            let from = begun + bucket as u64 * self.width;
            let to = from + self.width;
            for window in from / width..=(to - 1) / width {
                let within = to.min((window + 1) * width) - from.max(window * width);
                let part = u128::from(*bytes) * u128::from(within) / u128::from(self.width);
                if let Some(sum) = all.get_mut(window as usize) {
                    *sum += part as u64;
                }
            }
        }
        (Duration::from_nanos(width), all)
    }

    /// The same with time counted from `begin`, to a bucket.
    pub fn as_if_begun(mut self, begin: Instant) -> Outline {
        let since = |at: Instant| Instant::ZERO + at.saturating_since(begin);
        self.origin = self.origin.map(since);
        self.asking.values_mut().for_each(|(_, first)| *first = since(*first));
        self
    }

    /// How many requests there are.
    pub fn requests(&self) -> usize {
        self.asking.values().map(|(count, _)| count).sum()
    }

    pub(super) fn asking(&self) -> impl Iterator<Item = (ContextId, (usize, Instant))> {
        self.asking.iter().filter(|it| *it.0 != OTHERS).map(|(who, it)| (*who, *it))
    }

    /// Queues of the scheduler that had requests.
    pub(super) fn queues(&self) -> impl Iterator<Item = usize> {
        let queue = |state: &State| match state {
            State::Queue(queue, _) => Some(*queue),
            _ => None,
        };
        self.states.keys().filter_map(queue)
    }

    /// Layers that occur.
    pub(super) fn layers(&self) -> impl Iterator<Item = Layer> {
        let layer = |state: &State| match state {
            State::Withheld(layer) | State::Task(_, layer) | State::Queue(_, layer) => Some(*layer),
            State::Device(_) => None,
        };
        self.states.keys().filter_map(layer)
    }

    /// Ticks of a bucket, when a tick has so many nanoseconds.
    pub(super) fn width(&self, tick: u64) -> u64 {
        self.width / tick
    }

    /// One behind the last sector of all.
    pub(super) fn behind(&self) -> u64 {
        self.behind
    }

    /// The sums of each lane and kind from the beginning of the timeline, in nanoseconds.
    pub(super) fn sums(
        &self,
        lanes: &Lanes,
        kinds: &[Layer],
    ) -> BTreeMap<(usize, usize), Vec<u64>> {
        let place = |layer: &Layer| kinds.iter().position(|it| it == layer).unwrap_or(0);
        let mut all: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
        let mut add = |lane: usize, kind: usize, sums: &[u64]| {
            let all = all.entry((lane, kind)).or_insert_with(|| vec![0; BUCKETS]);
            let late = self.shifted(sums);
            all.iter_mut().zip(late).for_each(|(sum, it)| *sum += it);
        };
        for (state, sums) in &self.states {
            match state {
                State::Withheld(layer) => add(0, place(layer), sums),
                State::Queue(queue, layer) => add(lanes.queue(*queue), place(layer), sums),
                State::Device(operation) => add(lanes.device(), *operation, sums),
                State::Task(who, layer) => {
                    let lane = lanes.of_task(*who);
                    add(lane, place(layer), sums);
                    if let Some(group) = lanes.lanes[lane].group {
                        add(group, place(layer), sums);
                    }
                }
            }
        }
        all
    }

    /// The lowest and the highest sector of each bucket from the beginning of the timeline.
    pub(super) fn sectors(&self) -> impl Iterator<Item = Option<[u64; 2]>> {
        let [lowest, highest] = &self.sectors;
        let both = lowest.iter().zip(highest).map(|(low, high)| [*low, *high]);
        let late = std::iter::repeat_n(None, self.late());
        late.chain(both.map(|it| Some(it).filter(|it| it[0] <= it[1]))).take(BUCKETS)
    }

    /// Whole buckets from the beginning of the timeline to the first request.
    fn late(&self) -> usize {
        let origin = self.origin.unwrap_or_default().as_nanos();
        ((origin / self.width) as usize).min(BUCKETS)
    }

    fn shifted<'a>(&self, sums: &'a [u64]) -> impl Iterator<Item = u64> + use<'a> {
        std::iter::repeat_n(0, self.late()).chain(sums.iter().copied())
    }
}

/// Makes one of two that stand side by side.
fn halve(all: &mut [u64], nothing: u64, both: impl Fn(u64, u64) -> u64) {
    let half = all.len() / 2;
    for at in 0..half {
        all[at] = both(all[2 * at], all[2 * at + 1]);
    }
    all[half..].fill(nothing);
}
